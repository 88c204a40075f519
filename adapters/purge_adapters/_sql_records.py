"""From rows to records and matches: what is looked at, what is kept for later.

This module does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from purge.adapter import Action, Match, Readability
from purge.matching import How, carries_marker
from purge.targets import Hit, Record, Targets, Text, Trace
from purge_adapters._json_fields import moment
from purge_adapters._sql_layout import Child, Layout, Link
from purge_adapters._sql_rows import Row, Rows, Whole
from purge_adapters._sql_values import (
    Field,
    digest,
    holding,
    id_text,
    ids_at,
    is_closed,
    pack,
    strings_at,
    texts_in,
)

Parents = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A row as a record, and the row itself."""

    whole: Whole
    record: Record
    hits: tuple[Hit, ...]


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
        """Yield some rows as records, with the ways in which they are named."""
        linked = self._linked(wholes)
        for whole in wholes:
            record = self._record(whole, linked)
            yield Seen(whole, record, self._targets.match(self.site, record))

    def see_alone(self, rows: Sequence[Row]) -> Iterator[Seen]:
        """Yield some rows as records without what is below them."""
        yield from self.see([Whole(row) for row in rows])

    def texts(self, names: Iterable[str], values: Iterable[object]) -> Iterator[Text]:
        """Yield every string of a row."""
        for name, value in zip(names, values, strict=True):
            if value is None or (isinstance(value, int | float) and not self._numbers):
                continue
            yield from texts_in(name, value, numbers=self._numbers)
            if isinstance(value, bytes):
                self.closed += is_closed(value)
                for text in holding((value,), self._phrases):
                    yield Text(name, text)

    def _record(self, whole: Whole, linked: Mapping[str, Mapping[str, Sequence[str]]]) -> Record:
        layout, row = self._layout, whole.row
        texts = list(self.texts(layout.table.names, row.values))
        for part in whole.below:
            for each in part.rows:
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
        return Match(
            id=seen[0].record.id,
            hits=tuple(hits),
            where=f"table {layout.table.name}",
            handle={"rows": [self._handle(each) for each in seen]},
            parents={source: tuple(found) for source, found in parents.items()},
            trace=self.trace_of([each.whole for each in seen]),
            readability=min(readings, key=list(Readability).index),
            carries_marker=any(
                carries_marker(text.value) for each in seen for text in each.record.texts
            ),
            created=next((when for when in created if when), None),
            subjects=tuple(dict.fromkeys(name for each in seen for name in each.record.subjects)),
            scope=_common([each.record.scope for each in seen]),
        )

    def _handle(self, seen: Seen) -> dict[str, object]:
        whole = seen.whole
        key = [pack(value) for value in self._rows.key(whole.row)]
        fields = dict.fromkeys(hit.field for hit in seen.hits if hit.how in (How.EXACT, How.FOLDED))
        return {
            "key": key,
            "number": whole.row.number,
            "digest": digest(whole.all_values()),
            "fields": list(fields),
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
        named_by_text = any(hit.how in (How.EXACT, How.FOLDED) for hit in seen.hits)
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
        """Return what the rows of one record look like in bytes."""
        texts: dict[str, None] = {}
        metadata: dict[str, None] = {}
        for whole in wholes:
            row = whole.row
            for name, path in self._layout.text:
                texts.update(dict.fromkeys(strings_at(self._rows.value(row, name), path)))
            for name, path in self._layout.metadata:
                metadata.update(dict.fromkeys(strings_at(self._rows.value(row, name), path)))
            for part in whole.below:
                if not part.child.link:
                    for below in part.rows:
                        texts.update(dict.fromkeys(self.own_texts(part.child, below)))
        return Trace(self.id(wholes[0].row), tuple(texts), tuple(metadata))


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
