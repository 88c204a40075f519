"""Markers in notes: which are yielded, and that striking one changes nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from purge.adapter import Examined, Marker, Match, NotAMarker, NotChecked, ProblemCode
from purge.errors import EmptySelector, Permanent
from purge.matching import read_markers, strike
from purge.targets import Target, TargetKind, Targets
from purge.testing.breakages import held_open
from purge_adapters._markdown_kinds import Kind
from purge_adapters._markdown_records import read_note
from tests.real.markdown_notes import PHRASE, Notes

GRAINS = ["file", "section", "block"]
TARGETS = Targets([Target(0, TargetKind.PHRASE, PHRASE)])


def notes_in(folder: Path, files: Mapping[str, str | bytes], grain: str = "block") -> Notes:
    notes = Notes(folder, files)
    notes.record = grain
    return notes


def read(notes: Notes, where: Mapping[str, str] | None = None) -> list[object]:
    return list(notes.open().markers(where or {}))


def markers(notes: Notes, where: Mapping[str, str] | None = None) -> list[Marker]:
    return [item for item in read(notes, where) if isinstance(item, Marker)]


def ignored(notes: Notes, where: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    found = [item for item in read(notes, where) if isinstance(item, NotAMarker)]
    return [(item.where, item.why) for item in found]


def strike_all(notes: Notes, found: list[Marker], word: str = "01JREQUEST") -> list[NotChecked]:
    return list(notes.open().strike([(marker, word) for marker in found]))


@pytest.mark.parametrize("grain", GRAINS)
def test_a_marker_is_yielded_once_with_its_phrase(tmp_path: Path, grain: str) -> None:
    text = f"# Rules\n\nSome words.\nRETRACTS: {PHRASE}\nMore words.\n"
    notes = notes_in(tmp_path, {"a/n.md": text, "b.md": "Nothing.\n"}, grain)
    os.utime(tmp_path / "a/n.md", (1_700_000_000, 1_700_000_000))
    (marker,) = markers(notes)
    assert (marker.phrase, marker.where, marker.part) == (PHRASE, "a/n.md, line 4", "")
    assert marker.created == datetime.fromtimestamp(1_700_000_000, UTC)
    assert json.loads(json.dumps(marker.handle)) == marker.handle
    assert PHRASE not in repr(marker)
    assert sum(item.files for item in read(notes) if isinstance(item, Examined)) == 2


@pytest.mark.parametrize("grain", ["file", "section"])
def test_the_record_of_a_marker_is_the_one_that_is_found(tmp_path: Path, grain: str) -> None:
    text = (
        f"---\nid: note-1\n---\n# One\n\nWords.\n\n## Two\n\nThe keyring.\n\nRETRACTS: {PHRASE}\n"
        f"\n# Three\n\nRead that {PHRASE}.\n"
    )
    notes = notes_in(tmp_path, {"n.md": text}, grain)
    notes.id = "id"
    (marker,) = markers(notes)
    matches = notes.find(Targets([Target(0, TargetKind.PHRASE, "the keyring")]))
    by_name = {match.id: match for match in matches}
    assert by_name[marker.record].carries_marker
    carrying = [match for match in notes.find(TARGETS) if match.carries_marker]
    assert [match.id for match in carrying] == ([marker.record] if grain == "file" else [])


def test_a_marker_between_blocks_is_in_no_record(tmp_path: Path) -> None:
    notes = notes_in(tmp_path, {"n.md": f"- One.\nRETRACTS: {PHRASE}\n- {PHRASE}\n"})
    (marker,) = markers(notes)
    assert marker.record.startswith("n.md#~")
    (match,) = notes.find(TARGETS)
    assert not match.carries_marker
    assert notes.remove([match]) == []
    assert (tmp_path / "n.md").read_text() == f"- One.\nRETRACTS: {PHRASE}\n"


@pytest.mark.parametrize("grain", GRAINS)
def test_the_whole_file_decides_what_counts(tmp_path: Path, grain: str) -> None:
    text = (
        "---\ntitle: x\nRETRACTS: in front matter\n---\n"
        "# One\n\n```md\n# Two\n\nRETRACTS: fenced\n```\n\n"
        "<!--\n\n## Three\n\nRETRACTS: hidden\n-->\n\n"
        "- item\n\n  RETRACTS: indented\n\n> RETRACTS: quoted\n\nRETRACTS: real\n\n"
        "~~~\n\nRETRACTS: never closed\n"
    )
    notes = notes_in(tmp_path, {"n.md": text}, grain)
    assert [marker.phrase for marker in markers(notes)] == ["real"]
    assert [why for _, why in ignored(notes)] == [
        "it stands in front matter",
        "it stands in a code fence",
        "it stands in an HTML comment",
        "it does not start at the beginning of its line",
        "it stands in a quote",
        "it stands in a code fence",
    ]
    assert ignored(notes)[0][0] == "n.md, line 3"


@pytest.mark.parametrize("grain", GRAINS)
def test_what_does_not_count_is_text(tmp_path: Path, grain: str) -> None:
    text = f"# One\n\n```\nRETRACTS: {PHRASE}\n```\n"
    notes = notes_in(tmp_path, {"n.md": text}, grain)
    assert markers(notes) == []
    (match,) = notes.find(TARGETS)
    assert not match.carries_marker


def test_the_scope_is_that_of_the_record(tmp_path: Path) -> None:
    text = "---\nproject: north\n---\n# A\nRETRACTS: one\n# B\nproject:: south\n\nRETRACTS: two\n"
    for grain, expected in (
        ("file", ["north", "north"]),
        ("section", ["north", "south"]),
        ("block", ["north", "north"]),
    ):
        notes = notes_in(tmp_path, {"n.md": text}, grain)
        notes.site = {"scope": {"project": "project"}}
        assert [marker.scope for marker in markers(notes)] == [
            {"project": said} for said in expected
        ]


def test_only_notes_that_say_what_is_asked_for_count(tmp_path: Path) -> None:
    def note(front: str) -> str:
        return f"---\n{front}\n---\nRETRACTS: a\n"

    notes = notes_in(
        tmp_path,
        {
            "good.md": note("by: {name: me}"),
            "list.md": note("by: {name: [me, you]}"),
            "none.md": "RETRACTS: a\n",
            "other.md": note("by: {name: you}"),
            "text.md": "by.name:: me\nRETRACTS: a\n",
            "broken.md": note("by: {name: me"),
        },
    )
    found = markers(notes, {"by.name": "me"})
    assert [marker.where for marker in found] == ["good.md, line 4"]
    assert {why for _, why in ignored(notes, {"by.name": "me"})} == {
        "its record does not have the value of 'by.name' that counts"
    }
    assert [it.where for it in markers(notes, {"$key": "none.md"})] == ["none.md, line 1"]


def test_in_a_section_its_own_words_say_it(tmp_path: Path) -> None:
    text = "# A\nby:: me\n\nRETRACTS: one\n\n# B\nby:: you\n\nRETRACTS: two\n"
    notes = notes_in(tmp_path, {"n.md": text}, "section")
    assert [marker.phrase for marker in markers(notes, {"by": "me"})] == ["one"]


@pytest.mark.parametrize("path", ["notes", "notes/log.text", "notes/*.text", "LOG", "plain"])
def test_any_file_that_is_named_is_read(tmp_path: Path, path: str) -> None:
    text = f"Plain words.\nRETRACTS: {PHRASE}\n"
    files: dict[str, str | bytes] = {
        "notes/log.text": text,
        "notes/log.txt": text,
        "LOG": text,
        "plain/a.TXT": text,
    }
    notes = notes_in(tmp_path, files, "file")
    notes.path = path
    (marker,) = markers(notes)
    assert marker.phrase == PHRASE
    assert strike_all(notes, [marker]) == []
    assert markers(notes) == []


def test_looking_for_markers_changes_nothing(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"n.md": "RETRACTS: a\n", "bad.md": b"\xff\0RETRACTS: a\n\0"}
    notes = notes_in(tmp_path, files)
    before = {path: path.stat() for path in tmp_path.rglob("*")}
    found = read(notes)
    after = {path: path.stat() for path in tmp_path.rglob("*")}
    assert [status.st_atime_ns for status in after.values()] == [
        status.st_atime_ns for status in before.values()
    ]
    assert after.keys() == before.keys()
    (gap,) = [item for item in found if isinstance(item, NotChecked)]
    assert (gap.where, gap.problem) == ("bad.md", ProblemCode.CORRUPT)
    assert [marker.where for marker in markers(notes)] == ["n.md, line 1"]


# --- striking ------------------------------------------------------------------------------------


@pytest.mark.parametrize("grain", GRAINS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_striking_rewrites_one_line_of_bytes(tmp_path: Path, grain: str, encoding: str) -> None:
    before = "RETRACTS: a \t\r\n# Caf\u00e9\u2028\r\n\r\nRETRACTS: b\rRETRACTS: a\n```\nRETRACTS: c"
    notes = notes_in(tmp_path, {"n.md": before.encode(encoding)}, grain)
    path = tmp_path / "n.md"
    path.chmod(0o640)
    found = markers(notes)
    assert [marker.phrase for marker in found] == ["a", "b", "a"]
    assert strike_all(notes, [found[1]]) == []
    first = before.replace("RETRACTS: b", "STRUCK: 01JREQUEST")
    assert path.read_bytes() == first.encode(encoding)
    assert path.stat().st_mode & 0o777 == 0o640
    assert strike_all(notes, markers(notes)) == []
    both = first.replace("RETRACTS: a \t", "STRUCK: 01JREQUEST").replace(
        "RETRACTS: a", "STRUCK: 01JREQUEST"
    )
    assert path.read_bytes() == both.encode(encoding)
    assert markers(notes) == []
    assert [item.name for item in tmp_path.iterdir()] == ["n.md"]


def test_bytes_that_are_no_text_stay(tmp_path: Path) -> None:
    notes = notes_in(tmp_path, {"n.md": b"caf\xe9\nRETRACTS: caf\xe9\nna\xefve"})
    assert strike_all(notes, markers(notes), "x") == []
    assert (tmp_path / "n.md").read_bytes() == b"caf\xe9\nSTRUCK: x\nna\xefve"


@pytest.mark.parametrize(
    ("grain", "text"),
    [
        ("file", "RETRACTS: a\n\nOther words.\n"),
        ("section", "RETRACTS: a\n\nOther words.\n"),
        ("block", "RETRACTS: a, or not\n\nWords.\n"),
        ("block", "```\nRETRACTS: a\n```\n\nWords.\n"),
    ],
)
def test_a_record_that_changed_is_left_and_named(tmp_path: Path, grain: str, text: str) -> None:
    notes = notes_in(tmp_path, {"n.md": "RETRACTS: a\n\nWords.\n"}, grain)
    found = markers(notes)
    notes.write("n.md", text)
    (left,) = strike_all(notes, found)
    assert (left.where, left.problem) == ("n.md, line 1", ProblemCode.CHANGED_UNDERNEATH)
    assert (tmp_path / "n.md").read_text() == text


@pytest.mark.parametrize("grain", ["section", "block"])
def test_a_record_that_only_moved_is_struck(tmp_path: Path, grain: str) -> None:
    notes = notes_in(tmp_path, {"n.md": "# A\n\nRETRACTS: a\n"}, grain)
    found = markers(notes)
    notes.write("n.md", "# New\n\nWords.\n\n# A\n\nRETRACTS: a\n")
    assert strike_all(notes, found) == []
    assert (tmp_path / "n.md").read_text() == ("# New\n\nWords.\n\n# A\n\nSTRUCK: 01JREQUEST\n")


def test_what_cannot_be_rewritten_is_left_and_named(tmp_path: Path) -> None:
    notes = notes_in(tmp_path, {"n.md": "RETRACTS: a\n"})
    found = markers(notes)
    with held_open([tmp_path / "n.md"]):
        (left,) = strike_all(notes, found)
    assert left.problem is ProblemCode.HELD_OPEN
    os.link(tmp_path / "n.md", tmp_path / "other-name")
    (left,) = strike_all(notes, found)
    assert left.problem is ProblemCode.UNSUPPORTED
    (tmp_path / "n.md").unlink()
    (tmp_path / "other-name").unlink()
    (left,) = strike_all(notes, found)
    assert left.problem is ProblemCode.UNREACHABLE
    with pytest.raises(EmptySelector):
        strike_all(notes, [])
    with pytest.raises(Permanent):
        strike_all(notes, [replace(found[0], handle={})])
    (left,) = strike_all(notes, [replace(found[0], handle={**found[0].handle, "file": "../x"})])
    assert left.problem in (ProblemCode.UNREACHABLE, ProblemCode.CHANGED_UNDERNEATH)


PARTS = st.sampled_from(
    [
        "RETRACTS: a",
        "RETRACTS: b",
        "words",
        "",
        "```",
        "~~~",
        "<!--",
        "-->",
        "- words",
        "  ```",
        "> words",
        "# A",
        "---",
        "id: x",
        "%%",
    ]
)
TEXTS = st.lists(PARTS, max_size=12).map("\n".join)


@settings(max_examples=300)
@given(TEXTS)
def test_the_blocks_of_a_note_are_those_that_count(text: str) -> None:
    note = read_note("n.md", text.encode())
    counted = [
        line.number - 1
        for line in read_markers(text, front_matter=note.front.size > 0)
        if line.counts
    ]
    assert [block.start for block in note.blocks if block.kind is Kind.MARKER] == counted
    covered = [at for block in note.blocks for at in range(block.start, block.end)]
    assert covered == list(range(len(note.lines.lines)))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, grain=st.sampled_from(GRAINS))
def test_every_marker_of_a_note_can_be_struck(
    tmp_path_factory: pytest.TempPathFactory, text: str, grain: str
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    notes = notes_in(folder, {"n.md": text}, grain)
    found = markers(notes)
    if not found:
        return
    size = read_note("n.md", text.encode()).front.size
    numbers = [line.number for line in read_markers(text, front_matter=size > 0) if line.counts]
    assert len(found) == len(numbers)
    assert strike_all(notes, found) == []
    expected = strike(text, dict.fromkeys(numbers, "01JREQUEST"))
    assert (folder / "n.md").read_text() == expected
    assert markers(notes) == []


def test_a_match_is_a_match(tmp_path: Path) -> None:
    notes = notes_in(tmp_path, {"n.md": f"---\nwho: [a, b]\nproject: north\n---\n{PHRASE}\n"})
    notes.site = {"scope": {"project": "project"}, "subject": "who"}
    (match,) = [it for it in notes.look(TARGETS) if isinstance(it, Match)]
    assert (match.subjects, dict(match.scope)) == (("a", "b"), {"project": "north"})
