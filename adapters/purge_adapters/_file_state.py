"""What a file is like at a moment, and reading and appending without trusting that it stays so."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from purge.adapter import ProblemCode
from purge.errors import Transient
from purge_adapters._bytes import BLOCK

__all__ = [
    "Changed",
    "Fingerprint",
    "Held",
    "carry_over",
    "fingerprint",
    "fingerprint_of",
    "new_digest",
    "read_blocks",
]


class Changed(Transient):
    """The file is no longer what was read. Nothing was replaced."""

    def __init__(self, message: str = "A file changed while it was being rewritten.") -> None:
        super().__init__(message, problem=ProblemCode.CHANGED_UNDERNEATH)


class Held(Transient):
    """Another process holds the file in a way that forbids replacing it. Nothing was replaced."""

    def __init__(self, message: str = "Another process holds a file open.") -> None:
        super().__init__(message, problem=ProblemCode.HELD_OPEN)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells a file from another and from itself after a change, without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def same_file(self, other: Fingerprint) -> bool:
        """Whether both are of one inode, whatever it holds."""
        return (self.device, self.inode) == (other.device, other.inode)


def fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of what stands at ``path``, a symbolic link itself included.

    Raises:
        OSError: as :func:`os.stat` does.
    """
    return _fingerprint(path.stat(follow_symlinks=False))


def fingerprint_of(descriptor: int) -> Fingerprint:
    """Return the fingerprint of an open file."""
    return _fingerprint(os.fstat(descriptor))


def _fingerprint(status: os.stat_result) -> Fingerprint:
    return Fingerprint(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def new_digest() -> hashlib.blake2b:
    """Return the hash with which :func:`replace_file` compares what a caller has read."""
    return hashlib.blake2b(digest_size=32)


def read_blocks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of an open file from ``start`` up to ``end``.

    Raises:
        Changed: it ends before.
    """
    while start < end:
        block = os.pread(descriptor, min(BLOCK, end - start), start)
        if not block:
            raise Changed
        start += len(block)
        yield block


def carry_over(descriptor: int, start: int, target: Path) -> None:
    """Append to ``target`` what stands in an open file from ``start`` on."""
    end = os.fstat(descriptor).st_size
    if end <= start:
        return
    tail = b"".join(read_blocks(descriptor, start, end))
    # One write: with O_APPEND the kernel puts it behind whatever others append, in one piece.
    appended = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while tail:
            tail = tail[os.write(appended, tail) :]
        os.fsync(appended)
    finally:
        os.close(appended)
