"""Taking records out of a large log, against copying it and against a zlib pipeline.

``PURGE_BENCH_MIB`` says how large the log is (1024). The plain log is rewritten with 100 records
gone, synced and renamed, against ``cp`` and a sync; the gzip log, an eighth as large, against a
pipeline of zlib that decompresses it and compresses it again. Above 1 the adapter is the faster
one.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from purge.adapter import Match, Removal, Site
from purge.targets import Target, TargetKind, Targets
from purge_adapters.jsonl import JsonlAdapter, JsonlSettings
from tests.bench._logs import SIZE, Log, make_log
from tests.bench._measure import say, seconds

_COUNT = 100
_PLAIN, _GZIP = 0.7, 3.0
_TURNS = 3
_BLOCK = 1 << 20


def main() -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = make_log(folder)
        _compare("cp", log, _copy, _PLAIN)
        packed = folder / "log.jsonl.gz"
        _pack(log.path, packed)
        _compare("zlib", Log(packed, log.phrases, log.ids), _through_zlib, _GZIP)


def _compare(other: str, log: Log, by_hand: Callable[[Path, Path], None], goal: float) -> None:
    ids = log.ids[:_COUNT]
    copy = log.path.with_name("copy-" + log.path.name)
    hand: list[float] = []
    ours: list[float] = []
    for _ in range(_TURNS):
        hand.append(seconds(lambda: by_hand(log.path, copy)))
        shutil.copyfile(log.path, copy)
        os.sync()
        matches = _find(copy, ids)
        ours.append(seconds(lambda: _remove(copy, matches)))  # noqa: B023 - called at once
        if _find(copy, ids):
            raise RuntimeError("records are left")
        copy.unlink()
    size = log.path.stat().st_size
    for who, times in ((other, hand), ("remove", ours)):
        say(
            f"{len(ids):6} records: {who:6} {min(times):7.3f} s {size / min(times) / 1e6:6.0f} MB/s"
        )
    ratio = min(hand) / min(ours)
    say(f"        {ratio:.2f} times the speed of {other}   goal: at least {goal}")


def _copy(source: Path, copy: Path) -> None:
    subprocess.run(["cp", str(source), str(copy)], check=True)
    _sync(copy)


def _through_zlib(source: Path, copy: Path) -> None:
    with gzip.open(source, "rb") as plain, gzip.open(copy, "wb", compresslevel=6) as packed:
        while block := plain.read(_BLOCK):
            packed.write(block)
    _sync(copy)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pack(source: Path, target: Path) -> None:
    """Compress an eighth of a log as ``gzip`` does."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, 31)
    left = SIZE // 8
    with source.open("rb") as plain, target.open("wb") as packed:
        while left > 0 and (block := plain.read(_BLOCK)):
            packed.write(compressor.compress(block))
            left -= len(block)
        packed.write(compressor.flush())


def _adapter(path: Path) -> JsonlAdapter:
    return JsonlAdapter(Site("logs", path.parent), JsonlSettings(path.name, id="id", text=["text"]))


def _find(path: Path, ids: Sequence[str]) -> list[Match]:
    targets = Targets(Target(key, TargetKind.ID, id) for key, id in enumerate(ids))
    return [item for item in _adapter(path).find(targets) if isinstance(item, Match)]


def _remove(path: Path, matches: Sequence[Match]) -> None:
    now = datetime.now(UTC)
    left = list(_adapter(path).remove([Removal(match, "bench", now) for match in matches]))
    if left:
        raise RuntimeError("records were left alone")
