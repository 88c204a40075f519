"""Whether a look that found nothing in an SQLite file could have found something."""

from __future__ import annotations

import zlib
from contextlib import closing
from pathlib import Path

import pytest

from purge.adapter import Action, Control, Examined, NotChecked, ProblemCode
from purge.errors import Permanent, Transient
from purge.targets import NOTHING, NeedleKind
from purge.testing import breakages
from purge_adapters._sqlite_bytes import BLOCK
from tests.support.sql_stores import (
    OTHER,
    SECRET,
    Store,
    by_id,
    insert,
    named,
    of,
    phrase,
    plant,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_while_it_is_readable_the_look_must_see_it_in_the_bytes(store: Store) -> None:
    plant(store)
    known = store.matches(by_id("mem-of-the-key"))
    controls = of(Control, store.residue(by_id("mem-of-the-key"), known))
    assert {(each.kind, each.passed, each.on_target) for each in controls} == {
        (NeedleKind.ID, True, True),
        (NeedleKind.TEXT, True, True),
        (NeedleKind.METADATA, True, True),
    }


def test_it_is_seen_wherever_it_stands_in_a_large_file(store: Store) -> None:
    plant(store)
    filler = [(f"mem-large-{at}", "x" * 60_000, "t") for at in range(150)]
    with closing(store.connect()) as connection:
        connection.execute("DELETE FROM memories WHERE id = 'mem-of-the-key'")
        connection.executemany("INSERT INTO memories VALUES (?, ?, ?)", filler)
        connection.execute("VACUUM")
        insert(connection, "mem-of-the-lock", SECRET, "keys of a house")
    assert store.path.read_bytes().rfind(SECRET.encode()) > 2 * BLOCK
    known = store.matches(by_id("mem-of-the-lock"))
    controls = of(Control, store.residue(by_id("mem-of-the-lock"), known))
    assert controls
    assert all(each.passed and each.on_target for each in controls)


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


def test_a_free_page_is_no_proof_for_what_is_shorter_still(store: Store) -> None:
    store.run("CREATE TABLE memories (id INTEGER PRIMARY KEY, body TEXT)")
    for at in range(900):
        store.run(("INSERT INTO memories VALUES (?, ?)", (at, "fig" if at else OTHER)))
    known = store.matches(by_id("899"))
    store.run("DELETE FROM memories WHERE id > 9")
    assert store.run("PRAGMA freelist_count")[0][0] > 0
    run = store.purge(by_id("899"), knowing=known)
    assert "memories.db (free page)" in named(run.before)
    assert run.is_clean


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
