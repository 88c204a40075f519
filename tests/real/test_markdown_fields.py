"""What notes say about their records, and what of a note cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

from purge.adapter import Examined, Match, NotChecked, ProblemCode
from purge.targets import Target, TargetKind, Targets
from tests.real.markdown_notes import PHRASE, Notes, named, of, phrase

# --- what is said about records ------------------------------------------------------------------

SUMMARY = """---
title: Week 9
project: boats
derived_from: [m1, m2]
---

# Week 9

- One thing. [derived_from:: m1]
- Another. [derived_from:: m3, m4]
- By the front matter.
"""


def summary(tmp_path: Path, text: str = SUMMARY) -> Notes:
    notes = Notes(tmp_path, {"week.md": text})
    notes.site = {"derived_from": {"memories": "derived_from"}, "scope": {"project": "project"}}
    return notes


def lineage(*ids: str) -> Targets:
    return Targets(Target(key, TargetKind.LINEAGE, id, "memories") for key, id in enumerate(ids))


def test_a_block_derives_from_what_it_says_itself_else_from_what_the_front_says(
    tmp_path: Path,
) -> None:
    notes = summary(tmp_path)
    by_line = {match.where[9:]: match.parents["memories"] for match in notes.find(lineage("m1"))}
    assert by_line == {"line 7": ("m1", "m2"), "line 9": ("m1",), "line 11": ("m1", "m2")}
    assert [match.where for match in notes.find(lineage("m3"))] == ["week.md, line 10"]


def test_front_matter_that_others_do_not_override_goes_with_all_that_it_speaks_of(
    tmp_path: Path,
) -> None:
    notes = summary(tmp_path, "---\ntitle: T\nderived_from: m1\n---\n\n# Head\n\n- one\n- two\n")
    assert len(notes.find(lineage("m1"))) == 4
    notes.purge(lineage("m1"))
    assert not notes.exists("week.md")


def test_a_record_of_another_scope_is_spared_and_one_of_none_is_unknown(tmp_path: Path) -> None:
    notes = Notes(
        tmp_path,
        {
            "boats.md": f"---\nproject: boats\n---\n- {PHRASE}\n- {PHRASE} [project:: cars]\n",
            "none.md": f"{PHRASE}\n",
        },
    )
    notes.site = {"scope": {"project": "project"}}
    found = notes.find(phrase(project="boats"))
    assert [(match.where, match.hits[0].scope_unknown) for match in found] == [
        ("boats.md, line 4", False),
        ("none.md, line 1", True),
    ]


def test_a_subject_in_front_matter_is_that_of_all_below_it(tmp_path: Path) -> None:
    text = "---\nabout: user-6\ntitle: T\n---\n# A\n\nthing\n\n# B\n<!-- about: user-7 -->\nother\n"
    notes = Notes(tmp_path, {"a.md": text, "b.md": "---\nabout: user-6\n---\nwords\n"})
    notes.record, notes.site = "section", {"subject": "about"}
    notes.purge(Targets([Target(1, TargetKind.SUBJECT, "user-6")]))
    assert notes.text("a.md") == "---\ntitle: T\n---\n# B\n<!-- about: user-7 -->\nother\n"
    assert not notes.exists("b.md")


def test_ids_that_a_person_can_name_a_record_by(tmp_path: Path) -> None:
    text = "---\nid: n1\n---\n# Head\n\nwords ^w1\n\n- item\n  <!-- id: own -->\n"
    notes = Notes(tmp_path, {"days/a.md": text, "days/b.md": "words ^w1\n"})
    notes.path, notes.id = "days", "id"
    assert [match.where for match in notes.find(named("a.md#^w1"))] == ["days/a.md, line 6"]
    assert [match.id for match in notes.find(named("own"))] == ["own"]
    assert len(notes.find(named("n1"))) == 4  # The whole note: front matter, heading, two blocks.
    notes.record = "section"
    assert [match.where for match in notes.find(named("a.md#Head"))] == ["days/a.md, line 4"]
    notes.write("days/b.md", "# Head\n\none\n\n# Head\n\ntwo\n")
    assert notes.find(named("b.md#Head")) == []
    notes.record = "file"
    assert [match.id for match in notes.find(named("n1"))] == ["n1"]


def test_a_record_without_an_id_is_named_by_what_it_says_not_by_its_place(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": f"- {PHRASE}\n- {PHRASE}\n"})
    before = [match.id for match in notes.find(phrase())]
    assert len(set(before)) == 2
    notes.write("a.md", f"# New\n\nmore\n\n- {PHRASE}\n- {PHRASE}\n")
    assert [match.id for match in notes.find(phrase())] == before
    assert [match.id for match in notes.find(named(before[0]))] == [before[0]]


def test_one_id_in_two_notes_is_one_record_in_two_places(tmp_path: Path) -> None:
    text = "---\nid: n1\n---\nwords\n"
    notes = Notes(tmp_path, {"a.md": text, "a copy.md": text, "c.md": "---\nid: n2\n---\nwords\n"})
    notes.record, notes.id = "file", "id"
    assert len(notes.purge(named("n1"))) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.md"]


# --- what could not be read ----------------------------------------------------------------------


def test_broken_front_matter_is_said_where_its_fields_are_asked_for(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": f"---\nid: [n1\n---\n{PHRASE}\n"})
    notes.id = "id"
    assert of(NotChecked, notes.look(phrase())) == []
    assert len(notes.find(phrase())) == 1
    (gap,) = of(NotChecked, notes.look(named("n1")))
    assert gap.where == "a.md"


def test_an_unknown_encoding_is_said_where_it_can_hide_the_phrase(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": "caf\xe9 of owls\n".encode("latin-1")})
    assert len(notes.find(phrase("of owls"))) == 1
    assert of(NotChecked, notes.look(phrase("of owls"))) == []
    assert len(of(NotChecked, notes.look(phrase("café of owls")))) == 1


def test_sixteen_bit_notes_are_read(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.txt": f"one\r\n\r\n{PHRASE}\r\n".encode("utf-16")})
    notes.purge(phrase())
    assert (tmp_path / "a.txt").read_bytes() == "one\r\n".encode("utf-16")


def test_sixteen_bit_notes_without_a_mark_are_said_to_be_unreadable(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.txt": PHRASE.encode("utf-16-le")})
    gaps = of(NotChecked, notes.look(phrase()))
    assert [gap.problem for gap in gaps] == [ProblemCode.CORRUPT]


def test_what_is_no_regular_file_is_said_and_never_opened(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": f"{PHRASE}\n", "b.md": f"{PHRASE}\n"})
    (tmp_path / "c.md").mkdir()
    os.mkfifo(tmp_path / "d.md")
    found = notes.look(phrase())
    assert len(of(Match, found)) == 2
    assert [gap.where for gap in of(NotChecked, found)] == ["d.md"]


def test_what_was_read_is_counted(tmp_path: Path) -> None:
    notes = summary(tmp_path)
    examined = of(Examined, notes.look(Targets([])))
    assert sum(item.files for item in examined) == 1
    assert sum(item.bytes for item in examined) == len(SUMMARY)
    assert sum(item.records for item in examined) == 4
    assert sum(item.unlinked for item in examined) == 0
