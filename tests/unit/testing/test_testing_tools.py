"""The suite's own tools see what they are there to see."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from purge.targets import windows
from purge.testing import breakages
from purge.testing.harness import VECTOR_LENGTH
from purge.testing.samples import CANARY, CANARY_WORDS, HARD_IDS, NEIGHBOURS, SHORT, unit_vector
from purge.testing.snapshots import age, differences, take_snapshot
from purge.testing.suite_base import words_in


def test_a_snapshot_sees_every_kind_of_change(tmp_path: Path) -> None:
    file = tmp_path / "one"
    file.write_text("one")
    (tmp_path / "link").symlink_to("one")
    age(tmp_path)
    before = take_snapshot(tmp_path)
    assert differences(before, take_snapshot(tmp_path)) == []

    file.read_text()
    assert differences(before, take_snapshot(tmp_path)) == ["one: accessed"]
    file.chmod(0o600)
    assert {"one: changed", "one: mode"} <= set(differences(before, take_snapshot(tmp_path)))
    file.write_text("two")
    found = differences(before, take_snapshot(tmp_path))
    assert {"one: content", "one: modified"} <= set(found)
    assert "one: size" not in found
    (tmp_path / "new").touch()
    (tmp_path / "link").unlink()
    found = differences(before, take_snapshot(tmp_path))
    assert {"new: is new", "link: is gone", ".: modified"} <= set(found)


def test_words_are_seen_in_several_encodings_and_in_any_case() -> None:
    contents = {
        "utf-8": b"The Quillfeather",
        "utf-16": "the QUILLFEATHER".encode("utf-16-le"),
        "none": b"quill feather",
    }
    assert words_in(contents, ["quillfeather"]) == {"quillfeather": ["utf-8", "utf-16"]}
    assert words_in(contents, ["almanack"]) == {}


def test_the_words_of_the_canary_stand_in_no_neighbour() -> None:
    text = " ".join(record.text + record.id for record in (SHORT, *NEIGHBOURS)).casefold()
    assert [word for word in (*CANARY_WORDS, CANARY.id) if word in text] == []
    assert [word for word in CANARY_WORDS if word not in CANARY.text.casefold()] == []
    assert [piece for piece in windows(CANARY.text) if piece.casefold() in text] == []


def test_hard_ids_are_different_and_vectors_have_length_one() -> None:
    for group in HARD_IDS:
        assert len({*group.removed, *group.kept}) == len(group.removed) + len(group.kept)
    vector = unit_vector("a seed")
    assert len(vector) == VECTOR_LENGTH
    assert sum(number * number for number in vector) == pytest.approx(1, abs=1e-6)
    assert vector == unit_vector("a seed") != unit_vector("another")


def test_a_read_only_folder_cannot_be_written_even_by_root(tmp_path: Path) -> None:
    file = tmp_path / "store" / "file"
    file.parent.mkdir()
    file.write_text("content")
    with breakages.read_only(file.parent):
        assert file.read_text() == "content"
        for write in (
            lambda: file.write_text("other"),
            lambda: file.unlink(),
            lambda: (file.parent / "new").touch(),
        ):
            with pytest.raises(PermissionError):
                write()
    file.write_text("other")


def test_a_held_file_is_open_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("content")

    def holders() -> set[int]:
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                links = [os.readlink(link) for link in (process / "fd").iterdir()]
            except OSError:
                continue
            if str(file) in links:
                found.add(int(process.name))
        return found

    with breakages.held_open([file]):
        held = holders()
        assert len(held) == 1
        assert os.getpid() not in held
    assert holders() == set()


def test_a_locked_database_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    connection.execute("CREATE TABLE kept (id TEXT)")
    with (
        breakages.sqlite_locked(path),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        connection.execute("INSERT INTO kept VALUES ('a')")
    connection.execute("INSERT INTO kept VALUES ('a')")
    connection.close()


def test_what_is_moved_away_comes_back_and_nothing_may_take_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "file").write_text("content")
    with breakages.moved_away([folder / "file"]):
        assert list(folder.iterdir()) == []
    assert (folder / "file").read_text() == "content"
    with pytest.raises(FileExistsError), breakages.moved_away([folder / "file"]):
        (folder / "file").write_text("made anew")


def test_a_file_is_damaged_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * 100)
    with breakages.overwritten(file, share=0.2):
        data = file.read_bytes()
    assert len(data) == 100
    assert data.count(b"a") == 80
    with breakages.cut_in_half(file):
        assert len(file.read_bytes()) == 50
