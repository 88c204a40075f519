# ruff: noqa: D102  (the name of a test says what it shows)
"""The contract suite: a store that is missing, locked, read-only, corrupt or cut off half way.

Whatever is wrong with a store, an adapter says so in the contract's own words: a ``StoreError``
with the right code, or a ``NotChecked`` or ``NotRemoved``. It never says nothing, loses nothing,
and fails in no other way.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import pytest

from purge.adapter import NotChecked, NotRemoved, ProblemCode, Statement
from purge.errors import StoreError
from purge.targets import Targets
from purge.testing.case import Case, Found, Looked, ids
from purge.testing.harness import Breakage, Planted
from purge.testing.samples import CANARY, NEIGHBOURS, SHORT, fit
from purge.testing.snapshots import bytes_of, differences
from purge.testing.suite_base import Maker, Suite, missing, names_of, told

T = TypeVar("T")

PROBLEMS: Final[Mapping[Breakage, frozenset[ProblemCode]]] = {
    Breakage.MISSING: frozenset({ProblemCode.UNREACHABLE}),
    Breakage.LOCKED: frozenset({ProblemCode.BUSY, ProblemCode.HELD_OPEN}),
    Breakage.READ_ONLY: frozenset({ProblemCode.NO_PERMISSION}),
    Breakage.CORRUPT: frozenset({ProblemCode.CORRUPT}),
    Breakage.TORN: frozenset({ProblemCode.CORRUPT}),
}
"""What an adapter may call each breakage."""
VAGUE: Final = frozenset({ProblemCode.NOT_CHECKED})
"""What it may also say of a part that it could not look at."""
_WHOLE: Final = (Breakage.LOCKED, Breakage.READ_ONLY)
"""Breakages that leave the content as it was."""
_DAMAGED: Final = (Breakage.CORRUPT, Breakage.TORN)
"""Breakages that do not."""


class BreakingSuite(Suite):
    """Coming to a store that something is wrong with."""

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Give each test the breakages that this store can have."""
        super().pytest_generate_tests(metafunc)
        for name, kinds in (("breakage", tuple(Breakage)), ("hindrance", _WHOLE)):
            if name in metafunc.fixturenames:
                shown = [kind for kind in kinds if kind not in cls.harness.unbreakable]
                metafunc.parametrize(name, shown, ids=lambda kind: str(kind.value))

    def test_find_in_a_broken_store_is_complete_or_says_what_it_is_not(
        self, make: Maker, breakage: Breakage
    ) -> None:
        case = planted(make)
        found: list[Found] = []
        with case.harness.break_it(breakage):
            before = case.snapshot()
            error = attempt(lambda: found.append(case.find(names(case))))
            assert differences(before, case.now()) == []
        if error is not None:
            says(error, PROBLEMS[breakage])
        elif sorted(found[0].ids) != names_of(case, (CANARY, SHORT)):
            says_of(found[0].not_checked, PROBLEMS[breakage] | VAGUE)
            assert found[0].not_checked, "it found less, and did not say so"

    def test_the_look_for_residue_in_a_broken_store_is_no_all_clear(
        self, make: Maker, breakage: Breakage
    ) -> None:
        case = planted(make)
        matches = case.find(names(case)).matches
        looked: list[Looked] = []
        with case.harness.break_it(breakage):
            before = case.snapshot()
            error = attempt(lambda: looked.append(case.residue(names(case), matches)))
            assert differences(before, case.now()) == []
            whole = breakage in _WHOLE or (breakage in _DAMAGED and is_whole(case))
        if error is not None:
            says(error, PROBLEMS[breakage])
        else:
            says_of(looked[0].not_checked, PROBLEMS[breakage] | VAGUE)
            doubts = [control for control in looked[0].controls if not control.passed]
            assert whole or looked[0].not_checked or doubts or looked[0].undated

    def test_remove_in_a_broken_store_loses_nothing_and_is_never_silent(
        self, make: Maker, breakage: Breakage
    ) -> None:
        case = planted(make)
        matches = case.find(names(case)).matches
        left: list[NotRemoved] = []
        with case.harness.break_it(breakage):
            readable = read(case) if breakage in _DAMAGED else None
            before = case.snapshot()
            error = attempt(lambda: left.extend(case.remove(matches)))
            state = case.now()
        if error is not None:
            says(error, PROBLEMS[breakage])
        says_of(left, PROBLEMS[breakage] | {ProblemCode.CHANGED_UNDERNEATH})
        if breakage not in _DAMAGED:
            assert error or left
            planted_all = fit(case.harness, (CANARY, SHORT, *NEIGHBOURS))
            assert missing(planted_all, case.harness.read()) == []
        elif readable is None:
            # Nobody can say what is in it, so it is left as it is.
            assert bytes_of(state) == bytes_of(before)
        else:
            kept = [record for record in readable.values() if record.id not in _TARGETS]
            assert missing(kept, case.harness.read()) == []

    def test_a_hindered_remove_is_done_once_the_hindrance_is_gone(
        self, make: Maker, hindrance: Breakage
    ) -> None:
        case = planted(make)
        matches = case.find(names(case)).matches
        with case.harness.break_it(hindrance):
            attempt(lambda: case.remove(matches))
        purged = case.purge(names(case), knowing=matches)
        assert purged.read_back.matches == ()
        assert not _TARGETS & case.harness.read().keys()
        assert purged.after.undated == () or not case.harness.visible

    def test_a_hindered_sanitize_loses_nothing_and_is_never_silent(
        self, make: Maker, hindrance: Breakage
    ) -> None:
        case = planted(make)
        matches = case.find(names(case)).matches
        case.remove(matches)
        fixable = case.residue(names(case), matches).fixable
        notes: list[NotRemoved | NotChecked] = []
        error: StoreError | None = None
        if fixable:
            with case.harness.break_it(hindrance):
                error = attempt(lambda: notes.extend(case.sanitize(fixable)))
        if error is not None:
            says(error, PROBLEMS[hindrance])
        says_of(notes, PROBLEMS[hindrance] | VAGUE)
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []
        left = case.residue(names(case), matches).fixable
        assert error or notes or not left
        if left:
            case.sanitize(left)
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []
        assert case.residue(names(case), matches).fixable == ()

    def test_check_of_a_broken_store_changes_nothing_and_a_missing_one_is_a_fault(
        self, make: Maker, breakage: Breakage
    ) -> None:
        case = planted(make)
        said: list[Statement] = []
        with case.harness.break_it(breakage):
            before = case.snapshot()
            error = attempt(lambda: said.extend(case.check()))
            assert differences(before, case.now()) == []
        if error is not None:
            says(error, PROBLEMS[breakage])
        assert [secret for item in said for secret in told(item)] == []
        if breakage is Breakage.MISSING:
            assert error or any(not statement.ok for statement in said)

    def test_a_store_that_comes_back_is_found_as_it_was(
        self, make: Maker, hindrance: Breakage
    ) -> None:
        case = planted(make)
        before = case.find(names(case))
        with case.harness.break_it(hindrance):
            attempt(lambda: case.find(names(case)))
            attempt(lambda: case.residue(names(case)))
        assert sorted(case.find(names(case)).ids) == sorted(before.ids)
        planted_all = fit(case.harness, (CANARY, SHORT, *NEIGHBOURS))
        assert missing(planted_all, case.harness.read()) == []


