"""Looking into distinct files of snapshots: in a private copy, with the adapter of their own site.

One matcher and one definition of a record, of scope and of a marker line hold in backups too.
Files are brought back in batches of bounded size. What was seen is remembered for the length of
the process, as numbers and truth values only: the ids of pieces say what a file holds, so a
second look at the same content for the same targets cannot see anything else.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from purge.adapter import (
    Covered,
    NotChecked,
)
from purge.targets import Targets
from purge_adapters._copies import Seen, look_into_copy
from purge_adapters._files import private_folder
from purge_adapters._restic_repository import Repository
from purge_adapters._restic_units import Holdings, Stored, Unit, stands_alone

__all__ = ["Looker", "Seen", "digest", "look_into", "move_in"]

BATCH_BYTES: Final = 256 * 1024 * 1024
"""How much is brought back at a time; a larger file is brought back alone."""
BATCH_FILES: Final = 2000


_REMEMBERED: dict[tuple[str, str], Seen] = {}
_MOST: Final = 500_000


def digest(targets: Targets, sites: Iterable[str]) -> str:
    """Return what tells these targets and traces from any others."""
    made = hashlib.sha256()
    for target in targets:
        parts = [target.key, target.kind, target.value, target.site, sorted(target.scope.items())]
        made.update(json.dumps([*parts, target.from_marker]).encode())
    for site in sorted(sites):
        for trace in targets.traces(site):
            made.update(json.dumps([site, trace.id, trace.texts, trace.metadata]).encode())
            made.update(json.dumps(trace.vectors).encode())
        for one in targets.spared(site):
            stays = [site, one.id, one.part, sorted(one.texts), sorted(one.keys)]
            made.update(json.dumps(stays).encode())
    return made.hexdigest()


def remembered(seen_for: str, what: str) -> Seen | None:
    """Return what an earlier look of this process saw."""
    return _REMEMBERED.get((seen_for, what))


def remember(seen_for: str, what: str, seen: Seen) -> Seen:
    """Keep what a look saw, and return it."""
    if len(_REMEMBERED) >= _MOST:
        _REMEMBERED.clear()
    _REMEMBERED[seen_for, what] = seen
    return seen


class Looker:
    """Looks into the distinct files of a repository's snapshots, each once.

    Args:
        repository: is read.
        covers: the sites, by name.
        targets: what is looked for.
    """

    def __init__(
        self, repository: Repository, covers: Mapping[str, Covered], targets: Targets
    ) -> None:
        self._repository = repository
        self._covers = covers
        self._targets = targets
        self._for = digest(targets, covers)
        self.bytes_read = 0

    def look(self, holdings: Holdings) -> Mapping[str, Seen]:
        """Return what each distinct unit holds, by its key.

        Raises:
            Transient, Permanent: the repository cannot be read.
        """
        found: dict[str, Seen] = {}
        wanted: dict[str, list[Unit]] = {}
        for key, held in holdings.held_by.items():
            known = remembered(self._for, key)
            if known is not None:
                found[key] = known
            else:
                # From the snapshot that brought it: what came together lies together, and restic
                # reads over short gaps, so that every other order reads much of it twice.
                snapshot, unit = held[0]
                wanted.setdefault(snapshot.id, []).append(unit)
        for id, units in wanted.items():
            all_files = holdings.files[id]
            for batch in _batches(units):
                for unit, seen in self._look_at(id, batch, all_files):
                    found[unit.key] = remember(self._for, unit.key, seen)
        return found

    def _look_at(
        self, snapshot: str, units: Sequence[Unit], all_files: Sequence[Stored]
    ) -> Iterator[tuple[Unit, Seen]]:
        files = {file.inside: file for unit in units for file in unit.files}
        self.bytes_read += sum(file.size for file in files.values())
        uses = Counter(file.inside for unit in units for file in unit.files)
        by_site: dict[str, list[Unit]] = {}
        for unit in units:
            by_site.setdefault(unit.site, []).append(unit)
        with private_folder("restic") as folder:
            raw = folder / "raw"
            self._repository.restore(snapshot, _patterns(list(files.values()), all_files), raw)
            number = 0
            for site, mine in by_site.items():
                placed: dict[PurePosixPath, Path] = {}
                pending = _apart(mine)
                while pending:
                    some = pending.pop()
                    copy = folder / f"copy-{number}"
                    number += 1
                    missing = _fill(copy, raw, some, uses, placed)
                    seen = look_into(self._covers[site], copy, self._targets)
                    if seen.holds and len(some) > 1:
                        middle = len(some) // 2
                        pending += [some[middle:], some[:middle]]
                        continue
                    for unit in some:
                        yield unit, _with_gap(seen, site) if unit.key in missing else seen


def _apart(units: Sequence[Unit]) -> list[list[Unit]]:
    """Return the units in lists within which no two have a place in common."""
    made: list[tuple[set[Path], list[Unit]]] = []
    for unit in units:
        places = {file.place for file in unit.files}
        for taken, some in made:
            if not taken & places:
                taken |= places
                some.append(unit)
                break
        else:
            made.append((places, [unit]))
    return [some for _, some in made]


def _with_gap(seen: Seen, site: str) -> Seen:
    gap = NotChecked(f"snapshots of {site}", "a file was not brought back by restic")
    return Seen(seen.keys, seen.everything, (*seen.gaps, gap), seen.controls)


def _batches(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    batch: list[Unit] = []
    size = files = 0
    for unit in sorted(units, key=lambda one: str(one.files[0].inside)):
        full = size + unit.size > BATCH_BYTES or files + len(unit.files) > BATCH_FILES
        if batch and full:
            yield batch
            batch, size, files = [], 0, 0
        batch.append(unit)
        size += unit.size
        files += len(unit.files)
    if batch:
        yield batch


def _patterns(wanted: Sequence[Stored], all_files: Sequence[Stored]) -> list[PurePosixPath]:
    """Return few paths that name the wanted files and no others: folders where all are wanted."""
    total = Counter(folder for file in dict.fromkeys(all_files) for folder in _folders(file))
    here = Counter(folder for file in wanted for folder in _folders(file))
    found: dict[PurePosixPath, None] = {}
    for file in wanted:
        whole = [folder for folder in _folders(file) if here[folder] == total[folder]]
        found[whole[-1] if whole else file.inside] = None
    return list(found)


def _folders(file: Stored) -> Iterator[PurePosixPath]:
    """Yield the folders around a file of which every file is known, the innermost first."""
    for folder in file.inside.parents:
        if folder.is_relative_to(file.top) and folder != PurePosixPath("/"):
            yield folder


def _fill(
    copy: Path,
    raw: Path,
    units: Sequence[Unit],
    uses: Mapping[PurePosixPath, int],
    placed: dict[PurePosixPath, Path],
) -> set[str]:
    """Put the files of some units under their own places below ``copy``.

    Returns:
        The keys of units of which a file is missing.
    """
    missing: set[str] = set()
    for unit in units:
        for file in unit.files:
            came = placed.get(file.inside) or raw.joinpath(*file.inside.parts[1:])
            there = move_in(copy, came, file.place, keep=uses[file.inside] > 1)
            if there is None:
                missing.add(unit.key)
            else:
                placed[file.inside] = there
    return missing


def move_in(copy: Path, came: Path, place: Path, *, keep: bool) -> Path | None:
    """Put a file under ``place`` below ``copy``; ``None``: it is no regular file."""
    if came.is_symlink() or not came.is_file():
        return None
    there = _below(copy, place)
    there.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if keep:
        shutil.copy2(came, there)
    else:
        os.rename(came, there)
    there.chmod(there.stat().st_mode & 0o7777 | 0o600)
    return there


def look_into(covered: Covered, copy: Path, targets: Targets) -> Seen:
    """Return what the copy of a site in a private folder holds, as its own adapter sees it."""
    make_places(covered, copy)
    return look_into_copy(covered, covered.site.copied_to(copy), targets)


def make_places(covered: Covered, copy: Path) -> None:
    """Make an empty folder for each place of the site that a copy does not hold.

    A part that did not change is not brought back again; its absence is no fault of the copy.
    """
    _below(copy, covered.site.root.resolve()).mkdir(parents=True, exist_ok=True)
    alone = stands_alone(covered)
    for path in covered.paths:
        there = _below(copy, path)
        if not there.exists():
            (there if alone else there.parent).mkdir(parents=True, exist_ok=True)


def _below(copy: Path, place: Path) -> Path:
    return copy.joinpath(*place.parts[1:])
