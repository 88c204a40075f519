"""Files of text that are read whole: taking them apart, replacing one, taking one away.

What an adapter makes of a file (a note, a transcript) is its own business: it hands in how. Only
:meth:`TextFiles.open_to_rewrite` (leftovers go), ``replace`` and ``take_away`` write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

from purge.adapter import NotChecked, ProblemCode, Site
from purge.errors import Permanent
from purge_adapters._bytes import open_quietly
from purge_adapters._codecs import HEAD_BYTES, Codec, detect
from purge_adapters._files import (
    Changed,
    Fingerprint,
    Held,
    fingerprint_of,
    footprint,
    holders,
    os_problem,
    place,
    relative,
    replace_file,
    sweep,
    walk,
)
from purge_adapters._processes import Openers, lease_openers, release_lease

N = TypeVar("N")

DAMAGED: Final = "it holds NUL characters as no text does; it may be damaged and was left as it is"
PACKED: Final = "it is compressed or encrypted, which is not looked into here"
LINKED: Final = (
    "has another name (a hard link) outside of the site, which would keep the old content. "
    "List both in the site, or remove one."
)


@dataclass(frozen=True, slots=True)
class Opened(Generic[N]):
    """One file as it was read.

    ``place`` is its path from the site's root, for handles; ``shown`` is the same for people.
    ``note`` is what the adapter made of it.
    """

    path: Path
    place: str
    note: N
    size: int
    fingerprint: Fingerprint

    @property
    def shown(self) -> str:
        """The place in characters that can be printed, whatever bytes a file name has."""
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in self.place)


class TextFiles(Generic[N]):
    """The files that a site's ``path`` names.

    Args:
        site: whose root the patterns are relative to.
        patterns: files, folders and globs.
        suffixes: the ends of the names of the files that are meant in a folder; none: all.
        take_apart: makes of a file's name and content what the adapter works on.
    """

    def __init__(
        self,
        site: Site,
        patterns: Sequence[str],
        suffixes: Sequence[str],
        take_apart: Callable[[str, bytes], N],
    ) -> None:
        self.site = site
        self.patterns = tuple(patterns)
        self.suffixes = tuple(suffixes)
        self._take_apart = take_apart
        self._unsynced: dict[Path, None] = {}
        self._named = frozenset(
            path for pattern in self.patterns if (path := self._plain(pattern)) is not None
        )

    def _plain(self, pattern: str) -> Path | None:
        path = self.site.place(pattern)
        return path.resolve() if os.path.lexists(path) and not path.is_dir() else None

    def paths(self) -> Iterator[Path | NotChecked]:
        """Yield every file, and what could not be listed.

        Raises:
            Refused: a pattern leaves the root.
            Permanent: nothing that the patterns name is there.
        """
        yield from walk(self.site, self.patterns, self.suffixes)

    def read(self) -> Iterator[Opened[N] | NotChecked]:
        """Yield every file, taken apart, and what could not be read.

        Raises:
            Refused, Permanent: as :meth:`paths` does.
        """
        bases = self._bases()
        for path in self.paths():
            if isinstance(path, NotChecked):
                yield path
                continue
            shown = relative(path, self.site)
            try:
                if self._is_packed(path):
                    yield NotChecked(shown, PACKED, ProblemCode.UNSUPPORTED)
                else:
                    yield self.open(path, bases)
            except OSError as error:
                problem = os_problem(error, shown)
                yield NotChecked(shown, str(problem), ProblemCode(problem.problem))

    def open(self, path: Path, bases: Sequence[Path] | None = None) -> Opened[N]:
        """Read one file.

        Raises:
            OSError: it cannot be read, or is a symbolic link.
        """
        with open_quietly(path) as stream:
            before = fingerprint_of(stream.fileno())
            data = stream.read()
        where = place(path, self.site)
        name = self._name(path, where, self._bases() if bases is None else bases)
        return Opened(path, where, self._take_apart(name, data), len(data), before)

    @staticmethod
    def _is_packed(path: Path) -> bool:
        with open_quietly(path) as stream:
            return detect(stream.read(HEAD_BYTES)) is not Codec.PLAIN

    def _bases(self) -> tuple[Path, ...]:
        """Return the one folder that all patterns name or begin in; nothing where it is not one."""
        bases = footprint(self.site, self.patterns)
        return bases if len(bases) == 1 and bases[0].is_dir() else ()

    def _name(self, path: Path, where: str, bases: Sequence[Path]) -> str:
        """Return how ids call a file: its path from the one folder that the site names."""
        if bases:
            return str(path.relative_to(bases[0]))
        return where if len(self.patterns) > 1 else path.name

    def find(self, where: str) -> Path | None:
        """Return the file at a place, or ``None`` where there is none any more.

        Raises:
            Changed: something else stands there, or a link on the way leads elsewhere.
        """
        root = self.site.root.resolve()
        path = self.site.place(where)
        if self.site.copy_in is None:
            path = root / where
        if not os.path.lexists(path):
            return None
        inside = self.site.outside_root or path.is_relative_to(root)
        if not inside or path.resolve() != path or not path.is_file():
            raise Changed
        return path

    def other_names(self, opened: Opened[N]) -> int:
        """Return how many further names (hard links) a file has that the site does not list.

        They would keep the old content, and nothing could tell where.
        """
        status = opened.path.stat()
        if status.st_nlink == 1:
            return 0
        key = (status.st_dev, status.st_ino)
        listed = [path.stat() for path in self.paths() if isinstance(path, Path)]
        return status.st_nlink - sum((one.st_dev, one.st_ino) == key for one in listed)

    def open_to_rewrite(self, path: Path) -> Opened[N]:
        """Read a file that has to be replaced or taken away.

        Raises:
            Permanent: it has other names, which would keep the old content.
            OSError: as :meth:`open` does.
        """
        item = self.open(path)
        if not self.other_names(item):
            return item
        # An interrupted replacement may have left the other name.
        sweep(path.parent)
        item = self.open(path)
        if self.other_names(item):
            raise Permanent(f"{item.shown} {LINKED}", problem=ProblemCode.UNSUPPORTED)
        return item

    def is_named(self, path: Path) -> bool:
        """Whether the manifest names this very file, and not a folder or a glob around it."""
        return path in self._named

    def replace(self, opened: Opened[N], data: bytes) -> None:
        """Give a file new content.

        Raises:
            Changed, Held: it was left alone.
            OSError: it cannot be written.
        """

        def write(stream: object) -> None:
            stream.write(data)  # type: ignore[attr-defined]  # any binary stream

        replace_file(opened.path, opened.fingerprint, write)

    def take_away(self, opened: Opened[N]) -> None:
        """Remove a file. Call :meth:`sync` after the last one.

        Raises:
            Changed, Held: it was left alone.
            OSError: it cannot be removed.
        """
        path = opened.path
        with open_quietly(path) as stream:
            try:
                openers = lease_openers(stream.fileno())
                unclear = openers in (Openers.UNKNOWN, Openers.READERS)
                if openers is Openers.WRITERS or (
                    unclear and any(holder.writes for holder in holders([path]))
                ):
                    raise Held
                if fingerprint_of(stream.fileno()) != opened.fingerprint:
                    raise Changed
                path.unlink()
            finally:
                release_lease(stream.fileno())
        self._unsynced[path.parent] = None

    def sync(self) -> None:
        """Make sure on disk that what was taken away is gone.

        Raises:
            OSError: a folder cannot be synchronised.
        """
        while self._unsynced:
            path, _ = self._unsynced.popitem()
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
