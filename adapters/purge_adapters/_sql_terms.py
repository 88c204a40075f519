"""What full-text indexes still know of words that are gone.

The words of an index are packed, so bytes prove nothing; the index itself is asked. FTS5 keeps the
words of deleted rows in its older segments until they are merged, and an index over another table
keeps whatever it was not told of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from purge.adapter import NotChecked, ProblemCode, Residue
from purge.targets import Trace
from purge_adapters._sql_fulltext import Index, all_fulltext, indexes, vocabulary
from purge_adapters._sql_tables import Layouts
from purge_adapters._sqlite import VirtualTable, quote
from purge_adapters._sqlite_segments import UnknownFormat, segments, stored_rows

DO: Final = "do"
OPTIMIZE: Final = "optimize"
REBUILD: Final = "rebuild"
_MOST_TEXTS: Final = 200
_MOST_TERMS: Final = 5
"""All the words of a row lie in the same segments and are dropped together."""
_SCRATCH: Final = "purge_terms"


def stale_words(
    connection: sqlite3.Connection, layouts: Layouts, gone: Sequence[Trace], phrases: Sequence[str]
) -> Iterator[Residue | NotChecked]:
    """Yield the full-text indexes that still know what is gone.

    Args:
        connection: private, or to a database that cannot change; temporary tables are made.
        layouts: of the site.
        gone: what the records looked like.
        phrases: what was asked for by its words.
    """
    texts = list(dict.fromkeys(text for trace in gone for text in trace.texts))[:_MOST_TEXTS]
    said = [*texts, *phrases]
    if not said:
        return
    over = {each.name: each for each in indexes(connection, layouts)}
    for table in all_fulltext(connection):
        where = f"full-text index {table.name}"
        index = over.get(table.name)
        try:
            if table.module != "fts5":
                yield from _older_segments(connection, table, where)
                continue
            # Copies of its own are rows, and are looked for among them.
            if index is not None or table.options.get("content") is not None:
                yield from _known_words(connection, table, index, texts, where)
            yield from _hidden_words(connection, table, said, where)
        except sqlite3.OperationalError:
            yield NotChecked(where, "SQLite cannot read it here", ProblemCode.UNSUPPORTED)


def _known_words(
    connection: sqlite3.Connection,
    table: VirtualTable,
    index: Index | None,
    texts: Sequence[str],
    where: str,
) -> Iterator[Residue]:
    """Yield whether a row that is gone is still in the index."""
    with vocabulary(connection, table.name) as words:
        for text in texts:
            rows = _rows_with(connection, table, words, text)
            if rows is None:
                continue
            live = _live(connection, index, rows) if index else set()
            if rows - live:
                fixable = index is not None and not index.contentless
                yield Residue(
                    where,
                    "it still has the words of a row that is gone",
                    fixable=fixable,
                    handle={DO: REBUILD, "table": table.name} if fixable else {},
                )
                return


def _rows_with(
    connection: sqlite3.Connection, table: VirtualTable, words: str, text: str
) -> set[int] | None:
    """Return the rows that have all the words of a text; ``None`` where it has no words."""
    found: set[int] | None = None
    for term in _terms(connection, table, text):
        query = f"SELECT DISTINCT doc FROM {words} WHERE term = ?"  # noqa: S608  a name of our own
        rows = {int(row[0]) for row in connection.execute(query, (term,))}
        found = rows if found is None else found & rows
        if not found:
            return set()
    return found


def _terms(connection: sqlite3.Connection, table: VirtualTable, text: str) -> list[str]:
    """Return the words into which an index takes a text apart, the longest first."""
    tokenizer = table.options.get("tokenize")
    option = ", tokenize='" + tokenizer.replace("'", "''") + "'" if tokenizer else ""
    connection.execute(f"DROP TABLE IF EXISTS temp.{_SCRATCH}")
    connection.execute(f"CREATE VIRTUAL TABLE temp.{_SCRATCH} USING fts5(text{option})")
    try:
        connection.execute(
            f"INSERT INTO temp.{_SCRATCH}(text) VALUES (?)",  # noqa: S608  a name of our own
            (text,),
        )
        with vocabulary(connection, _SCRATCH, "temp") as own:
            query = f"SELECT DISTINCT term FROM {own}"  # noqa: S608  a name of our own
            terms = [str(row[0]) for row in connection.execute(query)]
    finally:
        connection.execute(f"DROP TABLE temp.{_SCRATCH}")
    return sorted(terms, key=len, reverse=True)


def _live(connection: sqlite3.Connection, index: Index, rows: set[int]) -> set[int]:
    query = (
        f"SELECT 1 FROM {quote(index.table.name)} "  # noqa: S608  quoted names
        f"WHERE {quote(index.row_column)} = ?"
    )
    return {row for row in rows if connection.execute(query, (row,)).fetchone()}


def _hidden_words(
    connection: sqlite3.Connection, table: VirtualTable, texts: Sequence[str], where: str
) -> Iterator[Residue]:
    """Yield whether an older segment has a row with the words of a text that the index hides."""
    if len(segments(connection, table.name)) < 2:
        return
    try:
        hidden = table.options.get("detail") == "none" or any(
            _hides(connection, table, text) for text in texts
        )
    except UnknownFormat:
        hidden = True
    if hidden:
        yield _older(table, where)


def _hides(connection: sqlite3.Connection, table: VirtualTable, text: str) -> bool:
    terms = _terms(connection, table, text)[:_MOST_TERMS]
    rows: set[int] | None = None
    with vocabulary(connection, table.name) as words:
        for term in terms:
            query = f"SELECT DISTINCT doc FROM {words} WHERE term = ?"  # noqa: S608  own name
            shown = {int(row[0]) for row in connection.execute(query, (term,))}
            hidden = stored_rows(connection, table.name, term) - shown
            rows = hidden if rows is None else rows & hidden
            if not rows:
                return False
    return bool(rows)


def _older_segments(
    connection: sqlite3.Connection, table: VirtualTable, where: str
) -> Iterator[Residue]:
    """Yield whether an FTS3 or FTS4 index has more than one segment; they are not looked into."""
    name = quote(f"{table.name}_segdir")
    count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
    if count > 1:
        yield _older(table, where)


def _older(table: VirtualTable, where: str) -> Residue:
    return Residue(
        where,
        "its older segments still have words that were deleted",
        fixable=True,
        handle={DO: OPTIMIZE, "table": table.name},
    )
