"""What a run found and what it proved: the values that engine, report and commands share.

Pure values. Nothing here holds a text or an identifier of a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from purge.adapter import ControlKind, EvidenceKind, Examined, NotChecked, Residue
from purge.plan.request import Asked
from purge.state import Problem, ProblemCode, State, at_least, latest, weakest


class Role(StrEnum):
    """Why a record is in a plan."""

    NAMED = "named"
    """A target names it."""
    DERIVED = "derived"
    """It derives from purged records and from nothing else that lives."""
    SOURCE = "source"
    """A named record derives from it."""
    COPY = "copy"
    """It has no lineage and holds the text of a record named by id."""
    FLAGGED = "flagged"
    """It derives from a purged record and from others that live on."""


class Completeness(StrEnum):
    """Whether more could be hidden at a site than was looked for."""

    PROVEN = "proven"
    """Everything was looked at, and every derived record says what it derives from."""
    CANNOT_BE_RULED_OUT = "cannot-be-ruled-out"
    """A derived record without lineage may say the same in other words."""
    INCOMPLETE = "incomplete"
    """Part of the site was not looked at."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """How a step was proved: what was examined, when, and whether the look could have seen it."""

    kind: EvidenceKind
    examined: Examined
    at: datetime
    control: Mapping[ControlKind, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tally:
    """Records of one request at one site, by what is to become of them."""

    found: int = 0
    """Records that the request reaches here, shown ones included, since it was made."""
    to_remove: int = 0
    removed: int = 0
    """Of ``to_remove``: those that a later look no longer found. Never what a store answered."""
    left: int = 0
    """Readable records that the request reaches and that are still there, shown ones included."""
    sources: int = 0
    flagged: int = 0
    copies: int = 0
    kept: int = 0
    """Of the sources and copies that are left: those that the caller decided to keep."""
    scope_unknown: int = 0
    by_person: int = 0
    """Those that a person has to remove: the manifest says ``action: report``."""
    late: int = 0
    """Records that appeared while the run was under way."""
    reappeared: int = 0
    """Records that were gone and were met again in this run, whatever became of them."""
    seen_again: int = 0
    """Records that are named and left to a person: nothing says that they are what was removed."""
    restated: int = 0
    """New statements, made after the request. They are not what was asked for."""
    held: int = 0
    """Records that would have to go, and that a legal hold keeps."""
    by_how: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reappearance:
    """Records that were gone and came back: how many, when removed, and when seen again."""

    count: int
    removed: datetime
    seen: datetime


@dataclass(frozen=True, slots=True)
class Step:
    """Where one request stands at one site. ``state`` is ``None`` only in a dry run."""

    site: str
    adapter: str
    state: State | None
    until: datetime | None = None
    tally: Tally = Tally()
    residue: tuple[Residue, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    evidence: Evidence | None = None
    completeness: Completeness = Completeness.PROVEN
    problem: Problem | None = None
    at: datetime | None = None
    reappeared: tuple[Reappearance, ...] = ()
    """What came back since the last removal, in the order of the looks that saw it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run says of one request.

    ``refusal`` is the sentence of the safety rule that stopped it, if one did.
    """

    request: Asked
    applied: bool
    steps: tuple[Step, ...]
    refusal: str | None = None
    asked_before: bool = False
    """The same request was open already; this run went on with it."""

    @property
    def state(self) -> State | None:
        """As far as the weakest step; ``None`` in a dry run."""
        states = [step.state for step in self.steps if step.state is not None]
        return weakest(states) if states else None

    @property
    def until(self) -> datetime | None:
        """The date of the whole: only where its state has one."""
        if self.state is not State.BACKUP_RETAINED:
            return None
        return latest(step.until for step in self.steps if step.until is not None)

    @property
    def settled(self) -> bool:
        """Whether every step is confirmed, dated, or as the caller decided."""
        return all(is_settled(step.state, step.problem) for step in self.steps)

    @property
    def to_remove(self) -> int:
        """How many records have to go and are still there, over all sites."""
        return sum(step.tally.to_remove - step.tally.removed for step in self.steps)


def is_settled(state: State | None, problem: Problem | None) -> bool:
    """Whether nothing is owed for a step any more."""
    code = None if problem is None else problem.code
    if code is ProblemCode.KEPT_BY_CHOICE:
        return True
    # A new statement is not what was asked for; it takes nothing back of what was proved.
    fine = code in (None, ProblemCode.RESTATED)
    return state is not None and fine and at_least(state, State.BACKUP_RETAINED)


def add_up(parts: Sequence[Examined]) -> Examined:
    """Return the sum of several looks; notes are kept once each."""
    notes = dict.fromkeys(part.note for part in parts if part.note)
    return Examined(
        files=sum(part.files for part in parts),
        bytes=sum(part.bytes for part in parts),
        records=sum(part.records for part in parts),
        unlinked=sum(part.unlinked for part in parts),
        note="; ".join(notes),
    )


def at_most(one: Examined, other: Examined) -> Examined:
    """Return how much two looks at the same place covered: the larger of each figure."""
    return Examined(
        files=max(one.files, other.files),
        bytes=max(one.bytes, other.bytes),
        records=max(one.records, other.records),
        unlinked=max(one.unlinked, other.unlinked),
        note=add_up((one, other)).note,
    )
