"""What ``purge check`` says of a repository, and which snapshots hold which sites. Only reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from purge.adapter import Covered, Site, Snapshot, Statement
from purge.errors import StoreError
from purge_adapters._restic_dates import Calendar
from purge_adapters._restic_program import repository_folder
from purge_adapters._restic_repository import Node, Repository, Taken
from purge_adapters._restic_settings import Policy, ResticSettings
from purge_adapters._restic_units import Trees, places

__all__ = ["check", "snapshots"]

_SIDE: Final = ("-wal", "-shm", "-journal", ".lock", ".tmp", ".swp", "~")
"""What programs put beside a file for a while, and what people leave out of backups."""
_SHOWN_GROUPS: Final = 5


def snapshots(site: Site, settings: ResticSettings) -> Iterator[Snapshot]:
    """Yield the snapshots, the newest first, with the covered sites that each holds in full.

    Raises:
        Transient, Permanent: they cannot be listed.
    """
    with Repository.open(site, settings) as repository:
        trees = Trees(repository)
        for one in reversed(repository.snapshots()):
            whole = {
                name
                for name, covered in site.covers.items()
                if not _lacking(trees, one, covered, at_most=1)
            }
            yield Snapshot(one.time, frozenset(whole))


def _lacking(trees: Trees, snapshot: Taken, covered: Covered, *, at_most: int) -> list[str]:
    """Return what a snapshot lacks of a site: of what is there now and was there then."""
    lacking: list[str] = []
    met = False
    for path in covered.paths:
        pairs = list(places(trees, snapshot, path))
        # A path of which only parts were backed up is not held whole.
        whole = [(place, inside) for place, inside in pairs if place == path]
        node = trees.at(snapshot.tree, whole[0][1]) if whole else None
        if node is None:
            if _was_there(path, snapshot.time):
                lacking.append(str(path))
        else:
            met = True
            lacking += _lacking_below(trees, node, path, snapshot.time, at_most)
        if len(lacking) >= at_most:
            return lacking
    if not met and not lacking:
        lacking.append(str(covered.paths[0]) if covered.paths else covered.site.name)
    return lacking


def _lacking_below(
    trees: Trees, node: Node, path: Path, taken: datetime, at_most: int
) -> list[str]:
    if not path.is_dir() or path.is_symlink():
        return [] if node.kind == "file" or not path.exists() else [str(path)]
    if node.kind != "dir":
        return [str(path)]
    lacking: list[str] = []
    held = {child.name: child for child in trees.nodes(node.subtree)}
    for entry in sorted(os.scandir(path), key=lambda one: one.name):
        there = Path(entry.path)
        child = held.get(entry.name)
        if entry.is_dir(follow_symlinks=False) and child is not None:
            lacking += _lacking_below(trees, child, there, taken, at_most)
        elif child is None and _was_there(there, taken):
            lacking.append(str(there))
        if len(lacking) >= at_most:
            break
    return lacking


def _was_there(path: Path, taken: datetime) -> bool:
    """Whether something that is there now was there, unchanged, when a snapshot was taken."""
    if path.name.startswith(".") or path.name.endswith(_SIDE):
        return False
    try:
        status = path.lstat()
    except OSError:
        return False
    return max(status.st_mtime, status.st_ctime) < taken.timestamp()


def check(site: Site, settings: ResticSettings) -> Iterator[Statement]:
    """Yield what ``check`` of the adapter yields."""
    try:
        with Repository.open(site, settings) as repository:
            version = repository.restic.version()
            listed = repository.snapshots()
            yield Statement(f"restic {version[0]}.{version[1]}; the repository opens.")
            calendar = Calendar(site, settings, listed, version, site.clock())
            yield from _contents(repository, site, calendar)
            yield from _rules(settings, calendar, version)
    except StoreError as error:
        yield Statement(str(error), ok=False)
    yield from _surroundings(site, settings)


def _contents(repository: Repository, site: Site, calendar: Calendar) -> Iterator[Statement]:
    listed = calendar.snapshots
    if not listed:
        yield Statement("The repository has no snapshot yet.")
        return
    newest = listed[-1]
    yield Statement(
        f"{len(listed)} snapshots, the newest of "
        f"{newest.time.astimezone(calendar.zone):%Y-%m-%d %H:%M}."
    )
    groups = calendar.groups()
    for name, group in list(groups.items())[:_SHOWN_GROUPS]:
        last = max(one.time for one in group).astimezone(calendar.zone)
        yield Statement(f"Group {name}: {len(group)} snapshots, the newest of {last:%Y-%m-%d}.")
    if len(groups) > _SHOWN_GROUPS:
        yield Statement(
            f"{len(groups) - _SHOWN_GROUPS} more groups. Rules are applied to each group by "
            "itself; a group that gets no more snapshots loses none."
        )
    if not site.covers:
        yield Statement("It covers no site: name those that it backs up in 'covers'.", ok=False)
    trees = Trees(repository)
    for name, covered in site.covers.items():
        if not covered.paths:
            yield Statement(
                f"'{name}' is reached through a server, so its copies in this backup are not "
                "known. Cover the files of the server instead."
            )
            continue
        # A machine may have several backups, each of some paths.
        per_group = [group[-1] for group in groups.values()]
        best = min((_lacking(trees, one, covered, at_most=3) for one in per_group), key=len)
        if best:
            yield Statement(
                f"'{name}' is not wholly in the newest snapshot of any group: its paths, or some "
                "of its files, are left out of the backup.",
                ok=False,
            )
        else:
            yield Statement(f"'{name}' is wholly in a newest snapshot.")


def _rules(
    settings: ResticSettings, calendar: Calendar, version: tuple[int, int]
) -> Iterator[Statement]:
    if settings.policy is Policy.REWRITE:
        yield Statement(
            "Snapshots that hold an item are replaced by ones without it, and the repository is "
            "pruned: this client must be allowed to delete there."
        )
        if version < (0, 15):
            yield Statement(
                "restic before 0.15 cannot take a whole file out of a snapshot; a record in a file "
                "it can."
            )
    if not calendar.snapshots:
        return
    found = calendar.until([calendar.snapshots[-1].id])
    if found.date is not None:
        yield Statement(
            "What the newest snapshot holds goes by itself on "
            f"{found.date.astimezone(calendar.zone):%Y-%m-%d}."
        )
    else:
        yield Statement(f"What the newest snapshot holds has no end date: {found.why}.")


def _surroundings(site: Site, settings: ResticSettings) -> Iterator[Statement]:
    """Warn of a repository, or of its password, that lies in what it backs up."""
    folder = repository_folder(site, settings)
    for what, path in (
        ("The repository", folder),
        ("The password file", settings.password_file and site.root / settings.password_file),
    ):
        if not isinstance(path, Path):
            continue
        if not path.exists():
            yield Statement(f"{what} is not there.", ok=False)
        for name, covered in site.covers.items():
            if any(path.resolve().is_relative_to(place) for place in covered.paths):
                yield Statement(f"{what} lies within '{name}', which it backs up.", ok=False)
