"""Copies of what was deleted: in other tables, beside the database, and behind a rewrite."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from purge.adapter import NotChecked, ProblemCode
from tests.support.sql_stores import (
    SECRET,
    TABLE,
    Store,
    by_id,
    fill,
    named,
    of,
    plant,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_another_table_that_holds_it_is_residue_without_a_date(store: Store) -> None:
    plant(store)
    store.run(
        "CREATE TABLE history (what TEXT)",
        "CREATE TRIGGER kept AFTER DELETE ON memories BEGIN "
        "INSERT INTO history VALUES (json_array(old.id, old.body)); END",
    )
    run = store.purge(by_id("mem-of-the-key"))
    assert [(item.where, item.until, item.fixable) for item in run.residue] == [
        ("table history", None, False)
    ]
    assert store.holding(SECRET) == ["memories.db"]


@pytest.mark.parametrize(
    ("noted", "is_residue"),
    [
        ("mem-of-the-key", True),
        ("removed mem-of-the-key at noon", True),
        ('{"ids": ["mem-of-the-key"]}', True),
        ("mem-of-the-keyring", False),
        ("my-mem-of-the-keys", False),
    ],
)
def test_an_id_in_another_table_is_residue_where_it_stands_by_itself(
    store: Store, noted: str, is_residue: bool
) -> None:
    plant(store)
    store.run("CREATE TABLE audit (what TEXT)", ("INSERT INTO audit VALUES (?)", (noted,)))
    run = store.purge(by_id("mem-of-the-key"))
    assert (named(run.after) == ["table audit"]) is is_residue
    assert run.is_clean is not is_residue


def test_what_a_neighbour_says_as_well_is_no_residue(store: Store) -> None:
    plant(store)
    store.run(("INSERT INTO memories VALUES ('mem-twin', ?, 'keys of a house')", (SECRET,)))
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert store.holding(SECRET) == ["memories.db"]
    assert store.run("SELECT body FROM memories WHERE id = 'mem-twin'") == [(SECRET,)]


def test_a_leftover_is_found_although_a_neighbour_says_the_same(store: Store) -> None:
    plant(store)
    store.run(("INSERT INTO memories VALUES ('mem-twin', ?, 't')", (SECRET,)))
    known = store.matches(by_id("mem-of-the-key"))
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    assert store.path.read_bytes().count(SECRET.encode()) == 2
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert named(run.before) == ["memories.db (gap in a page)"]
    assert run.is_clean
    assert store.path.read_bytes().count(SECRET.encode()) == 1


@pytest.mark.parametrize("name", ["memories.db.bak", "memories.db-old", "memories.db.1", "old~"])
def test_copies_beside_the_database_are_residue(store: Store, name: str) -> None:
    plant(store)
    shutil.copyfile(store.path, store.folder / name.replace("old~", "memories.db~"))
    run = store.purge(by_id("mem-of-the-key"))
    assert [item.fixable for item in run.residue] == [False]
    assert run.residue[0].where.startswith("memories.db")


def test_a_copy_is_asked_as_a_database_where_bytes_are_no_needle(store: Store) -> None:
    store.run(TABLE, "INSERT INTO memories VALUES ('m', 'ok', 't')")
    shutil.copyfile(store.path, store.folder / "memories.db.bak")
    run = store.purge(by_id("m"))
    assert named(run.after) == ["memories.db.bak"]


def test_a_copy_without_it_is_no_residue(store: Store) -> None:
    plant(store)
    with closing(sqlite3.connect(store.folder / "memories.db.bak")) as other:
        other.execute(TABLE)
    assert store.purge(by_id("mem-of-the-key")).is_clean


@pytest.fixture
def renumbering(store: Store) -> Iterator[Store]:
    """A database in which VACUUM would number rows anew that an index relies on."""
    store.run(
        TABLE,
        "CREATE TABLE lines (said TEXT)",
        "CREATE VIRTUAL TABLE words USING fts5(said, content='lines')",
        "CREATE TRIGGER added AFTER INSERT ON lines BEGIN "
        "INSERT INTO words(rowid, said) VALUES (new.rowid, new.said); END",
        "CREATE TRIGGER gone AFTER DELETE ON lines BEGIN "
        "INSERT INTO words(words, rowid, said) VALUES ('delete', old.rowid, old.said); END",
    )
    fill(store, 30)
    for word in ("alder", "birch", "cedar", "damson"):
        store.run(("INSERT INTO lines VALUES (?)", (word,)))
    store.run("DELETE FROM lines WHERE said = 'birch'")
    yield store
    found = store.run("SELECT rowid FROM words WHERE words MATCH 'cedar'")
    assert found == [(3,)]
    assert store.run("SELECT rowid, said FROM lines") == [(1, "alder"), (3, "cedar"), (4, "damson")]
    store.run("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")


def test_no_row_gets_another_number_by_a_rewrite(renumbering: Store) -> None:
    known = renumbering.matches(by_id("mem-of-the-key"))
    renumbering.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    run = renumbering.purge(by_id("mem-of-the-key"), knowing=known)
    assert named(run.before) == ["memories.db (gap in a page)"]
    assert run.is_clean
    assert renumbering.holding(SECRET) == []


def test_a_rewrite_that_would_number_rows_anew_is_left_undone_while_others_are_there(
    renumbering: Store,
) -> None:
    renumbering.run("PRAGMA journal_mode = WAL")
    known = renumbering.matches(by_id("mem-of-the-key"))
    renumbering.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    with closing(renumbering.connect()) as other:
        other.execute("SELECT count(*) FROM memories").fetchone()
        run = renumbering.purge(by_id("mem-of-the-key"), knowing=known)
        assert [item.problem for item in of(NotChecked, run.undone)] == [ProblemCode.UNSUPPORTED]
        assert not run.is_clean
    again = renumbering.purge(by_id("mem-of-the-key"), knowing=known)
    assert again.is_clean
    assert renumbering.holding(SECRET) == []
