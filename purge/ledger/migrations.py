"""The shape of the two databases, as numbered steps from an empty file.

Each step is short, is applied in one transaction together with its record, and is never changed
once released. A database that is newer than this program is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from purge.errors import LedgerFault
from purge.ledger.storage import Kind, transaction

Migration = Callable[[sqlite3.Connection], None]


def _events(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL,"
        " request TEXT, site TEXT, body TEXT NOT NULL, prev_hash TEXT NOT NULL,"
        " hash TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX events_of_request ON events (request, seq)")
    connection.execute(
        "CREATE TRIGGER events_stay BEFORE DELETE ON events"
        " BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END"
    )
    connection.execute(
        "CREATE TRIGGER events_are_final BEFORE UPDATE ON events"
        " BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"
    )
    # Also stops INSERT OR REPLACE, which deletes without asking the trigger above.
    connection.execute(
        "CREATE TRIGGER events_follow BEFORE INSERT ON events"
        " WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)"
        " BEGIN SELECT RAISE(ABORT, 'events follow one another'); END"
    )


def _sealed(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE sealed (request TEXT NOT NULL, name TEXT NOT NULL, content BLOB NOT NULL,"
        " PRIMARY KEY (request, name))"
    )


def _projection(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE requests (id TEXT PRIMARY KEY, seq INTEGER NOT NULL UNIQUE,"
        " open INTEGER NOT NULL, state TEXT NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX requests_by_state ON requests (open, state)")
    connection.execute("CREATE INDEX requests_by_age ON requests (open, seq)")
    connection.execute("CREATE INDEX requests_by_key ON requests (key) WHERE key = 'destroying'")
    connection.execute(
        "CREATE TABLE steps (request TEXT NOT NULL, position INTEGER NOT NULL,"
        " site TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (request, position),"
        " UNIQUE (request, site))"
    )


def _keys(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
    connection.execute(
        "CREATE TABLE keys (id TEXT PRIMARY KEY, request TEXT NOT NULL, wrapped BLOB NOT NULL)"
    )
    connection.execute("CREATE TABLE asked (key TEXT PRIMARY KEY, request TEXT NOT NULL)")
    connection.execute("CREATE INDEX asked_by_request ON asked (request)")
    connection.execute(
        "CREATE TABLE anchor (id INTEGER PRIMARY KEY CHECK (id = 1), events INTEGER NOT NULL,"
        " head TEXT NOT NULL, mac TEXT NOT NULL)"
    )


LEDGER_STEPS: Final[tuple[Migration, ...]] = (_events, _sealed, _projection)
KEYS_STEPS: Final[tuple[Migration, ...]] = (_keys,)


def version_of(connection: sqlite3.Connection) -> int:
    """Return how many steps the database has taken."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(
    connection: sqlite3.Connection, kind: Kind, steps: Sequence[Migration], at: str
) -> None:
    """Take the steps that are still to be taken.

    Raises:
        LedgerFault: the database is newer than this program.
    """
    refuse_newer(connection, kind, steps)
    for number in range(version_of(connection) + 1, len(steps) + 1):
        with transaction(connection):
            if version_of(connection) >= number:  # another process was faster
                continue
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY,"
                " at TEXT NOT NULL)"
            )
            steps[number - 1](connection)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, at))
            connection.execute(f"PRAGMA user_version = {number:d}")


def refuse_newer(connection: sqlite3.Connection, kind: Kind, steps: Sequence[Migration]) -> None:
    """Refuse a database that a newer program has made."""
    if version_of(connection) > len(steps):
        raise LedgerFault(
            f"The {kind.name} was made by a newer version of purge; use that version."
        )


def refuse_older(connection: sqlite3.Connection, kind: Kind, steps: Sequence[Migration]) -> None:
    """Refuse a database that would have to be brought up to date, which reading may not do."""
    refuse_newer(connection, kind, steps)
    if version_of(connection) < len(steps):
        raise LedgerFault(
            f"The {kind.name} was made by an older version of purge, or its making was stopped; "
            "it is brought up to date by the next command that writes, and cannot be read before."
        )
