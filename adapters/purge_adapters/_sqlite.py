"""Looking at SQLite files without leaving a trace, and the door to the other SQLite helpers.

Shared by the adapters whose store is an SQLite file. Looking changes no byte, time, lock or side
file. This module knows files and pragmas; it holds no opinion on what is in a table, and may not
put a value of the store, or a path, into a message.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Transient
from purge_adapters._bytes import open_quietly
from purge_adapters._sqlite_bytes import Bytes, file_bytes, read_whole
from purge_adapters._sqlite_files import (
    JOURNAL,
    WAL,
    Moment,
    beside,
    connect,
    family,
    file_error,
    moment,
    moved,
    speaking,
    store_error,
)
from purge_adapters._sqlite_quiet import connect_quietly
from purge_adapters._sqlite_schema import (
    ROW_NUMBERS,
    VirtualTable,
    fulltext_tables,
    optimize_fulltext,
    quote,
    virtual_tables,
)
from purge_adapters._sqlite_write import (
    checkpoint,
    drop_journal,
    freelist_pages,
    overwrite_free_pages,
    rewrite,
    vacuum,
    would_renumber,
    writing,
)

__all__ = [
    "JOURNAL",
    "ROW_NUMBERS",
    "WAL",
    "Moment",
    "VirtualTable",
    "beside",
    "checkpoint",
    "drop_journal",
    "family",
    "file_error",
    "freelist_pages",
    "fulltext_tables",
    "in_memory",
    "looking",
    "moment",
    "optimize_fulltext",
    "overwrite_free_pages",
    "quote",
    "reading",
    "rewrite",
    "store_error",
    "vacuum",
    "virtual_tables",
    "would_renumber",
    "writing",
]

MEMORY_LIMIT: Final = 256 * 1024 * 1024
"""Bytes up to which a file is read into memory where reading it in place would leave a trace."""
PATIENCE_S: Final = 3.0
"""How long a look waits for a file to stop moving."""
_SETTLED_S: Final = 0.02
"""File times have the grain of the kernel's clock tick: two writes within one look the same."""
_CAN_LOAD: Final = hasattr(sqlite3.Connection, "deserialize")
_LATELY_S: Final = 10.0


@contextmanager
def reading(
    path: Path, *, private: bool = False, at_leisure: bool = False
) -> Iterator[sqlite3.Connection]:
    """Give a connection that sees the database as it is now and changes nothing on disk.

    Where the database file is the whole truth it is read in place (no lock, no side file, no
    access time), or from memory. Otherwise, with frames in the ``-wal`` or a hot ``-journal``, a
    private copy of the files is read, on which SQLite does what it would have done on opening.
    Closed, and the copy removed, at the end.

    Not while this process has the same database open for writing: a process that closes a file
    loses all its locks on it (POSIX), and a connection to a database with a write-ahead log holds
    one all the time.

    Args:
        path: the database file.
        private: never read in place; whatever is done through the connection stays private.
        at_leisure: the look takes long; what was written to just now is not read in place, since
            the next write would spoil the look.

    Raises:
        Transient: the files kept moving, or moved while they were read in place; what was read
            until then must not be used.
        Permanent: missing, no permission, not a database, damaged.
    """
    before = _settled(path)
    fits = before.size <= MEMORY_LIMIT and _CAN_LOAD
    moving = at_leisure and time.time_ns() - before.modified_ns < _LATELY_S * 1e9
    if before.hot or (private and not fits):
        with _copied(path) as copy, speaking(), closing(connect(copy, "mode=rw")) as connection:
            yield connection
    elif fits and (private or moving):
        with speaking(), closing(_loaded(path)) as connection:
            yield connection
    else:
        with speaking(path, before), closing(_in_place(path, fits)) as connection:
            yield connection