_TARGETS: Final = {CANARY.id, SHORT.id}


def planted(make: Maker) -> Case:
    """Return a new store with two targets between their neighbours."""
    return make((*NEIGHBOURS[:4], CANARY, *NEIGHBOURS[4:], SHORT))


def names(case: Case) -> Targets:
    """Return what names the two targets."""
    return ids(case.harness.id_of(CANARY), case.harness.id_of(SHORT))


def attempt(act: Callable[[], object]) -> StoreError | None:
    """Return the error that the contract allows; any other fails the test."""
    try:
        act()
    except StoreError as error:
        return error
    return None


def says(error: StoreError, allowed: Iterable[ProblemCode]) -> None:
    """Demand that an error has the right code and shows nothing that it may not."""
    assert error.problem in set(allowed)
    assert told(error) == []
    printed = "".join(traceback.format_exception(error))
    assert told(printed) == []


def says_of(items: Iterable[NotChecked | NotRemoved], allowed: Iterable[ProblemCode]) -> None:
    """Demand that what was left or not looked at has the right code and shows nothing."""
    codes = set(allowed)
    for item in items:
        assert item.problem in codes
        assert told(item) == []


def read(case: Case) -> Mapping[str, Planted] | None:
    """Return what an application still reads of a broken store, or ``None`` if it cannot."""
    try:
        return case.harness.read()
    except Exception:  # noqa: BLE001  (a client may fail in any way at a broken store)
        return None


def is_whole(case: Case) -> bool:
    """Whether an application still reads all that was planted."""
    readable = read(case)
    return (
        readable is not None
        and missing(fit(case.harness, (CANARY, SHORT, *NEIGHBOURS)), readable) == []
    )
