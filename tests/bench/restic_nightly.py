"""One request's look at 30 nightly snapshots, against what one snapshot holds.

A gibibyte of logs (``PURGE_BENCH_MIB`` for another size), of which 1 % of the files change every
night. Counted is what restic reads, its cache included, as the kernel counts it for the restic
processes; compression is off, so that the bytes of files and of the repository can be compared.
"""

from __future__ import annotations

import base64
import os
import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.bench._measure import say, seconds
from tests.support.restic_repos import Harbour, phrase, program

FILES = 400
NIGHTS = 30
MIB = int(os.environ.get("PURGE_BENCH_MIB", "1024"))
LINE = 4000
GOAL = 1.5


def main() -> None:
    """Print the ratio."""
    os.environ["RESTIC_COMPRESSION"] = "off"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "template").mkdir()
        harbour = Harbour.make("0.18", folder, folder / "template")
        harbour.cover("logs", "jsonl", {"path": "logs", "id": "id"})
        fill(harbour)
        wrapped, counts = counting(folder)
        targets = phrase()
        taken = seconds(lambda: harbour.look(targets, program=str(wrapped)))
        again = seconds(lambda: harbour.look(targets, program=str(wrapped)))
        one = sum(path.stat().st_size for path in harbour.root.rglob("*") if path.is_file())
        read = sum(int(line) for line in counts.read_text().split())
        say(f"{NIGHTS} snapshots of {one / 2**20:.0f} MiB, {FILES // 100} of {FILES} files a night")
        say(f"first look {taken:.1f} s, second look of the same run {again:.1f} s")
        say(f"read {read / 2**20:.0f} MiB   {read / one:.2f} x one snapshot   goal: at most {GOAL}")


def fill(harbour: Harbour) -> None:
    """Make the logs, and a snapshot for each night."""
    numbers = random.Random(7)
    folder = harbour.root / "logs"
    folder.mkdir()
    names = [folder / f"{number:04}.jsonl" for number in range(FILES)]
    for path in names:
        write(path, numbers)
    begin = datetime(2025, 5, 20, 3, tzinfo=UTC)
    for night in range(NIGHTS):
        for path in numbers.sample(names, FILES // 100) if night else ():
            write(path, numbers)
        time = f"{begin + timedelta(days=night):%Y-%m-%d %H:%M:%S}"
        harbour.run("backup", "-q", "--host", "quay", "--time", time, str(harbour.root))


def write(path: Path, numbers: random.Random) -> None:
    """Write one log of lines that look like nothing."""
    count = MIB * 2**20 // FILES // LINE
    words = (base64.b64encode(numbers.randbytes(LINE * 3 // 4 - 24)).decode() for _ in range(count))
    path.write_text(
        "".join(f'{{"id": "{number}", "t": "{w}"}}\n' for number, w in enumerate(words))
    )


def counting(folder: Path) -> tuple[Path, Path]:
    """Return a program that is restic and notes how many bytes it read; and the notes."""
    made, counts = folder / "counted", folder / "counts"
    made.write_text(
        f"#!/bin/sh\n'{program('0.18')}' \"$@\"\ncode=$?\n"
        f"sed -n 's/^rchar: //p' /proc/$$/io >> '{counts}'\nexit $code\n"
    )
    made.chmod(0o755)
    return made, counts
