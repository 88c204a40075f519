"""What a row derives from, whom it is about, and what lies below it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Examined, Match
from purge.targets import NOTHING, Targets
from tests.support.sql_stores import (
    OTHER,
    SECRET,
    SITE,
    TABLE,
    Store,
    by_id,
    lineage,
    of,
    phrase,
    subject,
)

WORDS = "spare brasskeyling lies under the third flowerpot"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def add(store: Store, *values: Any) -> None:
    marks = ", ".join("?" * len(values))
    store.run((f"INSERT INTO memories VALUES ({marks})", values))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("links_to", "log-1", ("log-1",)),
        ("links_to", '["log-2", "log-1"]', ("log-2", "log-1")),
        ("links_to", ' \n["log-1"]', ("log-1",)),
        ("links_to", '["lo\\u0067-1"]', ("log-1",)),
        ("links_to", "log-1, log-2", ("log-1, log-2",)),
        ("links_to", "[log-1]", ("[log-1]",)),
        ("links_to", 17, ("17",)),
        ("links_to", "[17, 18]", ("17", "18")),
        ("links_to.from", '{"from": "log-1", "to": "log-9"}', ("log-1",)),
        ("links_to.from.ids", '{"from": {"ids": ["log-1"]}}', ("log-1",)),
        ("links_to.id", '[{"id": "log-1"}, {"id": "log-2"}]', ("log-1", "log-2")),
        ("links_to.from", '{"from": "[\\"log-1\\"]"}', ('["log-1"]', "log-1")),
        ("links_to", b'["log-1"]', ("log-1",)),
        ("links_to", "", ()),
        ("links_to", "[]", ()),
        ("links_to", None, ()),
    ],
)
def test_lineage_is_read_in_every_form(
    store: Store, field: str, value: object, expected: tuple[str, ...]
) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, links_to)")
    add(store, "m", SECRET, value)
    add(store, "n", OTHER, '["log-11"]')
    store.site["derived_from"] = {"logs": field}
    (match,) = store.matches(by_id("m"))
    assert match.parents.get("logs", ()) == expected
    for name in expected:
        assert store.ids(lineage("logs", name)) == ["m"]
    assert store.ids(lineage("logs", "log-1", "17")) == (
        ["m"] if {"log-1", "17"} & set(expected) else []
    )


def test_many_ids_are_looked_up_at_once(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, source TEXT)")
    for at in range(60):
        add(store, f"m{at}", OTHER, json.dumps([f"log-{at}"]) if at % 2 else f"log-{at}")
    store.site["derived_from"] = {"logs": "source"}
    wanted = lineage("logs", *(f"log-{at}" for at in range(50)), *(f"no-{at}" for at in range(999)))
    assert len(store.ids(wanted)) == 50


def test_lineage_in_a_table_of_links(store: Store) -> None:
    store.run(
        TABLE,
        "CREATE TABLE memory_sources (memory_id TEXT, log_id TEXT)",
    )
    for at in (1, 2, 3):
        add(store, f"m{at}", OTHER, "t")
    for memory, log in (("m1", "log-1"), ("m1", "log-2"), ("m2", "log-1"), ("m2", None)):
        store.run(("INSERT INTO memory_sources VALUES (?, ?)", (memory, log)))
    store.settings["links"] = [{"table": "memory_sources", "own": "memory_id", "source": "log_id"}]
    for name in ("links", "memory_sources.log_id"):
        store.site["derived_from"] = {"logs": name}
        found = store.find(lineage("logs", "log-1"))
        assert sorted(match.id for match in of(Match, found)) == ["m1", "m2"]
        assert {match.id: match.parents["logs"] for match in of(Match, found)} == {
            "m1": ("log-1", "log-2"),
            "m2": ("log-1",),
        }
        assert sum(part.unlinked for part in of(Examined, found)) == 1
    store.purge(by_id("m1"))
    assert store.run("SELECT memory_id FROM memory_sources") == [("m2",), ("m2",)]


def test_records_that_say_nothing_of_their_source_are_counted(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, source TEXT)")
    for at, value in enumerate((None, "", "[]", "null", '["log-1"]', "log-2")):
        add(store, f"m{at}", OTHER, value)
    store.site["derived_from"] = {"logs": "source"}
    assert sum(part.unlinked for part in of(Examined, store.find(NOTHING))) == 4
    store.site["derived_from"] = {"logs": "source.ids"}
    assert sum(part.unlinked for part in of(Examined, store.find(NOTHING))) == 6
    store.site["derived_from"] = {"logs": None}
    assert sum(part.unlinked for part in of(Examined, store.find(NOTHING))) == 6


def test_a_subject_is_named_whole(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, about JSON)")
    add(store, "a", OTHER, '{"user": {"id": "user-6"}}')
    add(store, "b", OTHER, '{"user": {"id": "user-61"}}')
    add(store, "c", "user-6 said so", "{}")
    store.site["subject"] = "about.user.id"
    assert store.ids(subject("user-6")) == ["a"]


# --- children ---------------------------------------------------------------------------------

FAMILY = (
    "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT)",
    "CREATE TABLE messages (id TEXT PRIMARY KEY, memory TEXT REFERENCES memories, said TEXT)",
    "CREATE TABLE parts (message TEXT REFERENCES messages(id) ON DELETE CASCADE, body JSON)",
)


def family(store: Store) -> None:
    store.run(*FAMILY)
    for at in (1, 2):
        add(store, f"m{at}", "a title")
        store.run(
            ("INSERT INTO messages VALUES (?, ?, 'a message')", (f"s{at}", f"m{at}")),
            (
                "INSERT INTO parts VALUES (?, ?)",
                (f"s{at}", json.dumps({"type": "text", "text": SECRET if at == 1 else OTHER})),
            ),
        )


def test_the_words_of_rows_below_are_the_records_words(store: Store) -> None:
    family(store)
    (match,) = store.matches(phrase(WORDS))
    assert match.id == "m1"
    assert match.hits[0].field == "parts.body.text"
    assert SECRET in match.trace.texts


def test_rows_below_go_with_their_record_whether_or_not_the_schema_cascades(store: Store) -> None:
    family(store)
    run = store.purge(by_id("m1"))
    assert run.left == ()
    assert run.is_clean
    for table in ("memories", "messages", "parts"):
        assert store.run(f"SELECT count(*) FROM {table}") == [(1,)]
    assert store.run("PRAGMA foreign_key_check") == []


def test_rows_that_the_schema_lets_live_on_stay(store: Store) -> None:
    store.run(
        TABLE,
        "CREATE TABLE reports (id INTEGER PRIMARY KEY, said TEXT, "
        "memory TEXT REFERENCES memories ON DELETE SET NULL)",
    )
    add(store, "m", SECRET, "t")
    store.run("INSERT INTO reports VALUES (1, 'a report', 'm')")
    store.purge(by_id("m"))
    assert store.run("SELECT * FROM reports") == [(1, "a report", None)]


def test_children_that_are_only_named_in_the_manifest_go_as_well(store: Store) -> None:
    store.run(
        "CREATE TABLE memories (number INTEGER PRIMARY KEY, id TEXT COLLATE NOCASE, body TEXT)",
        "CREATE TABLE notes (memory TEXT COLLATE NOCASE, said TEXT)",
        "CREATE TABLE marks (memory_number INTEGER, mark TEXT)",
    )
    for number, name in ((1, "m"), (2, "M")):
        add(store, number, name, OTHER)
        store.run(("INSERT INTO notes VALUES (?, ?)", (name, f"note of {number}")))
        store.run(("INSERT INTO marks VALUES (?, ?)", (number, f"mark of {number}")))
    store.settings |= {
        "id": "id",
        "children": [
            {"table": "notes", "column": "memory"},
            {"table": "marks", "column": "memory_number", "parent": "number"},
        ],
    }
    assert store.ids(phrase("note of 1")) == ["m"]
    store.purge(by_id("m"))
    assert store.run("SELECT * FROM notes") == [("M", "note of 2")]
    assert store.run("SELECT * FROM marks") == [(2, "mark of 2")]


def test_keys_of_several_columns_tie_rows_together(store: Store) -> None:
    store.run(
        "CREATE TABLE memories (a TEXT, b INTEGER, id TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "CREATE TABLE lines (a TEXT, b INTEGER, said TEXT, FOREIGN KEY (a, b) REFERENCES memories)",
    )
    for a, b in (("x", 1), ("x", 2), ("y", 1)):
        add(store, a, b, f"{a}{b}")
        store.run(("INSERT INTO lines VALUES (?, ?, ?)", (a, b, f"a line of {a}{b}")))
    store.settings["id"] = "id"
    run = store.purge(by_id("x1"))
    assert run.left == ()
    assert store.run("SELECT id FROM memories") == [("x2",), ("y1",)]
    assert store.run("SELECT said FROM lines") == [("a line of x2",), ("a line of y1",)]


def test_only_what_is_named_is_found_in_a_look_for_nothing(store: Store) -> None:
    family(store)
    assert store.matches(NOTHING) == ()
    assert of(Examined, store.find(NOTHING))
    assert store.ids(Targets(by_id("m1", "m2").all)) == ["m1", "m2"]
    assert SITE == "memories"
