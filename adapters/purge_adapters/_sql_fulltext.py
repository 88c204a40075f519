"""Full-text tables of SQLite that index the rows of a site, and keeping them in step.

An index over another table's rows (``content='table'``) hears of a change by triggers of that
table or not at all. Where no trigger tells it, its own ``'delete'`` command has to be given the
values that it indexed; other values would spoil it, so they are compared with the index first,
and the index is built anew where they differ.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from purge_adapters._sql_rows import Row
from purge_adapters._sql_schema import Schema, Table
from purge_adapters._sql_tables import Layouts
from purge_adapters._sqlite import VirtualTable, quote, virtual_tables

MODULES: Final = ("fts5", "fts4", "fts3")
_EVENT: Final = re.compile(
    r"\b(?:BEFORE|AFTER|INSTEAD\s+OF)?\s*\b(DELETE|INSERT|UPDATE)\b(?:\s+OF\s.+?)?\s+ON\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Index:
    """A full-text table that indexes the rows of ``table``, of which it keeps no copy."""

    name: str
    module: str
    columns: tuple[str, ...]
    table: Table
    row_column: str
    told_of_delete: bool
    told_of_update: bool
    contentless: bool = False
    """It cannot be built anew: what it indexes stands nowhere."""


def all_fulltext(connection: sqlite3.Connection) -> tuple[VirtualTable, ...]:
    """Return every full-text table of the database."""
    return tuple(each for each in virtual_tables(connection) if each.module in MODULES)


def indexes(connection: sqlite3.Connection, layouts: Layouts) -> tuple[Index, ...]:
    """Return the full-text tables over rows of the site's tables."""
    found = []
    for each in all_fulltext(connection):
        table = _indexed(layouts, each)
        if table is None:
            continue
        found.append(
            Index(
                each.name,
                each.module,
                _columns(connection, each),
                table,
                each.options.get("content_rowid") or table.row_number or "rowid",
                is_told(layouts.schema, table.name, each.name, "DELETE"),
                is_told(layouts.schema, table.name, each.name, "UPDATE"),
                contentless=each.options.get("content") == "",
            )
        )
    return tuple(found)


def _indexed(layouts: Layouts, fulltext: VirtualTable) -> Table | None:
    """Return the table of the site whose rows a full-text table indexes without a copy."""
    content = fulltext.options.get("content")
    if content:
        names = {content.casefold()} & layouts.table_names
    elif content == "":
        # Nothing declares what it is over; whoever fills it does.
        names = {
            name
            for name in layouts.table_names
            if is_told(layouts.schema, name, fulltext.name, "INSERT")
        }
    else:
        return None
    return layouts.schema.table(min(names)) if names else None


def is_told(schema: Schema, table: str, fulltext: str, event: str) -> bool:
    """Whether a trigger of ``table`` writes to a full-text table at an event."""
    mention = re.compile(rf"(?<![\w]){re.escape(fulltext)}(?![\w])", re.IGNORECASE)
    for trigger in schema.triggers_on(table):
        head = _EVENT.search(trigger.statement)
        if head is None or head[1].upper() != event:
            continue
        if mention.search(trigger.statement, head.end()):
            return True
    return False


def _columns(connection: sqlite3.Connection, table: VirtualTable) -> tuple[str, ...]:
    rows = connection.execute(f"PRAGMA table_xinfo({quote(table.name)})").fetchall()
    return tuple(row[1] for row in rows if row[6] != 1)


