"""Writing to SQLite files so that nothing of what goes is left in them.

Goes through SQLite's own locks, overwrites what it frees and waits a few seconds at most. Knows
files and pragmas, and holds no opinion on what is in a table.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from purge.adapter import ProblemCode
from purge.errors import Permanent, Transient
from purge_adapters._sqlite_files import connect, file_error, moment, primary_code, speaking
from purge_adapters._sqlite_schema import ROW_NUMBERS, quote

MEMORY_LIMIT = 256 * 1024 * 1024
"""Bytes up to which a database is rewritten by way of memory, and not of a temporary file."""


@contextmanager
def writing(path: Path, timeout_s: float) -> Iterator[sqlite3.Connection]:
    """Give a connection that may change the database and leaves nothing of what it frees.

    ``secure_delete`` and ``foreign_keys`` are on (both belong to a connection, not to the file),
    no transaction is begun, and an open one is rolled back at the end. Temporary tables stay in
    memory. Since this connection's journal mode is the default one, the ``-journal`` that another
    connection left behind (``PERSIST``) goes with the first commit; write-ahead logging stays on
    where it is on.

    Args:
        path: the database file; it is never created.
        timeout_s: how many seconds to wait for locks of others.

    Raises:
        Transient: locked by someone else until the time was over.
        Permanent: missing, read-only, not a database, damaged.
    """
    moment(path)
    try:
        # Root may write to what someone made read-only on purpose; we do not.
        if not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK):
            raise Permanent("The database file is read-only.", problem=ProblemCode.NO_PERMISSION)
    except OSError as error:
        raise file_error(error) from None
    with speaking(), closing(connect(path, "mode=rw", timeout_s)) as connection:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA foreign_keys = ON")
        if connection.execute("PRAGMA secure_delete = ON").fetchall() != [(1,)]:
            raise Permanent(
                "This SQLite library does not overwrite what it frees.",
                problem=ProblemCode.UNSUPPORTED,
            )
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.rollback()


def checkpoint(connection: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the database and cut it to nothing; say whether that worked.

    A reader of an older state makes the pragma answer "busy" in its first column, without an
    error (SQLite 3.40.1, by experiment). True where there is no write-ahead log.
    """
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False
        raise
    return bool(busy == 0)


def vacuum(connection: sqlite3.Connection) -> None:
    """Rewrite the whole database without its free space.

    Renumbers the rows of tables that have neither an INTEGER PRIMARY KEY nor an index, so the
    caller must know that nothing relies on their numbers.

    Raises:
        sqlite3.OperationalError: locked, or no space.
    """
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    if pages * size > MEMORY_LIMIT:
        connection.execute("PRAGMA temp_store = DEFAULT")
    connection.execute("VACUUM")


def freelist_pages(connection: sqlite3.Connection) -> int:
    """Return how many pages of the database are free."""
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def overwrite_free_pages(connection: sqlite3.Connection) -> None:
    """Overwrite every free page, and change no page that is in use.

    All free pages are taken into a scratch table and freed again under ``secure_delete``, in one
    transaction. Unlike VACUUM this moves no row and gives none a new number, and it costs as much
    as there is free space. ``connection`` must come from :func:`writing`.

    Raises:
        sqlite3.OperationalError: locked, or no space.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        size = int(connection.execute("PRAGMA page_size").fetchone()[0])
        name = _unused_name(connection)
        connection.execute(f"CREATE TABLE {name} (filler BLOB)")
        before, free = None, freelist_pages(connection)
        while free and free != before:
            # One row fills many pages by its overflow chain; the table's own pages take the rest.
            connection.execute(
                f"INSERT INTO {name} VALUES (zeroblob(?))",  # noqa: S608  a name of our own
                (max(size, min(free, 16_384) * (size - 8) // 2),),
            )
            before, free = free, freelist_pages(connection)
        connection.execute(f"DROP TABLE {name}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.rollback()


def _unused_name(connection: sqlite3.Connection) -> str:
    taken = {row[0].casefold() for row in connection.execute("SELECT name FROM sqlite_master")}
    return next(name for n in range(len(taken) + 1) if (name := f"purge_filler_{n}") not in taken)


def drop_journal(connection: sqlite3.Connection) -> None:
    """Make the rollback journal that another connection left behind (``PERSIST``) go.

    A commit in this connection's own journal mode removes the file. Nothing else changes.

    Raises:
        sqlite3.OperationalError: locked.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("COMMIT")


