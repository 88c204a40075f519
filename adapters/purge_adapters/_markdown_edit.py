"""Taking records out of a note, or their text, and leaving all else as it was.

What is left is scanned again: if any other block would read differently than before (two
paragraphs glued, code swallowed by a list, a rule become front matter), a blank line goes between,
then an empty comment, and where that does not help either the record is left alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge_adapters._markdown_blocks import scan
from purge_adapters._markdown_front import Entry, only_keys, read_front, without_entries
from purge_adapters._markdown_kinds import Block, Kind
from purge_adapters._markdown_records import FieldMap, Grain, Note, own_spans
from purge_adapters._markdown_stamps import Stamp, emptied_head, stamped_front, stamps_of
from purge_adapters._markdown_text import body, line_end, split_lines
from purge_adapters._markdown_units import Unit

_NOTHING: Final = "<!-- -->"
_SEPARATORS: Final = ((), ("",), ("", _NOTHING, ""))
_Reading = list[tuple[int, tuple[object, ...]]]
"""How the blocks of a note read, each with the line where it begins."""
_ROUNDS: Final = 64
"""How many joins of one file are mended one by one."""

NOT_SEPARABLE: Final = (
    "A record cannot be cut out without changing how its neighbours read. Edit the file by hand."
)
FRONT_NOT_SEPARABLE: Final = (
    "The front matter holds it in a form that cannot be cut by whole keys and stay valid. "
    "Edit the file by hand."
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A record that has to go, or (``stamp``) whose text has to."""

    unit: Unit
    stamp: Stamp | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """What becomes of a file: its new bytes, or ``None`` where the file itself goes.

    ``refused``: records that were left alone, by their place in the list of cuts.
    """

    data: bytes | None
    refused: dict[int, str] = field(default_factory=dict)


def edit(note: Note, cuts: Sequence[Cut], units: Sequence[Unit], fields: FieldMap) -> Edited:
    """Return the file without some of its records.

    Args:
        note: the file.
        cuts: the records; they may lie in each other.
        units: all records of the file of the same grain.
        fields: what the manifest maps; a blanked record keeps these.
    """
    # What was blanked before keeps the date of that day.
    everything = tuple(
        at for at, cut in enumerate(cuts) if cut.stamp is None or not cut.unit.blanked
    )
    for cut in (cuts[at] for at in everything):
        if cut.unit.part.grain is Grain.FILE:
            return Edited(None if cut.stamp is None else _blank_file(note, cut, fields))
    made = _try(note, [cuts[at] for at in everything], units, fields)
    if made is not None:
        return made
    # Some record is in the way of the others: take them one by one.
    refused: dict[int, str] = {}
    taken: list[Cut] = []
    best = Edited(note.lines.joined(note.lines.lines))
    for at in everything:
        made = _try(note, [*taken, cuts[at]], units, fields)
        if made is None:
            of_front = cuts[at].unit.part.grain in (Grain.FRONT, Grain.ENTRY)
            refused[at] = FRONT_NOT_SEPARABLE if of_front else NOT_SEPARABLE
        else:
            taken.append(cuts[at])
            best = made
    return Edited(best.data, refused)


def _try(note: Note, cuts: Sequence[Cut], units: Sequence[Unit], fields: FieldMap) -> Edited | None:
    draft = _Draft(note)
    if not draft.cut_front([cut for cut in cuts if _in_front(cut)], fields):
        return None
    for cut in cuts:
        if not _in_front(cut):
            draft.take(cut, units, fields)
    draft.finish_tables()
    draft.finish_open_fence()
    draft.take_orphans()
    lines = draft.settle()
    if lines is None:
        return None
    whole_front = any(cut.unit.part.grain is Grain.FRONT and cut.stamp is None for cut in cuts)
    if whole_front and not any(body(line).strip() for line in lines):
        return Edited(None)
    return Edited(note.lines.joined(lines))


def _in_front(cut: Cut) -> bool:
    return cut.unit.part.grain in (Grain.FRONT, Grain.ENTRY)


def _blank_file(note: Note, cut: Cut, fields: FieldMap) -> bytes:
    assert cut.stamp is not None
    eol = note.lines.eol
    front = only_keys(note.lines.lines, note.front, fields.kept, eol)
    return note.lines.joined([*front, cut.stamp.line((), "") + eol])


@dataclass(slots=True)
class _Gap:
    """A place where lines were taken out, and what stands there instead."""

    start: int
    end: int
    level: int = 0


