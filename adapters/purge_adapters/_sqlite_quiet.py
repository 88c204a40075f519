"""Reading an SQLite file in place without moving its access time.

SQLite opens files without ``O_NOATIME`` and reads the header at once, so that a mere look at a
database shows in its times. Here it is given a placeholder to open, an empty file of the same
size with the same header; then its descriptor is exchanged for a quiet one of the database
itself. With ``immutable=1`` it takes no lock, opens no side file and never opens the path again.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from purge_adapters._sqlite_files import HEADER_BYTES, connect

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOATIME


def connect_quietly(path: Path) -> sqlite3.Connection | None:
    """Return a connection that reads the database file in place, or ``None``.

    ``None`` where the access time cannot be left alone (the file is someone else's, or there is
    no ``/proc``): the caller has to find another way.

    Raises:
        sqlite3.Error: it is no database.
    """
    try:
        quiet = os.open(path, _OPEN)
    except OSError:
        return None
    try:
        size, header = os.fstat(quiet).st_size, os.pread(quiet, HEADER_BYTES, 0)
        try:
            with tempfile.NamedTemporaryFile(prefix="purge-placeholder-") as placeholder:
                placeholder.write(header)
                placeholder.flush()
                placeholder.truncate(size)
                connection = connect(Path(placeholder.name), "mode=ro&immutable=1")
                opened = _other_descriptor(placeholder.fileno())
        except OSError:
            return None
        if opened is None:
            connection.close()
            return None
        os.dup2(quiet, opened, inheritable=False)
        return connection
    finally:
        os.close(quiet)


def _other_descriptor(own: int) -> int | None:
    """Return the one other descriptor by which this process has the same file open."""
    status = os.fstat(own)
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            other = os.fstat(int(name))
        except OSError:
            continue  # The listing's own descriptor is closed by now.
        if (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino) and int(name) != own:
            found.append(int(name))
    return found[0] if len(found) == 1 else None
