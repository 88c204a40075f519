"""What the contract's matcher needs of each record of a note: its names, fields and texts.

Pure: no input or output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from purge.matching import Flavor, is_marker_line
from purge.targets import Record, Text, Trace
from purge_adapters._markdown_fields import (
    BLANKED_FRONT,
    FieldReader,
    clean,
    front_list,
    front_one,
    is_blanked,
    list_of,
    one_of,
)
from purge_adapters._markdown_front import holds_only, look_up, strings
from purge_adapters._markdown_kinds import Block, Kind
from purge_adapters._markdown_records import (
    FieldMap,
    Grain,
    Note,
    Part,
    Span,
    enclosing,
    field_text,
    own_spans,
    parts_of,
    without_spans,
)
from purge_adapters._markdown_text import digest, visible


@dataclass(frozen=True, slots=True)
class Said:
    """What is said about a record, by itself, by the one around it, or by the front matter."""

    id: str | None
    subjects: tuple[str, ...]
    scope: Mapping[str, str]
    parents: Mapping[str, tuple[str, ...]]
    own: frozenset[str]
    """The names of the fields that the record itself has."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One record, ready to be matched.

    Args:
        part: its lines and blocks.
        spans: the lines that go with it, without those of another scope within it.
        id: the name under which it is known; unique in the note.
        aliases: other names under which a person may ask for it.
        texts: all that it says itself, for the matcher.
        digest: of its bytes, with ``ordinal`` among the ``of_same`` records that have the same.
        siblings: how many records of its grain the note has.
        named: it has an id of its own.
    """

    part: Part
    spans: tuple[Span, ...]
    id: str
    aliases: tuple[str, ...]
    said: Said
    texts: tuple[Text, ...]
    digest: str
    ordinal: int
    siblings: int
    named: bool
    blanked: bool
    carries_marker: bool

    @property
    def line(self) -> int:
        """The number of its first line, from 1."""
        return self.spans[0][0] + 1 if self.spans else 1

    def record(self) -> Record:
        """Return it as the contract's matcher wants it."""
        return Record(self.id, self.texts, self.said.subjects, self.said.scope, self.said.parents)


def units_of(note: Note, grain: Grain, fields: FieldMap) -> tuple[Unit, ...]:
    """Return the records of a note, each after the one around it."""
    parts = parts_of(note, grain)
    said = _said(note, parts, fields)
    holes = _other_scopes(parts, said)
    markers = [block.start for block in note.blocks if block.kind is Kind.MARKER]
    counts: dict[str, int] = {}
    grains: dict[Grain, int] = {}
    for part in parts:
        grains[part.grain] = grains.get(part.grain, 0) + 1
    units: list[Unit] = []
    for at, part in enumerate(parts):
        spans = without_spans(part.spans, holes.get(at, ()))
        name = digest(note.bytes(spans))
        ordinal = counts[part.grain + name] = counts.get(part.grain + name, -1) + 1
        blanked = _blanked(note, part, fields)
        own_id = _own_id(note, part, said[at].id)
        made = f"{note.name}#~{name[:16]}" + (f"~{ordinal + 1}" if ordinal else "")
        if part.grain in (Grain.RUN, Grain.ENTRY):
            made = f"{made}~{part.grain}"
        units.append(
            Unit(
                part,
                spans,
                own_id or made,
                tuple(_aliases(note, part, fields)),
                said[at],
                tuple(_kept_texts(part, said[at]) if blanked else _texts(note, part)),
                name,
                ordinal,
                grains[part.grain],
                own_id is not None,
                blanked,
                any(a <= line < b for line in markers for a, b in spans),
            )
        )
    return tuple(units)


def _own_id(note: Note, part: Part, said: str | None) -> str | None:
    if part.grain in (Grain.RUN, Grain.ENTRY):
        return None
    if said is not None:
        return said
    return f"{note.name}#^{part.anchor}" if part.anchor else None


def _aliases(note: Note, part: Part, fields: FieldMap) -> Iterator[str]:
    """Yield further names of a record. The id in the front matter names every record of a note."""
    if part.grain in (Grain.RUN, Grain.ENTRY):
        return
    if part.anchor:
        yield f"{note.name}#^{part.anchor}"
    if part.heading:
        yield f"{note.name}#{part.heading}"
    if part.grain is not Grain.FILE and (of_note := note_id(note, fields)) is not None:
        yield of_note


def note_id(note: Note, fields: FieldMap) -> str | None:
    """Return the id that the front matter gives to the note as a whole."""
    if fields.id == "$key":
        return note.name
    return front_one(look_up(note.front.values, fields.id)) if fields.id else None


# --- what is said --------------------------------------------------------------------------------


