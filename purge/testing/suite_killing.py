# ruff: noqa: D102  (the name of a test says what it shows)
"""The contract suite: killed with no chance to clean up, at many moments, and run again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from purge.adapter import Match
from purge.targets import Targets
from purge.testing.case import Case, ids
from purge.testing.child import TEMPORARY, Ended, Moment, run_verb
from purge.testing.samples import CANARY, CANARY_WORDS, NEIGHBOURS, SHORT, fit
from purge.testing.suite_base import Maker, Suite, missing, still_there, words_in


class KillingSuite(Suite):
    """Killed in the middle, and run again.

    Half of the moments are before a call that may write and is another than the one before it,
    spread over all of these, first and last included; the others are after a time, spread over
    the time that the verb takes.
    """

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Give each test the moments that the harness has patience for."""
        super().pytest_generate_tests(metafunc)
        if "point" in metafunc.fixturenames:
            points = range(cls.harness.kill_points)
            metafunc.parametrize("point", points, ids=lambda at: f"{at + 1} of {len(points)}")

    @pytest.fixture(scope="class")
    @classmethod
    def undisturbed(cls, make_shared: Maker, temporary: Path) -> Mapping[str, Ended]:
        """What each verb takes when nobody kills it."""
        case = planted(make_shared)
        targets = names(case)
        matches = case.find(targets).matches
        return {
            verb: run_verb(case, verb, targets, matches, Moment(), temporary)
            for verb in ("remove", "sanitize")
        }

    def test_killed_in_remove_nothing_else_is_lost_and_a_repeat_finishes(
        self, make: Maker, undisturbed: Mapping[str, Ended], tmp_path: Path, point: int
    ) -> None:
        case = planted(make)
        targets = names(case)
        matches = case.find(targets).matches
        moment = self.moment(undisturbed["remove"], point)
        ended = run_verb(case, "remove", targets, matches, moment, tmp_path)
        assert ended.killed or was_over(moment, ended)
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []
        finish(case, targets, matches, tmp_path)

    def test_killed_in_sanitize_nothing_else_is_lost_and_a_repeat_finishes(
        self, make: Maker, undisturbed: Mapping[str, Ended], tmp_path: Path, point: int
    ) -> None:
        case = planted(make)
        targets = names(case)
        matches = case.find(targets).matches
        case.remove(matches)
        moment = self.moment(undisturbed["sanitize"], point)
        ended = run_verb(case, "sanitize", targets, matches, moment, tmp_path)
        assert ended.killed or was_over(moment, ended)
        finish(case, targets, matches, tmp_path)

    def moment(self, undisturbed: Ended, point: int) -> Moment:
        """Return the moment of a point: calls for even points, times for odd ones."""
        turns = undisturbed.turns
        if point % 2 == 0 and turns:
            points = (self.harness.kill_points + 1) // 2
            step = (len(turns) - 1) / max(1, points - 1)
            return Moment(call=turns[round(step * (point // 2))])
        share = (point + 0.5) / self.harness.kill_points
        return Moment(seconds=max(0.0005, undisturbed.seconds * share))


def planted(make: Maker) -> Case:
    """Return a new store with two targets between their neighbours."""
    return make((*NEIGHBOURS[:4], CANARY, *NEIGHBOURS[4:], SHORT))


def names(case: Case) -> Targets:
    """Return what names the two targets."""
    return ids(case.harness.id_of(CANARY), case.harness.id_of(SHORT))


def finish(case: Case, targets: Targets, matches: Iterable[Match], folder: Path) -> None:
    """Run again, and demand everything that a run has to reach."""
    purged = case.purge(targets, knowing=matches)
    assert purged.left == ()
    assert purged.sanitized == ()
    assert purged.read_back.matches == ()
    assert purged.after.not_checked == ()
    assert all(control.passed for control in purged.after.controls)
    after = case.harness.read()
    assert missing(fit(case.harness, NEIGHBOURS), after) == []
    assert len(after) == len(fit(case.harness, NEIGHBOURS))
    if case.harness.visible:
        assert purged.after.undated == ()
        assert words_in(case.harness.contents(), (CANARY.id, *CANARY_WORDS)) == {}
    assert still_there(folder / TEMPORARY, (CANARY.id, *CANARY_WORDS)) == {}


def was_over(moment: Moment, ended: Ended) -> bool:
    """Whether the verb ended before the moment came: it was quicker, or had less to write."""
    return moment.call is None or moment.call > max(ended.turns, default=0)
