"""Files of a site: which they are, who holds them, how one is replaced, what an error means.

What adapters of file stores share. Only :func:`replace_file` writes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from purge.adapter import NotChecked, ProblemCode, Site
from purge.errors import Permanent, StoreError, Transient
from purge_adapters._file_state import (
    Changed,
    Fingerprint,
    Held,
    fingerprint,
    fingerprint_of,
    new_digest,
)
from purge_adapters._folders import private_folder
from purge_adapters._leftovers import OWN_PREFIX, is_abandoned, sweep
from purge_adapters._processes import (
    Holder,
    holders,
    leases_work,
    open_files,
    unseen_processes,
)
from purge_adapters._replace import replace_file

__all__ = [
    "OWN_PREFIX",
    "Changed",
    "Fingerprint",
    "Held",
    "Holder",
    "fingerprint",
    "fingerprint_of",
    "folders",
    "holders",
    "is_abandoned",
    "is_trash",
    "leases_work",
    "new_digest",
    "open_files",
    "os_problem",
    "place",
    "private_folder",
    "relative",
    "replace_file",
    "sweep",
    "unseen_processes",
    "walk",
]

_MAGIC: Final = frozenset("*?[")
_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_TRASH: Final = frozenset(
    {
        ".trash",
        ".trashes",
        ".trashed",
        "trash",
        ".stversions",
        ".history",
        ".recycle",
        "#recycle",
        "@recycle",
        "$recycle.bin",
    }
)


def is_trash(name: str) -> bool:
    """Whether a folder of this name is where a program puts what was deleted or replaced."""
    lowered = name.lower()
    return lowered in _TRASH or lowered.startswith((".trash-", ".trash_"))


def relative(path: Path, site: Site) -> str:
    """Return ``path`` as it is shown to people: from the site's root where it lies below it.

    What cannot be printed is replaced, so this is no name to open.
    """
    shown = place(path, site)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in shown)


def place(path: Path, site: Site) -> str:
    """Return the name by which a handle remembers ``path``, for :meth:`purge.adapter.Site.path`."""
    root = site.root.resolve()
    if path.is_relative_to(root):
        return str(path.relative_to(root))
    if site.copy_in is not None and path.is_relative_to(site.copy_in):
        return str(site.copy_of / path.relative_to(site.copy_in))
    return str(path)


def walk(
    site: Site, patterns: Sequence[str], suffixes: Sequence[str] = ()
) -> Iterator[Path | NotChecked]:
    """Yield the regular files that the patterns name, sorted, each once.

    A pattern is a file, a folder (every file below it whose name ends in one of ``suffixes``), or
    a glob in which ``**`` stands for any number of folders. Folders of version control and of
    deleted files are passed over unless a pattern names them: what lies there is a shadow.

    A symbolic link that is met on the way is not followed. It is yielded as not checked, unless it
    leads nowhere or to a file that is yielded in its own right.

    Args:
        site: whose root the patterns are relative to.
        patterns: not empty.
        suffixes: none: every file.

    Raises:
        Refused: a pattern leaves the root.
        Permanent: nothing that the patterns name is there, or can be read.
    """
    found = _Found()
    missing: list[NotChecked] = []
    for pattern in patterns:
        base, parts = _split(site, pattern)
        try:
            status = base.stat()
        except OSError as error:
            problem = os_problem(error, pattern)
            missing.append(NotChecked(pattern, str(problem), ProblemCode(problem.problem)))
            continue
        if stat.S_ISDIR(status.st_mode):
            _descend(base, parts, tuple(suffixes), found)
        elif not parts:
            _sort_out(base, status.st_mode, found)
    if len(missing) == len(patterns):
        raise Permanent(missing[0].why, problem=missing[0].problem)
    yield from missing
    yield from sorted(found.files)
    for path, why, code in sorted(found.left_out):
        if path.is_symlink() and _is_covered(path, found):
            continue
        yield NotChecked(relative(path, site), why, ProblemCode(code))


def folders(site: Site, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders that patterns cover: the folders named, and where globs begin.

    Raises:
        Refused: a pattern leaves the root.
    """
    bases = (_split(site, pattern)[0] for pattern in patterns)
    return tuple(dict.fromkeys(base for base in bases if base.is_dir()))


def footprint(site: Site, patterns: Sequence[str]) -> tuple[Path, ...]:
    """Return the absolute files and folders that patterns name: those named, and where globs begin.

    Raises:
        Refused: a pattern leaves the root.
    """
    return tuple(dict.fromkeys(_split(site, pattern)[0] for pattern in patterns))


@dataclass(slots=True)
class _Found:
    """What a walk has met."""

    files: set[Path] = field(default_factory=set)
    left_out: set[tuple[Path, str, str]] = field(default_factory=set)


