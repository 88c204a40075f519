"""``purge check`` for the ``sql`` adapter: everything that would make a run go wrong, at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from purge.adapter import Action, Site, Statement
from purge.errors import StoreError
from purge_adapters._files import relative
from purge_adapters._sql_fulltext import all_fulltext, indexes
from purge_adapters._sql_layout import Layout
from purge_adapters._sql_rows import Rows, Tables, named, plain
from purge_adapters._sql_schema import Schema
from purge_adapters._sql_settings import SqlSettings
from purge_adapters._sql_sqlite import database_path, read_schema, statements
from purge_adapters._sql_tables import Layouts, draw
from purge_adapters._sqlite import moment, reading


def check(site: Site, settings: SqlSettings) -> Iterator[Statement]:
    """Yield what is true of the database and the table, and every fault.

    Raises:
        Refused: the database lies outside the root.
    """
    try:
        path = database_path(site, settings.url)
        with reading(path) as connection, statements(connection) as core:
            schema = read_schema(connection)
            layouts, faults = draw(site, settings, schema)
            said = list(_of_file(path, site, connection))
            said.extend(Statement(fault, ok=False) for fault in faults)
            if layouts is not None:
                for rows in Tables(core, layouts).each:
                    said.extend(_of_table(rows.layout, site))
                    said.extend(_of_rows(rows))
                said.extend(_of_fulltext(connection, layouts))
                said.extend(_of_triggers(schema, layouts))
    except StoreError as error:
        yield Statement(str(error), ok=False)
        return
    yield from said


def _of_file(path: Path, site: Site, connection: sqlite3.Connection) -> Iterator[Statement]:
    now = moment(path)
    version = connection.execute("SELECT sqlite_version()").fetchone()[0]
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    log = now.header[18:19] == b"\x02"
    yield Statement(
        f"{relative(path, site)} is an SQLite database ({encoding}, {now.size} bytes, "
        f"{'write-ahead log' if log else 'rollback journal'}); read with SQLite {version}."
    )
    yield Statement(
        "What is deleted is overwritten, and looked for in the file, its logs, its full-text "
        "indexes and copies beside it: confirmed-deleted can be proved."
    )
    if not os.access(path, os.W_OK) or not path.stat().st_mode & 0o222:
        yield Statement("The database file is read-only, so nothing can be removed.", ok=False)
    elif not os.access(path.parent, os.W_OK):
        yield Statement(
            "The folder of the database may not be written to, and SQLite needs that to change "
            "anything.",
            ok=False,
        )


def _of_table(layout: Layout, site: Site) -> Iterator[Statement]:
    table = layout.table
    shape = "" if table.row_number else ", without row numbers"
    yield Statement(
        f"Records are the rows of '{table.name}' ({len(table.columns)} columns{shape}), their id "
        f"is '{layout.id}'."
    )
    for child in layout.all_children():
        why = "by a foreign key" if child.declared else "as the manifest says"
        what = "Links in" if child.link else "Rows of"
        yield Statement(
            f"{what} '{child.table.name}' go with their record ({', '.join(child.columns)}), {why}."
        )
    for link in layout.unlinks:
        yield Statement(
            f"Rows of '{link.table.name}' stay when a record goes; '{link.column}' becomes NULL."
        )
    if layout.on_words is Action.BLANK and site.action is not Action.BLANK:
        what = "or goes if nothing of its text is left" if layout.drops_blank else "and stays"
        yield Statement(
            f"A row of '{table.name}' that only its words name loses what holds them, {what}."
        )
    for reference in layout.schema.referring_to(table.name):
        if reference.outlives:
            yield Statement(
                f"Rows of '{reference.table}' stay when a record goes, and lose their link to it."
            )
    if layout.refers_to_itself:
        yield Statement(
            f"Rows of '{table.name}' refer to one another by a foreign key: a record to which "
            "another one refers is left alone ('action: blank' empties it instead)."
        )
    if site.action is Action.BLANK and not layout.text:
        yield Statement(
            "action: blank: there is no column of text to empty. Name one with 'text'.", ok=False
        )
    generated = [column.name for column in table.columns if column.generated]
    if generated:
        yield Statement(f"Generated columns are looked at and never set: {', '.join(generated)}.")


def _of_rows(rows: Rows) -> Iterator[Statement]:
    import sqlalchemy

    layout = rows.layout
    count = sqlalchemy.func.count
    total = rows.core.execute(sqlalchemy.select(count()).select_from(plain(layout.table)))
    number = int(total.scalar_one())
    if layout.key != (layout.id,):
        column = named(layout.table, layout.id)
        different = int(
            rows.core.execute(sqlalchemy.select(count(sqlalchemy.distinct(column)))).scalar_one()
        )
        if different < number:
            yield Statement(
                f"'{layout.id}' is not unique: rows with the same id are one record, and go "
                f"together ({number} rows, {different} ids)."
            )
    yield Statement(f"There are {number} rows.")


def _of_fulltext(connection: sqlite3.Connection, layouts: Layouts) -> Iterator[Statement]:
    over = {index.name: index for index in indexes(connection, layouts)}
    for table in all_fulltext(connection):
        index = over.get(table.name)
        if index is not None:
            how = "by triggers" if index.told_of_delete else "by this program: no trigger does"
            yield Statement(
                f"The full-text index '{table.name}' is over '{index.table.name}' and is kept in "
                f"step {how}."
            )
        elif table.name.casefold() not in layouts.table_names:
            yield Statement(
                f"The full-text table '{table.name}' stands by itself. If it holds text of these "
                "records, name it under 'children'."
            )


def _of_triggers(schema: Schema, layouts: Layouts) -> Iterator[Statement]:
    for name in sorted(layouts.table_names):
        for trigger in schema.triggers_on(name):
            yield Statement(
                f"The trigger '{trigger.name}' of '{trigger.table}' runs when rows change; what "
                "it copies elsewhere is looked for as residue."
            )
