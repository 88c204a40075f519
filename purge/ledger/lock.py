"""The lock that keeps two runs over one ledger apart.

It is held by the process, not by the file: when the process dies, however it dies, the lock is
free. The file stays, since removing it would let two runs hold two files of one name.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from purge.errors import Locked
from purge.ledger.events import timestamp
from purge.ledger.storage import LEDGER, faults, ledger_files, make_folder

_LONGEST: Final = 4096


@contextmanager
def run_lock(path: Path, *, clock: Callable[[], datetime]) -> Iterator[None]:
    """Hold the lock of the ledger at ``path``, which need not exist yet.

    Makes the ledger's folder if it is missing, so a dry run must not ask for it.

    Raises:
        Locked: another run holds it; said at once, with its process id and start.
        LedgerFault: the lock file cannot be made.
    """
    lock = ledger_files(path).lock
    with faults(LEDGER, path):
        make_folder(lock.parent)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(_sentence(os.pread(handle, _LONGEST, 0))) from None
        holder = {"pid": os.getpid(), "started": timestamp(clock())}
        with faults(LEDGER, path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(holder).encode(), 0)
        try:
            yield
        finally:
            with faults(LEDGER, path):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _sentence(content: bytes) -> str:
    try:
        holder = json.loads(content)
        who = f"process {int(holder['pid'])}, started {datetime.fromisoformat(holder['started'])}"
    except (ValueError, TypeError, KeyError):
        # The other run has the lock and has not yet said who it is.
        return "Another run is under way. Wait until it has ended, then try again."
    return f"Another run is under way ({who}). Wait until it has ended, then try again."
