"""What is a record in a table, how it is named, and everything that is looked at in it."""

from __future__ import annotations

import gzip
import json
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import NotChecked, Readability
from tests.support.sql_stores import (
    OTHER,
    SECRET,
    TABLE,
    Store,
    by_id,
    of,
    phrase,
)

WORDS = "spare brasskeyling lies under the third flowerpot"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def add(store: Store, *values: Any) -> None:
    marks = ", ".join("?" * len(values))
    store.run((f"INSERT INTO memories VALUES ({marks})", values))


# --- ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "stored", "asked"),
    [
        ("TEXT", "mem-3", "mem-3"),
        ("TEXT", "007", "007"),
        ("INTEGER", 7, "7"),
        ("INTEGER", -7, "-7"),
        ("BLOB", b"mem-3", "mem-3"),
        ("BLOB", bytes.fromhex("00ff10"), "00ff10"),
        ("REAL", 1.5, "1.5"),
        ("", 7, "7"),
        ("", "7", "7"),
        ("NUMERIC", 1772352600000, "1772352600000"),
        ("TEXT", "a\x00b", "a\x00b"),
        ("TEXT COLLATE NOCASE", "Mem", "Mem"),
        ("TEXT COLLATE RTRIM", "mem ", "mem "),
    ],
)
def test_an_id_of_any_type_is_found_by_what_it_says(
    store: Store, declared: str, stored: object, asked: str
) -> None:
    store.run(f"CREATE TABLE memories (id {declared} PRIMARY KEY, body TEXT)")
    add(store, stored, SECRET)
    add(store, 99, OTHER)
    assert store.ids(by_id(asked)) == [asked]
    assert store.purge(by_id(asked)).left == ()
    assert store.run("SELECT body FROM memories") == [(OTHER,)]


@pytest.mark.parametrize(
    ("declared", "stored", "asked"),
    [
        ("INTEGER", 7, "07"),
        ("INTEGER", 7, " 7"),
        ("INTEGER", 7, "7.0"),
        ("NUMERIC", 7, "7e0"),
        ("TEXT COLLATE NOCASE", "Mem", "mem"),
        ("TEXT COLLATE RTRIM", "mem", "mem "),
        ("TEXT", "mem-31", "mem-3"),
        ("TEXT", "mem-3", "mem-_"),
        ("BLOB", b"\x00\x01", "0001 "),
        ("TEXT", "caf\u00e9", "cafe\u0301"),
    ],
)
def test_an_id_that_a_database_would_take_for_the_same_is_another(
    store: Store, declared: str, stored: object, asked: str
) -> None:
    store.run(f"CREATE TABLE memories (id {declared} PRIMARY KEY, body TEXT)")
    add(store, stored, SECRET)
    assert store.ids(by_id(asked)) == []


def test_mem_02_an_id_is_no_list_of_letters(store: Store) -> None:
    store.run(TABLE)
    for name in ("mem-3", "m", "e", "3", "-"):
        add(store, name, f"the text of {name}", "t")
    store.purge(by_id("mem-3"))
    assert [row[0] for row in store.run("SELECT id FROM memories ORDER BY id")] == sorted("me3-")


def test_mat_07_signs_in_ids_mean_nothing(store: Store) -> None:
    store.run(TABLE)
    names = ("ABC#1", "ABC", "a/b", "a%2Fb", "a b", "x'; DROP TABLE memories; --")
    for name in names:
        add(store, name, f"the text of {name}", "t")
    for name in ("ABC#1", "a%2Fb", "x'; DROP TABLE memories; --"):
        assert [match.id for match in store.purge(by_id(name)).matches] == [name]
    assert [row[0] for row in store.run("SELECT id FROM memories ORDER BY id")] == [
        "ABC",
        "a b",
        "a/b",
    ]


def test_rows_with_the_same_id_are_one_record(store: Store) -> None:
    # mem0's history: every change of a memory is a row.
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, memory_id TEXT, said TEXT)")
    for at, (memory, said) in enumerate((("m1", SECRET), ("m1", OTHER), ("m2", OTHER))):
        add(store, f"row-{at}", memory, said)
    store.settings["id"] = "memory_id"
    (match,) = store.matches(by_id("m1"))
    assert match.id == "m1"
    assert store.remove([match]) == ()
    assert store.run("SELECT id FROM memories") == [("row-2",)]


def test_of_rows_with_the_same_id_only_those_in_the_scope_go(store: Store) -> None:
    store.run("CREATE TABLE memories (person TEXT, id TEXT, body TEXT, PRIMARY KEY (person, id))")
    for person in ("marrow", "quill"):
        add(store, person, "m1", SECRET)
    store.settings["id"] = "id"
    store.site["scope"] = {"user": "person"}
    store.purge(by_id("m1", scope={"user": "marrow"}))
    assert store.run("SELECT person FROM memories") == [("quill",)]


def test_a_row_without_an_id_is_found_by_its_words_and_goes(store: Store) -> None:
    store.run("CREATE TABLE memories (number INTEGER PRIMARY KEY, id TEXT, body TEXT)")
    add(store, 1, None, SECRET)
    add(store, 2, None, OTHER)
    store.settings["id"] = "id"
    run = store.purge(phrase(WORDS))
    assert len(run.matches) == 1
    assert store.run("SELECT number FROM memories") == [(2,)]


