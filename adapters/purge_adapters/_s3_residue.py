"""The copies that outlive removal: old versions, what delete markers hide, unfinished uploads.

Every version under the site's keys is looked into, by the same code that looks into the current
objects. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from purge.adapter import (
    Control,
    Examined,
    NotChecked,
    Observation,
    ProblemCode,
    Residue,
)
from purge.errors import Permanent
from purge.targets import NeedleKind
from purge_adapters._jsonl_record import Entry
from purge_adapters._s3_bucket import NO_LOCK, Bucket, Lock, lock_of
from purge_adapters._s3_find import affected
from purge_adapters._s3_lifecycle import Aged
from purge_adapters._s3_look import Look, Reader
from purge_adapters._s3_records import Spot
from purge_adapters._s3_settings import Format
from purge_adapters._s3_store import Version

__all__ = ["examine"]

_KINDS = (NeedleKind.ID, NeedleKind.TEXT, NeedleKind.METADATA)


def examine(reader: Reader) -> Iterator[Observation]:
    """Yield what ``residue`` of the adapter yields."""
    yield from _Examination(reader, Bucket.of(reader.store)).run()


@dataclass(slots=True)
class _Held:
    """A version that holds a target."""

    version: Version
    look: Look
    keys: frozenset[int]
    since: datetime
    """When it was no longer current."""
    newer: int
    others: int = 0
    """Other records that stand nowhere else."""
    uncounted: bool = False
    """A part of it cannot be read, and what stands there is not known."""


@dataclass(slots=True)
class _Examination:
    """One look at all versions of a site."""

    reader: Reader
    bucket: Bucket
    whole: bool = True
    """All that had to be read was read."""
    results: dict[NeedleKind, list[bool]] = field(default_factory=dict)
    touched: dict[str, frozenset[int]] = field(default_factory=dict)
    """Keys of objects that hold or held a target, and which, as far as that is known."""

    def run(self) -> Iterator[Observation]:
        for trace in self.reader.targets.traces(self.reader.site.name):
            keys = self.reader.targets.keys_of(self.reader.site.name, trace.id)
            for key in affected(trace):
                self.touched[key] = self.touched.get(key, frozenset()) | keys
        yield from self.bucket.gaps
        yield from self.bucket.replicas()
        for history in self.reader.store.histories():
            yield from self._history(history)
        yield from self._uploads()
        for kind, results in self.results.items():
            yield Control(kind, all(results), on_target=True)
        yield Control(None, self.whole, on_target=False)
        yield Examined()

    # --- versions -------------------------------------------------------------------------

    def _history(self, history: Sequence[Version]) -> Iterator[Observation]:
        key = history[0].key
        versions = [version for version in history if not version.marker]
        current = versions[0] if versions and versions[0].latest else None
        held: list[_Held] = []
        rest: list[Version] = []
        for at, version in enumerate(history):
            if version.marker or version is current:
                continue
            when = f", version of {version.modified:%Y-%m-%d %H:%M} UTC"
            look = self.reader.look(key, version.id, when)
            keys = self._keys_in(look)
            yield from self._told(look)
            if keys is not None:
                newer = sum(not it.marker for it in history[:at]) - (current is not None)
                since = history[at - 1].modified if at else version.modified
                held.append(_Held(version, look, keys, since, newer))
            else:
                rest.append(version)
        if current is not None and (held or key in self.touched):
            yield from self._try(key)
        if held:
            self.touched.setdefault(key, frozenset().union(*(item.keys for item in held)))
            if self.reader.form is not Format.OBJECT:
                yield from self._count_others(key, current, rest, held)
        for item in held:
            yield from self._residue(item)
        if not versions:
            yield from self._markers(key, history)

    def _keys_in(self, look: Look) -> frozenset[int] | None:
        """Return which targets a version holds; ``None`` for none."""
        if self.reader.key_decides:
            spot = self.reader.unread(look)
            return self.reader.keys_of(spot) or None
        found: set[int] = set()
        for spot in self.reader.spots(look):
            found |= self.reader.keys_in_copy(spot)
        return frozenset(found) if found else None

    def _told(self, look: Look) -> Iterator[Observation]:
        self.whole = self.whole and not look.gaps
        yield from dict.fromkeys(look.gaps)
        yield Examined(1, look.size, look.records)

    def _try(self, key: str) -> Iterator[Observation]:
        """See whether the look finds the records that have to go while they are readable."""
        if self.reader.key_decides:
            return
        look = self.reader.look(key)
        for spot in self.reader.spots(look):
            if self.reader.keys_of(spot):
                self._try_on(spot)
        if not look.gone:
            yield from self._told(look)

    def _try_on(self, spot: Spot) -> None:
        entry = spot.entry
        trace = self.reader.trace_of(entry)
        for kind in _KINDS:
            needles = () if kind is NeedleKind.ID and not entry.ids else trace.needles(kind)
            for needle in needles:
                self.results.setdefault(kind, []).append(_stands_in(needle, entry))

    def _count_others(
        self, key: str, current: Version | None, rest: Sequence[Version], held: Sequence[_Held]
    ) -> Iterator[Observation]:
        """Count in the versions that hold a target the other records that stand nowhere else.

        Nowhere else is: not in the current object, and in no version that stays. A record counts
        as the same only if its bytes are: an older state of it is something that can be lost.
        """
        staying = self._contents(key, None) if current is not None else set()
        for version in rest:
            staying |= self._contents(key, version.id)
        for item in held:
            item.others = len(self._contents(key, item.version.id) - staying)
            item.uncounted = bool(item.look.gaps)
        yield Examined()

    def _contents(self, key: str, version: str | None) -> set[int]:
        """Return what tells the records of a version apart that no target wants gone."""
        look = self.reader.look(key, version)
        return {
            hash(spot.entry.data)
            for spot in self.reader.spots(look)
            if not self.reader.keys_in_copy(spot)
        }

    def _residue(self, item: _Held) -> Iterator[Observation]:
        store, settings = self.reader.store, self.reader.store.settings
        version = item.version
        lock: Lock | None = NO_LOCK
        try:
            lock = lock_of(store, version.key, version.id)
        except Permanent as error:
            yield NotChecked(item.look.where, f"its lock: {error}", ProblemCode(error.problem))
        if lock is None:
            return
        tags = self.bucket.tags_of(version.key, version.id)
        aged = Aged(version.key, version.size, tags, item.since, item.newer)
        until = self.bucket.rules.version_until(aged, store.now())
        has_others = bool(item.others) or item.uncounted
        kept_with_others = has_others and settings.versions == "keep"
        stopped = lock.stops(bypass=settings.bypass_governance)
        fixable = not (kept_with_others or stopped or self.bucket.mfa_delete)
        if lock.hold:
            until = None
        elif stopped and lock.until is not None:
            # When the lock ends, the next sweep removes it, if nothing else keeps it.
            waits = not (kept_with_others or self.bucket.mfa_delete)
            until = lock.until if waits else until and max(until, lock.until)
        yield Residue(
            item.look.where,
            self._why(item, lock, stopped=stopped, kept_with_others=kept_with_others),
            until=until,
            fixable=fixable,
            handle={"kind": "version", "key": version.key, "version": version.id},
            keys=item.keys,
        )

    def _why(self, item: _Held, lock: Lock, *, stopped: bool, kept_with_others: bool) -> str:
        reasons = ["an older version that the bucket keeps"]
        if lock.hold:
            reasons.append("under a legal hold, which has no end date")
        elif stopped:
            reasons.append(f"under Object Lock ({lock.mode})")
        if self.bucket.mfa_delete:
            reasons.append("only the root user may delete it, with a second factor (MFA Delete)")
        if item.others:
            records = "1 other record" if item.others == 1 else f"{item.others} other records"
            stand = "stands" if item.others == 1 else "stand"
            reasons.append(f"{records}, or older states of them, {stand} nowhere else")
        if item.uncounted:
            reasons.append("a part of it cannot be read, so other records may stand there")
        if kept_with_others:
            reasons.append("'versions: delete' in the manifest lets them go with it")
        return "; ".join(reasons)

    def _markers(self, key: str, history: Sequence[Version]) -> Iterator[Observation]:
        """Yield what is left of an object that is gone: markers whose key names the record."""
        if self.reader.form is not Format.OBJECT or not history:
            return
        look = self.reader.look(key)
        keys = self.reader.keys_of(self.reader.unread(look))
        if keys or key in self.touched:
            yield Residue(
                look.where,
                "a delete marker with nothing under it still bears the key",
                fixable=not self.bucket.mfa_delete,
                handle={"kind": "marker", "key": key},
                keys=keys or self.touched[key],
            )

    # --- uploads --------------------------------------------------------------------------

    def _uploads(self) -> Iterator[Observation]:
        store = self.reader.store
        try:
            uploads = list(store.uploads())
        except Permanent as error:
            if error.problem == ProblemCode.UNREACHABLE:
                raise
            self.whole = False
            yield NotChecked(
                self.reader.places.bucket,
                f"its unfinished uploads cannot be listed: {error}",
                ProblemCode(error.problem),
            )
            return
        for upload in uploads:
            look = self.reader.look(upload.key)
            keys: frozenset[int] | None = self.touched.get(upload.key)
            if self.reader.form is Format.OBJECT:
                by_key = self.reader.keys_of(self.reader.unread(look))
                keys = (keys or frozenset()) | by_key if by_key else keys
            if keys is not None:
                handle: Mapping[str, object] = {
                    "kind": "upload",
                    "key": upload.key,
                    "upload": upload.id,
                }
                yield Residue(
                    look.where,
                    "the parts of an upload to this object that was never finished",
                    until=self.bucket.rules.upload_until(upload.key, upload.begun, store.now()),
                    fixable=True,
                    handle=handle,
                    keys=keys,
                )
            elif not self.reader.key_decides and self.reader.targets:
                self.whole = False
                yield NotChecked(
                    look.where,
                    f"the parts of an upload begun {upload.begun:%Y-%m-%d %H:%M} UTC, which was "
                    "not finished, cannot be read",
                )


def _stands_in(needle: str, entry: Entry) -> bool:
    """Whether a needle is seen in what a record decodes to."""
    return (
        any(needle in text for _, text, _ in entry.strings(numbers=True))
        or any(needle in text for text in entry.lines())
        or needle in entry.name
    )
