"""From what a run saw at one site to the step that it records. Asks no site, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from purge.adapter import (
    Action,
    AdapterInfo,
    ControlKind,
    EvidenceKind,
    NotChecked,
    NotRemoved,
    Residue,
)
from purge.engine.sites import ResidueLook
from purge.manifest import SiteEntry
from purge.matching import fold
from purge.plan.judge import Observed, Verdict, declared, judge
from purge.plan.outcome import Completeness, Evidence, Reappearance, Step, Tally, at_most
from purge.plan.reach import Look
from purge.plan.request import Request
from purge.state import Problem, ProblemCode, State
from purge.targets import TargetKind


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that a run saw and did for one request at one site."""

    site: SiteEntry
    info: AdapterInfo
    request: Request
    tally: Tally
    look: Look
    residue: ResidueLook
    before: Mapping[ControlKind, bool]
    """Whether the look for residue could see the records while they were readable."""
    removed_at: datetime | None
    left_alone: tuple[NotRemoved | NotChecked, ...]
    failure: Problem | None
    found_anywhere: bool
    limited: bool
    previous: Step | None
    reappeared: Reappearance | None = None
    """What had come back in this run."""


def make_step(seen: Seen, now: datetime, *, applied: bool) -> Step:
    """Judge one site and return the step to record; without a state if nothing was applied."""
    residue, kind = _residue(seen, now)
    controls = _controls(seen)
    unseen = (*seen.look.unseen, *_emptiness(seen))
    observed = Observed(
        looked=seen.look.failure is None,
        failure=seen.look.failure or seen.failure,
        left=seen.tally.to_remove - seen.tally.removed,
        undecided_sources=seen.tally.sources,
        undecided_copies=seen.tally.copies,
        flagged=seen.tally.flagged,
        kept=seen.tally.kept,
        scope_unknown=seen.tally.scope_unknown,
        not_removed=seen.left_alone,
        unseen=unseen,
        examined=seen.residue.failure is None,
        residue=residue,
        unexamined=seen.residue.unexamined,
        controls=controls,
        found_anywhere=seen.found_anywhere,
        report_only=seen.site.action is Action.REPORT,
        limited=seen.limited,
        reappeared=min(seen.tally.reappeared, seen.tally.to_remove - seen.tally.removed),
        seen_again=seen.tally.seen_again,
        restated=seen.tally.restated,
        held=seen.tally.held,
        missed=_missed(seen.previous, residue, now),
        previous=_previous(seen.previous),
    )
    if applied:
        verdict = judge(observed)
        state: State | None = verdict.state
    else:
        verdict = _foreseen(observed)
        state = None
    hide = Veil(seen.request)
    return Step(
        site=seen.site.name,
        adapter=seen.site.adapter,
        state=state,
        until=verdict.until,
        tally=_tally(seen),
        residue=tuple(
            replace(copy, where=hide(copy.where), why=hide(copy.why)) for copy in residue
        ),
        not_checked=tuple(
            replace(gap, where=hide(gap.where), why=hide(gap.why))
            for gap in (*unseen, *seen.residue.unexamined)
        ),
        evidence=_evidence(seen, kind, controls, now),
        completeness=Completeness.INCOMPLETE if unseen else _completeness(seen),
        problem=hide.problem(verdict.problem),
        at=now,
        reappeared=_reappearances(seen),
    )


class Veil:
    """Keeps what a request looks for out of places and sentences.

    Folders and files are named after persons and notes after their first line, so that a place
    alone can say what has to be forgotten.
    """

    def __init__(self, request: Request) -> None:
        self._words = [folded for wanted in request.wanted if (folded := fold(wanted.value))]

    def __call__(self, text: str) -> str:
        """Return ``text``, or a stand-in for it if it holds something that is looked for."""
        folded = fold(text)
        if any(len(word) >= SHORTEST and word in folded for word in self._words):
            return "(a place whose name holds what is to be forgotten)"
        return text

    def problem(self, problem: Problem | None) -> Problem | None:
        """Return the problem, with its sentence veiled if need be."""
        return None if problem is None else replace(problem, sentence=self(problem.sentence))


SHORTEST = 4
"""Words shorter than this tell nobody anything, and stand in every path."""


