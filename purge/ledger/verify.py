"""Checking a ledger: every hash, every rule, the anchor, the projection, the sealed content.

Reads only, and says the first thing that is wrong in one sentence.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final

from purge.errors import LedgerFault
from purge.ledger import projection, sealing
from purge.ledger.events import GENESIS, EventKind, StoredEvent, digest_of_event
from purge.ledger.fold import Folded, apply, check_place
from purge.ledger.keyring import Keyring, altered_anchor
from purge.ledger.storage import error_code
from purge.ledger.views import KeyState, RequestView, Verification

EventRow = tuple[int, str, str, str | None, str | None, str, str, str]
EVENTS: Final = "SELECT seq, at, kind, request, site, body, prev_hash, hash FROM events"


class Around:
    """What is known from outside the chain while it is checked: the keys and the noted ends.

    Made before the chain is read, which then never has fewer events than were noted.
    """

    def __init__(self, keyring: Keyring, noted: tuple[int, str] | None) -> None:
        self._keyring = keyring
        self.ledger = keyring.ledger
        self.anchor = keyring.anchor()
        self.anchor_is_genuine = keyring.is_genuine(self.anchor)
        self.noted = noted
        self._before = keyring.ids()

    def keys(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of the keys that were there all the time, and at any time.

        They differ while another process adds or destroys one.
        """
        after = self._keyring.ids()
        return self._before & after, self._before | after


def stored_event(row: EventRow) -> StoredEvent:
    """Return the event that a row holds.

    Raises:
        LedgerFault: the row is not an event.
    """
    seq, at, kind, request, site, body, _, hash = row
    try:
        moment = datetime.fromisoformat(at)
        return StoredEvent(seq, moment, EventKind(kind), request, site, json.loads(body), hash)
    except (ValueError, TypeError) as error:
        raise LedgerFault(f"Event {seq} was altered: it is no event.") from error


def all_folds(connection: sqlite3.Connection) -> dict[str, tuple[Folded, int]]:
    """Return the state of every request, with the number of the event that created it.

    Raises:
        LedgerFault: the chain does not hold.
    """
    folds: dict[str, tuple[Folded, int]] = {}
    for event in checked_events(connection, {}):
        _add(folds, event)
    return folds


def _add(folds: dict[str, tuple[Folded, int]], event: StoredEvent) -> None:
    if event.request is not None:
        before = folds.get(event.request)
        after = apply(None if before is None else before[0], event)
        folds[event.request] = (after, event.seq if before is None else before[1])


def checked_events(
    connection: sqlite3.Connection, heads: Mapping[int, str]
) -> Iterator[StoredEvent]:
    """Yield every event once its hash and place are checked.

    Args:
        connection: the ledger.
        heads: the hashes that certain events are known to have.

    Raises:
        LedgerFault: one was altered, is missing, or may not stand where it stands.
    """
    previous, expected = GENESIS, 1
    for row in connection.execute(f"{EVENTS} ORDER BY seq"):
        seq, at, kind, request, site, body, prev_hash, hash = row
        if seq != expected:
            raise LedgerFault(f"Event {expected} is missing.")
        if prev_hash != previous:
            raise LedgerFault(f"Event {seq} does not follow the one before it.")
        try:
            right = digest_of_event(seq, at, kind, request, site, body, prev_hash)
        except (TypeError, UnicodeError) as error:
            raise LedgerFault(f"Event {seq} was altered: it is no event.") from error
        if hash != right:
            raise LedgerFault(f"Event {seq} was altered: its hash is not that of what it says.")
        if heads.get(seq, hash) != hash:
            raise LedgerFault(f"Event {seq} is not the one that was noted: the chain was remade.")
        event = stored_event(row)
        check_place(event)
        yield event
        previous, expected = hash, expected + 1


def verify(around: Around, connection: sqlite3.Connection) -> Verification:
    """Check everything, in one state of the database.

    Damage that keeps the database from being read ends the check as a fault as well.
    """
    folds: dict[str, tuple[Folded, int]] = {}
    events, head = 0, GENESIS
    try:
        for event in checked_events(connection, _heads(around)):
            if event.seq == 1 and event.body.get("ledger") != around.ledger:
                raise LedgerFault("The ledger and its key database do not belong together.")
            _add(folds, event)
            events, head = event.seq, event.hash
        _check_end(events, around)
        # An index that is damaged would hide rows from other questions than this one.
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise LedgerFault("The file is damaged, though every event can be read.")
        for request in projection.differences(connection, folds):
            raise LedgerFault(
                f"What is kept of request {request} is not what its events say; "
                "it can be made anew from them."
            )
        always, ever = around.keys()
        for folded, _ in folds.values():
            _check_key(folded.request, always, ever)
            _check_sealed(connection, folded)
    except LedgerFault as fault:
        return Verification(events, False, str(fault), head)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if error_code(error) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return Verification(
            events, False, f"The file is damaged; after event {events} it cannot be read.", head
        )
    return Verification(events, True, None, head)


def _heads(around: Around) -> dict[int, str]:
    heads = {around.anchor.events: around.anchor.head} if around.anchor.events else {}
    if around.noted is not None:
        events, head = around.noted
        if heads.get(events, head) != head:
            raise LedgerFault(f"Event {events} is not the one that was noted.")
        heads[events] = head
    return heads


def _check_end(events: int, around: Around) -> None:
    if not around.anchor_is_genuine or (around.anchor.events == 0 and events > 1):
        raise altered_anchor()
    wanted = max(around.anchor.events, around.noted[0] if around.noted else 0)
    if events < wanted:
        raise missing_end(events, wanted)


def missing_end(events: int, wanted: int) -> LedgerFault:
    """Return the fault of a ledger that has fewer events than it had."""
    return LedgerFault(
        f"The ledger ends with event {events} and once had {wanted}: the last ones were taken "
        "away, or an older copy was put in its place."
    )


def _check_key(request: RequestView, always: Collection[str], ever: Collection[str]) -> None:
    if request.key is KeyState.DESTROYED and request.key_id in always:
        raise LedgerFault(
            f"The key of request {request.id} was destroyed and is there again: an older key "
            "database was put in place of the newer one."
        )
    if request.key is KeyState.HELD and request.key_id not in ever:
        raise LedgerFault(f"The key of request {request.id} is missing.")


def _check_sealed(connection: sqlite3.Connection, folded: Folded) -> None:
    rows = connection.execute(
        "SELECT name, content FROM sealed WHERE request = ?", (folded.request.id,)
    )
    kept = {name: sealing.digest_of(sealing.as_bytes(content)) for name, content in rows}
    held = folded.request.key is KeyState.HELD
    said = {name: sealed.digest for name, sealed in folded.sealed.items()} if held else {}
    if kept != said:
        raise LedgerFault(f"What is sealed of request {folded.request.id} was altered.")
