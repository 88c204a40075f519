"""What stands in several places, what lies around the records, and what stops a removal."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, Residue
from purge.errors import EmptySelector
from purge_adapters.json import JsonSettings
from tests.real.json_sites import CHAIN, FERN, NOTE, JsonSite, ids, in_a_list, phrases

# --- around ---------------------------------------------------------------------------------------


def test_a_file_of_no_declared_kind_with_the_words_is_told(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list())
    site.write("a.json", {"notes": []})
    site.write("other.txt", f"x {FERN.replace(' ', '  ')} y")
    _, gaps = site.find(phrases(FERN))
    assert [(gap.where, gap.problem) for gap in gaps] == [("other.txt", "unsupported")]


def test_a_string_with_declared_json_that_holds_none_is_told(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, {"records": [{**NOTE, "at": "store.$json.notes[]"}]})
    site.write("a.json", {"store": '{"notes": [{"id": "a", "te'})
    _, gaps = site.find(ids("a"))
    assert [gap.problem for gap in gaps] == ["corrupt"]


def test_copies_beside_the_file_are_looked_into(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list(parts=["tags[]"]))
    value = {"notes": [{"id": "a", "tags": [FERN, "x"]}]}
    site.write("a.json", value)
    site.write("a.json.bak", json.dumps(value, ensure_ascii=True))
    matches, _ = site.find(phrases(FERN))
    assert site.remove(matches) == []
    seen = site.look_again(phrases(FERN), matches)
    assert [item.where for item in seen if isinstance(item, Residue)] == ["a.json.bak"]


def test_more_that_hangs_on_a_record_than_was_shown_stops_its_removal(tmp_path: Path) -> None:
    link = {"field": "of", "to": "note", "when_gone": "remove"}
    description = {
        "files": [
            {"path": "notes.jsonl", "records": [{**NOTE, "unique": "site"}]},
            {"path": "marks.jsonl", "records": [{"name": "mark", "links": [link]}]},
        ]
    }
    site = JsonSite(tmp_path, description)
    site.write("notes.jsonl", json.dumps({"id": "n", "text": FERN}) + "\n")
    site.write("marks.jsonl", json.dumps({"of": "n", "stars": 1}) + "\n")
    matches, _ = site.find(phrases(FERN))
    assert [match.pieces for match in matches] == [2]
    site.write("marks.jsonl", "".join(json.dumps({"of": "n", "stars": n}) + "\n" for n in (1, 2)))
    (left,) = site.remove(matches)
    assert left.problem == "changed-underneath"
    assert len(site.lines("notes.jsonl")) == 1
    assert len(site.lines("marks.jsonl")) == 2
    site.purge(phrases(FERN))


def test_a_file_that_cannot_be_written_keeps_what_hangs_together(tmp_path: Path) -> None:
    link = {"field": "of", "to": "note", "when_gone": "remove"}
    description = {
        "files": [
            {"path": "notes.jsonl", "records": [{**NOTE, "unique": "site"}]},
            {"path": "marks.jsonl", "records": [{"name": "mark", "links": [link]}]},
        ]
    }
    site = JsonSite(tmp_path, description)
    notes = site.write("notes.jsonl", json.dumps({"id": "n", "text": FERN}) + "\n")
    marks = site.write("marks.jsonl", json.dumps({"of": "n"}) + "\n")
    os.link(marks, tmp_path / "another-name")
    matches, _ = site.find(phrases(FERN))
    (left,) = site.remove(matches)
    assert left.problem == "unsupported"
    assert FERN in notes.read_text()
    assert marks.read_text()


def test_an_empty_selection_is_stopped(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list())
    with pytest.raises(EmptySelector):
        site.remove([])


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'chatgpt'\? It has: chatgpt, claude-code"):
        JsonSettings(".", "chatgtp")


# --- texts and records in several places ----------------------------------------------------------


def test_a_text_whose_words_are_cut_by_its_styles_is_found(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list())
    half, rest = FERN[:13], FERN[13:]
    rich = [{"text": half}, {"text": rest, "bold": True}]
    site.write("a.json", {"notes": [{"id": "a", "body": rich}, {"id": "b", "body": rich[:1]}]})
    site.purge(phrases(FERN))
    assert site.load("a.json") == {"notes": [{"id": "b", "body": rich[:1]}]}


def test_a_text_over_several_parts_takes_the_record(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list(parts=["body[]"]))
    rich = [{"text": FERN[:13]}, {"text": FERN[13:]}, {"text": " more"}]
    site.write("a.json", {"notes": [{"id": "a", "body": rich}, {"id": "b"}]})
    site.purge(phrases(FERN))
    assert site.load("a.json") == {"notes": [{"id": "b"}]}


def test_one_part_with_the_words_goes_alone_from_rich_text(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, in_a_list(parts=["body[]"]))
    site.write("a.json", {"notes": [{"id": "a", "body": [{"text": FERN}, {"text": " more"}]}]})
    site.purge(phrases(FERN))
    assert site.load("a.json") == {"notes": [{"id": "a", "body": [{"text": " more"}]}]}


def test_lines_of_one_text_in_a_list_are_put_together(tmp_path: Path) -> None:
    cell = {"at": "cells[]", "text": ["source"], "joined": ["source"]}
    site = JsonSite(tmp_path, {"files": [{"path": "*.ipynb", "records": [cell]}]})
    words = FERN.split(" ", 3)
    source = [" ".join(words[:3]) + "\n", words[3]]
    site.write("a.ipynb", {"cells": [{"source": source}, {"source": ["x"]}]})
    site.purge(phrases(FERN))
    assert site.load("a.ipynb") == {"cells": [{"source": ["x"]}]}


def _columns(*rows: tuple[str, str]) -> dict[str, Any]:
    return {
        "ids": [name for name, _ in rows],
        "documents": [text for _, text in rows],
        "embeddings": [[at, 0.5] for at in range(len(rows))],
        "metadatas": None,
    }


def _in_columns(**more: Any) -> dict[str, Any]:
    columns = ["ids", "documents", "embeddings", "metadatas"]
    record = {"at": "all.*", "columns": columns, "id": "ids", "text": ["documents"], **more}
    return {"records": [record]}


def test_columns_that_stand_side_by_side_lose_the_same_row(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, _in_columns())
    rows = _columns(("a", "x"), ("b", FERN), ("c", "y"))
    site.write("a.json", {"all": {"one": rows, "two": _columns(("b", "z"))}})
    (match,) = site.purge(phrases(FERN))
    assert match.id == "b"
    found = site.load("a.json")["all"]
    assert found["two"] == _columns(("b", "z"))
    assert found["one"] == {
        "ids": ["a", "c"],
        "documents": ["x", "y"],
        "embeddings": [[0, 0.5], [2, 0.5]],
        "metadatas": None,
    }


def test_columns_are_blanked_by_row(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, _in_columns(), action=Action.BLANK)
    site.write("a.json", {"all": {"one": _columns(("a", "x"), ("b", FERN))}})
    matches, _ = site.find(ids("b"))
    assert site.remove(matches) == []
    assert site.load("a.json")["all"]["one"] == _columns(("a", "x"), ("b", ""))


def test_columns_of_different_lengths_are_told_and_left(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, _in_columns())
    rows = {**_columns(("a", "x"), ("b", FERN)), "ids": ["a"]}
    site.write("a.json", {"all": {"one": rows}})
    matches, gaps = site.find(phrases(FERN))
    assert matches == []
    assert {gap.problem for gap in gaps} == {"corrupt", "unsupported"}


def test_one_of_two_documents_in_a_file_goes_alone(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, {"records": [NOTE]})
    path = site.write("a.json", json.dumps({"id": "a", "text": FERN}) + '\n{"id": "b"}\n')
    site.purge(phrases(FERN))
    assert path.read_text() == '\n{"id": "b"}\n'


@pytest.mark.parametrize("unique", ["record", None])
def test_links_mean_the_records_beside_them(tmp_path: Path, unique: str | None) -> None:
    message: dict[str, Any] = {
        "name": "message",
        "at": "[].messages[]",
        "id": "n",
        "text": ["text"],
    }
    message["links"] = [{"field": "after", "to": "message", "when_gone": "relink"}]
    if unique:
        message["unique"] = unique
    site = JsonSite(tmp_path, {"records": [{"name": "talk", "at": "[]", "id": "id"}, message]})
    one = [{"n": 1, "text": "x"}, {"n": 2, "text": FERN, "after": 1}, {"n": 3, "after": 2}]
    other = [{"n": 2, "text": "y"}, {"n": 3, "after": 2}]
    lost = [{"n": 3, "text": "z", "after": 2}]
    site.write("a.json", [{"id": "one", "messages": one}, {"id": "other", "messages": other}])
    site.write("b.json", [{"id": "lost", "messages": lost}])
    site.purge(phrases(FERN))
    first, second = site.load("a.json")
    assert [(it["n"], it.get("after")) for it in first["messages"]] == [(1, None), (3, 1)]
    assert second["messages"] == other
    assert site.load("b.json")[0]["messages"] == lost


@pytest.mark.parametrize(
    ("unique", "in_the_same_file"), [("record", 2), ("file", None), ("site", None), (None, None)]
)
def test_a_link_never_means_a_record_of_a_place_that_it_cannot_know(
    tmp_path: Path, unique: str | None, in_the_same_file: int | None
) -> None:
    message: dict[str, Any] = {"name": "message", "at": "[].messages[]", "id": "n"}
    message["links"] = [{"field": "after", "to": "message", "when_gone": "relink"}]
    if unique:
        message["unique"] = unique
    site = JsonSite(tmp_path, {"records": [{"name": "talk", "at": "[]", "id": "id"}, message]})
    lost = {"n": 3, "after": 2}
    one = {"id": "one", "messages": [{"n": 2, "text": FERN}]}
    site.write("a.json", [one, {"id": "other", "messages": [lost]}])
    site.write("b.json", [{"id": "third", "messages": [lost]}])
    site.purge(phrases(FERN))
    assert site.load("a.json")[1]["messages"][0]["after"] == in_the_same_file
    assert site.load("b.json")[0]["messages"][0]["after"] == (None if unique == "site" else 2)


def test_a_list_of_links_names_nothing_twice(tmp_path: Path) -> None:
    links = [
        {"field": "after", "to": "note", "when_gone": "relink"},
        {"field": "seen[]", "to": "note", "when_gone": "relink", "via": "after"},
    ]
    site = JsonSite(tmp_path, in_a_list(links=links))
    notes = [
        {"id": "a"},
        {"id": "b", "after": "a", "text": FERN},
        {"id": "c", "after": "b", "text": FERN},
        {"id": "d", "seen": ["c", "b", "e"]},
        {"id": "e", "seen": ["b", "a"]},
    ]
    site.write("a.json", {"notes": notes})
    site.purge(phrases(FERN))
    assert [it.get("seen") for it in site.load("a.json")["notes"]] == [None, ["a", "e"], ["a"]]


def test_a_result_goes_with_its_call(tmp_path: Path) -> None:
    record = {
        "at": "messages[]",
        "text": ["content"],
        "pair": ["tool_call_id"],
        "parts": [{"at": "tool_calls[]", "pair": ["id"]}],
    }
    site = JsonSite(tmp_path, {"records": [record]})
    call = {"id": "call-1", "function": {"arguments": json.dumps({"text": FERN})}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "One moment.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": "kept"},
    ]
    site.write("a.json", {"messages": messages})
    (match,) = site.purge(phrases(FERN))
    assert match.pieces == 2
    assert site.load("a.json")["messages"] == [{**messages[0], "tool_calls": []}]


def test_a_number_of_other_records_that_was_wrong_before_is_left(tmp_path: Path) -> None:
    box = {"name": "box", "id": "id", "counts": [{"field": "n", "records": "note"}]}
    files = [{"path": "n.jsonl", "records": [NOTE]}, {"path": "*.json", "records": [box]}]
    site = JsonSite(tmp_path, {"files": files})
    site.write("n.jsonl", json.dumps({"id": 1, "text": FERN}) + "\n" + json.dumps({"id": 2}) + "\n")
    for name, number in (("right", 2), ("wrong", 5)):
        site.write(f"{name}.json", {"id": name, "n": number})
    site.purge(phrases(FERN))
    assert [site.load(f"{name}.json")["n"] for name in ("right", "wrong")] == [1, 5]


def test_a_digest_that_was_wrong_before_is_left(tmp_path: Path) -> None:
    hashes = [{"field": "sha", "of": "text", "algorithm": "sha256"}]
    site = JsonSite(tmp_path, in_a_list(hashes=hashes), action=Action.BLANK)
    right = hashlib.sha256(FERN.encode()).hexdigest()
    notes = [{"id": at, "text": FERN, "sha": sha} for at, sha in enumerate((right, "f" * 64))]
    site.write("a.json", {"notes": notes})
    matches, _ = site.find(phrases(FERN))
    assert site.remove(matches) == []
    found = [note["sha"] for note in site.load("a.json")["notes"]]
    assert found == [hashlib.sha256(b"").hexdigest(), "f" * 64]


def test_a_text_that_is_cut_by_its_styles_is_found_in_lines_too(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, CHAIN)
    rich = [{"text": FERN[:13]}, {"text": FERN[13:], "bold": True}]
    site.write("a.jsonl", json.dumps({"id": "a", "body": rich}) + "\n")
    site.purge(phrases(FERN))
    assert site.lines("a.jsonl") == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json.bak", json.dumps({"notes": [{"id": "old", "text": FERN.upper()}]})),
        ("a.json~", '{"notes": [{"id": "old", "text": "' + FERN.upper()),
    ],
)
def test_older_versions_are_compared_as_records_or_as_text(
    tmp_path: Path, name: str, content: str
) -> None:
    site = JsonSite(tmp_path, in_a_list())
    site.write("a.json", {"notes": []})
    site.write(name, content)
    seen = site.look_again(phrases(FERN), [])
    assert [item.where for item in seen if isinstance(item, Residue)] == [name]


def test_a_torn_line_keeps_its_link(tmp_path: Path) -> None:
    site = JsonSite(tmp_path, CHAIN)
    torn = '{"id": "b", "after": "a", "text": "half'
    path = site.write("a.jsonl", json.dumps({"id": "a", "text": FERN}) + "\n" + torn)
    site.purge(phrases(FERN))
    assert path.read_text() == torn
