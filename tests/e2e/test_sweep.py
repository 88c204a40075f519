"""The sweep on real files, night by night, under a clock that the tests turn.

What is left is read from the files by hand, never asked of the engine.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from purge.cli.wiring import registry
from purge.engine import Engine
from purge.errors import Locked, Refused, UsageFault
from purge.ledger import KeyState, Ledger, run_lock
from purge.plan.again import Hold
from purge.plan.outcome import Outcome, Step
from purge.plan.request import Decisions, Wanted
from purge.plan.sweep import Item, Sweep
from purge.report.sweep import metrics_text, sweep_document
from purge.state import ProblemCode, State
from purge.targets import TargetKind

ZONE = ZoneInfo("Asia/Tokyo")
NIGHT = datetime(2026, 11, 30, 4, 0, tzinfo=ZONE)
LESSON = "the staging database may be wiped at any time"
PHRASE = Wanted(TargetKind.PHRASE, LESSON)
OTHER = "the back-room till talks to staging"


@dataclass
class Memory:
    """Logs, notes, memories made from logs, summaries made from memories, and snapshots."""

    folder: Path
    now: datetime = NIGHT
    markers: dict[str, Any] | None = field(default_factory=lambda: {"from": ["notes"]})
    safety: dict[str, Any] = field(
        default_factory=lambda: {"snapshot": {"site": "backups", "max_age": "26h"}}
    )
    keep_for: str = "10d"
    scoped: bool = False

    def __post_init__(self) -> None:
        data = self.folder / "data"
        for name in ("logs", "notes", "summaries"):
            (data / name).mkdir(parents=True)
        (self.folder / "snapshots").mkdir()
        with self.database() as database:
            database.execute(
                "CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, source TEXT, at TEXT)"
            )
        self.log("u1", f"Keep in mind: {LESSON}.", NIGHT - timedelta(days=3))
        self.log("u2", OTHER, NIGHT - timedelta(days=3))
        self.remember("m1", f"Lesson: {LESSON}", "u1")
        self.remember("m2", OTHER, "u2")
        self.write("notes/lessons.md", f"# Lessons\n\n- {LESSON}\n- {OTHER}\n")
        self.write("summaries/week.md", f"- all of it: {LESSON} <!-- from: m1 -->\n- rest\n")

    def database(self) -> Any:
        connection = sqlite3.connect(self.folder / "data/memories.db", isolation_level=None)
        return closing(connection)

    def log(self, id: str, text: str, at: datetime, **more: str) -> None:
        line = {"id": id, "text": text, "at": at.isoformat(), **more}
        with open(self.folder / "data/logs/chat.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def remember(self, id: str, text: str, source: str | None, at: datetime | None = None) -> None:
        with self.database() as database:
            database.execute(
                "INSERT INTO memories VALUES (?, ?, ?, ?)",
                (id, text, source, (at or NIGHT - timedelta(days=3)).isoformat()),
            )

    def write(self, name: str, text: str) -> None:
        (self.folder / "data" / name).write_text(text, encoding="utf-8")

    def mark(self, *lines: str, name: str = "notes/corrections.md") -> None:
        self.write(name, "# Corrections\n\n" + "\n\n".join(lines) + "\n")

    def backup(self, suffix: str = "") -> Path:
        there = self.folder / "snapshots" / f"{self.now:%Y-%m-%dT%H%M}{suffix}"
        shutil.copytree(self.folder / "data", there / "data")
        return there

    def manifest(self) -> dict[str, Any]:
        scope = {"scope": {"project": "project"}} if self.scoped else {}
        sites: dict[str, Any] = {
            "logs": {"adapter": "jsonl", "path": "data/logs", "id": "id", "time": "at", **scope},
            "notes": {"adapter": "markdown", "path": "data/notes", "record": "block", **scope},
            "memories": {
                **{"adapter": "sql", "url": "sqlite:///data/memories.db", "table": "memories"},
                **{
                    "id": "id",
                    "text": ["content"],
                    "time": "at",
                    "derived_from": {"logs": "source"},
                },
            },
            "summaries": {
                **{"adapter": "markdown", "path": "data/summaries", "record": "block"},
                "derived_from": {"memories": "from"},
            },
            "backups": {
                **{"adapter": "snapshots", "path": "snapshots", "keep_for": self.keep_for},
                "covers": ["logs", "notes", "memories", "summaries"],
            },
        }
        whole = {"purge": 1, "name": "m", "timezone": "Asia/Tokyo", "safety": self.safety}
        markers = {"markers": self.markers} if self.markers else {}
        return {**whole, **markers, "sites": sites}

    def engine(self) -> Engine:
        path = self.folder / "purge.yaml"
        path.write_text(json.dumps(self.manifest()))
        return Engine.open(path, registry(), environ={}, clock=lambda: self.now)

    def night(self, days: float = 1, *, backup: bool = True) -> Sweep:
        """Let time pass, back up, and sweep; the shown sweep must foretell the applied one."""
        self.now += timedelta(days=days)
        if backup:
            self.backup()
        before = self.content()
        shown = self.engine().sweep()
        assert self.content() == before, "a sweep that only shows changed something"
        done = self.engine().sweep(apply=True)
        assert [_owed(item) for item in shown.items] == [_owed(item) for item in done.items]
        return done

    def content(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted((self.folder / "data").rglob("*"))
            if path.is_file()
        }

    def says(self, words: str) -> set[str]:
        """The live places that hold words, read by hand."""
        found = set()
        for name, content in self.content().items():
            if words.encode() in content:
                found.add(name.removeprefix("data/"))
        return found

    def ledger(self) -> Ledger:
        engine = self.engine()
        return Ledger.open_read_only(engine.manifest.ledger, engine.manifest.key_file)


def _owed(item: Item) -> dict[str, tuple[int, ...]]:
    """What a sweep says of each site, whether it was still to go or is gone."""
    return {
        step.site: (step.tally.to_remove, step.tally.held, step.tally.seen_again)
        for step in item.outcome.steps
    }


def step(item: Item | Outcome, site: str) -> Step:
    outcome = item.outcome if isinstance(item, Item) else item
    return next(step for step in outcome.steps if step.site == site)


def codes(outcome: Outcome) -> dict[str, str]:
    return {s.site: s.problem.code.value for s in outcome.steps if s.problem is not None}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path)


def asked(memory: Memory, *wanted: Wanted, **more: Any) -> Outcome:
    return memory.engine().request(wanted or (PHRASE,), apply=True, **more)


# The gate.


def no_snapshot(memory: Memory) -> None:
    del memory


def an_old_one(memory: Memory) -> None:
    memory.now -= timedelta(hours=27)
    memory.backup()
    memory.now += timedelta(hours=27)


def one_that_failed_half_way(memory: Memory) -> None:
    (memory.backup() / "data/memories.db").unlink()


def one_still_being_made(memory: Memory) -> None:
    memory.backup(".partial")


def one_from_the_future(memory: Memory) -> None:
    memory.now += timedelta(hours=3)
    memory.backup()
    memory.now -= timedelta(hours=3)


@pytest.mark.parametrize(
    "make",
    [no_snapshot, an_old_one, one_that_failed_half_way, one_still_being_made, one_from_the_future],
)
def test_without_a_fresh_snapshot_nothing_is_deleted(
    memory: Memory, make: Callable[[Memory], None]
) -> None:
    memory.mark(f"RETRACTS: {LESSON}")
    make(memory)
    before = memory.content()
    with pytest.raises(Refused, match="Nothing was deleted") as refused:
        memory.engine().sweep(apply=True)
    assert refused.value.exit_code == 4
    assert memory.content() == before
    assert not (memory.folder / ".purge/ledger.db").exists()
    shown = memory.engine().sweep()
    assert shown.gate.refusal is not None
    assert shown.to_remove == 4


def test_a_manifest_without_a_snapshot_needs_to_be_told(memory: Memory) -> None:
    memory.safety = {}
    memory.mark(f"RETRACTS: {LESSON}")
    with pytest.raises(Refused, match="names no snapshot"):
        memory.engine().sweep(apply=True)
    assert memory.engine().sweep(apply=True, without_snapshot=True).items


def test_a_flag_does_not_open_a_gate_that_is_configured(memory: Memory) -> None:
    with pytest.raises(Refused):
        memory.engine().sweep(apply=True, without_snapshot=True)


# Markers.


def test_a_marker_is_one_request_however_many_nights_read_it(memory: Memory) -> None:
    memory.mark(f"RETRACTS: {LESSON}")
    first = memory.night(0)
    assert [item.new for item in first.items] == [True]
    assert memory.says(LESSON) == {"notes/corrections.md"}
    assert b"\n\nRETRACTS: " + LESSON.encode() in memory.content()["data/notes/corrections.md"]
    second = memory.night()
    assert [item.outcome.request.id for item in second.items] == [
        item.outcome.request.id for item in first.items
    ]
    assert step(second.items[0], "backups").state is State.BACKUP_RETAINED


def test_two_markers_for_one_lesson_agree(memory: Memory) -> None:
    memory.mark(f"RETRACTS: {LESSON}")
    memory.mark(f"RETRACTS: {LESSON}", name="notes/also.md")
    done = memory.night(0)
    assert len(done.items) == 2
    assert all(item.outcome.settled for item in done.items)
    assert memory.says(LESSON) == {"notes/corrections.md", "notes/also.md"}


@pytest.mark.parametrize(
    ("line", "why"),
    [("RETRACTS:", "names nothing"), ("RETRACTS: till", "4 columns wide")],
)
def test_a_bad_marker_is_refused_and_the_rest_goes_on(memory: Memory, line: str, why: str) -> None:
    memory.mark(line, f"RETRACTS: {LESSON}", "```\nRETRACTS: " + OTHER + "\n```")
    done = memory.night(0)
    assert len(done.items) == 1
    assert why in done.refused[0].why
    assert len(done.ignored) == 1
    assert memory.says(LESSON) == {"notes/corrections.md"}
    assert "data/logs/chat.jsonl" not in memory.says(OTHER)
    assert "logs/chat.jsonl" in memory.says(OTHER)


def test_a_marker_that_meets_too_much_is_refused_without_a_number(memory: Memory) -> None:
    memory.safety |= {"max_records": 3}
    memory.mark(f"RETRACTS: {LESSON}", f"RETRACTS: {OTHER}")
    done = memory.night(0)
    assert [one.why for one in done.refused if "would remove 4 records" in one.why]
    assert "logs/chat.jsonl" in memory.says(LESSON)
    assert memory.says(OTHER) == {"notes/corrections.md"}


def test_a_marker_reaches_no_further_than_its_scope(tmp_path: Path) -> None:
    memory = Memory(tmp_path, scoped=True)
    memory.log("u8", LESSON, NIGHT - timedelta(days=2), project="boat")
    memory.log("u9", LESSON, NIGHT - timedelta(days=2), project="cafe")
    memory.write("notes/cafe.md", f"---\nproject: cafe\n---\n\nRETRACTS: {LESSON}\n")
    memory.write("notes/open.md", f"RETRACTS: {OTHER}\n")
    done = memory.night(0)
    assert [one.where for one in done.refused] == ["data/notes/open.md, line 1"]
    assert "does not say to which project" in done.refused[0].why
    left = memory.content()["data/logs/chat.jsonl"]
    assert b"u8" in left
    assert b"u9" not in left
    assert b'"u1"' in left, "a record that does not say its scope is untouched"


def test_a_record_that_carries_a_marker_is_kept_also_when_its_text_matches(
    memory: Memory,
) -> None:
    text = f"I wrote that {LESSON}, which is wrong.\n\nRETRACTS: {LESSON}"
    memory.log("u5", text, NIGHT)
    memory.markers = {"from": ["logs"]}
    done = memory.night(0)
    assert memory.says(LESSON) == {"logs/chat.jsonl"}
    assert b"u5" in memory.content()["data/logs/chat.jsonl"]
    assert codes(done.items[0].outcome)["logs"] == "kept-by-choice"


def test_a_marker_is_struck_once_its_request_is_confirmed(memory: Memory) -> None:
    memory.markers = {"from": ["notes"], "when_done": "strike"}
    memory.mark(f"RETRACTS: {LESSON}")
    first = memory.night(0)
    assert first.struck == 0, "the backups still hold it"
    shutil.rmtree(memory.folder / "snapshots")
    (memory.folder / "snapshots").mkdir()
    second = memory.night()
    assert second.struck == 1
    id = first.items[0].outcome.request.id
    assert memory.content()["data/notes/corrections.md"] == (
        f"# Corrections\n\nSTRUCK: {id}\n".encode()
    )
    assert memory.says(LESSON) == set()


# What comes back.


def back(item: Item, site: str) -> list[tuple[int, datetime, datetime]]:
    return [(one.count, one.removed, one.seen) for one in step(item, site).reappeared]


def test_what_a_restore_brings_back_goes_again_with_both_times(memory: Memory) -> None:
    asked(memory)
    memory.now += timedelta(days=5)
    memory.log("u1", f"Keep in mind: {LESSON}.", NIGHT - timedelta(days=3))
    done = memory.night(0)
    assert "logs/chat.jsonl" not in memory.says(LESSON)
    assert back(done.items[0], "logs") == [(1, NIGHT, memory.now)]
    assert step(done.items[0], "logs").state is State.CONFIRMED_DELETED


def test_the_text_that_was_removed_goes_under_any_other_id(memory: Memory) -> None:
    asked(memory, Wanted(TargetKind.ID, "m1", "memories"), decisions=Decisions(copies=True))
    memory.now += timedelta(days=5)
    memory.remember("m7", f"Lesson: {LESSON}", None)
    done = memory.night(0)
    assert "memories.db" not in memory.says(LESSON)
    assert back(done.items[0], "memories")[0][0] == 1


def test_a_twin_that_was_there_at_the_time_is_not_taken_for_it(memory: Memory) -> None:
    memory.remember("twin", f"Lesson: {LESSON}", None)
    asked(memory, Wanted(TargetKind.ID, "m1", "memories"), decisions=Decisions(copies=False))
    memory.night(5)
    with memory.database() as database:
        assert database.execute("SELECT id FROM memories ORDER BY id").fetchall() == [
            ("m2",),
            ("twin",),
        ]


def test_a_summary_that_was_being_written_goes_by_itself(memory: Memory) -> None:
    asked(memory)
    memory.now += timedelta(hours=8)
    memory.write("summaries/late.md", f"- still said: {LESSON}\n- rest\n")
    done = memory.night(0.25)
    assert memory.says(LESSON) == set()
    assert back(done.items[0], "summaries")


def test_a_derived_record_with_the_words_much_later_waits_for_a_person(memory: Memory) -> None:
    asked(memory)
    memory.now += timedelta(days=3)
    memory.write("summaries/late.md", f"- somebody says again: {LESSON}\n- rest\n")
    done = memory.night(0)
    assert memory.says(LESSON) == {"summaries/late.md"}
    assert codes(done.items[0].outcome)["summaries"] == "seen-again"
    assert step(done.items[0], "summaries").state is State.ACCEPTED
    again = memory.engine().resume(done.items[0].outcome.request.id, Decisions(suppress=True))
    assert memory.says(LESSON) == set()
    assert "summaries" not in codes(again)


def test_what_derives_from_the_removed_goes_however_late(memory: Memory) -> None:
    asked(memory)
    memory.now += timedelta(days=9)
    memory.remember("m9", "Staging is free to wipe", "u1")
    done = memory.night(0)
    with memory.database() as database:
        assert database.execute("SELECT id FROM memories").fetchall() == [("m2",)]
    assert back(done.items[0], "memories")


def test_a_new_statement_is_left_as_it_is(memory: Memory) -> None:
    asked(memory)
    memory.now += timedelta(days=2)
    memory.log("u7", f"I say it now: {LESSON}.", memory.now)
    done = memory.night(0)
    assert memory.says(LESSON) == {"logs/chat.jsonl"}
    assert codes(done.items[0].outcome)["logs"] == "restated"
    assert step(done.items[0], "logs").state is State.CONFIRMED_DELETED


def test_a_new_statement_moves_no_date_of_a_backup(memory: Memory) -> None:
    memory.backup()
    asked(memory)
    promised = step(memory.night().items[0], "backups").until
    assert promised is not None
    memory.log("u7", f"I say it now: {LESSON}.", memory.now)
    for _ in range(3):
        assert step(memory.night().items[0], "backups").until == promised
    # Without it, the copies of what was said anew are copies like any other.
    with open(memory.folder / "data/logs/chat.jsonl", "w", encoding="utf-8") as out:
        out.write("")
    assert step(memory.night().items[0], "backups").until != promised


def test_suppress_takes_new_statements_too(memory: Memory) -> None:
    asked(memory, decisions=Decisions(suppress=True))
    memory.now += timedelta(days=2)
    memory.log("u7", f"I say it now: {LESSON}.", memory.now)
    memory.night(0)
    assert memory.says(LESSON) == set()


def test_replay_takes_out_again_what_a_restore_brought_to_one_site(memory: Memory) -> None:
    there = memory.backup()
    asked(memory)
    memory.now += timedelta(days=4)
    for name in ("logs/chat.jsonl", "notes/lessons.md"):
        shutil.copy2(there / "data" / name, memory.folder / "data" / name)
    shown = memory.engine().replay(["logs"])
    assert shown.to_remove >= 1
    memory.engine().replay(["logs"], apply=True)
    assert memory.says(LESSON) == {"notes/lessons.md"}
    memory.engine().replay(apply=True)
    assert memory.says(LESSON) == set()
    with pytest.raises(UsageFault, match="no site 'elsewhere'"):
        memory.engine().replay(["elsewhere"])


# Expiries, closing, lateness.


def test_a_promise_is_looked_at_again_and_kept(memory: Memory) -> None:
    memory.mark(f"RETRACTS: {LESSON}")
    first = memory.night(0)
    assert first.items[0].outcome.until == NIGHT + timedelta(days=10)
    shutil.rmtree(memory.folder / "snapshots")
    (memory.folder / "snapshots").mkdir()
    second = memory.night(11)
    assert second.items[0].outcome.state is State.CONFIRMED_DELETED
    assert second.items[0].closed
    with memory.ledger() as ledger:
        view = ledger.request(second.items[0].outcome.request.id)
        assert view is not None
        assert view.key is KeyState.DESTROYED
    third = memory.night()
    assert third.items == (), "a marker that stays is no new request"


def test_a_promise_that_was_missed_is_said(memory: Memory) -> None:
    memory.mark(f"RETRACTS: {LESSON}")
    memory.night(0)
    memory.keep_for = "20d"
    done = memory.night(11)
    problem = step(done.items[0], "backups").problem
    assert problem is not None
    assert problem.code is ProblemCode.PROMISE_MISSED
    assert [late.request for late in done.overdue] == [done.items[0].outcome.request.id]
    assert not done.settled
    again = memory.night()
    assert again.overdue, "it is said until it is kept"


def test_a_request_that_is_late_is_overdue(memory: Memory) -> None:
    asked(memory, Wanted(TargetKind.PHRASE, "words that stand nowhere"))
    assert memory.night(29).overdue == ()
    late = memory.night(2)
    assert len(late.overdue) == 1
    assert "purge_overdue_requests 1" in metrics_text(late)


# Holds.


@pytest.mark.parametrize(
    "hold",
    [
        Hold(ids=frozenset({("logs", "u1"), ("memories", "m1")})),
        Hold(ids=frozenset({(None, "u1"), (None, "m1")})),
    ],
)
def test_a_held_record_stays_until_it_is_released(memory: Memory, hold: Hold) -> None:
    view = memory.engine().add_hold(hold, "a matter for the lawyers")
    outcome = asked(memory)
    assert memory.says(LESSON) == {"logs/chat.jsonl", "memories.db"}
    assert codes(outcome)["logs"] == "held"
    memory.night()
    assert "logs/chat.jsonl" in memory.says(LESSON)
    memory.engine().release_hold(view.id)
    memory.night()
    assert memory.says(LESSON) == set()


def test_a_hold_for_one_request_keeps_no_other_from_being_finished(memory: Memory) -> None:
    asked(memory, Wanted(TargetKind.PHRASE, OTHER))
    memory.engine().add_hold(Hold(ids=frozenset({("memories", "m3")})), "")
    memory.remember("m3", "the keys hang behind the bar", None)
    held = asked(memory, Wanted(TargetKind.PHRASE, "the keys hang behind the bar"))
    assert codes(held)["memories"] == "held"
    done = asked(memory)
    assert step(done, "memories").state is State.CONFIRMED_DELETED
    with memory.database() as database:
        assert database.execute("SELECT id FROM memories").fetchall() == [("m3",)]


def test_a_hold_by_scope_holds_what_does_not_say_otherwise(tmp_path: Path) -> None:
    memory = Memory(tmp_path, scoped=True)
    memory.log("u8", LESSON, NIGHT, project="boat")
    memory.log("u9", LESSON, NIGHT, project="cafe")
    memory.engine().add_hold(Hold(scope={"project": "cafe"}), "")
    asked(memory)
    left = memory.content()["data/logs/chat.jsonl"]
    assert (b"u9" in left, b"u8" in left, b'"u1"' in left) == (True, False, True)
    with pytest.raises(UsageFault, match="maps the scope"):
        memory.engine().add_hold(Hold(scope={"tenant": "x"}), "")


# Watching, and keeping apart.


def test_a_second_sweep_ends_at_once(memory: Memory) -> None:
    memory.backup()
    engine = memory.engine()
    with (
        run_lock(engine.manifest.ledger, clock=engine.clock),
        pytest.raises(Locked) as locked,
    ):
        engine.sweep(apply=True)
    assert locked.value.exit_code == 5


def words(values: Iterable[object]) -> str:
    return json.dumps(list(values), default=str)


def test_no_report_holds_the_words(memory: Memory) -> None:
    memory.mark(f"RETRACTS: {LESSON}", "RETRACTS: till")
    done = memory.night(0)
    said = words([sweep_document(done), metrics_text(done)])
    assert LESSON not in said
    assert "till" not in said


def test_a_sweep_with_nothing_to_do_writes_no_ledger(memory: Memory) -> None:
    memory.backup()
    done = memory.engine().sweep(apply=True)
    assert done.items == ()
    assert not (memory.folder / ".purge/ledger.db").exists()


def test_a_record_that_was_edited_since_the_snapshot_is_seen_there(memory: Memory) -> None:
    memory.backup()
    with memory.database() as database:
        database.execute("UPDATE memories SET content = ? WHERE id = 'm1'", ("quite other words",))
    decisions = Decisions(sources=False, copies=False)
    outcome = asked(memory, Wanted(TargetKind.ID, "m1", "memories"), decisions=decisions)
    backups = step(outcome, "backups")
    assert backups.problem is None
    assert backups.state is State.BACKUP_RETAINED


def test_what_waits_for_a_person_is_not_taken_with_what_came_back(memory: Memory) -> None:
    asked(memory)
    memory.now += timedelta(days=5)
    memory.write("summaries/late.md", f"- somebody says again: {LESSON}\n- rest\n")
    memory.log("u1", f"Keep in mind: {LESSON}.", NIGHT - timedelta(days=3))
    for _ in range(3):
        done = memory.night()
        assert memory.says(LESSON) == {"summaries/late.md"}
        assert codes(done.items[0].outcome)["summaries"] == "seen-again"
