"""Append-only files of Redis: the commands in them, after the dump with which some begin.

Does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterator

from purge_adapters._redis_packed import Malformed
from purge_adapters._redis_rdb import MAGIC, Content, Dump, Stored

__all__ = ["is_known", "stored_in"]


def is_known(head: bytes) -> bool:
    """Whether a file begins like a dump or like an append-only file."""
    return head.startswith(MAGIC) or head[:1] in (b"*", b"#")


def stored_in(data: Content) -> Iterator[Stored]:
    """Yield what a dump or an append-only file holds, to its end.

    Raises:
        Malformed: it is cut off, or holds what is not known.
    """
    at = 0
    if data[: len(MAGIC)] == MAGIC:
        dump = Dump(data)
        yield from dump.stored()
        at = dump.at
    yield from _commands(data, at)


def _commands(data: Content, at: int) -> Iterator[Stored]:
    database = 0
    while at < len(data):
        if data[at : at + 1] == b"#":
            end = data.find(b"\r\n", at)
            if end < 0:
                raise Malformed
            at = end + 2
            continue
        count, at = _number(data, at, b"*")
        words: list[bytes] = []
        for _ in range(count):
            size, at = _number(data, at, b"$")
            if at + size + 2 > len(data) or data[at + size : at + size + 2] != b"\r\n":
                raise Malformed
            words.append(data[at : at + size])
            at += size + 2
        if not words:
            raise Malformed
        if words[0].upper() == b"SELECT" and len(words) == 2 and words[1].isdigit():
            database = int(words[1])
        yield Stored(database, words[1] if len(words) > 1 else b"", tuple(words))


def _number(data: Content, at: int, mark: bytes) -> tuple[int, int]:
    end = data.find(b"\r\n", at, at + 32)
    if end < 0 or data[at : at + 1] != mark or not data[at + 1 : end].isdigit():
        raise Malformed
    return int(data[at + 1 : end]), end + 2
