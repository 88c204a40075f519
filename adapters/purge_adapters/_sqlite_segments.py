"""The segments of an FTS5 index, read as they are stored.

A deleted row stays in the segment that it was written to until that one is merged, hidden by a
mark in a newer segment. SQLite shows only what is not hidden, so this module reads the stored
pages, by the format that fts5_index.c describes (SQLite 3.40; ``detail`` full or column). It reads
through a connection and changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from purge_adapters._sqlite_schema import quote

_STRUCTURE: Final = 10
_SEGMENT_SHIFT: Final = 37
_MAIN_INDEX: Final = b"0"
_SHORTS: Final = Struct(">HH")


class UnknownFormat(Exception):
    """The pages are not what is understood here."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its number and the last of its pages, which count from 1."""

    number: int
    last: int


def segments(connection: sqlite3.Connection, table: str) -> tuple[Segment, ...]:
    """Return the segments of an index.

    Raises:
        UnknownFormat: its structure is not understood.
        sqlite3.OperationalError: it is no FTS5 table.
    """
    block = _block(connection, table, _STRUCTURE)
    if block is None:
        return ()
    if block[4:8] == b"\xff\x00\x00\x01":
        raise UnknownFormat
    at = 4
    levels, at = varint(block, at)
    total, at = varint(block, at)
    _, at = varint(block, at)
    found: list[Segment] = []
    for _ in range(levels):
        _, at = varint(block, at)
        count, at = varint(block, at)
        for _ in range(count):
            number, at = varint(block, at)
            _, at = varint(block, at)
            last, at = varint(block, at)
            found.append(Segment(number, last))
    if len(found) != total:
        raise UnknownFormat
    return tuple(found)


def stored_rows(connection: sqlite3.Connection, table: str, term: str) -> set[int]:
    """Return the rows that any segment has for a term, hidden ones included.

    Raises:
        UnknownFormat: a page is not understood.
    """
    found: set[int] = set()
    for segment in segments(connection, table):
        found.update(_rows(connection, table, segment, _MAIN_INDEX + term.encode()))
    return found


def _rows(
    connection: sqlite3.Connection, table: str, segment: Segment, term: bytes
) -> Iterator[int]:
    query = (
        f"SELECT pgno >> 1 FROM {quote(table + '_idx')} "  # noqa: S608  quoted names
        "WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1"
    )
    row = connection.execute(query, (segment.number, term)).fetchone()
    number = int(row[0]) if row else 1
    # The page that may hold the term; a page without any term carries on the one before it.
    while number <= segment.last:
        page = _page(connection, table, segment, number)
        for name, start, end, is_last in page.terms():
            if name == term:
                yield from _decode(_spread(connection, table, segment, number, start, end, is_last))
                return
            if name > term:
                return
        number += 1


@dataclass(frozen=True, slots=True)
class _Page:
    content: bytes
    first_row: int
    """Where the first row number on this page stands that does not follow another one; or 0."""
    end: int

    def starts(self) -> list[int]:
        """Return where the terms of the page begin."""
        found: list[int] = []
        at, place = self.end, 0
        while at < len(self.content):
            step, at = varint(self.content, at)
            place += step
            found.append(place)
        return found

    def terms(self) -> Iterator[tuple[bytes, int, int, bool]]:
        """Yield each term, where its rows begin and end, and whether it is the last here."""
        starts = self.starts()
        name = b""
        for nth, at in enumerate(starts):
            kept = 0
            if nth:
                kept, at = varint(self.content, at)
            added, at = varint(self.content, at)
            name = name[:kept] + self.content[at : at + added]
            is_last = nth + 1 == len(starts)
            yield name, at + added, self.end if is_last else starts[nth + 1], is_last


def _page(connection: sqlite3.Connection, table: str, segment: Segment, number: int) -> _Page:
    content = _block(connection, table, (segment.number << _SEGMENT_SHIFT) + number)
    if content is None or len(content) < 4:
        raise UnknownFormat
    first_row, end = _SHORTS.unpack_from(content)
    if end > len(content):
        raise UnknownFormat
    return _Page(content, first_row, end)


def _spread(
    connection: sqlite3.Connection,
    table: str,
    segment: Segment,
    number: int,
    start: int,
    end: int,
    is_last: bool,
) -> tuple[bytes, set[int]]:
    """Return the rows of a term as one run of bytes, and where numbers stand in full in it."""
    content = bytearray(_page(connection, table, segment, number).content[start:end])
    whole = {0}
    while is_last and number < segment.last:
        number += 1
        page = _page(connection, table, segment, number)
        starts = page.starts()
        stop = starts[0] if starts else page.end
        if 4 <= page.first_row < stop:
            whole.add(len(content) + page.first_row - 4)
        content += page.content[4:stop]
        is_last = not starts
    return bytes(content), whole


def _decode(stored: tuple[bytes, set[int]]) -> Iterator[int]:
    """Yield the rows of a term that are not marks of a deletion."""
    content, whole = stored
    at, row = 0, 0
    while at < len(content):
        is_whole = at in whole
        step, at = varint(content, at)
        row = step if is_whole else row + step
        size, at = varint(content, at)
        at += size >> 1
        if at > len(content):
            raise UnknownFormat
        if size >> 1:
            # A mark of a deletion has no places; a row with places and the mark was replaced.
            yield row - (1 << 64) if row >= 1 << 63 else row


def _block(connection: sqlite3.Connection, table: str, number: int) -> bytes | None:
    name = quote(table + "_data")
    row = connection.execute(
        f"SELECT block FROM {name} WHERE id = ?",  # noqa: S608  a quoted name
        (number,),
    ).fetchone()
    return bytes(row[0]) if row else None


def varint(block: bytes, at: int) -> tuple[int, int]:
    """Return the number written at ``at`` and where the next byte is.

    Raises:
        UnknownFormat: the block ends there.
    """
    value = 0
    for length in range(9):
        if at + length >= len(block):
            raise UnknownFormat
        byte = block[at + length]
        if length == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + length + 1
    raise UnknownFormat
