"""Ways to break a store on purpose, for harnesses. Linux only, as the project is.

Nothing here knows a kind of store, except that SQLite databases have a lock of their own.
"""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_HOLD: Final = """
import os, sys
flags = os.O_WRONLY | os.O_APPEND if sys.argv[1] == "write" else os.O_RDONLY
held = [os.open(path, flags) for path in sys.argv[2:]]
print("held", flush=True)
sys.stdin.read()
"""
_LOCK_FOLDER: Final = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
_LOCK: Final = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[2], isolation_level=None)
connection.execute(f"BEGIN {sys.argv[1]}")
if sys.argv[1] == "DEFERRED":
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
print("held", flush=True)
sys.stdin.read()
"""


def read_quietly(path: Path) -> bytes:
    """Return the bytes of a file and leave its access time alone, where we may."""
    flags = os.O_RDONLY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def largest(files: Iterable[Path]) -> Path:
    """Return the largest of some files.

    Raises:
        ValueError: there is none.
    """
    return max(files, key=lambda path: path.stat().st_size)


@contextmanager
def moved_away(paths: Sequence[Path]) -> Iterator[None]:
    """Take files or folders out of their place, into a folder beside their parent; undone after.

    What was made in their place meanwhile is an error: a look may not create a store.

    Raises:
        FileExistsError: something stands in their place at the end.
    """
    with tempfile.TemporaryDirectory(prefix="away-", dir=paths[0].parent.parent) as away:
        moved = [(path, Path(away) / str(at)) for at, path in enumerate(paths)]
        for path, place in moved:
            path.rename(place)
        try:
            yield
        finally:
            taken = [path for path, _ in moved if path.exists()]
            for path, place in moved:
                if path not in taken:
                    place.rename(path)
        if taken:
            raise FileExistsError("Something was created where the store was missing.")


@contextmanager
def _child(source: str, *arguments: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", source, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != b"held\n":
            raise RuntimeError("The other process could not take hold of the store.")
        yield
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


@contextmanager
def held_open(paths: Sequence[Path], *, writing: bool = True) -> Iterator[None]:
    """Hold files open from another process, as a logger does, without a lock."""
    with _child(_HOLD, "write" if writing else "read", *map(str, paths)):
        yield


@contextmanager
def folder_locked(folder: Path) -> Iterator[None]:
    """Hold the exclusive ``flock`` of a folder from another process."""
    with _child(_LOCK_FOLDER, str(folder)):
        yield


@contextmanager
def sqlite_locked(path: Path, mode: str = "IMMEDIATE") -> Iterator[None]:
    """Hold a lock of a SQLite database from another process.

    Args:
        path: the database.
        mode: ``IMMEDIATE`` (a writer), ``EXCLUSIVE`` (nobody else may even read, without WAL) or
            ``DEFERRED`` (a reader that keeps its snapshot).
    """
    with _child(_LOCK, mode, str(path)):
        yield


@contextmanager
def overwritten(path: Path, *, share: float = 0.5) -> Iterator[None]:
    """Overwrite the middle of a file with bytes that mean nothing. Not undone.

    Args:
        path: the file.
        share: how much of it, from 0 to 1.
    """
    size = path.stat().st_size
    length = max(1, int(size * share))
    with path.open("r+b") as stream:
        stream.seek((size - length) // 2)
        stream.write(bytes((0xFF, 0x00, 0xA7, 0xFE) * (length // 4 + 1))[:length])
    yield


@contextmanager
def cut_in_half(path: Path, *, share: float = 0.5) -> Iterator[None]:
    """Keep only the first part of a file. Not undone.

    Args:
        path: the file.
        share: how much is kept, from 0 to 1.
    """
    os.truncate(path, int(path.stat().st_size * share))
    yield


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take the permission to write from a folder and all below it; undone after.

    Root may write everywhere, so this thread also lays down that power (CAP_DAC_OVERRIDE and
    CAP_DAC_READ_SEARCH of its effective set) until the end. Threads that a driver started
    earlier keep it.
    """
    entries = [folder, *(path for path in folder.rglob("*") if not path.is_symlink())]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in entries}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        with _without_override():
            yield
    finally:
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


_CAPABILITY_VERSION_3: Final = 0x20080522
_OVERRIDE: Final = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


@contextmanager
def _without_override() -> Iterator[None]:
    library = ctypes.CDLL(None, use_errno=True)
    header = _Header(_CAPABILITY_VERSION_3, 0)
    sets = (_Sets * 2)()
    _call(library.capget(ctypes.byref(header), sets))
    before = sets[0].effective
    sets[0].effective = before & ~_OVERRIDE
    _call(library.capset(ctypes.byref(header), sets))
    try:
        yield
    finally:
        sets[0].effective = before
        _call(library.capset(ctypes.byref(header), sets))


def _call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
