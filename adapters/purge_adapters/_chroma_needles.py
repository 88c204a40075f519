"""The bytes by which copies of records are told, and where they stand in a database file."""

from __future__ import annotations

import mmap
import os
import sqlite3
import struct
from bisect import bisect_right
from collections.abc import Collection as AnyOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from purge.targets import NEEDLE_BYTES, NeedleKind, Targets, Trace, windows
from purge_adapters._bytes import open_quietly, written_forms
from purge_adapters._chroma_records import is_neutral
from purge_adapters._sqlite_pages import FREE, Bytes, Pages, Unused

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_ONE_BY_ONE: Final = 48
"""Up to so many needles are looked for one after the other, which is faster then."""
_BLOCK: Final = 1 << 24
_HASH_BITS: Final = 22
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
        _add(found, NeedleKind.ID, (trace.id,))
        for vector in trace.vectors:
            for piece in vector_pieces(vector):
                found.setdefault(piece, Needle(NeedleKind.VECTOR, ""))
    _add(found, NeedleKind.ID, targets.ids(site))
    _add(found, NeedleKind.TEXT, (piece for text in targets.phrases() for piece in windows(text)))
    return found


def _add(found: dict[bytes, Needle], kind: NeedleKind, texts: Iterable[str]) -> None:
    for text in texts:
        if len(text.encode("utf-8", "surrogatepass")) >= NEEDLE_BYTES:
            for form in written_forms(text):
                if len(form) >= NEEDLE_BYTES:
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


class Finder:
    """Looks for many byte strings in one pass.

    Args:
        forms: what to look for; none is shorter than a needle may be.
    """

    def __init__(self, forms: AnyOf[bytes]) -> None:
        self._forms = tuple(forms)
        self._by_start: dict[bytes, list[bytes]] = {}
        for form in self._forms:
            self._by_start.setdefault(form[:NEEDLE_BYTES], []).append(form)
        self._longest = max(map(len, self._forms), default=0)
        self._table: NDArray[numpy.bool_] | None = None

    def places(self, content: Bytes) -> Iterator[tuple[bytes, int]]:
        """Yield each form with each offset at which it stands, in no order."""
        if len(self._forms) <= _ONE_BY_ONE:
            for form in self._forms:
                at = content.find(form)
                while at >= 0:
                    yield form, at
                    at = content.find(form, at + 1)
            return
        for start in range(0, len(content), _BLOCK):
            block = content[start : start + _BLOCK + self._longest - 1]
            most = min(_BLOCK, len(content) - start)
            for form, at in self._in_block(block):
                if at < most:
                    yield form, start + at

    def stands_in(self, content: Bytes) -> bool:
        """Whether any of the forms stands there."""
        return any(True for _ in self.places(content))

    def _in_block(self, block: bytes) -> Iterator[tuple[bytes, int]]:
        """Look at every eight bytes for a beginning of a form, by a table of hashes."""
        import numpy

        if self._table is None:
            self._table = numpy.zeros(1 << _HASH_BITS, dtype=bool)
            starts = numpy.frombuffer(b"".join(self._by_start), dtype="<u8")
            self._table[_hashed(starts)] = True
        for shift in range(min(NEEDLE_BYTES, len(block))):
            words = numpy.frombuffer(block, "<u8", (len(block) - shift) // NEEDLE_BYTES, shift)
            for place in numpy.flatnonzero(self._table[_hashed(words)]).tolist():
                at = place * NEEDLE_BYTES + shift
                for form in self._by_start.get(block[at : at + NEEDLE_BYTES], ()):
                    if block.startswith(form, at):
                        yield form, at


def _hashed(words: Any) -> Any:
    import numpy

    return (words * numpy.uint64(0x9E3779B97F4A7C15)) >> numpy.uint64(64 - _HASH_BITS)


@contextmanager
def mapped(path: Path) -> Iterator[Bytes]:
    """Give the bytes of a file without reading them at once, and without a trace.

    Raises:
        OSError: it cannot be read.
    """
    with open_quietly(path) as stream:
        if os.fstat(stream.fileno()).st_size == 0:
            yield b""
            return
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        yield content
    finally:
        content.close()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a needle stands: in nobody's bytes (``kind`` says which), or in a table."""

    needle: Needle
    kind: str | None
    table: str | None


class Database:
    """The bytes of a database file, and which of them belong to a row.

    Args:
        content: the whole file.
        connection: to the same database, for its schema.

    Raises:
        purge_adapters._sqlite_pages.Malformed: the pages do not fit together.
    """

    def __init__(self, content: Bytes, connection: sqlite3.Connection) -> None:
        self._content = content
        roots = connection.execute(
            "SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0"
        )
        self._pages = Pages(content, {int(page): str(name) for page, name in roots})
        self._unused: list[Unused] = sorted(self._pages.unused(), key=lambda stretch: stretch.start)
        self._starts = [stretch.start for stretch in self._unused]

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return len(self._content)

    def places(self, needles: Needles) -> Iterator[Place]:
        """Yield where the needles stand, each kind of place once for each needle."""
        seen: set[tuple[Needle, str | None, str | None]] = set()
        for form, at in Finder(needles).places(self._content):
            kind = self._unused_at(at, at + len(form))
            found = (needles[form], kind, self._pages.owner(at))
            if found not in seen:
                seen.add(found)
                yield Place(*found)

    def _unused_at(self, start: int, end: int) -> str | None:
        found = bisect_right(self._starts, start) - 1
        for stretch in self._unused[max(found, 0) : found + 2]:
            if stretch.start < end and start < stretch.end:
                return stretch.kind
        return None

    def unused_bytes(self) -> Mapping[str, bytes]:
        """Return, by kind of stretch, all that stands where no row lives."""
        return self._pages.unused_bytes()

    def has_full_free_pages(self) -> bool:
        """Whether a page that belongs to nothing still holds something."""
        return any(
            any(self._content[stretch.start : stretch.end])
            for stretch in self._unused
            if stretch.kind == FREE
        )
