"""Looking at an SQLite file: what is seen, and that nothing of it shows on disk."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from purge.errors import Permanent, StoreError, Transient
from purge.state import ProblemCode
from purge.testing import breakages
from purge_adapters import _sqlite
from purge_adapters._sqlite import (
    JOURNAL,
    WAL,
    beside,
    checkpoint,
    family,
    looking,
    moment,
    reading,
    writing,
)

AWKWARD = "a b?mode=rw#%41é.db"


def make(path: Path, journal: str = "DELETE", rows: int = 3) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, said TEXT)")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO notes (said) VALUES (?)", [(f"note {n}",) for n in range(rows)]
        )
        connection.execute("COMMIT")
    return path


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM notes").fetchone()[0])


def age(folder: Path) -> dict[str, tuple[object, ...]]:
    """Make access times such that any read would move them; return the state of all files."""
    for path in folder.iterdir():
        found = path.stat()
        os.utime(path, ns=(found.st_mtime_ns - 10**9, found.st_mtime_ns))
    return state(folder)


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.iterdir()):
        stat = path.stat()
        times = (stat.st_atime_ns, stat.st_mtime_ns, stat.st_ctime_ns)
        found[path.name] = (stat.st_ino, stat.st_size, *times, breakages.read_quietly(path))
    return found


def with_log(folder: Path) -> Path:
    """A database whose last rows are in its log only, left behind by a crash."""
    path = make(folder / "live.db", "WAL")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO notes (said) VALUES ('in the log')")
        copy = folder / "copy.db"
        for suffix in ("", WAL):
            beside(copy, suffix).write_bytes(beside(path, suffix).read_bytes())
    path.unlink()
    return copy


def with_hot_journal(folder: Path) -> Path:
    """A database in the middle of a transaction that will never be committed."""
    path = make(folder / "live.db", rows=20_000)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 10")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM notes WHERE id < 19000")
        connection.execute("UPDATE notes SET said = 'never'")
        copy = folder / "copy.db"
        for suffix in ("", JOURNAL):
            beside(copy, suffix).write_bytes(beside(path, suffix).read_bytes())
        connection.execute("ROLLBACK")
    assert moment(copy).hot_journal
    path.unlink()
    return copy


def with_empty_log(folder: Path) -> Path:
    path = make(folder / "copy.db", "WAL")
    beside(path, WAL).write_bytes(b"")
    return path


def with_kept_journal(folder: Path) -> Path:
    path = make(folder / "copy.db")
    beside(path, JOURNAL).write_bytes(bytes(600))
    return path


@pytest.mark.parametrize(
    ("prepare", "rows"),
    [
        (lambda folder: make(folder / AWKWARD), 3),
        (lambda folder: make(folder / "copy.db", "WAL"), 3),
        (with_log, 4),
        (with_hot_journal, 20_000),
        (with_empty_log, 3),
        (with_kept_journal, 3),
    ],
)
@pytest.mark.parametrize("private", [False, True])
def test_a_look_sees_what_an_application_would_and_leaves_no_mark(
    tmp_path: Path, prepare: Callable[[Path], Path], rows: int, private: bool
) -> None:
    path = prepare(tmp_path)
    before = age(tmp_path)
    with reading(path, private=private) as connection:
        assert count(connection) == rows
    assert state(tmp_path) == before


@pytest.mark.parametrize("prepare", [with_log, with_hot_journal, with_empty_log])
def test_a_look_at_rows_and_bytes_leaves_no_mark(
    tmp_path: Path, prepare: Callable[[Path], Path]
) -> None:
    path = prepare(tmp_path)
    before = age(tmp_path)
    with looking(path) as seen:
        assert count(seen.connection) > 0
        assert bytes(seen.data[:]) == before[path.name][-1]
        for suffix, content in ((WAL, seen.log), (JOURNAL, seen.journal)):
            expected = before.get(path.name + suffix, (b"",))[-1]
            assert bytes(content[:]) == expected
    assert state(tmp_path) == before


def test_what_is_done_in_a_private_look_stays_private(tmp_path: Path) -> None:
    path = make(tmp_path / "notes.db")
    before = state(tmp_path)
    with reading(path, private=True) as connection:
        connection.execute("DELETE FROM notes")
        connection.execute("VACUUM")
        assert count(connection) == 0
    assert state(tmp_path) == before


def test_a_large_file_is_read_in_place_and_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite, "MEMORY_LIMIT", 0)
    path = make(tmp_path / AWKWARD, "WAL")
    with reading(path) as connection:
        assert count(connection) == 3
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("DELETE FROM notes")
    assert [each.name for each in tmp_path.iterdir()] == [AWKWARD]
    with looking(path) as seen:
        assert count(seen.connection) == 3
        assert seen.data.find(b"note 2") > 0
        assert seen.data.find(b"note 3") == -1


def test_a_file_that_moves_while_it_is_read_in_place_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite, "MEMORY_LIMIT", 0)
    path = make(tmp_path / "notes.db")

    def look() -> None:
        with reading(path) as connection:
            count(connection)
            with closing(sqlite3.connect(path)) as other, other:
                other.execute("INSERT INTO notes (said) VALUES ('new')")

    with pytest.raises(Transient) as raised:
        look()
    assert raised.value.problem == ProblemCode.CHANGED_UNDERNEATH


def test_a_long_look_at_a_file_that_is_being_written_to_is_not_spoilt(tmp_path: Path) -> None:
    path = make(tmp_path / "notes.db")
    with reading(path, at_leisure=True) as connection:
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("INSERT INTO notes (said) VALUES ('new')")
        assert count(connection) == 3


def test_a_log_that_grows_is_no_hindrance_and_one_that_starts_anew_is(tmp_path: Path) -> None:
    path = make(tmp_path / "notes.db", "WAL")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO notes (said) VALUES ('one')")
        before = moment(path)
        connection.execute("INSERT INTO notes (said) VALUES ('two')")
        assert before.appended(moment(path))
        assert checkpoint(connection)
        assert not before.appended(moment(path))
        connection.execute("INSERT INTO notes (said) VALUES ('three')")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        before = moment(path)
        # All frames are in the database, so that the next one is written over the first.
        connection.execute("INSERT INTO notes (said) VALUES ('four')")
        assert moment(path).files[0] == before.files[0]
        assert not before.appended(moment(path))


def test_a_database_that_never_stands_still_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_log(tmp_path)
    monkeypatch.setattr(_sqlite, "PATIENCE_S", 0.1)
    real = _sqlite._copy_file

    def copy(source: Path, target: Path) -> None:
        real(source, target)
        os.utime(path, ns=(0, time.time_ns()))

    monkeypatch.setattr(_sqlite, "_copy_file", copy)
    with pytest.raises(Transient), reading(path):
        pytest.fail("it was read")


def damaged(folder: Path) -> Iterator[tuple[Path, ProblemCode]]:
    yield folder / "missing.db", ProblemCode.UNREACHABLE
    yield folder / "missing" / "notes.db", ProblemCode.UNREACHABLE
    text = folder / "text.db"
    text.write_bytes(b"no database, but a letter" * 100)
    yield text, ProblemCode.CORRUPT
    torn = make(folder / "torn.db", rows=2000)
    os.truncate(torn, torn.stat().st_size // 2)
    yield torn, ProblemCode.CORRUPT
    short = folder / "short.db"
    short.write_bytes(make(folder / "whole.db").read_bytes()[:50])
    yield short, ProblemCode.CORRUPT
    (folder / "folder.db").mkdir()
    yield folder / "folder.db", ProblemCode.UNSUPPORTED
    os.mkfifo(folder / "pipe.db")
    yield folder / "pipe.db", ProblemCode.UNSUPPORTED
    (folder / "link.db").symlink_to(folder / "whole.db")
    yield folder / "link.db", ProblemCode.UNSUPPORTED


def test_what_cannot_be_read_is_called_by_its_name(tmp_path: Path) -> None:
    for path, problem in damaged(tmp_path):
        for look in (reading, looking):
            with pytest.raises(StoreError) as raised, look(path) as seen:
                count(seen if isinstance(seen, sqlite3.Connection) else seen.connection)
            assert (path.name, raised.value.problem) == (path.name, problem)
            assert path.name not in str(raised.value)


def test_an_empty_file_is_an_empty_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.write_bytes(b"")
    with reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_the_files_with_content_are_named(tmp_path: Path) -> None:
    path = with_log(tmp_path)
    beside(path, "-shm").write_bytes(b"")
    assert [each.name for each in family(path)] == ["copy.db", "copy.db-wal"]


def test_an_error_of_the_body_is_passed_on_as_it_is(tmp_path: Path) -> None:
    path = make(tmp_path / "notes.db")
    with pytest.raises(ZeroDivisionError), reading(path):
        raise ZeroDivisionError
    with pytest.raises(Permanent, match="refused a statement"), reading(path) as connection:
        connection.execute("SELECT * FROM a_secret_name")


def test_a_look_goes_on_while_someone_writes(tmp_path: Path) -> None:
    path = make(tmp_path / "notes.db")
    for mode in ("IMMEDIATE", "EXCLUSIVE"):
        with breakages.sqlite_locked(path, mode), reading(path) as connection:
            assert count(connection) == 3
    with writing(path, 0.1) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with reading(path) as connection:
            assert count(connection) == 3