class Upkeep:
    """Tells the indexes of changes that no trigger tells them of. Within a transaction."""

    def __init__(self, connection: sqlite3.Connection, layouts: Layouts) -> None:
        self._connection = connection
        self._indexes = indexes(connection, layouts)
        self._stale: set[str] = set()

    def before_delete(self, table: Table, rows: Iterable[Row]) -> None:
        """Take rows that are about to go out of the indexes."""
        self._forget(table, rows, lambda index: index.told_of_delete)

    def before_update(self, table: Table, rows: Iterable[Row]) -> None:
        """Take rows that are about to change out of the indexes."""
        self._forget(table, rows, lambda index: index.told_of_update)

    def after_update(self, table: Table, rows: Iterable[Row]) -> None:
        """Put rows that have changed into the indexes."""
        for index in self._indexes:
            if index.told_of_update or index.table != table or index.name in self._stale:
                continue
            for row in rows:
                self._insert(index, row, command=None)

    def finish(self) -> None:
        """Build anew what was not in step before."""
        for name in sorted(self._stale):
            rebuild(self._connection, name)
        self._stale.clear()

    def _forget(self, table: Table, rows: Iterable[Row], told: Any) -> None:
        for index in self._indexes:
            if told(index) or index.table != table:
                continue
            for row in rows:
                if index.module != "fts5":
                    # FTS4 reads the old values of the row itself.
                    self._connection.execute(
                        f"DELETE FROM {quote(index.name)} WHERE docid = ?",  # noqa: S608
                        (_number(index, row),),
                    )
                elif in_step(self._connection, index, row):
                    self._insert(index, row, command="delete")
                elif not index.contentless:
                    self._stale.add(index.name)

    def _insert(self, index: Index, row: Row, command: str | None) -> None:
        names = [index.name] if command else []
        number = "rowid" if index.module == "fts5" else "docid"
        columns = ", ".join(map(quote, (*names, number, *index.columns)))
        values = [*([command] if command else []), _number(index, row), *_values(index, row)]
        marks = ", ".join("?" * len(values))
        self._connection.execute(
            f"INSERT INTO {quote(index.name)}({columns}) VALUES ({marks})",  # noqa: S608
            values,
        )


def _number(index: Index, row: Row) -> object:
    if index.row_column in index.table.names:
        return row.values[index.table.names.index(index.row_column)]
    return row.number


def _values(index: Index, row: Row) -> list[object]:
    names = [name.casefold() for name in index.table.names]
    return [
        row.values[names.index(name.casefold())] if name.casefold() in names else None
        for name in index.columns
    ]


def in_step(connection: sqlite3.Connection, index: Index, row: Row) -> bool:
    """Whether an FTS5 index holds exactly these values for a row, as far as words go."""
    number = _number(index, row)
    with vocabulary(connection, index.name) as words, scratch(connection, index) as own:
        connection.execute(
            f"INSERT INTO {own}(rowid, {', '.join(map(quote, index.columns))}) "  # noqa: S608
            f"VALUES (?, {', '.join('?' * len(index.columns))})",
            (number, *_values(index, row)),
        )
        with vocabulary(connection, own, "temp") as expected:
            wanted = connection.execute(
                f"SELECT DISTINCT term, col, offset FROM {expected}"  # noqa: S608
            ).fetchall()
        return all(
            connection.execute(
                f"SELECT 1 FROM {words} "  # noqa: S608
                "WHERE term = ? AND doc = ? AND col IS ? AND offset IS ?",
                (term, number, column, offset),
            ).fetchone()
            for term, column, offset in wanted
        )


@contextmanager
def vocabulary(connection: sqlite3.Connection, table: str, schema: str = "main") -> Iterator[str]:
    """Give a temporary table of the words of an FTS5 index, each with its row and place."""
    name = f"purge_words_{schema}"
    connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
    connection.execute(
        f"CREATE VIRTUAL TABLE temp.{name} "
        f"USING fts5vocab({quote(schema)}, {quote(table)}, instance)"
    )
    try:
        yield f"temp.{name}"
    finally:
        connection.execute(f"DROP TABLE temp.{name}")


@contextmanager
def scratch(connection: sqlite3.Connection, index: Index) -> Iterator[str]:
    """Give an empty temporary FTS5 table that takes words apart as ``index`` does."""
    declared = next(each for each in virtual_tables(connection) if each.name == index.name)
    options = [
        f"{key}={_string(value)}"
        for key, value in declared.options.items()
        if key in ("tokenize", "prefix", "detail")
    ]
    arguments = ", ".join((*map(quote, index.columns), *options))
    connection.execute("DROP TABLE IF EXISTS temp.purge_scratch")
    connection.execute(f"CREATE VIRTUAL TABLE temp.purge_scratch USING fts5({arguments})")
    try:
        yield "purge_scratch"
    finally:
        connection.execute("DROP TABLE temp.purge_scratch")


def _string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def rebuild(connection: sqlite3.Connection, table: str) -> None:
    """Build the index of a full-text table anew from the rows that it is over."""
    name = quote(table)
    connection.execute(f"INSERT INTO {name}({name}) VALUES ('rebuild')")  # noqa: S608
