"""Ledgers that were altered by someone who knows SQLite: found, and said which event it is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from purge.errors import LedgerFault
from purge.ledger import Event, EventKind, Ledger, NewRequest, StepRecord
from purge.ledger.reader import LedgerReader
from purge.state import State
from purge.targets import Target, TargetKind

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where many ledgers are made quickly; whether a disk keeps them is not the question here."""
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


@contextmanager
def altered(path: Path) -> Iterator[sqlite3.Connection]:
    """Alter the database as someone would who knows SQLite and not the key file."""
    with closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)


# Events


def test_events_cannot_be_changed_by_mistake(path: Path, key_file: Path, request_id: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in (
            "UPDATE events SET site = 'x' WHERE seq = 3",
            "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
            "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 3",
            "INSERT INTO events SELECT seq + 90, at, kind, request, site, body, prev_hash, hash"
            " FROM events WHERE seq = 3",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
    with open_to_write(path, key_file) as ledger:
        assert ledger.verify().ok


@pytest.mark.parametrize("keep", [1, 2, 5, -2, -1])
def test_events_taken_off_the_end(path: Path, key_file: Path, request_id: str, keep: int) -> None:
    with altered(path) as raw:
        last = raw.execute("SELECT max(seq) FROM events").fetchone()[0]
        raw.execute("DELETE FROM events WHERE seq > ?", (keep % (last + 1) - (keep < 0),))
    with pytest.raises(LedgerFault, match="once had"):
        open_to_write(path, key_file)
    assert "once had" in first_fault(path, key_file)


def test_an_older_copy_of_the_ledger(path: Path, key_file: Path, request_id: str) -> None:
    older = path.read_bytes()
    with open_to_write(path, key_file) as ledger:
        ledger.append([Event(EventKind.REQUEST_WITHDRAWN, request_id)])
    path.write_bytes(older)
    with pytest.raises(LedgerFault, match="older copy"):
        open_to_write(path, key_file)
    assert "older copy" in first_fault(path, key_file)


def test_an_older_copy_of_the_keys_brings_no_key_back(
    path: Path, key_file: Path, request_id: str
) -> None:
    keys = path.with_name("ledger.keys.db")
    older = keys.read_bytes()
    with open_to_write(path, key_file) as ledger:
        ledger.destroy_key(request_id)
        missing = ledger.create_request(new_request()).id
    keys.write_bytes(older)
    assert "is there again" in first_fault(path, key_file)
    with open_to_write(path, key_file) as ledger:
        assert ledger.targets(request_id) is None
        with pytest.raises(LedgerFault, match="is missing, though it was not destroyed"):
            ledger.targets(missing)


def test_an_event_that_was_changed_together_with_its_hash(
    path: Path, key_file: Path, request_id: str
) -> None:
    from purge.ledger.events import digest_of_event

    with altered(path) as raw:
        row = raw.execute("SELECT * FROM events WHERE kind = 'intent'").fetchone()
        seq, at, kind, request, site, _, previous, _ = row
        digest = digest_of_event(seq, at, kind, request, site, '{"n":2}', previous)
        raw.execute("UPDATE events SET body = '{\"n\":2}', hash = ? WHERE seq = ?", (digest, seq))
    assert first_fault(path, key_file) == f"Event {seq + 1} does not follow the one before it."


def test_a_chain_that_was_remade(path: Path, key_file: Path, request_id: str) -> None:
    """Every hash is right again after a change in the middle: only the anchor tells."""
    from purge.ledger.events import digest_of_event

    with altered(path) as raw:
        raw.execute("UPDATE events SET at = '2030' || substr(at, 5) WHERE seq = 3")
        rows = raw.execute("SELECT * FROM events ORDER BY seq").fetchall()
        previous = rows[1][7]
        for row in rows[2:]:
            seq, at, kind, request, site, body = row[:6]
            digest = digest_of_event(seq, at, kind, request, site, body, previous)
            raw.execute(
                "UPDATE events SET prev_hash = ?, hash = ? WHERE seq = ?",
                (previous, digest, seq),
            )
            previous = digest
    with pytest.raises(LedgerFault, match="the chain was remade"):
        open_to_write(path, key_file)
    assert "the chain was remade" in first_fault(path, key_file)


def test_an_anchor_that_was_made_without_the_key_file(
    path: Path, key_file: Path, request_id: str
) -> None:
    with altered(path) as raw:
        raw.execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
        last = raw.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    with closing(sqlite3.connect(path.with_name("ledger.keys.db"))) as keys, keys:
        keys.execute("UPDATE anchor SET events = ?, head = ?", last)
    with pytest.raises(LedgerFault, match="note of the ledger's end was altered"):
        open_to_write(path, key_file)
    assert "note of the ledger's end was altered" in first_fault(path, key_file)


@pytest.mark.parametrize("value", [None, 0, 1, 5, "ü", b"\xff\x00", "", -3, 2**40])
@pytest.mark.parametrize(
    "column", ["anchor.events", "anchor.head", "anchor.mac", "about.value", "keys.wrapped"]
)
def test_keys_that_were_altered(
    path: Path, key_file: Path, request_id: str, column: str, value: object
) -> None:
    table, name = column.split(".")
    with closing(sqlite3.connect(path.with_name("ledger.keys.db"))) as raw, raw:
        try:
            raw.execute(f"UPDATE {table} SET {name} = ?", (value,))
        except sqlite3.IntegrityError:
            return  # SQLite does not take it
    for open_it in (open_to_write, Ledger.open_read_only):
        with pytest.raises(LedgerFault):
            use(open_it(path, key_file), request_id)


def test_an_anchor_that_was_deleted(path: Path, key_file: Path, request_id: str) -> None:
    with altered(path) as raw:
        raw.execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    with closing(sqlite3.connect(path.with_name("ledger.keys.db"))) as keys, keys:
        keys.execute("DELETE FROM anchor")
    for open_it in (open_to_write, Ledger.open_read_only):
        with pytest.raises(LedgerFault, match="note of the ledger's end was altered"):
            use(open_it(path, key_file), request_id)


def use(ledger: Ledger, request: str) -> None:
    with ledger:
        outcome = ledger.verify()
        if not outcome.ok:
            raise LedgerFault(outcome.first_fault)
        ledger.targets(request)


COLUMNS = ("at", "kind", "request", "site", "body", "prev_hash", "hash")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    fill(folder / "ledger.db", folder / "key")
    return folder


@contextmanager
def copy_of(original: Path) -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        copy = Path(folder) / "l"
        shutil.copytree(original, copy)
        yield copy / "ledger.db", copy / "key"


@given(
    seq=st.integers(1, 9),
    column=st.sampled_from(COLUMNS),
    value=st.none() | st.text(max_size=30) | st.integers() | st.binary(max_size=9),
)
@example(seq=9, column="body", value='{"n":2}')
@example(seq=2, column="site", value="")
@example(seq=7, column="at", value="2031-03-02T12:00:00+00:00")
@settings(max_examples=120, deadline=None)
def test_any_change_to_an_event_is_found(
    original: Path, seq: int, column: str, value: str | int | bytes | None
) -> None:
    with copy_of(original) as (path, key_file):
        with altered(path) as raw:
            assert raw.execute("SELECT max(seq) FROM events").fetchone()[0] >= 9
            was = raw.execute(f"SELECT {column} FROM events WHERE seq = ?", (seq,)).fetchone()[0]
            try:
                raw.execute(f"UPDATE events SET {column} = ? WHERE seq = ?", (value, seq))
            except (sqlite3.IntegrityError, UnicodeEncodeError, OverflowError):
                return  # SQLite does not take it
            now = raw.execute(f"SELECT {column} FROM events WHERE seq = ?", (seq,)).fetchone()[0]
        with Ledger.open_read_only(path, key_file) as ledger:
            outcome = ledger.verify()
        if now == was:
            assert outcome.ok
        else:
            assert not outcome.ok
            assert f"Event {seq}" in str(outcome.first_fault)
            assert outcome.events == seq - 1


@given(st.permutations(range(1, 10)))
@settings(max_examples=30, deadline=None)
def test_events_in_another_order_are_found(original: Path, order: list[int]) -> None:
    with copy_of(original) as (path, key_file):
        with altered(path) as raw:
            raw.execute("UPDATE events SET seq = seq + 1000 WHERE seq < 10")
            for place, seq in enumerate(order, 1):
                raw.execute("UPDATE events SET seq = ? WHERE seq = ?", (place, seq + 1000))
        with Ledger.open_read_only(path, key_file) as ledger:
            assert ledger.verify().ok is (order == sorted(order))


def everything(ledger: LedgerReader) -> object:
    requests = ledger.requests()
    return (
        list(ledger.events()),
        requests,
        ledger.requests(open_only=True),
        ledger.counts(open_only=False),
        [list(ledger.events(view.id)) for view in requests],
        [ledger.steps(view.id) for view in requests],
        [ledger.request(view.id) for view in requests],
    )


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_flipped_byte_is_found_or_means_nothing(original: Path, data: st.DataObject) -> None:
    with Ledger.open_read_only(original / "ledger.db", original / "key") as ledger:
        truth, targets = everything(ledger), ledger.targets(ledger.requests()[0].id)
    with copy_of(original) as (path, key_file):
        victim = path.with_name(data.draw(st.sampled_from(["ledger.db", "ledger.keys.db"])))
        content = bytearray(victim.read_bytes())
        # Most of a database is empty pages: aim at what is used, and at the rest sometimes.
        used = [at for at, byte in enumerate(content) if byte]
        at = data.draw(st.sampled_from(used) | st.integers(0, len(content) - 1))
        content[at] ^= data.draw(st.integers(1, 255))
        victim.write_bytes(content)
        try:
            with Ledger.open_read_only(path, key_file) as ledger:
                outcome = ledger.verify()
                found = everything(ledger) if outcome.ok else None
                unsealed = ledger.targets(ledger.requests()[0].id) if outcome.ok else None
        except LedgerFault:
            return
        if outcome.ok:
            assert found == truth
            assert unsealed == targets


# The projection and what is sealed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE requests SET state = 'confirmed-deleted'",
        "UPDATE requests SET open = 0",
        "UPDATE requests SET content = replace(content, 'ines', 'otto')",
        "UPDATE steps SET content = replace(content, 'accepted', 'confirmed-deleted')",
        "UPDATE steps SET site = 'other' WHERE position = 1",
        "DELETE FROM steps WHERE position = 1",
        "DELETE FROM requests",
        "INSERT INTO steps VALUES ('other', 0, 'a', '{}')",
        "INSERT INTO requests SELECT 'other', 99, open, state, key, content FROM requests",
    ],
)
def test_a_projection_that_was_altered_is_found_and_made_anew(
    path: Path, key_file: Path, request_id: str, statement: str
) -> None:
    with Ledger.open_read_only(path, key_file) as ledger:
        truth = everything(ledger)
    with closing(sqlite3.connect(path)) as raw, raw:
        assert raw.execute(statement).rowcount > 0
    assert "not what its events say" in first_fault(path, key_file)
    with open_to_write(path, key_file) as ledger:
        ledger.rebuild()
        assert ledger.verify().ok
        assert everything(ledger) == truth


