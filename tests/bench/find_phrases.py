"""Finding phrases in a large log in every written form, against ripgrep on the raw bytes.

``PURGE_BENCH_MIB`` says how large the log is (1024). Compiling what is looked for is counted, the
start of Python and its tables are not. Above 1 the adapter is the faster one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from purge.adapter import Match, Site
from purge.targets import Target, TargetKind, Targets
from purge_adapters.jsonl import JsonlAdapter, JsonlSettings
from tests.bench._logs import SIZE, Log, make_log, pattern_file, run_ripgrep
from tests.bench._measure import best, say

_ONE, _MANY, _IDS = 0.8, 1.5, 3.0
_SINGLE = 4
"""So many phrases are looked for one at a time: how fast that is depends much on their letters."""


def main() -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = make_log(folder)
        for phrase in log.phrases[:_SINGLE]:
            _compare(folder, log, TargetKind.PHRASE, [phrase], _ONE)
        for count in (100, 10_000):
            _compare(folder, log, TargetKind.PHRASE, log.phrases[:count], _MANY)
        _compare(folder, log, TargetKind.ID, log.ids[:10_000], _IDS)


def _compare(folder: Path, log: Log, kind: TargetKind, values: Sequence[str], goal: float) -> None:
    patterns = pattern_file(folder, values)
    found: set[int] = set()
    seen: set[int] = set()
    times = best(
        {
            "rg": lambda: seen.add(run_ripgrep(patterns, log.path)),
            "find": lambda: found.add(_find(folder, kind, values)),
        },
        turns=3,
    )
    for who, lines in (("rg", seen), ("find", found)):
        rate = SIZE / times[who] / 1e6
        what = f"{len(values):6} {kind}s: {who:4}"
        say(f"{what} {times[who]:7.3f} s {rate:6.0f} MB/s {max(lines):5} lines")
    ratio = times["rg"] / times["find"]
    say(f"        {ratio:.2f} times the speed of rg -F -f   goal: at least {goal}")


def _find(folder: Path, kind: TargetKind, values: Sequence[str]) -> int:
    """Find records with the adapter; return how many."""
    targets = Targets(Target(key, kind, value) for key, value in enumerate(values))
    adapter = JsonlAdapter(Site("logs", folder), JsonlSettings("log.jsonl", id="id", text=["text"]))
    return sum(isinstance(item, Match) for item in adapter.find(targets))
