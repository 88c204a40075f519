"""Names and declarations in SQLite's schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from purge_adapters._sqlite import fulltext_tables, optimize_fulltext, quote, virtual_tables


@pytest.mark.parametrize(
    ("declared", "module", "columns", "options"),
    [
        ("words USING fts5(a, b UNINDEXED)", "fts5", ("a", "b"), {}),
        ("words USING FTS5(a, content='')", "fts5", ("a",), {"content": ""}),
        (
            '"words" USING fts5("a b", [c], `d`, content=notes, content_rowid=\'id\')',
            "fts5",
            ("a b", "c", "d"),
            {"content": "notes", "content_rowid": "id"},
        ),
        (
            "words USING fts5(a, tokenize = \"unicode61 separators '-_'\", prefix='2 3')",
            "fts5",
            ("a",),
            {"tokenize": "unicode61 separators '-_'", "prefix": "2 3"},
        ),
        ("words /* fts4( */ USING fts5(a -- , b\n, c)", "fts5", ("a", "c"), {}),
        ('words USING fts4(a, content="notes")', "fts4", ("a",), {"content": "notes"}),
        ("[using] USING fts5(a, 'it''s')", "fts5", ("a", "it's"), {}),
    ],
)
def test_a_declaration_is_read_as_sqlite_reads_it(
    declared: str, module: str, columns: tuple[str, ...], options: dict[str, str]
) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, a, c, d)")
        connection.execute(f"CREATE VIRTUAL TABLE {declared}")
        (found,) = virtual_tables(connection)
        assert (found.module, found.columns, found.options) == (module, columns, options)
        assert (found.name in fulltext_tables(connection)) is (module == "fts5")
        if module == "fts5":
            optimize_fulltext(connection, found.name)


@pytest.mark.parametrize("name", ["a", 'a "b"', "a.b", "select", "a'b]`c", "日本", "%s ?"])
def test_a_quoted_name_is_one_name(name: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {quote(name)} ({quote(name)} TEXT)")
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [(name,)]