def without_site(step: Step) -> Step:
    """Return the step of a site that the manifest no longer has: what was proved there stays."""
    problem = Problem(
        ProblemCode.NOT_CHECKED,
        "The manifest has no site of this name any more, so it was not looked at. If it was "
        "renamed, the new name has a step of its own.",
    )
    return replace(step, problem=problem)


def _foreseen(observed: Observed) -> Verdict:
    """What would be left to decide or to wait for, once what has to go is gone.

    A copy that ``sanitize`` can remove is none of it. A control failed before removal would fail
    after it too.
    """
    left = tuple(copy for copy in observed.residue if not copy.fixable)
    gone = replace(observed, left=0, residue=left, previous=None)
    if observed.report_only and observed.left:
        gone = replace(gone, left=observed.left)
    return judge(gone)


def _emptiness(seen: Seen) -> tuple[NotChecked, ...]:
    """Doubt a site where there was nothing at all to look at: its path may be mistaken.

    A site that a request itself emptied is not doubted, nor one that the manifest knows to be
    empty at times.
    """
    examined = seen.look.examined
    if seen.look.failure or seen.tally.found or examined.files or examined.records:
        return ()
    if seen.site.may_be_empty:
        return ()
    return (
        NotChecked(
            seen.site.name,
            "there is nothing to look at; is its path right? (Where that is usual, as in a cache, "
            "say 'may_be_empty: true' in the manifest.)",
        ),
    )


def _tally(seen: Seen) -> Tally:
    """Say of a site where purge touches nothing that a person has to remove what is left."""
    if seen.site.action is not Action.REPORT:
        return seen.tally
    by_person = seen.tally.to_remove - seen.tally.removed
    return replace(seen.tally, to_remove=seen.tally.removed, by_person=by_person)


def _missed(before: Step | None, residue: tuple[Residue, ...], now: datetime) -> Problem | None:
    """Say that copies were to be gone by a date that is past, for as long as any is left."""
    if before is None or not residue:
        return None
    if before.problem is not None and before.problem.code is ProblemCode.PROMISE_MISSED:
        return before.problem
    if before.until is None or before.until > now:
        return None
    return Problem(
        ProblemCode.PROMISE_MISSED,
        f"Copies that were to be gone by {before.until:%Y-%m-%d %H:%M %z} are still there.",
    )


def _reappearances(seen: Seen) -> tuple[Reappearance, ...]:
    earlier = seen.previous.reappeared if seen.previous is not None else ()
    return earlier if seen.reappeared is None else (*earlier[-9:], seen.reappeared)


def _previous(step: Step | None) -> Verdict | None:
    if step is None or step.state is None:
        return None
    return Verdict(step.state, step.until, step.problem)


def _controls(seen: Seen) -> dict[ControlKind, bool]:
    """Join what was seen before removal with what the last look says of itself.

    A look that saw the records themselves vouches for that kind of needle. Where the last look
    says of a kind that it could not see a live neighbour, its silence is no evidence, whatever
    was seen before.
    """
    controls = dict(seen.before)
    for kind, passed in seen.residue.by_kind().items():
        controls[kind] = controls.get(kind, True) and passed
    return controls


def _residue(seen: Seen, now: datetime) -> tuple[tuple[Residue, ...], EvidenceKind | None]:
    retention = seen.site.provider_retention
    if retention is None:
        return seen.residue.residue, None
    return declared(seen.residue.residue, retention.period, seen.removed_at or now, now)


def _evidence(
    seen: Seen, kind: EvidenceKind | None, controls: Mapping[ControlKind, bool], now: datetime
) -> Evidence | None:
    if seen.look.failure is not None:
        # A look that failed never renews an earlier one.
        return seen.previous.evidence if seen.previous is not None else None
    return Evidence(
        kind=kind or seen.info.evidence,
        examined=at_most(seen.residue.examined, seen.look.examined),
        at=now,
        control=dict(controls),
    )


def _completeness(seen: Seen) -> Completeness:
    if seen.look.failure is not None:
        return Completeness.INCOMPLETE
    by_subject = any(wanted.kind is TargetKind.SUBJECT for wanted in seen.request.wanted)
    if by_subject and seen.site.subject is None:
        return Completeness.CANNOT_BE_RULED_OUT
    unrecorded = any(field is None for field in seen.site.derived_from.values())
    if seen.site.derived_from and (unrecorded or seen.look.examined.unlinked):
        return Completeness.CANNOT_BE_RULED_OUT
    return Completeness.PROVEN
