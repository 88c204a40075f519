"""Writing to an SQLite file so that nothing of what goes is left in it."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from purge.errors import Permanent, Transient
from purge.state import ProblemCode
from purge.testing import breakages
from purge_adapters import _sqlite_write
from purge_adapters._sqlite import (
    JOURNAL,
    beside,
    checkpoint,
    drop_journal,
    freelist_pages,
    overwrite_free_pages,
    rewrite,
    vacuum,
    would_renumber,
    writing,
)
from purge_adapters._sqlite_pages import FREE, Pages

SECRET = "a secret that is long enough to be found again "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


def make(path: Path, *statements: str, journal: str = "DELETE") -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, said TEXT)")
        for number in range(40):
            connection.execute("INSERT INTO notes (said) VALUES (?)", (SECRET * 200 + str(number),))
        for statement in statements:
            connection.execute(statement)


def secrets(path: Path) -> int:
    return path.read_bytes().count(SECRET.encode())


def free_secrets(path: Path) -> int:
    """Count the secrets in free pages."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage, name FROM sqlite_master WHERE rootpage > 0"
        pages = Pages(path.read_bytes(), dict(connection.execute(query).fetchall()))
    return pages.unused_bytes().get(FREE, b"").count(SECRET.encode())


def test_a_connection_overwrites_and_follows_foreign_keys(path: Path) -> None:
    make(path)
    with writing(path, 0.1) as connection:
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert connection.execute("PRAGMA temp_store").fetchone() == (2,)
        connection.execute("DELETE FROM notes WHERE id > 1")
    # One row is left; a page border may cut a secret in two.
    assert 190 < secrets(path) <= 200


def test_a_library_that_does_not_overwrite_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            return super().execute(sql.replace("secure_delete = ON", "secure_delete = OFF"))

    def connect(path: Path, mode: str, timeout_s: float = 0.0) -> sqlite3.Connection:
        return sqlite3.connect(path, factory=Careless)

    make(path)
    monkeypatch.setattr(_sqlite_write, "connect", connect)
    with pytest.raises(Permanent) as raised, writing(path, 0.1):
        pytest.fail("it was opened")
    assert raised.value.problem == ProblemCode.UNSUPPORTED


def test_what_is_not_committed_is_rolled_back(path: Path) -> None:
    make(path)

    def fail() -> None:
        with writing(path, 0.1) as connection:
            connection.execute("BEGIN")
            connection.execute("DELETE FROM notes")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with writing(path, 0.1) as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (40,)


def test_a_lock_is_waited_for_as_long_as_is_said(path: Path) -> None:
    make(path)
    with breakages.sqlite_locked(path):
        began = time.monotonic()
        with pytest.raises(Transient) as raised, writing(path, 0.3) as connection:
            connection.execute("BEGIN IMMEDIATE")
        assert 0.25 < time.monotonic() - began < 5
    assert raised.value.problem == ProblemCode.BUSY


def test_a_missing_database_is_not_made(path: Path) -> None:
    with pytest.raises(Permanent), writing(path, 0.1):
        pytest.fail("it was opened")
    assert not path.exists()


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_free_pages_are_overwritten_and_nothing_else_changes(path: Path, journal: str) -> None:
    make(path, "DELETE FROM notes WHERE id > 1", journal=journal)
    with writing(path, 0.1) as connection:
        assert freelist_pages(connection) > 50
        if journal == "DELETE":
            assert free_secrets(path) > 5000
        schema = connection.execute("SELECT * FROM sqlite_master").fetchall()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        overwrite_free_pages(connection)
        assert checkpoint(connection)
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == schema
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA page_count").fetchone()[0] <= pages + 3
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    assert free_secrets(path) == 0


def test_the_filler_takes_a_name_that_is_free(path: Path) -> None:
    make(path, "CREATE TABLE Purge_Filler_0 (x)", "DELETE FROM notes WHERE id > 1")
    with writing(path, 0.1) as connection:
        overwrite_free_pages(connection)
        names = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert names == [("notes",), ("Purge_Filler_0",)]
    assert free_secrets(path) == 0


