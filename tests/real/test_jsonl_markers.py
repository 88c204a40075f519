"""Markers in logs: which are yielded, and that striking one changes nothing else."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from purge.adapter import Examined, Marker, NotAMarker, NotChecked, ProblemCode
from purge.errors import EmptySelector, Permanent
from purge.matching import read_markers, strike
from purge.testing.breakages import held_open
from purge.testing.case import phrase
from purge.testing.snapshots import differences
from tests.support.jsonl_logs import TEXT, Logs, as_line, said

MARKED = f"Please note:\nRETRACTS: {TEXT}\nThanks."


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path, scope={"project": "cwd"}, time="at")


def read(logs: Logs, where: Mapping[str, str] | None = None) -> list[object]:
    with logs.case().open() as adapter:
        return list(adapter.markers(where or {}))


def markers(logs: Logs, where: Mapping[str, str] | None = None) -> list[Marker]:
    return [item for item in read(logs, where) if isinstance(item, Marker)]


def ignored(logs: Logs, where: Mapping[str, str] | None = None) -> list[str]:
    return [item.why for item in read(logs, where) if isinstance(item, NotAMarker)]


def strike_all(logs: Logs, found: list[Marker], word: str = "01JREQUEST") -> list[NotChecked]:
    with logs.case().open() as adapter:
        return list(adapter.strike([(marker, word) for marker in found]))


def test_a_marker_is_yielded_with_its_record(logs: Logs) -> None:
    logs.write(said("x", "Hello."), said("m", MARKED, cwd="north", at="2026-05-01T12:00:00Z"))
    (marker,) = markers(logs)
    (match,) = logs.case().find(phrase("Please note")).matches
    assert (marker.record, marker.part) == (match.id, match.part) == ("m", match.part)
    assert match.carries_marker
    assert marker.phrase == TEXT
    assert marker.scope == match.scope == {"project": "north"}
    assert marker.created == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert marker.where == "logs/a.jsonl, line 2"
    assert json.loads(json.dumps(marker.handle)) == marker.handle
    assert TEXT not in repr(marker)
    assert any(isinstance(item, Examined) and item.files == 1 for item in read(logs))


def test_the_marker_is_not_what_it_names(logs: Logs) -> None:
    logs.write(said("m", MARKED), said("x", f"Renew {TEXT}."))
    assert logs.case().find(phrase(TEXT)).ids == ("x",)


def test_a_record_without_a_time_is_as_old_as_its_file(logs: Logs) -> None:
    logs.write(said("m", MARKED))
    os.utime(logs.path(), (1_700_000_000, 1_700_000_000))
    assert markers(logs)[0].created == datetime.fromtimestamp(1_700_000_000, UTC)


def test_every_string_is_read_whatever_its_field(logs: Logs) -> None:
    logs.write(
        {"id": "a", "message": {"content": [{"type": "text", "text": "RETRACTS: one"}]}},
        {"id": "b", "deep": [[{"x": "RETRACTS: two\nRETRACTS: three"}]]},
        b'{"id": "c", "text": "\\u0052ETRACTS: four"}\n',
        b'{"id": "d", "text": "a\\r\\nRETRACTS:\\u0020five\\u2028six\\r\\n"}\n',
    )
    found = [(marker.record, marker.phrase) for marker in markers(logs)]
    assert found == [
        ("a", "one"),
        ("b", "two"),
        ("b", "three"),
        ("c", "four"),
        ("d", "five\u2028six"),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (said("m", "```\nRETRACTS: a\n```"), "it stands in a code fence"),
        (said("m", "<!--\nRETRACTS: a\n-->"), "it stands in an HTML comment"),
        (said("m", "> RETRACTS: a"), "it stands in a quote"),
        (said("m", "retracts: a"), "it is not written in capital letters"),
        (said("m", "RETRACTS\uff1a a"), "its colon is another character"),
        (said("m", "", x={"RETRACTS: a": 1}), "it stands in the name of a field"),
        (said("m", json.dumps({"t": "RETRACTS: a"})), "it stands in a text within the text"),
        (b'{"id": "m", "text": "RETRACTS: a", "text": "b"}\n', "its field stands twice"),
        (b'{"id": "m", "text": "RETRACTS: a"\n', "its line is not valid JSON"),
        (b"RETRACTS: a\n", "its line is not valid JSON"),
        ([said("m", "RETRACTS: a"), said("n", "b")], "its line holds several records"),
    ],
)
def test_what_does_not_count_is_named_with_the_reason(logs: Logs, line: object, why: str) -> None:
    logs.write(line)
    assert markers(logs) == []
    assert [each[: len(why)] for each in ignored(logs)][:1] == [why]


def test_text_that_only_speaks_of_markers_is_nothing(logs: Logs) -> None:
    logs.write(said("m", "We write RETRACTS: to take a lesson back."))
    assert markers(logs) == []
    assert ignored(logs) == []


def test_only_records_with_the_value_that_is_asked_for_count(logs: Logs) -> None:
    def message(name: str, **more: object) -> dict[str, object]:
        return {"id": name, "message": {"content": "RETRACTS: a", **more}}

    logs.write(
        message("user", role="user"),
        message("tool", role="tool"),
        message("none"),
        message("both", role=["user", "tool"]),
        message("nested", role={"name": "user", "as": "tool"}),
        message("odd", role={}),
        b'{"id": "twice", "message": {"role": "tool", "role": "user", "content": "RETRACTS: a"}}\n',
    )
    assert [marker.record for marker in markers(logs, {"message.role": "user"})] == ["user"]
    why = "its record does not have the value of 'message.role' that counts"
    assert ignored(logs, {"message.role": "user"}) == [why] * 6
    assert markers(logs, {"message.role": "user", "id": "other"}) == []


def test_looking_for_markers_changes_nothing(logs: Logs) -> None:
    logs.write(said("m", MARKED), b"\xff RETRACTS: x\n")
    case = logs.case()
    before = case.snapshot()
    found = read(logs)
    assert differences(before, case.now()) == []
    (gap,) = [item for item in found if isinstance(item, NotChecked)]
    assert gap.problem is ProblemCode.CORRUPT


# --- striking ------------------------------------------------------------------------------------

ODD = (
    b'{"id":"m",  "z": 1e3,"text" : "caf\\u00e9 \\/ caf\xc3\xa9 \\ud83d\\ude00\\r\\nRETRACTS: '
    b'the \\u0063rab\\tpot \\r\\n\\u2028\\"end\\"\\nRETRACTS:two", '
    b'"text2":"RETRACTS: \xf0\x9f\x98\x80"}'
)


def test_striking_edits_the_line_of_the_string_and_no_other_byte(logs: Logs) -> None:
    lines = [as_line(said("a", MARKED)), ODD + b"\r\n", as_line(said("b", "kept")), ODD]
    logs.write(*lines)
    found = markers(logs)
    assert [marker.record for marker in found] == ["a", "m", "m", "m", "m", "m", "m"]
    assert strike_all(logs, [found[1]]) == []
    first = ODD.replace(b"RETRACTS: the \\u0063rab\\tpot ", b"STRUCK: 01JREQUEST", 1)
    assert logs.bytes_of() == b"".join([lines[0], first + b"\r\n", lines[2], ODD])
    again = markers(logs)
    assert len(again) == 6
    assert strike_all(logs, again) == []
    assert markers(logs) == []
    done = first.replace(b"RETRACTS:two", b"STRUCK: 01JREQUEST")
    done = done.replace(b"RETRACTS: \xf0\x9f\x98\x80", b"STRUCK: 01JREQUEST")
    note = as_line(said("a", MARKED.replace(f"RETRACTS: {TEXT}", "STRUCK: 01JREQUEST")))
    assert logs.bytes_of() == b"".join([note, done + b"\r\n", lines[2], done])


def test_a_struck_line_is_no_text_of_what_was_named(logs: Logs) -> None:
    logs.write(said("m", MARKED))
    assert strike_all(logs, markers(logs)) == []
    assert TEXT.encode() not in logs.bytes_of()
    assert json.loads(logs.bytes_of())["text"] == "Please note:\nSTRUCK: 01JREQUEST\nThanks."


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_markers_in_compressed_logs_are_struck(logs: Logs, ending: str) -> None:
    name = f"logs/a.jsonl.{ending}"
    data = as_line(said("a", "kept")) + as_line(said("m", MARKED))
    pack = gzip.compress if ending == "gz" else zstandard.ZstdCompressor().compress
    logs.write_bytes(pack(data), name)
    assert strike_all(logs, markers(logs)) == []
    packed = logs.bytes_of(name)
    plain = (
        gzip.decompress(packed)
        if ending == "gz"
        else zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    )
    assert plain == data.replace(f"RETRACTS: {TEXT}".encode(), b"STRUCK: 01JREQUEST")


def test_a_record_that_changed_is_left_and_named(logs: Logs) -> None:
    logs.write(said("m", MARKED), said("n", MARKED))
    found = markers(logs)
    logs.write(said("m", MARKED + " And more."), said("n", MARKED))
    (left,) = strike_all(logs, found)
    assert left.problem is ProblemCode.CHANGED_UNDERNEATH
    assert left.where == "logs/a.jsonl, line 1"
    assert [marker.record for marker in markers(logs)] == ["m"]


def test_a_record_that_only_moved_is_struck(logs: Logs) -> None:
    logs.write(said("m", MARKED))
    found = markers(logs)
    logs.write(said("x", "before"), said("m", MARKED), said("y", "behind"))
    assert strike_all(logs, found) == []
    assert markers(logs) == []
    lines = logs.bytes_of().splitlines(keepends=True)
    assert (lines[0], lines[2]) == (as_line(said("x", "before")), as_line(said("y", "behind")))


def test_a_handle_is_not_trusted(logs: Logs) -> None:
    logs.write(said("m", MARKED))
    (marker,) = markers(logs)
    before = logs.bytes_of()
    for wrong in ({"line": 1}, {"line": 99}, {"path": ["id"]}, {"path": ["none"]}, {"digest": "0"}):
        (left,) = strike_all(logs, [replace(marker, handle={**marker.handle, **wrong})])
        assert left.problem is ProblemCode.CHANGED_UNDERNEATH
    (left,) = strike_all(logs, [replace(marker, phrase="something else")])
    assert left.problem is ProblemCode.CHANGED_UNDERNEATH
    (left,) = strike_all(logs, [replace(marker, handle={**marker.handle, "file": "logs/no.jsonl"})])
    assert left.problem is ProblemCode.UNREACHABLE
    with pytest.raises(Permanent):
        strike_all(logs, [replace(marker, handle={})])
    with pytest.raises(EmptySelector):
        strike_all(logs, [])
    assert logs.bytes_of() == before


def test_what_has_another_name_is_left(logs: Logs) -> None:
    logs.write(said("m", MARKED))
    found = markers(logs)
    before = logs.bytes_of()
    os.link(logs.path(), logs.path("elsewhere"))
    (left,) = strike_all(logs, found)
    assert left.problem is ProblemCode.UNSUPPORTED
    assert logs.bytes_of() == before


def test_a_file_that_is_being_written_is_left(logs: Logs) -> None:
    logs.write(said("m", MARKED))
    found = markers(logs)
    before = logs.bytes_of()
    with held_open([logs.path()]):
        (left,) = strike_all(logs, found)
    assert left.problem is ProblemCode.HELD_OPEN
    assert logs.bytes_of() == before


def test_a_record_with_bytes_that_are_no_text_is_left(logs: Logs) -> None:
    logs.write(b'{"id": "m", "text": "caf\xe9\\nRETRACTS: a"}\n')
    (left,) = strike_all(logs, markers(logs))
    assert left.problem is ProblemCode.UNSUPPORTED


LETTERS = st.text(alphabet='RETACS: \n\r"\\/\u00e9\u2028\U0001f980\ud83d<', max_size=12)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=LETTERS,
    behind=LETTERS,
    escaped=st.booleans(),
    crlf=st.booleans(),
)
def test_the_string_reads_as_it_did_but_for_the_line(
    tmp_path_factory: pytest.TempPathFactory,
    before: str,
    behind: str,
    escaped: bool,
    crlf: bool,
) -> None:
    if not escaped:
        before, behind = (each.replace("\ud83d", "") for each in (before, behind))
    end = "\r\n" if crlf else "\n"
    text = f"{before}{end}RETRACTS: a b{end}{behind}"
    logs = Logs(tmp_path_factory.mktemp("logs"))
    line = json.dumps(said("m", text, other="RETRACTED"), ensure_ascii=escaped).encode() + b"\n"
    logs.write(line)
    found = markers(logs)
    numbers = [marker.number for marker in read_markers(text) if marker.counts]
    assert [marker.handle["line"] for marker in found] == numbers
    if found:
        assert strike_all(logs, found) == []
        struck = strike(text, dict.fromkeys(numbers, "01JREQUEST"))
        assert json.loads(logs.bytes_of()) == said("m", struck, other="RETRACTED")
        assert markers(logs) == []
