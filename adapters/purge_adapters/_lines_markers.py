"""Marker lines in the records of texts: reading them without the prefixes, and striking one.

Whether a line counts is decided over what its record says. Striking rewrites one line of a file
and keeps every other byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from purge.adapter import Examined, Marker, NotAMarker, NotChecked, ProblemCode
from purge.matching import MarkerLine, read_markers, strike
from purge_adapters._lines_grammar import Grammar
from purge_adapters._lines_records import Entry, Transcript
from purge_adapters._markdown_text import body
from purge_adapters._text_files import DAMAGED, Opened, TextFiles
from purge_adapters._text_remove import NOT_STRUCK, Strike

__all__ = ["markers_in", "strike_one"]

_Entries = Callable[[Transcript], Sequence[Entry]]
_Files = TextFiles[Transcript]


def markers_in(
    files: _Files, entries_of: _Entries, grammar: Grammar, where: Mapping[str, str]
) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
    """Yield what ``markers`` of the adapter yields."""
    for item in files.read():
        if isinstance(item, NotChecked):
            yield item
            continue
        if item.note.lines.damaged:
            yield NotChecked(item.shown, DAMAGED, ProblemCode.CORRUPT)
        for found in _found_in(item, entries_of, grammar):
            why = found.line.why or _why_not_here(item, found.entry, grammar, where)
            yield NotAMarker(found.marker.where, why) if why else found.marker
        yield Examined(files=1, bytes=item.size)


@dataclass(frozen=True, slots=True)
class _Found:
    """A line that is a marker or like one; ``at``: which line of the file, from 0."""

    line: MarkerLine
    entry: Entry
    at: int
    marker: Marker


def _found_in(item: Opened[Transcript], entries_of: _Entries, grammar: Grammar) -> Iterator[_Found]:
    times: Counter[tuple[str, str]] = Counter()
    for entry in entries_of(item.note):
        for line in read_markers(entry.said, front_matter=grammar.whole):
            at = entry.span.start + line.number - 1
            key = (entry.digest, line.phrase)
            times[key] += line.counts
            marker = Marker(
                record=entry.id,
                phrase=line.phrase,
                where=f"{item.shown}, line {at + 1}",
                scope=dict(entry.record.scope),
                created=datetime.fromtimestamp(item.fingerprint.mtime_ns / 1e9, UTC),
                handle={"file": item.place, "record": entry.digest, "ordinal": times[key]},
            )
            yield _Found(line, entry, at, marker)


def _why_not_here(
    item: Opened[Transcript], entry: Entry, grammar: Grammar, where: Mapping[str, str]
) -> str:
    """Say why no marker of a record is obeyed; nothing when they are."""
    if item.note.lines.damaged:
        return "its file may be damaged"
    kind = grammar.kinds.get(entry.span.kind)
    if kind is not None and not kind.markers:
        return f"records of the kind '{entry.span.kind}' give no markers"
    for name, wanted in where.items():
        if entry.values.get(name) != wanted:
            return f"its record does not have the value of '{name}' that counts"
    return ""


def strike_one(
    files: _Files,
    entries_of: _Entries,
    grammar: Grammar,
    item: Opened[Transcript],
    jobs: Sequence[Strike],
) -> Iterator[NotChecked]:
    """Strike some markers of one file; yield those that are not there any more."""
    there = {
        (str(found.marker.handle["record"]), found.marker.handle["ordinal"], found.line.phrase): (
            found
        )
        for found in _found_in(item, entries_of, grammar)
        if found.line.counts
    }
    lines = list(item.note.lines.lines)
    for marker, replacement in jobs:
        handle = marker.handle
        found = there.get((str(handle["record"]), handle["ordinal"], marker.phrase))
        if found is None:
            yield NotChecked(marker.where, NOT_STRUCK, ProblemCode.CHANGED_UNDERNEATH)
            continue
        line = lines[found.at]
        prefix, said = grammar.prefix(found.entry.span, found.at, body(line))
        behind = line[len(prefix) + len(said) :]
        lines[found.at] = prefix + strike(said, {1: replacement}) + behind
    if lines != list(item.note.lines.lines):
        files.replace(item, item.note.lines.joined(lines))
