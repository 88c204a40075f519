"""Chat histories in lists: messages as records, and calls that go with what answers them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, ProblemCode
from purge.testing.case import Case, ids, phrase
from tests.support.redis_servers import Server
from tests.support.redis_sites import site

SAID = "Oona left the lifeboat charts in the green locker"
NEAR = "Oona left the lifeboat charts in the green lockers"
WORDS = phrase(SAID)
KEY = b"message_store:oona"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    with server.client() as client:
        client.flushall()
        yield client


def at(server: Server, folder: Path, action: Action = Action.DELETE, **more: Any) -> Case:
    return site(folder, action, url=server.url, **{"format": "langchain", **more})


def message(kind: str, id: str | None, content: Any, **more: Any) -> str:
    data = {"content": content, "additional_kwargs": {}, "type": kind, "id": id, **more}
    return json.dumps({"type": kind, "data": data})


def call(id: str, content: Any = "", **calls: Any) -> str:
    made = [{"name": "note", "args": {"text": said}, "id": name} for name, said in calls.items()]
    return message("ai", id, content, tool_calls=made)


def result(id: str, of: str, content: str = "done and dusted") -> str:
    return message("tool", id, content, tool_call_id=of)


def fill(client: Any, *messages: str, key: bytes = KEY) -> None:
    """Push as the library does: the newest message comes first."""
    for each in messages:
        client.lpush(key, each)


def left(client: Any, key: bytes = KEY) -> list[str]:
    """Return the ids that are left, as the library returns them: the oldest first."""
    return [json.loads(each)["data"]["id"] for each in reversed(client.lrange(key, 0, -1))]


def purge(case: Case, targets: Any = WORDS) -> dict[str, int]:
    run = case.purge(targets)
    assert (run.left, run.read_back.matches, run.after.residue) == ((), (), ())
    assert run.found.not_checked == ()
    assert all(control.passed for control in run.after.controls)
    return {match.id: match.pieces for match in run.found.matches}


def test_the_order_and_the_life_of_what_stays(server: Server, client: Any, tmp_path: Path) -> None:
    fill(
        client,
        message("human", "h1", f"note that {SAID}"),
        message("human", "h2", "cafe\u0301 closes at four"),
        message("ai", "a1", [{"type": "text", "text": SAID}]),
        message("human", "h3", NEAR),
    )
    client.expire(KEY, 5000)
    before = client.lrange(KEY, 0, -1)
    assert purge(at(server, tmp_path)) == {"h1": 1, "a1": 1}
    assert client.lrange(KEY, 0, -1) == [before[0], before[2]]
    assert left(client) == ["h2", "h3"]
    assert 0 < client.ttl(KEY) <= 5000


def test_escapes_do_not_hide_a_message(server: Server, client: Any, tmp_path: Path) -> None:
    fill(client, message("human", "h1", "cafe\u0301 Ta\u0308by\u00e4 takes card 771-PL"))
    assert purge(at(server, tmp_path), phrase("café täbyä takes card 771-pl")) == {"h1": 1}


@pytest.mark.parametrize("where", ["call", "answer", "text"])
def test_a_call_and_its_result_go_together(
    server: Server, client: Any, tmp_path: Path, where: str
) -> None:
    fill(
        client,
        message("human", "h1", "please do"),
        call("a1", SAID if where == "text" else "", c1=SAID if where == "call" else "x", c2="y"),
        result("t1", "c1", SAID if where == "answer" else "done and dusted"),
        result("t2", "c2"),
        call("a2", c3="z"),
        result("t3", "c3"),
    )
    assert purge(at(server, tmp_path)) == {"t1" if where == "answer" else "a1": 3}
    assert left(client) == ["h1", "a2", "t3"]


def test_no_element_counts_twice(server: Server, client: Any, tmp_path: Path) -> None:
    fill(client, call("a1", c1=SAID, c2="y"), result("t1", "c1", SAID), result("t2", "c2"))
    assert purge(at(server, tmp_path)) == {"a1": 1, "t1": 2}
    assert left(client) == []


def test_ids_of_calls_may_be_used_again(server: Server, client: Any, tmp_path: Path) -> None:
    fill(
        client,
        *(call("a1", c1="first"), result("t1", "c1")),
        *(call("a2", c1=SAID), result("t2", "c1")),
        *(call("a3", c1="third"), result("t3", "c1")),
    )
    assert purge(at(server, tmp_path)) == {"a2": 2}
    assert left(client) == ["a1", "t1", "a3", "t3"]


def test_a_result_may_stand_before_its_call(server: Server, client: Any, tmp_path: Path) -> None:
    fill(client, result("t1", "c1"), message("human", "h1", "well"), call("a1", c1=SAID))
    assert purge(at(server, tmp_path)) == {"a1": 2}
    assert left(client) == ["h1"]


def test_other_keys_are_other_conversations(server: Server, client: Any, tmp_path: Path) -> None:
    odd = [b"message_store:o[o]n*?", b"message_store:new\nline", b"message_store:\xff\\x"]
    for key in (KEY, *odd):
        fill(client, call("a1", c1=SAID if key in odd else "x"), result("t1", "c1"), key=key)
    run = at(server, tmp_path).purge(WORDS)
    assert run.found["a1"].pieces == 6
    assert left(client) == ["a1", "t1"]
    assert [client.exists(key) for key in odd] == [0, 0, 0]


def test_equal_messages_go_and_stay_together(server: Server, client: Any, tmp_path: Path) -> None:
    twice, once = message("human", None, SAID), message("human", None, "good morning")
    fill(client, twice, once, twice, once)
    assert list(purge(at(server, tmp_path)).values()) == [2]
    assert client.lrange(KEY, 0, -1) == [once.encode(), once.encode()]


def test_blanking_keeps_the_pair(server: Server, client: Any, tmp_path: Path) -> None:
    fill(client, call("a1", "noted", c1=SAID), result("t1", "c1"))
    run = at(server, tmp_path, Action.BLANK).purge(WORDS)
    assert run.left == ()
    assert left(client) == ["a1", "t1"]
    said = json.loads(client.lindex(KEY, 1))["data"]
    assert (said["content"], said["tool_calls"][0]["args"]) == ("", {"text": ""})
    assert said["tool_calls"][0]["id"] == "c1"
    assert json.loads(client.lindex(KEY, 0))["data"]["content"] == "done and dusted"


def test_a_result_that_changed_meanwhile_is_said(
    server: Server, client: Any, tmp_path: Path
) -> None:
    fill(client, call("a1", c1=SAID), result("t1", "c1"))
    case = at(server, tmp_path)
    found = case.find(WORDS)
    client.lset(KEY, 0, result("t1", "c1", "written anew"))
    left_alone = case.remove(found.matches)
    assert [each.problem for each in left_alone] == [ProblemCode.CHANGED_UNDERNEATH]


def test_a_format_that_nobody_knows_can_be_described(
    server: Server, client: Any, tmp_path: Path
) -> None:
    """Turns of a bot: oldest first, a reply names the turn that it answers."""
    turns = [
        {"no": "n1", "ask": ["q1"], "words": "hello"},
        {"no": "n2", "reply": "q1", "words": SAID},
        {"no": "n3", "ask": ["q1"], "words": "again"},
        {"no": "n4", "reply": "q1", "words": "and again"},
        {"no": "n5", "words": "bye"},
    ]
    client.rpush("bot:7", *map(json.dumps, turns))
    client.rpush("log:7", json.dumps(turns[1]))
    described = {
        "keys": "bot:*",
        "record": "element",
        "id": "no",
        "text": ["words"],
        "pairs": {"calls": ["ask"], "result": "reply"},
    }
    case = at(server, tmp_path, format=described)
    assert purge(case) == {"n2": 2}
    assert [json.loads(each)["no"] for each in client.lrange("bot:7", 0, -1)] == ["n3", "n4", "n5"]
    assert purge(case, ids("n5")) == {"n5": 1}
    assert client.llen("log:7") == 1


def test_what_was_looked_at_counts_records_only(
    server: Server, client: Any, tmp_path: Path
) -> None:
    client.config_set("slowlog-log-slower-than", 0)
    try:
        client.config_resetstat()
        fill(client, message("human", "h1", "one"), message("human", "h2", "two"))
        looked = at(server, tmp_path).residue(WORDS)
    finally:
        client.config_set("slowlog-log-slower-than", 10_000)
        client.slowlog_reset()
    assert sum(each.records for each in looked.examined) == 2
