"""Driving one adapter through the order of a run, with nothing but the contract.

This is not the engine: it keeps no ledger, retries nothing and decides nothing. It does what the
engine does with an adapter (a fresh instance for every phase, handles kept as JSON, traces handed
to ``residue``) and keeps everything that was seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from purge.adapter import (
    Action,
    Adapter,
    Control,
    Examined,
    Match,
    NotChecked,
    NotRemoved,
    Readability,
    Removal,
    Residue,
    Site,
    Statement,
)
from purge.shapes import validate
from purge.targets import Target, TargetKind, Targets, Trace
from purge.testing.harness import SITE, Harness
from purge.testing.snapshots import Snapshot, age, take_snapshot

T = TypeVar("T")
REQUEST: Final = "01JCONTRACTSUITE0000000000"
_SITE_KEYS: Final = ("action", "scope", "subject", "derived_from", "outside_root")


@dataclass(frozen=True, slots=True)
class Found:
    """What ``find`` yielded."""

    matches: tuple[Match, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    examined: tuple[Examined, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the matches, in order, repeated where a record came twice."""
        return tuple(match.id for match in self.matches)

    def __getitem__(self, record_id: str) -> Match:
        (match,) = (match for match in self.matches if match.id == record_id)
        return match


@dataclass(frozen=True, slots=True)
class Looked:
    """What ``residue`` yielded."""

    residue: tuple[Residue, ...] = ()
    controls: tuple[Control, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    examined: tuple[Examined, ...] = ()

    @property
    def fixable(self) -> tuple[Residue, ...]:
        """What ``sanitize`` can remove."""
        return tuple(item for item in self.residue if item.fixable)

    @property
    def undated(self) -> tuple[Residue, ...]:
        """The copies that nothing will remove."""
        return tuple(item for item in self.residue if item.until is None)


@dataclass(frozen=True, slots=True)
class Purged:
    """All that was seen in one run, in its order."""

    found: Found
    control: Looked
    left: tuple[NotRemoved, ...] = ()
    read_back: Found = field(default_factory=Found)
    before_sanitize: Looked = field(default_factory=Looked)
    sanitized: tuple[NotRemoved | NotChecked, ...] = ()
    after: Looked = field(default_factory=Looked)

    def everything(self) -> Iterator[object]:
        """Yield every single thing that the adapter said."""
        for found in (self.found, self.read_back):
            yield from (*found.matches, *found.not_checked, *found.examined)
        for looked in (self.control, self.before_sanitize, self.after):
            yield from (*looked.residue, *looked.controls, *looked.not_checked, *looked.examined)
        yield from (*self.left, *self.sanitized)


class Case:
    """One store and the adapter that serves it.

    Args:
        harness: the store; made already.
        action: what removal does.
    """

    def __init__(self, harness: Harness, action: Action = Action.DELETE) -> None:
        self.harness = harness
        self.action = action
        self.site, self.settings = site_of(harness, action)

    def open(self) -> Adapter[Any]:
        """Return a new adapter, as for a new phase of a run."""
        return self.harness.adapter(self.site, self.settings)

    def check(self) -> tuple[Statement, ...]:
        """Run ``check``."""
        return self._run(lambda adapter: adapter.check())

    def find(self, targets: Targets) -> Found:
        """Run ``find`` to its end, and keep each handle as JSON would."""
        items = self._run(lambda adapter: adapter.find(targets))
        return Found(
            tuple(_as_kept(item) for item in items if isinstance(item, Match)),
            _of(NotChecked, items),
            _of(Examined, items),
        )

    def remove(self, matches: Iterable[Match]) -> tuple[NotRemoved, ...]:
        """Run ``remove`` to its end."""
        at = datetime.now(UTC)
        removals = [Removal(match, REQUEST, at) for match in matches]
        return self._run(lambda adapter: adapter.remove(removals))

    def residue(self, targets: Targets, matches: Iterable[Match] = ()) -> Looked:
        """Run ``residue`` to its end.

        Args:
            targets: what is looked for.
            matches: what was found before removal; their traces are looked for.
        """
        looked_for = with_traces(targets, (match.trace for match in matches))
        items = self._run(lambda adapter: adapter.residue(looked_for))
        return Looked(
            _of(Residue, items), _of(Control, items), _of(NotChecked, items), _of(Examined, items)
        )

    def sanitize(self, residue: Sequence[Residue]) -> tuple[NotRemoved | NotChecked, ...]:
        """Run ``sanitize`` to its end."""
        return self._run(lambda adapter: adapter.sanitize(residue))

    def purge(self, targets: Targets, *, knowing: Iterable[Match] = ()) -> Purged:
        """Go through a whole run.

        Args:
            targets: what has to go.
            knowing: what an earlier, broken run has found: its traces are looked for as well.
        """
        found = self.find(targets)
        known = (*knowing, *found.matches)
        control = self.residue(targets, known)
        due = [match for match in found.matches if self.is_due(match)]
        left = self.remove(due) if due else ()
        read_back = self.find(targets)
        before = self.residue(targets, known)
        sanitized = self.sanitize(before.fixable) if before.fixable else ()
        after = self.residue(targets, known)
        return Purged(found, control, left, read_back, before, sanitized, after)

    def is_due(self, match: Match) -> bool:
        """Whether a run would remove it: it is named without doubt, and not yet blanked."""
        in_scope = any(not hit.scope_unknown for hit in match.hits)
        return in_scope and match.readability is not Readability.BLANKED

    def snapshot(self) -> Snapshot:
        """Return the state of every file of the store, with access times that a read would move."""
        age(self.harness.folder)
        return take_snapshot(self.harness.folder)

    def now(self) -> Snapshot:
        """Return the state of every file of the store as it is."""
        return take_snapshot(self.harness.folder)

    def _run(self, act: Callable[[Adapter[Any]], Iterable[T]]) -> tuple[T, ...]:
        with self.open() as adapter:
            return tuple(act(adapter))


def site_of(harness: Harness, action: Action) -> tuple[Site, Any]:
    """Return what the adapter is made from, read from the settings as a manifest's are.

    Raises:
        purge.shapes.ShapeFault: the settings do not fit the adapter.
    """
    raw = dict(harness.settings(action))
    raw.pop("adapter", None)
    general = {name: raw.pop(name) for name in _SITE_KEYS if name in raw}
    general["action"] = action
    site = Site(name=SITE, root=harness.folder, **general)
    return site, validate(harness.adapter.Settings, raw, _SITE_KEYS)


def target(
    kind: TargetKind,
    value: str,
    *,
    key: int = 0,
    site: str | None = None,
    scope: Mapping[str, str] | None = None,
) -> Target:
    """Return one target."""
    return Target(key, kind, value, site, scope or {})


def ids(*values: str, site: str | None = SITE) -> Targets:
    """Return targets that name records by id."""
    return Targets(
        target(TargetKind.ID, value, key=key, site=site) for key, value in enumerate(values)
    )


def phrase(value: str, **scope: str) -> Targets:
    """Return a target that names records by what they say."""
    return Targets([target(TargetKind.PHRASE, value, scope=scope)])


def with_traces(targets: Targets, traces: Iterable[Trace]) -> Targets:
    """Return the same targets with what is known of the records that were found."""
    return Targets(targets.all, {SITE: tuple(traces)})


def _as_kept(match: Match) -> Match:
    """Return a match whose handle went through JSON, as a kept plan's does."""
    return replace(match, handle=json.loads(json.dumps(match.handle)))


def _of(kind: type[T], items: Iterable[object]) -> tuple[T, ...]:
    return tuple(item for item in items if isinstance(item, kind))


__all__ = [
    "REQUEST",
    "Case",
    "Found",
    "Looked",
    "Purged",
    "ids",
    "phrase",
    "site_of",
    "target",
    "with_traces",
]
