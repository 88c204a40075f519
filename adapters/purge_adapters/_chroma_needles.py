"""The bytes by which copies of records are told, and where they stand in a database file."""

from __future__ import annotations

import mmap
import os
import sqlite3
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from purge.targets import NEEDLE_BYTES, NeedleKind, Targets, Trace, windows
from purge_adapters._bytes import open_quietly, written_forms
from purge_adapters._chroma_records import is_neutral, plain
from purge_adapters._sqlite_pages import FREE, Pages, Unused

_PIECE: Final = 32
"""Bytes of a vector that are looked for at a time: a page border may cut it."""


@dataclass(frozen=True, slots=True)
class Needle:
    """One thing to look for in bytes. ``text`` is empty for a vector."""

    kind: NeedleKind
    text: str = field(repr=False)


Needles = Mapping[bytes, Needle]


def needles_of(traces: Iterable[Trace], targets: Targets, site: str) -> dict[bytes, Needle]:
    """Return what to look for: of records that were found, and what the targets spell out."""
    found: dict[bytes, Needle] = {}
    for trace in traces:
        for kind in (NeedleKind.TEXT, NeedleKind.METADATA):
            _add(found, kind, trace.needles(kind))
        _add(found, NeedleKind.ID, (plain(trace.id),))
        for vector in trace.vectors:
            for piece in vector_pieces(vector):
                found.setdefault(piece, Needle(NeedleKind.VECTOR, ""))
    _add(found, NeedleKind.ID, (plain(id_) for id_ in targets.ids(site)))
    _add(found, NeedleKind.TEXT, (piece for text in targets.phrases() for piece in windows(text)))
    return found


def _add(found: dict[bytes, Needle], kind: NeedleKind, texts: Iterable[str]) -> None:
    for text in texts:
        if len(text.encode("utf-8", "surrogatepass")) >= NEEDLE_BYTES:
            for form in written_forms(text):
                found.setdefault(form, Needle(kind, text))


def vector_pieces(vector: Sequence[float]) -> tuple[bytes, ...]:
    """Return pieces of the bytes of a vector; none for one that says nothing."""
    if is_neutral(vector) or len(vector) * 4 < NEEDLE_BYTES:
        return ()
    content = struct.pack(f"<{len(vector)}f", *vector)
    last = max(0, len(content) - _PIECE)
    starts = sorted({0, last // 8 * 4, last // 4 * 4})
    pieces = (content[at : at + _PIECE] for at in starts)
    return tuple(dict.fromkeys(piece for piece in pieces if any(piece)))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a needle stands: in nobody's bytes (``kind`` says which), or in a table."""

    needle: Needle
    kind: str | None
    table: str | None


class Database:
    """The bytes of a database file, and which of them belong to a row.

    Args:
        path: the file. Read without a trace.
        connection: to the same database, for its schema.

    Raises:
        purge_adapters._sqlite_pages.Malformed: the pages do not fit together.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        with open_quietly(path) as stream:
            self.size: Final = os.fstat(stream.fileno()).st_size
            self._content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        roots = connection.execute(
            "SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0"
        )
        self._pages = Pages(self._content, {int(page): str(name) for page, name in roots})
        self._unused: list[Unused] = sorted(self._pages.unused(), key=lambda stretch: stretch.start)
        self._starts = [stretch.start for stretch in self._unused]

    def places(self, needles: Needles) -> Iterator[Place]:
        """Yield where the needles stand, each kind of place once for each needle."""
        for form, needle in needles.items():
            seen: set[tuple[str | None, str | None]] = set()
            at = self._content.find(form)
            while at >= 0:
                kind = self._unused_at(at, at + len(form))
                table = self._pages.owner(at)
                if (kind, table) not in seen:
                    seen.add((kind, table))
                    yield Place(needle, kind, table)
                at = self._content.find(form, at + 1)

    def _unused_at(self, start: int, end: int) -> str | None:
        found = bisect_right(self._starts, start) - 1
        for stretch in self._unused[max(found, 0) : found + 2]:
            if stretch.start < end and start < stretch.end:
                return stretch.kind
        return None

    def has_full_free_pages(self) -> bool:
        """Whether a page that belongs to nothing still holds something."""
        return any(
            any(self._content[stretch.start : stretch.end])
            for stretch in self._unused
            if stretch.kind == FREE
        )

    def unused_bytes(self) -> Mapping[str, bytes]:
        """Return, by kind of stretch, all that stands where no row lives."""
        return self._pages.unused_bytes()

    def close(self) -> None:
        """Let go of the file."""
        self._content.close()
