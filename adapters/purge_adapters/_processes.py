"""Who else holds a file open.

Read from ``/proc``; nothing is opened, locked or signalled, except for a lease, which only a
rewrite takes. This module writes nothing.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

__all__ = ["Holder", "Openers", "holders", "lease_openers", "open_files", "unseen_processes"]

_PROC: Final = Path("/proc")
_DELETED: Final = " (deleted)"
_LEASES: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs", "ramfs"}
)


@dataclass(frozen=True, slots=True)
class Holder:
    """Another process that has a file open."""

    pid: int
    writes: bool
    """It may write to it."""
    deleted: bool
    """The file has no name any more; the process is what keeps its bytes."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """One descriptor of another process. ``link`` reopens the very file, named or not."""

    pid: int
    path: str
    """Where it was when it was opened; without the kernel's mark for a deleted file."""
    link: Path
    device: int
    inode: int
    deleted: bool


def holders(paths: Iterable[Path]) -> tuple[Holder, ...]:
    """Return the other processes that hold one of these files open.

    Files are compared by device and inode, so that another name of one counts. A folder stands for
    every file below it, deleted ones included. Processes of other users may be invisible: see
    :func:`unseen_processes`. A process that has mapped a file and closed it is not seen either;
    :func:`lease_openers` tells of it.

    Args:
        paths: files or folders; what does not exist is passed over.
    """
    inodes, folders = _wanted(paths)
    found: dict[tuple[int, bool, bool], Holder] = {}
    if not inodes and not folders:
        return ()
    for opened in open_files():
        if (opened.device, opened.inode) in inodes or opened.path.startswith(folders):
            holder = Holder(opened.pid, _may_write(opened.link), opened.deleted)
            found[holder.pid, holder.writes, holder.deleted] = holder
    return tuple(found.values())


def open_files() -> Iterator[OpenFile]:
    """Yield every regular file that another process, as far as it can be seen, has open."""
    for pid in _others():
        folder = _PROC / str(pid) / "fd"
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            link = folder / name
            try:
                target = os.readlink(link)
                status = link.stat()
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode):
                continue
            deleted = status.st_nlink == 0
            path = target.removesuffix(_DELETED) if deleted else target
            yield OpenFile(pid, path, link, status.st_dev, status.st_ino, deleted)


def unseen_processes() -> bool:
    """Whether some process's open files cannot be seen, so that "nobody holds it" is not known."""
    try:
        pids = [name for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return True
    if "1" not in pids:
        # /proc is mounted so that the processes of others do not show at all.
        return True
    for pid in pids:
        try:
            os.listdir(_PROC / pid / "fd")
        except PermissionError:
            return True
        except OSError:
            continue
    return False


def leases_work(path: Path) -> bool:
    """Whether the file system of ``path`` is one where the kernel tells of every local opener."""
    device = path.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = (_PROC / "self" / "mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted and after.split()[0] in _LEASES:
            return True
    return False


class Openers(Enum):
    """Who else has a file open, as the kernel tells by granting a lease or not."""

    NONE = "none"
    READERS = "readers"
    WRITERS = "writers"
    UNKNOWN = "unknown"
    """The file system grants no leases."""


def lease_openers(descriptor: int) -> Openers:
    """Take the strongest lease that the kernel grants on a file, and return what that says.

    Until :func:`release_lease` or the descriptor is closed, whoever opens the file for writing
    waits (at most ``fs.lease-break-time`` seconds). Unlike ``/proc`` this sees the processes of
    every user. This process must have no other descriptor open on the file.

    Args:
        descriptor: opened for reading only, of a file that belongs to this user.
    """
    for kind, said in ((fcntl.F_WRLCK, Openers.NONE), (fcntl.F_RDLCK, Openers.READERS)):
        try:
            # Set each time: giving a lease up sets the signal back to SIGIO, which would end this
            # process. SIGURG is ignored unless someone asks for it.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, kind)
        except BlockingIOError:
            continue
        except OSError:
            return Openers.UNKNOWN
        return said
    return Openers.WRITERS


def release_lease(descriptor: int) -> None:
    """Give a lease up, if there is one."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return


def _others() -> Iterator[int]:
    own = os.getpid()
    try:
        names = os.listdir(_PROC)
    except OSError:
        return
    for name in names:
        if name.isdigit() and int(name) != own:
            yield int(name)


def _wanted(paths: Iterable[Path]) -> tuple[set[tuple[int, int]], tuple[str, ...]]:
    inodes: set[tuple[int, int]] = set()
    folders: list[str] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            inodes.add((status.st_dev, status.st_ino))
            continue
        folders.append(f"{path.resolve()}/")
        for folder, _, names in os.walk(path):
            for name in names:
                try:
                    below = os.stat(os.path.join(folder, name), follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(below.st_mode):
                    inodes.add((below.st_dev, below.st_ino))
    return inodes, tuple(folders)


def _may_write(link: Path) -> bool:
    """Whether the descriptor allows writing; when that cannot be read it is taken to."""
    try:
        lines = (link.parent.parent / "fdinfo" / link.name).read_text("ascii").splitlines()
    except OSError:
        return True
    for line in lines:
        name, _, value = line.partition(":")
        if name == "flags":
            return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
    return True
