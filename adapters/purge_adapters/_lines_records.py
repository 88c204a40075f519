"""What the contract's matcher needs of each record of a text: its names, fields and texts.

Pure: no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Final

from purge.adapter import Site
from purge.matching import Flavor, carries_marker, read_markers
from purge.targets import Record, Text, Trace
from purge_adapters._lines_grammar import Grammar, Span
from purge_adapters._markdown_text import Lines, body, digest, read_lines, visible

_STAMP: Final = re.compile(r"\[purged (\S+) (\d{4}-\d{2}-\d{2})\]")
_BETWEEN: Final = re.compile(r"\s*,\s*")


@dataclass(frozen=True, slots=True)
class LineFields:
    """Which fields say what about a record, as the manifest has it.

    ``$key`` is the path of the file, ``$kind`` the kind of the record, ``$id`` its own id.
    """

    id: str | None = None
    time: str | None = None
    subject: str | None = None
    scope: Mapping[str, str] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, id: str | None, time: str | None) -> LineFields:
        """Return what the manifest maps for a site."""
        return cls(id, time, site.subject, site.scope, site.derived_from)

    @property
    def named(self) -> tuple[str, ...]:
        """Every field of a record that is mapped."""
        names = (self.id, self.time, self.subject, *self.scope.values(), *self.parents.values())
        return tuple(dict.fromkeys(name for name in names if name and not name.startswith("$")))

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields that a blanked record keeps: who it is and where it comes from."""
        names = (self.id, *self.scope.values(), *self.parents.values())
        return tuple(name for name in names if name and name != self.subject)


@dataclass(frozen=True, slots=True)
class Transcript:
    """One file, taken apart. ``name`` is how ids call it: a path."""

    name: str
    lines: Lines
    spans: tuple[Span, ...]


def take_apart(grammar: Grammar, name: str, data: bytes) -> Transcript:
    """Take a file apart."""
    lines = read_lines(data)
    return Transcript(name, lines, grammar.read(lines.lines))


@dataclass(frozen=True, slots=True)
class Entry:
    """One record, ready to be matched.

    Args:
        span: its lines.
        id: the name under which it is known; unique in the file.
        said: its words, without the prefixes of their lines.
        digest: of its bytes, with ``ordinal`` among those that have the same.
        siblings: how many records the file has.
        named: it has an id of its own.
    """

    span: Span
    id: str
    said: str
    record: Record
    values: Mapping[str, str]
    digest: str
    ordinal: int
    siblings: int
    named: bool
    blanked: bool
    carries_marker: bool


def entries_of(text: Transcript, grammar: Grammar, fields: LineFields) -> tuple[Entry, ...]:
    """Return the records of a text, in order."""
    counts: dict[str, int] = {}
    found: list[Entry] = []
    for span in text.spans:
        own = text.lines.lines[span.start : span.end]
        name = digest([text.lines.encode("".join(own))])
        ordinal = counts[name] = counts.get(name, -1) + 1
        values = {
            **grammar.values(span, text.lines.lines),
            "$key": text.name,
            "$kind": span.kind,
        }
        own_id = values.get(fields.id) if fields.id else None
        id = own_id or f"{text.name}#~{name[:16]}" + (f"~{ordinal + 1}" if ordinal else "")
        values["$id"] = id
        said = said_by(text.lines, grammar, span)
        blanked = _is_blanked(said, grammar, span.kind)
        texts = _kept_texts(values, fields) if blanked else _texts(text.lines, grammar, span, said)
        record = Record(
            id,
            tuple(texts),
            _listed(values.get(fields.subject or "")),
            {key: values[name] for key, name in fields.scope.items() if name in values},
            {
                source: _listed(values.get(name))
                for source, name in fields.parents.items()
                if name is not None and values.get(name)
            },
        )
        found.append(
            Entry(
                span,
                id,
                said,
                record,
                values,
                name,
                ordinal,
                len(text.spans),
                own_id is not None,
                blanked,
                carries_marker(said),
            )
        )
    return tuple(found)


