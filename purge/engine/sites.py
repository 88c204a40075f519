"""The sites of a run: opens adapters and turns what they yield into values.

Every look comes through a fresh instance. Nothing that a site does raises out of here: a site
that fails is a look with a failure, and the other sites go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    Control,
    ControlKind,
    Covered,
    Examined,
    Finding,
    Marker,
    Match,
    NotAMarker,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Site,
    Snapshot,
    Statement,
    guard,
)
from purge.errors import Permanent, PurgeError
from purge.manifest import Manifest
from purge.plan.outcome import add_up
from purge.plan.reach import Look
from purge.registry import Registry
from purge.resilience import Patience, call, problem_of
from purge.state import Problem
from purge.targets import Targets

Watcher = Callable[[str, str], None]
"""Told of each thing that begins: the phase and the site."""


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def silent(phase: str, site: str) -> None:
    """Watch nothing."""
    del phase, site


@dataclass(frozen=True, slots=True)
class ResidueLook:
    """What one look for left-over copies saw."""

    residue: tuple[Residue, ...] = ()
    controls: tuple[Control, ...] = ()
    unexamined: tuple[NotChecked, ...] = ()
    examined: Examined = field(default_factory=Examined)
    failure: Problem | None = None

    def by_kind(self, *, on_target: bool | None = None) -> dict[ControlKind, bool]:
        """Return the controls by kind of needle; one that failed once has failed."""
        found: dict[ControlKind, bool] = {}
        for control in self.controls:
            if on_target is None or control.on_target is on_target:
                found[control.kind] = found.get(control.kind, True) and control.passed
        return found


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal or a clean-up left alone, and whether it went through."""

    left_alone: tuple[NotRemoved | NotChecked, ...] = ()
    failure: Problem | None = None