def _split(site: Site, pattern: str) -> tuple[Path, tuple[str, ...]]:
    """Return where to begin, and the rest of a glob."""
    if not _MAGIC.intersection(pattern) or os.path.lexists(site.place(pattern)):
        return site.path(pattern), ()
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if _MAGIC.intersection(part))
    rest = parts[first:]
    if ".." in rest:
        raise Permanent(
            f"A pattern of site '{site.name}' has '..' behind a wildcard. Write it without.",
            problem=ProblemCode.UNSUPPORTED,
        )
    return site.path(str(Path(*parts[:first]))), rest


def _descend(
    folder: Path, parts: tuple[str, ...], suffixes: tuple[str, ...], found: _Found
) -> None:
    """Collect what a glob's ``parts`` name below ``folder``; without any, all that is there."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        problem = os_problem(error)
        found.left_out.add((folder, str(problem), problem.problem))
        return
    if parts[:1] == ("**",):
        if len(parts) > 1:
            _descend(folder, parts[1:], suffixes, found)
        else:
            parts = ()
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if _is_aside(entry.name) and not (parts and parts[0] == entry.name):
                continue
            if not parts or parts[0] == "**":
                _descend(path, parts, suffixes, found)
            elif fnmatchcase(entry.name, parts[0]):
                _descend(path, parts[1:], suffixes, found)
            continue
        if entry.name.startswith(OWN_PREFIX):
            continue
        if parts:
            wanted = fnmatchcase(entry.name, parts[0]) and len(parts) == 1
            leads_on = entry.is_symlink() and (parts[0] == "**" or len(parts) > 1)
        else:
            wanted = not suffixes or entry.name.casefold().endswith(suffixes)
            leads_on = entry.is_symlink()
        with suppress(FileNotFoundError):  # It went away since the folder was listed.
            if wanted or (leads_on and _leads_to_a_folder(path)):
                _sort_out(path, entry.stat(follow_symlinks=False).st_mode, found)


def _is_aside(name: str) -> bool:
    return name in _VERSION_CONTROL or is_trash(name)


def _leads_to_a_folder(link: Path) -> bool:
    try:
        return link.is_dir()
    except OSError:
        return True  # Nobody can say what is there.


def _leads_somewhere(link: Path) -> bool:
    try:
        return link.exists()
    except OSError:
        return True


def _sort_out(path: Path, mode: int, found: _Found) -> None:
    if stat.S_ISREG(mode):
        found.files.add(path)
    elif stat.S_ISLNK(mode):
        if _leads_somewhere(path):
            why = "a symbolic link, which is not followed: name its target in the site as well"
            found.left_out.add((path, why, ProblemCode.NOT_CHECKED))
    else:
        found.left_out.add((path, "not a regular file", ProblemCode.NOT_CHECKED))


def _is_covered(link: Path, found: _Found) -> bool:
    """Whether what a link leads to is looked at in its own right."""
    return link.resolve() in found.files


_PROBLEMS: Final[dict[int, tuple[type[StoreError], ProblemCode, str]]] = {
    **dict.fromkeys(
        (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EISDIR),
        (Permanent, ProblemCode.UNREACHABLE, "is not there"),
    ),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        (Permanent, ProblemCode.NO_PERMISSION, "may not be accessed as needed"),
    ),
    **dict.fromkeys(
        (errno.EIO, errno.EUCLEAN, errno.EBADMSG),
        (Permanent, ProblemCode.CORRUPT, "cannot be read: the storage reports a fault"),
    ),
    **dict.fromkeys(
        (errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
        (Transient, ProblemCode.BUSY, "is busy"),
    ),
    **dict.fromkeys(
        (errno.ETIMEDOUT, errno.ESTALE, errno.ENETDOWN, errno.EHOSTDOWN, errno.ENOTCONN),
        (Transient, ProblemCode.UNREACHABLE, "cannot be reached"),
    ),
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        (Permanent, ProblemCode.UNSUPPORTED, "has no room for a new copy"),
    ),
    errno.ETXTBSY: (Permanent, ProblemCode.HELD_OPEN, "is held open"),
    errno.ELOOP: (Permanent, ProblemCode.UNSUPPORTED, "is a symbolic link, which is not followed"),
}


def os_problem(error: OSError, where: str = "") -> StoreError:
    """Return what an operating system's error means, without the path that it names.

    Args:
        error: as it was raised.
        where: a place that may be shown; a path relative to the site's root.
    """
    kind, code, words = _PROBLEMS.get(
        error.errno or 0, (Permanent, ProblemCode.UNREACHABLE, "cannot be used")
    )
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return kind(f"{where or 'A file'} {words} ({name}).", problem=code)
