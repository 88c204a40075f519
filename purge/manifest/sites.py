"""The ``sites`` section: a site's own keys, its adapter's keys, and how sites hang together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from purge.adapter import Action, Adapter
from purge.errors import MissingDriver, Refused, UsageFault
from purge.manifest import keys
from purge.manifest.model import Catalogue, Retention, SiteEntry
from purge.manifest.spans import read_span
from purge.shapes import ShapeFault, Steps, field_names, nearest

if TYPE_CHECKING:
    from purge.manifest.load import Faults

_NAME: Final = re.compile(r"\w[\w.-]{0,63}")
OWN_KEYS: Final = frozenset(field_names(keys.SiteKeys))


class SiteReader:
    """Reads the sites of one manifest and records what is wrong with them."""

    def __init__(self, faults: Faults, registry: Catalogue, root: Path) -> None:
        self._faults = faults
        self._registry = registry
        self._root = root

    def read(self, raw: Any) -> dict[str, SiteEntry]:
        """Return the sites in the order of the file, without those that are no mapping."""
        path: Steps = ("sites",)
        if raw is None or raw == {}:
            self._faults.add(path, "There are no sites; a manifest needs at least one.")
            return {}
        if not isinstance(raw, dict):
            self._faults.add(path, "must be a mapping (name: {adapter: ...}).")
            return {}
        entries: dict[str, SiteEntry] = {}
        for name, site in raw.items():
            at = (*path, name)
            if not _NAME.fullmatch(name):
                self._faults.add(
                    at,
                    "A site's name is made of letters, digits, '_', '.' and '-', at most 64, and "
                    "begins with a letter, a digit or '_'.",
                    at_key=True,
                )
            if not isinstance(site, dict):
                self._faults.add(at, "must be a mapping ({adapter: ...}).")
                continue
            entries[name] = self._read_site(name, site, at)
        self._check_lineage(entries, raw)
        return entries

    def _read_site(self, name: str, raw: Mapping[str, Any], at: Steps) -> SiteEntry:
        common = {key: value for key, value in raw.items() if key in OWN_KEYS}
        own = {key: value for key, value in raw.items() if key not in OWN_KEYS}
        retention = None
        self._refuse_bare_retention(common, at)
        written = self._faults.section(keys.SiteKeys, common, at, {"adapter": "?"})
        if written.provider_retention is not None:
            source = written.provider_retention.source
            period = read_span(written.provider_retention.period)
            if period is None:
                self._faults.add(
                    (*at, "provider_retention", "period"),
                    "must be a length of time such as 30d.",
                )
            else:
                retention = Retention(period, source)
        adapter = self._adapter(written, at) if written.adapter != "?" else None
        entry = SiteEntry(
            name=name,
            adapter=written.adapter,
            action=written.action,
            derived_from=written.derived_from,
            when_source_purged=written.when_source_purged,
            scope=written.scope,
            subject=written.subject,
            may_be_empty=written.may_be_empty,
            outside_root=written.outside_root,
            provider_retention=retention,
            covers=tuple(dict.fromkeys(written.covers)),
            settings=own,
            checked=self._settings(written.adapter, adapter, own, at) if adapter else None,
            line=self._faults.line(at),
            lines={key: self._faults.line((*at, key)) for key in raw},
        )
        self._check_paths(entry, at)
        return entry

    def _refuse_bare_retention(self, common: dict[str, Any], at: Steps) -> None:
        """Refuse ``provider_retention: 30d``: a promise without its source is worth nothing."""
        if isinstance(common.get("provider_retention"), str):
            del common["provider_retention"]
            self._faults.add(
                (*at, "provider_retention"),
                "Say where the provider promises that: {period: 30d, source: '...'}.",
            )

    def _adapter(self, written: keys.SiteKeys, at: Steps) -> type[Adapter[Any]] | None:
        here = (*at, "adapter")
        try:
            adapter = self._registry.load(written.adapter)
        except UsageFault as fault:
            self._faults.add(here, str(fault))
            return None
        try:
            self._registry.require(written.adapter)
        except MissingDriver as fault:
            self._faults.add(here, str(fault))
        if written.action not in {Action.REPORT, *adapter.info.actions}:
            able = ", ".join(action for action in Action if action in adapter.info.actions)
            self._faults.add(
                (*at, "action"),
                f"The adapter '{written.adapter}' cannot '{written.action}'. "
                f"It can: {', '.join(filter(None, (able, Action.REPORT)))}.",
            )
        return adapter

    def _settings(
        self, name: str, adapter: type[Adapter[Any]], own: Mapping[str, Any], at: Steps
    ) -> object:
        taken = OWN_KEYS.intersection(field_names(adapter.Settings))
        if taken:
            self._faults.add(
                (*at, "adapter"),
                f"The adapter '{name}' claims keys that are the manifest's: "
                f"{', '.join(sorted(taken))}. Its author has to rename them.",
            )
        try:
            return self._registry.settings(name, own, OWN_KEYS)
        except ShapeFault as fault:
            self._faults.add_all(fault, at)
            return None

    def _check_paths(self, entry: SiteEntry, at: Steps) -> None:
        """Refuse paths that leave the root: the keys ``path`` and ``paths``, and every field of the
        adapter's settings with ``metadata={"path": True}``."""
        marked = (
            {field.name for field in fields(entry.checked) if field.metadata.get("path")}  # type: ignore[arg-type]  # a Settings is a dataclass, the registry saw to it
            if entry.checked is not None
            else set()
        )
        site = entry.site(self._root)
        for key in {"path", "paths"} | marked:
            value = entry.settings.get(key)
            many = value if isinstance(value, list) else [value]
            for index, path in enumerate(many):
                here = (*at, key, index) if isinstance(value, list) else (*at, key)
                if not isinstance(path, str):
                    continue
                try:
                    site.path(path)
                except Refused:
                    self._faults.add(
                        here,
                        "This path leaves the root. Move it below the root, or set "
                        "'outside_root: true' on the site if that is meant.",
                    )
                except (OSError, RuntimeError, ValueError):
                    self._faults.add(here, "This is no path that can be followed.")

    def _check_lineage(self, entries: Mapping[str, SiteEntry], raw: Mapping[str, Any]) -> None:
        for name, entry in entries.items():
            for index, covered in enumerate(entry.covers):
                at: Steps = ("sites", name, "covers", index)
                if covered == name:
                    self._faults.add(at, "A site cannot be a backup of itself.")
                elif covered not in raw:
                    hint = nearest(covered, (other for other in raw if other != name))
                    self._faults.add(at, f"There is no such site.{hint}")
            for source in entry.derived_from:
                at = ("sites", name, "derived_from", source)
                if source == name:
                    self._faults.add(at, "A site cannot derive from itself.", at_key=True)
                elif source not in raw:
                    hint = nearest(source, (other for other in raw if other != name))
                    self._faults.add(at, f"There is no such site.{hint}", at_key=True)
        cycle = find_cycle(
            {
                name: tuple(source for source in entry.derived_from if source != name)
                for name, entry in entries.items()
            }
        )
        if cycle:
            first, second = cycle[0], cycle[1]
            self._faults.add(
                ("sites", first, "derived_from", second),
                "The sites derive from each other in a circle: "
                f"{' from '.join((*cycle, first))}. A source cannot be made from what is made "
                "from it.",
                at_key=True,
            )


def find_cycle(sources: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names along a circle, each deriving from the next and the last from the first;
    nothing where there is none. Names that are not keys are passed over."""
    done: set[str] = set()
    for start in sources:
        trail: dict[str, None] = {}
        stack = [(start, iter(sources[start]))]
        trail[start] = None
        while stack:
            name, ahead = stack[-1]
            following = next((n for n in ahead if n in sources and n not in done), None)
            if following is None:
                stack.pop()
                trail.pop(name, None)
                done.add(name)
            elif following in trail:
                names = list(trail)
                return tuple(names[names.index(following) :])
            else:
                trail[following] = None
                stack.append((following, iter(sources[following])))
    return ()
