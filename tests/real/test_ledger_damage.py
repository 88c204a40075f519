"""Ledgers that were damaged, altered or mixed up: each gives one clear sentence, never a lie."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from purge.errors import LedgerFault, Locked
from purge.ledger import Event, EventKind, KeyState, Ledger, NewRequest, StepRecord
from purge.ledger import storage as storage_module
from purge.state import State
from purge.targets import Target, TargetKind

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
TARGETS = (Target(0, TargetKind.PHRASE, "the otter sleeps in the boathouse"),)


def clock() -> datetime:
    return START + timedelta(days=1)


def new_request(sites: int = 2) -> NewRequest:
    return NewRequest("was wrong", "ines", TARGETS, {f"site{n}": "jsonl" for n in range(sites)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "l" / "ledger.db"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "key"


@pytest.fixture
def request_id(path: Path, key_file: Path) -> str:
    """A ledger with one request that went some way, and is closed as files."""
    return fill(path, key_file)


def fill(path: Path, key_file: Path) -> str:
    with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
        id = ledger.create_request(new_request()).id
        ledger.seal(id, "plan", {"n": 1})
        ledger.append([Event(EventKind.INTENT, id, "site0", {"n": 1})])
        ledger.append([StepRecord("jsonl", State.CONFIRMED_DELETED).event(id, "site0")])
        ledger.append([Event(EventKind.RUN_FINISHED)])
    return id


def open_to_write(path: Path, key_file: Path) -> Ledger:
    return Ledger.open_existing(path, key_file, clock=clock)


def first_fault(path: Path, key_file: Path) -> str:
    """What the check says; it reads only, so opening has not said it before."""
    with Ledger.open_read_only(path, key_file) as ledger:
        outcome = ledger.verify()
    assert not outcome.ok
    assert outcome.first_fault is not None
    return outcome.first_fault


def sentence_of(fault: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(fault.value)
    assert text.endswith((".", "again.", "done."))
    assert "\n" not in text
    assert "boathouse" not in text
    return text


# Whole files


@pytest.mark.parametrize("part", ["ledger.db", "ledger.keys.db"])
@pytest.mark.parametrize("kept", [1, 15, 50, 100, 4096, -4096, -1])
def test_a_file_that_was_cut_short(
    path: Path, key_file: Path, request_id: str, part: str, kept: int
) -> None:
    victim = path.with_name(part)
    content = victim.read_bytes()
    victim.write_bytes(content[:kept])
    for open_it in (open_to_write, Ledger.open_read_only):
        with pytest.raises(LedgerFault, match="cut short") as fault:
            open_it(path, key_file).verify()
        sentence_of(fault)
    assert victim.read_bytes() == content[:kept]


def test_an_emptied_ledger_is_not_begun_anew(path: Path, key_file: Path, request_id: str) -> None:
    path.write_bytes(b"")
    with pytest.raises(LedgerFault, match="missing or empty"):
        Ledger.create_or_open(path, key_file, clock=clock)
    path.unlink()
    with pytest.raises(LedgerFault, match="missing or empty"):
        Ledger.create_or_open(path, key_file, clock=clock)
    assert not path.exists()


@pytest.mark.parametrize("make", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_missing_keys_are_not_made_anew(
    path: Path, key_file: Path, request_id: str, make: Callable[[Path], object]
) -> None:
    keys = path.with_name("ledger.keys.db")
    make(keys)
    with pytest.raises(LedgerFault, match=r"key database .* is missing"):
        Ledger.create_or_open(path, key_file, clock=clock)
    with pytest.raises(LedgerFault, match=r"key database .* is missing"):
        open_to_write(path, key_file)
    with Ledger.open_read_only(path, key_file) as ledger:
        assert ledger.request(request_id) is not None
        with pytest.raises(LedgerFault, match=r"key database .* is missing"):
            ledger.targets(request_id)
        with pytest.raises(LedgerFault, match=r"key database .* is missing"):
            ledger.verify()
    assert not keys.exists() or keys.stat().st_size == 0


def test_a_missing_key_file_is_not_made_anew(path: Path, key_file: Path, request_id: str) -> None:
    key_file.unlink()
    for make in (Ledger.create_or_open, Ledger.open_existing):
        with pytest.raises(LedgerFault, match=r"key file .* is missing"):
            make(path, key_file, clock=clock)
    assert not key_file.exists()


def test_another_key_file(path: Path, key_file: Path, request_id: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    fill(other / "l.db", other / "key")
    for make in (Ledger.create_or_open, Ledger.open_existing):
        with pytest.raises(LedgerFault, match="not the one that this ledger was made with"):
            make(path, other / "key", clock=clock)
    with (
        Ledger.open_read_only(path, other / "key") as ledger,
        pytest.raises(LedgerFault, match="not the one that this ledger was made with"),
    ):
        ledger.targets(request_id)


@pytest.mark.parametrize("content", [b"", b"hello", b"aGVsbG8=\n", b"\xff" * 44, b"A" * 4000])
def test_a_damaged_key_file(path: Path, key_file: Path, request_id: str, content: bytes) -> None:
    key_file.write_bytes(content)
    with pytest.raises(LedgerFault, match="holds no key"):
        open_to_write(path, key_file)


def test_a_key_file_that_others_can_read(path: Path, key_file: Path, request_id: str) -> None:
    key_file.chmod(0o640)
    with pytest.raises(LedgerFault, match="chmod 600"):
        open_to_write(path, key_file)


def test_keys_of_another_ledger_with_the_same_key_file(
    path: Path, key_file: Path, request_id: str, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "ledger.db"
    fill(other, key_file)
    shutil.copy(other.with_name("ledger.keys.db"), path.with_name("ledger.keys.db"))
    with pytest.raises(LedgerFault, match="do not belong together"):
        open_to_write(path, key_file)
    assert first_fault(path, key_file)


@pytest.mark.parametrize("content", [b"SQLite format 2\0" + b"x" * 200, b"# notes\n" * 40, b"PK"])
@pytest.mark.parametrize("part", ["ledger.db", "ledger.keys.db"])
def test_a_file_of_another_program_is_left_alone(
    path: Path, key_file: Path, request_id: str, part: str, content: bytes
) -> None:
    victim = path.with_name(part)
    victim.write_bytes(content)
    for make in (Ledger.create_or_open, Ledger.open_existing):
        with pytest.raises(LedgerFault, match="belongs to another program"):
            make(path, key_file, clock=clock)
    assert victim.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(path: Path, key_file: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY)")
    content = path.read_bytes()
    with pytest.raises(LedgerFault, match="belongs to another program"):
        Ledger.create_or_open(path, key_file, clock=clock)
    assert path.read_bytes() == content


def test_a_folder_in_place_of_the_ledger(path: Path, key_file: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(LedgerFault, match="is not a file"):
        Ledger.create_or_open(path, key_file, clock=clock)


def test_a_file_in_place_of_the_folder(path: Path, key_file: Path) -> None:
    path.parent.write_bytes(b"")
    with pytest.raises(LedgerFault, match="not a folder"):
        Ledger.create_or_open(path, key_file, clock=clock)


@pytest.mark.parametrize("part", ["ledger.db", "ledger.keys.db"])
def test_a_newer_ledger_is_refused(path: Path, key_file: Path, request_id: str, part: str) -> None:
    with closing(sqlite3.connect(path.with_name(part))) as connection:
        connection.execute("PRAGMA user_version = 99")
    for open_it in (open_to_write, Ledger.open_read_only):
        with pytest.raises(LedgerFault, match="newer version of purge"):
            open_it(path, key_file).verify()


@pytest.mark.parametrize("part", ["ledger.db", "ledger.keys.db"])
def test_reading_does_not_bring_up_to_date(
    path: Path, key_file: Path, request_id: str, part: str
) -> None:
    with closing(sqlite3.connect(path.with_name(part))) as connection:
        connection.execute("PRAGMA user_version = 0")
    content = path.with_name(part).read_bytes()
    with pytest.raises(LedgerFault, match="older version of purge"):
        Ledger.open_read_only(path, key_file).verify()
    assert path.with_name(part).read_bytes() == content


# What the machine does


def test_another_writer_that_does_not_let_go(
    path: Path, key_file: Path, request_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "BUSY_MILLISECONDS", 50)
    with open_to_write(path, key_file) as ledger, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Locked, match="try again"):
            ledger.append([Event(EventKind.FACT, request_id)])
        assert ledger.request(request_id) is not None
        other.execute("ROLLBACK")
        ledger.append([Event(EventKind.FACT, request_id)])


def test_a_key_that_could_not_be_destroyed_is_destroyed_when_it_can_be(
    path: Path, key_file: Path, request_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "BUSY_MILLISECONDS", 50)
    keys = path.with_name("ledger.keys.db")
    with closing(sqlite3.connect(keys)) as raw:
        (wrapped,) = raw.execute("SELECT wrapped FROM keys").fetchone()
    with closing(sqlite3.connect(keys)) as other:
        ledger = open_to_write(path, key_file)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Locked):
            ledger.destroy_key(request_id)
        with pytest.raises(Locked):
            ledger.close()
    with Ledger.open_read_only(path, key_file) as reader:
        view = reader.request(request_id)
        assert view is not None
        assert view.key is KeyState.DESTROYING
        assert reader.targets(request_id) is None
        assert reader.verify().ok
    assert wrapped in keys.read_bytes()
    with open_to_write(path, key_file) as ledger:
        view = ledger.request(request_id)
        assert view is not None
        assert view.key is KeyState.DESTROYED
        assert ledger.verify().ok
    assert wrapped[:20] not in keys.read_bytes()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond ``size`` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fails_loses_nothing_that_was_written(
    path: Path, key_file: Path, request_id: str
) -> None:
    with open_to_write(path, key_file) as ledger:
        ledger.append([Event(EventKind.FACT, request_id, None, {"n": 0})])
        size = path.with_name("ledger.db-wal").stat().st_size
        events = ledger.verify().events
        with (
            largest_file(size + 2_000),
            pytest.raises(LedgerFault, match="disk failed") as fault,
        ):
            ledger.append([Event(EventKind.FACT, request_id, None, {"n": "x" * 20_000})])
        sentence_of(fault)
        assert ledger.verify().events == events
        ledger.append([Event(EventKind.FACT, request_id, None, {"n": 2})])
        assert ledger.verify().ok
        assert ledger.verify().events == events + 1


@pytest.mark.parametrize("replaced", [True, False])
def test_a_ledger_that_is_taken_away_while_it_is_open(
    path: Path, key_file: Path, request_id: str, replaced: bool
) -> None:
    content = path.read_bytes()
    with open_to_write(path, key_file) as ledger:
        path.unlink()
        if replaced:
            path.write_bytes(content)
        with pytest.raises(LedgerFault, match="moved, replaced or deleted"):
            ledger.append([Event(EventKind.FACT, request_id)])


def test_a_full_disk(path: Path, key_file: Path, request_id: str) -> None:
    with open_to_write(path, key_file) as ledger:
        # SQLite's own limit takes the way that a full disk takes.
        raw = ledger._connection
        raw.execute("PRAGMA max_page_count = 1")
        before = ledger.verify()
        with pytest.raises(LedgerFault, match="disk is full") as fault:
            ledger.append([Event(EventKind.FACT, request_id, None, {"n": "x" * 200_000})])
        sentence_of(fault)
        assert ledger.verify() == before