def said_by(lines: Lines, grammar: Grammar, span: Span) -> str:
    """Return what a record says: its lines without their prefixes, with ``\\n`` as their ends."""
    return "\n".join(
        grammar.prefix(span, at, body(lines.lines[at]))[1] for at in range(span.start, span.end)
    )


def _texts(lines: Lines, grammar: Grammar, span: Span, said: str) -> Iterator[Text]:
    kind = grammar.kinds.get(span.kind)
    flavor = Flavor.MARKDOWN if kind is not None and kind.markdown else Flavor.PLAIN
    yield Text(span.kind, said, flavor)
    if flavor is Flavor.MARKDOWN and (shown := visible(said.replace("\0", " "))) != said:
        yield Text(span.kind, shown, flavor)
    # As it is written as well: a name in a prefix is text too. A marker that stands behind a
    # prefix would no longer be one there, so its line is left out.
    markers = {line.number for line in read_markers(said) if line.counts}
    written = "\n".join(
        body(lines.lines[at])
        for at in range(span.start, span.end)
        if at - span.start + 1 not in markers
    )
    if written != said:
        yield Text(span.kind, written)


def _kept_texts(values: Mapping[str, str], fields: LineFields) -> Iterator[Text]:
    """Yield what a blanked record still says: everything that stands before its words."""
    for name, value in values.items():
        if name not in ("$key", "$kind", "$id", fields.id):
            yield Text("kept fields", value)


def _listed(value: str | None) -> tuple[str, ...]:
    """Return every id that a field names; several stand between commas, in brackets or not."""
    if value is None:
        return ()
    inner = value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value
    return tuple(dict.fromkeys(part.strip() for part in _BETWEEN.split(inner) if part.strip()))


def trace_of(entry: Entry, fields: LineFields) -> Trace:
    """Return what a record says and what its fields say, as a copy of it would."""
    metadata = tuple(
        value
        for name, value in entry.values.items()
        if not name.startswith("$") and name != fields.id
    )
    return Trace(entry.id, () if entry.blanked else (entry.said,), metadata)


def created(entry: Entry, fields: LineFields, zone: tzinfo) -> datetime | None:
    """Return when a record says that it was made; a time without a zone is meant in ``zone``."""
    try:
        time = datetime.fromisoformat(entry.values.get(fields.time or "", ""))
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=zone)


# --- blanked records -----------------------------------------------------------------------------


def stamp(request: str, date: str) -> str:
    """Return what stands in the place of what a record said."""
    name = re.sub(r"[^\w.:-]", "_", request)
    return f"[purged {name} {date}]"


def _is_blanked(said: str, grammar: Grammar, kind: str) -> bool:
    lines = [line.strip() for line in said.split("\n") if line.strip()] or [""]
    lines[-1] = lines[-1].removesuffix(grammar.ending(kind, lines[-1]))
    first, *others = [line for line in lines if line] or [""]
    return _STAMP.fullmatch(first) is not None and all(
        any(pattern.fullmatch(other) for pattern in grammar.fields.values()) for other in others
    )


def blanked_lines(
    text: Transcript, entry: Entry, grammar: Grammar, fields: LineFields, said: str
) -> Sequence[str]:
    """Return the lines that take the place of a record's, without their ends.

    What stands before the words of the first line stays, and a line for each field that stands
    below, so that the record is known as before and says where it comes from.
    """
    lines = text.lines.lines
    span = entry.span

    def before(at: int) -> str:
        return grammar.prefix(span, at, body(lines[at]))[0]

    first = body(lines[span.start])
    heading, words = grammar.prefix(span, span.start, first)
    behind = first[len(heading) + len(words) :]
    alone = heading == first and heading and span.end > span.start + 1
    made = [heading, before(span.start + 1) + said] if alone else [heading + said + behind]
    for name, at, match in grammar.fields_in(span, lines):
        kept = (before(at) if at > span.start else "") + match[0]
        if name in fields.kept and kept not in made:
            made.append(kept)
    last = span.end - 1
    ending = grammar.ending(span.kind, body(lines[last]))
    if ending and last == span.start:
        made[-1] += ending
    elif ending:
        made.append(before(last) + ending)
    return made
