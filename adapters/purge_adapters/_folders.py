"""Folders for private copies, which go even when this process is killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["private_folder"]

_GUARD: Final = (
    "import shutil, sys\nsys.stdin.buffer.read()\nshutil.rmtree(sys.argv[1], ignore_errors=True)\n"
)
_PREFIX: Final = "purge-private-"
_FRESH_S: Final = 60
"""A younger folder may not be locked yet by the process that just made it."""


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """Give a new empty folder that only this user can enter, and remove it afterwards.

    A small process of its own waits for this one to end and removes the folder then, however it
    ended. What both leave behind (the machine went down) is removed by the next call.

    Args:
        prefix: a word for people who look into the temporary folder; no personal data.

    Raises:
        OSError: the folder cannot be made.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{prefix}-"))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    guard: subprocess.Popen[bytes] | None = None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if sys.executable:
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _GUARD, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Its own session: an interrupt from the keyboard must not end it first.
                start_new_session=True,
                cwd="/",
            )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        if guard is not None:
            guard.communicate()


def _sweep() -> None:
    """Remove the folders of processes that are no more: nobody holds their lock."""
    for entry in os.scandir(tempfile.gettempdir()):
        if not entry.name.startswith(_PREFIX):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
            if status.st_uid != os.geteuid() or time.time() - status.st_ctime < _FRESH_S:
                continue
            lock = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(entry.path, ignore_errors=True)
        finally:
            os.close(lock)
