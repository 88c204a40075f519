"""What a manifest says, once it has been read: values without behaviour beyond the lineage graph.

Nothing here reads a file, looks at the environment or imports a driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo

from purge.adapter import Action, Adapter, Site

SourcePurged = Literal["delete", "flag"]
WhenDone = Literal["keep", "strike"]


class Catalogue(Protocol):
    """What the manifest needs of :class:`purge.registry.Registry`: names in, classes out."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all adapters."""

    def load(self, name: str) -> type[Adapter[Any]]:
        """Return the class, without its driver."""

    def require(self, name: str) -> type[Adapter[Any]]:
        """Return the class, and raise ``MissingDriver`` when its driver is not installed."""

    def settings(self, name: str, raw: Mapping[str, object], also: Iterable[str] = ()) -> object:
        """Return the checked settings, or raise :class:`purge.shapes.ShapeFault`."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The backup that must be young enough before a sweep may delete anything."""

    site: str
    max_age: timedelta


@dataclass(frozen=True, slots=True)
class Safety:
    """The limits that no run may pass without being told to."""

    min_phrase_width: int = 12
    """In display columns, after folding."""
    max_records: int = 25
    """For one request, over all sites."""
    snapshot: Snapshot | None = None
    settle: timedelta = timedelta(hours=24)
    """How long after a removal a derived record counts as made from what was removed."""
    deadline: timedelta = timedelta(days=30)
    """By when a request has to be confirmed or dated, where it does not say otherwise."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a provider says that it keeps what was deleted, and where it says so."""

    period: timedelta
    source: str


@dataclass(frozen=True, slots=True)
class MarkerSource:
    """A site whose records may carry markers, and what those records must say of themselves."""

    site: str
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Markers:
    """Where marker lines are obeyed, and what becomes of one whose request is confirmed."""

    sources: tuple[MarkerSource, ...]
    when_done: WhenDone = "keep"


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """One site of the manifest.

    ``settings`` are the adapter's own keys as they were written, with the environment filled in
    (:class:`purge.manifest.secret.Secret`); ``checked`` is the adapter's ``Settings`` made of
    them.
    """

    name: str
    adapter: str
    action: Action = Action.DELETE
    derived_from: Mapping[str, str | None] = field(default_factory=dict)
    when_source_purged: SourcePurged = "flag"
    scope: Mapping[str, str] = field(default_factory=dict)
    subject: str | None = None
    may_be_empty: bool = False
    outside_root: bool = False
    provider_retention: Retention | None = None
    covers: tuple[str, ...] = ()
    """The sites of which this one keeps copies."""
    settings: Mapping[str, object] = field(default_factory=dict, repr=False)
    checked: object = field(default=None, repr=False)
    line: int = 0
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    """The line of each key."""

    def site(self, root: Path) -> Site:
        """Return what the adapter is told of the site."""
        return Site(
            name=self.name,
            root=root,
            action=self.action,
            derived_from=self.derived_from,
            scope=self.scope,
            subject=self.subject,
            outside_root=self.outside_root,
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest without faults.

    Args:
        path: the file, symbolic links resolved.
        root: the folder that the sites' paths are relative to.
        sites: by name, in the order of the file.
        ledger: the ledger's database; ``keys`` the database of the wrapped keys; ``key_file``
            the file with the key that wraps them.
    """

    path: Path
    root: Path
    name: str
    timezone: ZoneInfo
    safety: Safety
    sites: Mapping[str, SiteEntry]
    markers: Markers | None
    ledger: Path
    key_file: Path
    keys: Path

    def sources_first(self) -> tuple[str, ...]:
        """Return the names of the sites, each after those it derives from; otherwise in the order
        of the file."""
        done: dict[str, None] = {}

        def visit(name: str) -> None:
            if name not in done:
                for source in self.sites[name].derived_from:
                    visit(source)
                done[name] = None

        for name in self.sites:
            visit(name)
        return tuple(done)

    def ancestors(self, site: str) -> frozenset[str]:
        """Return the sites that ``site`` derives from, directly or through others."""
        found: set[str] = set()
        ahead = list(self.sites[site].derived_from)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead.extend(self.sites[name].derived_from)
        return frozenset(found)

    def descendants(self, site: str) -> frozenset[str]:
        """Return the sites that derive from ``site``, directly or through others."""
        return frozenset(name for name in self.sites if site in self.ancestors(name))

    def connected(self, one: str, other: str) -> bool:
        """Whether there is lineage between two sites: they are one, or one derives from the other.

        Two sites that merely have a source in common are not connected: the same id in both says
        nothing of whether they hold the same record.
        """
        return one == other or one in self.ancestors(other) or other in self.ancestors(one)
