"""Opening the ledger's SQLite files, and saying in one sentence what is wrong with one.

The only place that turns errors of SQLite and the file system into :class:`LedgerFault`. Files
are made with mode 0600 from their first byte and folders with 0700; a folder that exists is left
as it is. A file that is not ours is never written to: its header is read before SQLite opens it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from purge.errors import LedgerFault, Locked

BUSY_MILLISECONDS: Final = 5_000
"""Appends of two processes take turns; each takes milliseconds."""
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100
_ATTEMPTS: Final = 10
_PAUSE_SECONDS: Final = 0.02

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file of ours is called in sentences, and the application id in its header."""

    name: str
    application: int


LEDGER: Final = Kind("ledger", 0x50_55_52_47)  # "PURG"
KEYS: Final = Kind("ledger's key database", 0x50_55_52_4B)  # "PURK"


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    """Where the parts of one ledger lie, all in one folder."""

    database: Path
    keys: Path
    lock: Path

    def all(self) -> tuple[Path, ...]:
        """Every file that may exist, side files of SQLite included."""
        return (
            self.database,
            *(self.database.with_name(self.database.name + end) for end in ("-wal", "-shm")),
            self.keys,
            self.keys.with_name(self.keys.name + "-journal"),
            self.lock,
        )


def ledger_files(path: Path) -> LedgerFiles:
    """Return the files of the ledger whose database is ``path``."""
    return LedgerFiles(path, path.with_name(path.stem + ".keys.db"), path.with_suffix(".lock"))


@contextmanager
def faults(kind: Kind, path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise into one clear sentence."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of ours
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _sqlite_fault(kind, path, error) from error
    except OSError as error:
        raise _os_fault(kind, path, error) from error


def error_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    """Return SQLite's code for an error.

    Those that Python's module raises itself have none: a text that is not UTF-8, which is damage
    (also where it is SQLite's own message that quotes a damaged schema).
    """
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT))


def _sqlite_fault(
    kind: Kind, path: Path, error: sqlite3.Error | UnicodeDecodeError
) -> LedgerFault | Locked:
    code = error_code(error)
    primary = code & 0xFF
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Locked(f"Another process is writing the {kind.name} {path}; try again.")
    if primary == sqlite3.SQLITE_FULL:
        return LedgerFault(
            f"The disk is full, so the {kind.name} {path} could not be written; nothing that it "
            "would have announced was done."
        )
    if code in (sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY):
        return LedgerFault(
            f"A run was killed while it wrote the {kind.name} {path}; the next command that writes "
            "repairs it, and it cannot be read before."
        )
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return LedgerFault(f"The {kind.name} {path} or its folder may not be written to.")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return LedgerFault(
            f"The {kind.name} {path} cannot be opened: it or its folder may not be read, or not "
            "be written to while a previous run has left work unfinished."
        )
    if primary == sqlite3.SQLITE_NOTADB:
        return LedgerFault(f"{path} is not a {kind.name}: its beginning is damaged.")
    if primary == sqlite3.SQLITE_IOERR:
        return LedgerFault(
            f"The disk failed to read or write the {kind.name} {path}; nothing that it would have "
            "announced was done."
        )
    return LedgerFault(
        f"The {kind.name} {path} is damaged. Put a sound copy of the whole ledger folder in its "
        "place."
    )


def _os_fault(kind: Kind, path: Path, error: OSError) -> LedgerFault:
    if error.errno in (errno.EACCES, errno.EPERM):
        return LedgerFault(f"The {kind.name} {path} or its folder may not be read or written to.")
    if error.errno == errno.EROFS:
        return LedgerFault(f"The {kind.name} {path} lies on a read-only file system.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LedgerFault(f"The disk is full, so the {kind.name} {path} could not be written.")
    if error.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST):
        return LedgerFault(f"The {kind.name} {path} is not a file, or its folder is not a folder.")
    return LedgerFault(f"The {kind.name} {path} cannot be used: {error.strerror}.")


def make_folder(folder: Path) -> None:
    """Make ``folder`` with mode 0700 if it is missing, and what is missing above it."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file with mode 0600 if it is missing, in a folder that is there after."""
    make_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name; ``None`` when there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def is_begun(kind: Kind, path: Path) -> bool:
    """Whether the file holds a database of ours; ``False`` when it is missing or empty.

    Raises:
        LedgerFault: it is something else, or was cut short.
    """
    for _ in range(_ATTEMPTS - 1):
        header, size = _look(kind, path)
        if not _is_cut_short(path, header, size):
            break
        time.sleep(_PAUSE_SECONDS)  # while someone writes, header and size may not agree
    else:
        raise LedgerFault(
            f"The {kind.name} {path} was cut short. Put a sound copy of the whole ledger folder "
            "in its place."
        )
    if not header:
        return False
    application = int.from_bytes(header[68:72], "big")
    if not header.startswith(_MAGIC) or application != kind.application:
        raise LedgerFault(f"{path} is not a {kind.name}: it belongs to another program.")
    return True


