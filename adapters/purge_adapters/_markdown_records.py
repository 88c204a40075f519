"""The records of a note: the whole file, its sections, or its smallest blocks.

A record is some lines of a note, the text in them that is its own, and what is said about it.
Which of them holds a target is decided by the contract's matcher. Pure: no input or output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from purge_adapters._markdown_blocks import scan
from purge_adapters._markdown_fields import FieldReader, block_id, without_prefixes
from purge_adapters._markdown_front import Entry, Front, read_front
from purge_adapters._markdown_kinds import Block, Kind, walk
from purge_adapters._markdown_text import Lines, body, plain_ends, read_lines

Span = tuple[int, int]


class Grain(StrEnum):
    """How large a record is, and of what sort."""

    FILE = "file"
    SECTION = "section"
    BLOCK = "block"
    NOTE = "file-or-block"
    """The whole file where it has front matter, which says what it is; otherwise the blocks."""
    RUN = "run"
    """Headings of one level right below each other, which some programs write for one text with
    several lines. A record only for what none of them holds alone."""
    FRONT = "front"
    """The front matter, where records are smaller than the file."""
    ENTRY = "entry"
    """One key of the front matter."""


@dataclass(frozen=True, slots=True)
class Note:
    """One file, taken apart.

    ``name`` is how ids call it: a path.
    """

    name: str
    lines: Lines
    front: Front
    blocks: tuple[Block, ...]

    def text(self, spans: Iterable[Span]) -> str:
        """Return the lines of some spans, with ``\\n`` as their ends."""
        return plain_ends("".join("".join(self.lines.lines[a:b]) for a, b in spans))

    def bytes(self, spans: Iterable[Span]) -> tuple[bytes, ...]:
        """Return the bytes of some spans."""
        return tuple(self.lines.encode("".join(self.lines.lines[a:b])) for a, b in spans)


def read_note(name: str, data: bytes) -> Note:
    """Take a file apart."""
    lines = read_lines(data)
    front = read_front(lines.lines)
    return Note(name, lines, front, scan(lines.lines, front.size))


@dataclass(frozen=True, slots=True)
class Part:
    """A record before anything is read from it.

    Args:
        spans: the lines that go with it.
        own: the blocks whose text is its own; of a list item the lines outside its children.
        within: the index of the record around it.
        members: of a run: the indexes of its headings' records.
    """

    grain: Grain
    kind: Kind
    spans: tuple[Span, ...]
    own: tuple[Block, ...] = ()
    within: int | None = None
    members: tuple[int, ...] = ()
    entry: Entry | None = None
    anchor: str | None = None
    """The block id that names it."""
    heading: str | None = None
    """The heading that names it, when no other section of the note has the same."""


def grain_in(note: Note, grain: Grain) -> Grain:
    """Return how large the records of this note are: ``FILE``, ``SECTION`` or ``BLOCK``."""
    if grain is Grain.NOTE:
        return Grain.FILE if note.front.size else Grain.BLOCK
    return grain


def parts_of(note: Note, grain: Grain) -> tuple[Part, ...]:
    """Return the records of a note, each after the one around it.

    Args:
        note: the note.
        grain: ``FILE``, ``SECTION``, ``BLOCK`` or ``NOTE``.
    """
    grain = grain_in(note, grain)
    if grain is Grain.FILE:
        if not note.lines.lines:
            return ()
        everything = ((0, len(note.lines.lines)),)
        return (Part(Grain.FILE, Kind.PARAGRAPH, everything, tuple(walk(note.blocks))),)
    made = _Maker(note)
    made.front()
    if grain is Grain.SECTION:
        made.sections()
    else:
        made.blocks()
    return tuple(made.parts)


def own_spans(block: Block) -> tuple[Span, ...]:
    """Return the lines of a block that belong to no list item within it."""
    spans: list[Span] = []
    at = block.start
    for child in block.children:
        if child.start > at:
            spans.append((at, child.start))
        at = child.end
    if block.end > at:
        spans.append((at, block.end))
    return tuple(spans)


@dataclass(slots=True)
class _Maker:
    note: Note
    parts: list[Part] = field(default_factory=list)

    def front(self) -> None:
        front = self.note.front
        if not front.size:
            return
        whole = ((0, front.size),)
        self.parts.append(Part(Grain.FRONT, Kind.FRONT, whole))
        at = len(self.parts) - 1
        if front.entries:
            for entry in front.entries:
                self.parts.append(
                    Part(
                        Grain.ENTRY,
                        Kind.FRONT,
                        ((entry.start, entry.end),),
                        within=at,
                        entry=entry,
                    )
                )
        elif any(body(line).strip() for line in self.note.lines.lines[1 : front.size - 1]):
            # It cannot be cut: what it holds can be seen, and not be removed by itself.
            self.parts.append(Part(Grain.ENTRY, Kind.FRONT, whole, within=at))

    # --- blocks ---------------------------------------------------------------------------------

    def blocks(self) -> None:
        headings: list[int] = []
        previous: int | None = None
        for block in self.note.blocks:
            if block.kind in _STRUCTURE:
                if block.kind is not Kind.BLANK:
                    previous = None
                continue
            if (
                previous is not None
                and (anchor := self._lone_anchor(block)) is not None
                and self._may_take(previous)
            ):
                self._take_anchor(previous, block, anchor)
                continue
            at = self._block(block, None)
            previous = at
            if not self._goes_on(headings, at):
                self._run(headings)
                headings = []
            if block.kind is Kind.HEADING and not block.setext:
                headings.append(at)
        self._run(headings)

    def _block(self, block: Block, within: int | None) -> int:
        spans = ((block.start, block.end),)
        anchor = None
        if block.kind not in _OPAQUE:
            anchor = block_id(self.note.text(own_spans(block)))
        self.parts.append(Part(Grain.BLOCK, block.kind, spans, (block,), within, anchor=anchor))
        at = len(self.parts) - 1
        for child in block.children:
            self._block(child, at)
        return at

    def _goes_on(self, headings: Sequence[int], at: int) -> bool:
        """Whether a heading stands right below the ones collected, with their level."""
        if not headings:
            return True
        last, new = self.parts[headings[-1]], self.parts[at]
        old_block, new_block = last.own[0], new.own[0]
        return (
            new_block.kind is Kind.HEADING
            and not new_block.setext
            and new_block.start == old_block.end
            and (new_block.level, new_block.quote) == (old_block.level, old_block.quote)
        )

    def _run(self, headings: Sequence[int], grain: Grain = Grain.BLOCK) -> None:
        if len(headings) < 2:
            return
        members = [self.parts[at] for at in headings]
        spans: tuple[Span, ...]
        if grain is Grain.SECTION:
            spans = ((members[0].spans[0][0], members[-1].spans[-1][1]),)
        else:
            spans = tuple(span for member in members for span in member.spans)
        own = tuple(member.own[0] for member in members)
        within = members[0].within
        self.parts.append(
            Part(Grain.RUN, Kind.HEADING, spans, own, within, members=tuple(headings))
        )

    def _lone_anchor(self, block: Block) -> str | None:
        if block.kind is not Kind.PARAGRAPH or block.end - block.start != 1 or block.quote:
            return None
        text = body(self.note.lines.lines[block.start]).strip()
        return block_id(text) if text.startswith("^") and " " not in text else None

    def _may_take(self, at: int) -> bool:
        """Whether a ``^block-id`` on a line of its own below a record names that record."""
        part = self.parts[at]
        block = part.own[0]
        if part.anchor is not None:
            return False
        if block.quote:
            alone = at == 0 or not self.parts[at - 1].own or not self.parts[at - 1].own[0].quote
            return alone and block.kind is not Kind.ITEM
        return block.kind in (Kind.FENCE, Kind.HTML, Kind.CODE, Kind.COMMENT)

    def _take_anchor(self, at: int, block: Block, anchor: str) -> None:
        part = self.parts[at]
        self.parts[at] = Part(
            part.grain,
            part.kind,
            ((part.spans[0][0], block.end),),
            (*part.own, block),
            part.within,
            anchor=anchor,
        )

    # --- sections -------------------------------------------------------------------------------

    def sections(self) -> None:
        blocks = [block for block in self.note.blocks if block.kind is not Kind.FRONT]
        heads = [
            at for at, block in enumerate(blocks) if block.kind is Kind.HEADING and not block.quote
        ]
        first = heads[0] if heads else len(blocks)
        self._section(blocks[:first], blocks[:first], None)
        names = [self._heading(blocks[at]) for at in heads]
        times = Counter(names)
        around: list[tuple[int, int]] = []  # Level and index of the open sections.
        runs: list[list[int]] = []
        for number, at in enumerate(heads):
            level = blocks[at].level
            following = heads[number + 1] if number + 1 < len(heads) else len(blocks)
            end = next((n for n in heads[number + 1 :] if blocks[n].level <= level), len(blocks))
            while around and around[-1][0] >= level:
                around.pop()
            name = names[number] if times[names[number]] == 1 else None
            within = around[-1][1] if around else None
            made = self._section(blocks[at:end], blocks[at:following], within, name)
            assert made is not None
            around.append((level, made))
            if runs and self._goes_on(runs[-1], made):
                runs[-1].append(made)
            elif not blocks[at].setext:
                runs.append([made])
        for run in runs:
            self._run(run, Grain.SECTION)

    def _section(
        self,
        blocks: Sequence[Block],
        own: Sequence[Block],
        within: int | None,
        heading: str | None = None,
    ) -> int | None:
        """Add a section of some blocks, without the blank lines around it."""
        full = [block for block in blocks if block.kind is not Kind.BLANK]
        if not full:
            return None
        spans = ((full[0].start, full[-1].end),)
        held = tuple(block for block in walk(own) if block.kind is not Kind.BLANK)
        self.parts.append(
            Part(Grain.SECTION, full[0].kind, spans, held, within, heading=heading or None)
        )
        return len(self.parts) - 1

    def _heading(self, block: Block) -> str:
        lines = self.note.lines.lines[block.start : block.end - (1 if block.setext else 0)]
        text = without_prefixes(plain_ends("".join(lines))).strip().rstrip("#").strip()
        return " ".join(text.split())


_STRUCTURE = frozenset((Kind.FRONT, Kind.BLANK, Kind.MARKER, Kind.TABLE_RULE, Kind.RULE))
"""Blocks that hold no words of their own, or none that may be matched."""
_OPAQUE = frozenset((Kind.FENCE, Kind.OPEN_FENCE, Kind.CODE, Kind.HTML, Kind.COMMENT))
"""Blocks in which nothing is said about a record."""


def field_text(note: Note, own: Iterable[Block]) -> str:
    """Return the part of a record in which fields may stand: all but code and
    front matter."""
    return "\n".join(
        without_prefixes(note.text(own_spans(block)))
        for block in own
        if block.kind not in (Kind.FRONT, Kind.FENCE, Kind.OPEN_FENCE, Kind.CODE)
    )


def enclosing(parts: Sequence[Part], at: int) -> Iterator[int]:
    """Yield the indexes of the records around one, from the inside."""
    within = parts[at].within
    while within is not None:
        yield within
        within = parts[within].within


def without_spans(spans: Sequence[Span], holes: Iterable[Span]) -> tuple[Span, ...]:
    """Return ``spans`` without the lines of ``holes``."""
    left = list(spans)
    for a, b in holes:
        cut: list[Span] = []
        for start, end in left:
            if b <= start or end <= a:
                cut.append((start, end))
                continue
            if start < a:
                cut.append((start, a))
            if b < end:
                cut.append((b, end))
        left = cut
    return tuple(left)


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Which fields say what about a record, as the manifest has it."""

    id: str | None = None
    subject: str | None = None
    scope: Mapping[str, str] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    reader: FieldReader = field(default_factory=lambda: FieldReader(()))

    @classmethod
    def of(
        cls,
        id: str | None,
        subject: str | None,
        scope: Mapping[str, str],
        parents: Mapping[str, str | None],
    ) -> FieldMap:
        """Make one with a reader for its names."""
        names = [id, subject, *scope.values(), *parents.values()]
        reader = FieldReader(name for name in names if name)
        return cls(id, subject, scope, parents, reader)

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields that a blanked record keeps: what says who it is and where it comes from.

        Not the subject, which may be what has to be forgotten.
        """
        names = [self.id, *self.parents.values(), *self.scope.values()]
        return tuple(
            dict.fromkeys(
                name for name in names if name and not name.startswith("$") and name != self.subject
            )
        )
