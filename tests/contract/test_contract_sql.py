"""The ``sql`` adapter keeps the whole contract, on SQLite databases of several makes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, ClassVar

import pytest

from purge.adapter import Action
from purge.testing import AdapterContract, breakages
from purge.testing.harness import METADATA, OTHER, SCOPE, SOURCE, Breakage, Harness, Planted
from purge_adapters.sql import SqlAdapter

COLUMNS = ("id", "body", "topic", "project", "person", "sources", "notes")


class SqlHarness(Harness):
    """Records in the rows of one table, in a rollback-journal database.

    The application writes without ``secure_delete``: Debian's SQLite has it on, and the look at
    left-over bytes would pass for nothing.
    """

    adapter = SqlAdapter
    journal: ClassVar[str] = "DELETE"
    encoding: ClassVar[str] = "UTF-8"
    schema: ClassVar[str] = """
        CREATE TABLE memories (
            id TEXT PRIMARY KEY, body TEXT NOT NULL, topic TEXT, project TEXT, person TEXT,
            sources TEXT, notes TEXT
        );
        CREATE INDEX memories_by_person ON memories (person);
    """

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.folder / "memories.db", isolation_level=None)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    def make(self) -> None:
        with closing(self.connect()) as connection:
            connection.execute(f"PRAGMA encoding = '{self.encoding}'")
            connection.execute(f"PRAGMA journal_mode = {self.journal}")
            connection.executescript(self.schema)

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "url": "sqlite:///memories.db",
            "table": "memories",
            "text": ["body"],
            "metadata": ["topic"],
            "lock_timeout": 0.2,
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "person",
            "derived_from": {SOURCE: "sources", OTHER: "notes"},
        }

    def plant(self, records: Sequence[Planted]) -> None:
        with closing(self.connect()) as connection:
            connection.execute("BEGIN")
            for record in records:
                self.insert(connection, record)
            connection.execute("COMMIT")

    def insert(self, connection: sqlite3.Connection, record: Planted) -> None:
        connection.execute(
            "INSERT INTO memories (id, body, topic, project, person, sources, notes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                record.id,
                record.text,
                record.metadata.get(METADATA),
                record.scope.get(SCOPE),
                record.subject,
                _listed(record.parents.get(SOURCE)),
                _listed(record.parents.get(OTHER)),
            ),
        )

    def change(self, record: Planted) -> None:
        with closing(self.connect()) as connection:
            connection.execute(
                "UPDATE memories SET body = ? WHERE id = ?", (record.text, record.id)
            )

    def read(self) -> Mapping[str, Planted]:
        with closing(self.connect()) as connection:
            return {record.id: record for record in self.rows(connection)}

    def rows(self, connection: sqlite3.Connection) -> Iterator[Planted]:
        for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM memories"):
            name, body, topic, project, person, sources, notes = row
            parents = {SOURCE: _unlisted(sources), OTHER: _unlisted(notes)}
            yield Planted(
                name,
                body,
                {SCOPE: project} if project is not None else {},
                person,
                {site: ids for site, ids in parents.items() if ids},
                {METADATA: topic} if topic is not None else {},
            )

    def leave_copy(self) -> bool:
        return self.copy_beside()

    def break_it(self, kind: Breakage) -> AbstractContextManager[None]:
        if kind is Breakage.LOCKED:
            return breakages.sqlite_locked(self.folder / "memories.db", self.lock)
        return super().break_it(kind)

    lock: ClassVar[str] = "EXCLUSIVE"


def _listed(ids: Sequence[str] | None) -> str | None:
    return json.dumps(list(ids)) if ids else None


def _unlisted(value: str | None) -> tuple[str, ...]:
    return tuple(json.loads(value)) if value else ()


class TestSql(AdapterContract):
    harness = SqlHarness


class LoggedHarness(SqlHarness):
    """A write-ahead log, row numbers as keys, and a full-text index that triggers keep."""

    journal = "WAL"
    lock = "IMMEDIATE"
    kill_points = 3
    schema = """
        CREATE TABLE memories (
            number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, body TEXT, topic TEXT,
            project TEXT, person TEXT, sources TEXT, notes TEXT
        );
        CREATE VIRTUAL TABLE words USING fts5(
            body, topic, content='memories', content_rowid='number', tokenize='trigram'
        );
        CREATE TRIGGER added AFTER INSERT ON memories BEGIN
            INSERT INTO words(rowid, body, topic) VALUES (new.number, new.body, new.topic);
        END;
        CREATE TRIGGER gone AFTER DELETE ON memories BEGIN
            INSERT INTO words(words, rowid, body, topic)
            VALUES ('delete', old.number, old.body, old.topic);
        END;
        CREATE TRIGGER edited AFTER UPDATE ON memories BEGIN
            INSERT INTO words(words, rowid, body, topic)
            VALUES ('delete', old.number, old.body, old.topic);
            INSERT INTO words(rowid, body, topic) VALUES (new.number, new.body, new.topic);
        END;
    """

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {**super().settings(action), "id": "id"}

    def rows(self, connection: sqlite3.Connection) -> Iterator[Planted]:
        connection.execute("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
        yield from super().rows(connection)


class TestSqlWithLogAndFullText(AdapterContract):
    harness = LoggedHarness


class WideHarness(SqlHarness):
    """UTF-16, no row numbers, and a rollback journal that stays."""

    journal = "PERSIST"
    encoding = "UTF-16le"
    kill_points = 3
    schema = """
        CREATE TABLE memories (
            id TEXT PRIMARY KEY, body TEXT, topic TEXT, project TEXT,
            person TEXT, sources TEXT, notes TEXT
        ) WITHOUT ROWID;
    """


@pytest.mark.long
class TestSqlInUtf16(AdapterContract):
    harness = WideHarness


class DocumentHarness(SqlHarness):
    """Everything in JSON; the words in a child table, the lineage in link tables."""

    kill_points = 3
    schema = """
        CREATE TABLE memories (
            number INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE NOT NULL, data JSON NOT NULL
        );
        CREATE TABLE parts (
            memory INTEGER NOT NULL REFERENCES memories, place INTEGER, said TEXT NOT NULL
        );
        CREATE TABLE memory_sources (memory TEXT, source TEXT);
        CREATE TABLE memory_notes (memory TEXT, note TEXT);
    """

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "url": "sqlite:///memories.db",
            "table": "memories",
            "id": "name",
            "text": ["data.summary"],
            "metadata": ["data.tags.topic"],
            "lock_timeout": 0.2,
            "action": action.value,
            "scope": {SCOPE: "data.about.project"},
            "subject": "data.about.person",
            "links": [
                {"table": "memory_sources", "own": "memory", "source": "source"},
                {"table": "memory_notes", "own": "memory", "source": "note"},
            ],
            "derived_from": {SOURCE: "memory_sources.source", OTHER: "memory_notes.note"},
        }

    def insert(self, connection: sqlite3.Connection, record: Planted) -> None:
        topic = record.metadata.get(METADATA)
        about = {"project": record.scope.get(SCOPE), "person": record.subject}
        data = {
            "kind": "memory",
            "about": {key: value for key, value in about.items() if value is not None},
            "tags": {"topic": topic} if topic is not None else {},
        }
        added = connection.execute(
            "INSERT INTO memories (name, data) VALUES (?, ?)", (record.id, json.dumps(data))
        )
        connection.execute("INSERT INTO parts VALUES (?, 0, ?)", (added.lastrowid, record.text))
        for table, site in (("memory_sources", SOURCE), ("memory_notes", OTHER)):
            for parent in record.parents.get(site, ()):
                connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (record.id, parent))

    def change(self, record: Planted) -> None:
        with closing(self.connect()) as connection:
            connection.execute(
                "UPDATE parts SET said = ? "
                "WHERE memory = (SELECT number FROM memories WHERE name = ? COLLATE BINARY)",
                (record.text, record.id),
            )

    def rows(self, connection: sqlite3.Connection) -> Iterator[Planted]:
        query = "SELECT name, data, said FROM memories JOIN parts ON parts.memory = number"
        for name, packed, said in connection.execute(query).fetchall():
            data = json.loads(packed)
            parents = {
                site: tuple(
                    row[0]
                    for row in connection.execute(
                        f"SELECT {column} FROM {table} WHERE memory = ? ORDER BY rowid", (name,)
                    )
                )
                for site, table, column in (
                    (SOURCE, "memory_sources", "source"),
                    (OTHER, "memory_notes", "note"),
                )
            }
            about, topic = data["about"], data["tags"].get("topic")
            yield Planted(
                name,
                said,
                {SCOPE: about["project"]} if "project" in about else {},
                about.get("person"),
                {site: ids for site, ids in parents.items() if ids},
                {METADATA: topic} if topic is not None else {},
            )


@pytest.mark.long
class TestSqlDocuments(AdapterContract):
    harness = DocumentHarness