class Sites:
    """All sites of a manifest, as a run uses them.

    Args:
        manifest: says what they are.
        registry: knows the adapters.
        writable: ``remove`` and ``sanitize`` may be called; false for every dry run.
        patience: how long transient errors are borne.
        watch: told of each look and act.
        clock: the time, with a time zone.
    """

    def __init__(
        self,
        manifest: Manifest,
        registry: Registry,
        *,
        writable: bool,
        patience: Patience | None = None,
        watch: Watcher = silent,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.manifest = manifest
        self.registry = registry
        self.writable = writable
        self.patience = patience or Patience()
        self.watch = watch
        self.clock = clock

    def names(self) -> tuple[str, ...]:
        """The sites, each after the ones it derives from."""
        return self.manifest.sources_first()

    def removal_order(self) -> tuple[str, ...]:
        """The sites in the order in which records are taken out: sources first, caches last."""
        caches = {name for name in self.names() if self.deletes_with_source(name)}
        return (
            *(name for name in self.names() if name not in caches),
            *(name for name in self.names() if name in caches),
        )

    def info(self, name: str) -> AdapterInfo:
        """What the site's adapter is and can do."""
        return self.registry.load(self.manifest.sites[name].adapter).info

    def action(self, name: str) -> Action:
        """What removal does at the site."""
        return self.manifest.sites[name].action

    def open(self, name: str) -> Adapter[Any]:
        """Return a new adapter for the site."""
        entry = self.manifest.sites[name]
        site = self.site(name)
        if entry.covers:
            site = replace(site, covers={other: self._covered(other) for other in entry.covers})
        return self.registry.load(entry.adapter)(site, entry.checked)

    def site(self, name: str) -> Site:
        """What the manifest says of the site."""
        site = self.manifest.sites[name].site(self.manifest.root)
        return replace(site, timezone=self.manifest.timezone, clock=self.clock)

    def footprint(self, name: str) -> tuple[Path, ...]:
        """The files and folders on this machine of which the site consists."""
        with self.open(name) as adapter:
            return tuple(path.resolve() for path in adapter.footprint())

    def _covered(self, name: str) -> Covered:
        entry = self.manifest.sites[name]
        adapter, site = self.registry.load(entry.adapter), self.site(name)

        def open_there(there: Site) -> Adapter[Any]:
            return adapter(there, entry.checked)

        with open_there(site) as opened:
            return Covered(site, opened.footprint(), open_there)

    # The graph that purge.plan.reach asks about.

    def sources_first(self) -> Sequence[str]:
        """The sites, each after the ones it derives from."""
        return self.names()

    def ancestors(self, site: str) -> frozenset[str]:
        """The sites it derives from, over any number of steps."""
        return self.manifest.ancestors(site)

    def descendants(self, site: str) -> frozenset[str]:
        """The sites that derive from it, over any number of steps."""
        return self.manifest.descendants(site)

    def recorded_sources(self, site: str) -> Mapping[str, str | None]:
        """The sites it derives from directly, with the field that says so."""
        return self.manifest.sites[site].derived_from

    def deletes_with_source(self, site: str) -> bool:
        """Whether a record of the site goes with any of its sources."""
        return self.manifest.sites[site].when_source_purged == "delete"

    def derived(self) -> frozenset[str]:
        """The sites that derive from others."""
        return frozenset(name for name in self.names() if self.recorded_sources(name))

    # The verbs.

    def check(self, name: str) -> tuple[Statement, ...]:
        """Reach the site and return what is true of it; a failure is a statement too."""
        self.watch("check", name)
        try:
            return tuple(call(lambda: self.open(name), lambda a: a.check(), self.patience))
        except PurgeError as error:
            return (Statement(str(error), ok=False),)

    def find(self, name: str, targets: Targets) -> Look:
        """Look for everything that the targets name at the site."""
        self.watch("find", name)

        def act(adapter: Adapter[Any]) -> Sequence[Finding]:
            return list(adapter.find(targets))

        try:
            found = call(lambda: self.open(name), act, self.patience)
        except PurgeError as error:
            return Look(failure=problem_of(error))
        return Look(
            matches=tuple(item for item in found if isinstance(item, Match)),
            unseen=tuple(item for item in found if isinstance(item, NotChecked)),
            examined=add_up([item for item in found if isinstance(item, Examined)]),
        )

    def snapshots(self, name: str) -> tuple[Snapshot, ...]:
        """List the backups that the site holds.

        Raises:
            PurgeError: they cannot be listed.
        """
        self.watch("snapshots", name)
        found = call(lambda: self.open(name), lambda a: a.snapshots(), self.patience)
        return tuple(found)

    def markers(
        self, name: str, where: Mapping[str, str]
    ) -> tuple[Marker | NotAMarker | NotChecked | Examined, ...]:
        """Read the site's markers.

        Raises:
            PurgeError: they cannot be read.
        """
        self.watch("markers", name)
        return tuple(call(lambda: self.open(name), lambda a: a.markers(where), self.patience))

    def strike(self, name: str, markers: Sequence[tuple[Marker, str]]) -> tuple[NotChecked, ...]:
        """Replace the phrases of markers.

        Raises:
            EmptySelector: there is none.
            PurgeError: the site refused.
        """
        guard(markers)
        self._must_be_writable(name)
        self.watch("strike", name)
        return tuple(call(lambda: self.open(name), lambda a: a.strike(markers), self.patience))

    def residue(self, name: str, targets: Targets) -> ResidueLook:
        """Look for copies that outlive removal."""
        self.watch("examine", name)

        def act(adapter: Adapter[Any]) -> Sequence[Observation]:
            return list(adapter.residue(targets))

        try:
            found = call(lambda: self.open(name), act, self.patience)
        except PurgeError as error:
            return ResidueLook(failure=problem_of(error))
        return ResidueLook(
            residue=tuple(item for item in found if isinstance(item, Residue)),
            controls=tuple(item for item in found if isinstance(item, Control)),
            unexamined=tuple(item for item in found if isinstance(item, NotChecked)),
            examined=add_up([item for item in found if isinstance(item, Examined)]),
        )

    def remove(self, name: str, removals: Sequence[Removal]) -> Removed:
        """Take records out of the site.

        Raises:
            EmptySelector: there is none.
        """
        guard(removals)
        self._must_be_writable(name)
        self.watch("remove", name)
        try:
            left = call(lambda: self.open(name), lambda a: a.remove(removals), self.patience)
        except PurgeError as error:
            return Removed(failure=problem_of(error))
        return Removed(tuple(left))

    def sanitize(self, name: str, residue: Sequence[Residue]) -> Removed:
        """Make removal physical at the site.

        Raises:
            EmptySelector: nothing calls for it.
        """
        guard(residue)
        self._must_be_writable(name)
        self.watch("sanitize", name)
        try:
            left = call(lambda: self.open(name), lambda a: a.sanitize(residue), self.patience)
        except PurgeError as error:
            return Removed(failure=problem_of(error))
        return Removed(tuple(left))

    def _must_be_writable(self, name: str) -> None:
        if not self.writable:
            raise Permanent(f"Site '{name}': a run that only shows tried to change it; stopped.")
