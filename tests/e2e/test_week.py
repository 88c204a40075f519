"""A simulated week under a fixed clock: restic every night, Redis, Chroma, SQLite and files.

After every night the report is checked against the stores by readers of their own. Daylight saving
begins in the middle of it (Europe/Lisbon, 28 March 2027), and the process runs in another zone.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from purge.cli.wiring import registry
from purge.engine import Engine
from purge.errors import Refused
from purge.plan.again import Hold
from purge.plan.outcome import Step
from purge.plan.request import Wanted
from purge.plan.sweep import Item, Sweep
from purge.state import State
from purge.targets import TargetKind
from tests.support import redis_servers
from tests.support.restic_repos import PASSWORD, Harbour, environment
from tests.support.restic_repos import program as restic_program

ZONE = ZoneInfo("Europe/Lisbon")
LESSON = "the staging database may be wiped at any time"
QUIET = "the boathouse key lies under the third stone"
VECTORS = """
import json, sys
import chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], Settings(anonymized_telemetry=False))
made = client.get_or_create_collection("memories", embedding_function=None)
asked = json.loads(sys.argv[2])
if asked:
    made.upsert(ids=[one["id"] for one in asked], documents=[one["text"] for one in asked],
                embeddings=[one["vector"] for one in asked],
                metadatas=[{"memory": one["memory"]} for one in asked])
