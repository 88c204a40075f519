"""The ledger: what was asked, what was done, what was proved; append-only, sealed, checkable.

One SQLite database of events chained by their hashes, and beside it one with the keys. The state
of everything is a fold over the events, kept in a projection. This package may import nothing
above it (no engine, no report), no driver, and ``cryptography`` only when something is sealed or
unsealed.
"""

from purge.ledger.events import JSON, Event, EventKind, StoredEvent
from purge.ledger.ledger import Ledger
from purge.ledger.lock import run_lock
from purge.ledger.views import (
    Decision,
    KeyState,
    NewRequest,
    Remains,
    RequestView,
    StepRecord,
    StepView,
    Verification,
)

__all__ = [
    "JSON",
    "Decision",
    "Event",
    "EventKind",
    "KeyState",
    "Ledger",
    "NewRequest",
    "Remains",
    "RequestView",
    "StepRecord",
    "StepView",
    "StoredEvent",
    "Verification",
    "run_lock",
]
