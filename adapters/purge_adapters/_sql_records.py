"""From rows to records and matches: what is looked at, what is kept for later.

This module does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from purge.adapter import Action, Match, Readability
from purge.matching import How, carries_marker
from purge.targets import Hit, Record, Targets, Text, Trace
from purge_adapters._json_fields import moment
from purge_adapters._sql_layout import Child, Layout, Link
from purge_adapters._sql_rows import Row, Rows, Whole, identity, said
from purge_adapters._sql_scopes import scopes_above
from purge_adapters._sql_values import (
    Field,
    digest,
    holding,
    id_text,
    ids_at,
    in_pieces,
    is_closed,
    pack,
    readable_in,
    strings_at,
    strings_below,
    strings_in,
)

Parents = Mapping[str, tuple[str, ...]]
_BY_WORDS: Final = (How.EXACT, How.FOLDED)
WORDS: Final = ": words"
"""What the part of a match ends with that stands for the words in a row, and not for the row."""


class Way(StrEnum):
    """What removal does to one row."""

    DELETE = "delete"
    """It goes, with everything below it."""
    EMPTY = "empty"
    """Its text goes, and that of everything below it."""
    EMPTY_WORDS = "empty words"
    """What holds the words goes, there and in the rows below it that are no records."""

    @property
    def reaches_records_below(self) -> bool:
        """Whether the records go, or are emptied, that belong to the row."""
        return self is not Way.EMPTY_WORDS


@dataclass(frozen=True, slots=True)
class Seen:
    """A row as a record, and the row itself."""

    whole: Whole
    record: Record
    hits: tuple[Hit, ...]
    way: Way = Way.DELETE


class Records:
    """Makes records of the rows of one site."""

    def __init__(self, rows: Rows, site: str, action: Action, targets: Targets) -> None:
        self._rows = rows
        self._layout: Layout = rows.layout
        self.site = site
        self._action = action
        self._targets = targets
        self._phrases = tuple(
            phrase.encode("utf-8", "surrogatepass") for phrase in targets.phrases()
        )
        self._numbers = any(map(str.isdecimal, "".join(targets.phrases())))
        self.closed = 0
        """How many values could not be looked into."""

    def see(self, wholes: Sequence[Whole]) -> Iterator[Seen]:
        """Yield some rows as records, with the ways in which they are named.

        Where only the words go that name a row, they count as a record of their own: that the
        row is still found by its id says nothing of them.
        """
        linked = self._linked(wholes)
        above = self._scopes_above(wholes)
        for whole, scope in zip(wholes, above, strict=True):
            record = self._record(whole, linked)
            record = replace(record, scope={**scope, **record.scope}) if scope else record
            yield from self._seen(whole, record, self._hits(record))

    def ids(self) -> tuple[str, ...]:
        """Return the ids to look up in this table; ``TABLE/ID`` names a record of one table."""
        asked = self._targets.ids(self.site)
        mark = f"{self._layout.part}/"
        own = (each.removeprefix(mark) for each in asked if mark != "/" and each.startswith(mark))
        return tuple(dict.fromkeys((*asked, *filter(None, own))))

    def _hits(self, record: Record) -> tuple[Hit, ...]:
        hits = self._targets.match(self.site, record)
        if not self._layout.part:
            return hits
        by_table = Record(f"{self._layout.part}/{record.id}", (), scope=record.scope)
        return (*hits, *self._targets.match(self.site, by_table))

    def _seen(self, whole: Whole, record: Record, hits: tuple[Hit, ...]) -> Iterator[Seen]:
        whole_way = Way.EMPTY if self._action is Action.BLANK else Way.DELETE
        by_words = tuple(hit for hit in hits if hit.how in _BY_WORDS)
        others = tuple(hit for hit in hits if hit not in by_words)
        apart = bool(by_words) and self._layout.on_words is Action.BLANK
        if apart and self._layout.drops_blank and whole_way is Way.DELETE:
            apart = self._says_more(whole, record)
        if not apart:
            yield Seen(whole, record, hits, whole_way)
            return
        yield Seen(whole, record, by_words, Way.EMPTY_WORDS)
        if others:
            yield Seen(whole, record, others, whole_way)

    def _says_more(self, whole: Whole, record: Record) -> bool:
        """Whether the text of a row says anything besides what is looked for."""
        return any(
            not self._is_named(text, record)
            for name, path in self._layout.text
            for _, text in strings_below(self._rows.value(whole.row, name), path)
        )

    def _is_named(self, text: str, record: Record) -> bool:
        """Whether one text of a record is looked for, and its scope is known to be meant."""
        said = Record("", [Text("", text)], scope=record.scope)
        return any(not hit.scope_unknown for hit in self._targets.match(self.site, said))

    def _words(self, seen: Seen) -> Iterator[dict[str, object]]:
        """Yield where exactly the words stand that are looked for, for a handle."""
        for table, row in seen.whole.without_records():
            for name, value in zip(table.names, row.values, strict=True):
                paths = [
                    [list(path), is_key]
                    for path, text, is_key in strings_in(value, numbers=self._numbers)
                    if self._is_named(text, seen.record)
                ]
                for run in in_pieces(value):
                    for path in run.holding(lambda text: self._is_named(text, seen.record)):
                        if [list(path), False] not in paths:
                            paths.append([list(path), False])
                if not paths and any(
                    self._is_named(text, seen.record) for text in holding((value,), self._phrases)
                ):
                    paths = [[[], False]]
                if paths:
                    yield {
                        "table": table.name,
                        "row": [pack(each) for each in identity(table, row)],
                        "column": name,
                        "paths": paths,
                    }

    def see_alone(self, rows: Sequence[Row]) -> Iterator[Seen]:
        """Yield some rows as records without what is below them."""
        yield from self.see([Whole(row) for row in rows])

    def texts(self, names: Iterable[str], values: Iterable[object]) -> Iterator[Text]:
        """Yield every string of a row."""
        for name, value in zip(names, values, strict=True):
            if value is None or (isinstance(value, int | float) and not self._numbers):
                continue
            yield from readable_in(name, value, numbers=self._numbers)
            if isinstance(value, bytes):
                self.closed += is_closed(value)
                for text in holding((value,), self._phrases):
                    yield Text(name, text)

    def _record(self, whole: Whole, linked: Mapping[str, Mapping[str, Sequence[str]]]) -> Record:
        layout, row = self._layout, whole.row
        texts = list(self.texts(layout.table.names, row.values))
        for part in whole.below:
            for each in () if part.child.own else part.rows:
                texts.extend(
                    Text(f"{part.child.table.name}.{text.field}", text.value, text.flavor)
                    for text in self.texts(part.child.table.names, each.values)
                )
        own = self.id(row)
        parents: dict[str, Sequence[str]] = {}
        for source, field in layout.parents.items():
            if isinstance(field, Link):
                found: Sequence[str] = linked[source].get(own, ())
            else:
                found = self._ids(row, field) if field else ()
            if found:
                parents[source] = found
        scope = {
            key: said[0]
            for key, field in layout.scope.items()
            if len(said := self._ids(row, field)) == 1
        }
        subjects = self._ids(row, layout.subject) if layout.subject else ()
        return Record(own, texts, subjects, scope, parents)

    def _ids(self, row: Row, field: Field) -> tuple[str, ...]:
        return ids_at(self._rows.value(row, field[0]), field[1])

    def _scopes_above(self, wholes: Sequence[Whole]) -> Sequence[Mapping[str, str]]:
        """Return what the rows to which rows belong say of a scope, where any is asked for."""
        if not self._layout.above or not any(target.scope for target in self._targets):
            return [{}] * len(wholes)
        return scopes_above(self._rows.core, self._layout, [whole.row for whole in wholes])

    def _linked(self, wholes: Sequence[Whole]) -> dict[str, Mapping[str, Sequence[str]]]:
        links = {s: f for s, f in self._layout.parents.items() if isinstance(f, Link)}
        if not links:
            return {}
        owners = [self.id(whole.row) for whole in wholes]
        return {source: self._rows.linked(link, owners) for source, link in links.items()}

    def id(self, row: Row) -> str:
        """Return the record's id. A row without one is named by its primary key."""
        said = id_text(self._rows.value(row, self._layout.id))
        if said is None:
            said = " ".join(id_text(value) or "" for value in self._rows.key(row)).strip()
        return said or f"row {row.number}"

    def match(self, seen: Sequence[Seen]) -> Match:
        """Return the one match of all rows that have the same id."""
        readings = [self._readability(each) for each in seen]
        parents: dict[str, dict[str, None]] = {}
        hits: dict[Hit, None] = {}
        for each in seen:
            hits.update(dict.fromkeys(each.hits))
            for source, found in each.record.parents.items():
                parents.setdefault(source, {}).update(dict.fromkeys(found))
        layout = self._layout
        created = [self._created(each.whole.row) for each in seen]
        wholes = [each.whole for each in seen]
        only_words = seen[0].way is Way.EMPTY_WORDS
        return Match(
            id=seen[0].record.id,
            hits=tuple(hits),
            where=f"table {layout.table.name}",
            handle={"rows": [self._handle(each) for each in seen]},
            parents={source: tuple(found) for source, found in parents.items()},
            trace=self._trace_of_words(seen) if only_words else self.trace_of(wholes),
            readability=min(readings, key=list(Readability).index),
            carries_marker=any(
                carries_marker(text.value) for each in seen for text in each.record.texts
            ),
            created=next((when for when in created if when), None),
            part=f"{layout.part}{WORDS}" if only_words else layout.part,
            subjects=tuple(dict.fromkeys(name for each in seen for name in each.record.subjects)),
            scope=_common([each.record.scope for each in seen]),
        )

    def _handle(self, seen: Seen) -> dict[str, object]:
        whole = seen.whole
        key = [pack(value) for value in self._rows.key(whole.row)]
        return {
            "key": key,
            "number": whole.row.number,
            "digest": digest(whole.all_values(own=seen.way.reaches_records_below)),
            "way": seen.way.value,
            "words": list(self._words(seen)) if seen.way is not Way.DELETE else [],
        }

    def _created(self, row: Row) -> Any:
        time = self._layout.time
        if time is None:
            return None
        value = self._rows.value(row, time[0])
        if not time[1]:
            return moment(value)
        found = self._ids(row, time)
        return moment(_number(found[0])) if found else None

    def _readability(self, seen: Seen) -> Readability:
        row, archived = seen.whole.row, self._layout.archived
        named_by_text = any(hit.how in _BY_WORDS for hit in seen.hits)
        if self._action is Action.BLANK and not named_by_text and self.is_blank(seen.whole):
            return Readability.BLANKED
        if archived is not None:
            value = self._rows.value(row, archived.column)
            hidden = value is not None if archived.value is None else _same(value, archived.value)
            if hidden:
                return Readability.ARCHIVED
        return Readability.READABLE

    def is_blank(self, whole: Whole) -> bool:
        """Whether nothing is left of the text of a record, its rows below included."""
        for name, path in self._layout.text:
            if any(True for _ in strings_at(self._rows.value(whole.row, name), path)):
                return False
        return not any(
            True
            for part in whole.below
            if not part.child.link
            for row in part.rows
            for _ in self.own_texts(part.child, row)
        )

    @staticmethod
    def own_texts(child: Child, row: Row) -> Iterator[str]:
        """Yield the strings of a child row that are words of the record."""
        for name, path in child.text:
            yield from strings_at(row.values[child.table.names.index(name)], path)

    def trace_of(self, wholes: Sequence[Whole]) -> Trace:
        """Return what the rows of one record look like in bytes, with all that is below them."""
        texts: dict[str, None] = {}
        metadata: dict[str, None] = {}
        for whole in wholes:
            row = whole.row
            for name, path in self._layout.text:
                texts.update(dict.fromkeys(strings_at(self._rows.value(row, name), path)))
            for name, path in self._layout.metadata:
                metadata.update(dict.fromkeys(strings_at(self._rows.value(row, name), path)))
            for part in whole.below:
                if part.child.link:
                    continue
                for below in part.rows:
                    texts.update(dict.fromkeys(self.own_texts(part.child, below)))
                    if part.child.own:
                        key = said(part.child.table, below, part.child.table.primary_key)
                        metadata.update(dict.fromkeys(each for each in key if each))
        return Trace(self.id(wholes[0].row), tuple(texts), tuple(metadata))

    def _trace_of_words(self, seen: Sequence[Seen]) -> Trace:
        """Return what the texts look like that hold the words."""
        texts = dict.fromkeys(
            text.value
            for each in seen
            for text in each.record.texts
            if self._is_named(text.value, each.record)
        )
        return Trace(seen[0].record.id, tuple(texts))


def _common(scopes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what all rows of a record say of its scope."""
    first, *others = scopes
    return {key: said for key, said in first.items() if all(it.get(key) == said for it in others)}


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _same(value: object, wanted: str | int | bool) -> bool:
    if isinstance(wanted, bool):
        return value == int(wanted)
    return value == wanted or id_text(value) == str(wanted)
