"""The state of a folder, to the last byte and time, so that two of them can be compared."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from purge.testing.breakages import read_quietly


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder: what kind, what is in it, and its times in nanoseconds."""

    mode: int
    inode: int
    size: int
    modified: int
    changed: int
    accessed: int
    content: bytes = field(repr=False)


Snapshot = Mapping[str, Entry]


def take_snapshot(folder: Path) -> Snapshot:
    """Return the state of all that lies in a folder, and of the folder. Changes no time."""
    paths = [folder, *folder.rglob("*")]
    # Listing a folder and reading a link are accesses as well, so the times are taken first and
    # whatever this function itself may touch is put right by the caller's `age`.
    entries = {path: path.lstat() for path in paths}
    return {
        str(path.relative_to(folder)): Entry(
            mode=found.st_mode,
            inode=found.st_ino,
            size=found.st_size if stat.S_ISREG(found.st_mode) else 0,
            modified=found.st_mtime_ns,
            changed=found.st_ctime_ns,
            accessed=found.st_atime_ns if stat.S_ISREG(found.st_mode) else 0,
            content=_content(path, found.st_mode),
        )
        for path, found in entries.items()
    }


def age(folder: Path) -> None:
    """Set the access times of all files back, so that any read would move them.

    With ``relatime`` the kernel moves an access time only when it is not younger than the last
    modification.
    """
    for path in folder.rglob("*"):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            before = found.st_mtime_ns - 1_000_000_000
            os.utime(path, ns=(before, found.st_mtime_ns))


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """Return what differs, as sentences without content; empty when nothing does."""
    found = [f"{name}: is gone" for name in before.keys() - after.keys()]
    found += [f"{name}: is new" for name in after.keys() - before.keys()]
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        found += [
            f"{name}: {what}"
            for what in ("mode", "inode", "size", "modified", "changed", "accessed", "content")
            if getattr(one, what) != getattr(other, what)
        ]
    return sorted(found)


def bytes_of(snapshot: Snapshot) -> Mapping[str, bytes]:
    """Return only the content of the files."""
    return {name: entry.content for name, entry in snapshot.items() if stat.S_ISREG(entry.mode)}


def _content(path: Path, mode: int) -> bytes:
    if stat.S_ISREG(mode):
        return read_quietly(path)
    return os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else b""
