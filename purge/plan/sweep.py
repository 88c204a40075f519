"""What a sweep found and did: the values that engine, report and commands share.

Pure values. Nothing here holds a text or an identifier of a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from purge.plan.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a fresh snapshot stands behind the run.

    Args:
        refusal: why nothing may be deleted; ``None``: it may.
        site, taken: the snapshot that was found.
    """

    refusal: str | None = None
    site: str | None = None
    taken: datetime | None = None


@dataclass(frozen=True, slots=True)
class Unheard:
    """A line that looks like a marker, or is one, and is not obeyed."""

    site: str
    where: str
    why: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Overdue:
    """A request of which a promise is late.

    Args:
        due: the date that was missed.
    """

    request: str
    due: datetime | None
    why: str


@dataclass(frozen=True, slots=True)
class Item:
    """One request in a sweep.

    Args:
        since: how long it has been waiting: since its marker was written, or it was asked.
        new: this sweep heard of it first.
        closed: nothing is left anywhere; what it looked for was forgotten.
    """

    outcome: Outcome
    since: datetime
    new: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep found and did."""

    applied: bool
    begun: datetime
    ended: datetime
    gate: Gate
    items: tuple[Item, ...] = ()
    ignored: tuple[Unheard, ...] = ()
    refused: tuple[Unheard, ...] = ()
    struck: int = 0
    overdue: tuple[Overdue, ...] = ()
    failures: tuple[Unheard, ...] = ()
    """Sites whose markers could not be read."""
    mode: str = "sweep"

    @property
    def settled(self) -> bool:
        """Whether everything is confirmed, dated or as decided, and nothing is late."""
        return (
            not self.overdue
            and not self.failures
            and all(item.outcome.settled or item.closed for item in self.items)
        )

    @property
    def to_remove(self) -> int:
        """How many records have to go and are still there."""
        return sum(item.outcome.to_remove for item in self.items)
