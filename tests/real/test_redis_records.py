"""Finding and removing in every type of value, on a real server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, ProblemCode
from purge.targets import TargetKind, Targets
from purge.testing.case import Case, ids, phrase, target
from purge_adapters import _redis_edit, _redis_remove, _redis_values
from purge_adapters._redis_keys import Pattern
from tests.support.redis_servers import Server
from tests.support.redis_sites import site

SAID = "Tilda keeps the spare key under the blue crab pot"
KEPT = "Tilda keeps the spare key under the blue crab potting bench"
WORDS = phrase("spare key under the blue crab pot")


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


def at(
    server: Server, folder: Path, keys: Any = "*", action: Action = Action.DELETE, **more: Any
) -> Case:
    return site(folder, action, url=server.url, keys=keys, **more)


def purge(case: Case, targets: Targets = WORDS) -> int:
    found = case.find(targets)
    assert found.not_checked == ()
    if found.matches:
        assert case.remove(found.matches) == ()
    assert case.find(targets).matches == ()
    return len(found.matches)


def test_keys_are_opaque_bytes(server: Server, client: Any, tmp_path: Path) -> None:
    odd = [b"s:til[d]a*?", b"s:new\nline", b"s:back\\slash", b"s:\xff\xfe", b"s: a b ", b"s:\x00"]
    for key in odd:
        client.set(key, SAID)
    client.set("s:tilda", KEPT)
    client.set("t:other", SAID)
    assert purge(at(server, tmp_path, "s:*")) == len(odd)
    assert sorted(client.keys()) == [b"s:tilda", b"t:other"]


def test_only_the_key_that_is_named_goes(server: Server, client: Any, tmp_path: Path) -> None:
    for key in ("a*b", "aXb", "a?b", "a[b", "ab", "a\\*b"):
        client.set(f"s:{key}", "words")
    assert purge(at(server, tmp_path, "s:{id}"), ids("a*b", "a?b")) == 2
    assert sorted(client.keys()) == [b"s:aXb", b"s:a[b", b"s:a\\*b", b"s:ab"]


def test_globs_mean_what_they_mean_to_the_server(
    server: Server, client: Any, tmp_path: Path
) -> None:
    for key in ("user:1", "user:2", "user:[1]", "user:10", "user:x"):
        client.set(key, SAID)
    assert purge(at(server, tmp_path, "user:[0-9]")) == 2
    assert purge(at(server, tmp_path, "user:\\[{id}")) == 1
    assert sorted(client.keys()) == [b"user:10", b"user:x"]


def test_patterns_mean_to_us_what_they_mean_to_the_server(client: Any) -> None:
    keys = [
        b"a.c",
        b"abc",
        b"a[c",
        b"a]c",
        b"a-c",
        b"a^c",
        b"a\\c",
        b"ac",
        b"a\nc",
        b"(a)",
        b"a+",
        b"a",
    ]
    globs = "* a? a?c a.c a[.]c a[^b]c a[a-c]c a[c-a]c a[\\]]c a\\?c a\\\\c [^a]* (a) a+ a[ a[bc"
    globs += " a[] a**c"
    for key in keys:
        client.set(key, "1")
    for glob in globs.split():
        ours = {key for key in keys if Pattern.of(glob).id_in(key) is not None}
        assert ours == set(client.keys(glob)), glob


def test_every_key_of_many_is_seen_once(server: Server, client: Any, tmp_path: Path) -> None:
    pipe = client.pipeline(transaction=False)
    for number in range(12_000):
        pipe.set(f"k:{number}", SAID if number % 4000 == 7 else "nothing")
    pipe.execute()
    case = at(server, tmp_path, ["k:*", "k:*7", "k:{id}"])
    found = case.find(WORDS)
    assert sum(part.records for part in found.examined) == 12_000
    assert len(found.matches) == 3
    assert case.remove(found.matches) == ()
    assert client.dbsize() == 11_997


def test_only_the_named_databases_are_looked_at(
    server: Server, client: Any, tmp_path: Path
) -> None:
    for database in (0, 3, 5):
        with server.client(database) as other:
            other.set("same", SAID)
    case = at(server, tmp_path, databases=[0, 3])
    found = case.find(WORDS)
    assert [match.part for match in found.matches] == ["database 0", "database 3"]
    assert case.remove(found.matches[1:]) == ()
    left = [server.client(database).dbsize() for database in (0, 3, 5)]
    assert left == [1, 0, 1]
    assert any("5" in said.sentence for said in case.check())


def fill(client: Any) -> None:
    client.set("string", json.dumps({"q": "where?", "a": SAID}))
    client.rpush("list", "first", SAID, json.dumps({"text": SAID}), KEPT, SAID, "last")
    client.sadd("set", SAID, "tea", KEPT)
    client.zadd("sorted", {SAID: 1.5, "tea": 1.0, KEPT: 2.0})
    client.hset("hash", mapping={"text": f"Week: {SAID}; tea.", "version": "3"})
    client.xadd("stream", {"text": SAID}, id="5-1")
    client.xadd("stream", {"text": "tea"}, id="6-1")
    for key in client.scan_iter():
        client.pexpire(key, 1_000_000)


def test_elements_go_and_the_rest_of_their_values_stays(
    server: Server, client: Any, tmp_path: Path
) -> None:
    fill(client)
    assert purge(at(server, tmp_path, record="element")) == 7
    assert client.exists("string") == 0
    assert client.lrange("list", 0, -1) == [b"first", KEPT.encode(), b"last"]
    assert client.smembers("set") == {b"tea", KEPT.encode()}
    assert client.zrange("sorted", 0, -1, withscores=True) == [(b"tea", 1.0), (KEPT.encode(), 2.0)]
    assert client.hgetall("hash") == {b"version": b"3"}
    assert client.xrange("stream") == [(b"6-1", {b"text": b"tea"})]
    assert all(0 < client.pttl(key) <= 1_000_000 for key in client.scan_iter())


def test_whole_keys_go(server: Server, client: Any, tmp_path: Path) -> None:
    fill(client)
    client.set("other", KEPT)
    assert purge(at(server, tmp_path)) == 6
    assert client.keys() == [b"other"]


def test_blanking_keeps_everything_but_the_words(
    server: Server, client: Any, tmp_path: Path
) -> None:
    fill(client)
    client.delete("set")
    client.sadd("set", json.dumps({"id": "m", "text": SAID}), "tea")
    client.xgroup_create("stream", "group", id="5-1")
    case = at(server, tmp_path, "*", Action.BLANK, record="element")
    assert purge(case) == 7
    assert json.loads(client.get("string")) == {"q": "where?", "a": ""}
    shown = [b"first", b"", b'{"text": ""}', KEPT.encode(), b"", b"last"]
    assert client.lrange("list", 0, -1) == shown
    assert client.smembers("set") == {b'{"id": "m", "text": ""}', b"tea"}
    assert client.zscore("sorted", b"") == 1.5
    assert client.hgetall("hash") == {b"text": b"", b"version": b"3"}
    assert client.xrange("stream") == [(b"5-1", {b"text": b""}), (b"6-1", {b"text": b"tea"})]
    assert client.xinfo_groups("stream")[0]["last-delivered-id"] == b"5-1"
    assert all(client.pttl(key) > 0 for key in client.scan_iter() if key != b"set")


def test_words_in_a_field_name_cannot_be_blanked(
    server: Server, client: Any, tmp_path: Path
) -> None:
    client.hset("hash", SAID, "1")
    case = at(server, tmp_path, "*", Action.BLANK)
    left = case.remove(case.find(WORDS).matches)
    assert [item.problem for item in left] == [ProblemCode.UNSUPPORTED]
    assert client.hgetall("hash") == {SAID.encode(): b"1"}


def test_packed_values_are_read_and_what_cannot_be_read_is_said(
    server: Server, client: Any, tmp_path: Path
) -> None:
    client.set("gz", gzip.compress(SAID.encode()))
    client.set("bin", b"\x80\x04\x8cA" + SAID[16:].encode() + b"\x94.")
    client.set("vector", bytes(range(256)))
    found = at(server, tmp_path).find(WORDS)
    assert len(found.matches) == 1
    assert [gap.problem for gap in found.not_checked] == [ProblemCode.UNSUPPORTED]


def test_words_in_the_name_of_a_key_whose_elements_go_are_said(
    server: Server, client: Any, tmp_path: Path
) -> None:
    client.rpush(f"of {SAID}", "one", SAID)
    found = at(server, tmp_path, record="element").find(WORDS)
    assert len(found.matches) == 1
    assert [gap.problem for gap in found.not_checked] == [ProblemCode.UNSUPPORTED]
    assert purge(at(server, tmp_path)) == 1


def test_lineage_by_key_by_field_and_by_text(server: Server, client: Any, tmp_path: Path) -> None:
    client.set("answer:mem-7", "cached")
    client.set("answer:mem-71", "cached too")
    client.hset("sum:1", mapping={"text": "week", "derived_from": "h1, mem-7"})
    client.hset("sum:2", mapping={"text": "week", "derived_from": '["mem-71"]'})
    of = Targets([target(TargetKind.LINEAGE, "mem-7", site="memories")])
    by_key = at(server, tmp_path, "answer:{id}", derived_from={"memories": "$id"})
    assert purge(by_key, of) == 1
    by_field = at(
        server, tmp_path, "sum:*", derived_from={"memories": "derived_from"}, separator=","
    )
    assert purge(by_field, of) == 1
    assert sorted(client.keys()) == [b"answer:mem-71", b"sum:2"]


@pytest.mark.parametrize("kind", ["list", "hash", "set", "sorted", "stream"])
def test_large_values_are_read_in_pages(
    server: Server, client: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 2_100
    for module in (_redis_values, _redis_edit):
        monkeypatch.setattr(module, "PAGE", 200)
    pipe = client.pipeline(transaction=False)
    for number in range(many):
        said = SAID if number in (3, 1_050, many - 1) else "nothing"
        text = f"{number} {said}"
        match kind:
            case "list":
                pipe.rpush("v", text)
            case "hash":
                pipe.hset("v", str(number), text)
            case "set":
                pipe.sadd("v", text)
            case "sorted":
                pipe.zadd("v", {text: number})
            case _:
                pipe.xadd("v", {"t": text}, id=f"{number + 1}-1")
    pipe.execute()
    assert purge(at(server, tmp_path, record="element")) == 3
    size = {"list": "LLEN", "hash": "HLEN", "set": "SCARD", "sorted": "ZCARD", "stream": "XLEN"}
    assert client.execute_command(size[kind], "v") == many - 3


def test_a_write_between_the_look_and_the_removal_is_not_lost(
    server: Server, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.rpush("l", "one", SAID, "two")
    client.set("s", SAID)
    by_element = at(server, tmp_path, "l", record="element")
    found, whole = by_element.find(WORDS), at(server, tmp_path, "s")
    whole_found = whole.find(WORDS)
    honest = _redis_values.read
    writes: list[int] = []

    def read(*arguments: Any, **options: Any) -> Any:
        got = list(honest(*arguments, **options))
        if len(writes) < 2:
            writes.append(client.lpush("l", f"meanwhile {len(writes)}"))
            client.set("s", "another answer")
        return iter(got)

    monkeypatch.setattr(_redis_remove, "read", read)
    assert by_element.remove(found.matches) == ()
    assert client.lrange("l", 0, -1) == [b"meanwhile 1", b"meanwhile 0", b"one", b"two"]
    writes.clear()
    client.set("s", SAID)
    left = whole.remove(whole_found.matches)
    assert [item.problem for item in left] == [ProblemCode.CHANGED_UNDERNEATH]
    assert client.get("s") == b"another answer"


def test_a_stream_is_made_again_with_all_that_belongs_to_it(
    server: Server, client: Any, tmp_path: Path
) -> None:
    for number in range(1, 8):
        said = SAID if number in (2, 6) else f"entry {number}"
        client.execute_command("XADD", "st", f"{number}-0", "t", said, "t", "twice")
    client.xgroup_create("st", "g one", id="0")
    client.xgroup_create("st", "idle", id="4-0")
    client.xreadgroup("g one", "ann", {"st": ">"}, count=3)
    client.xreadgroup("g one", "bob", {"st": ">"}, count=2)
    client.xack("st", "g one", "1-0")
    client.xclaim("st", "g one", "bob", 0, ["3-0"])
    client.pexpire("st", 900_000)
    before = client.xinfo_groups("st")
    assert purge(at(server, tmp_path, record="element")) == 2
    after = client.xinfo_groups("st")
    kept = [b"1-0", b"3-0", b"4-0", b"5-0", b"7-0"]
    assert [name for name, _ in client.xrange("st")] == kept
    twice = client.eval("return redis.call('XRANGE', 'st', '1-0', '1-0')[1][2]", 0)
    assert twice == [b"t", b"entry 1", b"t", b"twice"]
    pending = client.xpending_range("st", "g one", "-", "+", 10)
    shown = [(p["message_id"], p["consumer"], p["times_delivered"]) for p in pending]
    assert shown == [(b"3-0", b"bob", 2), (b"4-0", b"bob", 1), (b"5-0", b"bob", 1)]
    for name in ("name", "last-delivered-id", "consumers", "entries-read"):
        assert [g[name] for g in before] == [g[name] for g in after]
    info = client.xinfo_stream("st")
    assert (info["last-generated-id"], info["entries-added"]) == (b"7-0", 7)
    assert info["max-deleted-entry-id"] == b"6-0"
    assert 0 < client.pttl("st") <= 900_000
    assert client.keys() == [b"st"]
    assert SAID.encode() not in client.dump("st")


def test_a_stream_of_which_nothing_stays_keeps_its_groups(
    server: Server, client: Any, tmp_path: Path
) -> None:
    client.xadd("st", {"t": SAID}, id="9-1")
    client.xgroup_create("st", "g", id="9-1")
    assert purge(at(server, tmp_path, record="element")) == 1
    assert client.xlen("st") == 0
    assert client.xinfo_groups("st")[0]["last-delivered-id"] == b"9-1"
    assert client.xadd("st", {"t": "next"}, id="9-*") == b"9-2"