def _said(note: Note, parts: Sequence[Part], fields: FieldMap) -> list[Said]:
    of_note = said_in_front(note, fields)
    found: list[Said] = []
    for part in parts:
        if part.grain in (Grain.FRONT, Grain.ENTRY):
            found.append(of_note)
            continue
        around = found[part.within] if part.within is not None else of_note
        found.append(_said_by(note, part, fields, around))
    # What an own field of one record overrides is not said of the front matter any more: it would
    # go with the others and leave that one without its scope.
    overridden = frozenset(name for said in found for name in said.own)
    for at, part in enumerate(parts):
        if part.grain is Grain.FRONT:
            found[at] = Said(
                of_note.id,
                () if fields.subject in overridden else of_note.subjects,
                of_note.scope,
                {
                    site: ids
                    for site, ids in of_note.parents.items()
                    if fields.parents[site] not in overridden
                },
                frozenset(),
            )
        elif part.grain is Grain.ENTRY:
            about = part.entry is not None and fields.subject == part.entry.key
            subjects = of_note.subjects if about else ()
            found[at] = Said(None, subjects, of_note.scope, {}, frozenset())
    return found


def said_in_front(note: Note, fields: FieldMap) -> Said:
    values = note.front.values
    subject = look_up(values, fields.subject) if fields.subject else None
    scope = {
        key: said
        for key, name in fields.scope.items()
        if (said := note.name if name == "$key" else front_one(look_up(values, name))) is not None
    }
    of_note = note_id(note, fields)
    parents: dict[str, tuple[str, ...]] = {}
    for site, name in fields.parents.items():
        if name == "$id":
            parents[site] = (of_note,) if of_note else ()
        elif name == "$key":
            parents[site] = (note.name,)
        elif name is not None and (value := look_up(values, name)) is not None:
            parents[site] = front_list(value)
    return Said(
        of_note,
        front_list(subject) if subject is not None else (),
        scope,
        {site: ids for site, ids in parents.items() if ids},
        frozenset(),
    )


def _said_by(note: Note, part: Part, fields: FieldMap, around: Said) -> Said:
    reader = fields.reader
    everywhere = reader.read(field_text(note, part.own))
    if part.grain is Grain.FILE:
        # A line of a note may say what it derives from. The note then derives from it too.
        here: Mapping[str, list[str]] = {}
    elif part.grain is Grain.SECTION:
        here = reader.read(field_text(note, (b for b in part.own if b.kind is not Kind.ITEM)))
    else:
        here = everywhere
    id = one_of(here.get(fields.id, ())) if fields.id else None
    if part.grain is Grain.FILE:
        id = around.id
    scope = dict(around.scope)
    own: set[str] = set()
    for key, name in fields.scope.items():
        if (said := one_of(here.get(name, ()))) is not None:
            scope[key] = said
            own.add(name)
    subjects = around.subjects
    if fields.subject and (found := list_of(everywhere.get(fields.subject, ()))):
        subjects = found
        own.add(fields.subject)
    parents = dict(around.parents)
    for site, source in fields.parents.items():
        if source == "$id" and id is not None:
            parents[site] = (id,)
        elif source is not None and (found := list_of(everywhere.get(source, ()))):
            parents[site] = found
            own.add(source)
    if part.grain is Grain.FILE:
        subjects = tuple(dict.fromkeys((*around.subjects, *subjects)))
        parents = {
            site: tuple(dict.fromkeys((*around.parents.get(site, ()), *ids)))
            for site, ids in parents.items()
        }
    return Said(id, subjects, scope, parents, frozenset(own))


def _other_scopes(parts: Sequence[Part], said: Sequence[Said]) -> dict[int, list[Span]]:
    """Return, by the index of a record, the lines in it that say they are of another scope.

    A record of another scope is never touched, also when it lies within one that goes.
    """
    holes: dict[int, list[Span]] = {}
    for at, part in enumerate(parts):
        inner = ((at, around) for around in enclosing(parts, at))
        for low, high in (*inner, *((member, at) for member in part.members)):
            mine, other = said[high].scope, said[low].scope
            if any(other.get(key, value) != value for key, value in mine.items()):
                holes.setdefault(high, []).extend(parts[low].spans)
    return holes


def _blanked(note: Note, part: Part, fields: FieldMap) -> bool:
    if part.grain is Grain.ENTRY:
        return part.entry is not None and _is_blanked_front(note.text(part.spans).strip())
    if part.grain in (Grain.FRONT, Grain.FILE):
        if not holds_only(note.front, fields.kept):
            return False
        if part.grain is Grain.FRONT:
            return _is_blanked_front(note.text(part.spans))
    own = "\n".join(note.text(own_spans(b)) for b in part.own if b.kind is not Kind.FRONT)
    return is_blanked(own, fields.reader)


