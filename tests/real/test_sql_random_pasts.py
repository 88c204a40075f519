"""Whatever was done to a database before: what is said to be gone is gone, and nothing else is.

Databases are made at random: page size, encoding, journal, vacuum, kind of key, full-text index,
texts of every length, rows changed and deleted without ``secure_delete``, an application that
keeps the database open. Then some rows are purged, and the files are searched by other code.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from purge.adapter import Control, NotChecked, ProblemCode
from tests.support.sql_stores import Store, by_id, of

SHAPES = (
    "number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, body TEXT, topic TEXT)",
    "id TEXT PRIMARY KEY, body TEXT, topic TEXT)",
    "id TEXT PRIMARY KEY, body TEXT, topic TEXT) WITHOUT ROWID",
    "id TEXT PRIMARY KEY, body TEXT, topic TEXT, UNIQUE (topic, body, id))",
)
Row = tuple[str, str, str]


class Past:
    """A database and what its application did to it."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        self.store = store
        self.chance = chance
        self.rows: dict[str, Row] = {}
        self.fulltext = False

    @contextmanager
    def lived(self) -> Iterator[None]:
        """Live, and keep the database open afterwards, sometimes."""
        chance = self.chance
        journal = chance.choice(("DELETE", "TRUNCATE", "PERSIST", "WAL"))
        with closing(self.store.connect()) as connection:
            for pragma in (
                f"encoding = '{chance.choice(('UTF-8', 'UTF-16le', 'UTF-16be'))}'",
                f"page_size = {chance.choice((512, 1024, 4096, 8192))}",
                f"auto_vacuum = {chance.choice((0, 0, 1, 2))}",
                f"journal_mode = {journal}",
                f"secure_delete = {chance.choice(('OFF', 'FAST', 'ON'))}",
            ):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            self._declare(connection)
            connection.execute("BEGIN")
            for _ in range(chance.choice((1, 5, 60, 200))):
                self._insert(connection)
            connection.execute("COMMIT")
            for _ in range(chance.randrange(60)):
                self._act(connection)
            if self.fulltext:
                connection.execute("INSERT INTO words(words) VALUES ('rebuild')")
            if journal == "WAL" and chance.random() < 0.4:
                yield
                return
        yield

    def _declare(self, connection: sqlite3.Connection) -> None:
        shape = self.chance.choice(SHAPES)
        connection.execute(f"CREATE TABLE memories ({shape}")
        if "AUTOINCREMENT" in shape and self.chance.random() < 0.7:
            self.fulltext = True
            connection.execute(
                "CREATE VIRTUAL TABLE words USING fts5(body, content='memories', "
                f"content_rowid='number', tokenize='{self.chance.choice(('trigram', 'porter'))}')"
            )
        if self.chance.random() < 0.2:
            connection.execute("CREATE TABLE lines (said)")
            connection.execute("INSERT INTO lines VALUES ('a'), ('b')")
            connection.execute("DELETE FROM lines WHERE said = 'a'")

    def _insert(self, connection: sqlite3.Connection) -> None:
        name = f"id-{self.chance.getrandbits(48):012x}-{len(self.rows)}"
        topic = self.chance.choice(("topic-alpha-one", "topic-beta-two", self._words(2)))
        self.rows[name] = (name, self._text(), topic)
        marks = "INSERT INTO memories (id, body, topic) VALUES (?, ?, ?)"
        connection.execute(marks, self.rows[name])

    def _act(self, connection: sqlite3.Connection) -> None:
        name = self.chance.choice(sorted(self.rows))
        act = self.chance.random()
        if act < 0.4:
            self._insert(connection)
        elif act < 0.7:
            self.rows[name] = (name, self._text(), self.rows[name][2])
            connection.execute(
                "UPDATE memories SET body = ? WHERE id = ?", (self.rows[name][1], name)
            )
        elif len(self.rows) > 2:
            connection.execute("DELETE FROM memories WHERE id = ?", (name,))
            del self.rows[name]

    def _words(self, count: int) -> str:
        return " ".join(
            "".join(self.chance.choices("abcdefghijklmnop", k=self.chance.randrange(4, 10)))
            for _ in range(count)
        )

    def _text(self) -> str:
        return self._words(self.chance.choice((3, 8, 20, 30, 400))) + self.chance.choice(
            ("", " é日本“x”")
        )

    def traces_of(self, gone: list[str]) -> list[tuple[str, str]]:
        """Return what of some rows still stands in a file, in pieces, and in which encoding."""
        files = b"\0".join(
            data for name, data in self.store.contents().items() if not name.endswith("-shm")
        )
        live = " ".join(text for name, row in self.rows.items() if name not in gone for text in row)
        pieces = {
            text[at : at + 20]
            for name in gone
            for text in self.rows[name]
            for at in range(0, max(1, len(text) - 19), 7)
        }
        return [
            (piece, code)
            for piece in sorted(pieces)
            if len(piece) >= 10 and piece not in live
            for code in ("utf-8", "utf-16-le", "utf-16-be")
            if piece.encode(code) in files
        ]


def tell(folder: Path, seed: int) -> None:
    """Make one database, purge some rows, and look for them."""
    chance = random.Random(seed)
    store = Store(folder, settings={"id": "id", "text": ["body"], "metadata": ["topic"]})
    past = Past(store, chance)
    with past.lived():
        gone = chance.sample(sorted(past.rows), min(len(past.rows), chance.choice((1, 1, 3))))
        known = store.matches(by_id(*gone))
        assert sorted(match.id for match in known) == sorted(gone)
        controls = of(Control, store.residue(by_id(*gone), known))
        assert controls
        assert all(control.passed for control in controls)
        assert past.traces_of(gone)
        run = store.purge(by_id(*gone))
        assert run.left == ()
        assert run.back == ()
        if run.is_clean:
            assert past.traces_of(gone) == []
        else:
            # The one thing that may stand in the way here.
            problems = {item.problem for item in of(NotChecked, run.undone)}
            assert problems == {ProblemCode.UNSUPPORTED}
        kept = sorted(row for name, row in past.rows.items() if name not in gone)
        assert sorted(store.run("SELECT id, body, topic FROM memories")) == kept
        assert store.run("PRAGMA integrity_check") == [("ok",)]
        if past.fulltext:
            store.run("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")


@pytest.mark.parametrize("seed", range(25))
def test_what_is_said_to_be_gone_is_gone(tmp_path: Path, seed: int) -> None:
    tell(tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_what_is_said_to_be_gone_is_gone_whatever_was_before(tmp_path: Path, block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        folder = tmp_path / str(seed)
        folder.mkdir()
        tell(folder, seed)