def _in_place(path: Path, fits: bool) -> sqlite3.Connection:
    """Return a connection that reads the file where it is, or a copy where that leaves a trace."""
    connection = connect_quietly(path)
    if connection is not None:
        return connection
    return _loaded(path) if fits else connect(path, "mode=ro&immutable=1")


def _settled(path: Path) -> Moment:
    """Return the files' moment once their last change is old enough to tell it from the next."""
    found = moment(path)
    if found.files[1] is not None and any(
        each is not None and time.time_ns() - each[3] < _SETTLED_S * 1e9 for each in found.files
    ):
        time.sleep(_SETTLED_S)
        found = moment(path)
    return found


def _loaded(path: Path) -> sqlite3.Connection:
    """Return a connection to a copy of the database file in memory."""
    return in_memory(_read_settled(path)[1])


def _read_settled(path: Path) -> tuple[Moment, bytes]:
    """Return the content of the database file, read in one moment.

    It is read and not mapped: a map of a file that someone cuts off ends the process.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        before = _settled(path)
        try:
            content = read_whole(path)
        except OSError as error:
            raise file_error(error) from None
        if before == moment(path):
            return before, content
        if time.monotonic() > deadline:
            raise moved()
        time.sleep(_SETTLED_S)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A database at one moment, as rows and as bytes.

    ``data``, ``log`` and ``journal`` are the files as they lie there. ``settled`` is what the
    database file would be if its log were carried over, or its journal played back, now.
    """

    connection: sqlite3.Connection
    data: Bytes
    log: Bytes
    journal: Bytes
    settled: Bytes


@contextmanager
def looking(path: Path) -> Iterator[Snapshot]:
    """Give the database as it is now, both to ask and as the bytes of its files.

    As :func:`reading`, it changes nothing on disk, also through the connection.

    Raises:
        Transient, Permanent: as for :func:`reading`.
    """
    before = _settled(path)
    with ExitStack() as held:
        if before.hot:
            copy = held.enter_context(_copied(path))
            held.enter_context(speaking())
            connection = held.enter_context(closing(connect(copy, "mode=rw")))
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            if not checkpoint(connection):
                raise moved()
        else:
            copy = path
            connection = held.enter_context(reading(path))
        data, log, journal, settled = (
            held.enter_context(file_bytes(each))
            for each in (path, beside(path, WAL), beside(path, JOURNAL), copy)
        )
        if not before.appended(moment(path)):
            raise moved()
        yield Snapshot(connection, data, log, journal, settled)
        if not before.appended(moment(path)):
            raise moved()


def in_memory(content: bytes | bytearray) -> sqlite3.Connection:
    """Return a connection to a database in memory with the content of a database file.

    Raises:
        sqlite3.Error: it is none.
    """
    if content[18:20] == b"\x02\x02":
        # A database in memory has no write-ahead log, and none is needed: there are no frames.
        patched = bytearray(content)
        patched[18:20] = b"\x01\x01"
        content = patched
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if content:
            connection.deserialize(content)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Give a private copy of the files of the database, taken in one moment."""
    from purge_adapters._files import private_folder

    with private_folder("sqlite") as folder:
        copy = folder / "copy.db"
        deadline = time.monotonic() + PATIENCE_S
        while True:
            before = _settled(path)
            try:
                for suffix in ("", WAL, JOURNAL):
                    _copy_file(beside(path, suffix), beside(copy, suffix))
            except FileNotFoundError:
                if time.monotonic() > deadline:
                    raise moved() from None
                continue
            except OSError as error:
                raise file_error(error) from None
            if before.appended(moment(path)):
                break
            if time.monotonic() > deadline:
                raise Transient(
                    "The database never stood still long enough to be read.",
                    problem=ProblemCode.BUSY,
                )
            time.sleep(_SETTLED_S)
        yield copy


def _copy_file(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    if not os.path.lexists(source):
        return
    with open_quietly(source) as stream, target.open("xb") as copy:
        while block := stream.read(4 * 1024 * 1024):
            copy.write(block)
