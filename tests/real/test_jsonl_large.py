"""Lines and files of a size that real logs reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORDS = "crate of sprats on pier seven, "
WIDE = 'caf\u00e9 \U0001f600 abc x "yy" zz, '

WORKER = """
import json, resource, sys
from datetime import UTC, datetime
from pathlib import Path
from purge.adapter import Match, Removal, Site
from purge.targets import Target, TargetKind, Targets
from purge_adapters.jsonl import JsonlAdapter, JsonlSettings

root, kind, value = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
site, settings = Site("logs", root), JsonlSettings("a.jsonl", id="id", text=["text"])
targets = Targets([Target(0, TargetKind(kind), value)])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
matches = [it for it in JsonlAdapter(site, settings).find(targets) if isinstance(it, Match)]
traces = Targets(targets.all, {"logs": [match.trace for match in matches]})
list(JsonlAdapter(site, settings).residue(traces))
now = datetime.now(UTC)
left = list(JsonlAdapter(site, settings).remove([Removal(it, "R", now) for it in matches]))
again = [it for it in JsonlAdapter(site, settings).find(targets) if isinstance(it, Match)]
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([[it.id for it in matches], len(left), len(again), used * 1024]))
"""


def purge_long_line(folder: Path, size: int, unit: str, kind: str, value: str) -> float:
    """Purge a line of so many bytes; return how many times as much memory that took."""
    path = folder / "a.jsonl"
    neighbours = [b'{"id":"before","text":"a"}\n', b'{"id":"behind","text":"b"}\n']
    written = json.dumps(unit)[1:-1]
    with path.open("wb") as stream:
        stream.write(neighbours[0])
        stream.write(b'{"id":"long","text":"')
        for _ in range(size // len(written)):
            stream.write(written.encode())
        stream.write(b' the crab pot licence"}\n')
        stream.write(neighbours[1])
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(folder), kind, value],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    found, left, again, used = json.loads(done.stdout)
    assert (found, left, again) == (["long"], 0, 0)
    assert path.read_bytes() == b"".join(neighbours)
    return float(used / size)


@pytest.mark.parametrize("unit", [WORDS, WIDE], ids=["words", "wide"])
@pytest.mark.parametrize(
    ("kind", "value"), [("id", "long"), ("phrase", "The crab pot licence")], ids=["id", "phrase"]
)
def test_a_long_line_takes_a_few_times_its_size_in_memory(
    tmp_path: Path, unit: str, kind: str, value: str
) -> None:
    assert purge_long_line(tmp_path, 8_000_000, unit, kind, value) < 12


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "value"), [("id", "long"), ("phrase", "The crab pot licence")], ids=["id", "phrase"]
)
def test_a_line_of_100_mb_takes_a_few_times_its_size_in_memory(
    tmp_path: Path, kind: str, value: str
) -> None:
    assert purge_long_line(tmp_path, 100_000_000, WORDS, kind, value) < 8


def test_a_file_of_many_lines_takes_no_memory_for_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = json.dumps({"id": "kept", "text": WORDS * 20}).encode()
    with path.open("wb") as stream:
        for number in range(40_000):
            stream.write(line.replace(b"kept", b"kept-%d" % number) + b"\n")
        stream.write(b'{"id":"gone","text":"the crab pot licence"}\n')
    size = path.stat().st_size
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(tmp_path), "id", "gone"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    found, left, again, used = json.loads(done.stdout)
    assert (found, left, again) == (["gone"], 0, 0)
    assert path.stat().st_size == size - len(b'{"id":"gone","text":"the crab pot licence"}\n')
    assert used < 24_000_000 < size
