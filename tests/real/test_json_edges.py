"""Files as they really are, and descriptions that ask for something rare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from purge.adapter import Action
from purge.targets import Target, TargetKind, Targets
from tests.real.json_sites import CHAIN, FERN, NOTE, JsonSite, in_a_list, phrases

# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{"notes":[{"id":"a","text":"%"},{"id":"b","text":"x"}]}',
            '{"notes":[{"id":"b","text":"x"}]}',
        ),
        (
            '{"notes" : [ {"id":"b","n":1.50e+1} , {"id":"a","text":"%"} ] }\r\n',
            '{"notes" : [ {"id":"b","n":1.50e+1} ] }\r\n',
        ),
        (
            '[\n\t{"id": "b", "text": "\\u00e9\\/"},\n\t{"id": "a", "text": "%"},\n\t7\n]',
            '[\n\t{"id": "b", "text": "\\u00e9\\/"},\n\t7\n]',
        ),
        (
            '\ufeff{"notes": [{"id": "a", "text": "%"}], "z": null}',
            '\ufeff{"notes": [], "z": null}',
        ),
    ],
)
def test_everything_else_stays_as_it_is_written(tmp_path: Path, before: str, after: str) -> None:
    records = [{**NOTE, "at": at} for at in ("notes[]", "[]")]
    site = JsonSite(tmp_path, {"records": records})
    path = site.write("a.json", before.replace("%", FERN))
    site.purge(phrases(FERN))
    assert path.read_bytes() == after.encode()


def test_bytes_that_are_no_utf_8_stay(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list())
    kept = b'{"id": "b", "text": "caf\xe9 \xff"}'
    path = site.write(
        "a.json", b'{"notes": [{"id": "a", "text": "' + FERN.encode() + b'"}, ' + kept + b"]}"
    )
    site.purge(phrases(FERN))
    assert path.read_bytes() == b'{"notes": [' + kept + b"]}"


def test_a_raw_line_separator_in_a_string_is_no_line_break(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, CHAIN)
    lines = [{"id": "a", "text": f"x\u2028{FERN}"}, {"id": "b", "after": "a", "text": "\u2029"}]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\r\n" for line in lines)
    path = site.write("a.jsonl", text)
    site.purge(phrases(FERN))
    assert path.read_text("utf-8") == '{"id": "b", "after": null, "text": "\u2029"}\r\n'.replace(
        "\r", ""
    )
    assert path.read_bytes().endswith(b"}\r\n")


def test_utf_16_is_searched_and_left(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list())
    value = {"notes": [{"id": "a", "text": FERN}]}
    path = site.write("a.json", json.dumps(value).encode("utf-16"))
    before = path.read_bytes()
    matches, _ = site.find(phrases(FERN))
    (left,) = site.remove(matches)
    assert (left.problem, path.read_bytes()) == ("unsupported", before)


def test_a_torn_line_that_holds_the_words_goes_as_a_line(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, CHAIN)
    path = site.write("a.jsonl", '{"id": "b", "text": "x"}\n{"id": "c", "text": "and ' + FERN)
    site.purge(phrases(FERN))
    assert path.read_bytes() == b'{"id": "b", "text": "x"}\n'


@pytest.mark.parametrize("cut", [1, 25])
def test_a_torn_document_is_searched_and_left(tmp_path: Path, cut: int) -> None:
    site = JsonSite(tmp_path, in_a_list())
    whole = json.dumps({"notes": [{"id": "a", "text": FERN}, {"id": "b", "text": "xxxxxx"}]})
    path = site.write("a.json", whole[:-cut])
    matches, gaps = site.find(phrases(FERN))
    assert matches == []
    assert {gap.problem for gap in gaps} == {"corrupt", "unsupported"}
    assert path.read_text() == whole[:-cut]


def test_a_name_that_stands_twice_is_left_and_told(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list(parts=[{"at": "tags[]", "last": "keep"}]))
    text = '{"notes": [{"id": "a", "tags": ["%"], "tags": ["x", "%"]}]}'.replace("%", FERN)
    path = site.write("a.json", text)
    matches, _ = site.find(phrases(FERN))
    left = site.remove(matches)
    assert {item.problem for item in left} == {"unsupported"}
    assert path.read_text() == text


# --- which record is which ------------------------------------------------------------------------


def test_ids_that_begin_anew_in_every_file_are_different_records(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list())
    site.write("a.json", {"notes": [{"id": 1, "text": FERN}, {"id": 2, "text": "x"}]})
    other = site.write("b.json", {"notes": [{"id": 1, "text": "y"}]})
    before = other.read_bytes()
    site.purge(phrases(FERN))
    assert site.load("a.json") == {"notes": [{"id": 2, "text": "x"}]}
    assert other.read_bytes() == before


def test_places_of_one_declared_id_go_together(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list(unique="site"))
    site.write("a.json", {"notes": [{"id": "n", "text": FERN}]})
    site.write("b.json", {"notes": [{"id": "n", "vector": [1, 2]}, {"id": "m"}]})
    (match,) = site.purge(phrases(FERN))
    assert match.pieces == 2
    assert site.load("b.json") == {"notes": [{"id": "m"}]}


def test_another_scope_is_never_touched(tmp_path: Path) -> None:
    parts = [{"at": "tags[]", "last": "keep"}]
    site = JsonSite(tmp_path, in_a_list(parts=parts), more={"scope": {"project": "project"}})
    south = {"id": "n", "project": "south", "tags": [FERN]}
    site.write("a.json", {"notes": [{**south, "project": "north"}, south]})
    target = Target(0, TargetKind.PHRASE, FERN, scope={"project": "north"})
    site.purge(Targets([target]))
    assert site.load("a.json") == {"notes": [{**south, "project": "north", "tags": []}, south]}


def test_a_scope_can_stand_around_the_records(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list(), more={"scope": {"project": "project"}})
    for name in ("north", "south"):
        site.write(f"{name}.json", {"project": name, "notes": [{"id": name, "text": FERN}]})
    target = Target(0, TargetKind.PHRASE, FERN, scope={"project": "north"})
    site.purge(Targets([target]))
    assert site.load("north.json")["notes"] == []
    assert site.load("south.json")["notes"] == [{"id": "south", "text": FERN}]


def test_a_file_that_is_one_record_is_deleted(tmp_path: Path) -> None:
    description = {
        "files": [
            {
                "path": "messages/*.json",
                "records": [
                    {
                        "name": "message",
                        "id": "$file",
                        "links": [{"field": "reply_to", "to": "message", "when_gone": "relink"}],
                        "unique": "site",
                    }
                ],
            },
        ]
    }
    site = JsonSite(tmp_path, description)
    site.write("messages/m1.json", {"text": "x"})
    gone = site.write("messages/m2.json", {"text": FERN, "reply_to": "m1"})
    site.write("messages/m3.json", {"text": "y", "reply_to": "m2"})
    site.purge(phrases(FERN))
    assert not gone.exists()
    assert site.load("messages/m3.json") == {"text": "y", "reply_to": "m1"}


# --- what is declared -----------------------------------------------------------------------------


def test_parts_in_any_depth_and_replies_below_each_other(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, {"records": [{**NOTE, "at": "**.replies[]"}]})
    site.write(
        "a.json",
        {
            "replies": [
                {"id": "a", "text": "x", "replies": [{"id": "b", "text": FERN, "replies": []}]}
            ]
        },
    )
    site.purge(phrases(FERN))
    assert site.load("a.json") == {"replies": [{"id": "a", "text": "x", "replies": []}]}


def test_what_lies_in_a_record_that_goes_is_counted_with_it(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, {"records": [{**NOTE, "at": "**.replies[]"}]})
    inner = [{"id": "b", "text": "y", "replies": [{"id": "c", "text": "z"}]}]
    site.write("a.json", {"replies": [{"id": "a", "text": FERN, "replies": inner}]})
    (match,) = site.purge(phrases(FERN))
    assert match.pieces == 3


def test_calls_and_results_that_are_records_of_their_own(tmp_path: Path) -> None:
    record = {
        "at": "messages[]",
        "text": ["content"],
        "pair": ["tool_call_id"],
        "parts": [{"at": "tool_calls[]", "pair": ["id"]}],
    }
    site = JsonSite(tmp_path, {"records": [record]})
    calls = [{"id": f"call-{n}", "function": {"arguments": "{}"}} for n in (1, 2)]
    site.write(
        "a.json",
        {
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": "call-1", "content": FERN},
                {"role": "tool", "tool_call_id": "call-2", "content": "x"},
            ]
        },
    )
    site.purge(phrases(FERN))
    left = site.load("a.json")["messages"]
    assert [message["role"] for message in left] == ["assistant", "tool"]
    assert [call["id"] for call in left[0]["tool_calls"]] == ["call-2"]


def test_a_record_with_other_text_outlives_its_parts(tmp_path: Path) -> None:
    record = {"at": "messages[]", "text": ["content"], "parts": ["attachments[]"]}
    site = JsonSite(tmp_path, {"records": [record]})
    site.write("a.json", {"messages": [{"content": "x", "attachments": [FERN]}]})
    site.purge(phrases(FERN))
    assert site.load("a.json") == {"messages": [{"content": "x", "attachments": []}]}


def test_a_number_that_was_wrong_before_is_left(tmp_path: Path) -> None:
    description = in_a_list()
    description["files"][0]["counts"] = [{"field": "count", "of": "notes[]"}]
    site = JsonSite(tmp_path, description)
    notes = [{"id": "a", "text": FERN}, {"id": "b"}]
    site.write("right.json", {"count": 2, "notes": notes})
    site.write("wrong.json", {"count": 7, "notes": notes})
    site.purge(phrases(FERN))
    assert [site.load(f"{name}.json")["count"] for name in ("right", "wrong")] == [1, 7]


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, CHAIN)
    lines = [
        {"id": "a", "after": "c", "text": "x"},
        {"id": "b", "after": "a", "text": FERN},
        {"id": "c", "after": "b", "text": FERN},
    ]
    site.write("a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    site.purge(phrases(FERN))
    assert site.lines("a.jsonl") == [{"id": "a", "after": None, "text": "x"}]


def test_blanking_keeps_records_and_links_and_drops_what_is_signed(tmp_path: Path) -> None:
    record = {
        **CHAIN["records"][0],
        "text": ["text", "blocks"],
        "parts": [{"at": "blocks[]", "where": {"signature": "*"}, "signed": True}, "blocks[]"],
    }
    site = JsonSite(tmp_path, {"records": [record]}, action=Action.BLANK)
    blocks = [{"words": FERN, "signature": "s"}, {"words": "y"}]
    lines = [{"id": "a", "text": FERN, "blocks": blocks}, {"id": "b", "after": "a", "text": "x"}]
    site.write("a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    matches, _ = site.find(phrases(FERN))
    assert site.remove(matches) == []
    assert site.lines("a.jsonl") == [
        {"id": "a", "text": "", "blocks": [{"words": ""}]},
        {"id": "b", "after": "a", "text": "x"},
    ]
    assert site.find(phrases(FERN)) == ([], [])
