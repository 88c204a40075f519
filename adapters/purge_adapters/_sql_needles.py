"""What is looked for in the bytes of a database, and where in the bytes it stands.

This module opens nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from purge.targets import (
    NEEDLE_BYTES,
    NeedleKind,
    Target,
    TargetKind,
    Targets,
    Trace,
    windows,
)
from purge_adapters._sqlite_bytes import Bytes
from purge_adapters._sqlite_pages import Pages

_SHORTEST: Final = 4
_PIECE: Final = 12
_MOST_PIECES: Final = 64
MOST_PLACES: Final = 2000
"""What stands in more places than this is no mark of one record."""


@dataclass(frozen=True, slots=True)
class Needle:
    """One thing to look for. ``key``: of the phrase that it is a piece of, else ``None``."""

    kind: NeedleKind
    text: str = field(repr=False)
    forms: tuple[bytes, ...] = field(repr=False)
    key: int | None = None


def needles(kind: NeedleKind, pieces: Iterable[str], encoding: str) -> Iterator[Needle]:
    """Yield a needle for each piece that is long enough.

    Args:
        kind: what the pieces are.
        pieces: as they were read.
        encoding: of text in the database, as SQLite names it.
    """
    for piece in dict.fromkeys(pieces):
        forms = written(piece, encoding)
        if forms:
            yield Needle(kind, piece, forms)


def of_trace(trace: Trace, kinds: Iterable[NeedleKind], encoding: str) -> Iterator[Needle]:
    """Yield the needles of one record."""
    for kind in kinds:
        yield from needles(kind, trace.needles(kind), encoding)


def of_phrases(targets: Targets, encoding: str) -> Iterator[Needle]:
    """Yield what is looked for because it was asked for by its words.

    Phrases within a scope are left out: nothing in free space says to which scope it belonged.
    """
    for target in _by_words(targets):
        for piece in windows(target.value.strip()):
            if forms := written(piece, encoding):
                yield Needle(NeedleKind.TEXT, piece, forms, target.key)


def unscoped(targets: Targets) -> tuple[str, ...]:
    """Return the phrases that are looked for in every scope."""
    return tuple(target.value for target in _by_words(targets))


def _by_words(targets: Targets) -> Iterator[Target]:
    for target in targets:
        if target.kind in (TargetKind.PHRASE, TargetKind.COPY) and not target.scope:
            yield target


def written(text: str, encoding: str) -> tuple[bytes, ...]:
    """Return the bytes in which a text may stand in a database of this encoding."""
    return tuple(
        form for form in _encoded(spellings_in_text(text), encoding) if len(form) >= NEEDLE_BYTES
    )


def spellings_in_text(text: str) -> tuple[str, ...]:
    """Return the ways in which a text is written: as it is, and within JSON."""
    escaped = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    return tuple(dict.fromkeys((text, *escaped)))


def short_forms(trace: Trace, encoding: str) -> Iterator[Needle]:
    """Yield what a record says that is too short for a needle, but no single letter either."""
    for text in (trace.id, *trace.texts, *trace.metadata):
        if _SHORTEST <= len(text.encode("utf-8", "surrogatepass")) < NEEDLE_BYTES:
            yield Needle(NeedleKind.TEXT, text, tuple(_encoded((text,), encoding)))


def _encoded(said: Iterable[str], encoding: str) -> Iterator[bytes]:
    codes = ["utf-8", *([encoding.lower()] if encoding.upper() != "UTF-8" else [])]
    # SQLite says "UTF-16le", as Python does.
    forms = (each.encode(code, "surrogatepass") for each in said for code in codes)
    yield from dict.fromkeys(forms)


def stands_in(content: Bytes, forms: Iterable[bytes]) -> bool:
    """Whether any of these forms stands anywhere."""
    return any(content.find(form) >= 0 for form in forms)


def places(content: Bytes, forms: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where the forms stand: first byte and the one after the last. Not more than is
    told by :data:`MOST_PLACES`."""
    left = MOST_PLACES
    for form in forms:
        at = content.find(form)
        while at >= 0 and left:
            yield at, at + len(form)
            left -= 1
            at = content.find(form, at + 1)


def pieces(text: str) -> tuple[str, ...]:
    """Return the pieces of a text by which a part of it is known.

    What was freed is overwritten from its ends, or in its middle. A part of it that is longer than
    a piece and the step between two holds a whole piece.
    """
    last = len(text) - _PIECE
    if last <= 0:
        return (text,)
    step = max(_PIECE // 2, -(-last // _MOST_PIECES))
    return tuple(dict.fromkeys(text[at : at + _PIECE] for at in (*range(0, last, step), last)))


def in_pieces(found: Iterable[Needle], encoding: str) -> Iterator[Needle]:
    """Yield the pieces of some texts as needles of the same kind."""
    for needle in found:
        for piece in pieces(needle.text):
            if forms := written(piece, encoding):
                yield Needle(needle.kind, piece, forms, needle.key)


def owners(content: Bytes, pages: Pages, found: Iterable[Needle]) -> dict[str, dict[Needle, None]]:
    """Return, by table, which needles stand in its pages among its rows."""
    stretches = sorted(pages.unused(), key=lambda each: each.start)
    starts = [each.start for each in stretches]
    seen: dict[str, dict[Needle, None]] = {}
    for needle in found:
        for start, end in places(content, needle.forms):
            at = bisect_right(starts, start) - 1
            owner = pages.owner(start)
            if owner is not None and (at < 0 or stretches[at].end < end):
                seen.setdefault(owner, {})[needle] = None
    return seen


def by_kind(found: Iterable[Needle]) -> Mapping[NeedleKind, tuple[Needle, ...]]:
    """Return needles by what they are."""
    kinds: dict[NeedleKind, list[Needle]] = {}
    for needle in found:
        kinds.setdefault(needle.kind, []).append(needle)
    return {kind: tuple(each) for kind, each in kinds.items()}
