"""The four states, the problems beside them, and which state may follow which.

Pure values: this module may not import anything of ``purge`` and does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The strongest thing that was proved of one step, weakest first."""

    ACCEPTED = "accepted"
    """The request is recorded for this site; nothing more is claimed."""
    REMOVED_FROM_READS = "removed-from-reads"
    """The site's normal reads no longer return it."""
    BACKUP_RETAINED = "backup-retained-until"
    """Copies are left only where they age out by themselves, the last on a known date."""
    CONFIRMED_DELETED = "confirmed-deleted"
    """No copy is left in this site."""


_ORDER: Final = {state: rank for rank, state in enumerate(State)}


class ProblemCode(StrEnum):
    """Why a step is not further than it is. A problem is never a state."""

    NOTHING_FOUND = "nothing-found"
    """No site holds anything the request names."""
    SOURCE_KEPT = "source-kept"
    """A record from which a named one derives is left: it holds the same words."""
    DERIVED_FROM_PURGED = "derived-from-purged"
    """A record derives from a purged one and from others that live on."""
    POSSIBLE_COPY = "possible-copy"
    """A record without lineage holds the text of one that was named by its id."""
    KEPT_BY_CHOICE = "kept-by-choice"
    """The caller decided to keep what was found here."""
    STILL_READABLE = "still-readable"
    """The site still returns a record that had to go."""
    REPORT_ONLY = "report-only"
    """The manifest says ``action: report``: a person has to act here."""
    SCOPE_UNKNOWN = "scope-unknown"
    """Records hold the words but do not say to which scope they belong."""
    HELD_OPEN = "held-open"
    """Another process holds the store open; nothing was written behind its back."""
    CHANGED_UNDERNEATH = "changed-underneath"
    """The store changed while it was looked at or rewritten."""
    NO_END_DATE = "no-end-date"
    """Copies are left and nothing will remove them."""
    BYTES_NOT_VISIBLE = "bytes-not-visible"
    """The store's physical copies cannot be seen from here."""
    NOT_CHECKED = "not-checked"
    """Something could not be looked at, so nothing is said of it."""
    CONTROL_FAILED = "control-failed"
    """The look could not see a live value either, so its silence proves nothing."""
    UNREACHABLE = "unreachable"
    """The store could not be reached or opened."""
    NO_PERMISSION = "no-permission"
    """The store refused access."""
    CORRUPT = "corrupt"
    """The store is damaged; it was left as it is."""
    BUSY = "busy"
    """The store was locked by someone else until patience ran out."""
    UNSUPPORTED = "unsupported"
    """This store, as it is set up, cannot do what would be needed."""
    REAPPEARED = "reappeared"
    """What was removed is back."""
    SEEN_AGAIN = "seen-again"
    """Records hold what was named; nothing says that they are what was removed."""
    RESTATED = "restated"
    """Somebody made a new statement after the request; it is not what was asked for."""
    HELD = "held"
    """A legal hold keeps records that would have to go."""
    PROMISE_MISSED = "promise-missed"
    """Copies that were to be gone by an earlier date are still there."""
    LIMIT = "limit"
    """A safety limit stopped a further round of removal."""
    WITHDRAWN = "withdrawn"
    """The request was withdrawn before this step was done."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a step is where it is: a code for programs and one sentence for people."""

    code: ProblemCode
    sentence: str


def weakest(states: Iterable[State]) -> State:
    """The state of a whole request: as far as its weakest step.

    Raises:
        ValueError: there is no step.
    """
    return min(states, key=_ORDER.__getitem__)


def at_least(state: State, other: State) -> bool:
    """Whether ``state`` claims as much as ``other`` or more."""
    return _ORDER[state] >= _ORDER[other]


def may_follow(before: State | None, after: State) -> bool:
    """Whether a step in ``before`` (``None``: not yet recorded) may be recorded as ``after``.

    A step begins as ``accepted``. From there every state may follow every other, since a state is
    what the last look proved: a record that came back takes a confirmed step back to ``accepted``.
    """
    return before is not None or after is State.ACCEPTED


def latest(dates: Iterable[datetime]) -> datetime:
    """The date on which the last of several dated copies goes.

    Raises:
        ValueError: there is no date.
    """
    return max(dates)
