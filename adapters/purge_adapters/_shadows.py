"""The shadows of files: copies that lie about after the file itself was changed.

Backup, swap and rotated siblings, folders of deleted files, files without a name that a process
holds open, and git histories. They are only listed and read here; what is in them is for the
adapter to say. This module writes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from purge.adapter import Examined, NotChecked, ProblemCode, Residue, Site
from purge.errors import StoreError
from purge_adapters._bytes import open_quietly
from purge_adapters._codecs import reader
from purge_adapters._files import (
    OWN_PREFIX,
    is_abandoned,
    is_trash,
    leases_work,
    open_files,
    os_problem,
    relative,
    unseen_processes,
)
from purge_adapters._git import enclosing_repositories, objects
from purge_adapters._owners import Held, together
from purge_adapters._trash import system_trash

__all__ = ["Shadow", "is_variant", "look_through", "shadows"]

_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
_COMPRESSED: Final = (".gz", ".zst", ".bz2", ".xz")
_CLOSED: Final = (".gpg", ".age", ".enc", ".asc", ".7z", ".zip", ".rar", ".br", ".lz4", ".lzo")
"""What cannot be read here, by the ends of names; such a copy is never passed over in silence."""
_BACKUP: Final = "a copy beside the file, which nothing removes"
_OWN: Final = "left behind when a replacement of the file was interrupted"
_TRASHED: Final = "a deleted copy in a trash folder, which nothing empties"
_HELD: Final = "deleted inode still held open"
_HISTORY: Final = "kept in the git history"


@dataclass(frozen=True, slots=True)
class Shadow:
    """One copy that may hold what was taken out of the file.

    Args:
        where: a place for people.
        why: one clause: what keeps it there.
        blocks: yields the content, out of its compression, once for each call; raises ``OSError``
            or ``StoreError``. For a part of a history it works only until the next shadow.
        group: shadows with the same group are reported as one copy, at this place.
        path: the file, where it is one.
        fixable: it was made by this project and no process needs it any more.
    """

    where: str
    why: str
    blocks: Callable[[], Iterator[bytes]] = field(repr=False)
    group: str = ""
    path: Path | None = None
    fixable: bool = False

    def read(self) -> bytes:
        """Return the whole content."""
        return b"".join(self.blocks())


def shadows(
    files: Iterable[Path],
    site: Site,
    *,
    folders: Iterable[Path] = (),
    suffixes: Sequence[str] = (),
) -> Iterator[Shadow | NotChecked]:
    """Yield what may hold an old content of ``files``, and what could not be looked at.

    Args:
        files: the site's own files; none of them is a shadow.
        site: whose root bounds the search for trash folders.
        folders: what the site covers whole. In them and below, also the backup of a file that is
            no more is a shadow.
        suffixes: the ends of the names of the site's files, with the dot, for ``folders``.
    """
    surroundings = _Surroundings(frozenset(files), site, tuple(folders), tuple(suffixes))
    yield from surroundings.siblings()
    yield from surroundings.trashed()
    if site.copy_in is None:  # No process holds a file of a private copy.
        yield from surroundings.deleted()
    yield from surroundings.histories()
    yield from surroundings.gaps


def look_through(
    found: Iterable[Shadow | NotChecked], holds: Callable[[Shadow], Held]
) -> Iterator[Residue | NotChecked | Examined]:
    """Yield the residue among shadows, what could not be looked at, and how much was read.

    Args:
        found: from :func:`shadows`.
        holds: what the content of one holds of what is looked for.
    """
    groups: dict[tuple[str, str], list[Held]] = {}
    count = 0
    for item in found:
        if isinstance(item, NotChecked):
            yield item
            continue
        count += 1
        try:
            held = holds(item)
        except OSError as error:
            problem = os_problem(error, item.where)
            yield NotChecked(item.where, str(problem), ProblemCode(problem.problem))
            continue
        except StoreError as error:
            yield NotChecked(item.where, str(error), ProblemCode(error.problem))
            continue
        if held and item.group:
            groups.setdefault((item.group, item.why), []).append(held)
        elif held:
            handle = {"file": str(item.path)} if item.fixable else {}
            yield Residue(
                item.where, item.why, fixable=item.fixable, handle=handle, keys=together([held])
            )
    for (where, why), copies in groups.items():
        number = len(copies)
        yield Residue(
            where,
            f"{why} ({number} {'object' if number == 1 else 'objects'})",
            keys=together(copies),
        )
    yield Examined(files=count)


class _Surroundings:
    """The folders around the files of one site."""

    def __init__(
        self,
        files: Collection[Path],
        site: Site,
        covered: tuple[Path, ...],
        suffixes: tuple[str, ...],
    ) -> None:
        self.gaps: dict[NotChecked, None] = {}
        """What could not be listed; complete once everything else was yielded."""
        self._files = files
        self._covered = covered
        self._site = site
        self._names: dict[Path, set[str]] = {}
        """By folder, the names of the site's files in it."""
        for path in files:
            self._names.setdefault(path.parent, set()).add(path.name)
        self._mention = re.compile(
            "|".join(re.escape(suffix) + r"(?![a-zA-Z0-9])" for suffix in suffixes) or r"(?!)"
        )
        self._suffixes = suffixes
        self._below: set[Path] = set()
        """The covered folders and all below them."""
        self._trash: set[Path] = set()
        for folder in covered:
            self._descend(folder)
        root = site.root.resolve()
        around = {
            place
            for folder in {*self._names, *self._below}
            for place in (folder, *folder.parents)
            if place.is_relative_to(root)
        }
        for place in around:
            self._trash.update(self._trash_in(place))

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            return sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self._note(error, relative(folder, self._site))
            return []

    def _descend(self, folder: Path) -> None:
        if folder in self._below:
            return
        self._below.add(folder)
        for entry in self._entries(folder):
            if entry.is_dir(follow_symlinks=False) and entry.name not in _VERSION_CONTROL:
                if is_trash(entry.name):
                    self._trash.add(Path(entry.path))
                else:
                    self._descend(Path(entry.path))

    def _trash_in(self, folder: Path) -> Iterator[Path]:
        for entry in self._entries(folder):
            if is_trash(entry.name) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)

    def siblings(self) -> Iterator[Shadow | NotChecked]:
        """The files beside the site's files that are named after one."""
        for folder in sorted({*self._names, *self._below}):
            for entry in self._entries(folder):
                path = Path(entry.path)
                if path in self._files or entry.is_dir(follow_symlinks=False):
                    continue
                if entry.name.startswith(OWN_PREFIX):
                    yield self._file(path, _OWN, fixable=is_abandoned(path))
                elif self._is_copy(folder, entry.name):
                    yield from self._sibling(path, entry)

    def _sibling(self, path: Path, entry: os.DirEntry[str]) -> Iterator[Shadow | NotChecked]:
        where = relative(path, self._site)
        if entry.is_symlink():
            if path.exists() and path.resolve() not in self._files:
                yield NotChecked(where, "a symbolic link, which is not followed")
        elif not entry.is_file(follow_symlinks=False):
            yield NotChecked(where, "not a regular file")
        elif entry.name.lower().endswith(_CLOSED):
            yield NotChecked(
                where, "an archive or encrypted; not looked into", ProblemCode.UNSUPPORTED
            )
        else:
            yield self._file(path, _BACKUP)

    def _is_copy(self, folder: Path, name: str) -> bool:
        if any(is_variant(name, known) for known in self._names.get(folder, ())):
            return True
        return (
            folder in self._below
            and self._mention.search(name) is not None
            and not name.endswith(self._suffixes)
        )

    def trashed(self) -> Iterator[Shadow | NotChecked]:
        """What lies in folders of deleted files and may come from the site."""
        names = {name for known in self._names.values() for name in known}
        for folder in sorted(self._trash):
            for base, inner, found in os.walk(folder, onerror=self._note):
                inner[:] = sorted(set(inner) - _VERSION_CONTROL)
                for name in sorted(found):
                    path = Path(base) / name
                    if path in self._files or path.is_symlink() or not path.is_file():
                        continue
                    if self._mention.search(name) or any(
                        name == known or is_variant(name, known) for known in names
                    ):
                        yield self._file(path, _TRASHED)
        if self._site.copy_in is not None:
            return  # What this machine's trash holds is no part of a copy.
        for path in system_trash(self._came_from_here, self._site.root.resolve()):
            yield self._file(path, _TRASHED)

    def _came_from_here(self, path: Path) -> bool:
        if path in self._files:
            return True
        return any(path.is_relative_to(folder) for folder in self._covered) and (
            not self._suffixes or self._mention.search(path.name) is not None
        )

    def deleted(self) -> Iterator[Shadow | NotChecked]:
        """Files without a name that another process keeps by holding them open."""
        inodes: set[tuple[int, int]] = set()
        for opened in open_files():
            path = Path(opened.path)
            key = (opened.device, opened.inode)
            if not opened.deleted or key in inodes or not self._was_here(path):
                continue
            inodes.add(key)
            yield Shadow(
                f"{relative(path, self._site)} (process {opened.pid})",
                _HELD,
                lambda link=opened.link, key=key: _reopened(link, key),  # type: ignore[misc]
            )
        if unseen_processes() and not all(_tells(folder) for folder in self._names):
            yield NotChecked(
                "processes of other users",
                "what they hold open cannot be seen, and this file system does not tell",
            )

    def _was_here(self, path: Path) -> bool:
        folder, name = path.parent, path.name
        if path in self._files:
            return True
        if folder not in self._names and folder not in self._below:
            return False
        return (
            name.startswith(OWN_PREFIX)
            or self._is_copy(folder, name)
            or (folder in self._below and name.endswith(self._suffixes))
        )

    def histories(self) -> Iterator[Shadow | NotChecked]:
        """Every object of the git repositories around the files."""
        around = sorted({*self._names, *self._below})
        for store in enclosing_repositories(iter(around), self._site.copy_in):
            work = store.parent if store.name == ".git" else store
            where = f"git repository {relative(work, self._site)}"
            try:
                for item in objects(store):
                    blocks = item.blocks
                    yield Shadow(
                        where,
                        _HISTORY,
                        lambda blocks=blocks: reader(_Stream(blocks()), lenient=True),  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
                        group=where,
                    )
            except StoreError as error:
                yield NotChecked(where, str(error), ProblemCode(error.problem))
            for base, _, names in os.walk(store / "lfs" / "objects"):
                for name in sorted(names):
                    yield self._file(Path(base) / name, _HISTORY, group=where)

    def _note(self, error: OSError, where: str = "a trash folder") -> None:
        problem = os_problem(error)
        self.gaps[NotChecked(where, str(problem), ProblemCode(problem.problem))] = None

    def _file(self, path: Path, why: str, *, group: str = "", fixable: bool = False) -> Shadow:
        return Shadow(
            relative(path, self._site),
            why,
            lambda: _plain(open_quietly(path)),
            group,
            path,
            fixable,
        )


