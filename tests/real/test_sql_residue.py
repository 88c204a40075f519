"""What deletion leaves in the files of an SQLite database, found and taken away.

Every store here is written without ``secure_delete``, as most builds of SQLite do it: Debian's
overwrites by itself, and a test that does not switch that off proves nothing.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from purge.adapter import NotChecked, ProblemCode, Residue
from purge.testing import breakages
from purge_adapters._sqlite import moment
from purge_adapters._sqlite_pages import TAIL, Pages
from tests.support.sql_stores import (
    OTHER,
    SECRET,
    TABLE,
    Store,
    by_id,
    insert,
    named,
    of,
    phrase,
    plant,
)

JOURNALS = ("DELETE", "TRUNCATE", "PERSIST", "WAL")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


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


def test_frames_that_wait_in_the_log_are_residue_and_what_they_will_leave_as_well(
    store: Store,
) -> None:
    plant(store, journal="WAL")
    for at in range(60):
        store.run(("INSERT INTO memories VALUES (?, ?, 't')", (f"mem-later-{at}", f"{OTHER} {at}")))
    known = store.matches(by_id("mem-of-the-key"))
    with closing(store.connect()) as application:
        application.execute("DELETE FROM memories WHERE id = 'mem-of-the-key'")
        # In the database file it is still a row; the gap in a page is only in the log yet.
        run = store.purge(by_id("mem-of-the-key"), knowing=known)
        assert named(run.before) == ["memories.db-wal", "memories.db (gap in a page)"]
        assert run.is_clean
        assert store.holding(SECRET) == []


def test_left_overs_are_found_and_go_while_an_application_keeps_its_log(store: Store) -> None:
    plant(store, journal="WAL")
    for at in range(60):
        store.run(("INSERT INTO memories VALUES (?, ?, 't')", (f"mem-later-{at}", f"{OTHER} {at}")))
    known = store.matches(by_id("mem-of-the-key"))
    with closing(store.connect()) as application:
        application.execute("DELETE FROM memories WHERE id = 'mem-of-the-key'")
        application.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        insert(application, "mem-new", "something new", "t")
        assert store.path.with_name("memories.db-wal").stat().st_size > 0
        seen = store.residue(by_id("mem-of-the-key"), known)
        assert "memories.db (gap in a page)" in named(seen)
        assert store.sanitize(seen) == ()
        insert(application, "mem-newer", "something newer", "t")
        assert of(Residue, store.residue(by_id("mem-of-the-key"), known)) == ()
    assert store.holding(SECRET[:30]) == store.holding(SECRET[10:40]) == []


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
    plant(store, rows=3000)
    with closing(store.connect()) as connection:
        connection.execute("PRAGMA cache_size = 10")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE memories SET body = 'gone'")
        files = store.contents()
        connection.execute("ROLLBACK")
    for name, data in files.items():
        (store.folder / name).write_bytes(data)
    assert moment(store.path).hot_journal
    before = store.contents()
    assert store.ids(phrase(SECRET)) == ["mem-of-the-key"]
    assert store.contents() == before
    assert store.purge(phrase(SECRET)).is_clean
