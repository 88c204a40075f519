"""The files of a Markdown site: reading them as notes, replacing one, taking one away."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purge.adapter import NotChecked, ProblemCode, Site
from purge_adapters._bytes import open_quietly
from purge_adapters._files import (
    Changed,
    Fingerprint,
    Held,
    fingerprint_of,
    folders,
    holders,
    os_problem,
    relative,
    replace_file,
    walk,
)
from purge_adapters._markdown_records import Note, read_note
from purge_adapters._processes import Openers, lease_openers, release_lease

_ENDS: Final = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".txt")
SUFFIXES: Final = tuple(form for end in _ENDS for form in (end, end.upper(), end.capitalize()))
"""Which files of a folder are notes, by the ends of their names."""

DAMAGED: Final = "it holds NUL characters as no text does; it may be damaged and was left as it is"
LINKED: Final = (
    "has another name (a hard link) outside of the site, which would keep the old content. "
    "List both in the site, or remove one."
)


@dataclass(frozen=True, slots=True)
class Opened:
    """One file as it was read.

    ``place`` is its path from the site's root, for handles; ``shown`` is the same for people.
    """

    path: Path
    place: str
    note: Note
    size: int
    fingerprint: Fingerprint

    @property
    def shown(self) -> str:
        """The place in characters that can be printed, whatever bytes a file name has."""
        return self.place.encode("utf-8", "backslashreplace").decode("utf-8")


class Files:
    """The files that a site's ``path`` names."""

    def __init__(self, site: Site, patterns: Sequence[str]) -> None:
        self.site = site
        self.patterns = tuple(patterns)
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
        yield from walk(self.site, self.patterns, SUFFIXES)

    def read(self) -> Iterator[Opened | NotChecked]:
        """Yield every file as a note, and what could not be read.

        Raises:
            Refused, Permanent: as :meth:`paths` does.
        """
        bases = self._bases()
        for path in self.paths():
            if isinstance(path, NotChecked):
                yield path
                continue
            try:
                yield self.open(path, bases)
            except OSError as error:
                place = relative(path, self.site)
                problem = os_problem(error, place)
                yield NotChecked(place, str(problem), ProblemCode(problem.problem))

    def open(self, path: Path, bases: Sequence[Path] | None = None) -> Opened:
        """Read one file.

        Raises:
            OSError: it cannot be read, or is a symbolic link.
        """
        with open_quietly(path) as stream:
            before = fingerprint_of(stream.fileno())
            data = stream.read()
        place = relative(path, self.site)
        name = self._name(path, place, self._bases() if bases is None else bases)
        return Opened(path, place, read_note(name, data), len(data), before)

    def _bases(self) -> tuple[Path, ...]:
        return folders(self.site, self.patterns) if len(self.patterns) == 1 else ()

    def _name(self, path: Path, place: str, bases: Sequence[Path]) -> str:
        """Return how ids call a file: its path from the one folder that the site names."""
        if len(self.patterns) > 1:
            return place
        base = bases[0] if bases else path.parent
        return str(path.relative_to(base))

    def find(self, place: str) -> Path | None:
        """Return the file at a place, or ``None`` where there is none any more.

        Raises:
            Changed: something else stands there, or a link on the way leads elsewhere.
        """
        root = self.site.root.resolve()
        path = self.site.place(place)
        if self.site.copy_in is None:
            path = root / place
        if not os.path.lexists(path):
            return None
        inside = self.site.outside_root or path.is_relative_to(root)
        if not inside or path.resolve() != path or not path.is_file():
            raise Changed
        return path

    def other_names(self, opened: Opened) -> int:
        """Return how many further names (hard links) a file has that the site does not list.

        They would keep the old content, and nothing could tell where.
        """
        status = opened.path.stat()
        if status.st_nlink == 1:
            return 0
        key = (status.st_dev, status.st_ino)
        listed = [path.stat() for path in self.paths() if isinstance(path, Path)]
        return status.st_nlink - sum((one.st_dev, one.st_ino) == key for one in listed)

    def is_named(self, path: Path) -> bool:
        """Whether the manifest names this very file, and not a folder or a glob around it."""
        return path in self._named

    def replace(self, opened: Opened, data: bytes) -> None:
        """Give a file new content.

        Raises:
            Changed, Held: it was left alone.
            OSError: it cannot be written.
        """

        def write(stream: object) -> None:
            stream.write(data)  # type: ignore[attr-defined]  # any binary stream

        replace_file(opened.path, opened.fingerprint, write)

    def take_away(self, opened: Opened) -> None:
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
