"""What the files of an SQLite database are like at a moment, and what its errors mean.

Below the other SQLite helpers. Changes nothing, and may not put a value of the store, or a path,
into a message.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Permanent, StoreError, Transient
from purge_adapters._bytes import open_quietly

MAGIC: Final = b"SQLite format 3\x00"
JOURNAL_MAGIC: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
WAL: Final = "-wal"
JOURNAL: Final = "-journal"
HEADER_BYTES: Final = 100


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a side file of the database, whether it exists or not."""
    return path.with_name(path.name + suffix)


def family(path: Path) -> tuple[Path, ...]:
    """Return the files that hold content of the database: itself, ``-wal``, ``-journal``.

    Only those that exist. The ``-shm`` file is an index into the ``-wal`` and holds no content.
    """
    return tuple(
        each for each in (path, beside(path, WAL), beside(path, JOURNAL)) if os.path.lexists(each)
    )


@dataclass(frozen=True, slots=True)
class Moment:
    """What the files of one database were like at one moment; equal while nothing moved.

    Access times are left out, since a look by someone else changes nothing.
    """

    files: tuple[tuple[int, int, int, int, int] | None, ...]
    header: bytes
    wal_header: bytes
    hot_journal: bool

    @property
    def size(self) -> int:
        """The size of the database file, in bytes."""
        return 0 if self.files[0] is None else self.files[0][2]

    @property
    def modified_ns(self) -> int:
        """When the database file was last written to, in nanoseconds of the epoch."""
        return 0 if self.files[0] is None else self.files[0][3]

    @property
    def wal_size(self) -> int:
        """The size of the ``-wal`` file, in bytes; 0 where there is none."""
        return 0 if self.files[1] is None else self.files[1][2]

    @property
    def hot(self) -> bool:
        """Whether the database file alone is not the whole truth."""
        return self.wal_size > 0 or self.hot_journal

    def appended(self, later: Moment) -> bool:
        """Whether ``later`` differs by frames at the end of the same ``-wal`` at most.

        A database and any beginning of its write-ahead log belong together as long as nothing was
        checkpointed and the log did not start anew, which would change its header.
        """
        return (
            self.files[0] == later.files[0]
            and self.files[2] == later.files[2]
            and self.header == later.header
            and self.wal_header == later.wal_header
            and self.wal_size <= later.wal_size
        )


def moment(path: Path) -> Moment:
    """Return what the files of the database are like now.

    Raises:
        Permanent: the file is missing, may not be read, or is no SQLite database.
    """
    try:
        header = _first_bytes(path, HEADER_BYTES)
        wal_header = _first_bytes(beside(path, WAL), 32)
        journal = _first_bytes(beside(path, JOURNAL), len(JOURNAL_MAGIC))
        files = tuple(_stat(each) for each in (path, beside(path, WAL), beside(path, JOURNAL)))
    except OSError as error:
        raise file_error(error) from None
    if files[0] is None or header is None:
        raise Permanent("The database file does not exist.", problem=ProblemCode.UNREACHABLE)
    if header and not header.startswith(MAGIC):
        raise Permanent(
            "The file is not an SQLite database, or it is encrypted or damaged at its beginning.",
            problem=ProblemCode.CORRUPT,
        )
    return Moment(files, header, wal_header or b"", journal == JOURNAL_MAGIC)


def _first_bytes(path: Path, count: int) -> bytes | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Permanent(
            "The database or a side file of it is not a regular file.",
            problem=ProblemCode.UNSUPPORTED,
        )
    try:
        with open_quietly(path) as stream:
            return stream.read(count)
    except FileNotFoundError:
        return None


def _stat(path: Path) -> tuple[int, int, int, int, int] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def connect(path: Path, mode: str, timeout_s: float = 0.0) -> sqlite3.Connection:
    """Open the database with these URI parameters and no transaction of the driver's own."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=timeout_s
    )


@contextmanager
def speaking(path: Path | None = None, before: Moment | None = None) -> Iterator[None]:
    """Turn SQLite's errors into ours; a file that moved meanwhile explains whatever was read."""
    try:
        yield
    except sqlite3.Error as error:
        if path is not None and moment(path) != before:
            raise moved() from None
        raise store_error(error) from None
    if path is not None and moment(path) != before:
        raise moved()


def moved() -> Transient:
    return Transient(
        "The database changed while it was being read.", problem=ProblemCode.CHANGED_UNDERNEATH
    )


_PROBLEMS: Final[dict[int, tuple[ProblemCode, str]]] = {
    sqlite3.SQLITE_PERM: (ProblemCode.NO_PERMISSION, "SQLite may not access the database."),
    sqlite3.SQLITE_AUTH: (ProblemCode.NO_PERMISSION, "SQLite may not access the database."),
    sqlite3.SQLITE_READONLY: (ProblemCode.NO_PERMISSION, "The database is read-only."),
    sqlite3.SQLITE_CANTOPEN: (ProblemCode.UNREACHABLE, "The database cannot be opened."),
    sqlite3.SQLITE_CORRUPT: (ProblemCode.CORRUPT, "The database is damaged."),
    sqlite3.SQLITE_NOTADB: (ProblemCode.CORRUPT, "The file is not an SQLite database."),
    sqlite3.SQLITE_FORMAT: (ProblemCode.CORRUPT, "The database has an unknown format."),
    sqlite3.SQLITE_FULL: (ProblemCode.UNREACHABLE, "There is no space left for the database."),
    sqlite3.SQLITE_CONSTRAINT: (ProblemCode.UNSUPPORTED, "A constraint of the table forbids it."),
}


def primary_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def store_error(error: sqlite3.Error) -> StoreError:
    """Return what an error of SQLite means for the caller, without what it says.

    The texts of SQLite name tables and columns, and some drivers add the values.
    """
    code = primary_code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Transient("The database is locked by another connection.", problem=ProblemCode.BUSY)
    if code == sqlite3.SQLITE_SCHEMA:
        return moved()
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT):
        return Transient("The database could not be read or written.")
    problem, sentence = _PROBLEMS.get(
        code, (ProblemCode.UNSUPPORTED, f"SQLite refused a statement (code {code}).")
    )
    return Permanent(sentence, problem=problem)


def file_error(error: OSError) -> StoreError:
    """Return what an error of the file system means for the caller."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Permanent("The database file does not exist.", problem=ProblemCode.UNREACHABLE)
    if isinstance(error, PermissionError):
        return Permanent("The database file may not be read.", problem=ProblemCode.NO_PERMISSION)
    if isinstance(error, InterruptedError | BlockingIOError | TimeoutError):
        return Transient("The database file could not be read just now.")
    return Permanent("The database file cannot be read.", problem=ProblemCode.UNREACHABLE)
