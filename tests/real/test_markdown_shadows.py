"""Notes that change or are written to meanwhile, their shadows, and what check says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from purge.adapter import Action, Control, ProblemCode, Site
from purge.targets import NeedleKind, Targets
from purge_adapters._files import Changed
from purge_adapters._markdown_files import Files
from tests.real.markdown_notes import PHRASE, Notes, held, named, phrase

# --- changes, writers, links ---------------------------------------------------------------------


def test_a_record_that_moved_goes_and_one_that_changed_stays(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": f"- one\n- {PHRASE}\n", "b.md": f"- one\n- {PHRASE}\n"})
    matches = notes.find(phrase())
    notes.write("a.md", f"# New\n\n- zero\n- one\n- {PHRASE}\n")
    notes.write("b.md", f"- one\n- {PHRASE}, and more\n")
    left = notes.remove(matches)
    assert [(item.match.where, item.problem) for item in left] == [
        ("b.md, line 2", ProblemCode.CHANGED_UNDERNEATH)
    ]
    assert notes.text("a.md") == "# New\n\n- zero\n- one\n"
    assert notes.text("b.md") == f"- one\n- {PHRASE}, and more\n"


@pytest.mark.parametrize("record", ["file", "block"])
def test_a_note_that_a_program_writes_to_is_left_alone(tmp_path: Path, record: str) -> None:
    notes = Notes(tmp_path, {"a.md": f"- one\n- {PHRASE}\n", "b.md": f"{PHRASE}\n"})
    notes.record = record
    matches = notes.find(phrase())
    with held(tmp_path / "a.md", "a"):
        left = notes.remove(matches)
    assert [item.problem for item in left] == [ProblemCode.HELD_OPEN]
    assert notes.text("a.md") == f"- one\n- {PHRASE}\n"
    assert [match.where.partition(",")[0] for match in notes.find(phrase())] == ["a.md"]
    notes.purge(phrase())


def test_a_note_that_changes_before_it_is_taken_away_stays(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": f"{PHRASE}\n"})
    files = Files(Site("notes", tmp_path), ["."])
    opened = files.open(tmp_path / "a.md")
    notes.write("a.md", f"{PHRASE}, and more\n")
    with pytest.raises(Changed):
        files.take_away(opened)
    with pytest.raises(Changed):
        files.replace(opened, b"")
    assert notes.text("a.md") == f"{PHRASE}, and more\n"


def test_a_note_with_a_second_name_elsewhere_is_left_alone(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "vault", {"a.md": f"- one\n- {PHRASE}\n"})
    (tmp_path / "snapshot.md").hardlink_to(tmp_path / "vault/a.md")
    left = notes.remove(notes.find(phrase()))
    assert [item.problem for item in left] == [ProblemCode.UNSUPPORTED]
    assert "hard link" in left[0].sentence
    # With both names in the site, both are rewritten.
    (tmp_path / "snapshot.md").rename(tmp_path / "vault/b.md")
    notes.purge(phrase())
    assert [notes.text(name) for name in ("a.md", "b.md")] == ["- one\n", "- one\n"]


def test_mode_and_other_notes_are_kept(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": f"one\n\n{PHRASE}\n", "b.md": "two\n"})
    (tmp_path / "a.md").chmod(0o640)
    before = (tmp_path / "b.md").stat()
    notes.purge(phrase())
    assert (tmp_path / "a.md").stat().st_mode & 0o777 == 0o640
    after = (tmp_path / "b.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "b.md"]


def test_what_cannot_be_cut_is_said_in_a_sentence_without_its_words(tmp_path: Path) -> None:
    text = f"---\n{{title: {PHRASE}, id: a}}\n---\nbody\n"
    notes = Notes(tmp_path, {"a.md": text})
    (left,) = notes.remove(notes.find(phrase()))
    assert left.problem is ProblemCode.UNSUPPORTED
    assert "front matter" in left.sentence
    assert "lighthouse" not in left.sentence + repr(left)
    assert notes.text("a.md") == text


# --- shadows -------------------------------------------------------------------------------------

NOTE = f"# A\n\nkeep this line of words\n\n- {PHRASE} <!-- id: n1 -->\n"


def shadowed(tmp_path: Path) -> Notes:
    notes = Notes(tmp_path, {"notes/a.md": NOTE})
    notes.path, notes.id = "notes", "id"
    return notes


@pytest.mark.parametrize(
    "name", ["a.md~", "a.md.bak", "#a.md#", "a.md.orig", ".a.md.swp", "a.md.1", "gone.md~"]
)
@pytest.mark.parametrize("targets", [phrase(), named("n1")], ids=["phrase", "id"])
def test_a_copy_beside_a_note_is_residue(tmp_path: Path, name: str, targets: Targets) -> None:
    notes = shadowed(tmp_path)
    notes.write(f"notes/{name}", NOTE.replace("\n", "\0") if "swp" in name else NOTE)
    assert [item.where for item in notes.residue(targets)] == [f"notes/{name}"]
    matches = notes.purge(targets)
    assert [item.where for item in notes.residue(targets, matches)] == [f"notes/{name}"]


def test_a_copy_that_holds_only_neighbours_is_none(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    notes.write("notes/a.md~", "# A\n\nkeep this line of words\n")
    notes.write("notes/b.md~", f"RETRACTS: {PHRASE}\n")
    for targets in (phrase(), named("n1")):
        assert notes.residue(targets, notes.find(targets)) == []


def test_a_copy_of_a_record_without_an_id_is_known_by_its_words(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    notes.write("notes/a.md", f"# A\n\n- {PHRASE} of the north\n- keep this line of words\n")
    by_name = named(notes.find(phrase())[0].id)
    matches = notes.purge(by_name)
    notes.write("notes/a.md~", f"> {PHRASE}\n> of the north\n")
    assert [item.where for item in notes.residue(by_name, matches)] == ["notes/a.md~"]
    notes.write("notes/a.md~", "- keep this line of words\n")
    assert notes.residue(by_name, matches) == []


def test_a_copy_of_a_blanked_record_is_none(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    notes.site = {"action": Action.BLANK}
    matches = notes.purge(named("n1"))
    notes.write("notes/a.md~", notes.text("notes/a.md"))
    assert notes.residue(named("n1"), matches) == []
    notes.write("notes/a.md~", notes.text("notes/a.md").replace(" <!-- id", " again <!-- id"))
    assert len(notes.residue(named("n1"), matches)) == 1


def test_a_copy_of_another_scope_is_none(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    notes.site = {"scope": {"project": "project"}}
    notes.write("notes/a.md", f"- {PHRASE} [project:: boats]\n- {PHRASE} [project:: cars]\n")
    notes.write("notes/a.md~", f"- {PHRASE} [project:: cars]\n")
    matches = notes.find(phrase(project="boats"))
    assert notes.residue(phrase(project="boats"), matches) == []
    notes.write("notes/a.md~", f"- {PHRASE} [project:: boats]\n")
    assert len(notes.residue(phrase(project="boats"), matches)) == 1


def test_a_git_history_is_residue_without_a_date(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    run = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*run[:3], "init", "-q"], check=True)
    subprocess.run([*run, "add", "."], check=True)
    subprocess.run([*run, "commit", "-q", "-m", "notes"], check=True)
    matches = notes.purge(named("n1"))
    (left,) = notes.residue(named("n1"), matches)
    assert "git" in left.where
    assert left.until is None
    assert not left.fixable


def test_a_file_that_a_reader_still_holds_is_residue_until_it_lets_go(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    with held(tmp_path / "notes/a.md", "r"):
        matches = notes.purge(phrase())
        left = notes.residue(phrase(), matches)
        assert [item.why for item in left] == ["deleted inode still held open"]
    assert notes.residue(phrase(), matches) == []


def test_controls_say_whether_the_look_could_see(tmp_path: Path) -> None:
    notes = shadowed(tmp_path)
    controls = [item for item in notes.observe(phrase()) if isinstance(item, Control)]
    assert controls == [Control(NeedleKind.TEXT, True, True)]
    matches = notes.purge(phrase())
    controls = [item for item in notes.observe(phrase(), matches) if isinstance(item, Control)]
    assert controls == [Control(NeedleKind.TEXT, True, False)]
    notes.write("notes/a.md", "")
    controls = [item for item in notes.observe(phrase(), matches) if isinstance(item, Control)]
    assert controls == [Control(None, True, False)]


# --- check ---------------------------------------------------------------------------------------


def test_check_says_what_is_there_and_what_is_wrong(tmp_path: Path) -> None:
    notes = Notes(
        tmp_path,
        {
            "a.md": "---\nid: n1\n---\nwords\n",
            "b.md": "---\nid: n1\n---\nwords\n",
            "c.md": "---\nid: [\n---\nwords\n",
            "d.md": "caf\xe9".encode("latin-1"),
        },
    )
    (tmp_path / "e.md").symlink_to("/etc/hostname")
    notes.record, notes.id = "file", "id"
    said = list(notes.open().check())
    good = [statement.sentence for statement in said if statement.ok]
    faults = " ".join(statement.sentence for statement in said if not statement.ok)
    assert good[0].startswith("4 files, ")
    assert "2 with an id of their own" in good[0]
    for words in (
        "c.md has front matter",
        "d.md is neither",
        "e.md is not looked at",
        "1 id stands",
    ):
        assert words in faults
    assert "n1" not in faults


def test_check_of_a_folder_without_faults_has_none(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": "---\nid: n1\n---\nwords\n"})
    notes.record, notes.id = "file", "id"
    assert all(statement.ok for statement in notes.open().check())
    notes.id = "other"
    assert [s.sentence for s in notes.open().check() if not s.ok] == [
        "No record has the field 'other' that 'id' names."
    ]


def test_an_id_in_front_matter_names_all_sections_of_the_note(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"a.md": "---\nid: n1\n---\n# One\n\nwords\n\n# Two\n\nwords\n"})
    notes.record, notes.id = "section", "id"
    said = list(notes.open().check())
    assert all(statement.ok for statement in said)
    assert any("front matter of 1 note" in statement.sentence for statement in said)
