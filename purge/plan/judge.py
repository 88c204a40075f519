"""The judge: from what was observed to a state. The only place where a state is decided.

One pure function over values. It never sees what a store answered, only what looks saw. Where
observations disagree or are missing, the weaker state is the true one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from purge.adapter import ControlKind, EvidenceKind, NotChecked, NotRemoved, Residue
from purge.state import Problem, ProblemCode, State, at_least, latest

P = ProblemCode


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state, the date that belongs to it, and why it is not further."""

    state: State
    until: datetime | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that was seen of one request at one site.

    Args:
        looked: the last look for records went through.
        failure: why it did not.
        left: readable records that have to go and are still there.
        undecided_sources, undecided_copies, flagged, kept: readable records that the request
            reaches without naming them, by what is to become of them.
        scope_unknown: records that hold the words and do not say to which scope they belong.
        not_removed: what ``remove`` and ``sanitize`` left alone.
        unseen: what the look for records could not see.
        examined: the look for residue went through.
        unexamined: what the look for residue could not see.
        residue: the copies that it found.
        controls: by kind of needle, whether the look could see a live value.
        found_anywhere: some site holds, or held, something the request names.
        report_only: the site's action is ``report``.
        limited: a safety limit stopped further removal.
        reappeared: of what is left: records that were gone, and are back.
        seen_again: records that are named, and left to a person.
        restated: new statements, made after the request.
        held: records that would have to go, and that a legal hold keeps.
        missed: what to say of copies that were to be gone by now and are left.
        previous: what was proved before this run. Where a look failed, it stays.
    """

    looked: bool = True
    failure: Problem | None = None
    left: int = 0
    undecided_sources: int = 0
    undecided_copies: int = 0
    flagged: int = 0
    kept: int = 0
    scope_unknown: int = 0
    not_removed: tuple[NotRemoved | NotChecked, ...] = ()
    unseen: tuple[NotChecked, ...] = ()
    examined: bool = True
    unexamined: tuple[NotChecked, ...] = ()
    residue: tuple[Residue, ...] = ()
    controls: Mapping[ControlKind, bool] = field(default_factory=dict)
    found_anywhere: bool = True
    report_only: bool = False
    limited: bool = False
    reappeared: int = 0
    seen_again: int = 0
    restated: int = 0
    held: int = 0
    missed: Problem | None = None
    previous: Verdict | None = None


def judge(seen: Observed) -> Verdict:
    """Return the strongest state that ``seen`` proves."""
    verdict = _judge(seen)
    if verdict.problem is None and seen.missed is not None and verdict.until is not None:
        return replace(verdict, problem=seen.missed)
    if verdict.problem is None and seen.restated:
        return replace(
            verdict,
            problem=Problem(
                P.RESTATED,
                f"{_records(seen.restated)} made after the request {_say(seen.restated)} the same: "
                "a new statement, left as it is. With --suppress it goes as well.",
            ),
        )
    return verdict


def _judge(seen: Observed) -> Verdict:
    if not seen.looked and not seen.left:
        problem = seen.failure or Problem(P.UNREACHABLE, "The site could not be looked at.")
        return _as_before(seen, problem, State.ACCEPTED)
    if (readable := _readable(seen)) is not None:
        return Verdict(State.ACCEPTED, problem=readable)
    if seen.kept:
        # What else is owed here is not settled by a decision about other records.
        other = judge(replace(seen, kept=0)).problem
        return Verdict(State.ACCEPTED, problem=other or _kept(seen))
    if seen.unseen:
        return _as_before(seen, _gaps(seen.unseen), State.ACCEPTED)
    if not seen.found_anywhere:
        return Verdict(State.ACCEPTED, problem=_nothing_found())
    limit = _allowed_by_residue(seen)
    if limit.state is State.REMOVED_FROM_READS:
        return replace(limit, problem=_hindrance(seen) or limit.problem)
    if (gap := _unproven(seen)) is not None:
        return _as_before(seen, gap, State.REMOVED_FROM_READS)
    return limit


def _allowed_by_residue(seen: Observed) -> Verdict:
    """The most that the copies which were seen allow to be said."""
    undated = [copy for copy in seen.residue if copy.until is None]
    if undated:
        return Verdict(State.REMOVED_FROM_READS, problem=_undated(undated))
    dates = [copy.until for copy in seen.residue if copy.until is not None]
    if dates:
        return Verdict(State.BACKUP_RETAINED, until=latest(dates))
    return Verdict(State.CONFIRMED_DELETED)


def _as_before(seen: Observed, problem: Problem, proved: State) -> Verdict:
    """Keep what was proved before a look that failed; it neither takes back nor renews it.

    What the look did see counts all the same.
    """
    before = seen.previous
    if before is None or at_least(proved, before.state) or seen.residue:
        return Verdict(proved, problem=problem)
    return Verdict(before.state, before.until, problem)


def _readable(seen: Observed) -> Problem | None:
    """What normal reads still return."""
    if seen.left:
        return _left(seen)
    if seen.held:
        return Problem(
            P.HELD,
            f"{_records(seen.held)} kept by a legal hold. They go once it is released.",
        )
    if seen.undecided_sources:
        return Problem(
            P.SOURCE_KEPT,
            f"{_records(seen.undecided_sources)} from which a named one derives "
            f"{_hold(seen.undecided_sources)} the same words and can bring it back. "
            "Decide with --with-sources or --keep-sources.",
        )
    if seen.undecided_copies:
        return Problem(
            P.POSSIBLE_COPY,
            f"{_records(seen.undecided_copies)} without lineage {_hold(seen.undecided_copies)} "
            "the text of a named one. Decide with --with-copies or --keep-copies.",
        )
    if seen.flagged:
        return Problem(
            P.DERIVED_FROM_PURGED,
            f"{_records(seen.flagged)} {_derive(seen.flagged)} from a purged one and from others "
            "that live on. Make them again without it, or set 'when_source_purged: delete'.",
        )
    if seen.seen_again:
        return Problem(
            P.SEEN_AGAIN,
            f"{_records(seen.seen_again)} {_hold(seen.seen_again)} what was named, and nothing "
            "says that it is what was removed. Look, and remove it with 'purge resume ... "
            "--suppress' if it has to go.",
        )
    if seen.scope_unknown:
        return Problem(
            P.SCOPE_UNKNOWN,
            f"{_records(seen.scope_unknown)} {_hold(seen.scope_unknown)} the words without "
            "saying to which scope they belong; untouched.",
        )
    return None


def _kept(seen: Observed) -> Problem:
    return Problem(
        P.KEPT_BY_CHOICE,
        f"{_records(seen.kept)} with the same words kept, as you decided "
        "or because a marker stands there.",
    )


def _left(seen: Observed) -> Problem:
    if seen.report_only:
        return Problem(
            P.REPORT_ONLY,
            f"{_records(seen.left)} to be removed by a person: the manifest says 'action: report'.",
        )
    if seen.limited:
        return Problem(
            P.LIMIT, f"{_records(seen.left)} appeared meanwhile and would pass a safety limit."
        )
    hindered = _hindrance(seen)
    if hindered is None and seen.reappeared:
        return Problem(
            P.REAPPEARED, f"{_records(seen.reappeared)} that had been removed can be read again."
        )
    return hindered or Problem(P.STILL_READABLE, f"{_records(seen.left)} can still be read here.")


def _hindrance(seen: Observed) -> Problem | None:
    """Why removal or clean-up did not do all that it should."""
    if seen.failure is not None:
        return seen.failure
    for left_alone in seen.not_removed:
        if isinstance(left_alone, NotRemoved):
            return Problem(left_alone.problem, left_alone.sentence)
    undone = [part for part in seen.not_removed if isinstance(part, NotChecked)]
    return _gaps(undone) if undone else None


def _unproven(seen: Observed) -> Problem | None:
    """Why the silence of the look for residue is no evidence."""
    if seen.failure is not None:
        return seen.failure
    if not seen.examined:
        return Problem(P.NOT_CHECKED, "The look for left-over copies did not go through.")
    undone = tuple(part for part in seen.not_removed if isinstance(part, NotChecked))
    if seen.unexamined or undone:
        return _gaps((*seen.unexamined, *undone))
    failed = [kind.value if kind else "structure" for kind, ok in seen.controls.items() if not ok]
    if failed or not seen.controls:
        what = ", ".join(failed) or "no control was made"
        return Problem(
            P.CONTROL_FAILED,
            f"The look could not see a live value ({what}), so its silence proves nothing.",
        )
    return None


def _undated(copies: Sequence[Residue]) -> Problem:
    first = copies[0]
    more = f" (and {_more(len(copies) - 1, 'copy', 'copies')})" if len(copies) > 1 else ""
    return Problem(first.problem, f"{first.where}: {first.why}{more}")


def _gaps(gaps: Sequence[NotChecked]) -> Problem:
    more = f" (and {_more(len(gaps) - 1, 'place', 'places')})" if len(gaps) > 1 else ""
    return Problem(gaps[0].problem, f"{gaps[0].where}: {gaps[0].why}{more}")


def _nothing_found() -> Problem:
    return Problem(P.NOTHING_FOUND, "No site holds anything that the request names.")


def declared(
    residue: tuple[Residue, ...], retention: timedelta, removed: datetime, now: datetime
) -> tuple[tuple[Residue, ...], EvidenceKind | None]:
    """Apply what the manifest declares of a provider's own clean-up.

    Args:
        residue: what a look yielded.
        retention: how long after removal the provider keeps copies that cannot be seen.
        removed: when the record was no longer readable.
        now: the time of judging.

    Returns:
        The residue, dated where the declaration covers it and without what must be gone by now,
        and the kind of evidence if the declaration was needed.
    """
    until = removed + retention
    covered = [copy for copy in residue if copy.problem is P.BYTES_NOT_VISIBLE]
    if not covered:
        return residue, None
    others = tuple(copy for copy in residue if copy.problem is not P.BYTES_NOT_VISIBLE)
    if now >= until:
        return others, EvidenceKind.DECLARED
    return (*others, *(replace(copy, until=until) for copy in covered)), EvidenceKind.DECLARED


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def _more(count: int, one: str, many: str) -> str:
    return f"{count} more {one if count == 1 else many}"


def _say(count: int) -> str:
    return "says" if count == 1 else "say"


def _hold(count: int) -> str:
    return "holds" if count == 1 else "hold"


def _derive(count: int) -> str:
    return "derives" if count == 1 else "derive"
