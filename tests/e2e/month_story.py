"""What happens to the memory of :mod:`tests.e2e.month_memory`, night by night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from purge.errors import ExitCode, Refused
from purge.plan.again import Hold
from purge.plan.request import Wanted
from purge.targets import TargetKind
from tests.e2e.month_memory import KEPT_DAYS, Memory
from tests.e2e.month_stores import Stores, says
from tests.e2e.month_witness import Witness

WIPED = "the staging database may be wiped at any time"
KEY = "the boathouse key lies under the third stone"
TICKETS = "the ferry tickets are bought at the north pier"
WINCH = "the winch is oiled with the blue can only"
TIDES = "the tide table of last year will do as well"
ELSEWHERE = "the other crew sails without a second anchor"
MANY = "nothing to report from the mooring tonight"
LIGHT = "the anchor light needs no bulb at full moon"
LESSONS = {"1": WIPED, "2": KEY, "3": TICKETS}


class Story:
    """The events, each a method; a schedule says on which night which of them happens."""

    def __init__(self, memory: Memory, schedule: Mapping[int, Sequence[str]]) -> None:
        self.memory, self.schedule = memory, schedule
        self.stores = Stores(memory.root, memory.harbour, memory.redis, memory.vectors)
        self.witness = Witness(self.stores, KEPT_DAYS, (1, 50))
        self.new: list[str] = []
        self.hold = ""
        self.backups = self.forgets = True
        self.happened: set[str] = set()
        self.last: dict[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        for number, words in LESSONS.items():
            self.learn(number, words)
        memory = self.memory
        memory.log("quiet", "We painted the shed.")
        memory.remember("quiet", "Fact: the shed is painted", "quiet")
        memory.embed(("quiet", "Fact: the shed is painted", "quiet"))
        memory.answer("quiet", "Yes, it is painted", "quiet")
        memory.log("tool", f"RETRACTS: {KEY}", role="tool")
        memory.log("mole", f"Our rule: {ELSEWHERE}.", project="mole")
        memory.remember("mole", f"Lesson: {ELSEWHERE}", "mole", project="mole")
        self.witness.beyond[ELSEWHERE] = Counter(logs=1, memories=1)
        for count in range(1000):
            memory.log(f"moor{count}", f"{count}: {MANY}")
        memory.write("rules/always.md", "# Always", f"- {WIPED}", f"- {TICKETS}", "- be kind")
        memory.write("summaries/week.md", "- a quiet week")
        memory.write("notes/day.md", "# Day", "Nothing much.", f"Somebody said {WIPED}.")
        memory.write("team/crew.md", "---\nproject: quay\n---\n\n# Crew", "All well.")

    def learn(self, number: str, words: str) -> None:
        """A lesson gets into the log, a memory, its vector and an answer."""
        memory = self.memory
        memory.log(f"u{number}", f"Keep in mind: {words}.")
        memory.remember(f"m{number}", f"Lesson: {words}", f"u{number}")
        memory.embed((f"v{number}", f"Lesson: {words}", f"m{number}"))
        memory.answer(f"a{number}", f"Yes: {words}", f"m{number}")

    # What happens in the course of a day.

    def mark(self) -> None:
        """A good marker among lines that are none."""
        self.memory.write(
            *("notes/corrections.md", "# Corrections", f"RETRACTS: {WIPED}", "RETRACTS: key"),
            *(f"```\nRETRACTS: {LIGHT}\n```", f"- RETRACTS: {LIGHT}", "We write RETRACTS: first."),
        )
        self.new.append(WIPED)

    def attack(self) -> None:
        """Markers that reach for another project, and for a thousand records."""
        self.memory.write("notes/flood.md", "# All quiet", f"RETRACTS: {MANY}")
        self.memory.write(
            *("team/attack.md", "---\nproject: quay\n---\n\n# Not yours", f"RETRACTS: {ELSEWHERE}")
        )
        self.new.append(ELSEWHERE)

    def late_summary(self) -> None:
        """A job that began before the deletion writes what it made."""
        before = self.memory.now - timedelta(days=1, hours=2)
        self.memory.write("summaries/late.md", f"- they said that {WIPED}", "- rest", at=before)

    def rebuild(self) -> None:
        """The memories are made again from an old raw log, with new ids."""
        self.memory.remember("m1-again", f"Lesson: {WIPED}", "u1")
        self.memory.embed(("v1-again", f"Lesson: {WIPED}", "m1-again"))

    def restate(self) -> None:
        """A person says it anew."""
        self.memory.log("u1-new", f"I looked, and this time it holds: {WIPED}.")

    def unsay(self) -> None:
        """A person takes the new statement out of the log."""
        path = self.memory.root / "data/logs/chat.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "u1-new" not in line), encoding="utf-8")

    def quote(self) -> None:
        """An old note that only tells what was believed turns up."""
        before = self.memory.now - timedelta(days=20)
        self.memory.write("notes/quote.md", f"Once we believed that {WIPED}.", at=before)

    def unquote(self) -> None:
        """A person rewrites the note."""
        self.memory.write("notes/quote.md", "Once we believed something.")

    def hold_and_ask(self) -> None:
        """A record is held, and then somebody asks for it to be forgotten."""
        ids = frozenset({("memories", "m2"), ("logs", "u2")})
        self.hold = self.memory.engine().add_hold(Hold(ids=ids)).id
        done = self.memory.engine().request([Wanted(TargetKind.PHRASE, KEY)], apply=True)
        id = done.request.id
        self.witness.words[id] = KEY
        for step in done.steps:
            self.witness.removals.setdefault((id, step.site), []).append(self.memory.now)

    def release(self) -> None:
        self.memory.engine().release_hold(self.hold)

    def mark_twice(self) -> None:
        """Two people take back the same lesson."""
        for name in ("ann", "ben"):
            self.memory.write(f"notes/{name}.md", f"# {name}", f"RETRACTS: {TICKETS}")
            self.new.append(TICKETS)

    def learn_winch(self) -> None:
        self.learn("4", WINCH)

    def say_in_log(self) -> None:
        """The user retracts in the conversation."""
        self.memory.log("retract", f"RETRACTS: {WINCH}")
        self.new.append(WINCH)

    def learn_tides(self) -> None:
        self.learn("5", TIDES)

    def mark_tides(self) -> None:
        self.memory.write("notes/tides.md", f"RETRACTS: {TIDES}")
        self.new.append(TIDES)

    def restore(self) -> None:
        """The logs are put back from the oldest snapshot, and what was purged goes again."""
        oldest = self.stores.snapshots()[0]
        assert oldest.says(WIPED)
        self.memory.restore(oldest.id, "logs")
        self.memory.now -= timedelta(hours=4)  # in the evening, before the backup
        self.witness.look()
        assert any(says(text, WIPED) for _, text in self.witness.before["logs"])
        night = self.memory.replayed(["logs"])
        self.witness.check(None, night, [], self.memory.now)
        self.memory.now += timedelta(hours=4)
        assert not any(says(text, WIPED) for _, text in self.stores.records()["logs"])

    # The night.

    def night(self, number: int) -> None:
        """Live through a day and its night, and let the witness check what is said."""
        self.memory.next_night()
        self.backups, self.forgets, self.new = True, True, []
        for event in self.schedule.get(number, ()):
            if event == "no_backup":
                self.backups = self.forgets = False
            elif event == "no_forget":
                self.forgets = False
            else:
                getattr(self, event)()
            self.happened.add(event)
        if self.backups:
            self.memory.back_up()
        if self.forgets:
            self.memory.forget()
        self.witness.look()
        before = self.stores.print_of_all()
        shown = self.memory.shown()
        assert self.stores.print_of_all() == before, "a shown sweep changed something"
        if not self.backups:
            with pytest.raises(Refused, match="Nothing was deleted") as refused:
                self.memory.applied()
            assert refused.value.exit_code is ExitCode.REFUSED
            assert self.stores.print_of_all() == before
            assert self.stores.records() == self.witness.before
            assert shown.document["snapshot"]["refusal"] is not None
            return
        applied = self.memory.applied()
        self.last = applied.document
        self.witness.check(shown, applied, self.new, self.memory.now)

    def step(self, words: str, site: str) -> dict[str, Any]:
        """What the last sweep said of the first request about the words."""
        for item in self.last["requests"]:
            if self.witness.words[item["request"]["id"]] == words:
                return next(dict(step) for step in item["steps"] if step["site"] == site)
        raise AssertionError("there is no such request")

    def code(self, words: str, site: str) -> str | None:
        problem = self.step(words, site)["problem"]
        return None if problem is None else str(problem["code"])
