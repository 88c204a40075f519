"""A sweep with a thousand open requests against a sweep with one, over the same records.

Files and SQLite, a million records by default (``PURGE_BENCH_RECORDS``); the requests name
phrases, of which a few stand in the records. Each sweep is a fresh process that only shows, since
what is measured is reading, matching and deciding; the goal is four times.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

from tests.bench._measure import say, seconds

RECORDS = int(os.environ.get("PURGE_BENCH_RECORDS", "1000000"))
REQUESTS = int(os.environ.get("PURGE_BENCH_REQUESTS", "1000"))
WORDS = [
    "harbour",
    "kettle",
    "staging",
    "orders",
    "winter",
    "menu",
    "roastery",
    "paper",
    "rolls",
    "terrace",
    "kayak",
    "tide",
    "table",
    "window",
    "guest",
    "bread",
    "counter",
    "ledger",
    "invoice",
    "van",
    "morning",
    "evening",
]
MANIFEST = """\
purge: 1
sites:
  logs: {adapter: jsonl, path: logs, id: id, text: [text]}
  memories: {adapter: sql, url: "sqlite:///memories.db", table: memories, id: id, text: [content],
             derived_from: {logs: source}}
"""
SWEEP = """
import sys
from pathlib import Path
from purge.cli.wiring import registry
from purge.engine import Engine
done = Engine.open(Path(sys.argv[1]), registry(), environ={}).sweep()
assert len(done.items) == int(sys.argv[2]), len(done.items)
"""
ASK = """
import sys
from pathlib import Path
import purge
from purge.cli.wiring import registry
from purge.engine import Engine
from purge.engine.journal import Journal
from purge.ledger import Ledger
from purge.plan.request import Request, Wanted
from purge.targets import TargetKind
engine = Engine.open(Path(sys.argv[1]), registry(), environ={})
with Ledger.create_or_open(engine.manifest.ledger, engine.manifest.key_file,
                           clock=engine.clock) as ledger:
    journal = Journal(ledger, engine.manifest.timezone)
    for number in range(int(sys.argv[2])):
        wanted = Wanted(TargetKind.PHRASE, f"the lesson of berth {number:06d} was wrong")
        journal.create(Request("", engine.clock(), (wanted,)), {"logs": "jsonl", "memories": "sql"})
"""


def texts(random: Random, count: int) -> Iterator[str]:
    for number in range(count):
        text = " ".join(random.choices(WORDS, k=14))
        yield text if number % 50_000 else f"{text}, the lesson of berth {number:06d} was wrong"


def build(folder: Path) -> None:
    """Write half of the records as JSON lines and half as rows."""
    random = Random(7)
    (folder / "logs").mkdir()
    half = RECORDS // 2
    for file in range(10):
        with (folder / f"logs/{file}.jsonl").open("w", encoding="utf-8") as out:
            for number, text in enumerate(texts(random, half // 10)):
                out.write(json.dumps({"id": f"l{file}-{number}", "text": text}) + "\n")
    with closing(sqlite3.connect(folder / "memories.db")) as database, database:
        database.execute("CREATE TABLE memories (id TEXT PRIMARY KEY, content TEXT, source TEXT)")
        database.executemany(
            "INSERT INTO memories VALUES (?, ?, NULL)",
            ((f"m{number}", text) for number, text in enumerate(texts(random, half))),
        )
    (folder / "purge.yaml").write_text(MANIFEST, encoding="utf-8")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        build(folder)
        times = {}
        for count in (1, REQUESTS):
            for old in folder.glob(".purge/*"):
                old.unlink()
            manifest = str(folder / "purge.yaml")
            subprocess.run([sys.executable, "-c", ASK, manifest, str(count)], check=True)
            command = [sys.executable, "-c", SWEEP, manifest, str(count)]
            times[count] = seconds(lambda command=command: subprocess.run(command, check=True))  # type: ignore[misc]  # bound at once
            say(f"a sweep with {count} open requests: {times[count]:.1f} s")
        ratio = times[REQUESTS] / times[1]
        say(f"{RECORDS} records: {ratio:.2f} x the sweep with one   goal: at most 4")
