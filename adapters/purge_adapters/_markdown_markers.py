"""Marker lines in notes: reading them in the structure of their file, and striking one.

Whether a line counts is decided over the whole file, however small its records are. Striking
rewrites one line of a file and keeps every other byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from purge.adapter import Examined, Marker, NotAMarker, NotChecked, ProblemCode
from purge.matching import MarkerLine, read_markers, strike
from purge_adapters._markdown_fields import FieldReader, front_list, list_of
from purge_adapters._markdown_files import DAMAGED, Files, Opened
from purge_adapters._markdown_front import look_up
from purge_adapters._markdown_records import FieldMap, Grain, field_text, grain_in
from purge_adapters._markdown_text import digest
from purge_adapters._markdown_units import Unit, said_in_front, units_of
from purge_adapters._text_remove import NOT_STRUCK, Strike

__all__ = ["markers_in", "strike_one"]


def markers_in(
    files: Files, grain: Grain, fields: FieldMap, where: Mapping[str, str]
) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
    """Yield what ``markers`` of the adapter yields."""
    for item in files.read():
        if isinstance(item, NotChecked):
            yield item
            continue
        if item.note.lines.damaged:
            yield NotChecked(item.shown, DAMAGED, ProblemCode.CORRUPT)
        for found in _found_in(item, grain, fields):
            if found.line.why:
                why = found.line.why
            elif item.note.lines.damaged:
                why = "its file may be damaged"
            else:
                why = _why_not_here(item, found.unit, found.marker, where)
            yield NotAMarker(found.marker.where, why) if why else found.marker
        yield Examined(files=1, bytes=item.size)


@dataclass(frozen=True, slots=True)
class _Found:
    """A line of a note that is a marker or like one, and the record in which it stands."""

    line: MarkerLine
    unit: Unit | None
    marker: Marker


def _found_in(item: Opened, grain: Grain, fields: FieldMap) -> Iterator[_Found]:
    note = item.note
    units: tuple[Unit, ...] | None = None
    times: Counter[tuple[str, str]] = Counter()
    text = "".join(note.lines.lines)
    for line in read_markers(text, front_matter=note.front.size > 0):
        where = f"{item.shown}, line {line.number}"
        if not line.counts:
            yield _Found(line, None, Marker("", "", where))
            continue
        if units is None:
            units = units_of(note, grain, fields)
        unit = _around(units, grain_in(note, grain), line.number - 1)
        if unit is None:
            # By itself: it is no part of any block, and goes with none.
            content = digest(note.bytes([(line.number - 1, line.number)]))
            name, scope = f"{note.name}#~{content[:16]}", said_in_front(note, fields).scope
        else:
            content, name, scope = unit.digest, unit.id, unit.said.scope
        key = (content, line.phrase)
        times[key] += 1
        yield _Found(
            line,
            unit,
            Marker(
                record=name,
                phrase=line.phrase,
                where=where,
                scope=dict(scope),
                created=datetime.fromtimestamp(item.fingerprint.mtime_ns / 1e9, UTC),
                handle={"file": item.place, "record": content, "ordinal": times[key]},
            ),
        )


def _around(units: Sequence[Unit], grain: Grain, at: int) -> Unit | None:
    """Return the smallest record in which a line stands."""
    holding = (
        unit
        for unit in reversed(units)
        if unit.part.grain is grain and any(start <= at < end for start, end in unit.spans)
    )
    return next(holding, None)


def _why_not_here(item: Opened, unit: Unit | None, marker: Marker, where: Mapping[str, str]) -> str:
    """Say why no marker of a record is obeyed; nothing when they are."""
    for name, wanted in where.items():
        if set(_values(item, unit, marker, name)) != {wanted}:
            return f"its record does not have the value of '{name}' that counts"
    return ""


def _values(item: Opened, unit: Unit | None, marker: Marker, name: str) -> Iterator[str]:
    """Yield what the front matter and, in a section, the record itself say of a field."""
    if name == "$key":
        yield item.note.name
    elif name == "$id":
        yield marker.record
    else:
        if (value := look_up(item.note.front.values, name)) is not None:
            yield from front_list(value)
        if unit is not None and unit.part.grain is Grain.SECTION:
            said = FieldReader([name]).read(field_text(item.note, unit.part.own))
            yield from list_of(said.get(name, ()))


# --- striking ------------------------------------------------------------------------------------


def strike_one(
    files: Files, grain: Grain, fields: FieldMap, item: Opened, jobs: Sequence[Strike]
) -> Iterator[NotChecked]:
    """Strike some markers of one note; yield those that are not there any more."""
    there = {
        (str(found.marker.handle["record"]), found.marker.handle["ordinal"], found.line.phrase): (
            found.line.number
        )
        for found in _found_in(item, grain, fields)
        if found.line.counts
    }
    replacements: dict[int, str] = {}
    for marker, replacement in jobs:
        handle = marker.handle
        number = there.get((str(handle["record"]), handle["ordinal"], marker.phrase))
        if number is None:
            yield NotChecked(marker.where, NOT_STRUCK, ProblemCode.CHANGED_UNDERNEATH)
        else:
            replacements[number] = replacement
    if replacements:
        lines = item.note.lines
        files.replace(item, lines.joined([strike("".join(lines.lines), replacements)]))
