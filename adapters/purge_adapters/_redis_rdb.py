"""Dumps of Redis: every string in them, with the key that it belongs to.

For looking at what a file still holds, not for restoring: numbers and times are stepped over.
Formats up to version 12 (Redis 7.4), as rdb.c and t_stream.c of Redis write them. What is not
known is said, never guessed. Does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap
from typing import Final

from purge_adapters._redis_packed import Malformed, intset, listpack, unlzf, ziplist

__all__ = ["MAGIC", "Dump", "Stored", "pieces_of_dump"]

MAGIC: Final = b"REDIS"
Content = bytes | mmap
_AUX, _RESIZE, _SECONDS, _MILLISECONDS, _SELECT, _END = 0xFA, 0xFB, 0xFD, 0xFC, 0xFE, 0xFF
_MODULE_AUX, _IDLE, _FREQUENCY, _FUNCTION, _SLOT = 0xF7, 0xF8, 0xF9, 0xF5, 0xF4
_STRING, _LIST, _SET, _SORTED, _HASH, _SORTED_2, _MODULE = 0, 1, 2, 3, 4, 5, 7
_PACKED: Final = {9: None, 10: ziplist, 11: intset, 12: ziplist, 13: ziplist}
_PACKED_NOW: Final = {16: listpack, 17: listpack, 20: listpack}
_QUICKLIST, _QUICKLIST_2 = 14, 18
_STREAMS: Final = (15, 19, 21)
_HASH_LIVES, _HASH_LIVES_PACKED = 24, 25
_NEWEST: Final = 12


@dataclass(frozen=True, slots=True)
class Stored:
    """What one place of a file says of a key.

    Args:
        database: its number.
        key: the key; empty where the strings belong to none.
        pieces: every string there, the key included.
    """

    database: int
    key: bytes = field(repr=False)
    pieces: tuple[bytes, ...] = field(repr=False)


class Dump:
    """A dump in memory or in a mapped file.

    Args:
        data: the bytes.
        at: where it begins.

    Raises:
        Malformed: it does not begin like one, or its version is newer than what is known.
    """

    def __init__(self, data: Content, at: int = 0) -> None:
        self.data = data
        self.at = at
        head = self._take(9)
        if head[:5] != MAGIC or not head[5:].isdigit() or not 1 <= int(head[5:]) <= _NEWEST:
            raise Malformed
        self.version = int(head[5:])

    def stored(self) -> Iterator[Stored]:
        """Yield what it holds; afterwards ``at`` is where it ends.

        Raises:
            Malformed: it is cut off, or holds what is not known.
        """
        database = 0
        while True:
            kind = self._take(1)[0]
            if kind == _END:
                if self.version >= 5:
                    self._take(8)
                return
            if kind == _AUX:
                yield Stored(database, b"", (self._string(), self._string()))
            elif kind == _SELECT:
                database = self._length()
            elif kind == _RESIZE:
                self._length()
                self._length()
            elif kind == _SLOT:
                for _ in range(3):
                    self._length()
            elif kind == _SECONDS:
                self._take(4)
            elif kind == _MILLISECONDS:
                self._take(8)
            elif kind == _FREQUENCY:
                self._take(1)
            elif kind == _IDLE:
                self._length()
            elif kind == _FUNCTION:
                yield Stored(database, b"", (self._string(),))
            elif kind == _MODULE_AUX:
                for _ in range(3):
                    self._length()
                yield Stored(database, b"", tuple(self._module()))
            else:
                key = self._string()
                yield Stored(database, key, (key, *self.value(kind)))

    def value(self, kind: int) -> Iterator[bytes]:
        """Yield every string of a value of a type."""
        if kind == _STRING:
            yield self._string()
        elif kind in (_LIST, _SET):
            for _ in range(self._length()):
                yield self._string()
        elif kind == _HASH:
            for _ in range(2 * self._length()):
                yield self._string()
        elif kind in (_SORTED, _SORTED_2):
            for _ in range(self._length()):
                yield self._string()
                if kind == _SORTED_2:
                    self._take(8)
                elif (size := self._take(1)[0]) < 253:
                    self._take(size)
        elif kind in _PACKED or kind in _PACKED_NOW:
            packed, unpack = self._string(), {**_PACKED, **_PACKED_NOW}[kind]
            # A zipmap (before Redis 2.6) holds its strings as they are.
            yield from [packed] if unpack is None else unpack(packed)
        elif kind in (_QUICKLIST, _QUICKLIST_2):
            for _ in range(self._length()):
                is_plain = kind == _QUICKLIST_2 and self._length() == 1
                node = self._string()
                yield from (
                    [node] if is_plain else (ziplist if kind == _QUICKLIST else listpack)(node)
                )
        elif kind in _STREAMS:
            yield from self._stream(kind)
        elif kind == _MODULE:
            self._length()
            yield from self._module()
        elif kind == _HASH_LIVES:
            self._take(8)
            for _ in range(self._length()):
                self._length()
                yield self._string()
                yield self._string()
        elif kind == _HASH_LIVES_PACKED:
            self._take(8)
            yield from listpack(self._string())
        else:
            raise Malformed

    def _stream(self, kind: int) -> Iterator[bytes]:
        for _ in range(self._length()):
            self._string()
            # All of it: entries that are flagged as deleted too.
            yield from listpack(self._string())
        for _ in range(3 if kind == _STREAMS[0] else 8):
            self._length()
        for _ in range(self._length()):
            yield self._string()
            for _ in range(2 if kind == _STREAMS[0] else 3):
                self._length()
            for _ in range(self._length()):
                self._take(24)
                self._length()
            for _ in range(self._length()):
                yield self._string()
                self._take(16 if kind >= _STREAMS[2] else 8)
                self._take(16 * self._length())

    def _module(self) -> Iterator[bytes]:
        while code := self._length():
            if code in (1, 2):
                self._length()
            elif code in (3, 4):
                self._take(4 * (code - 2))
            elif code == 5:
                yield self._string()
            else:
                raise Malformed

    def _take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise Malformed
        return self.data[start : self.at]

    def _size(self) -> tuple[int, bool]:
        """Return a length, or the number of a special form (then the second is true)."""
        first = self._take(1)[0]
        if first < 0x40:
            return first, False
        if first < 0x80:
            return (first & 0x3F) << 8 | self._take(1)[0], False
        if first == 0x80:
            return int.from_bytes(self._take(4), "big"), False
        if first == 0x81:
            return int.from_bytes(self._take(8), "big"), False
        if first >= 0xC0:
            return first & 0x3F, True
        raise Malformed

    def _length(self) -> int:
        size, is_special = self._size()
        if is_special:
            raise Malformed
        return size

    def _string(self) -> bytes:
        size, is_special = self._size()
        if not is_special:
            return self._take(size)
        if size < 3:
            return str(int.from_bytes(self._take(1 << size), "little", signed=True)).encode()
        if size == 3:
            packed, plain = self._length(), self._length()
            return unlzf(self._take(packed), plain)
        raise Malformed


class _Payload(Dump):
    """The answer of DUMP: the type, the value, two bytes of a version and a checksum."""

    def __init__(self, data: bytes) -> None:
        self.data = data[:-10]
        self.at = 1
        self.version = int.from_bytes(data[-10:-8], "little")


def pieces_of_dump(data: bytes) -> tuple[bytes, ...]:
    """Return every string in an answer of DUMP.

    Raises:
        Malformed: it is none, or holds what is not known.
    """
    if len(data) < 11:
        raise Malformed
    payload = _Payload(data)
    pieces = tuple(payload.value(data[0]))
    if payload.at != len(payload.data):
        raise Malformed
    return pieces
