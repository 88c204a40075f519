"""What is particular to SQLite in the ``sql`` adapter: its URL, its schema, its statements.

The statements themselves are SQLAlchemy's; this module gives them a connection that
:mod:`purge_adapters._sqlite` opened, and reads the schema that SQLAlchemy does not tell in full.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from purge.adapter import ProblemCode, Site
from purge.errors import Permanent
from purge_adapters._sql_schema import Column, Kind, Reference, Schema, Table, Trigger
from purge_adapters._sqlite import ROW_NUMBERS, quote, virtual_tables

if TYPE_CHECKING:
    import sqlalchemy

BATCH: Final = 400
"""How many values one statement asks for."""


def database_path(site: Site, url: str) -> Path:
    """Return the file that a URL names, relative to the site's root.

    Raises:
        Permanent: not a URL, or of another database than SQLite, or without a file.
        Refused: it leaves the root.
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Permanent(
            "The url is not a database URL. For SQLite write sqlite:///path/to/file.db.",
            problem=ProblemCode.UNSUPPORTED,
        ) from None
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
        kind = parsed.drivername.split("+")[0]
        raise Permanent(
            f"Databases of the kind '{kind}' are not supported yet; only SQLite files are.",
            problem=ProblemCode.UNSUPPORTED,
        )
    name = parsed.database
    if not name or name == ":memory:" or name.startswith("file:") or parsed.query:
        raise Permanent(
            "The url must name an SQLite file and nothing else: sqlite:///path/to/file.db.",
            problem=ProblemCode.UNSUPPORTED,
        )
    return site.path(name)


@contextmanager
def statements(connection: sqlite3.Connection) -> Iterator[sqlalchemy.Connection]:
    """Run SQLAlchemy's statements on a connection that is open already.

    Errors come out as the driver's own, without the values that SQLAlchemy would add.
    """
    import sqlalchemy
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    connection.text_factory = _text
    engine = sqlalchemy.create_engine(
        "sqlite://", creator=lambda: connection, poolclass=StaticPool, hide_parameters=True
    )
    try:
        with engine.connect() as core:
            yield core
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from None
        raise


def _text(value: bytes) -> str:
    """Return a text, also one that is no valid UTF-8, as SQLite does not check it."""
    return str(value, "utf-8", "surrogateescape")


def read_schema(connection: sqlite3.Connection) -> Schema:
    """Return what is declared in the database.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    virtual = {each.name for each in virtual_tables(connection)}
    tables: dict[str, Table] = {}
    references: list[Reference] = []
    triggers: list[Trigger] = []
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
    ).fetchall()
    for kind, name, owner, sql in rows:
        if kind == "trigger":
            triggers.append(Trigger(name, owner, sql or ""))
        elif kind == "table":
            made = Kind.VIRTUAL if name in virtual else Kind.TABLE
            tables[name.casefold()] = _table(connection, name, made)
            if made is Kind.TABLE:
                references.extend(_references(connection, name))
        elif kind == "view":
            tables[name.casefold()] = Table(name, Kind.VIEW, ())
    return Schema(tables, tuple(_completed(references, tables)), tuple(triggers))


def _table(connection: sqlite3.Connection, name: str, kind: Kind) -> Table:
    try:
        rows = connection.execute(f"PRAGMA table_xinfo({quote(name)})").fetchall()
    except sqlite3.OperationalError:
        if kind is Kind.VIRTUAL:
            return Table(name, kind, ())  # Its module is not loaded here.
        raise
    columns = tuple(
        Column(
            name=column,
            type=declared or "",
            nullable=not not_null,
            key=key,
            generated=hidden in (2, 3),
        )
        for _, column, declared, not_null, _, key, hidden in rows
        if hidden != 1
    )
    taken = {column.name.casefold() for column in columns}
    for candidate in ROW_NUMBERS:
        if candidate in taken:
            continue
        try:
            connection.execute(
                f"SELECT {candidate} FROM {quote(name)} LIMIT 0"  # noqa: S608  quoted names
            )
        except sqlite3.OperationalError:
            break  # WITHOUT ROWID
        return Table(name, kind, columns, candidate)
    return Table(name, kind, columns)


def _references(connection: sqlite3.Connection, name: str) -> Iterator[Reference]:
    rows = connection.execute(f"PRAGMA foreign_key_list({quote(name)})").fetchall()
    for number in dict.fromkeys(row[0] for row in rows):
        parts = sorted((row for row in rows if row[0] == number), key=lambda row: int(row[1]))
        _, _, target, _, _, _, on_delete, _ = parts[0]
        targets = tuple(part[4] for part in parts if part[4] is not None)
        yield Reference(name, tuple(part[3] for part in parts), target, targets, on_delete)


def _completed(references: list[Reference], tables: dict[str, Table]) -> Iterator[Reference]:
    """Yield the references with the key that is meant where none was named."""
    for each in references:
        target = tables.get(each.target.casefold())
        if target is None:
            continue
        meant = each.target_columns or target.primary_key
        if len(meant) == len(each.columns):
            yield Reference(each.table, each.columns, target.name, meant, each.on_delete)
