"""One transaction's worth of writing: events, their hashes, and the state that follows."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime

from purge.errors import LedgerFault
from purge.ledger import projection, sealing
from purge.ledger.events import (
    GENESIS,
    JSON,
    Event,
    EventKind,
    StoredEvent,
    canonical,
    digest_of_event,
    timestamp,
)
from purge.ledger.fold import Folded, apply, check_place
from purge.ledger.verify import stored_event
from purge.ledger.views import RequestView


class Writer:
    """Adds events to the chain. Lives within one transaction, which the ledger opens and ends."""

    def __init__(self, connection: sqlite3.Connection, ledger: str, now: datetime) -> None:
        self._connection = connection
        self._ledger = ledger
        self._at = timestamp(now)
        self._folds: dict[str, tuple[Folded, int]] = {}
        # Read within the transaction: another process may have appended.
        row = connection.execute(
            "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        self.seq: int = 0 if row is None else row[0]
        """The number of the last event."""
        self.head: str = GENESIS if row is None else row[1]
        """The hash of the last event."""
        if not isinstance(self.head, str):
            raise LedgerFault(f"Event {self.seq} was altered: it is no event.")

    def add(self, event: Event) -> None:
        """Add an event.

        Raises:
            LedgerFault: it may not follow.
            TypeError: its body is not JSON, or holds a float.
        """
        seq, body = self.seq + 1, canonical(event.body)
        kind = event.kind.value
        hash = digest_of_event(seq, self._at, kind, event.request, event.site, body, self.head)
        row = (seq, self._at, kind, event.request, event.site, body, self.head, hash)
        # Read back from what is written, so that the fold sees what it will see when the chain
        # is checked.
        stored = stored_event(row)
        check_place(stored)
        if stored.request is not None:
            self._follow(stored.request, stored)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self.seq, self.head = seq, hash

    def _follow(self, request: str, event: StoredEvent) -> None:
        before = self._load(request)
        after = apply(None if before is None else before[0], event)
        self._folds[request] = (after, event.seq if before is None else before[1])

    def _load(self, request: str) -> tuple[Folded, int] | None:
        if request not in self._folds:
            loaded = projection.load(self._connection, request)
            if loaded is None:
                return None
            self._folds[request] = loaded
        return self._folds[request]

    def view(self, request: str) -> RequestView:
        """Return where a request stands, with what was added."""
        loaded = self._load(request)
        if loaded is None:
            raise LedgerFault("There is no such request in the ledger.")
        return loaded[0].request

    def seal(self, request: str, name: str, payload: Mapping[str, JSON], key: bytes) -> None:
        """Encrypt ``payload`` in place of what was sealed under ``name``, and add the event."""
        loaded = self._load(request)
        if loaded is None:
            raise LedgerFault("There is no such request in the ledger.")
        known = loaded[0].sealed.get(name)
        version = 1 if known is None else known.version + 1
        place = [self._ledger, request, name, str(version)]
        content = sealing.encrypt(key, sealing.pack(payload), place)
        self.add(
            Event(
                EventKind.REQUEST_SEALED,
                request,
                None,
                {
                    "name": name,
                    "version": version,
                    "key": loaded[0].request.key_id,
                    "digest": sealing.digest_of(content),
                },
            )
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?)", (request, name, content)
        )

    def drop_sealed(self, request: str) -> None:
        """Remove the ciphertexts of a request."""
        self._connection.execute("DELETE FROM sealed WHERE request = ?", (request,))

    def finish(self) -> None:
        """Write the state of every request that was touched."""
        for folded, seq in self._folds.values():
            projection.save(self._connection, folded, seq)
