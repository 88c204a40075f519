"""One request by id over 100,000 memories in SQLite, against plain calls that reach the same bytes.

Two ways to do it by hand. The *recipe* reaches every byte, as the request does: delete under
``secure_delete``, empty the write-ahead log, rewrite the file (SQLite leaves copies of rows in the
gaps of pages, also under ``secure_delete``), empty the log again, read back through a new
connection, look at the bytes, and check the file. The *short way* leaves the rewrite and the check
out, and so proves less: it does not see what an older page split left in a gap. Start-up is not
counted: all run in this process, once warm, on a database in use and with a ledger that is there.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
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
    """Print the ratios."""
    ways: dict[str, Callable[[Path, str], None]] = {
        "the recipe by hand": partial(by_hand, thorough=True),
        "the short way by hand": partial(by_hand, thorough=False),
        "purge request --id": by_purge,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build(place / "planted.db")
        for turn in range(TURNS):
            for number, (name, act) in enumerate(ways.items()):
                copy = place / f"{turn}-{number}"
                copy.mkdir()
                shutil.copy(place / "planted.db", copy / "memories.db")
                (copy / "purge.yaml").write_text(MANIFEST)
                act(copy, "mem-000001")
                times[name].append(seconds(partial(act, copy, f"mem-{turn * 17_011 + 7:06}")))
                shutil.rmtree(copy)
        say(f"{MEMORIES} rows, {(place / 'planted.db').stat().st_size / 1e6:.0f} MB")
    best = {name: min(taken) for name, taken in times.items()}
    show(best, "the recipe by hand", {"purge request --id": 3.0})


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


def by_hand(folder: Path, id: str, *, thorough: bool) -> None:
    """Delete one row and prove it, with plain calls."""
    path = folder / "memories.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (content,) = db.execute("SELECT content FROM memories WHERE id = ?", (id,)).fetchone()
        assert content.encode() in path.read_bytes()
        db.execute("PRAGMA secure_delete=ON")
        db.execute("DELETE FROM memories WHERE id = ?", (id,))
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        if thorough:
            db.execute("VACUUM")
            assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        assert db.execute("SELECT 1 FROM memories WHERE id = ?", (id,)).fetchone() is None
        if thorough:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for file in (path, path.with_name(path.name + "-wal")):
        if file.exists():
            assert content.encode() not in file.read_bytes()


def by_purge(folder: Path, id: str) -> None:
    """The same by purge, with ledger, plan, controls and report."""
    engine = purge.open(folder / "purge.yaml")
    outcome = engine.request([purge.id(id, "memories")], apply=True)
    assert outcome.state == "confirmed-deleted", outcome
