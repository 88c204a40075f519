"""A log file as lines of bytes, whatever its compression.

A line ends at ``\\n`` and nowhere else: U+2028, U+0085 and a lone ``\\r`` stand inside strings of
real logs. Only reads.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from purge_adapters._bytes import open_quietly
from purge_adapters._codecs import HEAD_BYTES, Codec, Member, detect, read_members
from purge_adapters._files import Fingerprint, fingerprint_of, new_digest

__all__ = ["Line", "LogFile", "is_wide", "lines_of", "narrowed", "wide_encoding"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 1, where it begins in the plain content, and its bytes without
    the line break. ``ended``: there is a line break. The number is 0 where nobody counted."""

    number: int
    offset: int
    data: bytes = field(repr=False)
    ended: bool

    @property
    def place(self) -> str:
        """Where it stands in its file, for people."""
        return f"line {self.number}" if self.number else f"the line at byte {self.offset}"


class LogFile:
    """One open file, read as it was when it was opened: what is appended later is not seen.

    Args:
        path: a regular file.
        size: how many of its bytes to read; without it, all that it has now.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        self._stream = open_quietly(path)
        self.fingerprint: Fingerprint = fingerprint_of(self._stream.fileno())
        self.size = self.fingerprint.size if size is None else size
        self.codec: Codec = detect(self._stream.read(HEAD_BYTES))
        self.wide = False
        """It is in UTF-16, and its lines are given in UTF-8."""
        self._digest: _Digest | None = None

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._digest is not None:
            self._digest.digest()
        self._stream.close()

    def members(self, *, note: bool = False) -> Iterator[tuple[Member, bytes]]:
        """Yield the plain content block by block, from the beginning.

        Args:
            note: take down what was read, for :meth:`seen`.

        Raises:
            OSError: it cannot be read.
            Permanent: it is damaged, or in a format that cannot be read here.
        """
        self._stream.seek(0)
        if note:
            self._digest = _Digest()
        source = _Until(self._stream, self.size, self._digest.update if self._digest else None)
        return read_members(source, self.codec)

    def seen(self) -> bytes:
        """Return the digest of the file as :meth:`members` read it and took it down."""
        if self._digest is None:
            raise ValueError("nothing was taken down")
        return self._digest.digest()

    def lines(self) -> Iterator[Line]:
        """Yield the lines. Raises as :meth:`members` does, after what could be read."""
        blocks = (block for _, block in self.members())
        head = next(blocks, b"")
        encoding = wide_encoding(head)
        self.wide = encoding is not None
        return lines_of(_after(head, blocks), encoding)

    def read_at(self, offset: int, length: int) -> bytes:
        """Return bytes of the file as they stand in it. Raises ``OSError``."""
        return os.pread(self._stream.fileno(), length, offset)

    def has_changed(self) -> bool:
        """Whether what was read was changed meanwhile; something behind it does not matter."""
        now = fingerprint_of(self._stream.fileno())
        if now.size == self.fingerprint.size:
            return now.mtime_ns != self.fingerprint.mtime_ns
        return now.size < self.fingerprint.size


def lines_of(blocks: Iterator[bytes], encoding: str | None = None) -> Iterator[Line]:
    """Yield the lines of plain content.

    Args:
        blocks: the content.
        encoding: what it is in, if that is not UTF-8.
    """
    if encoding is None:
        head = next(blocks, b"")
        encoding = wide_encoding(head)
        blocks = _after(head, blocks)
    if encoding is not None:
        blocks = narrowed(blocks, encoding)
    pieces: list[bytes] = []
    number = offset = 0
    for block in blocks:
        parts = block.split(b"\n")
        pieces.append(parts[0])
        if len(parts) == 1:
            continue
        parts[0] = b"".join(pieces)
        pieces = [parts.pop()]
        for data in parts:
            number += 1
            yield Line(number, offset, data, True)
            offset += len(data) + 1
    data = b"".join(pieces)
    if data:
        yield Line(number + 1, offset, data, False)


def _after(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from blocks


def wide_encoding(head: bytes) -> str | None:
    """Return the name of UTF-16 or UTF-32, if that is what a content begins in."""
    if head[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32"
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    # Without a mark it begins with two ASCII characters, or it is no JSON.
    if len(head) >= 4 and head[0] and not head[1] and head[2] and not head[3]:
        return "utf-16-le"
    if len(head) >= 4 and not head[0] and head[1] and not head[2] and head[3]:
        return "utf-16-be"
    return None


def is_wide(head: bytes) -> bool:
    """Whether content that begins like this is in UTF-16 or UTF-32."""
    return wide_encoding(head) is not None


def narrowed(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield content that is in another encoding in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", True).encode("utf-8", "surrogatepass")


class _Digest:
    """A digest that is computed beside what else is done: it takes as long as a copy does."""

    def __init__(self) -> None:
        self._digest = new_digest()
        self._worker = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def update(self, block: bytes) -> None:
        if self._last is not None:
            self._last.result()
        self._last = self._worker.submit(self._digest.update, block)

    def digest(self) -> bytes:
        self._worker.shutdown()
        return self._digest.digest()


class _Until:
    """A stream that ends where it ended when it was opened."""

    def __init__(self, stream: BinaryIO, size: int, note: Callable[[bytes], None] | None) -> None:
        self._stream = stream
        self._left = size
        self._note = note

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(min(size, self._left))
        self._left -= len(block)
        if self._note is not None:
            self._note(block)
        return block
