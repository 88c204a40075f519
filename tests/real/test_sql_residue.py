"""What deletion leaves in the files of an SQLite database, found and taken away.

Every store here is written without ``secure_delete``, as most builds of SQLite do it: Debian's
overwrites by itself, and a test that does not switch that off proves nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from purge.adapter import Action, Control, Examined, NotChecked, ProblemCode, Residue
from purge.errors import Permanent, Transient
from purge.targets import NOTHING, NeedleKind
from purge.testing import breakages
from purge_adapters._sqlite_pages import TAIL, Pages
from tests.support.sql_stores import OTHER, SECRET, TABLE, Store, by_id, of, phrase

JOURNALS = ("DELETE", "TRUNCATE", "PERSIST", "WAL")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def plant(store: Store, *before: str, journal: str = "DELETE", rows: int = 40) -> None:
    """Make a table with the secret between neighbours, some of which are long."""
    store.run(*before, f"PRAGMA journal_mode = {journal}", TABLE)
    store.pragmas = (f"journal_mode = {journal}",)
    store.settings |= {"text": ["body"], "metadata": ["topic"]}
    fill(store, rows)


def fill(store: Store, rows: int) -> None:
    with closing(store.connect()) as connection:
        connection.execute("BEGIN")
        for at in range(rows):
            text = f"{OTHER}, number {at}. " * (200 if at % 10 == 0 else 1)
            insert(connection, f"mem-neighbour-{at:04}", text, "quay")
        insert(connection, "mem-of-the-key", SECRET, "keys of a house")
        connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, name: str, body: str, topic: str) -> None:
    connection.execute("INSERT INTO memories VALUES (?, ?, ?)", (name, body, topic))


def named(items: tuple[object, ...]) -> list[str]:
    return [item.where for item in of(Residue, items)]


# --- the matrix -----------------------------------------------------------------------------


@pytest.mark.parametrize("journal", JOURNALS)
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_what_we_delete_is_in_no_file_afterwards(store: Store, journal: str, encoding: str) -> None:
    plant(store, f"PRAGMA encoding = '{encoding}'", journal=journal)
    assert store.holding(SECRET)
    run = store.purge(by_id("mem-of-the-key"))
    assert [match.id for match in run.matches] == ["mem-of-the-key"]
    assert run.is_clean
    for text in (SECRET, "mem-of-the-key", "keys of a house"):
        assert store.holding(text) == []
    assert store.run("SELECT count(*) FROM memories") == [(40,)]
    assert store.run("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("journal", JOURNALS)
def test_what_an_application_deleted_earlier_is_found_and_overwritten(
    store: Store, journal: str
) -> None:
    plant(store, journal=journal)
    known = store.matches(by_id("mem-of-the-key"))
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    assert store.holding(SECRET)
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert run.matches == ()
    assert all(item.fixable for item in of(Residue, run.before))
    assert of(Residue, run.before)
    assert run.is_clean
    assert store.holding(SECRET) == []
    assert store.holding("mem-of-the-key") == []


def test_a_phrase_is_found_in_what_an_application_deleted_earlier(store: Store) -> None:
    plant(store)
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    run = store.purge(phrase("spare brasskeyling lies under the third"))
    assert [place.split(" (")[0] for place in named(run.before)] == ["memories.db"]
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_free_space_belongs_to_no_scope_and_is_overwritten_all_the_same(store: Store) -> None:
    plant(store)
    store.site["scope"] = {"topic": "topic"}
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    run = store.purge(phrase("spare brasskeyling lies under the third", topic="quay"))
    assert all(item.fixable for item in of(Residue, run.before))
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_free_pages_are_found_and_overwritten_without_a_rewrite(store: Store) -> None:
    plant(store)
    big = f"{SECRET} " * 2000
    store.run(("UPDATE memories SET body = ? WHERE id = 'mem-of-the-key'", (big,)))
    known = store.matches(by_id("mem-of-the-key"))
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    pages = store.run("PRAGMA freelist_count")[0][0]
    assert pages > 10
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert "memories.db (free page)" in named(run.before)
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_a_copy_in_the_gap_of_a_page_goes_by_a_rewrite(store: Store) -> None:
    # SQLite spreads a page over others and leaves what it moved in the old place, also under
    # secure_delete. Only some rows are hit, so there have to be many.
    store.run(TABLE)
    store.pragmas = ("secure_delete = ON",)
    with closing(store.connect()) as connection:
        connection.execute("BEGIN")
        for at in range(4000):
            insert(connection, f"mem-{at * 7919 % 4000:06}", f"{OTHER} {at}", "t")
        connection.execute("COMMIT")
        for at in range(0, 4000, 7):
            connection.execute(
                "UPDATE memories SET body = ? WHERE rowid = ?", (f"{SECRET} {at:06} " * 3, at + 1)
            )
    run = store.purge(phrase(SECRET))
    assert len(run.matches) == 572
    assert named(run.before) == ["memories.db (gap in a page)"]
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_the_tail_of_a_long_value_is_looked_into(store: Store) -> None:
    plant(store)
    known = store.matches(by_id("mem-of-the-key"))
    store.run(
        "PRAGMA secure_delete = ON",
        "DELETE FROM memories WHERE id = 'mem-of-the-key'",
        # Most long values fill their last page; one of this length does not.
        ("INSERT INTO memories VALUES ('mem-long', ?, 't')", ("x" * 8230,)),
    )
    roots = dict(store.run("SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0"))
    tails = [each for each in Pages(store.path.read_bytes(), roots).unused() if each.kind == TAIL]
    with store.path.open("r+b") as stream:
        stream.seek(next(each.end for each in tails if each.end - each.start > 100) - 60)
        stream.write(SECRET.encode())
    assert store.run("PRAGMA integrity_check") == [("ok",)]
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert named(run.before) == ["memories.db (tail of a long value)"]
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_an_update_leaves_the_old_words_and_they_are_found(store: Store) -> None:
    plant(store)
    known = store.matches(by_id("mem-of-the-key"))
    store.run("UPDATE memories SET body = 'shorter' WHERE id = 'mem-of-the-key'")
    seen = store.residue(by_id("mem-of-the-key"), known)
    assert named(seen) == ["memories.db (gap in a page)"]


# --- logs -----------------------------------------------------------------------------------


def test_frames_that_wait_in_the_log_are_residue_until_it_is_emptied(store: Store) -> None:
    plant(store, journal="WAL")
    with closing(store.connect()) as application:
        known = store.matches(by_id("mem-of-the-key"))
        application.execute("DELETE FROM memories WHERE id = 'mem-of-the-key'")
        run = store.purge(by_id("mem-of-the-key"), knowing=known)
        assert named(run.before)[0] == "memories.db-wal"
        # The log is emptied; what the application freed without care may be left then.
        again = store.purge(by_id("mem-of-the-key"), knowing=known)
        assert again.is_clean
        assert store.holding(SECRET) == []


def test_a_log_that_was_left_behind_is_read_as_an_application_would(store: Store) -> None:
    plant(store, journal="WAL", rows=3)
    with closing(store.connect()) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("UPDATE memories SET body = 'nothing' WHERE id = 'mem-of-the-key'")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        insert(connection, "mem-in-the-log", SECRET, "t")
        files = store.contents()
    # A crash: the log is there, and nobody has the database open.
    for name, data in files.items():
        (store.folder / name).write_bytes(data)
    (store.folder / "memories.db-shm").unlink()
    assert SECRET.encode() not in store.path.read_bytes()
    assert store.ids(phrase(SECRET)) == ["mem-in-the-log"]
    run = store.purge(phrase(SECRET))
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_a_reader_of_an_older_state_keeps_the_log_and_that_is_said(store: Store) -> None:
    plant(store, journal="WAL")
    with closing(store.connect()):
        with breakages.sqlite_locked(store.path, "DEFERRED"):
            run = store.purge(by_id("mem-of-the-key"))
            assert run.back == ()
            assert [item.problem for item in of(NotChecked, run.undone)] == [ProblemCode.BUSY]
            assert named(run.after) == ["memories.db-wal"]
            assert store.holding(SECRET)
        again = store.purge(by_id("mem-of-the-key"), knowing=run.matches)
    assert again.is_clean
    assert store.holding(SECRET) == []


def test_the_journal_that_an_application_keeps_is_residue_and_goes(store: Store) -> None:
    plant(store, journal="PERSIST")
    known = store.matches(by_id("mem-of-the-key"))
    store.pragmas = ("journal_mode = PERSIST", "secure_delete = ON")
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    assert store.holding(SECRET) == ["memories.db-journal"]
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert named(run.before) == ["memories.db-journal"]
    assert run.is_clean
    assert store.holding(SECRET) == []


def test_a_hot_journal_is_what_the_database_goes_back_to(store: Store) -> None:
    plant(store, rows=200)
    with closing(store.connect()) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE memories SET body = 'gone'")
        files = store.contents()
        connection.execute("ROLLBACK")
    for name, data in files.items():
        (store.folder / name).write_bytes(data)
    assert (store.folder / "memories.db-journal").exists()
    before = store.contents()
    assert store.ids(phrase(SECRET)) == ["mem-of-the-key"]
    assert store.contents() == before
    assert store.purge(phrase(SECRET)).is_clean


# --- other tables, other files ----------------------------------------------------------------


def test_another_table_that_holds_it_is_residue_without_a_date(store: Store) -> None:
    plant(store)
    store.run(
        "CREATE TABLE history (what TEXT)",
        "CREATE TRIGGER kept AFTER DELETE ON memories BEGIN "
        "INSERT INTO history VALUES (json_array(old.id, old.body)); END",
    )
    run = store.purge(by_id("mem-of-the-key"))
    assert [(item.where, item.until, item.fixable) for item in run.residue] == [
        ("table history", None, False)
    ]
    assert store.holding(SECRET) == ["memories.db"]


@pytest.mark.parametrize(
    ("noted", "is_residue"),
    [
        ("mem-of-the-key", True),
        ("removed mem-of-the-key at noon", True),
        ('{"ids": ["mem-of-the-key"]}', True),
        ("mem-of-the-keyring", False),
        ("my-mem-of-the-keys", False),
    ],
)
def test_an_id_in_another_table_is_residue_where_it_stands_by_itself(
    store: Store, noted: str, is_residue: bool
) -> None:
    plant(store)
    store.run("CREATE TABLE audit (what TEXT)", ("INSERT INTO audit VALUES (?)", (noted,)))
    run = store.purge(by_id("mem-of-the-key"))
    assert (named(run.after) == ["table audit"]) is is_residue
    assert run.is_clean is not is_residue


def test_what_a_neighbour_says_as_well_is_no_residue(store: Store) -> None:
    plant(store)
    store.run(("INSERT INTO memories VALUES ('mem-twin', ?, 'keys of a house')", (SECRET,)))
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert store.holding(SECRET) == ["memories.db"]
    assert store.run("SELECT body FROM memories WHERE id = 'mem-twin'") == [(SECRET,)]


def test_a_leftover_is_found_although_a_neighbour_says_the_same(store: Store) -> None:
    plant(store)
    store.run(("INSERT INTO memories VALUES ('mem-twin', ?, 't')", (SECRET,)))
    known = store.matches(by_id("mem-of-the-key"))
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    assert store.path.read_bytes().count(SECRET.encode()) == 2
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert named(run.before) == ["memories.db (gap in a page)"]
    assert run.is_clean
    assert store.path.read_bytes().count(SECRET.encode()) == 1


@pytest.mark.parametrize("name", ["memories.db.bak", "memories.db-old", "memories.db.1", "old~"])
def test_copies_beside_the_database_are_residue(store: Store, name: str) -> None:
    plant(store)
    shutil.copyfile(store.path, store.folder / name.replace("old~", "memories.db~"))
    run = store.purge(by_id("mem-of-the-key"))
    assert [item.fixable for item in run.residue] == [False]
    assert run.residue[0].where.startswith("memories.db")


def test_a_copy_is_asked_as_a_database_where_bytes_are_no_needle(store: Store) -> None:
    store.run(TABLE, "INSERT INTO memories VALUES ('m', 'ok', 't')")
    shutil.copyfile(store.path, store.folder / "memories.db.bak")
    run = store.purge(by_id("m"))
    assert named(run.after) == ["memories.db.bak"]


def test_a_copy_without_it_is_no_residue(store: Store) -> None:
    plant(store)
    with closing(sqlite3.connect(store.folder / "memories.db.bak")) as other:
        other.execute(TABLE)
    assert store.purge(by_id("mem-of-the-key")).is_clean


# --- controls and what cannot be looked at ------------------------------------------------------


def test_while_it_is_readable_the_look_must_see_it_in_the_bytes(store: Store) -> None:
    plant(store)
    known = store.matches(by_id("mem-of-the-key"))
    controls = of(Control, store.residue(by_id("mem-of-the-key"), known))
    assert {(each.kind, each.passed, each.on_target) for each in controls} == {
        (NeedleKind.ID, True, True),
        (NeedleKind.TEXT, True, True),
        (NeedleKind.METADATA, True, True),
    }


def test_words_that_are_packed_fail_the_control(store: Store) -> None:
    plant(store)
    packed = zlib.compress(" and ".join([SECRET] * 3).encode())
    store.run(("UPDATE memories SET body = ? WHERE id = 'mem-of-the-key'", (packed,)))
    known = store.matches(phrase(SECRET))
    assert [match.id for match in known] == ["mem-of-the-key"]
    controls = {each.kind: each.passed for each in of(Control, store.residue(NOTHING, known))}
    assert controls[NeedleKind.TEXT] is False


def test_once_it_is_gone_a_neighbour_is_the_control(store: Store) -> None:
    plant(store)
    run = store.purge(by_id("mem-of-the-key"))
    controls = of(Control, run.after)
    assert {each.kind for each in controls} >= {NeedleKind.ID, NeedleKind.TEXT}
    assert not any(each.on_target for each in controls)


def test_without_a_neighbour_the_structure_is_the_control(store: Store) -> None:
    plant(store, rows=0)
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert [each.kind for each in of(Control, run.after)] == [None]
    assert store.holding(SECRET) == []


def test_a_number_as_an_id_is_no_needle(store: Store) -> None:
    store.run("CREATE TABLE memories (id INTEGER PRIMARY KEY, body TEXT)")
    for at, text in ((1772352600000, SECRET), (1772352600001, OTHER)):
        store.run(("INSERT INTO memories VALUES (?, ?)", (at, text)))
    known = store.matches(by_id("1772352600000"))
    kinds = [each.kind for each in of(Control, store.residue(NOTHING, known))]
    assert kinds == [NeedleKind.TEXT]
    assert store.purge(by_id("1772352600000")).is_clean


def test_a_record_too_short_for_a_needle_is_proved_by_the_structure(store: Store) -> None:
    store.run("CREATE TABLE memories (id INTEGER PRIMARY KEY, body TEXT)")
    for at, text in enumerate(("plum", "fig", OTHER)):
        store.run(("INSERT INTO memories VALUES (?, ?)", (at, text)))
    known = store.matches(by_id("0"))
    store.run("DELETE FROM memories WHERE id = 0")
    run = store.purge(by_id("0"), knowing=known)
    assert named(run.before) == ["memories.db (gap in a page)"]
    assert run.is_clean
    assert store.holding("plum") == []


def test_a_blanked_record_keeps_its_id_and_loses_its_words(store: Store) -> None:
    plant(store)
    run = store.purge(by_id("mem-of-the-key"), Action.BLANK)
    assert run.is_clean
    assert store.holding(SECRET) == []
    assert store.run("SELECT body FROM memories WHERE id = 'mem-of-the-key'") == [("",)]


def test_a_database_cut_off_half_way_is_no_all_clear(store: Store) -> None:
    plant(store, rows=400)
    known = store.matches(by_id("mem-of-the-key"))
    with breakages.cut_in_half(store.path), pytest.raises(Permanent) as raised:
        store.residue(by_id("mem-of-the-key"), known)
    assert raised.value.problem == ProblemCode.CORRUPT


def test_pages_that_do_not_fit_together_are_no_all_clear(store: Store) -> None:
    plant(store, rows=400)
    known = store.matches(by_id("mem-of-the-key"))
    store.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    with store.path.open("r+b") as stream:
        stream.seek(36)
        stream.write((7).to_bytes(4, "big"))
    seen = store.residue(by_id("mem-of-the-key"), known)
    assert [item.problem for item in of(NotChecked, seen)] == [ProblemCode.CORRUPT]
    assert [each.passed for each in of(Control, seen) if each.kind is None] == [False]


def test_a_lock_that_stays_is_reported_in_time(store: Store) -> None:
    plant(store)
    known = store.matches(by_id("mem-of-the-key"))
    with breakages.sqlite_locked(store.path), pytest.raises(Transient) as raised:
        store.remove(known)
    assert raised.value.problem == ProblemCode.BUSY


def test_how_much_was_read_is_said(store: Store) -> None:
    plant(store)
    size = store.path.stat().st_size
    parts = of(Examined, store.residue(NOTHING))
    assert sum(part.bytes for part in parts) == size
    assert sum(part.files for part in parts) == 1


@pytest.fixture
def renumbering(store: Store) -> Iterator[Store]:
    """A database in which VACUUM would number rows anew that an index relies on."""
    store.run(
        TABLE,
        "CREATE TABLE lines (said TEXT)",
        "CREATE VIRTUAL TABLE words USING fts5(said, content='lines')",
        "CREATE TRIGGER added AFTER INSERT ON lines BEGIN "
        "INSERT INTO words(rowid, said) VALUES (new.rowid, new.said); END",
        "CREATE TRIGGER gone AFTER DELETE ON lines BEGIN "
        "INSERT INTO words(words, rowid, said) VALUES ('delete', old.rowid, old.said); END",
    )
    fill(store, 30)
    for word in ("alder", "birch", "cedar", "damson"):
        store.run(("INSERT INTO lines VALUES (?)", (word,)))
    store.run("DELETE FROM lines WHERE said = 'birch'")
    yield store
    found = store.run("SELECT rowid FROM words WHERE words MATCH 'cedar'")
    assert found == [(3,)]
    assert store.run("SELECT rowid, said FROM lines") == [(1, "alder"), (3, "cedar"), (4, "damson")]
    store.run("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")


def test_no_row_gets_another_number_by_a_rewrite(renumbering: Store) -> None:
    known = renumbering.matches(by_id("mem-of-the-key"))
    renumbering.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    run = renumbering.purge(by_id("mem-of-the-key"), knowing=known)
    assert named(run.before) == ["memories.db (gap in a page)"]
    assert run.is_clean
    assert renumbering.holding(SECRET) == []


def test_a_rewrite_that_would_number_rows_anew_is_left_undone_while_others_are_there(
    renumbering: Store,
) -> None:
    renumbering.run("PRAGMA journal_mode = WAL")
    known = renumbering.matches(by_id("mem-of-the-key"))
    renumbering.run("DELETE FROM memories WHERE id = 'mem-of-the-key'")
    with closing(renumbering.connect()) as other:
        other.execute("SELECT count(*) FROM memories").fetchone()
        run = renumbering.purge(by_id("mem-of-the-key"), knowing=known)
        assert [item.problem for item in of(NotChecked, run.undone)] == [ProblemCode.UNSUPPORTED]
        assert not run.is_clean
    again = renumbering.purge(by_id("mem-of-the-key"), knowing=known)
    assert again.is_clean
    assert renumbering.holding(SECRET) == []
