"""One agent's memory for a simulated month, and the night in which it is backed up and swept.

What the application and the backup do is done with the stores' own clients and programs. The
clocks of records, files and snapshots are those of the simulation.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console

from purge.cli.wiring import registry
from purge.engine import Engine
from purge.plan.sweep import Sweep
from purge.report.sweep import metrics_text, sweep_document, sweep_text
from tests.e2e.month_stores import Vectors
from tests.support import redis_servers
from tests.support.restic_repos import Harbour, program

ZONE = ZoneInfo("Europe/Lisbon")
KEPT_DAYS = 4
BACKUP, FORGET, PRUNE = "01:30", "01:40", "01:50"
"""In the hour that daylight saving takes away in March and gives back in October."""
SWEEP = (4, 30)


@dataclass(frozen=True, slots=True)
class Night:
    """What one sweep said, in every form in which it says it."""

    document: dict[str, Any]
    text: str
    metrics: str

    @classmethod
    def of(cls, sweep: Sweep) -> Night:
        """Render a sweep."""
        out = io.StringIO()
        Console(file=out, width=400, force_terminal=False).print(sweep_text(sweep))
        return cls(sweep_document(sweep), out.getvalue(), metrics_text(sweep))


class Memory:
    """The stores, and the application that writes them."""

    def __init__(self, harbour: Harbour, redis: redis_servers.Server, first: datetime) -> None:
        self.harbour, self.redis, self.root = harbour, redis, harbour.root
        self.now = first.replace(hour=SWEEP[0], minute=SWEEP[1], tzinfo=ZONE)
        for name in ("logs", "notes", "team", "summaries", "rules"):
            (self.root / "data" / name).mkdir(parents=True)
        with self.database() as database:
            database.execute(
                "CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, source TEXT, "
                "project TEXT, at TEXT)"
            )
        self.vectors = Vectors(self.root / "data/chroma")

    def database(self) -> Any:
        return closing(sqlite3.connect(self.root / "data/memories.db", isolation_level=None))

    def log(self, id: str, text: str, role: str = "user", project: str = "quay") -> None:
        line = {"id": id, "role": role, "text": text, "project": project, "at": self._stamp()}
        with (self.root / "data/logs/chat.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        self._touch(self.root / "data/logs/chat.jsonl")

    def remember(self, id: str, text: str, source: str, project: str = "quay") -> None:
        with self.database() as database:
            row = (id, text, source, project, self._stamp())
            database.execute("INSERT INTO memories VALUES (?, ?, ?, ?, ?)", row)

    def embed(self, *records: tuple[str, str, str]) -> None:
        """Put (id, text, memory) into the vector store."""
        for number, (id, text, memory) in enumerate(records):
            vector = [len(id) / 7, number / 5, 0.25, 1.0]
            self.vectors.put({"id": id, "text": text, "memory": memory, "vector": vector})

    def answer(self, name: str, text: str, memory: str) -> None:
        with self.redis.client() as client:
            client.set(f"answer:{name}", json.dumps({"text": text, "ids": [memory]}))

    def write(self, name: str, *blocks: str, at: datetime | None = None) -> None:
        """Write a Markdown file of blocks, as if at a time."""
        path = self.root / "data" / name
        path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
        self._touch(path, at)

    def _stamp(self) -> str:
        return self.now.isoformat(timespec="seconds")

    def _touch(self, path: Path, at: datetime | None = None) -> None:
        os.utime(path, ((at or self.now).timestamp(),) * 2)

    # The night.

    def at(self, clock: str) -> datetime:
        """A time of this night, in the manifest's zone; of two that are the same, the first."""
        hour, minute = map(int, clock.split(":"))
        return self.now.replace(hour=hour, minute=minute, second=0, fold=0)

    def next_night(self) -> None:
        """Turn the clock to the next night, at the same time of day."""
        self.now = (self.now + timedelta(days=1)).replace(hour=SWEEP[0], minute=SWEEP[1])

    def back_up(self) -> None:
        # Through the epoch and back: 01:30 does not exist on one night of the year.
        utc = datetime.fromtimestamp(self.at(BACKUP).timestamp(), UTC)
        self.harbour.backup(f"{utc:%Y-%m-%d %H:%M:%S}", str(self.root / "data"))

    def forget(self) -> None:
        words = ("--keep-daily", str(KEPT_DAYS), "--prune", "--max-unused", "0")
        self.harbour.run("forget", *words, zone=ZONE.key)

    def restore(self, snapshot: str, name: str) -> None:
        """Put a folder of a snapshot in the place of the live one."""
        there = self.root / "data" / name
        shutil.rmtree(there)
        self.harbour.run("restore", snapshot, "--target", "/", "--include", str(there))

    def engine(self) -> Engine:
        path = self.root / "purge.yaml"
        path.write_text(json.dumps(self.manifest()))
        return Engine.open(path, registry(), environ={}, clock=lambda: self.now)

    def shown(self) -> Night:
        return Night.of(self.engine().sweep())

    def applied(self) -> Night:
        with self._own_time():
            return Night.of(self.engine().sweep(apply=True))

    def replayed(self, sites: Sequence[str]) -> Night:
        with self._own_time():
            return Night.of(self.engine().replay(sites, apply=True))

    @contextmanager
    def _own_time(self) -> Iterator[None]:
        """Files that are written meanwhile get the time of the simulation, not of the machine."""
        files = [path for path in (self.root / "data").rglob("*.*") if path.is_file()]
        times = {path: path.stat().st_mtime_ns for path in files}
        yield
        for path, before in times.items():
            if path.exists() and path.stat().st_mtime_ns != before:
                self._touch(path)

    def manifest(self) -> dict[str, Any]:
        scope = {"scope": {"project": "project"}}
        sites: dict[str, Any] = {
            "logs": {
                **{"adapter": "jsonl", "path": "data/logs", "id": "id", "text": ["text"]},
                **{"time": "at", **scope},
            },
            "notes": {"adapter": "markdown", "path": "data/notes", "record": "block"},
            "team": {"adapter": "markdown", "path": "data/team", "record": "block", **scope},
            "memories": {
                **{"adapter": "sql", "url": "sqlite:///data/memories.db", "table": "memories"},
                **{"id": "id", "text": ["content"], "time": "at", **scope},
                "derived_from": {"logs": "source"},
            },
            "embeddings": {
                **{"adapter": "chroma", "path": "data/chroma", "collections": ["memories"]},
                "derived_from": {"memories": "memory"},
            },
            "summaries": {
                **{"adapter": "markdown", "path": "data/summaries", "record": "block"},
                "derived_from": {"memories": "from"},
            },
            "rules": {"adapter": "markdown", "path": "data/rules", "record": "block"},
            "cache": {
                **{"adapter": "redis", "url": self.redis.url, "keys": "answer:*"},
                **{"derived_from": {"memories": "ids"}, "when_source_purged": "delete"},
            },
            "backups": {
                **{"adapter": "restic", "repository": str(self.harbour.repository)},
                **{"program": str(program("0.18")), "keep": {"daily": KEPT_DAYS}},
                **{"max_unused": 0},
                "schedule": {"backup": BACKUP, "forget": FORGET, "prune": PRUNE},
                "covers": ["logs", "notes", "team", "memories", "embeddings", "summaries", "rules"],
            },
        }
        return {
            **{"purge": 1, "name": "month", "timezone": ZONE.key, "sites": sites},
            "safety": {"snapshot": {"site": "backups", "max_age": "25h"}},
            "markers": {"from": ["notes", "team", {"site": "logs", "where": {"role": "user"}}]},
        }


@contextmanager
def a_memory(folder: Path, templates: Path, first: datetime) -> Iterator[Memory]:
    """Build everything, and stop the server at the end."""
    (folder / "redis").mkdir()
    server = redis_servers.Server(folder / "redis", ["--appendonly", "yes"]).start()
    try:
        memory = Memory(Harbour.make("0.18", folder, templates), server, first)
        try:
            yield memory
        finally:
            memory.vectors.end()
    finally:
        server.stop()
