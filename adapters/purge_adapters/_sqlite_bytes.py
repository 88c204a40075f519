"""The bytes of a file to look into, however large it is, without a mark and without a map.

A map of a file that another process cuts off meanwhile would end this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from purge_adapters._bytes import open_quietly
from purge_adapters._sqlite_files import file_error

BLOCK: Final = 4 * 1024 * 1024
"""How much is looked at at a time."""


class Bytes(Protocol):
    """What is needed of ``bytes`` or of a file that stands for them."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> bytes: ...
    def find(self, sub: bytes, start: int = ..., end: int = ..., /) -> int: ...


class _FileBytes:
    """A file as bytes. What is cut off while it is read counts as not there."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: slice, /) -> bytes:
        start, stop, _ = key.indices(self._size)
        return os.pread(self._descriptor, max(0, stop - start), start)

    def find(self, sub: bytes, start: int = 0, end: int | None = None, /) -> int:
        stop = self._size if end is None else min(end, self._size)
        while start + len(sub) <= stop:
            block = self[start : min(stop, start + BLOCK)]
            at = block.find(sub)
            if at >= 0:
                return start + at
            if len(block) < len(sub):
                return -1
            start += len(block) - len(sub) + 1
        return -1


def read_whole(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read.
    """
    with open_quietly(path) as stream:
        return _read(stream.fileno(), os.fstat(stream.fileno()).st_size)


def _read(descriptor: int, size: int) -> bytes:
    content = os.pread(descriptor, size, 0)
    while len(content) < size and (more := os.pread(descriptor, size, len(content))):
        content += more
    return content


@contextmanager
def file_bytes(path: Path) -> Iterator[Bytes]:
    """Give the bytes of a file; none where there is no file.

    Raises:
        Permanent, Transient: it cannot be read.
    """
    try:
        stream = open_quietly(path)
    except FileNotFoundError:
        yield b""
        return
    except OSError as error:
        raise file_error(error) from None
    with stream:
        yield _FileBytes(stream.fileno(), os.fstat(stream.fileno()).st_size)
