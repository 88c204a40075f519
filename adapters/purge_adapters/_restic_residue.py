"""What a repository still holds of the targets, where, until when. Only reads; takes no lock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from purge.adapter import (
    Action,
    Control,
    ControlKind,
    Examined,
    NotChecked,
    Observation,
    ProblemCode,
    Residue,
    Site,
)
from purge.targets import Targets
from purge_adapters._files import relative
from purge_adapters._restic_dates import Calendar, Until
from purge_adapters._restic_look import Looker, Seen
from purge_adapters._restic_repository import Repository, Taken
from purge_adapters._restic_settings import Policy, ResticSettings
from purge_adapters._restic_targets import written
from purge_adapters._restic_units import Holdings, Unit, survey
from purge_adapters._restic_unneeded import look_at_unneeded

__all__ = ["residue"]


@dataclass(slots=True)
class _Held:
    """What is held at one place of one covered site."""

    snapshots: dict[str, Taken] = field(default_factory=dict)
    by_key: dict[int | None, set[str]] = field(default_factory=dict)
    """The snapshots in which each target is; under ``None``, what cannot be told apart."""

    def add(self, snapshot: Taken, seen: Seen) -> None:
        """Take up one snapshot."""
        self.snapshots[snapshot.id] = snapshot
        for key in (*seen.keys, *((None,) if seen.everything else ())):
            self.by_key.setdefault(key, set()).add(snapshot.id)

    def groups(self, targets: Targets) -> Iterator[tuple[frozenset[int], dict[str, Taken]]]:
        """Yield the targets that are in the same snapshots, with those snapshots.

        Each request has its own date: the last snapshot that holds *its* item. No targets stand
        for what cannot be told apart.
        """
        mine: dict[object, tuple[set[int], set[str]]] = {}
        for key, ids in self.by_key.items():
            if key is not None:
                keys, snapshots = mine.setdefault(targets[key].whose or key, (set(), set()))
                keys.add(key)
                snapshots.update(ids)
        together: dict[frozenset[str], set[int]] = {}
        for keys, snapshots in mine.values():
            together.setdefault(frozenset(snapshots), set()).update(keys)
        if None in self.by_key:
            yield frozenset(), self._some(self.by_key[None])
        for held, keys in together.items():
            yield frozenset(keys), self._some(held)

    def _some(self, ids: Iterable[str]) -> dict[str, Taken]:
        wanted = set(ids)
        return {id: taken for id, taken in self.snapshots.items() if id in wanted}


def residue(site: Site, settings: ResticSettings, targets: Targets) -> Iterator[Observation]:
    """Yield what ``residue`` of the adapter yields.

    Raises:
        Transient, Permanent: the repository cannot be read.
    """
    if not site.covers:
        yield NotChecked(site.name, "the site covers none: name those that it backs up in 'covers'")
    with Repository.open(site, settings) as repository:
        version = repository.restic.version()
        snapshots = repository.snapshots()
        calendar = Calendar(site, settings, snapshots, version, site.clock())
        holdings = survey(repository, site.covers, snapshots)
        yield from holdings.gaps
        looker = Looker(repository, site.covers, targets)
        seen = looker.look(holdings)
        yield from dict.fromkeys(gap for one in seen.values() for gap in one.gaps)
        yield from _held(site, settings, targets, calendar, holdings, seen)
        files = {file for held in holdings.held_by.values() for file in held[-1][1].files}
        yield Examined(
            files=len(files),
            bytes=sum(file.size for file in files),
            records=len(snapshots),
            note="each distinct file of the snapshots once, in a private copy",
        )
        whole = True
        for item in look_at_unneeded(repository, site, settings, targets, calendar, holdings):
            whole = whole and not (
                isinstance(item, NotChecked) and item.problem is ProblemCode.CORRUPT
            )
            yield item
    yield from _controls(seen.values(), whole)


def _controls(seen: Iterable[Seen], whole: bool) -> Iterator[Control]:
    kinds: dict[ControlKind, bool] = {}
    for one in seen:
        for kind, passed in one.controls:
            kinds[kind] = kinds.get(kind, True) and passed
    kinds[None] = kinds.get(None, True) and whole
    yield from (Control(kind, passed, on_target=False) for kind, passed in kinds.items())


def _held(
    site: Site,
    settings: ResticSettings,
    targets: Targets,
    calendar: Calendar,
    holdings: Holdings,
    seen: Mapping[str, Seen],
) -> Iterator[Residue]:
    by_place: dict[tuple[str, Path, str], _Held] = {}
    for key, held in holdings.held_by.items():
        if not seen[key].holds:
            continue
        for snapshot, unit in held:
            place = (unit.site, _place(site, unit), unit.aside)
            by_place.setdefault(place, _Held()).add(snapshot, seen[key])
    wanted = written(targets, site.covers) if by_place else {}
    dates: dict[frozenset[str], Until] = {}
    for (name, path, aside), found in by_place.items():
        where = relative(path, site.covers[name].site)
        # What a person has to do at the site, a person has to do in its backups.
        by_person = site.covers[name].site.action is Action.REPORT
        fixable = settings.policy is Policy.REWRITE and not aside and not by_person
        groups = list(found.groups(targets))
        unclear = {id for keys, snapshots in groups if not keys for id in snapshots}
        for keys, snapshots in groups:
            if keys and not fixable and unclear.issuperset(snapshots):
                continue  # It is said already, of what nobody can tell apart.
            ids = frozenset(snapshots)
            until = dates[ids] if ids in dates else calendar.until(ids)
            dates[ids] = until
            handle = {
                "site": name,
                "place": str(path),
                "snapshots": sorted(snapshots),
                "targets": wanted,
            }
            yield Residue(
                f"{_span(snapshots.values(), calendar)} of {name} ({where})",
                f"{aside}; {until.why}" if aside else until.why,
                until=until.date,
                fixable=fixable,
                keys=keys,
                handle=handle if fixable else {},
            )


def _place(site: Site, unit: Unit) -> Path:
    """Return the place that stands for a unit: the path of its site at or above it."""
    if len(unit.files) == 1:
        return unit.files[0].place
    return site.covers[unit.site].paths[0]


def _span(snapshots: Iterable[Taken], calendar: Calendar) -> str:
    times = sorted(one.time for one in snapshots)
    days = [f"{time.astimezone(calendar.zone):%Y-%m-%d}" for time in (times[0], times[-1])]
    if len(times) == 1:
        return f"1 snapshot ({days[0]})"
    return f"{len(times)} snapshots ({days[0]} to {days[1]})"
