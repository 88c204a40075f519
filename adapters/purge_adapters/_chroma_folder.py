"""A folder that a persistent client of Chroma keeps: reading it, and knowing who else has it open.

Looking goes to the files themselves: opening the folder with a client would write to it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purge.adapter import NotChecked, ProblemCode, Site
from purge.errors import Permanent, Transient
from purge_adapters._bytes import open_quietly
from purge_adapters._chroma_client import let_go
from purge_adapters._chroma_index import FILES, Index, Malformed, folders_of_segments
from purge_adapters._chroma_store import DATABASE, HNSW, Collection, Store
from purge_adapters._files import holders, os_problem, private_folder, unseen_processes
from purge_adapters._sqlite import reading

_PATIENCE_S: Final = 2.0
"""How long files that a client of this process has closed may still be seen open."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a site.

    Args:
        directory: absolute; need not exist.
        name: the path as the manifest has it, for people.
        tenant: whose database.
        database: which one.
        wanted: the names of the collections that the site has; empty: all.
    """

    directory: Path
    name: str
    tenant: str
    database: str
    wanted: tuple[str, ...]

    @classmethod
    def of(
        cls, site: Site, path: str, tenant: str, database: str, wanted: tuple[str, ...]
    ) -> Folder:
        """Return the folder that a manifest names.

        Raises:
            Refused: it lies outside the site's root.
        """
        return cls(site.path(path), path, tenant, database, wanted)

    @property
    def file(self) -> Path:
        """The database."""
        return self.directory / DATABASE

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Give the content of the database, read without a trace.

        Raises:
            Transient, Permanent: it cannot be read, is damaged, or is not Chroma's.
        """
        if not self.directory.is_dir():
            raise Permanent(f"{self.name} is not a folder.", problem=ProblemCode.UNREACHABLE)
        if not self.file.exists():
            raise Permanent(
                f"{self.name} holds no {DATABASE}: no Chroma store is there.",
                problem=ProblemCode.UNREACHABLE,
            )
        with reading(self.file) as connection:
            try:
                yield Store(connection)
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                raise Permanent("The database is damaged.", problem=ProblemCode.CORRUPT) from None

    def sound(self, store: Store) -> None:
        """Stop if the database is damaged.

        Raises:
            Permanent: it is.
        """
        if not store.is_sound():
            raise Permanent("The database is damaged.", problem=ProblemCode.CORRUPT)

    def collections(self, store: Store) -> tuple[list[Collection], list[NotChecked]]:
        """Return the site's collections, and what is missing of them."""
        found = store.collections(self.tenant, self.database)
        if not self.wanted:
            return found, []
        names = {each.name for each in found}
        missing = [
            NotChecked(
                f"collection '{name}'", "there is none of this name", ProblemCode.UNREACHABLE
            )
            for name in self.wanted
            if name not in names
        ]
        return [each for each in found if each.name in self.wanted], missing

    def index(self, collection: Collection) -> Index | NotChecked | None:
        """Return the vector index of a collection; ``None`` where nothing was written out yet."""
        where = f"vector index of collection '{collection.name}'"
        if collection.vector_segment is None:
            return None
        if collection.vector_type != HNSW:
            return NotChecked(where, "a kind that is not known here", ProblemCode.UNSUPPORTED)
        folder = self.directory / collection.vector_segment
        try:
            return Index(folder) if folder.is_dir() else None
        except Malformed:
            return NotChecked(where, "its files do not fit together", ProblemCode.CORRUPT)
        except OSError as error:
            problem = os_problem(error, where)
            return NotChecked(where, str(problem), ProblemCode(problem.problem))

    def orphans(self, store: Store) -> list[Path]:
        """Return the folders of segments that no collection has any more."""
        live = store.segment_ids()
        return [path for path in folders_of_segments(self.directory) if path.name not in live]

    def is_only_a_segment(self, folder: Path) -> bool:
        """Whether a folder holds nothing but the files of a segment."""
        return all(
            entry.is_file(follow_symlinks=False) and entry.name in FILES
            for entry in os.scandir(folder)
        )

    def files(self) -> Iterator[Path | NotChecked]:
        """Yield every file below the folder; links are not followed."""
        for folder, folders, names in os.walk(self.directory):
            for name in sorted((*folders, *names)):
                path = Path(folder) / name
                if path.is_symlink():
                    where = str(path.relative_to(self.directory))
                    yield NotChecked(where, "a symbolic link, which is not followed")
                elif name in names and path.is_file():
                    yield path

    def held_by_us(self) -> str | None:
        """Return a sentence if this process has the folder open, as an application may that uses
        ``purge`` as a library."""
        if let_go(self.directory, _PATIENCE_S):
            return None
        return "This process has the folder open through a client of its own; close that first."

    def held_by_others(self) -> str | None:
        """Return a sentence if another process has the folder open."""
        pids = sorted({found.pid for found in holders([self.directory]) if not found.deleted})
        if not pids:
            return None
        more = f" and {len(pids) - 1} more" if len(pids) > 1 else ""
        return (
            f"Process {pids[0]}{more} has the folder open. Stop it, or name its server under "
            "'url' instead of 'path'."
        )

    def holder(self) -> str | None:
        """Return a sentence if anyone has the folder open."""
        return self.held_by_others() or self.held_by_us()

    def unseen(self) -> bool:
        """Whether processes of other users may hold it unseen."""
        return unseen_processes()

    def must_be_writable(self, store: Store) -> None:
        """Stop where nothing could be written.

        Raises:
            Permanent: read-only, or a format that is not known to the last table.
        """
        if not store.writable:
            raise Permanent(
                "The database was last opened by an older Chroma. Open it once with Chroma 1.5, "
                "which brings it up to date.",
                problem=ProblemCode.UNSUPPORTED,
            )
        places = [self.directory, self.file, *folders_of_segments(self.directory)]
        places += [path for path in self.files() if isinstance(path, Path)]
        for path in places:
            # Root may write to what someone made read-only on purpose; we do not.
            if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK, effective_ids=True):
                raise Permanent(f"{self.name} is read-only.", problem=ProblemCode.NO_PERMISSION)

    @contextmanager
    def copied(self, store: Store, collections: Iterable[Collection]) -> Iterator[Path]:
        """Give a private copy that a client may open: the database and these vector indexes.

        Raises:
            Transient: there is no room for it, or the files moved meanwhile.
        """
        try:
            with private_folder("chroma") as folder:
                with closing(sqlite3.connect(folder / DATABASE)) as copy:
                    store.connection.backup(copy)
                for collection in collections:
                    segment = collection.vector_segment
                    if segment and (self.directory / segment).is_dir():
                        (folder / segment).mkdir()
                        for path in sorted((self.directory / segment).iterdir()):
                            _copy(path, folder / segment / path.name)
                yield folder
        except OSError as error:
            raise Transient(str(os_problem(error, "A private copy"))) from None


def _copy(source: Path, target: Path) -> None:
    with open_quietly(source) as stream, target.open("xb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 22)
