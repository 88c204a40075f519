"""Names and declarations in SQLite's schema: quoting, virtual tables, FTS5.

Reads what SQLite itself stored of a declaration, and runs nothing but FTS5's own commands.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Final

ROW_NUMBERS: Final = ("rowid", "_rowid_", "oid")
"""The names by which SQLite tells the number of a row, unless a column has the name."""


@dataclass(frozen=True, slots=True)
class VirtualTable:
    """A virtual table as its declaration has it.

    ``columns`` are the arguments without ``=`` as they stand, ``options`` those with one.
    """

    name: str
    module: str
    columns: tuple[str, ...]
    options: dict[str, str]


_TOKEN: Final = re.compile(
    r"""\s+ | --[^\n]*\n? | /\*.*?\*/ | "(?:[^"]|"")*" | '(?:[^']|'')*' | `(?:[^`]|``)*`
    | \[[^\]]*\] | [^\s"'`\[(),=]+ | .""",
    re.VERBOSE | re.DOTALL,
)


def virtual_tables(connection: sqlite3.Connection) -> tuple[VirtualTable, ...]:
    """Return the virtual tables of the database, read from their declarations."""
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage = 0 "
        "AND sql LIKE 'CREATE VIRTUAL TABLE%' ORDER BY name"
    ).fetchall()
    return tuple(_declared(name, sql) for name, sql in rows)


def _declared(name: str, sql: str) -> VirtualTable:
    tokens = [t for t in _TOKEN.findall(sql) if t.strip() and not t.startswith(("--", "/*"))]
    lowered = [token.lower() for token in tokens]
    at = lowered.index("using", 3) + 1
    module = unquote(lowered[at])
    arguments: list[list[str]] = [[]]
    depth = 0
    for token in tokens[at + 1 :]:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 1:
            arguments.append([])
        elif not (token == "(" and depth == 1) and not (token == ")" and depth == 0):
            arguments[-1].append(token)
    columns = []
    options = {}
    for argument in filter(None, arguments):
        if "=" in argument:
            at = argument.index("=")
            key = unquote("".join(argument[:at])).lower()
            options[key] = " ".join(unquote(each) for each in argument[at + 1 :])
        else:
            columns.append(unquote(argument[0]))
    return VirtualTable(name, module, tuple(columns), options)


def unquote(token: str) -> str:
    """Return what an SQL name or string says, without its quotes."""
    for opening, closing_mark in (('"', '"'), ("'", "'"), ("`", "`"), ("[", "]")):
        if len(token) > 1 and token[0] == opening and token[-1] == closing_mark:
            return token[1:-1].replace(closing_mark * 2, closing_mark)
    return token


def quote(name: str) -> str:
    """Return ``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def fulltext_tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the names of the FTS5 tables of the database."""
    return tuple(each.name for each in virtual_tables(connection) if each.module == "fts5")


def optimize_fulltext(connection: sqlite3.Connection, table: str) -> None:
    """Merge the index of an FTS5 table into one segment.

    Until then the words of deleted rows and their order can be read from the older segments, also
    after VACUUM (by experiment, trigram and unicode61).

    Raises:
        sqlite3.OperationalError: locked.
    """
    name = quote(table)
    connection.execute(
        f"INSERT INTO {name}({name}) VALUES ('optimize')"  # noqa: S608  a quoted identifier
    )
