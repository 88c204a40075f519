"""Finding the records of a site that a target names, in the current objects. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from purge.adapter import Examined, Finding, Match, NotChecked, Readability
from purge.matching import How
from purge.targets import Hit, Trace
from purge_adapters._jsonl_match import is_certain
from purge_adapters._s3_look import Look, Reader
from purge_adapters._s3_records import Spot
from purge_adapters._s3_settings import Format

__all__ = ["affected", "find", "mark"]

_MARK = "s3-object:"


def mark(key: str) -> str:
    """Return what a trace keeps of the object in which a record stood."""
    return _MARK + key


def affected(trace: Trace) -> Iterator[str]:
    """Yield the keys of the objects in which a record was seen."""
    for value in trace.metadata:
        if value.startswith(_MARK):
            yield value.removeprefix(_MARK)


@dataclass(slots=True)
class _Group:
    """All that is known of one record: lines in several exports may have one id."""

    name: str
    part: str
    has_id: bool
    parts: dict[tuple[str, int], dict[str, object]] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    hits: dict[Hit, None] = field(default_factory=dict)
    parents: dict[str, dict[str, None]] = field(default_factory=dict)
    subjects: dict[str, None] = field(default_factory=dict)
    scope: Mapping[str, str] = field(default_factory=dict)
    created: datetime | None = None
    marker: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every record of this id was hit already."""
        return any(
            hit.how is How.ID and hit.field == "$id" and not hit.scope_unknown for hit in self.hits
        )


def find(reader: Reader) -> Iterator[Finding]:
    """Yield what ``find`` of the adapter yields."""
    groups: dict[tuple[str, str], _Group] = {}
    gaps: dict[NotChecked, None] = {}
    for listed in reader.store.objects():
        look = reader.look(listed.key)
        unlinked = 0
        for spot in _spots(reader, look, listed.etag):
            entry = spot.entry
            hits = reader.matcher.hits(entry)
            if hits:
                key = (entry.name, entry.part)
                group = groups.setdefault(key, _Group(*key, has_id=bool(entry.ids)))
                group.hits.update(dict.fromkeys(hits))
                _add(reader, group, look, spot)
            if reader.site.derived_from and not entry.parents:
                unlinked += 1
        gaps.update(dict.fromkeys(look.gaps))
        yield Examined(1, look.size, look.records, unlinked)
    _complete(reader, groups, gaps)
    yield from gaps
    for group in groups.values():
        yield _match(group)
    yield Examined()


def _spots(reader: Reader, look: Look, etag: str) -> Iterator[Spot]:
    """Yield the records of an object; it is not opened where its key already says no."""
    if reader.key_decides:
        spot = reader.unread(look)
        look.etag = etag
        if not reader.matcher.hits(spot.entry):
            yield spot
            return
        look.records -= 1
        seen = list(reader.spots(look))
        if not look.gone:
            # Why its content could not be read does not matter: the key names the record.
            look.gaps.clear()
            look.etag = look.etag or etag
            yield from seen or [spot]
        return
    yield from reader.spots(look)


def _add(reader: Reader, group: _Group, look: Look, spot: Spot) -> None:
    entry = spot.entry
    group.parts[look.key, spot.at] = {
        "key": look.key,
        "etag": look.etag,
        "version": look.read_version,
        "at": spot.at,
        "digest": look.etag if reader.form is Format.OBJECT else entry.digest,
    }
    place = {Format.JSONL: ", line", Format.JSON: ", element"}.get(reader.form, ", row")
    group.where.append(
        look.where if reader.form is Format.OBJECT else f"{look.where}{place} {spot.number}"
    )
    group.traces.append(reader.trace_of(entry))
    for source, ids in entry.parents.items():
        group.parents.setdefault(source, {}).update(dict.fromkeys(ids))
    group.subjects.update(dict.fromkeys(entry.subjects))
    group.scope = entry.scope  # The same in all of them: it is a part of what a record is.
    group.created = group.created or entry.created
    group.marker = group.marker or entry.carries_marker


def _complete(
    reader: Reader, groups: dict[tuple[str, str], _Group], gaps: dict[NotChecked, None]
) -> None:
    """Look for further records of the ids found, which no target named by themselves."""
    open_ended = {
        key: group
        for key, group in groups.items()
        if group.has_id and is_certain(tuple(group.hits)) and not group.is_complete
    }
    if not open_ended or (reader.form is Format.OBJECT and reader.store.settings.id is None):
        return
    for listed in reader.store.objects():
        look = reader.look(listed.key)
        for spot in reader.spots(look):
            group = open_ended.get((spot.entry.name, spot.entry.part))
            if group is not None and (look.key, spot.at) not in group.parts:
                _add(reader, group, look, spot)
        gaps.update(dict.fromkeys(look.gaps))


def _match(group: _Group) -> Match:
    texts = dict.fromkeys(text for trace in group.traces for text in trace.texts)
    metadata = dict.fromkeys(text for trace in group.traces for text in trace.metadata)
    metadata.update(dict.fromkeys(mark(key) for key, _ in group.parts))
    more = f" and {len(group.parts) - 1} more" if len(group.parts) > 1 else ""
    return Match(
        id=group.name,
        hits=tuple(group.hits),
        where=group.where[0] + more,
        handle={"parts": list(group.parts.values())},
        trace=Trace(
            group.name, tuple(texts), tuple(text for text in metadata if text not in texts)
        ),
        parents={source: tuple(ids) for source, ids in group.parents.items()},
        subjects=tuple(group.subjects),
        scope=group.scope,
        readability=Readability.READABLE,
        carries_marker=group.marker,
        created=group.created,
        part=group.part,
        pieces=len(group.parts),
    )
