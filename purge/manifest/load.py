"""Reading a manifest: every fault of it at once, or a :class:`Manifest` without faults.

Only this file is read; whether the stores are there is a question for ``purge check``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from purge.errors import ManifestFault
from purge.manifest import keys
from purge.manifest.document import Document, Place
from purge.manifest.environment import fill_in
from purge.manifest.find import ledger_paths, open_document, time_zone
from purge.manifest.model import Catalogue, Manifest, Markers, MarkerSource, Safety, Snapshot
from purge.manifest.sites import SiteReader
from purge.manifest.spans import read_span
from purge.shapes import ShapeFault, Steps, dotted, nearest, validate

T = TypeVar("T")
LEAK: Final = 4
"""From this length on, the value of a variable is taken out of every sentence. (Shorter ones stand
in ordinary words.)"""


def load_manifest(path: Path, environ: Mapping[str, str], registry: Catalogue) -> Manifest:
    """Read and check a manifest.

    Args:
        path: the file.
        environ: where ``${NAME}`` comes from.
        registry: the adapters that may be named.

    Raises:
        ManifestFault: with everything that is wrong; each fault as
            ``FILE:LINE:COLUMN: sites.cache.url: sentence``. No fault holds a value.
    """
    real, document = open_document(path)
    faults = Faults(path, document, environ)
    return _Loader(real, faults, registry).load()


class Faults:
    """A document with its variables filled in, and all that is wrong with it so far."""

    def __init__(self, shown: Path, document: Document, environ: Mapping[str, str]) -> None:
        self._shown = shown
        self._tree, unset, self._used = fill_in(document.root, environ)
        self._found: dict[tuple[Place, Steps, str], None] = dict.fromkeys(document.faults)
        self._spoilt: set[Steps] = set()
        for fault in unset:
            self.add(fault.path, fault.sentence)
        self._spoilt.update(fault.path for fault in unset)
        self.raw: Mapping[str, Any] = self._tree.plain()

    def add(self, path: Steps, sentence: str, *, at_key: bool = False) -> None:
        """Record a fault at ``path``. Where a variable could not be filled in, that is said and
        nothing else: that the text which stands there is no path or no number is no news."""
        if path in self._spoilt:
            return
        for name, value in self._used.items():
            if len(value) >= LEAK:
                sentence = sentence.replace(value, f"${{{name}}}")
        self._found[self._tree.place_of(path, at_key=at_key), path, sentence] = None

    def add_all(self, found: ShapeFault, below: Steps) -> None:
        """Record the faults of a section that stands at ``below``."""
        for fault in found.faults:
            self.add((*below, *fault.path), fault.sentence, at_key=fault.at_key)

    def line(self, path: Steps) -> int:
        """Return the line of the key at ``path``."""
        return self._tree.place_of(path, at_key=True).line

    def section(self, shape: type[T], raw: Any, path: Steps, fallback: Mapping[str, Any]) -> T:
        """Return a section of the manifest, with what is wrong in it left out and recorded.

        Args:
            fallback: values for the keys that must be there.
        """
        if not isinstance(raw, dict):
            if raw is not None:
                self.add(path, "must be a mapping (key: value).")
            elif path[-1] in self.at(path[:-1]):
                self.add(path, "is empty.")
            return validate(shape, fallback)
        try:
            return validate(shape, raw)
        except ShapeFault as fault:
            self.add_all(fault, path)
            wrong = {at.path[0] for at in fault.faults if at.path}
            kept = {key: value for key, value in raw.items() if key not in wrong}
            return validate(shape, {**fallback, **kept})

    def at(self, path: Steps) -> Any:
        """Return what stands at ``path``, or ``None``."""
        value: Any = self.raw
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def raise_if_any(self) -> None:
        """Raise everything that was recorded, in the order of the file.

        Raises:
            ManifestFault: there is a fault.
        """
        if not self._found:
            return
        lines = [
            f"{self._shown}:{place.line}:{place.column}: "
            + (f"{dotted(path)}: {sentence}" if path else sentence)
            for place, path, sentence in sorted(self._found, key=lambda found: found[0])
        ]
        count = "1 fault" if len(lines) == 1 else f"{len(lines)} faults"
        raise ManifestFault(f"{self._shown} cannot be used: {count}.", tuple(lines))


class _Loader:
    def __init__(self, path: Path, faults: Faults, registry: Catalogue) -> None:
        self._path = path
        self._faults = faults
        self._raw = faults.raw
        self._registry = registry

    def load(self) -> Manifest:
        head = self._head()
        root = (self._path.parent / head.root).resolve()
        zone = time_zone(head.timezone)
        if zone is None:
            zone = time_zone("UTC")
            self._faults.add(("timezone",), _not_a_zone(head.timezone))
        sites = SiteReader(self._faults, self._registry, root).read(self._raw.get("sites"))
        safety = self._safety()
        markers = self._markers()
        ledger, key_file, wrapped = self._ledger()
        self._faults.raise_if_any()
        assert zone is not None
        return Manifest(
            path=self._path,
            root=root,
            name=head.name or self._path.parent.name or "purge",
            timezone=zone,
            safety=safety,
            sites=sites,
            markers=markers,
            ledger=ledger,
            key_file=key_file,
            keys=wrapped,
        )

    def _head(self) -> keys.HeadKeys:
        raw = {key: value for key, value in self._raw.items() if key not in keys.SECTIONS}
        version = raw.get("purge")
        if "purge" not in raw:
            self._faults.add((), f"'purge: {keys.VERSION}' is missing: the version of the format.")
        elif type(version) is int and version != keys.VERSION:
            self._faults.add(
                ("purge",),
                f"This program understands version {keys.VERSION} of the format only.",
            )
        try:
            return validate(keys.HeadKeys, raw, keys.SECTIONS)
        except ShapeFault as fault:
            self._faults.add_all(fault, ())
            wrong = {at.path[0] for at in fault.faults if at.path}
            return validate(keys.HeadKeys, {k: v for k, v in raw.items() if k not in wrong})

    def _safety(self) -> Safety:
        path: Steps = ("safety",)
        written = self._faults.section(keys.SafetyKeys, self._raw.get("safety"), path, {})
        snapshot = None
        self._check_site((*path, "snapshot", "site"))
        if written.snapshot is not None:
            age = read_span(written.snapshot.max_age)
            if age is None:
                self._faults.add(
                    (*path, "snapshot", "max_age"), "must be a length of time such as 26h or 2d."
                )
            else:
                snapshot = Snapshot(written.snapshot.site, age)
        spans = {}
        for key, text in (("settle", written.settle), ("deadline", written.deadline)):
            span = read_span(text)
            if span is None:
                self._faults.add((*path, key), "must be a length of time such as 24h or 30d.")
            else:
                spans[key] = span
        return Safety(written.min_phrase_width, written.max_records, snapshot, **spans)

    def _markers(self) -> Markers | None:
        if "markers" not in self._raw:
            return None
        path: Steps = ("markers",)
        written = self._faults.section(
            keys.MarkersKeys, self._raw["markers"], path, {"from": ["?"]}
        )
        sources = []
        for source in written.from_:
            if isinstance(source, str):
                source = keys.MarkerSourceKeys(source)
            sources.append(MarkerSource(source.site, source.where))
        named = self._faults.at((*path, "from"))
        for index in range(len(named) if isinstance(named, list) else 0):
            self._check_site((*path, "from", index))
            self._check_site((*path, "from", index, "site"))
        return Markers(tuple(sources), written.when_done)

    def _check_site(self, path: Steps) -> None:
        """Record a fault if what stands at ``path`` is the name of no site."""
        name, sites = self._faults.at(path), self._raw.get("sites")
        known = sites if isinstance(sites, dict) else {}
        if isinstance(name, str) and name not in known:
            self._faults.add(path, f"There is no such site.{nearest(name, known)}")

    def _ledger(self) -> tuple[Path, Path, Path]:
        written = self._faults.section(keys.LedgerKeys, self._raw.get("ledger"), ("ledger",), {})
        return ledger_paths(self._path, written.path, written.key_file)


def _not_a_zone(name: str) -> str:
    from zoneinfo import available_timezones

    return f"is not the IANA name of a time zone.{nearest(name, available_timezones())}"