@pytest.mark.parametrize("content", ["", "{}", "[]", "nonsense", '{"created": 1}'])
def test_a_projection_that_cannot_be_read(
    path: Path, key_file: Path, request_id: str, content: str
) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE requests SET content = ?", (content,))
        raw.execute("UPDATE steps SET content = ?", (content,))
    with open_to_write(path, key_file) as ledger:
        with pytest.raises(LedgerFault, match="damaged"):
            ledger.request(request_id)
        with pytest.raises(LedgerFault, match="damaged"):
            ledger.steps(request_id)
        with pytest.raises(LedgerFault, match="damaged"):
            ledger.append([Event(EventKind.FACT, request_id)])
        ledger.rebuild()
        assert ledger.request(request_id) is not None


def test_a_chain_that_does_not_hold_is_not_rebuilt_from(
    path: Path, key_file: Path, request_id: str
) -> None:
    with altered(path) as raw:
        raw.execute("UPDATE events SET site = 'site1' WHERE site = 'site0'")
    with open_to_write(path, key_file) as ledger:
        before = everything(ledger)
        with pytest.raises(LedgerFault, match="was altered"):
            ledger.rebuild()
        assert everything(ledger) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sealed SET content = zeroblob(length(content)) WHERE name = 'targets'",
        "UPDATE sealed SET content = zeroblob(3) WHERE name = 'targets'",
        "DELETE FROM sealed WHERE name = 'targets'",
        "UPDATE sealed SET content = (SELECT content FROM sealed WHERE name = 'plan')",
    ],
)
def test_sealed_content_that_was_altered(
    path: Path, key_file: Path, request_id: str, statement: str
) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        assert raw.execute(statement).rowcount > 0
    assert "sealed" in first_fault(path, key_file)
    with (
        open_to_write(path, key_file) as ledger,
        pytest.raises(LedgerFault, match=r"sealed .* was altered"),
    ):
        ledger.targets(request_id)


def test_a_key_that_was_taken_away(path: Path, key_file: Path, request_id: str) -> None:
    with closing(sqlite3.connect(path.with_name("ledger.keys.db"))) as raw, raw:
        raw.execute("DELETE FROM keys")
    assert first_fault(path, key_file) == f"The key of request {request_id} is missing."
    with (
        open_to_write(path, key_file) as ledger,
        pytest.raises(LedgerFault, match="is missing, though it was not destroyed"),
    ):
        ledger.targets(request_id)


def test_a_key_that_was_moved_to_another_request(
    path: Path, key_file: Path, request_id: str
) -> None:
    with open_to_write(path, key_file) as ledger:
        other = ledger.create_request(new_request()).id
    with closing(sqlite3.connect(path.with_name("ledger.keys.db"))) as raw, raw:
        raw.execute(
            "UPDATE keys SET wrapped = (SELECT wrapped FROM keys WHERE request = ?)"
            " WHERE request = ?",
            (other, request_id),
        )
    with (
        open_to_write(path, key_file) as ledger,
        pytest.raises(LedgerFault, match=r"key of request .* was altered"),
    ):
        ledger.targets(request_id)
