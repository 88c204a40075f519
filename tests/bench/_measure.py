"""Measuring side by side: the best of several turns, taken alternately."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping


def seconds(act: Callable[[], object]) -> float:
    """Return how long a call takes, in seconds."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def best(acts: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Return the shortest time of each act, in seconds; the acts take turns."""
    times: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(turns):
        for name, act in acts.items():
            times[name].append(seconds(act))
    return {name: min(measured) for name, measured in times.items()}


def command(*words: str) -> Callable[[], object]:
    """Return an act that runs a Python program and throws its output away."""

    def act() -> object:
        return subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    return act


def show(times: Mapping[str, float], base: str, goals: Mapping[str, float]) -> None:
    """Print each time, its ratio to ``base``, and the goal for that ratio."""
    for name, taken in times.items():
        ratio = taken / times[base]
        goal = f"   goal: at most {goals[name]}" if name in goals else ""
        say(f"{name:40} {taken * 1000:9.1f} ms   {ratio:6.2f} x {base}{goal}")


def say(line: str) -> None:
    """Print one line."""
    print(line)  # noqa: T201 - the figures are the purpose