def _is_blanked_front(text: str) -> bool:
    return bool(BLANKED_FRONT.search(text))


# --- texts ---------------------------------------------------------------------------------------


def _texts(note: Note, part: Part) -> Iterator[Text]:
    if part.grain is Grain.ENTRY or (part.grain is Grain.FILE and note.front.size):
        spans = part.spans if part.grain is Grain.ENTRY else ((0, note.front.size),)
        yield from _readings(Kind.FRONT, note.text(spans))
        values: object = note.front.values
        if part.entry is not None and note.front.values is not None:
            values = {part.entry.key: note.front.values.get(part.entry.key or "")}
        for value in strings(values):
            yield Text(Kind.FRONT.value, value)
    if part.grain is Grain.RUN:
        yield from _readings(
            Kind.HEADING, "".join(note.text(own_spans(block)) for block in part.own)
        )
        return
    for block in part.own:
        if block.kind not in (Kind.FRONT, Kind.BLANK, Kind.MARKER):
            yield from _readings(block.kind, note.text(own_spans(block)))
    if part.grain is Grain.FILE:
        for run in parts_of(note, Grain.BLOCK):
            if run.grain is Grain.RUN:
                yield from _texts(note, run)


def _readings(kind: Kind, raw: str) -> Iterator[Text]:
    # A marker is a marker only where it stands by itself. In a fence, a comment or front matter
    # the same words are text, so they are moved off the column where the matcher passes them over.
    text = "\n".join(f" {line}" if is_marker_line(line) else line for line in raw.split("\n"))
    yield Text(kind.value, text, Flavor.MARKDOWN)
    shown = visible(text.replace("\0", " "))
    if shown != text:
        yield Text(kind.value, shown, Flavor.MARKDOWN)


def _kept_texts(part: Part, said: Said) -> Iterator[Text]:
    """Yield what a blanked record still says: its links and scope, which may hold words too."""
    if part.grain not in (Grain.FRONT, Grain.ENTRY):
        kept = [id for ids in said.parents.values() for id in ids]
        for value in (*kept, *said.scope.values()):
            yield Text("kept fields", value)


def trace_of(note: Note, unit: Unit, reader: FieldReader) -> Trace:
    """Return what a record says, without signs and fields (what a copy of it would say), and the
    front matter values that belong to it."""
    part, values = unit.part, note.front.values or {}
    metadata: list[str] = []
    if part.entry is not None:
        metadata += strings(values.get(part.entry.key or ""))
    elif part.grain in (Grain.FRONT, Grain.FILE):
        metadata += strings(list(values.values()))
    words: list[str] = []
    for block in () if unit.blanked else part.own:
        words += _said_in(block, note.text(own_spans(block)), reader)
    if part.grain is Grain.RUN:
        words = ["\n".join(words)]
    return Trace(unit.id, tuple(filter(None, dict.fromkeys(words))), tuple(filter(None, metadata)))


def _said_in(block: Block, text: str, reader: FieldReader) -> Iterator[str]:
    if block.kind in (Kind.FRONT, Kind.BLANK, Kind.MARKER, Kind.TABLE_RULE, Kind.RULE):
        return
    if block.kind is Kind.FENCE:
        lines = text.strip("\n").split("\n")
        closed = len(lines) > 1 and lines[-1].strip(" >").startswith(("```", "~~~"))
        yield "\n".join(lines[1:-1] if closed else lines[1:]).strip()
    elif block.kind in (Kind.ROW, Kind.TABLE_HEAD):
        for cell in clean(text, reader).strip("|").split("|"):
            yield cell.strip()
    elif block.kind is Kind.COMMENT:
        yield text.strip().removeprefix("<!--").removesuffix("-->").strip("% \n")
    elif block.kind in (Kind.CODE, Kind.HTML):
        yield text.strip()
    else:
        yield clean(text.rstrip().rpartition("\n")[0] if block.setext else text, reader)


def kept_of(unit: Unit, fields: FieldMap) -> tuple[list[tuple[str, tuple[str, ...]]], str]:
    """Return the fields and the block id that a record keeps when it is blanked.

    Only what it says itself: what the front matter says stays there.
    """
    kept: list[tuple[str, tuple[str, ...]]] = []
    said = unit.said
    if fields.id and said.id is not None and not fields.id.startswith("$"):
        kept.append((fields.id, (said.id,)))
    for site, name in fields.parents.items():
        if name and name in said.own and (name, said.parents[site]) not in kept:
            kept.append((name, said.parents[site]))
    for key, name in fields.scope.items():
        if name in said.own:
            kept.append((name, (said.scope[key],)))
    return kept, unit.part.anchor or ""
