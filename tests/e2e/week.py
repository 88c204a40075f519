"""One agent's memory over many nights: restic, Redis, Chroma, SQLite and files, under a clock
that the test turns, and readers of their own that check every report against the stores."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from purge.cli.wiring import registry
from purge.engine import Engine
from purge.plan.outcome import Step
from purge.plan.sweep import Item, Sweep
from purge.state import State
from tests.support import redis_servers
from tests.support.restic_repos import Harbour, environment
from tests.support.restic_repos import program as restic_program

ZONE = ZoneInfo("Europe/Lisbon")
ANEW = b"I say it now: "
"""How a person begins who states something anew."""
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
        self.words: dict[str, str] = {}
        """By the id of a request: what it names."""
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

    def sleep(self, learn: Callable[[Sweep], None] | None = None) -> Sweep:
        """Let a day pass, back up, sweep, and check what is said against the stores.

        Args:
            learn: is told of the sweep before it is checked.
        """
        self.now += timedelta(days=1)
        if self.backups_run:
            self.back_up()
        shown = self.engine().sweep()
        done = self.engine().sweep(apply=True)
        for told, was in zip(shown.items, done.items, strict=True):
            assert planned(told) == planned(was), (self.now, planned(told), planned(was))
        if learn is not None:
            learn(done)
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

    def nights_with(self, words: str, besides: bytes | None = None) -> list[str]:
        """The snapshots that hold words in their logs or their database, as restic dumps them.

        Lines that say something else besides can be left out.
        """
        found = []
        for snapshot in self.harbour.snapshots():
            for name in ("logs/chat.jsonl", "memories.db"):
                path = str(self.folder / "data" / name)
                done = subprocess.run(
                    [str(restic_program("0.18")), "dump", snapshot["id"], path],
                    env=environment(self.harbour.repository),
                    capture_output=True,
                )
                lines = done.stdout.split(b"\n")
                said = [line for line in lines if words.encode() in line]
                if any(besides is None or besides not in line for line in said):
                    found.append(str(snapshot["time"]))
                    break
        return found

    def check(self, step: Step, item: Item) -> None:
        first = LESSON if item.outcome.request.origin else QUIET
        words = self.words.get(item.outcome.request.id, first)
        there = self.holds(step.site, words)
        if step.state is State.CONFIRMED_DELETED:
            if step.site == "backups":  # A new statement stays, and so do its copies.
                there = bool(self.nights_with(words, ANEW))
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


@contextmanager
def a_memory(folder: Path, templates: Path) -> Iterator[Week]:
    """Build everything, and stop the server at the end."""
    (folder / "redis").mkdir()
    server = redis_servers.Server(folder / "redis", ["--appendonly", "yes"]).start()
    try:
        harbour = Harbour.make("0.18", folder, templates)
        yield Week(harbour.root, harbour, server)
    finally:
        server.stop()
