"""The files of a folder of Chroma's that no table tells of, and what lies beside the folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from purge.adapter import Examined, NotChecked, Observation, ProblemCode, Residue, Site
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_index import FILES, Malformed, tail_of
from purge_adapters._chroma_needles import Finder, Needles, mapped
from purge_adapters._chroma_state import MEMORY, ORPHANS, PAGES, fixable
from purge_adapters._chroma_store import Store
from purge_adapters._files import os_problem
from purge_adapters._shadows import Shadow, is_variant, look_through, shadows
from purge_adapters._sqlite import JOURNAL, WAL, beside


@dataclass(frozen=True, slots=True)
class Around:
    """What is looked through.

    Args:
        folder: the store.
        site: whose it is.
        needles: what is looked for.
    """

    folder: Folder
    site: Site
    needles: Needles

    def inside(self, store: Store, *, orphans_count: bool) -> Iterator[Observation]:
        """Look through the files in the folder, apart from the database.

        Args:
            store: tells which segments live.
            orphans_count: what belongs to nothing is a copy, whatever it holds.
        """
        orphans = self.folder.orphans(store)
        if orphans_count:
            for orphan in orphans:
                why = "a folder of a collection that is no more"
                if self.folder.is_only_a_segment(orphan):
                    yield fixable(orphan.name, why, ORPHANS)
                else:
                    yield Residue(orphan.name, why)
        count = size = 0
        segments = store.segment_ids()
        for path in self.folder.files():
            if isinstance(path, NotChecked):
                yield path
                continue
            if path == self.folder.file or path.parent in orphans:
                continue
            count, size = count + 1, size + path.stat().st_size
            if path.parent.name not in segments or path.name not in FILES:
                yield from self._in_file(path)
        for name in sorted(segments):
            yield from self._in_memory(self.folder.directory / name)
        yield Examined(files=count, bytes=size)

    def _in_file(self, path: Path) -> Iterator[Residue | NotChecked]:
        name = str(path.relative_to(self.folder.directory))
        sides = [beside(self.folder.file, suffix) for suffix in (WAL, JOURNAL)]
        found = self._stands_in(path, name)
        if isinstance(found, NotChecked):
            yield found
        elif found and path in sides:
            yield fixable(name, "pages from before the last change", PAGES)
        elif found:
            yield Residue(name, "a file that is not Chroma's holds it")

    def _in_memory(self, folder: Path) -> Iterator[Residue | NotChecked]:
        """Look behind the last element of an index.

        Chroma 1.5.9 writes out memory there that it never set (by experiment: texts of records).
        """
        if not self.needles or not folder.is_dir():
            return
        try:
            _, tail = tail_of(folder)
        except (Malformed, OSError):
            yield NotChecked(folder.name, "its files do not fit together", ProblemCode.CORRUPT)
            return
        if Finder(self.needles).stands_in(tail):
            yield fixable(folder.name, "memory that was written out with it holds it", MEMORY)

    def _stands_in(self, path: Path, where: str) -> bool | NotChecked:
        try:
            with mapped(path) as content:
                return Finder(self.needles).stands_in(content)
        except OSError as error:
            problem = os_problem(error, where)
            return NotChecked(where, str(problem), ProblemCode(problem.problem))

    def outside(self) -> Iterator[Observation]:
        """Look through copies of the folder and of its files."""
        if not self.needles:
            return
        files = [path for path in self.folder.files() if isinstance(path, Path)]
        own = [*files, *(beside(self.folder.file, suffix) for suffix in (WAL, JOURNAL, "-shm"))]
        yield from look_through(shadows(own, self.site), self._holds)
        try:
            beside_it = sorted(self.folder.directory.parent.iterdir())
        except OSError as error:
            problem = os_problem(error, "The folder above")
            yield NotChecked(self.folder.name, str(problem), ProblemCode(problem.problem))
            return
        for path in beside_it:
            if path.is_dir() and is_variant(path.name, self.folder.directory.name):
                yield from self._in_copy(path)

    def _holds(self, shadow: Shadow) -> bool:
        finder, rest = Finder(self.needles), b""
        longest = max(map(len, self.needles))
        for block in shadow.blocks():
            content = rest + block
            if finder.stands_in(content):
                return True
            rest = content[-longest:]
        return False

    def _in_copy(self, copy: Path) -> Iterator[Observation]:
        """Look through a folder beside the store that is named after it."""
        count = 0
        for path in sorted(copy.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            found = self._stands_in(path, copy.name)
            if isinstance(found, NotChecked):
                yield found
            elif found:
                yield Residue(copy.name, "a copy beside the folder, which nothing removes")
                break
        yield Examined(files=count)
