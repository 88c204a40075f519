"""A simulated month, told in full (``tests/e2e/month_story.py``), and others by lot.

In both the shown sweep must foretell the applied one every night. Of the told ones every sentence
of every report is checked against the stores by a witness that uses nothing of ``purge``
(``tests/e2e/month_witness.py``); the first eight nights of one are no long test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from purge.errors import Refused
from purge.plan.sweep import Sweep
from purge.state import State
from tests.e2e.month_memory import a_memory as a_told_memory
from tests.e2e.month_story import KEY, TICKETS, TIDES, WINCH, WIPED, Story
from tests.e2e.week import Week, a_memory, at
from tests.support.restic_repos import PASSWORD

NIGHTS = 30


@pytest.fixture
def memory(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Week]:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RESTIC_PASSWORD", PASSWORD)
    with a_memory(tmp_path, tmp_path_factory.mktemp("templates")) as made:
        yield made


class Month:
    """What happens in a month, drawn by lot."""

    def __init__(self, memory: Week, seed: int) -> None:
        self.memory, self.random = memory, Random(seed)
        self.lessons: list[str] = []
        self.new: list[str] = []

    def learn(self, number: int) -> None:
        """A wrong lesson gets into log, memory, vector, cache and summary."""
        words = f"lesson {number:02d} about the winch was never looked into"
        self.lessons.append(words)
        memory = self.memory
        memory.log(f"l{number}", f"Keep in mind: {words}.")
        memory.remember(f"n{number}", f"Lesson: {words}", f"l{number}")
        vector = [number / 32, 0.5, 0.25, 1.0]
        memory.vectors(
            [{"id": f"w{number}", "text": words, "memory": f"n{number}", "vector": vector}]
        )
        memory.answer(f"b{number}", f"Yes: {words}", f"n{number}")
        memory.write(f"summaries/s{number}.md", f"- it was said that {words}\n- rest\n")

    def retract(self) -> None:
        """Its marker is written a night later."""
        for number, words in enumerate(self.lessons):
            path = f"notes/retract-{number}.md"
            if words not in self.new and not (self.memory.folder / "data" / path).exists():
                self.memory.write(path, f"# Taken back\n\nRETRACTS: {words}\n")
                self.new.append(words)

    def disturb(self, night: int) -> None:
        """Something brings an old lesson back, or says it anew."""
        if not self.new:
            return
        words = self.random.choice(self.new)
        event = self.random.choice(["late", "rebuild", "restate", "quote", "nothing"])
        if event == "late":
            self.memory.write(f"summaries/late-{night}.md", f"- again: {words}\n- rest\n")
        elif event == "rebuild":
            number = self.lessons.index(words)
            self.memory.remember(f"again-{night}", f"Lesson: {words}", f"l{number}")
        elif event == "restate":
            self.memory.log(f"said-{night}", f"I say it now: {words}.")
        elif event == "quote":
            self.memory.write(f"notes/quote-{night}.md", f"# Quote\n\nWe believed: {words}.\n")


def name_new(memory: Week, month: Month, done: Sweep) -> None:
    """Remember which request is about which words, in the order in which they were made."""
    for item in done.items:
        id = item.outcome.request.id
        if id not in memory.words:
            taken = set(memory.words.values())
            memory.words[id] = next(words for words in month.new if words not in taken)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_month(memory: Week, seed: int) -> None:
    month = Month(memory, seed)
    closed = 0
    for night in range(NIGHTS):
        month.retract()
        if night % 6 == 0:
            month.learn(night)
        month.disturb(night)
        memory.backups_run = night != 17
        if night == 17:
            memory.now += timedelta(hours=2)  # past what the gate allows
            with pytest.raises(Refused):
                memory.sleep(lambda done: name_new(memory, month, done))
            memory.now -= timedelta(hours=2)
            continue
        done = memory.sleep(lambda done: name_new(memory, month, done))
        closed += sum(item.closed for item in done.items)
        for item in done.items:
            words = memory.words[item.outcome.request.id]
            for site in ("embeddings", "cache"):
                assert not memory.holds(site, words), (night, site)
                assert at(item, site).state is State.CONFIRMED_DELETED
    memory.now += timedelta(minutes=1)
    assert closed or month.new


WEEK = {
    2: ["mark", "attack"],
    3: ["late_summary", "rebuild"],
    4: ["restate", "quote", "hold_and_ask"],
    5: ["no_backup"],
    6: ["restore", "unquote"],
    7: ["release"],
}
MONTH = {
    2: ["mark", "attack"],
    3: ["late_summary"],
    4: ["rebuild"],
    5: ["restore"],
    6: ["restate", "quote", "hold_and_ask"],
    7: ["no_backup"],
    10: ["release"],
    11: ["mark_twice"],
    12: ["unquote", "unsay"],
    15: ["learn_winch"],
    16: ["say_in_log"],
    20: ["no_forget"],
    21: ["no_forget"],
    25: ["learn_tides"],
    26: ["mark_tides"],
}


@contextmanager
def told(
    first: datetime, schedule: dict[int, list[str]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Story]:
    """A memory to which what stands in a schedule happens; the machine is in another zone."""
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("RESTIC_PASSWORD", PASSWORD)
    (folder / "templates").mkdir()
    with a_told_memory(folder, folder / "templates", first) as memory:
        yield Story(memory, schedule)


def test_a_week_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On the fourth night, 28 March, the hour of the backup does not exist.
    with told(datetime(2027, 3, 24), WEEK, tmp_path, monkeypatch) as story:
        for number in range(1, 4):
            story.night(number)
        assert len(story.last["markers"]["refused"]) == 2  # too short, and too much
        assert len(story.last["markers"]["ignored"]) == 3  # in a fence, a bullet, a tool's words
        assert story.step(WIPED, "summaries")["reappeared"]
        assert story.step(WIPED, "memories")["reappeared"]
        story.night(4)
        assert story.code(WIPED, "logs") == "restated"
        assert story.code(WIPED, "notes") == "seen-again"
        assert story.code(KEY, "logs") == story.code(KEY, "memories") == "held"
        for number in range(5, 8):
            story.night(number)
        assert story.step(KEY, "memories")["state"] == "confirmed-deleted"
        claims = story.witness.claims
    for claim in ("foretold", "reappeared", "restated", "seen-again", "held", "confirmed-deleted"):
        assert claims[claim], claim


@pytest.mark.long
def test_a_month_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clocks go back in the 27th night, in the hour of the backup.
    late, missed = [], []
    with told(datetime(2027, 10, 4), MONTH, tmp_path, monkeypatch) as story:
        for number in range(1, 35):
            story.night(number)
            late += [number for one in story.last.get("overdue", ()) if one["due"]]
            missed += [number for one in story.last.get("overdue", ()) if not one["due"]]
        closed = {story.witness.words[id] for id in story.witness.closed}
        open_ = {story.witness.words[item["request"]["id"]] for item in story.last["requests"]}
    assert closed == {WIPED, KEY, TICKETS, WINCH, TIDES}
    assert not open_ & closed
    assert missed
    assert missed[0] in (20, 21)
    assert late
    assert late[0] == 33  # what nobody could find was asked for in the second night


@pytest.mark.long
def test_the_date_of_a_request_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = {2: ["mark"], 4: ["say_in_log"]}
    with told(datetime(2027, 10, 4), schedule, tmp_path, monkeypatch) as story:
        story.learn_winch()
        for number in range(1, 3):
            story.night(number)
        promised = story.step(WIPED, "backups")["until"]
        for number in range(3, 5):
            story.night(number)
        assert story.step(WINCH, "backups")["until"] > promised
        assert story.step(WIPED, "backups")["until"] == promised


@pytest.mark.long
def test_a_new_statement_does_not_move_a_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(datetime(2027, 10, 4), {2: ["mark"], 3: ["restate"]}, tmp_path, monkeypatch) as story:
        for number in range(1, 3):
            story.night(number)
        promised = story.step(WIPED, "backups")["until"]
        for number in range(3, 5):
            story.night(number)
        assert story.code(WIPED, "logs") == "restated"
        assert story.step(WIPED, "backups")["until"] == promised