def is_variant(name: str, base: str) -> bool:
    """Whether a file of this name is likely a copy, an older or a temporary form of ``base``.

    ``base`` may stand in it decorated in front (``#base#``, ``.base.swp``, ``Copy of base``) or
    behind (``base~``, ``base.1.gz``, ``base-20260101``), or with something between its stem and
    its suffix (``stem.deleted.jsonl``).
    """
    if name == base:
        return False
    for compressed in _COMPRESSED:
        base = base.removesuffix(compressed)
    bare = name.lstrip(".#~_$")
    bare = bare.removeprefix("Copy of ")
    if name.lstrip("#~_$").startswith("."):  # It may be a form of a hidden file.
        base = base.lstrip(".")
    if bare == base or (bare.startswith(base) and not bare[len(base)].isalnum()):
        return True
    stem, suffix = os.path.splitext(base)
    rest = bare.removeprefix(stem)
    return bool(
        stem
        and suffix
        and bare.startswith(stem)
        and rest
        and not rest[0].isalnum()
        and re.search(re.escape(suffix) + r"(?![a-zA-Z0-9])", rest)
    )


def _tells(folder: Path) -> bool:
    try:
        return leases_work(folder) and os.geteuid() in (0, folder.stat().st_uid)
    except OSError:
        return False


def _plain(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        yield from reader(stream)


def _reopened(link: Path, key: tuple[int, int]) -> Iterator[bytes]:
    """Read a file without a name through the process that holds it."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(link, flags | os.O_NOATIME)
    except PermissionError:
        descriptor = os.open(link, flags)
    except FileNotFoundError:
        return  # The process has let go of it, and with that it is gone.
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) == key:
            yield from reader(stream)


class _Stream:
    """Blocks as something to read from."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        if not self._rest:
            self._rest = next(self._blocks, b"")
        block, self._rest = self._rest[:size], self._rest[size:]
        return block
