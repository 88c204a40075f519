"""A request in a run, and what is kept of it between runs. Values; reads and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from purge.adapter import ControlKind
from purge.plan.again import SETTLE, Again, said
from purge.plan.outcome import Reappearance, Role, Step
from purge.plan.reach import Owed, RecordKey
from purge.plan.request import Decisions, Request


@dataclass(slots=True)
class Kept:
    """What is kept of a request between runs: its plan, and what was seen."""

    owed: list[Owed] = field(default_factory=list)
    controls: dict[str, dict[ControlKind, bool]] = field(default_factory=dict)
    """By site: whether the look could see the records while they were readable."""
    removed_at: dict[str, datetime] = field(default_factory=dict)
    """By site: when reads were first found to return none of them."""
    looked: dict[str, datetime] = field(default_factory=dict)
    """By site: when a look first saw the whole of it."""
    flagged: list[Owed] = field(default_factory=list)
    """Records that were made from what went and whose link to it is gone too, or may go."""
    spared: set[RecordKey] = field(default_factory=set)
    """Records that were met and left."""
    waiting: set[RecordKey] = field(default_factory=set)
    """Records that a legal hold keeps for now."""
    last_removed: datetime | None = None
    """When something was last taken out."""

    def take_controls(self, site: str, seen: Mapping[ControlKind, bool]) -> None:
        """Keep what a look before removal could see. One that passed once stays passed: a run
        that was killed looks again at what its predecessor already removed."""
        mine = self.controls.setdefault(site, {}) if seen else {}
        for kind, passed in seen.items():
            mine[kind] = passed or mine.get(kind, False)

    def extend(self, entries: Iterable[Owed]) -> list[Owed]:
        """Add records to the plan, and return those that were not in it."""
        known = {entry.key for entry in self.owed}
        new = [entry for entry in entries if entry.key not in known]
        self.owed.extend(new)
        return new

    def note_gone(self, alive: set[RecordKey], back: set[RecordKey], now: datetime) -> None:
        """Keep since when each planned record is gone.

        Args:
            alive: records that are still there, or of which that is not known.
            back: records that had come back in this run.
            now: the time of the look.
        """
        self.owed = [
            entry
            if entry.key in alive or (entry.gone is not None and entry.key not in back)
            else replace(entry, gone=now)
            for entry in self.owed
        ]


@dataclass(slots=True)
class Task:
    """A request in a run, with what earlier runs of it left."""

    request: Request
    kept: Kept = field(default_factory=Kept)
    steps: Mapping[str, Step] = field(default_factory=dict)
    asked_before: bool = False
    decided: Decisions | None = None
    """What the caller decided this time; recorded once the run is allowed."""
    again: bool = False
    """Take only what came back, once the request was carried out; otherwise all that it names."""
    marker: bool = False
    """It comes from a marker: no record that carries one is removed by it."""
    refusal: str | None = None
    late: dict[str, int] = field(default_factory=dict)
    limited: bool = False
    back: set[RecordKey] = field(default_factory=set)
    """What had come back in this run."""
    reappeared: dict[str, Reappearance] = field(default_factory=dict)
    """By site: what had come back in this run."""
    before: datetime | None = None
    """When something was last taken out before this run. What this run removes must not change
    what it takes: it would remove more than it showed."""

    def __post_init__(self) -> None:
        self.before = self.kept.last_removed

    @property
    def carried_out(self) -> bool:
        """Whether an earlier run got as far as a plan."""
        return bool(self.kept.owed or self.kept.looked)

    def policy(
        self, now: datetime, derived: frozenset[str], settle: timedelta = SETTLE
    ) -> Again | None:
        """Return what tells the old from the new among what it names; ``None``: all of it goes."""
        if not (self.again and self.carried_out):
            return None
        removed = (
            text
            for entry in self.kept.owed
            if entry.role in (Role.NAMED, Role.DERIVED)
            for text in entry.trace.texts
        )
        return Again(
            created=self.request.created,
            now=now,
            removed=self.before,
            texts=said(removed),
            derived=derived,
            looked=frozenset(self.kept.looked),
            settle=settle,
            suppress=bool(self.request.decisions.suppress),
        )
