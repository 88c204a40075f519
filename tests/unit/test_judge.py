"""The judge: which state is proved by what was seen. The heart of the promise."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.adapter import EvidenceKind, Match, NotChecked, NotRemoved, Residue
from purge.plan.judge import Observed, Verdict, declared, judge
from purge.state import Problem, ProblemCode, State, at_least, may_follow, weakest
from purge.targets import NeedleKind, Trace

NOW = datetime(2026, 11, 30, 3, tzinfo=UTC)
CLEAN = Observed(controls={NeedleKind.TEXT: True})
UNDATED = Residue("x.bak", "a backup copy")
DATED = Residue("snapshot 1", "kept", until=NOW + timedelta(days=3))
LATER = Residue("snapshot 2", "kept", until=NOW + timedelta(days=9))
GAP = NotChecked("link.md", "leads out of the folder")
ALONE = NotRemoved(Match("id", (), "w", {}, Trace("id")), ProblemCode.HELD_OPEN, "Held by 7.")


def test_confirmed_needs_a_look_everywhere_and_a_control_that_passed() -> None:
    assert judge(CLEAN) == Verdict(State.CONFIRMED_DELETED)


@pytest.mark.parametrize(
    ("change", "state", "code"),
    [
        ({"left": 1}, State.ACCEPTED, ProblemCode.STILL_READABLE),
        ({"left": 1, "not_removed": (ALONE,)}, State.ACCEPTED, ProblemCode.HELD_OPEN),
        ({"left": 1, "report_only": True}, State.ACCEPTED, ProblemCode.REPORT_ONLY),
        ({"left": 1, "limited": True}, State.ACCEPTED, ProblemCode.LIMIT),
        ({"looked": False}, State.ACCEPTED, ProblemCode.UNREACHABLE),
        ({"undecided_sources": 1}, State.ACCEPTED, ProblemCode.SOURCE_KEPT),
        ({"undecided_copies": 2}, State.ACCEPTED, ProblemCode.POSSIBLE_COPY),
        ({"flagged": 1}, State.ACCEPTED, ProblemCode.DERIVED_FROM_PURGED),
        ({"kept": 1}, State.ACCEPTED, ProblemCode.KEPT_BY_CHOICE),
        ({"scope_unknown": 1}, State.ACCEPTED, ProblemCode.SCOPE_UNKNOWN),
        ({"unseen": (GAP,)}, State.ACCEPTED, ProblemCode.NOT_CHECKED),
        ({"found_anywhere": False}, State.ACCEPTED, ProblemCode.NOTHING_FOUND),
        ({"examined": False}, State.REMOVED_FROM_READS, ProblemCode.NOT_CHECKED),
        ({"unexamined": (GAP,)}, State.REMOVED_FROM_READS, ProblemCode.NOT_CHECKED),
        ({"not_removed": (GAP,)}, State.REMOVED_FROM_READS, ProblemCode.NOT_CHECKED),
        ({"controls": {}}, State.REMOVED_FROM_READS, ProblemCode.CONTROL_FAILED),
        (
            {"controls": {NeedleKind.TEXT: True, NeedleKind.VECTOR: False}},
            State.REMOVED_FROM_READS,
            ProblemCode.CONTROL_FAILED,
        ),
        ({"residue": (UNDATED,)}, State.REMOVED_FROM_READS, ProblemCode.NO_END_DATE),
        ({"residue": (DATED, UNDATED)}, State.REMOVED_FROM_READS, ProblemCode.NO_END_DATE),
        (
            {"residue": (DATED,), "controls": {None: False}},
            State.REMOVED_FROM_READS,
            ProblemCode.CONTROL_FAILED,
        ),
    ],
)
def test_each_thing_that_is_missing_keeps_a_step_back(
    change: dict[str, object], state: State, code: ProblemCode
) -> None:
    verdict = judge(replace(CLEAN, **change))  # type: ignore[arg-type]  # parametrized
    assert verdict.state is state
    assert verdict.problem is not None
    assert verdict.problem.code is code
    assert verdict.until is None


def test_the_date_is_that_of_the_last_copy() -> None:
    assert judge(replace(CLEAN, residue=(LATER, DATED))) == Verdict(
        State.BACKUP_RETAINED, LATER.until
    )


observations = st.builds(
    Observed,
    looked=st.booleans(),
    left=st.integers(0, 2),
    undecided_sources=st.integers(0, 1),
    undecided_copies=st.integers(0, 1),
    flagged=st.integers(0, 1),
    kept=st.integers(0, 1),
    scope_unknown=st.integers(0, 1),
    not_removed=st.sampled_from([(), (ALONE,), (GAP,)]),
    unseen=st.sampled_from([(), (GAP,)]),
    examined=st.booleans(),
    residue=st.sampled_from([(), (DATED,), (UNDATED,), (DATED, UNDATED)]),
    unexamined=st.sampled_from([(), (GAP,)]),
    controls=st.sampled_from([{}, {None: True}, {None: False}, {NeedleKind.ID: True}]),
    found_anywhere=st.booleans(),
    previous=st.sampled_from(
        [None, *(Verdict(state, NOW if "until" in state else None) for state in State)]
    ),
)


@given(observations)
def test_a_claim_is_never_stronger_than_what_was_seen(seen: Observed) -> None:
    verdict = judge(replace(seen, previous=None))
    readable = seen.left or seen.undecided_sources or seen.undecided_copies or seen.flagged
    if verdict.state is not State.ACCEPTED:
        assert seen.looked
        assert not readable
        assert not seen.unseen
        assert seen.found_anywhere
    if at_least(verdict.state, State.BACKUP_RETAINED):
        assert seen.examined
        assert not seen.unexamined
        assert seen.controls
        assert all(seen.controls.values())
        assert all(copy.until is not None for copy in seen.residue)
    if verdict.state is State.CONFIRMED_DELETED:
        assert not seen.residue
        assert verdict.problem is None
    assert (verdict.until is not None) == (verdict.state is State.BACKUP_RETAINED)


@given(observations)
def test_a_look_that_failed_neither_takes_back_nor_renews(seen: Observed) -> None:
    verdict = judge(seen)
    alone = judge(replace(seen, previous=None))
    if verdict != alone:
        assert seen.previous is not None
        assert verdict.state is seen.previous.state
        assert verdict.problem is not None  # so that nobody takes it for a confirmation
        assert not seen.left
        assert not seen.residue


def test_what_is_back_takes_a_confirmed_step_back() -> None:
    confirmed = Verdict(State.CONFIRMED_DELETED)
    assert judge(replace(CLEAN, left=1, previous=confirmed)).state is State.ACCEPTED
    undated = judge(replace(CLEAN, residue=(UNDATED,), previous=confirmed))
    assert undated.state is State.REMOVED_FROM_READS


def test_a_provider_that_declares_its_retention_gives_a_date_and_later_evidence() -> None:
    hidden = Residue("server", "cannot be seen", problem=ProblemCode.BYTES_NOT_VISIBLE)
    month = timedelta(days=30)
    residue, kind = declared((hidden, UNDATED), month, NOW, NOW + timedelta(days=1))
    assert kind is EvidenceKind.DECLARED
    assert {copy.until for copy in residue} == {None, NOW + month}
    residue, kind = declared((hidden,), month, NOW, NOW + month)
    assert (residue, kind) == ((), EvidenceKind.DECLARED)
    assert declared((UNDATED,), month, NOW, NOW) == ((UNDATED,), None)


def test_a_whole_is_as_far_as_its_weakest_step() -> None:
    for one, other in product(State, State):
        whole = weakest([one, other])
        assert at_least(one, whole)
        assert at_least(other, whole)
        assert whole in (one, other)


def test_a_step_begins_as_accepted() -> None:
    assert may_follow(None, State.ACCEPTED)
    assert not any(may_follow(None, state) for state in State if state is not State.ACCEPTED)
    assert all(may_follow(before, after) for before, after in product(State, State))


def test_a_failure_of_removal_is_said_instead_of_a_guess() -> None:
    failure = Problem(ProblemCode.NO_PERMISSION, "The file may not be written.")
    verdict = judge(replace(CLEAN, left=2, failure=failure))
    assert verdict == Verdict(State.ACCEPTED, problem=failure)