class _Draft:
    """The lines of a note, each as it was, changed, or gone (``None``)."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.lines: list[str | None] = list(note.lines.lines)
        self.new_front: tuple[str, ...] | None = None
        """The front matter, where it is changed and not gone."""
        self.stamps: set[str] = set()
        """The lines that were put in the place of records."""
        self.blank = {
            at
            for at, line in enumerate(note.lines.lines)
            if at >= note.front.size and not body(line).strip()
        }
        self.in_quote: set[int] = set()
        for block in note.blocks:
            if block.kind is Kind.BLANK:
                self.blank.update(range(block.start, block.end))
                if block.quote:
                    self.in_quote.update(range(block.start, block.end))

    # --- taking records out ---------------------------------------------------------------------

    def cut_front(self, cuts: Sequence[Cut], fields: FieldMap) -> bool:
        """Take entries out of the front matter, or all of it; whether that could be done."""
        front, lines = self.note.front, self.note.lines
        if not cuts:
            return True
        whole = next((cut for cut in cuts if cut.unit.part.grain is Grain.FRONT), None)
        stamp = cuts[0].stamp
        gone: list[Entry] = []
        if whole is not None and whole.stamp is None:
            self._drop(0, front.size)
            return True
        if whole is not None and whole.stamp is not None:
            self.new_front = stamped_front(lines, front, whole.stamp, fields)
            return True
        for cut in cuts:
            if cut.unit.part.entry is None:
                return False
            gone.append(cut.unit.part.entry)
        instead = f"{stamp.comment()}{lines.eol}" if stamp is not None else ""
        self.new_front = without_entries(lines.lines, front, gone, instead)
        return self.new_front is not None

    def take(self, cut: Cut, units: Sequence[Unit], fields: FieldMap) -> None:
        """Take one record of the body out, or put its tombstone in its place."""
        unit = cut.unit
        first = unit.spans[0][0] if unit.spans else 0
        covered = self.lines[first] is None or body(self.lines[first] or "") in self.stamps
        head = unit.part.kind is Kind.TABLE_HEAD and unit.part.grain is Grain.BLOCK
        if head and cut.stamp is None:
            self.lines[first] = emptied_head(self.note, unit.part.own[0])
            return
        for start, end in unit.spans:
            self._drop(start, end)
        if cut.stamp is not None and unit.spans and not covered:
            stamps = stamps_of(self.note, unit, units, fields, cut.stamp)
            last = self.note.lines.lines[unit.spans[-1][1] - 1]
            eol = line_end(self.note.lines.lines[first]) or self.note.lines.eol
            # A file without a final line end keeps it that way.
            self.lines[first] = eol.join(stamps) + line_end(last)
            self.stamps.update(stamps)

    def _drop(self, start: int, end: int) -> None:
        for at in range(start, end):
            self.lines[at] = None

    def finish_tables(self) -> None:
        """Let a table go whose heading and rows all go; one that keeps a row keeps its form."""
        blocks = self.note.blocks
        for at, block in enumerate(blocks):
            if block.kind is not Kind.TABLE_HEAD:
                continue
            rows = []
            for row in blocks[at + 2 :]:
                if row.kind is not Kind.ROW:
                    break
                rows.append(row)
            changed = self.lines[block.start] != self.note.lines.lines[block.start]
            stamped = body(self.lines[block.start] or "") in self.stamps
            if changed and not stamped and all(self.lines[row.start] is None for row in rows):
                self._drop(block.start, block.end + 1)

    def finish_open_fence(self) -> None:
        """Let an opener that is never closed go with the last piece below it."""
        held = [block for block in self.note.blocks if block.kind is not Kind.BLANK]
        for at, block in enumerate(held):
            if block.kind is Kind.OPEN_FENCE:
                below = held[at + 1 :]
                if below and all(map(self._gone, below)):
                    self._drop(block.start, block.end)

    def take_orphans(self) -> None:
        """Take a ``^block-id`` on a line of its own with the list, quote or table that it names.

        Left alone it would name whatever stands above it then.
        """
        held = [block for block in self.note.blocks if block.kind is not Kind.BLANK]
        for at, block in enumerate(held):
            text = self.note.text([(block.start, block.end)]).strip()
            if block.kind is not Kind.PARAGRAPH or not text.startswith("^") or " " in text:
                continue
            named = at - 1
            kind = held[named].kind if named >= 0 else Kind.PARAGRAPH
            while named >= 0 and _named_together(held[named], kind, held[at - 1]):
                named -= 1
            group = held[named + 1 : at]
            if group and all(self._gone(part) for part in group):
                self._drop(block.start, block.end)

    def _gone(self, block: Block) -> bool:
        return all(self.lines[at] is None for at in range(block.start, block.end))

    # --- joining what is left -------------------------------------------------------------------

    def settle(self) -> list[str] | None:
        """Return the lines of the new file; ``None`` when no join keeps the others as they were."""
        gaps = self._close_gaps()
        expected = self._expected()
        for turn in range(2 * len(gaps) + 2):
            place = self._difference(self._assemble(gaps), expected)
            if place is None:
                return self._assemble(gaps)
            if turn == _ROUNDS:
                for gap in gaps:
                    gap.level = max(gap.level, 1)
            elif turn > 2 * _ROUNDS or not self._mend(gaps, expected, place):
                return None
        return None

    def _mend(self, gaps: Sequence[_Gap], expected: _Reading, place: int) -> bool:
        """Put something into the gap that makes a line read differently; whether that helped."""
        after = next((gap for gap in gaps if gap.end > place), None)
        before = next((gap for gap in reversed(gaps) if gap.end <= place), None)
        for level in (1, 2):
            for gap in (after, before):
                if gap is None or gap.level >= level:
                    continue
                old, gap.level = gap.level, level
                reached = self._difference(self._assemble(gaps), expected)
                if reached is None or reached > place:
                    return True
                gap.level = old
        return False

    def _close_gaps(self) -> list[_Gap]:
        """Drop the blank lines that would be left over, and return the places of the gaps."""
        total = len(self.lines)
        gaps: list[_Gap] = []
        at = 0
        while at < total:
            line = self.lines[at]
            if line is not None:
                if line != self.note.lines.lines[at] and self._is_ours(line):
                    gaps += [_Gap(at, at), _Gap(at + 1, at + 1)]
                at += 1
                continue
            end = place = at + 1
            while place < total and (self.lines[place] is None or place in self.blank):
                if self.lines[place] is None:
                    end = place + 1
                place += 1
            gaps.append(self._close(at, end))
            at = place
        return gaps

    def _close(self, start: int, end: int) -> _Gap:
        total = len(self.lines)
        above = start
        while above > 0 and above - 1 in self.blank:
            above -= 1
        below = end
        while below < total and below in self.blank:
            below += 1
        self._drop(start, end)
        front = self.note.front.size
        if above == 0 or (above == front and self.lines[0] is None):
            self._drop(above, below)
        elif above == front and below < total:
            self._drop(end, below)
        elif below == total:
            # The last one: the blank lines above it go, those at the end of the file stay.
            self._drop(above, start)
            if above == front:
                self._drop(end, below)
        elif self._weight(above, start) >= self._weight(end, below):
            self._drop(end, below)
        else:
            self._drop(above, start)
        return _Gap(start, end)

    def _weight(self, start: int, end: int) -> tuple[bool, int]:
        """How much some blank lines separate: those outside of quotes more than those inside."""
        return any(at not in self.in_quote for at in range(start, end)), end - start

    def _assemble(self, gaps: Sequence[_Gap]) -> list[str]:
        eol = self.note.lines.eol
        between: dict[int, tuple[str, ...]] = {}
        for gap in gaps:
            between[gap.start] = (*between.get(gap.start, ()), *_SEPARATORS[gap.level])
        lines: list[str] = list(self.new_front or ())
        skip = self.note.front.size if self.new_front is not None else 0
        for at, line in enumerate(self.lines):
            for separator in between.get(at, ()):
                if separator or not lines or body(lines[-1]).strip():
                    lines.append(f"{separator}{eol}")
            if line is None or at < skip:
                continue
            # The blank line behind a separator is not needed before one that was there.
            ours = len(lines) > 1 and not body(lines[-1]) and body(lines[-2]) == _NOTHING
            if ours and at in self.blank:
                lines.pop()
            lines.append(line)
        return list(split_lines("".join(lines)))

    def _expected(self) -> _Reading:
        """Return how every block that stays has to read, with the line where it began."""
        found: _Reading = []
        if self.new_front is not None:
            told = "".join(line for line in self.new_front if body(line).strip())
            found.append((0, (0, Kind.FRONT, 0, told)))
        self._describe(self.note.blocks, self.lines, 0, self.new_front is not None, found)
        return found

    def _describe(
        self,
        blocks: Iterable[Block],
        lines: Sequence[str | None],
        depth: int,
        skip_front: bool,
        found: _Reading,
    ) -> None:
        for block in blocks:
            if block.kind is Kind.BLANK or (skip_front and block.kind is Kind.FRONT):
                continue
            own = [
                line
                for start, end in own_spans(block)
                for line in lines[start:end]
                if line is not None and body(line).strip()
            ]
            if own and not all(self._is_ours(line) for line in own):
                found.append((block.start, (depth, block.kind, block.quote, "".join(own))))
            self._describe(block.children, lines, depth + 1, False, found)

    def _is_ours(self, line: str) -> bool:
        ours = (*self.stamps, _NOTHING)
        return all(body(part) in ours for part in split_lines(line))

    def _difference(self, lines: list[str], expected: _Reading) -> int | None:
        """Return the line from which on the new file reads differently; ``None`` when it does
        not."""
        front = read_front(lines)
        actual: _Reading = []
        self._describe(scan(lines, front.size), lines, 0, False, actual)
        for (place, wanted), (_, got) in zip(expected, actual, strict=False):
            if wanted != got:
                return place
        if len(expected) != len(actual):
            return len(self.lines)
        return None


def _named_together(block: Block, kind: Kind, last: Block) -> bool:
    if last.quote:
        return block.quote > 0
    if kind in (Kind.ROW, Kind.TABLE_RULE):
        return block.kind in (Kind.ROW, Kind.TABLE_RULE, Kind.TABLE_HEAD)
    return kind is Kind.ITEM and block.kind is Kind.ITEM
