"""``purge check`` at a ``sql`` site: every fault at once, and what is true of the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action
from tests.support.sql_stores import TABLE, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def faults(store: Store) -> list[str]:
    return [each.sentence for each in store.check() if not each.ok]


def said(store: Store) -> str:
    return "\n".join(each.sentence for each in store.check() if each.ok)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("CREATE TABLE memory (id TEXT PRIMARY KEY)", "Did you mean 'memory'?"),
        ("CREATE VIEW memories AS SELECT 1 AS id", "is a view"),
        ("CREATE VIRTUAL TABLE memories USING fts5(id, body)", "is a virtual table"),
        ("CREATE TABLE memories (id TEXT, body TEXT)", "has no primary key"),
        ("CREATE TABLE memories (a TEXT, b TEXT, PRIMARY KEY (a, b))", "several columns (a, b)"),
    ],
)
def test_a_table_that_cannot_be_worked_with_is_a_fault(
    store: Store, schema: str, expected: str
) -> None:
    store.run(schema)
    (fault,) = faults(store)
    assert expected in fault


def test_every_missing_column_is_named_with_the_nearest_one(store: Store) -> None:
    store.run(TABLE)
    store.settings |= {
        "id": "ids",
        "text": ["bodi", "body"],
        "metadata": ["topics"],
        "time": "created",
        "archived": {"column": "hidden"},
        "children": [{"table": "part", "column": "memory"}],
        "links": [{"table": "links", "own": "a", "source": "b"}],
    }
    store.site |= {
        "scope": {"project": "project"},
        "subject": "data.user",
        "derived_from": {"logs": "links.b", "notes": "source"},
    }
    found = "\n".join(faults(store))
    for setting, hint in (
        ("id: ", "'id'"),
        ("text: ", "'body'"),
        ("metadata: ", "'topic'"),
        ("time: ", ""),
        ("archived.column: ", ""),
        ("scope.project: ", ""),
        ("subject: ", ""),
        ("children: ", ""),
        ("derived_from.logs: ", ""),
        ("derived_from.notes: ", ""),
    ):
        line = next(line for line in found.split("\n") if line.startswith(setting))
        assert hint in line
    assert len(found.split("\n")) == 10


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:///nowhere.db", "does not exist"),
        ("sqlite://", "must name an SQLite file"),
        ("sqlite:///:memory:", "must name an SQLite file"),
        ("sqlite:///a.db?mode=ro", "must name an SQLite file"),
        ("memories.db", "not a database URL"),
        ("postgresql+psycopg://someone:hunter2@db.example.org/x", "'postgresql' are not supported"),
    ],
)
def test_a_url_that_cannot_be_worked_with_is_a_fault(store: Store, url: str, expected: str) -> None:
    store.settings["url"] = url
    (fault,) = faults(store)
    assert expected in fault
    assert "hunter2" not in fault


def test_a_file_that_is_no_database_is_a_fault(store: Store) -> None:
    store.path.write_bytes(b"A letter, and no database at all. " * 20)
    (fault,) = faults(store)
    assert "not an SQLite database" in fault


def test_a_read_only_database_is_a_fault(store: Store) -> None:
    store.run(TABLE)
    store.path.chmod(0o444)
    (fault,) = faults(store)
    assert "read-only" in fault


def test_blanking_without_a_text_is_a_fault(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, at INTEGER)")
    with store.open(Action.BLANK) as adapter:
        (fault,) = [each.sentence for each in adapter.check() if not each.ok]
    assert "no column of text to empty" in fault


def test_what_is_true_is_said(store: Store) -> None:
    store.run(
        "PRAGMA encoding = 'UTF-16le'",
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE memories (number INTEGER PRIMARY KEY, name TEXT, body TEXT, "
        "up INTEGER REFERENCES memories, "
        "short TEXT GENERATED ALWAYS AS (substr(body, 1, 9)) STORED)",
        "CREATE TABLE lines (memory INTEGER REFERENCES memories, said TEXT)",
        "CREATE TABLE reports (memory INTEGER REFERENCES memories ON DELETE SET NULL)",
        "CREATE VIRTUAL TABLE words USING fts5(body, content='memories', content_rowid='number')",
        "CREATE VIRTUAL TABLE others USING fts5(body)",
        "CREATE TABLE history (said TEXT)",
        "CREATE TRIGGER copied AFTER DELETE ON memories "
        "BEGIN INSERT INTO history VALUES (old.body); END",
        "INSERT INTO memories (name, body) VALUES ('a', 'x'), ('a', 'y'), ('b', 'z')",
    )
    store.settings["id"] = "name"
    assert faults(store) == []
    words = said(store)
    for expected in (
        "UTF-16le",
        "write-ahead log",
        "their id is 'name'",
        "3 rows, 2 ids",
        "Rows of 'lines' go with their record",
        "Rows of 'reports' stay",
        "refer to one another",
        "Generated columns are looked at and never set: short",
        "'words' is over 'memories' and is kept in step by this program",
        "'others' stands by itself",
        "'copied' of 'memories'",
        "confirmed-deleted can be proved",
    ):
        assert expected in words


def test_a_check_changes_nothing(store: Store) -> None:
    store.run(TABLE, "PRAGMA journal_mode = WAL")
    before: dict[str, Any] = store.contents()
    store.check()
    assert store.contents() == before
