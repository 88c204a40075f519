"""Cleaning what one snapshot holds of covered sites, in a private copy, by their own adapters."""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Final

from purge.adapter import (
    Covered,
    Match,
    NotChecked,
    NotRemoved,
    ProblemCode,
    Removal,
    Residue,
)
from purge.errors import Permanent
from purge.targets import Targets
from purge_adapters._copies import keys_in_copy
from purge_adapters._restic_look import look_into, make_places, move_in
from purge_adapters._restic_repository import Repository, Taken
from purge_adapters._restic_units import Stored, Unit

__all__ = ["Change", "clean"]

ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file of a snapshot.

    Args:
        inside: its path in the snapshot.
        fresh: the file with its new content; ``None``: it goes.
        is_new: the snapshot has no such file.
    """

    inside: PurePosixPath
    fresh: Path | None
    is_new: bool = False

    @property
    def sign(self) -> str:
        """How ``restic diff`` shows it."""
        return "-" if self.fresh is None else "+" if self.is_new else "M"


def clean(
    repository: Repository,
    snapshot: Taken,
    units: Sequence[Unit],
    covers: Mapping[str, Covered],
    targets: Targets,
    folder: Path,
    now: datetime,
) -> list[Change]:
    """Return what has to change in a snapshot so that some units of it hold no target.

    Args:
        repository: is only read.
        snapshot: holds the units.
        units: of any number of sites.
        covers: the sites, by name.
        targets: what has to go.
        folder: a private folder; the new contents are left there.
        now: the time of the removal.

    Raises:
        Permanent: a copy cannot be cleaned.
        Transient, Permanent: the snapshot cannot be read.
    """
    changes: dict[PurePosixPath, Change] = {}
    for number, unit in enumerate(units):
        raw, copy = folder / f"raw-{number}", folder / f"clean-{number}"
        repository.restore(snapshot.id, [file.inside for file in unit.files], raw)
        for file in unit.files:
            there = raw.joinpath(*file.inside.parts[1:])
            if move_in(copy, there, file.place, keep=True) is None:
                raise Permanent(
                    "restic did not bring a file of the snapshot back.",
                    problem=ProblemCode.NOT_CHECKED,
                )
        covered = covers[unit.site]
        make_places(covered, copy)
        _forget_in(covered, copy, targets, now)
        seen = look_into(covered, copy, targets)
        if seen.holds or seen.gaps:
            why = seen.gaps[0].why if seen.gaps else "it still holds what has to go"
            raise Permanent(
                f"A copy from the snapshot could not be cleaned: {why}.",
                problem=ProblemCode.UNSUPPORTED,
            )
        for change in _compare(unit.files, raw, copy):
            changes[change.inside] = change
    return list(changes.values())


def _forget_in(covered: Covered, copy: Path, targets: Targets, now: datetime) -> None:
    """Remove from a copy what the targets name, and make it physical."""
    site = covered.site.copied_to(copy)
    left: list[NotRemoved | NotChecked] = []
    for _ in range(ROUNDS):
        with covered.open(site) as adapter:
            found = [item for item in adapter.find(targets) if isinstance(item, Match)]
        removals = [
            Removal(match, "", now) for match in found if keys_in_copy(site.name, targets, match)
        ]
        if not removals:
            break
        with covered.open(site) as adapter:
            left = list(adapter.remove(removals))
        if left:
            break
    with covered.open(site) as adapter:
        copies = [one for one in adapter.residue(targets) if isinstance(one, Residue)]
    fixable = [one for one in copies if one.fixable]
    if fixable and not left:
        with covered.open(site) as adapter:
            left = list(adapter.sanitize(fixable))
    if left:
        first = left[0]
        why = first.sentence if isinstance(first, NotRemoved) else first.why
        raise Permanent(
            f"A copy from the snapshot could not be cleaned: {why}", problem=first.problem
        )


def _compare(files: Iterable[Stored], raw: Path, copy: Path) -> list[Change]:
    """Return how the files of a copy differ from what was brought back."""
    changes = []
    expected: set[Path] = set()
    known: dict[Path, PurePosixPath] = {}
    for file in files:
        before = raw.joinpath(*file.inside.parts[1:])
        after = copy.joinpath(*file.place.parts[1:])
        expected.add(after)
        known[after.parent] = file.inside.parent
        if not after.exists():
            changes.append(Change(file.inside, None))
        elif not filecmp.cmp(before, after, shallow=False):
            changes.append(Change(file.inside, after))
    for path in copy.rglob("*"):
        if path.is_file() and not path.is_symlink() and path not in expected:
            if path.name.endswith(("-shm", "-wal", "-journal")) and not _content(path):
                continue
            there = next((p for p in path.parents if p in known), None)
            if there is None:
                raise Permanent(
                    "Cleaning a copy from the snapshot made files at a place that the snapshot "
                    "does not have.",
                    problem=ProblemCode.UNSUPPORTED,
                )
            inside = known[there].joinpath(*path.relative_to(there).parts)
            changes.append(Change(inside, path, is_new=True))
    return changes


def _content(path: Path) -> bool:
    return not path.name.endswith("-shm") and path.stat().st_size > 0
