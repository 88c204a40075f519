"""Opening the two databases of a ledger together, and seeing that they belong together."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from purge.errors import LedgerFault
from purge.ledger.events import JSON, Event, EventKind, timestamp
from purge.ledger.keyring import Keyring, altered_anchor
from purge.ledger.migrations import LEDGER_STEPS, migrate
from purge.ledger.storage import LEDGER, faults, is_begun, ledger_files, open_to_write, transaction
from purge.ledger.verify import missing_end
from purge.ledger.writer import Writer


def open_both(
    path: Path, key_file: Path, now: datetime, *, create: bool
) -> tuple[Keyring, sqlite3.Connection]:
    """Open keys and events to write; make what is missing when ``create``.

    The keys come first: a call that was killed in between leaves keys without events, which are
    then completed, and never events without keys.

    Raises:
        LedgerFault: one of them is missing, damaged, or not the other's.
    """
    begun = is_begun(LEDGER, path)
    if not begun and not create:
        raise missing_ledger(path)
    at = timestamp(now)
    keys = ledger_files(path).keys
    keyring = Keyring.open_to_write(keys, key_file, at=at, create=create and not begun)
    try:
        if keyring.anchor().events and not is_begun(LEDGER, path):
            raise LedgerFault(
                f"The ledger {path} is missing or empty, though its keys are there. Put it back; "
                "or, to begin anew, move the keys away."
            )
        connection = open_to_write(LEDGER, path, "WAL")
    except BaseException:
        keyring.close()
        raise
    try:
        with faults(LEDGER, path):
            migrate(connection, LEDGER, LEDGER_STEPS, at)
            if not keyring.anchor().events:
                _begin(connection, keyring, now)
            _check(connection, keyring)
    except BaseException:
        connection.close()
        keyring.close()
        raise
    return keyring, connection


def missing_ledger(path: Path) -> LedgerFault:
    """Return the fault of a ledger that is not there."""
    return LedgerFault(
        f"There is no ledger at {path}: nothing was requested there yet, or it was moved."
    )


def _begin(connection: sqlite3.Connection, keyring: Keyring, now: datetime) -> None:
    with transaction(connection):
        writer = Writer(connection, keyring.ledger, now)
        if writer.seq == 0:
            body: dict[str, JSON] = {"ledger": keyring.ledger}
            writer.add(Event(EventKind.LEDGER_CREATED, body=body))
    # Nothing follows the first event before it is noted.
    if writer.seq > 1 and not keyring.anchor().events:
        raise altered_anchor()
    keyring.note(writer.seq, writer.head)


def _check(connection: sqlite3.Connection, keyring: Keyring) -> None:
    """See that the events are those of these keys, and that none was taken off their end."""
    anchor = keyring.anchor()
    if not keyring.is_genuine(anchor):
        raise altered_anchor()
    first = connection.execute("SELECT body FROM events WHERE seq = 1").fetchone()
    if first is not None and f'"{keyring.ledger}"' not in first[0]:
        raise LedgerFault("The ledger and its key database do not belong together.")
    last = connection.execute("SELECT max(seq) FROM events").fetchone()[0] or 0
    if last < anchor.events:
        raise missing_end(last, anchor.events)
    row = connection.execute("SELECT hash FROM events WHERE seq = ?", (anchor.events,)).fetchone()
    if row is None or row[0] != anchor.head:
        raise LedgerFault(
            f"Event {anchor.events} is not the one that was noted: the chain was remade."
        )
