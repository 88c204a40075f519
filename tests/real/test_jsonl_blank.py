"""``action: blank`` empties the words of a record and leaves its id, its links and its form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from purge.adapter import Action, ProblemCode, Readability
from purge.targets import TargetKind, Targets
from purge.testing.case import Purged, ids, phrase, target
from tests.support.jsonl_logs import TEXT, Logs, as_line, said


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(
        tmp_path,
        text=["message.content"],
        subject="user",
        derived_from={"source": "message.content.from"},
    )


def blank(logs: Logs, targets: Targets) -> Purged:
    purged = logs.case(Action.BLANK).purge(targets)
    again = logs.case(Action.BLANK)
    before = again.snapshot()
    again.remove(purged.found.matches)
    assert {name: it.content for name, it in again.now().items()} == {
        name: it.content for name, it in before.items()
    }
    return purged


def test_only_the_words_go_and_the_rest_is_as_it_was_written(logs: Logs) -> None:
    line = (
        '{ "id":"x" ,\t"user":"tilda","n":1.50, "title":"Say \\u0074he crab pot licence{}\\"",'
        '"message" : {"role":"user","content":"What é \\u00e9 it says"}, "n":1e2}\r\n'
    ).encode()
    logs.write(said("before", "a"), line, said("behind", "b"))
    assert blank(logs, phrase(TEXT)).left == ()
    expected = (
        b'{ "id":"x" ,\t"user":"tilda","n":1.50, "title":"",'
        b'"message" : {"role":"user","content":""}, "n":1e2}\r\n'
    )
    assert logs.bytes_of() == as_line(said("before", "a")) + expected + as_line(said("behind", "b"))


def test_every_string_that_holds_the_words_is_emptied(logs: Logs) -> None:
    record = {
        "id": "x",
        "message": {"content": TEXT},
        "tool": {"out": [f"1 {TEXT}", "other words", {"in": json.dumps({"a": TEXT})}]},
    }
    logs.write(record)
    blank(logs, phrase(TEXT))
    assert json.loads(logs.bytes_of()) == {
        "id": "x",
        "message": {"content": ""},
        "tool": {"out": ["", "other words", {"in": ""}]},
    }


def test_a_record_found_by_its_id_loses_the_text_fields(logs: Logs) -> None:
    logs.write(
        {
            "id": "x",
            "message": {
                "role": "user",
                "content": [
                    {"type": "text", "text": "words", "from": "log-1"},
                    {"type": "Something Said", "n": 3, "more": {"role": "tool_use", "in": ["a"]}},
                ],
            },
            "other": "stays",
        }
    )
    purged = blank(logs, ids("x"))
    assert json.loads(logs.bytes_of()) == {
        "id": "x",
        "message": {
            "role": "user",
            "content": [
                {"type": "text", "text": "", "from": "log-1"},
                {"type": "", "n": 3, "more": {"role": "tool_use", "in": [""]}},
            ],
        },
        "other": "stays",
    }
    assert [match.readability for match in purged.read_back.matches] == [Readability.BLANKED]


def test_a_blanked_record_is_found_by_its_links_as_blanked_and_not_by_its_words(logs: Logs) -> None:
    logs.write({"id": "x", "user": "tilda", "message": {"content": {"from": "log-1", "t": TEXT}}})
    assert blank(logs, phrase(TEXT)).read_back.matches == ()
    for kind, value, site in (
        (TargetKind.ID, "x", None),
        (TargetKind.SUBJECT, "tilda", None),
        (TargetKind.LINEAGE, "log-1", "source"),
    ):
        found = logs.case(Action.BLANK).find(Targets([target(kind, value, site=site)]))
        assert [match.readability for match in found.matches] == [Readability.BLANKED]
    looked = logs.case(Action.BLANK).residue(ids("x"))
    assert looked.residue == ()
    assert all(control.passed for control in looked.controls)


def test_what_a_blanked_record_still_says_elsewhere_is_residue(logs: Logs) -> None:
    words = "What only this record says of the harbour."
    logs.write({"id": "x", "message": {"content": words}, "copy": words})
    purged = blank(logs, ids("x"))
    assert [item.where for item in purged.after.undated] == ["logs/a.jsonl, line 1"]


def test_a_key_with_the_words_is_emptied(logs: Logs) -> None:
    logs.write({"id": "x", "message": {"content": "a"}, "seen": {TEXT: {"other": 1}}})
    assert blank(logs, phrase(TEXT)).read_back.matches == ()
    assert json.loads(logs.bytes_of())["seen"] == {"": {"other": 1}}


def test_a_number_with_the_digits_is_emptied(logs: Logs) -> None:
    logs.write({"id": "x", "message": {"content": "a"}, "call": 55501234})
    assert blank(logs, phrase("55501234")).read_back.matches == ()
    assert json.loads(logs.bytes_of())["call"] == ""


def test_every_line_of_a_record_is_blanked(logs: Logs) -> None:
    logs.write({"id": "x", "message": {"content": TEXT}}, {"id": "x", "message": {"content": "b"}})
    blank(logs, phrase(TEXT))
    assert logs.bytes_of() == as_line({"id": "x", "message": {"content": ""}}) * 2


def test_words_in_an_id_or_a_link_are_left_and_said(logs: Logs) -> None:
    written = logs.write({"id": "x", "user": TEXT, "message": {"content": "a"}})
    purged = blank(logs, phrase(TEXT))
    assert [item.problem for item in purged.left] == [ProblemCode.UNSUPPORTED]
    assert purged.read_back.ids == ("x",)
    assert logs.bytes_of() == written[0]


def test_a_record_without_any_text_field_is_left_and_said(logs: Logs) -> None:
    written = logs.write({"id": "x", "summary": "Something."})
    purged = blank(logs, ids("x"))
    assert [item.problem for item in purged.left] == [ProblemCode.UNSUPPORTED]
    assert purged.read_back.matches[0].readability is Readability.READABLE
    assert logs.bytes_of() == written[0]


def test_a_line_that_is_no_json_is_left_and_said(logs: Logs) -> None:
    written = logs.write(said("a", "b"), f'{{"id":"x","text":"{TEXT}'.encode())
    purged = blank(logs, phrase(TEXT))
    assert [item.problem for item in purged.left] == [ProblemCode.UNSUPPORTED]
    assert purged.read_back.ids == ("x",)
    assert logs.bytes_of() == b"".join(written)


def test_bytes_that_are_no_utf_8_stay_where_they_are(logs: Logs) -> None:
    logs.write(b'{"id":"x","z":"\xff\xe9","message":{"content":"the crab pot licence \xe9"}}\n')
    assert blank(logs, phrase(TEXT)).left == ()
    assert logs.bytes_of() == b'{"id":"x","z":"\xff\xe9","message":{"content":""}}\n'


def test_a_last_line_without_a_break_is_blanked_in_its_place(logs: Logs) -> None:
    logs.write(said("a", "b"), as_line({"id": "x", "message": {"content": TEXT}})[:-1])
    assert blank(logs, phrase(TEXT)).left == ()
    last = as_line({"id": "x", "message": {"content": ""}})[:-1]
    assert logs.bytes_of() == as_line(said("a", "b")) + last