def _look(kind: Kind, path: Path) -> tuple[bytes, int]:
    """Return the header and the size of a file; empty when it is missing."""
    with faults(kind, path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return b"", 0
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise LedgerFault(f"The {kind.name} {path} is not a file.")
            return os.pread(handle, _HEADER, 0), status.st_size
        finally:
            os.close(handle)


def _is_cut_short(path: Path, header: bytes, size: int) -> bool:
    """Whether a database lacks pages that its header counts and no side file can bring back."""
    if not header or not header.startswith(_MAGIC[: len(header)]):
        return False
    page = int.from_bytes(header[16:18], "big")
    expected = int.from_bytes(header[28:32], "big") * (65536 if page == 1 else page)
    if len(header) == _HEADER and size >= expected:
        return False
    sides = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
    return not any(side.exists() for side in sides)


def open_to_write(kind: Kind, path: Path, journal: str) -> sqlite3.Connection:
    """Open a file of ours, made if it is missing, so that each commit is on disk."""
    with faults(kind, path):
        make_file(path)
    begun = is_begun(kind, path)
    with faults(kind, path):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        connection = sqlite3.connect(path, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)
        try:
            if not begun:
                # Before the switch to WAL, which would keep it out of the file's own header.
                connection.execute(f"PRAGMA application_id = {kind.application:d}")
            connection.execute("PRAGMA secure_delete = ON")
            _set_journal(kind, path, connection, journal)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
    return connection


def _set_journal(kind: Kind, path: Path, connection: sqlite3.Connection, journal: str) -> None:
    """Choose the kind of journal. SQLite does not wait for others here, so this does."""
    end = time.monotonic() + BUSY_MILLISECONDS / 1000
    found = ""
    while not found:
        try:
            (found,) = connection.execute(f"PRAGMA journal_mode = {journal}").fetchone()
        except sqlite3.OperationalError as error:
            if error_code(error) & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
    if found.upper() != journal:
        raise LedgerFault(
            f"The file system of {path} lacks what SQLite needs to write the {kind.name} safely; "
            "put it on a local disk."
        )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do what follows at once or not at all; other writers wait."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let everything that is read in the block be of one state of the database."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class QuietReader:
    """Reads a database in WAL mode without making or touching a file.

    SQLite makes ``-wal`` and ``-shm`` beside a WAL database even for a connection that may only
    read (seen with 3.40.1), so while there is no ``-wal`` the file is opened as immutable. SQLite
    does not watch an immutable file; so each look is done again when the file was written to
    meanwhile. While there is a ``-wal``, someone has the ledger open or was killed: SQLite's own
    reading, which needs the ``-shm``, sees the right state.
    """

    def __init__(self, kind: Kind, path: Path) -> None:
        self._kind = kind
        self._path = path
        self._wal = path.with_name(path.name + "-wal")
        self._connection: sqlite3.Connection | None = None
        self._seen: tuple[int, ...] | None = None

    def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``look`` finds in one unchanging state of the database."""
        for attempt in range(_ATTEMPTS):
            connection, seen = self._open()
            try:
                with snapshot(connection):
                    found = look(connection)
            except (sqlite3.Error, UnicodeDecodeError, LedgerFault):
                # Half a write can look like damage. It is damage if the file stood still.
                if seen == self._state() or attempt == _ATTEMPTS - 1:
                    raise
            else:
                if seen is None or seen == self._state():
                    return found
            self.close()
        raise Locked(f"The {self._kind.name} {self._path} is being written to; try again.")

    def _state(self) -> tuple[int, ...] | None:
        """What the file looks like from outside; ``None`` while someone may be writing."""
        if self._wal.exists():
            return None
        status = self._path.stat()
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def _open(self) -> tuple[sqlite3.Connection, tuple[int, ...] | None]:
        state = self._state()
        if self._connection is None or state != self._seen:
            self.close()
            self._connection = _connect_to_read(self._path, immutable=state is not None)
            self._seen = state
        return self._connection, state

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _connect_to_read(path: Path, *, immutable: bool) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + "?mode=ro" + ("&immutable=1" if immutable else "")
    return sqlite3.connect(uri, uri=True, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a database with a rollback journal to read; this makes no file."""
    return _connect_to_read(path, immutable=False)
