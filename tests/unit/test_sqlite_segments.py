"""The stored segments of an FTS5 index, against what SQLite shows of it and what was put in."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from purge_adapters._sqlite_segments import UnknownFormat, segments, stored_rows, varint


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


@pytest.mark.parametrize("detail", ["full", "column"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_stored_until_their_segments_are_merged(
    connection: sqlite3.Connection, detail: str, seed: int
) -> None:
    chance = random.Random(seed)
    connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(a, b, detail={detail})")
    connection.execute("INSERT INTO words(words, rank) VALUES ('pgsz', 64)")
    names = ["".join(chance.choices("abcdef", k=chance.randrange(3, 6))) for _ in range(200)]
    said: dict[int, set[str]] = {}
    rows = chance.sample(range(-50, 10**12), 1200)

    def insert(row: int) -> None:
        values = [chance.choices([*names, *["common"] * 30], k=20), chance.choices(names, k=4)]
        connection.execute(
            "INSERT INTO words(rowid, a, b) VALUES (?, ?, ?)", (row, *map(" ".join, values))
        )
        said[row] = {*values[0], *values[1]}

    for row in rows[:300]:
        insert(row)
    connection.execute("BEGIN")
    for row in rows[300:]:
        insert(row)
    connection.execute("COMMIT")
    gone = set(chance.sample(rows, 30))
    for row in gone:
        connection.execute("DELETE FROM words WHERE rowid = ?", (row,))
    terms = ["common", *chance.sample(names, 25), "absent", "zzzz", "a"]
    for term in terms:
        had = {row for row, each in said.items() if term in each}
        assert stored_rows(connection, "words", term) - gone == had - gone
        assert stored_rows(connection, "words", term) <= had
    assert stored_rows(connection, "words", "common") & gone
    assert len(segments(connection, "words")) > 1
    connection.execute("INSERT INTO words(words) VALUES ('optimize')")
    assert len(segments(connection, "words")) == 1
    for term in terms:
        had = {row for row, each in said.items() if term in each}
        assert stored_rows(connection, "words", term) == had - gone


def test_an_empty_index_has_no_rows(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(a)")
    assert segments(connection, "words") == ()
    assert stored_rows(connection, "words", "any") == set()


def test_a_table_of_another_name_needs_quotes(connection: sqlite3.Connection) -> None:
    connection.execute('CREATE VIRTUAL TABLE "my ""words" USING fts5(a)')
    connection.execute('INSERT INTO "my ""words" VALUES (\'some words\')')
    assert stored_rows(connection, 'my "words', "some") == {1}


def test_a_structure_of_a_newer_kind_is_not_guessed_at(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(a)")
    block = b"\x00\x00\x00\x01\xff\x00\x00\x01\x00"
    connection.execute("UPDATE words_data SET block = ? WHERE id = 10", (block,))
    with pytest.raises(UnknownFormat):
        segments(connection, "words")


@pytest.mark.parametrize(
    ("block", "value"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\x81\x00", 128),
        (b"\xff" * 9, (1 << 64) - 1),
        (b"\x81" + b"\x80" * 6 + b"\x00", 1 << 49),
    ],
)
def test_numbers_are_read_as_they_are_written(block: bytes, value: int) -> None:
    assert varint(block + b"rest", 0) == (value, len(block))


@pytest.mark.parametrize("block", [b"", b"\x80", b"\xff" * 8])
def test_a_number_that_is_cut_off_is_not_guessed_at(block: bytes) -> None:
    with pytest.raises(UnknownFormat):
        varint(block, 0)
