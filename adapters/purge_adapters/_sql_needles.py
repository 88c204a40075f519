"""What is looked for in the bytes of a database, and where in the bytes it stands.

This module opens nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from purge.targets import NEEDLE_BYTES, NeedleKind, Targets, Trace, windows
from purge_adapters._sqlite_bytes import BLOCK, Bytes
from purge_adapters._sqlite_pages import Pages

_MOST_PLACES: Final = 2000
_SHORTEST: Final = 4
_PIECE: Final = 12
_MOST_PIECES: Final = 64
_MANY: Final = 300
"""From how many things to look for on one pass over all bytes is cheaper than one for each."""


@dataclass(frozen=True, slots=True)
class Needle:
    """One thing to look for. ``key``: of the phrase that it is a piece of, else ``None``."""

    kind: NeedleKind
    text: str = field(repr=False)
    forms: tuple[bytes, ...] = field(repr=False)
    key: int | None = None


def of_trace(trace: Trace, kinds: Iterable[NeedleKind], encoding: str) -> Iterator[Needle]:
    """Yield the needles of one record.

    Args:
        trace: what it looks like.
        kinds: which of its kinds.
        encoding: of text in the database, as SQLite names it.
    """
    for kind in kinds:
        for piece in trace.needles(kind):
            if forms := written(piece, encoding):
                yield Needle(kind, piece, forms)


def of_phrases(targets: Targets, encoding: str) -> Iterator[Needle]:
    """Yield what is looked for because it was asked for by its words.

    Phrases within a scope are left out: nothing in free space says to which scope it belonged.
    """
    for target in targets.unscoped_words():
        for piece in windows(target.value.strip()):
            if forms := written(piece, encoding):
                yield Needle(NeedleKind.TEXT, piece, forms, target.key)


def unscoped(targets: Targets) -> tuple[str, ...]:
    """Return the phrases that are looked for in every scope."""
    return tuple(target.value for target in targets.unscoped_words())


def short_forms(trace: Trace, encoding: str) -> Iterator[Needle]:
    """Yield what a record says that is too short for a needle, but no single letter either."""
    for text in (trace.id, *trace.texts, *trace.metadata):
        if _SHORTEST <= len(text.encode("utf-8", "surrogatepass")) < NEEDLE_BYTES:
            yield Needle(NeedleKind.TEXT, text, tuple(_encoded((text,), encoding)))


def written(text: str, encoding: str) -> tuple[bytes, ...]:
    """Return the bytes in which a text may stand in a database of this encoding."""
    forms = _encoded(spellings_in_text(text), encoding)
    return tuple(form for form in forms if len(form) >= NEEDLE_BYTES)


def spellings_in_text(text: str) -> tuple[str, ...]:
    """Return the ways in which a text is written: as it is, and within JSON."""
    escaped = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    return tuple(dict.fromkeys((text, *escaped)))


def _encoded(said: Iterable[str], encoding: str) -> Iterator[bytes]:
    codes = ["utf-8", *([encoding.lower()] if encoding.upper() != "UTF-8" else [])]
    # SQLite says "UTF-16le", as Python does.
    yield from dict.fromkeys(each.encode(code, "surrogatepass") for each in said for code in codes)


def pieces(text: str, encoding: str) -> Iterator[bytes]:
    """Yield the pieces of a text by which a part of it is known.

    What was freed is overwritten from its ends, or in its middle. A part of it that is longer than
    a piece and the step between two holds a whole piece.
    """
    wide = encoding.upper() != "UTF-8"
    size = 2 * _PIECE if wide else _PIECE
    for form in _encoded(spellings_in_text(text), encoding):
        last = len(form) - size
        if last <= 0:
            if len(form) >= NEEDLE_BYTES:
                yield form
            continue
        step = max(size, -(-last // _MOST_PIECES))
        step += step % 2
        for at in (*range(0, last, step), last):
            yield form[at : at + size]


def present(
    content: Bytes,
    forms: Collection[bytes],
    enough: Callable[[set[bytes]], bool] = lambda found: False,
) -> set[bytes]:
    """Return which forms stand anywhere. None may be shorter than a needle is.

    Args:
        content: where to look.
        forms: what to look for.
        enough: whether what was found until now will do.
    """
    found: set[bytes] = set()
    left = set(forms)
    overlap = max(map(len, left), default=1) - 1
    by_start: dict[bytes, list[bytes]] = {}
    if len(left) >= _MANY:
        for form in left:
            by_start.setdefault(form[:NEEDLE_BYTES], []).append(form)
    for base in range(0, len(content) if left else 0, BLOCK):
        block = content[base : base + BLOCK + overlap]
        if by_start:
            for at in range(min(BLOCK, len(block))):
                if (start := block[at : at + NEEDLE_BYTES]) in by_start:
                    found.update(form for form in by_start[start] if block.startswith(form, at))
        else:
            here = {form for form in left if block.find(form) >= 0}
            found |= here
            left -= here
        if not left or enough(found):
            break
    return found


def stands_cut(content: Bytes, form: bytes) -> bool:
    """Whether a form stands there, cut in two by the border of a page.

    A value that is too long for its page goes on in another one, and a border may fall anywhere.
    """
    size = NEEDLE_BYTES
    missing = [at for at in range(len(form) - size + 1) if content.find(form[at : at + size]) < 0]
    return len(form) >= 2 * size - 1 and (not missing or missing[-1] - missing[0] < size - 1)


def owners(content: Bytes, pages: Pages, found: Iterable[Needle]) -> dict[str, dict[Needle, None]]:
    """Return, by table, which needles stand in its pages among its rows."""
    stretches = sorted(pages.unused(), key=lambda each: each.start)
    starts = [each.start for each in stretches]
    seen: dict[str, dict[Needle, None]] = {}
    for needle in found:
        for start, end in _places(content, needle.forms):
            at = bisect_right(starts, start) - 1
            owner = pages.owner(start)
            if owner is not None and (at < 0 or stretches[at].end < end):
                seen.setdefault(owner, {})[needle] = None
    return seen


def _places(content: Bytes, forms: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where the forms stand: first byte and the one after the last, up to a limit."""
    left = _MOST_PLACES
    for form in forms:
        at = content.find(form)
        while at >= 0 and left:
            yield at, at + len(form)
            left -= 1
            at = content.find(form, at + 1)
