"""Replacing a file whole or not at all, without losing what others append meanwhile.

The new content is written beside the file and takes its name in one step. This module opens
nothing but the file, its new content, and what an interrupted replacement left beside it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from purge_adapters._bytes import open_quietly
from purge_adapters._file_state import (
    Changed,
    Fingerprint,
    Held,
    carry_over,
    fingerprint,
    fingerprint_of,
    new_digest,
    read_blocks,
)
from purge_adapters._leftovers import NEW, OLD, own_name, sweep
from purge_adapters._processes import Openers, holders, lease_openers, release_lease

__all__ = ["replace_file"]

_PAUSE_S: Final = 0.005
_BUFFER: Final = 128 * 1024
"""Smaller than the blocks that are copied, so that these are not copied once more in memory."""
_GRACE_LOOKS: Final = 3
"""How often the old file is looked at for a late writer: an opener that had followed the name
before it was given to the new file shows only a moment later."""


def replace_file(
    path: Path,
    expected: Fingerprint,
    write: Callable[[BinaryIO], None],
    *,
    seen: Callable[[], bytes] | None = None,
    patience_s: float = 2.0,
) -> None:
    """Give ``path`` new content in one step, unless it changed since ``expected``.

    The new file lies in the same folder under a name of its own, has the mode, owner and extended
    attributes of the old one, and is on disk before it takes the name. A reader sees the old
    content or the new, never a part.

    What is appended while this runs is carried over behind what ``write`` wrote, also when it is
    appended to the old file at the very moment of the change. Whoever opens the file for writing
    in that moment waits for some milliseconds. If someone then keeps the old file open for
    writing, the change is undone.

    Args:
        path: a regular file. This process must have closed it, but for what ``write`` closes.
        expected: taken before the caller read the file.
        write: writes the whole new content for the first ``expected.size`` bytes of the file.
        seen: called after ``write``; gives the :func:`new_digest` digest of the first
            ``expected.size`` bytes as the caller read them. Without it, a file that grew has
            changed.
        patience_s: how long to wait for another process to close the file, in seconds.

    Raises:
        Changed: the content is no longer what the caller read.
        Held: a process has it open for writing, or one that cannot be seen has it open.
        OSError: the new file cannot be written, or cannot have the old one's owner or attributes.
    """
    sweep(path.parent)
    with open_quietly(path) as source:
        if not fingerprint_of(source.fileno()).same_file(expected):
            raise Changed
        new = own_name(path, NEW)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb", buffering=_BUFFER) as stream:
                write(stream)
                stream.flush()
                _copy_attributes(source.fileno(), stream.fileno())
                rewrite = _Rewrite(path, source, stream, expected, seen)
                rewrite.catch_up()
                os.fsync(stream.fileno())
                # Both files are locked, so that of two replacements at once the second one sees
                # what the first one did, or waits for it.
                with (
                    open_quietly(new) as made,
                    _locked(made.fileno(), patience_s),
                    _locked(source.fileno(), patience_s),
                ):
                    with _leased(path, source.fileno(), patience_s):
                        rewrite.catch_up()
                        stream.flush()
                        os.fsync(stream.fileno())
                        written = os.fstat(stream.fileno()).st_size
                        old = _swap(path, new, rewrite.expected.size)
                    stream.close()
                    copied = rewrite.expected.size
                    _settle(path, source, made, old, copied, written, patience_s)
        finally:
            with suppress(FileNotFoundError):
                new.unlink()


class _Rewrite:
    """The copy under way: how much of the old file the new one answers for."""

    def __init__(
        self,
        path: Path,
        source: BinaryIO,
        stream: BinaryIO,
        expected: Fingerprint,
        seen: Callable[[], bytes] | None,
    ) -> None:
        self.expected = expected
        self._path = path
        self._source = source
        self._stream = stream
        self._digest = seen

    def catch_up(self) -> None:
        """Copy what was appended since the last look.

        Raises:
            Changed: the file is another one, or it changed in another way than at its end.
        """
        now = fingerprint_of(self._source.fileno())
        if not fingerprint(self._path).same_file(now):
            raise Changed
        if now == self.expected:
            return
        if self._digest is None or now.size < self.expected.size:
            raise Changed
        digest = new_digest()
        for block in read_blocks(self._source.fileno(), 0, self.expected.size):
            digest.update(block)
        if digest.digest() != self._digest():
            raise Changed
        for block in read_blocks(self._source.fileno(), self.expected.size, now.size):
            self._stream.write(block)
            digest.update(block)
        self.expected = now
        self._digest = digest.digest


def _copy_attributes(source: int, target: int) -> None:
    status = os.fstat(source)
    made = os.fstat(target)
    if (status.st_uid, status.st_gid) != (made.st_uid, made.st_gid):
        os.fchown(target, status.st_uid, status.st_gid)
    os.fchmod(target, status.st_mode & 0o7777)
    own = set(os.listxattr(target))
    for name in os.listxattr(source):
        value = os.getxattr(source, name)
        if name not in own or os.getxattr(target, name) != value:
            os.setxattr(target, name, value)


@contextmanager
def _locked(descriptor: int, patience_s: float) -> Iterator[None]:
    """Hold the advisory lock of a file, where its file system has such locks.

    Raises:
        Held: another process had it for all of the time.
    """
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise Held from None
            time.sleep(_PAUSE_S)
            continue
        except OSError:
            yield
            return
        break
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def _leased(path: Path, descriptor: int, patience_s: float) -> Iterator[None]:
    """Keep writers out for a moment, once there are none.

    Raises:
        Held: there were some for all of the time, or readers that cannot be seen: they would keep
            the old bytes, and no later look could tell.
    """
    end = time.monotonic() + patience_s
    try:
        while not _free(path, lease_openers(descriptor)):
            release_lease(descriptor)
            if time.monotonic() > end:
                raise Held
            time.sleep(_PAUSE_S)
        yield
    finally:
        release_lease(descriptor)


def _free(path: Path, openers: Openers) -> bool:
    if openers is Openers.NONE:
        return True
    if openers is Openers.WRITERS:
        return False
    seen = holders([path])
    if any(holder.writes for holder in seen):
        return False
    return bool(seen) or openers is Openers.UNKNOWN


def _swap(path: Path, new: Path, size: int) -> Path | None:
    """Give the name to the new file; return the name under which the old one waits, if any."""
    kept = own_name(path, f"{OLD}{size}")
    old: Path | None = kept
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError:
        # A file system without hard links. A late writer can then be followed, not undone.
        old = None
    try:
        os.replace(new, path)
    except OSError:
        if old is not None:
            old.unlink()
        raise
    _sync_folder(path.parent)
    return old


def _settle(
    path: Path,
    source: BinaryIO,
    made: BinaryIO,
    old: Path | None,
    copied: int,
    written: int,
    patience_s: float,
) -> None:
    """See late writers of the old file out, and carry over what they appended.

    Raises:
        Held: one of them stays. The old file has its name back, if it could be given back.
    """
    end = time.monotonic() + patience_s
    quiet = 0
    try:
        while quiet < _GRACE_LOOKS:
            time.sleep(_PAUSE_S if quiet else 0)
            if not _has_writers(source.fileno(), old):
                quiet += 1
            elif time.monotonic() <= end:
                quiet = 0
                time.sleep(_PAUSE_S)
            else:
                if old is not None:
                    _swap_back(path, made.fileno(), old, written)
                    old = None
                    raise Held
                break
        carry_over(source.fileno(), copied, path)
        if quiet < _GRACE_LOOKS:
            raise Held
    finally:
        if old is not None:
            old.unlink()
            _sync_folder(path.parent)


def _has_writers(descriptor: int, old: Path | None) -> bool:
    openers = lease_openers(descriptor)
    release_lease(descriptor)
    if openers is Openers.UNKNOWN:
        return old is not None and any(holder.writes for holder in holders([old]))
    return openers is Openers.WRITERS


def _swap_back(path: Path, made: int, old: Path, written: int) -> None:
    """Let the old file have its name again, with what was appended to the new one."""
    lease_openers(made)
    try:
        carry_over(made, written, old)
        os.replace(old, path)
    finally:
        release_lease(made)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
