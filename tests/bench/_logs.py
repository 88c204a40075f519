"""A seeded log in many languages, of any size, for benchmarks."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.setup.tools import ensure

SIZE: Final = int(os.environ.get("PURGE_BENCH_MIB", "1024")) * 1024 * 1024
"""How large the logs are; the variable counts MiB."""
_DISTINCT: Final = 40_000
"""So many texts are made; they are repeated, under ids of their own."""
_SURE: Final = 100
"""The first so many phrases are planted for certain."""
_PLANTED: Final = 0.002
"""In which share of the other texts a phrase is planted."""
_LETTERS: Final = "etaoinshrdlucmfwypvbgkjqxz"
_SYLLABLES: Final = {
    "ja": "".join(map(chr, range(0x3042, 0x3090))) + "".join(map(chr, range(0x4E00, 0x5200, 2))),
    "th": "".join(map(chr, range(0x0E01, 0x0E2F))) + "ะาิีึืุูเแโใไ่้",
    "ru": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф",
}


@dataclass(frozen=True)
class Log:
    """A log and what can be looked for in it."""

    path: Path
    phrases: Sequence[str]
    ids: Sequence[str]


def make_log(folder: Path, phrases: int = 10_000) -> Log:
    """Write a log of :data:`SIZE`; a quarter of its lines are escaped as ``json.dumps`` does."""
    dice = random.Random(20261130)
    speak = _Speaker(dice)
    wanted = [speak.phrase() for _ in range(phrases)]
    heads: list[bytes] = []
    for at in range(_DISTINCT):
        text = speak.text()
        if at < _SURE or dice.random() < _PLANTED:
            text += " " + wanted[at % len(wanted)] + "."
        record = {"type": "user", "text": text, "at": "2026-11-30T03:12:00Z", "role": "user"}
        heads.append(json.dumps(record, ensure_ascii=dice.random() < 0.25)[1:].encode())
    path = folder / "log.jsonl"
    ids: list[str] = []
    with path.open("wb") as stream:
        written = 0
        while written < SIZE:
            lines = []
            for head in heads:
                name = f"{dice.getrandbits(128):032x}"
                if dice.random() < 0.05:
                    ids.append(name)
                lines.append(b'{"id": "%b", ' % name.encode() + head + b"\n")
            block = b"".join(lines)
            stream.write(block)
            written += len(block)
    return Log(path, wanted, ids)


class _Speaker:
    """Says things in four languages, some words more often than others."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._words = {"en": [self._word(_LETTERS) for _ in range(4000)]}
        for language, letters in _SYLLABLES.items():
            self._words[language] = [self._word(letters) for _ in range(3000)]
        self._weights = {
            language: [1 / (rank + 3) for rank in range(len(words))]
            for language, words in self._words.items()
        }

    def _word(self, letters: str) -> str:
        return "".join(
            letters[int(len(letters) * self._dice.random() ** 1.6)]
            for _ in range(self._dice.choice((2, 3, 4, 4, 5, 6, 7, 9)))
        )

    def _language(self) -> str:
        return self._dice.choices(("en", "ja", "th", "ru"), (55, 20, 15, 10))[0]

    def text(self) -> str:
        """Return some sentences."""
        language = self._language()
        count = self._dice.randrange(10, 120)
        words = self._dice.choices(self._words[language], self._weights[language], k=count)
        gap = " " if language in ("en", "ru") else ""
        for at in range(9, count, 17):
            words[at] += self._dice.choice((".", ",", ".\n", "\n", ' "so"', "\n\n"))
        return gap.join(words).replace("\n ", "\n")

    def phrase(self) -> str:
        """Return something to look for: rare words side by side."""
        language = self._language()
        gap = " " if language in ("en", "ru") else ""
        return gap.join(self._dice.choices(self._words[language], k=4))


def ripgrep() -> str:
    """Return the path of ripgrep."""
    found = shutil.which("rg")
    return found or str(ensure("rg"))


def pattern_file(folder: Path, patterns: Sequence[str]) -> Path:
    """Write patterns for ``rg -F -f``."""
    path = folder / f"patterns-{len(patterns)}"
    path.write_text("\n".join(patterns) + "\n")
    return path


def run_ripgrep(patterns: Path, log: Path) -> int:
    """Search a log for the lines with any of some byte strings; return how many there are."""
    words = [ripgrep(), "-F", "-a", "-c", "-f", str(patterns), str(log)]
    run = subprocess.run(words, check=False, capture_output=True, text=True)
    if run.returncode > 1:  # 1 means that nothing was found.
        raise RuntimeError(f"ripgrep failed: {run.stderr.strip()}")
    return int(run.stdout or 0)
