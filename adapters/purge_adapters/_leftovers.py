"""The files that a replacement makes beside a file, and what an interrupted one leaves of them.

Only :func:`sweep` writes: it removes what no living process needs.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from purge_adapters._bytes import open_quietly
from purge_adapters._file_state import carry_over

__all__ = ["NEW", "OLD", "OWN_PREFIX", "is_abandoned", "own_name", "sweep"]

OWN_PREFIX: Final = ".purge-"
"""How the names begin that are given to files of our own."""
OLD: Final = "old"
"""The old file, until nobody can be writing to it. The number behind it says how much of it the
new file answers for, in bytes."""
NEW: Final = "new"
"""The new file, until it takes the name."""
_OWN: Final = re.compile(
    re.escape(OWN_PREFIX)
    + rf"(?:{NEW}|{OLD}(?P<copied>\d+))"
    + r"-(?P<pid>\d+)-(?P<started>\d+)-(?P<mark>[0-9a-f]{12})-[0-9a-f]{8}"
)


def own_name(path: Path, purpose: str) -> Path:
    """Return a new name beside ``path`` that tells for what, and by which process, it is."""
    pid, unique = os.getpid(), os.urandom(4).hex()
    return path.with_name(f"{OWN_PREFIX}{purpose}-{pid}-{_started(pid)}-{_mark(path)}-{unique}")


def _mark(path: Path) -> str:
    return hashlib.blake2b(os.fsencode(path.name), digest_size=6).hexdigest()


def _started(pid: int) -> str:
    """Return when a process started, in the kernel's clock ticks; empty when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def is_abandoned(path: Path) -> bool:
    """Whether ``path`` is a file of this module's whose process is no more."""
    match = _OWN.fullmatch(path.name)
    return match is not None and _started(int(match["pid"])) != match["started"]


def sweep(folder: Path) -> None:
    """Remove what interrupted replacements left in ``folder``.

    Where one was interrupted just after the change, a late writer's lines are carried over first.

    Raises:
        OSError: one cannot be removed.
    """
    for left in sorted(folder.glob(f"{OWN_PREFIX}*")):
        if not is_abandoned(left):
            continue
        match = _OWN.fullmatch(left.name)
        with suppress(FileNotFoundError):  # Another process sweeps as well.
            if match is not None and match["copied"]:
                _finish(left, int(match["copied"]), match["mark"])
            left.unlink()


def _finish(old: Path, copied: int, mark: str) -> None:
    if old.stat().st_size <= copied:
        return
    for entry in os.scandir(old.parent):
        path = Path(entry.path)
        if entry.is_file(follow_symlinks=False) and _mark(path) == mark and not path.samefile(old):
            with open_quietly(old) as source:
                carry_over(source.fileno(), copied, path)
