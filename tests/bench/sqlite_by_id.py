"""One request by id over 100,000 memories in SQLite, against plain calls that reach the same bytes.

The plain calls do by hand what the request promises: read the row, see its bytes in the file,
delete under ``secure_delete``, empty the write-ahead log, read back through a new connection, and
see that the bytes are gone. Start-up is not counted: both run in this process, once warm.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

import purge
from tests.bench._measure import say, seconds, show

MEMORIES = 100_000
TURNS = 5
MANIFEST = """
purge: 1
name: bench
sites:
  memories: {adapter: sql, url: "sqlite:///memories.db", table: memories, id: id, text: [content]}
"""


def main() -> None:
    """Print the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build(place / "planted.db")
        by_hand_times, purge_times = [], []
        for turn in range(TURNS + 1):
            wanted = f"mem-{turn * 17_011:06}"
            ours, theirs = place / f"ours-{turn}", place / f"theirs-{turn}"
            for copy in (ours, theirs):
                copy.mkdir()
                shutil.copy(place / "planted.db", copy / "memories.db")
            (ours / "purge.yaml").write_text(MANIFEST)
            hand = seconds(partial(by_hand, theirs / "memories.db", wanted))
            mine = seconds(partial(by_purge, ours, wanted))
            if turn:  # The first turn pays for the imports.
                by_hand_times.append(hand)
                purge_times.append(mine)
            shutil.rmtree(ours)
            shutil.rmtree(theirs)
        size = (place / "planted.db").stat().st_size
        say(f"{MEMORIES} rows, {size / 1e6:.0f} MB")
    times = {"plain calls": min(by_hand_times), "purge request --id": min(purge_times)}
    show(times, "plain calls", {"purge request --id": 3.0})


def build(path: Path) -> None:
    """Make a database of memories, each with some words of its own."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, source TEXT)")
        rows = (
            (
                f"mem-{n:06}",
                f"memory {n}: the kettle number {n * 7919 % 100_003} boils " * 4,
                f"l{n}",
            )
            for n in range(MEMORIES)
        )
        with db:
            db.executemany("INSERT INTO memories VALUES (?, ?, ?)", rows)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def by_hand(path: Path, id: str) -> None:
    """Delete one row and prove it, with plain calls."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (content,) = db.execute("SELECT content FROM memories WHERE id = ?", (id,)).fetchone()
        assert content.encode() in path.read_bytes()
        db.execute("PRAGMA secure_delete=ON")
        db.execute("DELETE FROM memories WHERE id = ?", (id,))
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT 1 FROM memories WHERE id = ?", (id,)).fetchone() is None
    for file in (path, path.with_name(path.name + "-wal")):
        if file.exists():
            assert content.encode() not in file.read_bytes()


def by_purge(folder: Path, id: str) -> None:
    """The same by purge, with ledger, plan, controls and report."""
    engine = purge.open(folder / "purge.yaml")
    outcome = engine.request([purge.id(id, "memories")], apply=True)
    assert outcome.state == "confirmed-deleted", outcome
