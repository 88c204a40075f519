"""Sessions of Claude Code: chains, tool calls with their results, signed blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.json_sites import FERN, JsonSite, ids, phrases

TALKING_OF_IT = "A line that begins with RETRACTS: is explained here, and asks for nothing."


def _message(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    role = more.pop("role", "user")
    return {
        "parentUuid": parent,
        "sessionId": "session-east",
        "type": role,
        "uuid": uuid,
        "timestamp": "2026-05-02T09:00:00.000Z",
        "message": {"role": role, "content": content},
        **more,
    }


def _session() -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "cat notes"}}
    output = f"one\n{FERN}\nthree"
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}
    thought = {"type": "thinking", "thinking": f"So {FERN}.", "signature": "c2lnbmVk"}
    return [
        {"type": "summary", "summary": "Plants", "leafUuid": "uuid-ask-again"},
        {
            "type": "file-history-snapshot",
            "messageId": "uuid-ask",
            "snapshot": {"messageId": "uuid-ask", "timestamp": "2026-05-02T09:00:00.000Z"},
        },
        _message("uuid-ask", None, f"Keep in mind: {FERN}."),
        _message(
            "uuid-think", "uuid-ask", [thought, {"type": "text", "text": "Kept."}], role="assistant"
        ),
        _message("uuid-call", "uuid-think", [call], role="assistant"),
        _message(
            "uuid-result",
            "uuid-call",
            [result],
            toolUseResult={"stdout": output, "stderr": ""},
            sourceToolAssistantUUID="uuid-call",
        ),
        _message("uuid-say", "uuid-result", [{"type": "text", "text": "Done."}], role="assistant"),
        _message("uuid-talk", "uuid-say", TALKING_OF_IT),
        _message("uuid-near", "uuid-talk", f"{FERN}work of the mill"),
        _message("uuid-ask-again", "uuid-near", f"Is it so that {FERN}?"),
        {
            "parentUuid": None,
            "logicalParentUuid": "uuid-ask-again",
            "type": "system",
            "uuid": "uuid-boundary",
            "content": "Conversation compacted",
        },
        _message(
            "uuid-compact",
            "uuid-boundary",
            f"Summary:\n1. {FERN}.\n2. Rain.",
            isCompactSummary=True,
        ),
        _message(
            "uuid-last", "uuid-compact", [{"type": "text", "text": "a\u2028b"}], role="assistant"
        ),
        {"type": "queue-operation", "operation": "enqueue", "content": f"ask whether {FERN}"},
    ]


TORN = '{"parentUuid":"uuid-last","type":"user","message":{"role":"user","content":"half a li'


def _dumped(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(it, ensure_ascii=at % 2 == 0) + "\n" for at, it in enumerate(records))


@pytest.fixture
def site(tmp_path: Path) -> JsonSite:
    site = JsonSite(tmp_path, "claude-code")
    site.write("-home-orla/east.jsonl", _dumped(_session()))
    # Resumed in another file: the same records again, then a line that is being written.
    resumed = [{**it, "sessionId": "session-west"} for it in _session()[:6]]
    site.write("-home-orla/west.jsonl", _dumped(resumed) + TORN)
    agent = [_message("uuid-agent", None, f"Context: {FERN}.", isSidechain=True)]
    site.write("-home-orla/east/subagents/agent-1.jsonl", _dumped(agent))
    site.write(
        "history.jsonl",
        _dumped(
            [
                {"display": f"Keep in mind: {FERN}.", "pastedContents": {}, "timestamp": 1},
                {"display": "[Pasted text #1]", "pastedContents": {"1": {"content": FERN}}},
                {"display": "What is the tide?", "pastedContents": {}, "timestamp": 2},
            ]
        ),
    )
    return site


def _uuids(lines: list[Any]) -> list[str]:
    return [line["uuid"] for line in lines if "uuid" in line]


def _records(site: JsonSite, name: str) -> list[Any]:
    text = (site.folder / name).read_text("utf-8").removesuffix(TORN)
    return [json.loads(line) for line in text.split("\n") if line]


def test_all_forms_go_and_the_rest_stays_in_the_chain(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    east = _records(site, "-home-orla/east.jsonl")
    assert _uuids(east) == [
        "uuid-think",
        "uuid-say",
        "uuid-talk",
        "uuid-near",
        "uuid-boundary",
        "uuid-last",
    ]
    by_uuid = {line["uuid"]: line for line in east if "uuid" in line}
    assert {name: line["parentUuid"] for name, line in by_uuid.items()} == {
        "uuid-think": None,
        "uuid-say": "uuid-think",
        "uuid-talk": "uuid-say",
        "uuid-near": "uuid-talk",
        "uuid-boundary": None,
        "uuid-last": "uuid-boundary",
    }
    assert by_uuid["uuid-boundary"]["logicalParentUuid"] == "uuid-near"
    assert [line["leafUuid"] for line in east if "leafUuid" in line] == ["uuid-near"]


def test_a_signed_block_goes_whole_and_its_record_stays(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    (kept,) = (
        it for it in _records(site, "-home-orla/east.jsonl") if it.get("uuid") == "uuid-think"
    )
    assert kept["message"]["content"] == [{"type": "text", "text": "Kept."}]


def test_no_call_stays_without_its_result(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    left = (site.folder / "-home-orla/east.jsonl").read_text("utf-8")
    assert "toolu_1" not in left
    assert "uuid-call" not in left


def test_no_result_stays_without_its_call(site: JsonSite) -> None:
    site.purge(ids("uuid-call"))
    for name in ("east", "west"):
        left = (site.folder / f"-home-orla/{name}.jsonl").read_text("utf-8")
        assert "toolu_1" not in left
        assert "uuid-result" not in left
    (say,) = (it for it in _records(site, "-home-orla/east.jsonl") if it.get("uuid") == "uuid-say")
    assert say["parentUuid"] == "uuid-think"


def test_a_dry_run_counts_what_goes_along(site: JsonSite) -> None:
    matches, _ = site.find(ids("uuid-call"))
    (match,) = matches
    assert match.pieces == 4  # the call and its result, in two files
    before = sum(len(_records(site, f"-home-orla/{name}.jsonl")) for name in ("east", "west"))
    assert site.remove(matches) == []
    after = sum(len(_records(site, f"-home-orla/{name}.jsonl")) for name in ("east", "west"))
    assert before - after == match.pieces


def test_the_copies_of_a_resumed_session_go_together(site: JsonSite) -> None:
    matches, _ = site.find(phrases(FERN))
    (asked,) = (match for match in matches if match.id == "uuid-ask")
    assert asked.pieces == 4  # two copies, and the state of the files before each of them


def test_a_torn_line_stays_byte_for_byte(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    assert (site.folder / "-home-orla/west.jsonl").read_text("utf-8").endswith("\n" + TORN)


def test_untouched_lines_keep_their_bytes(site: JsonSite) -> None:
    path = site.folder / "-home-orla/east.jsonl"
    before = path.read_bytes().split(b"\n")
    site.purge(phrases(FERN))
    after = path.read_bytes().split(b"\n")
    same = [line for line in before if b"uuid-talk" in line or b"uuid-near" in line]
    assert same[0] in after  # its own links did not change
    assert b"a\xe2\x80\xa8b" in b"\n".join(after) or rb"a\u2028b" in b"\n".join(after)


def test_the_prompt_history_is_searched_in_pasted_texts_too(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    assert [it["display"] for it in site.lines("history.jsonl")] == ["What is the tide?"]


def test_links_that_led_nowhere_before_are_left_and_told(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, "claude-code")
    lost = _message("uuid-lost", "uuid-never-there", "An old end of a chain.")
    site.write("a.jsonl", _dumped([lost, _message("uuid-new", "uuid-lost", FERN)]))
    assert any(
        "lead to no record" in statement.sentence and "1 message.parentUuid" in statement.sentence
        for statement in site.check()
    )
    site.purge(phrases(FERN))
    assert _records(site, "a.jsonl") == [lost]
