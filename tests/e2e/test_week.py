"""A simulated week under a fixed clock: restic every night, Redis, Chroma, SQLite and files.

After every night the report is checked against the stores by readers of their own. Daylight saving
begins in the middle of it (Europe/Lisbon, 28 March 2027), and the process runs in another zone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from purge.errors import Refused
from purge.plan.again import Hold
from purge.plan.request import Wanted
from purge.state import State
from purge.targets import TargetKind
from tests.e2e.week import LESSON, QUIET, Week, a_memory, at, code
from tests.support.restic_repos import PASSWORD


@pytest.fixture
def week(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Week]:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RESTIC_PASSWORD", PASSWORD)
    with a_memory(tmp_path, tmp_path_factory.mktemp("templates")) as made:
        yield made


@pytest.mark.long
def test_a_week(week: Week) -> None:
    # Night 1: nothing is asked; the lesson gets into the backups.
    assert week.sleep().items == ()
    # Night 2: a marker in the notes, good; one too short, one fenced, one in prose.
    week.write(
        "notes/corrections.md",
        f"# Corrections\n\nRETRACTS: {LESSON}\n\nRETRACTS: key\n\n"
        f"```\nRETRACTS: {QUIET}\n```\n\nWe write RETRACTS: {QUIET} to take it back.\n",
    )
    second = week.sleep()
    (item,) = second.items
    assert len(second.refused) == 1
    assert len(second.ignored) == 1
    for site in ("logs", "memories", "embeddings", "cache"):
        assert at(item, site).state is State.CONFIRMED_DELETED, (site, at(item, site))
        assert not week.holds(site, LESSON)
        assert week.holds(site, QUIET) or site == "cache"
    promised = at(item, "backups").until
    assert promised is not None, at(item, "backups")
    # Night 3 (the clocks change): a summary that was being written turns up.
    week.write("summaries/late.md", f"- still said: {LESSON}\n- rest\n")
    third = week.sleep()
    assert not week.holds("summaries", LESSON)
    assert at(third.items[0], "summaries").reappeared
    # Night 4: somebody restates it; a note quotes it; a person's request is held.
    week.now += timedelta(hours=2)
    week.log("u9", f"I say it now: {LESSON}.")
    week.now -= timedelta(hours=2)
    hold = week.engine().add_hold(Hold(ids=frozenset({("memories", "m2"), ("logs", "u2")})))
    wanted = [Wanted(TargetKind.PHRASE, QUIET)]
    held = week.engine().request(wanted, apply=True)
    assert [step.site for step in held.steps if code(step) == "held"] == ["logs", "memories"]
    assert week.holds("memories", QUIET)
    week.write("notes/quote.md", f"# Quote\n\nOnce we believed that {LESSON}.\n")
    os.utime(week.folder / "data/notes/quote.md", (1, 1))
    fourth = week.sleep()
    assert code(at(fourth.items[0], "logs")) == "restated"
    assert code(at(fourth.items[0], "notes")) == "seen-again"
    assert week.holds("logs", LESSON)
    assert week.holds("notes", LESSON)
    # Night 5: the backup does not run; nothing is deleted, and it is said.
    week.backups_run = False
    week.now += timedelta(hours=2)
    with pytest.raises(Refused, match="Nothing was deleted"):
        week.sleep()
    week.backups_run = True
    week.now = week.now.replace(hour=4, minute=30)
    # Night 6: an old snapshot is restored over the logs; replay takes it out again.
    old = week.nights_with(LESSON)
    assert old
    first = week.harbour.snapshots()[0]
    shutil.rmtree(week.folder / "data/logs")
    logs = str(week.folder / "data/logs")
    week.harbour.run("restore", first["id"], "--target", "/", "--include", logs)
    assert week.holds("logs", LESSON)
    week.engine().replay(["logs"], apply=True)
    assert not week.holds("logs", LESSON)
    # A night without a backup moved the promise by a day; then the keep rules drop the last one.
    assert week.now > promised
    assert week.nights_with(f"Lesson: {LESSON}")
    week.sleep()
    assert week.nights_with(f"Lesson: {LESSON}") == []
    assert week.holds("memories", QUIET)
    week.engine().release_hold(hold.id)
    last = week.sleep()
    assert not week.holds("memories", QUIET)
    mine = next(item for item in last.items if item.outcome.request.origin is None)
    assert code(at(mine, "memories")) is None
