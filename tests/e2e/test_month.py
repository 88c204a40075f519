"""A simulated month: every few nights a new wrong lesson, and what a month brings, by lot.

Long. Every night the shown sweep must foretell the applied one, and every state in every report is
checked against the stores by readers of their own (``tests/e2e/week.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from purge.errors import Refused
from purge.plan.sweep import Sweep
from purge.state import State
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
