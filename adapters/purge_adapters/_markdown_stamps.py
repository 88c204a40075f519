"""What stands in the place of a record whose text went: one line that says when, and for whom.

A tombstone keeps the sign before it (of a list item, a quote, a heading, a table row), so that
the note around it keeps its form, and the id and links of its record. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from purge_adapters._markdown_fields import tombstone
from purge_adapters._markdown_front import Front, only_keys
from purge_adapters._markdown_kinds import Block, Kind
from purge_adapters._markdown_records import FieldMap, Grain, Note
from purge_adapters._markdown_text import Lines, body, line_end
from purge_adapters._markdown_units import Unit, kept_of

_ITEM: Final = re.compile(r"((?:[ \t]*>)*[ \t]*(?:[-*+]|\d{1,9}[.)]))(?:[ \t]|$)")
_QUOTE: Final = re.compile(r"(?:[ \t]*>)+")
_PIPE: Final = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Why a text went: the request, and the day as ``YYYY-MM-DD``."""

    request: str
    date: str

    def line(self, fields: Iterable[tuple[str, Iterable[str]]], anchor: str) -> str:
        """Return the tombstone, without what stands before it."""
        return tombstone(self.request, self.date, fields, anchor)

    def comment(self) -> str:
        """Return the tombstone as it stands in front matter."""
        return "# " + self.line((), "").removeprefix("<!-- ").removesuffix(" -->")


def stamps_of(
    note: Note, unit: Unit, units: Sequence[Unit], fields: FieldMap, stamp: Stamp
) -> list[str]:
    """Return the lines that take the place of a record, without their ends.

    One for the record, and one for each record in it that has an id: others may point at it.
    """
    spans = unit.spans
    inner = [
        other
        for other in units
        if other is not unit
        and other.part.grain is unit.part.grain
        and (other.named or other.part.anchor)
        and all(any(a <= start and end <= b for a, b in spans) for start, end in other.spans)
    ]
    made = [_stamped(note, unit, fields, stamp)]
    if unit.part.grain is not Grain.RUN:
        made += [_stamped(note, other, fields, stamp) for other in inner]
    return made


def _stamped(note: Note, unit: Unit, fields: FieldMap, stamp: Stamp) -> str:
    kept, anchor = kept_of(unit, fields)
    line = stamp.line(kept, anchor)
    block = unit.part.own[0]
    first = body(note.lines.lines[block.start])
    if unit.part.grain is Grain.SECTION and block.kind is not Kind.HEADING:
        return line
    if block.kind is Kind.ITEM and (sign := _ITEM.match(first)):
        return f"{sign.group(1)} {line}"
    quote = _QUOTE.match(first)
    prefix = f"{quote.group(0)} " if block.quote and quote else ""
    if block.kind is Kind.HEADING:
        return f"{prefix}{'#' * block.level} {line}"
    if block.kind in (Kind.ROW, Kind.TABLE_HEAD):
        return prefix + _row(first, line)
    return prefix + line


def _row(text: str, first: str) -> str:
    """Return a table row with as many cells as ``text`` has, all empty but the first."""
    inner = _QUOTE.sub("", text, count=1).strip().removeprefix("|").removesuffix("|")
    return f"| {first} |" + "  |" * len(_PIPE.findall(inner))


def emptied_head(note: Note, block: Block) -> str:
    """Return the heading row of a table without its words. Without the row it is no table."""
    line = note.lines.lines[block.start]
    quote = _QUOTE.match(body(line))
    prefix = f"{quote.group(0)} " if block.quote and quote else ""
    return prefix + _row(body(line), "") + line_end(line)


def stamped_front(lines: Lines, front: Front, stamp: Stamp, fields: FieldMap) -> tuple[str, ...]:
    """Return front matter that says only who the note is and where it comes from."""
    eol = line_end(lines.lines[0]) or lines.eol
    kept = only_keys(lines.lines, front, fields.kept, eol) or (lines.lines[0], lines.lines[0])
    return (*kept[:-1], f"{stamp.comment()}{eol}", kept[-1])
