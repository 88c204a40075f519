"""Taking records out of a database: checked again, children first, in one transaction.

By the numbers of rows that were read in this very transaction, and bound values; no statement
spells out a text. How many rows a statement says that it changed is never looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from purge.adapter import Action, NotRemoved, ProblemCode, Removal
from purge.errors import Permanent
from purge.targets import NOTHING
from purge_adapters._sql_blank import Blanks
from purge_adapters._sql_fulltext import Upkeep
from purge_adapters._sql_layout import Child
from purge_adapters._sql_records import Records
from purge_adapters._sql_rows import Key, Row, Rows, Whole, chunks, named, plain, said
from purge_adapters._sql_schema import Table
from purge_adapters._sql_values import digest, unpack

_CHANGED: Final = "The record changed after it was found."
_OTHERS_TOO: Final = (
    "A trigger or a foreign key of the database changes which rows go: others with them, or none. "
    "Nothing was removed."
)
_FORBIDDEN: Final = "A constraint or a trigger of the database does not let the record go."
_REFERRED: Final = (
    "Other records of the table refer to this one by a foreign key and would be lost or left "
    "hanging. Remove them as well, or set 'action: blank'."
)


@dataclass(frozen=True, slots=True)
class Doomed:
    """A match, its rows as they are now, and the fields in which its rows held words."""

    removal: Removal
    wholes: tuple[Whole, ...]
    fields: tuple[tuple[str, ...], ...]


class Remover:
    """Removes the records of one site through one connection. Begins and ends a transaction.

    Args:
        connection: from :func:`purge_adapters._sqlite.writing`, in a transaction already.
        rows: the rows of the table through that connection.
        site: the site's name.
        action: delete or blank.
    """

    def __init__(
        self, connection: sqlite3.Connection, rows: Rows, site: str, action: Action
    ) -> None:
        self._connection = connection
        self._rows = rows
        self._action = action
        self._records = Records(rows, site, action, NOTHING)
        self._blanks = Blanks(rows, self._records)
        self._upkeep = Upkeep(connection, rows.layout)

    def remove(self, removals: Sequence[Removal]) -> tuple[NotRemoved, ...]:
        """Take the records out and return those that were left alone."""
        left: list[NotRemoved] = []
        doomed: list[Doomed] = []
        for each in self._resolve(removals, left):
            doomed.append(each)
        if self._action is Action.DELETE:
            doomed = list(self._without_referred(doomed, left))
        if not doomed:
            return tuple(left)
        refused = self._try(doomed)
        if refused:
            # One at a time, so that one refusal does not spare the others.
            for each in doomed:
                if self._try([each]):
                    left.append(NotRemoved(each.removal.match, *refused))
        self._upkeep.finish()
        return tuple(left)

    def _resolve(self, removals: Sequence[Removal], left: list[NotRemoved]) -> Iterator[Doomed]:
        """Yield what is still there and unchanged."""
        handles = [(removal, handle) for removal in removals for handle in _handles(removal)]
        rows = self._rows_of([(_key(handle), _number(handle)) for _, handle in handles])
        found = [row for row in rows if row is not None]
        wholes = {id(row): whole for row, whole in zip(found, self._rows.whole(found), strict=True)}
        by_removal: dict[int, list[tuple[Whole, dict[str, Any]]]] = {}
        for (removal, handle), row in zip(handles, rows, strict=True):
            if row is not None:
                by_removal.setdefault(id(removal), []).append((wholes[id(row)], handle))
        for removal in removals:
            parts = by_removal.get(id(removal), [])
            if self._action is Action.BLANK:
                parts = [part for part in parts if self._blanks.changes(*_with_fields(part))]
            if any(digest(whole.all_values()) != handle["digest"] for whole, handle in parts):
                left.append(NotRemoved(removal.match, ProblemCode.CHANGED_UNDERNEATH, _CHANGED))
            elif parts:
                yield Doomed(
                    removal,
                    tuple(whole for whole, _ in parts),
                    tuple(_with_fields(part)[1] for part in parts),
                )

    def _rows_of(self, wanted: Sequence[tuple[Key, int | None]]) -> list[Row | None]:
        """Return the row for each key, or ``None`` where it is gone."""
        import sqlalchemy

        layout = self._rows.layout
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
            for row in self._rows.stream(layout.table, *conditions) if conditions else ():
                found[_exact(self._rows.key(row), row.number)] = row
        return [found.get(_exact(key, number)) for key, number in wanted]

    def _without_referred(
        self, doomed: Sequence[Doomed], left: list[NotRemoved]
    ) -> Iterator[Doomed]:
        """Yield the records to which no record of the table refers that stays."""
        layout = self._rows.layout
        staying = list(doomed)
        for columns, target in layout.refers_to_itself:
            child = Child(layout.table, columns, target, declared=True)
            while staying:
                going = {self._rows.key(whole.row) for each in staying for whole in each.wholes}
                wanted = {
                    said(layout.table, whole.row, target)
                    for each in staying
                    for whole in each.wholes
                }
                referred = {
                    said(layout.table, row, columns)
                    for row in self._rows.referring(child, wanted)
                    if self._rows.key(row) not in going
                }
                held = [
                    each
                    for each in staying
                    if any(said(layout.table, w.row, target) in referred for w in each.wholes)
                ]
                if not held:
                    break
                staying = [each for each in staying if each not in held]
                left.extend(
                    NotRemoved(each.removal.match, ProblemCode.UNSUPPORTED, _REFERRED)
                    for each in held
                )
        yield from staying

    def _try(self, doomed: Sequence[Doomed]) -> tuple[ProblemCode, str] | None:
        """Act on some records, or on none of them and say why."""
        from sqlalchemy.exc import IntegrityError

        self._connection.execute("SAVEPOINT purge")
        try:
            if self._action is Action.BLANK:
                for each in doomed:
                    for whole, fields in zip(each.wholes, each.fields, strict=True):
                        self._blanks.blank(whole, fields, self._upkeep)
            else:
                tables = self._tables(doomed)
                before = {name: self._count(table) for name, (table, _) in tables.items()}
                self._delete(doomed)
                for name, (table, meant) in tables.items():
                    if before[name] - self._count(table) != meant:
                        self._connection.execute("ROLLBACK TO purge")
                        self._connection.execute("RELEASE purge")
                        return ProblemCode.UNSUPPORTED, _OTHERS_TOO
        except (IntegrityError, sqlite3.IntegrityError):
            if not self._connection.in_transaction:
                raise Permanent(
                    "A trigger of the database rolled everything back.",
                    problem=ProblemCode.UNSUPPORTED,
                ) from None
            self._connection.execute("ROLLBACK TO purge")
            self._connection.execute("RELEASE purge")
            return ProblemCode.UNSUPPORTED, _FORBIDDEN
        self._connection.execute("RELEASE purge")
        return None

    def _tables(self, doomed: Sequence[Doomed]) -> dict[str, tuple[Table, int]]:
        """Return the tables that lose rows, by name, with how many rows are meant to go."""
        layout = self._rows.layout
        keys: dict[str, set[object]] = {}
        tables = {layout.table.name: layout.table}
        for each in doomed:
            for whole in each.wholes:
                keys.setdefault(layout.table.name, set()).add(
                    (self._rows.key(whole.row), whole.row.number)
                )
                for part in whole.below:
                    table = part.child.table
                    tables[table.name] = table
                    keys.setdefault(table.name, set()).update(
                        (row.values, row.number) for row in part.rows
                    )
        return {name: (table, len(keys.get(name, ()))) for name, table in tables.items()}

    def _count(self, table: Table) -> int:
        import sqlalchemy

        counted = sqlalchemy.select(sqlalchemy.func.count()).select_from(plain(table))
        return int(self._rows.core.execute(counted).scalar_one())

    def _delete(self, doomed: Sequence[Doomed]) -> None:
        layout = self._rows.layout
        below: dict[int, list[Row]] = {}
        children: dict[int, Child] = {}
        for each in doomed:
            for whole in each.wholes:
                for part in whole.below:
                    children[id(part.child)] = part.child
                    below.setdefault(id(part.child), []).extend(part.rows)
        order = [id(child) for child in layout.all_children()]
        for at in reversed(order):
            if at in below:
                self._delete_rows(children[at].table, below[at])
        self._delete_rows(layout.table, [w.row for each in doomed for w in each.wholes])

    def _delete_rows(self, table: Table, rows: Sequence[Row]) -> None:
        import sqlalchemy

        self._upkeep.before_delete(table, rows)
        for chunk in chunks(rows):
            for condition in naming(table, chunk):
                self._rows.core.execute(sqlalchemy.delete(plain(table)).where(condition))


def naming(table: Table, rows: Sequence[Row]) -> Iterator[Any]:
    """Yield conditions that name exactly these rows, which were read in this transaction.

    Raises:
        Permanent: the table has neither row numbers nor a primary key.
    """
    import sqlalchemy

    if table.row_number is not None:
        yield named(table, table.row_number).in_([row.number for row in rows])
        return
    if not table.primary_key:
        raise Permanent(
            "A table that belongs to the records has no primary key.",
            problem=ProblemCode.UNSUPPORTED,
        )
    places = [(named(table, name), table.names.index(name)) for name in table.primary_key]
    for row in rows:
        yield sqlalchemy.and_(*(column == row.values[at] for column, at in places))


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


def _with_fields(part: tuple[Whole, dict[str, Any]]) -> tuple[Whole, tuple[str, ...]]:
    whole, handle = part
    return whole, tuple(map(str, handle.get("fields", ())))
