"""The reading side of the ledger. Answers come from the projection; nothing is folded.

Works alike on a ledger that is open to write and on one that is only read. Makes and writes
nothing.
"""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from purge.errors import UsageFault
from purge.ledger import projection
from purge.ledger.events import EventKind, StoredEvent
from purge.ledger.verify import EVENTS, EventRow, stored_event
from purge.ledger.views import RequestView, StepView
from purge.state import State

T = TypeVar("T")

PREFIX: Final = 6
"""How many characters of a request's id must be given at least."""
PAGE: Final = 1_000
"""How many events are read at a time."""
_KINDS: Final = "(:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))"


class LedgerReader(ABC):
    """What can be asked of a ledger, however it is open."""

    @abstractmethod
    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``look`` finds in one state of the database. It may be called again."""

    def resolve(self, prefix: str) -> str:
        """Return the id of the one request that begins with ``prefix``, in any case.

        Raises:
            UsageFault: it is too short, or none or several begin with it.
        """
        wanted = prefix.strip().upper()
        if len(wanted) < PREFIX:
            raise UsageFault(f"Give at least {PREFIX} characters of the request's id.")
        found = self._read(
            lambda connection: connection.execute(
                "SELECT id FROM requests WHERE id >= ? AND id < ? ORDER BY id LIMIT 2",
                (wanted, wanted + "\U0010ffff"),
            ).fetchall()
        )
        if not found:
            raise UsageFault("No request has this id; 'purge status' lists them.")
        if len(found) > 1 and found[0][0] != wanted:
            raise UsageFault("Several requests begin like this; give more of the id.")
        return str(found[0][0])

    def request(self, request: str) -> RequestView | None:
        """Return where one request, by its whole id, stands."""
        row = self._read(lambda connection: projection.find_row(connection, request))
        return None if row is None else projection.request_of(row)

    def requests(
        self, *, open_only: bool = False, limit: int | None = None
    ) -> Sequence[RequestView]:
        """Return the requests, newest first."""
        rows = self._read(
            lambda connection: projection.list_rows(connection, open_only=open_only, limit=limit)
        )
        return [projection.request_of(row) for row in rows]

    def counts(self, *, open_only: bool = True) -> Mapping[State, int]:
        """Return how many requests are in each state."""
        rows = self._read(
            lambda connection: connection.execute(
                "SELECT open, state, count(*) FROM requests GROUP BY open, state"
            ).fetchall()
        )
        found = dict.fromkeys(State, 0)
        for is_open, state, number in rows:
            if is_open or not open_only:
                found[State(state)] += number
        return found

    def steps(self, request: str) -> Sequence[StepView]:
        """Return the steps of a request, in the order of its sites."""
        rows = self._read(lambda connection: projection.find_steps(connection, request))
        return [projection.step_of(row) for row in rows]

    def events(
        self, request: str | None = None, kinds: Sequence[EventKind] = ()
    ) -> Iterator[StoredEvent]:
        """Yield the events, oldest first; of one request and of some kinds if so asked."""
        wanted = json.dumps([kind.value for kind in kinds]) if kinds else None
        last = 0
        while True:
            rows = self._read(partial(_page, request=request, kinds=wanted, after=last))
            yield from map(stored_event, rows)
            if len(rows) < PAGE:
                return
            last = rows[-1][0]


def _page(
    connection: sqlite3.Connection, *, request: str | None, kinds: str | None, after: int
) -> list[EventRow]:
    which = "request = :request AND " if request is not None else ""
    return connection.execute(
        f"{EVENTS} WHERE {which}seq > :after AND {_KINDS} ORDER BY seq LIMIT :page",
        {"request": request, "kinds": kinds, "after": after, "page": PAGE},
    ).fetchall()
