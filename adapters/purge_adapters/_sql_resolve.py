"""From handles back to rows, within the transaction that removes them: what is there unchanged.

A handle is never trusted: rows are read again, and must say what they said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from purge.adapter import Action, NotRemoved, ProblemCode, Removal
from purge_adapters._sql_blank import Blanks, Words, words_of
from purge_adapters._sql_layout import Child
from purge_adapters._sql_records import Way
from purge_adapters._sql_rows import Key, Row, Rows, Whole, chunks, named, said
from purge_adapters._sql_values import digest, unpack

_CHANGED: Final = "The record changed after it was found."
_KEPT: Final = "The words stand in a column that names the record or ties it to others."
_REFERRED: Final = (
    "Other records of the table refer to this one by a foreign key and would be lost or left "
    "hanging. Remove them as well, or set 'action: blank'."
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A row of a match as it is now, what is done to it, and where its words stand."""

    whole: Whole
    way: Way
    words: Words


@dataclass(frozen=True, slots=True)
class Doomed:
    """A match that is there unchanged: the table of its record, and its rows."""

    removal: Removal
    bench: Bench
    pieces: tuple[Piece, ...]

    def going(self) -> Iterator[Whole]:
        """Yield the rows that go."""
        yield from (piece.whole for piece in self.pieces if piece.way is Way.DELETE)


class Bench:
    """The records of one table, as far as removal needs them."""

    def __init__(self, rows: Rows, action: Action) -> None:
        self.rows = rows
        self.blanks = Blanks(rows)
        self._action = action

    def resolve(self, removals: Sequence[Removal], left: list[NotRemoved]) -> Iterator[Doomed]:
        """Yield what is still there and unchanged; note what has changed."""
        handles = [(removal, handle) for removal in removals for handle in _handles(removal)]
        rows = self._rows_of([(_key(handle), _number(handle)) for _, handle in handles])
        found = [row for row in rows if row is not None]
        wholes = {id(row): whole for row, whole in zip(found, self.rows.whole(found), strict=True)}
        by_removal: dict[int, list[tuple[Piece, str]]] = {}
        for (removal, handle), row in zip(handles, rows, strict=True):
            if row is not None:
                piece = Piece(wholes[id(row)], self._way(handle), words_of(handle))
                by_removal.setdefault(id(removal), []).append((piece, str(handle["digest"])))
        for removal in removals:
            parts = by_removal.get(id(removal), [])
            due = [(piece, was) for piece, was in parts if self._is_due(piece)]
            if any(_digest(piece) != was for piece, was in due):
                left.append(NotRemoved(removal.match, ProblemCode.CHANGED_UNDERNEATH, _CHANGED))
            elif due:
                yield Doomed(removal, self, tuple(piece for piece, _ in due))
            elif any(piece.words and _digest(piece) == was for piece, was in parts):
                left.append(NotRemoved(removal.match, ProblemCode.UNSUPPORTED, _KEPT))

    def _way(self, handle: dict[str, Any]) -> Way:
        way = Way(handle["way"])
        # What was found under another action than the site has now is done as it says now.
        if self._action is Action.BLANK and way is Way.DELETE:
            return Way.EMPTY
        if self._action is Action.DELETE and way is Way.EMPTY:
            return Way.DELETE
        return way

    def _is_due(self, piece: Piece) -> bool:
        return piece.way is Way.DELETE or self.blanks.changes(piece.whole, piece.way, piece.words)

    def _rows_of(self, wanted: Sequence[tuple[Key, int | None]]) -> list[Row | None]:
        """Return the row for each key, or ``None`` where it is gone."""
        import sqlalchemy

        layout = self.rows.layout
        columns = [named(layout.table, name) for name in layout.key]
        found: dict[Any, Row] = {}
        for chunk in chunks(wanted):
            whole_keys = [key for key, _ in chunk if None not in key]
            numbers = [number for key, number in chunk if None in key and number is not None]
            conditions: list[Any] = []
            if len(columns) == 1 and whole_keys:
                conditions.append(columns[0].in_([key[0] for key in whole_keys]))
            elif whole_keys:
                for key in whole_keys:
                    same = (column == value for column, value in zip(columns, key, strict=True))
                    conditions.append(sqlalchemy.and_(*same))
            if numbers and layout.table.row_number:
                conditions.append(named(layout.table, layout.table.row_number).in_(numbers))
            for row in self.rows.stream(layout.table, *conditions) if conditions else ():
                found[_exact(self.rows.key(row), row.number)] = row
        return [found.get(_exact(key, number)) for key, number in wanted]

    def without_referred(
        self, doomed: Sequence[Doomed], left: list[NotRemoved]
    ) -> Iterator[Doomed]:
        """Yield the records to which no record of the table refers that stays; note the others."""
        layout = self.rows.layout
        staying = list(doomed)
        for columns, target in layout.refers_to_itself:
            child = Child(layout.table, columns, target, declared=True)
            while staying:
                going = {self.rows.key(whole.row) for each in staying for whole in each.going()}
                wanted = {
                    said(layout.table, whole.row, target)
                    for each in staying
                    for whole in each.going()
                }
                referred = {
                    said(layout.table, row, columns)
                    for row in self.rows.referring(child, wanted)
                    if self.rows.key(row) not in going
                }
                held = [
                    each
                    for each in staying
                    if any(said(layout.table, w.row, target) in referred for w in each.going())
                ]
                if not held:
                    break
                staying = [each for each in staying if each not in held]
                left.extend(
                    NotRemoved(each.removal.match, ProblemCode.UNSUPPORTED, _REFERRED)
                    for each in held
                )
        yield from staying


def _digest(piece: Piece) -> str:
    return digest(piece.whole.all_values(own=piece.way.reaches_records_below))


def _handles(removal: Removal) -> Iterable[dict[str, Any]]:
    rows = removal.match.handle.get("rows")
    return rows if isinstance(rows, list) else ()


def _key(handle: dict[str, Any]) -> Key:
    return tuple(unpack(value) for value in handle["key"])


def _number(handle: dict[str, Any]) -> int | None:
    number = handle.get("number")
    return number if isinstance(number, int) else None


def _exact(key: Key, number: int | None) -> tuple[object, ...]:
    """Return a key with the types of its values: 1 is not 1.0, nor '1'."""
    if None in key:
        return ("number", number)
    return tuple((type(value), value) for value in key)
