"""A program of its own: runs restic where other folders lie at some places, or so that it ends
with the process that wants its output.

Makes a mount namespace, which ends with it and which no other process sees, binds folders over
places, and becomes restic. That way a snapshot's files, brought back somewhere else and cleaned,
are backed up again under their own paths. Root may do that; others may in a user namespace, if
the machine allows them one. Started as a script, not imported; the standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Final

REFUSED: Final = 97
"""The exit code where the machine does not allow it; restic has none of that number."""
_DEATH_SIGNAL: Final = 1
_NEW_MOUNTS: Final = 0x00020000
_NEW_USER: Final = 0x10000000
_BIND: Final = 0x1000
_RECURSIVE: Final = 0x4000
_PRIVATE: Final = 1 << 18


def main() -> None:
    """Bind, and become restic. The only argument is JSON: binds, reach, program, arguments, folder.

    ``reach`` names variables of the environment and the files or folders that they are to name
    although a bind may hide them: they are opened before, and named by what is open.
    """
    wanted = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    parent = wanted.get("ends_with")
    if parent is not None:
        # What restic brings back must not go on appearing after the folder for it was removed.
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(REFUSED)
        os.execv(wanted["program"], [wanted["program"], *wanted["arguments"]])
    try:
        _separate(libc)
        _mount(libc, None, "/", _PRIVATE | _RECURSIVE)
        for name, path in wanted["reach"].items():
            os.environ[name] = _opened(path)
        # Opened after the namespace was made: what belongs to another one cannot be bound.
        binds = [(_opened(source), place) for source, place in wanted["binds"]]
        for source, place in binds:
            _mount(libc, source, place, _BIND | _RECURSIVE)
    except OSError:
        sys.exit(REFUSED)
    os.chdir(wanted["folder"])
    os.execv(wanted["program"], [wanted["program"], *wanted["arguments"]])


def _opened(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    return f"/proc/self/fd/{descriptor}"


def _separate(libc: ctypes.CDLL) -> None:
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS) == 0:
        return
    if libc.unshare(_NEW_MOUNTS | _NEW_USER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _mount(libc: ctypes.CDLL, source: str | None, place: str, flags: int) -> None:
    written = None if source is None else os.fsencode(source)
    if libc.mount(written, os.fsencode(place), None, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")


if __name__ == "__main__":
    main()
