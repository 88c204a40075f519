"""What the trigram index of the documents still says of rows that are gone.

FTS5 deletes by writing a marker into a newer segment; the words of the row and their order stay
in the older one until both are merged. Neither SQL nor VACUUM shows it, so the segments are read
here as FTS5 writes them (its source, fts5_index.c; by experiment with SQLite 3.40 and the one in
Chroma 1.5.9). Reads through a connection that changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from purge.targets import windows
from purge_adapters._chroma_store import FULLTEXT

SHARE: Final = 0.5
"""The share of a text's trigrams that must be marked as deleted under one row."""
BUDGET: Final = 16 * 1024 * 1024
"""Bytes of segments that are read whole in search of markers; beyond, some are taken to be."""
_STRUCTURE: Final = 10
_SEGMENT_SHIFT: Final = 37
_PAGES: Final = 1 << 31
_MAIN: Final = b"0"
_SHORTS: Final = Struct(">HH")


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the index: its number and the level that it was merged to."""

    number: int
    level: int


def segments(connection: sqlite3.Connection) -> tuple[Segment, ...]:
    """Return the parts of the index, newest level first, the oldest part of a level first."""
    row = connection.execute(
        f"SELECT block FROM {FULLTEXT}_data WHERE id = ?",  # noqa: S608  a fixed name
        (_STRUCTURE,),
    ).fetchone()
    if row is None:
        return ()
    block: bytes = row[0]
    at = 4 + (4 if block[4:5] == b"\xff" else 0)
    levels, at = _varint(block, at)
    _, at = _varint(block, at)
    _, at = _varint(block, at)
    found = []
    for level in range(levels):
        _, at = _varint(block, at)
        count, at = _varint(block, at)
        for _ in range(count):
            number, at = _varint(block, at)
            _, at = _varint(block, at)
            _, at = _varint(block, at)
            found.append(Segment(number, level))
    return tuple(found)


def has_markers(connection: sqlite3.Connection) -> bool:
    """Whether some newer part marks a row as deleted, so that an older one still holds it."""
    left = BUDGET
    for part in _newer(connection):
        pages = _pages(connection, part)
        left -= sum(map(len, pages))
        if left < 0 or any(marked for _, _, marked in _entries(pages, lambda _: True)):
            return True
    return False


def still_holds(connection: sqlite3.Connection, texts: Iterable[str]) -> bool:
    """Whether the trigrams of a text stand together under a row that was deleted or replaced.

    A text that is much alike counts as well: of what is gone, more cannot be told.

    Args:
        connection: to the database.
        texts: of records that are gone. Each is looked for by pieces of it.
    """
    pieces = [terms for text in texts for piece in windows(text) if (terms := trigrams(piece))]
    parts = _newer(connection)
    if not parts or not pieces:
        return False
    wanted = {_MAIN + term for terms in pieces for term in terms}
    rows: dict[bytes, set[int]] = {}
    for part in parts:
        for term, row, marked in _entries(_pages(connection, part), wanted.__contains__):
            if marked:
                rows.setdefault(term[1:], set()).add(row)
    for terms in pieces:
        tally: dict[int, int] = {}
        for term in terms:
            for row in rows.get(term, ()):
                tally[row] = tally.get(row, 0) + 1
        if any(count >= SHARE * len(terms) for count in tally.values()):
            return True
    return False


def _newer(connection: sqlite3.Connection) -> list[Segment]:
    """Return the parts that can hold markers: all but the oldest.

    FTS5 drops the markers that it merges into the oldest part, since nothing older is left.
    """
    parts = segments(connection)
    deepest = max((part.level for part in parts), default=0)
    oldest = next((part for part in parts if part.level == deepest), None)
    return [part for part in parts if part != oldest]


def trigrams(text: str) -> set[bytes]:
    """Return the terms under which the index has a text: each three characters, in lower case."""
    folded = "".join(
        lower if len(lower := character.lower()) == 1 else character for character in text
    )
    return {folded[at : at + 3].encode("utf-8", "surrogatepass") for at in range(len(folded) - 2)}


def _pages(connection: sqlite3.Connection, part: Segment) -> list[bytes]:
    first = part.number << _SEGMENT_SHIFT
    rows = connection.execute(
        f"SELECT block FROM {FULLTEXT}_data WHERE id > ? AND id < ? ORDER BY id",  # noqa: S608
        (first, first + _PAGES),
    )
    return [bytes(block) for (block,) in rows]


def _entries(
    pages: Collection[bytes], wanted: Callable[[bytes], bool]
) -> Iterator[tuple[bytes, int, bool]]:
    """Yield term, row and whether it is a marker, for the terms that are wanted."""
    term, reading, row, skip, fresh = b"", False, 0, 0, True
    for page in pages:
        first_row, end = _SHORTS.unpack_from(page)
        starts = list(_starts(page, end))
        for place, start in enumerate((4, *starts)):
            at = start
            stop = starts[place] if place < len(starts) else end
            if place:
                keep = 0
                if place > 1:
                    keep, at = _varint(page, at)
                length, at = _varint(page, at)
                term = term[:keep] + page[at : at + length]
                at += length
                reading, skip, fresh = wanted(term), 0, True
            while reading and at < stop:
                if skip:
                    step = min(skip, stop - at)
                    at, skip = at + step, skip - step
                    continue
                absolute = fresh or at == first_row
                number, at = _varint(page, at)
                row = number if absolute else row + number
                size, at = _varint(page, at)
                fresh, skip = False, size >> 1
                yield term, row, bool(size & 1)


def _starts(page: bytes, at: int) -> Iterator[int]:
    """Yield where the terms of a page begin."""
    start = 0
    while at < len(page):
        step, at = _varint(page, at)
        start += step
        yield start


def _varint(block: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = block[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | block[at], at + 1