def would_renumber(path: Path) -> bool:
    """Whether VACUUM would give rows other numbers. It is tried on a private copy.

    SQLite 3.40.1 does so, by experiment, with tables that have neither an INTEGER PRIMARY KEY nor
    an index; the documentation promises nothing for those without an INTEGER PRIMARY KEY.

    Not while this process has the database open for writing, for the reason that
    :func:`purge_adapters._sqlite.reading` gives.

    Raises:
        Transient, Permanent: the database cannot be read.
    """
    from purge_adapters._sqlite import reading

    with reading(path, private=True) as copy:
        before = row_numbers(copy)
        copy.execute("VACUUM")
        return row_numbers(copy) != before


def rewrite(connection: sqlite3.Connection, *, renumbers: bool) -> str | None:
    """Rewrite the whole database without its free space, and give no row another number.

    Full-text indexes and other tables may rely on the numbers. Where VACUUM would change them, the
    database is taken apart into memory by VACUUM INTO, which keeps the numbers (3.40.1, by
    experiment; compared before it is used), and copied back under an exclusive lock.

    Args:
        connection: from :func:`writing`, without a transaction.
        renumbers: what :func:`would_renumber` said.

    Returns:
        Why it was left undone, or ``None``.

    Raises:
        sqlite3.OperationalError: locked, or no space.
    """
    if not renumbers:
        vacuum(connection)
        return None
    return _rewrite_exclusively(connection)


def row_numbers(connection: sqlite3.Connection) -> dict[str, bytes]:
    """Return, by table, a digest of the row numbers that VACUUM might change."""
    found: dict[str, bytes] = {}
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    ).fetchall()
    for (name,) in tables:
        columns = connection.execute(f"PRAGMA table_info({quote(name)})").fetchall()
        key = [column for column in columns if column[5]]
        if len(key) == 1 and key[0][2].upper() == "INTEGER":
            continue  # The key is the number of the row.
        number = next(
            (n for n in ROW_NUMBERS if n not in {str(c[1]).casefold() for c in columns}), None
        )
        if number is None:
            continue
        digest = sha256()
        try:
            query = f"SELECT {number} FROM {quote(name)} ORDER BY 1"  # noqa: S608  quoted names
            for (each,) in connection.execute(query):
                digest.update(b"%d," % each)
        except sqlite3.OperationalError:
            continue  # WITHOUT ROWID
        found[name] = digest.digest()
    return found


def _rewrite_exclusively(connection: sqlite3.Connection) -> str | None:
    size = connection.execute("PRAGMA page_count").fetchone()[0]
    size *= connection.execute("PRAGMA page_size").fetchone()[0]
    if size > MEMORY_LIMIT:
        return "VACUUM would give rows other numbers, and the database is too large for memory"
    before = row_numbers(connection)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
        # From here the lock stays until the mode is changed back: nobody can write in between.
        place = f"file:/purge-{token_hex(8)}?vfs=memdb"
        with closing(sqlite3.connect(place, uri=True, isolation_level=None)) as rewritten:
            connection.execute("VACUUM INTO ?", (place,))
            if row_numbers(rewritten) != before:
                return "every way to rewrite the database would give rows other numbers"
            rewritten.backup(connection, progress=_Patience(10.0))
    except sqlite3.OperationalError as error:
        if primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return "VACUUM would give rows other numbers, and others hold the database open"
        raise
    finally:
        connection.execute("PRAGMA locking_mode = NORMAL")
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    return None


class _Patience:
    """Ends a copy that makes no progress; the driver would try for ever."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def __call__(self, status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and (
            time.monotonic() > self._until
        ):
            raise Transient(
                "The database is locked by another connection.", problem=ProblemCode.BUSY
            )