def test_a_null_in_a_primary_key_names_one_row_only(store: Store) -> None:
    store.run(TABLE)
    add(store, None, SECRET, "t")
    add(store, None, OTHER, "t")
    run = store.purge(phrase(WORDS))
    assert run.left == ()
    assert store.run("SELECT body FROM memories") == [(OTHER,)]


def test_text_that_is_no_utf_8_is_read_and_its_neighbours_as_well(store: Store) -> None:
    store.run(TABLE)
    add(store, "mem-1", SECRET, "t")
    store.run("INSERT INTO memories VALUES ('mem-2', CAST(X'4142ff4344' AS TEXT), 't')")
    assert store.ids(phrase(WORDS)) == ["mem-1"]
    assert store.ids(by_id("mem-2")) == ["mem-2"]
    assert store.purge(by_id("mem-2")).left == ()
    assert store.run("SELECT id FROM memories") == [("mem-1",)]


# --- what is looked at ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        json.dumps({"parts": [{"text": SECRET}]}),
        json.dumps({SECRET: 1}),
        json.dumps(json.dumps({"inner": SECRET})),
        '{"a": "' + SECRET + '", "a": "x"}',
        f"[{SECRET}] is no JSON",
        SECRET.replace("spare", "sp\\u0061re"),
        SECRET.encode(),
        json.dumps({"text": SECRET}).encode(),
        b"\xff\xfe" + SECRET.encode("utf-16-le"),
        gzip.compress(SECRET.encode()),
        zlib.compress(SECRET.encode()),
        b"\x80\x04\x95\x00" + SECRET.encode() + b"\x94\x8c\xff",
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_string_of_a_row_is_looked_at(store: Store, value: object) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, more)")
    add(store, "mem-1", "nothing", value)
    add(store, "mem-2", "nothing", "else")
    assert store.ids(phrase(WORDS)) == ["mem-1"]


def test_a_number_is_looked_at_where_a_phrase_has_digits(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, phone INTEGER, more TEXT)")
    add(store, "mem-1", 66812345678, '{"phone": 66812345679}')
    assert store.ids(phrase("66812345678")) == ["mem-1"]
    assert store.ids(phrase("66812345679")) == ["mem-1"]
    assert store.ids(phrase("6681234567")) == []


def test_what_is_compressed_in_another_way_is_said(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, more BLOB)")
    add(store, "mem-1", b"\x28\xb5\x2f\xfd" + bytes(20))
    (gap,) = of(NotChecked, store.find(phrase(WORDS)))
    assert "zstd" in gap.why


def test_a_marker_line_is_seen_and_is_no_text(store: Store) -> None:
    store.run(TABLE)
    add(store, "mem-1", f"RETRACTS: {SECRET}", "t")
    add(store, "mem-2", f"RETRACTS: something\n{SECRET}", "t")
    (match,) = store.matches(phrase(WORDS))
    assert (match.id, match.carries_marker) == ("mem-2", True)


def test_names_that_need_quotes_are_quoted(store: Store) -> None:
    table, column = 'my "memories", (old)', 'body "as said": %s ?'
    quoted = ['"' + name.replace('"', '""') + '"' for name in (table, column)]
    store.run(f'CREATE TABLE {quoted[0]} ("select" TEXT PRIMARY KEY, {quoted[1]} TEXT)')
    store.run((f"INSERT INTO {quoted[0]} VALUES ('m', ?), ('n', 'x')", (SECRET,)))
    store.settings |= {"table": table, "text": [column], "id": "select"}
    run = store.purge(phrase(WORDS))
    assert run.is_clean
    assert store.run(f"SELECT * FROM {quoted[0]}") == [("n", "x")]


def test_generated_columns_are_looked_at_and_never_set(store: Store) -> None:
    store.run(
        "CREATE TABLE memories (id TEXT PRIMARY KEY, a TEXT, b TEXT, "
        "both TEXT GENERATED ALWAYS AS (a || ' lies ' || b) VIRTUAL)"
    )
    store.run(("INSERT INTO memories (id, a, b) VALUES ('m', ?, ?)", SECRET.split(" lies ")))
    assert store.ids(phrase(WORDS)) == ["m"]


def test_the_time_of_a_record_may_be_missing(store: Store) -> None:
    # MEM-04: rows of deletions have no time, and are found all the same.
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, at)")
    for name, at in (("a", None), ("b", 1772352600000), ("c", "2026-01-05T09:00:00+00:00")):
        add(store, name, SECRET, at)
    store.settings["time"] = "at"
    created = {match.id: match.created for match in store.matches(phrase(WORDS))}
    assert created == {
        "a": None,
        "b": datetime(2026, 3, 1, 8, 10, tzinfo=UTC),
        "c": datetime(2026, 1, 5, 9, tzinfo=UTC),
    }


# --- what the application hides ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "stored", "is_hidden"),
    [
        ({"column": "deleted_at"}, "2026-01-05", True),
        ({"column": "deleted_at"}, None, False),
        ({"column": "deleted_at", "value": 1}, 1, True),
        ({"column": "deleted_at", "value": True}, 1, True),
        ({"column": "deleted_at", "value": "1"}, 1, True),
        ({"column": "deleted_at", "value": "gone"}, "here", False),
    ],
)
def test_a_record_that_is_hidden_is_found_as_archived(
    store: Store, said: dict[str, object], stored: object, is_hidden: bool
) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, deleted_at)")
    add(store, "m", SECRET, stored)
    store.settings["archived"] = said
    (match,) = store.matches(by_id("m"))
    expected = Readability.ARCHIVED if is_hidden else Readability.READABLE
    assert match.readability is expected
