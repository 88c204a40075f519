"""What the looks at files of text have in common, whatever a record in them is. Only reads.

Every byte of a live file belongs to a record or to the structure around it, so what is left in
live files is what ``find`` yields. Copies lie beside: backups, swap files, trash, git histories.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from purge.adapter import (
    Control,
    Match,
    NotChecked,
    Observation,
    ProblemCode,
    Readability,
    Statement,
)
from purge.matching import Flavor, fold, readings, without_markers
from purge.targets import NEEDLE_BYTES, Hit, NeedleKind, Targets, Trace, windows
from purge_adapters._files import folders, holders
from purge_adapters._git import enclosing_repositories
from purge_adapters._markdown_text import Lines
from purge_adapters._owners import Held, Owners
from purge_adapters._shadows import look_through, shadows
from purge_adapters._text_files import DAMAGED, TextFiles

__all__ = [
    "TextLook",
    "by_words",
    "folded_readings",
    "gaps_in",
    "going",
    "needles_of",
    "seen",
    "surroundings",
]


def needles_of(trace: Trace) -> frozenset[str]:
    """Return the folded pieces of what a record says that are long enough to tell it."""
    pieces = (fold(piece) for text in trace.texts for piece in windows(" ".join(text.split())))
    return frozenset(
        piece for piece in pieces if len(piece.encode("utf-8", "surrogatepass")) >= NEEDLE_BYTES
    )


def folded_readings(text: str) -> tuple[str, ...]:
    """Return a text without its marker lines as it is compared, in every reading of it."""
    return tuple(
        dict.fromkeys(fold(reading) for reading in readings(without_markers(text), Flavor.MARKDOWN))
    )


def seen(needles: Iterable[str], folded: Sequence[str]) -> set[str]:
    """Return which needles stand in a text."""
    return {needle for needle in needles if any(needle in text for text in folded)}


def by_words(targets: Targets, key: int) -> bool:
    """Whether a target names records by what they say, and not by their id or lineage."""
    return targets[key].kind.is_words


def going(matches: Iterable[Match]) -> frozenset[str]:
    """Return the ids of the records that are still readable."""
    return frozenset(match.id for match in matches if match.readability is Readability.READABLE)


def gaps_in(shown: str, lines: Lines, targets: Targets) -> Iterator[NotChecked]:
    """Yield what could not be read in a file, as far as it matters for these targets.

    Args:
        shown: how people call the file.
        lines: what was read of it.
        targets: what is looked for.
    """
    if lines.damaged:
        yield NotChecked(shown, DAMAGED, ProblemCode.CORRUPT)
    elif not lines.faithful and not all(text.isascii() for text in targets.phrases()):
        yield NotChecked(
            shown, "it is neither UTF-8 nor UTF-16, so a phrase beyond ASCII may stand in it unseen"
        )


def surroundings(around: Iterable[Path]) -> Iterator[Statement]:
    """Yield what ``purge check`` says of the folders in which the files lie."""
    places = sorted(around)
    if enclosing_repositories(iter(places)):
        yield Statement(
            "The files lie in a git repository. Its history keeps what is removed, until someone "
            "rewrites it; steps here end as 'removed-from-reads' where it holds a target."
        )
    if any(holder.writes for holder in holders(places)):
        yield Statement(
            "Another process has a file open for writing; it is left alone as long as it does.",
            ok=False,
        )


@dataclass(slots=True)
class TextLook(ABC):
    """What is looked for in the shadows of one site, and whether the look can see.

    A subclass takes the live files first; then come :meth:`controls` and :meth:`beside`.
    """

    site: str
    targets: Targets
    _: KW_ONLY
    needles: set[str] = field(default_factory=set)
    """Pieces of the records that go, as long as they stand in no record that stays."""
    _owners: Owners[str] = field(default_factory=Owners)
    _neighbour: bool | None = None
    _targets_seen: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for trace in self.targets.traces(self.site):
            self._add(trace, self.targets.keys_of(self.site, trace.id))

    def _add(self, trace: Trace, keys: frozenset[int]) -> None:
        pieces = needles_of(trace)
        self.needles |= pieces
        self._owners.add(pieces, keys)

    def begin(self, matches: Iterable[Match]) -> None:
        """Take what the records say that are still readable."""
        for match in matches:
            if match.readability is Readability.READABLE:
                self._add(match.trace, frozenset(hit.key for hit in match.hits))

    def controls(self) -> Iterator[Control]:
        """Yield whether the look could have found something."""
        if self._targets_seen:
            yield Control(NeedleKind.TEXT, all(self._targets_seen), True)
        elif self._neighbour is not None:
            yield Control(NeedleKind.TEXT, self._neighbour, False)
        else:
            # Nothing is there that could be seen: every byte of every file was accounted for.
            yield Control(None, True, False)

    def keys_of(self, hits: Sequence[Hit], *, blanked: bool) -> frozenset[int]:
        """Return the targets that a record of a copy holds: a blanked one only what it says."""
        if blanked and not any(by_words(self.targets, hit.key) for hit in hits):
            return frozenset()
        return frozenset(hit.key for hit in hits)

    @abstractmethod
    def holds(self, data: bytes) -> Held:
        """Return what a copy of a file holds of what is looked for."""

    def beside(self, files: TextFiles[Any], own: Sequence[Path]) -> Iterator[Observation]:
        """Yield the copies beside the files that hold something.

        Args:
            files: the files of the site.
            own: those of them that were read.
        """
        around = shadows(
            own,
            files.site,
            folders=folders(files.site, files.patterns),
            suffixes=files.suffixes,
        )
        yield from look_through(around, lambda shadow: self.holds(shadow.read()))