def test_a_reader_makes_a_checkpoint_fail_without_an_error(path: Path) -> None:
    make(path, journal="WAL")
    with (
        closing(sqlite3.connect(path)),
        breakages.sqlite_locked(path, "DEFERRED"),
        writing(path, 0.1) as connection,
    ):
        connection.execute("DELETE FROM notes")
        assert checkpoint(connection) is False
    with writing(path, 0.1) as connection:
        assert checkpoint(connection) is True


def test_a_journal_that_was_kept_goes(path: Path) -> None:
    make(path, journal="PERSIST")
    assert beside(path, JOURNAL).stat().st_size > 0
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 7")
        connection.execute("PRAGMA journal_mode = PERSIST")
        connection.execute("UPDATE notes SET said = 'x' WHERE id = 1")
    assert SECRET.encode() in beside(path, JOURNAL).read_bytes()
    with writing(path, 0.1) as connection:
        drop_journal(connection)
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)
    assert not beside(path, JOURNAL).exists()


def test_a_rewrite_leaves_no_free_space(path: Path) -> None:
    make(path, "DELETE FROM notes WHERE id > 1")
    with writing(path, 0.1) as connection:
        vacuum(connection)
    assert 190 < secrets(path) <= 200


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_rewrite_gives_no_row_another_number(path: Path, journal: str) -> None:
    make(
        path,
        "CREATE TABLE lines (said TEXT)",
        "INSERT INTO lines SELECT said FROM notes",
        "DELETE FROM lines WHERE rowid % 3 = 0",
        "DELETE FROM notes WHERE id > 1",
        journal=journal,
    )
    query = "SELECT rowid, said FROM lines ORDER BY rowid"
    assert would_renumber(path)
    with writing(path, 0.2) as connection:
        before = connection.execute(query).fetchall()
        assert rewrite(connection, renumbers=True) is None
        assert connection.execute(query).fetchall() == before
        assert freelist_pages(connection) == 0
        assert checkpoint(connection)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        # Others may write again.
        with closing(sqlite3.connect(path, timeout=0.1)) as other, other:
            other.execute("INSERT INTO lines VALUES ('new')")
        assert connection.execute("PRAGMA journal_mode").fetchone() == (journal.lower(),)


def test_vacuum_alone_would_give_rows_other_numbers(path: Path) -> None:
    make(
        path,
        "CREATE TABLE lines (said TEXT)",
        "INSERT INTO lines VALUES ('a'), ('b')",
        "DELETE FROM lines WHERE said = 'a'",
    )
    assert would_renumber(path)
    with writing(path, 0.1) as connection:
        vacuum(connection)
        # If this ever fails, SQLite has become kinder and the long way may go.
        assert connection.execute("SELECT rowid FROM lines").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "declared",
    [
        "id INTEGER PRIMARY KEY, said TEXT",
        "id TEXT PRIMARY KEY, said TEXT",
        "id TEXT UNIQUE, said TEXT CHECK (length(said) > 0)",
        "id TEXT PRIMARY KEY, said TEXT) WITHOUT ROWID --",
    ],
)
def test_vacuum_leaves_the_numbers_of_rows_that_have_a_key(path: Path, declared: str) -> None:
    make(
        path,
        f"CREATE TABLE lines ({declared}\n)".replace("--\n)", ""),
        "INSERT INTO lines VALUES (1, 'a'), (2, 'b')",
        "DELETE FROM lines WHERE said = 'a'",
    )
    assert not would_renumber(path)


def test_a_rewrite_that_cannot_have_the_database_alone_is_left_undone(path: Path) -> None:
    make(
        path,
        "CREATE TABLE lines (said TEXT)",
        "INSERT INTO lines VALUES ('a'), ('b')",
        "DELETE FROM lines WHERE said = 'a'",
        journal="WAL",
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("SELECT count(*) FROM lines").fetchone()
        with writing(path, 0.1) as connection:
            assert "others hold the database open" in str(rewrite(connection, renumbers=True))
            assert connection.execute("SELECT rowid FROM lines").fetchall() == [(2,)]
        other.execute("INSERT INTO lines VALUES ('c')")
        assert other.execute("SELECT rowid FROM lines").fetchall() == [(2,), (3,)]
