"""What the ledger says: requests, their steps, and the outcome of checking the chain.

Plain values without behaviour, made by the fold and read by the plan, the engine and the report.
None of them holds a text, a record id or a subject id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from purge.ledger.events import JSON, Event, EventKind, timestamp
from purge.state import Problem, ProblemCode, State
from purge.targets import Target

HOLD: Final = "hold"
"""What the options of a legal hold give as their purpose."""


class KeyState(StrEnum):
    """What became of the key that seals what a request looks for."""

    HELD = "held"
    DESTROYING = "destroying"
    """A run was stopped in the middle of it. Nothing is unsealed; opening to write finishes it."""
    DESTROYED = "destroyed"


@dataclass(frozen=True, slots=True)
class Remains:
    """A copy that is left: where, what keeps it there, and until when."""

    where: str
    why: str
    until: datetime | None = None


def _problem(problem: Problem) -> Mapping[str, JSON]:
    return {"code": problem.code.value, "sentence": problem.sentence}


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What was proved of one step; written as a ``step.recorded`` event.

    Args:
        state: the strongest thing that was proved.
        until: the date that belongs to ``backup-retained-until``, with a time zone.
        found, removed, left: numbers of records.
        evidence: JSON values without floats, as the report shows them.
        completeness: ``proven`` or ``cannot be ruled out``, as the report shows it.
    """

    adapter: str
    state: State = State.ACCEPTED
    until: datetime | None = None
    problem: Problem | None = None
    found: int = 0
    removed: int = 0
    left: int = 0
    residue: Sequence[Remains] = ()
    evidence: Mapping[str, JSON] = field(default_factory=dict)
    completeness: str | None = None

    def event(self, request: str, site: str) -> Event:
        """Return the event that records this of ``site``."""
        body: dict[str, JSON] = {
            "adapter": self.adapter,
            "state": self.state.value,
            "until": None if self.until is None else timestamp(self.until),
            "problem": None if self.problem is None else _problem(self.problem),
            "found": self.found,
            "removed": self.removed,
            "left": self.left,
            "residue": [
                {
                    "where": copy.where,
                    "why": copy.why,
                    "until": None if copy.until is None else timestamp(copy.until),
                }
                for copy in self.residue
            ],
            "evidence": dict(self.evidence),
            "completeness": self.completeness,
        }
        return Event(EventKind.STEP_RECORDED, request, site, body)


@dataclass(frozen=True, slots=True)
class StepView:
    """Where one step, a pair of request and site, stands."""

    request: str
    site: str
    adapter: str
    state: State
    until: datetime | None
    problem: Problem | None
    found: int
    removed: int
    left: int
    residue: tuple[Remains, ...]
    evidence: Mapping[str, JSON]
    completeness: str | None
    at: datetime
    """When it was recorded."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the caller decided, of what the run had asked."""

    question: str
    answer: str
    at: datetime


@dataclass(frozen=True, slots=True)
class RequestView:
    """Where one request stands. Holds no value that it looks for: those are sealed.

    ``scope`` names the keys of the scope only; its values may be a subject's id and are sealed
    with the targets. ``targets`` counts them by kind. ``state`` is that of the weakest step, and
    ``until`` its date, if that state has one. ``waits_for`` holds the problems of its steps that
    only a person can decide.
    """

    id: str
    created: datetime
    reason: str
    asked_by: str
    scope: tuple[str, ...]
    options: Mapping[str, JSON]
    targets: Mapping[str, int]
    deadline: datetime | None
    state: State
    until: datetime | None
    waits_for: tuple[ProblemCode, ...]
    decisions: tuple[Decision, ...]
    withdrawn: datetime | None
    closed: datetime | None
    key: KeyState
    key_id: str
    sites: int
    """How many steps it has."""
    problems: int
    """How many of them carry a problem."""
    changed: datetime
    """When anything of it was last recorded."""

    @property
    def is_hold(self) -> bool:
        """Whether it is a legal hold, kept like a request and never carried out."""
        return self.options.get("purpose") == HOLD

    @property
    def open(self) -> bool:
        """Whether there may be anything left to do."""
        return self.withdrawn is None and self.closed is None and not self.is_hold


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request as it is asked; what :meth:`purge.ledger.Ledger.create_request` records.

    Args:
        reason: why, in the caller's words. It is kept in the clear, so it may not hold what is to
            be forgotten; one that does is refused.
        asked_by: who asked, for the record; as ``reason``.
        targets: what to look for. Sealed, scope values included.
        sites: the sites of the manifest in their order, each with the name of its adapter. Each
            gets a step that is ``accepted``.
        options: what else was said (``expect``, ``with_sources``, ...); in the clear.
        deadline: by when it has to be done.
        idempotency: what :meth:`purge.ledger.Ledger.idempotency_key` made, where the same request
            can be asked twice.
    """

    reason: str
    asked_by: str
    targets: Sequence[Target] = field(repr=False)
    sites: Mapping[str, str]
    options: Mapping[str, JSON] = field(default_factory=dict)
    deadline: datetime | None = None
    idempotency: str | None = None
    hold: Mapping[str, JSON] | None = field(default=None, repr=False)
    """For a legal hold: what it is on; sealed. It needs no targets and has no steps."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of checking a ledger.

    ``head`` is the hash of the last event. Noted elsewhere together with ``events``, it proves
    later that nothing up to there was altered or taken away, which nothing inside the ledger can
    prove against someone who also has its key file.
    """

    events: int
    ok: bool
    first_fault: str | None
    head: str
