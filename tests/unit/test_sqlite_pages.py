"""The pages of an SQLite file: every byte is a row's or nobody's, with SQLite as the witness."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from purge_adapters._sqlite_pages import FREE, Malformed, Pages

NEEDLE = b"needle-in-the-hay"


def roots(connection: sqlite3.Connection) -> dict[int, str]:
    query = "SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0"
    return {int(page): str(name) for page, name in connection.execute(query)}


def build(path: Path, seed: int, size: int, *, vacuum: int = 0, wide: bool = False) -> None:
    """Make a database that was written to, changed and deleted from at random."""
    chance = random.Random(seed)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute(f"PRAGMA auto_vacuum = {vacuum}")
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        if wide:
            connection.execute("PRAGMA encoding = 'UTF-16be'")
        connection.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, said TEXT)")
        connection.execute("CREATE INDEX by_said ON a (said)")
        connection.execute("CREATE TABLE b (id TEXT PRIMARY KEY, said TEXT) WITHOUT ROWID")
        connection.execute("CREATE TABLE empty (x)")
        connection.execute("BEGIN")
        for number in range(250):
            length = chance.choice((0, 1, 5, 30, size // 8, size, size * 3 + 7))
            connection.execute("INSERT INTO a (said) VALUES (?)", (text(chance, length),))
            connection.execute("INSERT INTO b VALUES (?, ?)", (f"k{number}", text(chance, length)))
        connection.execute("COMMIT")
        for table, key in (("a", "id"), ("b", "id")):
            ids = [row[0] for row in connection.execute(f"SELECT {key} FROM {table}")]
            for each in chance.sample(ids, 80):
                connection.execute(
                    f"UPDATE {table} SET said = ? WHERE {key} = ?", (text(chance, 40), each)
                )
            for each in chance.sample(ids, 90):
                connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (each,))


def text(chance: random.Random, length: int) -> str:
    short = "".join(chance.choices("abcdefgh ", k=min(length, 40)))
    return (short * (length // 40 + 1))[:length] + NEEDLE.decode()


CASES = [
    (1, 512, 0, False),
    (2, 1024, 1, False),
    (3, 4096, 0, False),
    (4, 4096, 2, True),
    (5, 8192, 0, True),
    (6, 65536, 0, False),
]


@pytest.mark.parametrize(("seed", "size", "vacuum", "wide"), CASES)
def test_rows_are_in_use_and_the_rest_is_not(
    tmp_path: Path, seed: int, size: int, vacuum: int, wide: bool
) -> None:
    path = tmp_path / "a.db"
    build(path, seed, size, vacuum=vacuum, wide=wide)
    with closing(sqlite3.connect(path)) as connection:
        pages = Pages(path.read_bytes(), roots(connection))
        needle = NEEDLE.decode().encode("utf-16-be") if wide else NEEDLE
        everywhere = path.read_bytes().count(needle)
        unused = sum(content.count(needle) for content in pages.unused_bytes().values())
        rows = sum(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("a", "a", "b")
        )
        # A value that runs over from one page to the next may be cut within the needle.
        cut = rows - (everywhere - unused)
        assert pages.unaccounted == 0
        assert unused > 20
        assert 0 <= cut <= 8
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("VACUUM")
        after = Pages(path.read_bytes(), roots(connection)).unused_bytes()
        assert sum(content.count(needle) for content in after.values()) == 0


@pytest.mark.parametrize(("seed", "size", "vacuum", "wide"), CASES)
def test_each_page_belongs_to_whom_sqlite_says(
    tmp_path: Path, seed: int, size: int, vacuum: int, wide: bool
) -> None:
    path = tmp_path / "a.db"
    build(path, seed, size, vacuum=vacuum, wide=wide)
    with closing(sqlite3.connect(path)) as connection:
        content = path.read_bytes()
        pages = Pages(content, roots(connection))
        tables = dict(connection.execute("SELECT name, tbl_name FROM sqlite_master"))
        witnessed = {}
        free = 0
        query = "SELECT name, pageno, pagetype, unused FROM dbstat"
        for name, number, kind, unused in connection.execute(query):
            witnessed[number] = tables.get(name, "sqlite_schema")
            if kind != "overflow":
                free += unused
        for number in range(1, pages.count + 1):
            assert pages.owner((number - 1) * size) == witnessed.get(number)
        listed = [
            each for each in pages.unused() if each.kind not in (FREE, "tail of a long value")
        ]
        # dbstat counts the four bytes of a free block's own header and fragments of three bytes.
        blocks = sum(each.end - each.start for each in listed)
        if size < 65536:  # There dbstat takes an empty page for a full one (3.40.1).
            assert blocks <= free <= blocks + pages.count * 120
        assert len({(each.start, each.end) for each in pages.unused()}) == len(list(pages.unused()))
        count = connection.execute("PRAGMA freelist_count").fetchone()[0]
        assert (
            len([each for each in pages.unused() if each.kind == FREE]) >= count * (count > 1) // 2
        )


@pytest.mark.parametrize("size", [512, 1024, 4096])
@pytest.mark.parametrize("key", ["", " WITHOUT ROWID"])
def test_values_of_every_length_are_followed(tmp_path: Path, size: int, key: str) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute(f"CREATE TABLE a (id TEXT PRIMARY KEY, said TEXT){key}")
        connection.execute("BEGIN")
        for length in range(0, 2 * size, 3):
            connection.execute("INSERT INTO a VALUES (?, ?)", (f"{length}", "x" * length))
        connection.execute("COMMIT")
        pages = Pages(path.read_bytes(), roots(connection))
    assert pages.unaccounted == 0


def test_what_stands_behind_the_last_page_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    build(path, 7, 4096)
    with closing(sqlite3.connect(path)) as connection:
        pages = Pages(path.read_bytes() + NEEDLE, roots(connection))
    assert any(NEEDLE in content for content in pages.unused_bytes().values())


def test_a_table_that_is_not_known_is_unaccounted_for_and_unused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    build(path, 8, 4096)
    with closing(sqlite3.connect(path)) as connection:
        known = {page: name for page, name in roots(connection).items() if name != "b"}
    assert Pages(path.read_bytes(), known).unaccounted > 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[int, str]]:
    path = tmp_path_factory.mktemp("whole") / "a.db"
    build(path, 9, 1024)
    with closing(sqlite3.connect(path)) as connection:
        return path.read_bytes(), roots(connection)


@pytest.mark.parametrize("seed", range(60))
def test_damage_is_seen_or_does_no_harm(whole: tuple[bytes, dict[int, str]], seed: int) -> None:
    content = bytearray(whole[0])
    chance = random.Random(seed)
    if seed % 3 == 0:
        del content[chance.randrange(len(content)) :]
    else:
        for _ in range(40):
            content[chance.randrange(16, len(content))] = chance.randrange(256)
    try:
        pages = Pages(bytes(content), whole[1])
    except Malformed:
        return
    assert all(0 <= each.start < each.end <= len(content) for each in pages.unused())