print(json.dumps(made.get()["documents"]))
"""


class Week:
    """One agent's memory, its nightly backup, and a clock that the test turns."""

    def __init__(self, folder: Path, harbour: Harbour, redis: redis_servers.Server) -> None:
        self.folder, self.harbour, self.redis = folder, harbour, redis
        self.now = datetime(2027, 3, 25, 4, 30, tzinfo=ZONE)
        self.backups_run = True
        for name in ("logs", "notes", "summaries"):
            (folder / "data" / name).mkdir(parents=True)
        with self.database() as database:
            database.execute(
                "CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, source TEXT, at TEXT)"
            )
        self.log("u1", f"Keep in mind: {LESSON}.")
        self.log("u2", f"By the way, {QUIET}.")
        self.remember("m1", f"Lesson: {LESSON}", "u1")
        self.remember("m2", f"Fact: {QUIET}", "u2")
        vectors = [
            {"id": f"v{n}", "text": text, "memory": f"m{n}", "vector": [n / 8, 0.5, 0.25, 1.0]}
            for n, text in ((1, f"Lesson: {LESSON}"), (2, f"Fact: {QUIET}"))
        ]
        self.vectors(vectors)
        self.answer("a1", f"Yes: {LESSON}", "m1")
        self.answer("a2", "Tuesday", "m2")
        self.write("notes/day.md", "# Day\n\nnothing\n")
        self.write("summaries/week.md", "- a quiet week\n")

    # The application.

    def database(self) -> Any:
        return closing(sqlite3.connect(self.folder / "data/memories.db", isolation_level=None))

    def log(self, id: str, text: str) -> None:
        line = {"id": id, "text": text, "at": self.now.isoformat()}
        with (self.folder / "data/logs/chat.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def remember(self, id: str, text: str, source: str) -> None:
        with self.database() as database:
            row = (id, text, source, self.now.isoformat())
            database.execute("INSERT INTO memories VALUES (?, ?, ?, ?)", row)

    def vectors(self, records: list[dict[str, Any]]) -> list[str]:
        said = subprocess.run(
            [sys.executable, "-c", VECTORS, str(self.folder / "data/chroma"), json.dumps(records)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return list(json.loads(said))

    def answer(self, name: str, text: str, memory: str) -> None:
        with self.redis.client() as client:
            client.set(f"answer:{name}", json.dumps({"text": text, "ids": [memory]}))

    def write(self, name: str, text: str) -> None:
        path = self.folder / "data" / name
        path.write_text(text, encoding="utf-8")
        os.utime(path, (self.now.timestamp(),) * 2)

    # The night.

    def back_up(self) -> None:
        at = self.now.replace(hour=3, minute=0)
        utc = f"{at.astimezone(ZoneInfo('UTC')):%Y-%m-%d %H:%M:%S}"
        self.harbour.backup(utc, str(self.folder / "data"))
        self.harbour.run("forget", "--keep-daily", "3", "--prune", "--max-unused", "0")

    def engine(self) -> Engine:
        sites: dict[str, Any] = {
            "logs": {"adapter": "jsonl", "path": "data/logs", "id": "id", "time": "at"},
            "notes": {"adapter": "markdown", "path": "data/notes", "record": "block"},
            "memories": {
                **{"adapter": "sql", "url": "sqlite:///data/memories.db", "table": "memories"},
                **{
                    "id": "id",
                    "text": ["content"],
                    "time": "at",
                    "derived_from": {"logs": "source"},
                },
            },
            "embeddings": {
                **{"adapter": "chroma", "path": "data/chroma", "collections": ["memories"]},
                "derived_from": {"memories": "memory"},
            },
            "summaries": {
                **{"adapter": "markdown", "path": "data/summaries", "record": "block"},
                "derived_from": {"memories": "from"},
            },
            "cache": {
                **{"adapter": "redis", "url": self.redis.url, "keys": "answer:*"},
                **{"derived_from": {"memories": "ids"}, "when_source_purged": "delete"},
            },
            "backups": {
                **{"adapter": "restic", "repository": str(self.harbour.repository)},
                **{"program": str(restic_program("0.18")), "keep": {"daily": 3}, "max_unused": 0},
                "schedule": {"backup": "03:00", "forget": "03:10", "prune": "03:20"},
                "covers": ["logs", "notes", "memories", "embeddings", "summaries"],
            },
        }
        whole = {
            **{"purge": 1, "name": "week", "timezone": "Europe/Lisbon", "sites": sites},
            "safety": {"snapshot": {"site": "backups", "max_age": "26h"}},
            "markers": {"from": ["notes"]},
        }
        path = self.folder / "purge.yaml"
        path.write_text(json.dumps(whole))
        return Engine.open(path, registry(), environ={}, clock=lambda: self.now)

    def sleep(self) -> Sweep:
        """Let a day pass, back up, sweep, and check what is said against the stores."""
        self.now += timedelta(days=1)
        if self.backups_run:
            self.back_up()
        shown = self.engine().sweep()
        done = self.engine().sweep(apply=True)
        assert [planned(item) for item in shown.items] == [planned(item) for item in done.items]
        for item in done.items:
            for step in item.outcome.steps:
                self.check(step, item)
        return done

    # The other witness.

    def holds(self, site: str, words: str) -> bool:
        if site == "cache":
            with self.redis.client() as client:
                values = [client.get(key) for key in client.scan_iter("*")]
            return any(isinstance(value, bytes) and words.encode() in value for value in values)
        if site == "embeddings":
            return any(words in text for text in self.vectors([]))
        if site == "backups":
            return bool(self.nights_with(words))
        if site == "memories":
            with self.database() as database:
                return any(
                    words in row[0] for row in database.execute("SELECT content FROM memories")
                )
        files = (self.folder / "data" / site).rglob("*")
        return any(
            words in line and not line.startswith("RETRACTS:")
            for path in files
            for line in path.read_text().splitlines()
        )

    def nights_with(self, words: str) -> list[str]:
        """The snapshots that hold words in their logs or their database, as restic dumps them."""
        found = []
        for snapshot in self.harbour.snapshots():
            for name in ("logs/chat.jsonl", "memories.db"):
                path = str(self.folder / "data" / name)
                done = subprocess.run(
                    [str(restic_program("0.18")), "dump", snapshot["id"], path],
                    env=environment(self.harbour.repository),
                    capture_output=True,
                )
                if words.encode() in done.stdout:
                    found.append(str(snapshot["time"]))
                    break
        return found

    def check(self, step: Step, item: Item) -> None:
        words = LESSON if item.outcome.request.origin else QUIET
        there = self.holds(step.site, words)
        if step.state is State.CONFIRMED_DELETED:
            assert not there or step.tally.restated, f"{step.site}: it is there"
        if step.state is State.BACKUP_RETAINED:
            assert step.until is not None
            assert step.until > self.now
            assert there
        if step.state is State.ACCEPTED:
            assert step.problem is not None


def planned(item: Item) -> list[tuple[str, int, int]]:
    return [(s.site, s.tally.to_remove, s.tally.held) for s in item.outcome.steps]


def at(item: Item, site: str) -> Step:
    return next(step for step in item.outcome.steps if step.site == site)


def code(step: Step) -> str | None:
    return step.problem.code.value if step.problem else None


@pytest.fixture
def week(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Week]:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RESTIC_PASSWORD", PASSWORD)
    (tmp_path / "redis").mkdir()
    server = redis_servers.Server(tmp_path / "redis", ["--appendonly", "yes"]).start()
    try:
        harbour = Harbour.make("0.18", tmp_path, tmp_path_factory.mktemp("templates"))
        (harbour.root / "data").parent.mkdir(parents=True, exist_ok=True)
        yield Week(harbour.root, harbour, server)
    finally:
        server.stop()


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
