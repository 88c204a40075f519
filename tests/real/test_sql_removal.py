"""Removing rows: exactly those that were found, as they were found, whatever the schema does."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from purge.adapter import Action, ProblemCode, Readability
from purge.errors import EmptySelector, Permanent, Refused, StoreError, Transient
from purge.testing import breakages
from tests.support.sql_stores import OTHER, SECRET, TABLE, Store, by_id, phrase

WORDS = "spare brasskeyling lies under the third flowerpot"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def plant(store: Store, *before: str) -> None:
    store.run(*(before or (TABLE,)))
    for name, body in (("a", SECRET), ("b", OTHER), ("c", f"{SECRET} as well")):
        store.run(("INSERT INTO memories (id, body) VALUES (?, ?)", (name, body)))


def names(store: Store) -> list[str]:
    return [row[0] for row in store.run("SELECT id FROM memories ORDER BY id")]


def problems(left: object) -> list[ProblemCode]:
    return [item.problem for item in left]  # type: ignore[attr-defined]  # what remove() returned


def test_only_the_row_that_changed_is_left(store: Store) -> None:
    plant(store)
    matches = store.matches(phrase(WORDS))
    store.run("UPDATE memories SET topic = 'new' WHERE id = 'a'")
    assert problems(store.remove(matches)) == [ProblemCode.CHANGED_UNDERNEATH]
    assert names(store) == ["a", "b"]


def test_a_row_that_another_one_took_the_place_of_is_left(store: Store) -> None:
    plant(store)
    matches = store.matches(by_id("a"))
    store.run("DELETE FROM memories", ("INSERT INTO memories VALUES ('a', ?, NULL)", (OTHER,)))
    assert problems(store.remove(matches)) == [ProblemCode.CHANGED_UNDERNEATH]
    assert names(store) == ["a"]


def test_a_value_of_another_type_is_a_change(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body)")
    store.run("INSERT INTO memories VALUES ('a', 7)")
    matches = store.matches(by_id("a"))
    store.run("UPDATE memories SET body = '7'")
    assert problems(store.remove(matches)) == [ProblemCode.CHANGED_UNDERNEATH]


def test_a_row_added_below_is_a_change(store: Store) -> None:
    plant(store, TABLE, "CREATE TABLE lines (memory TEXT REFERENCES memories, said TEXT)")
    matches = store.matches(by_id("a"))
    store.run("INSERT INTO lines VALUES ('a', 'a new line')")
    assert problems(store.remove(matches)) == [ProblemCode.CHANGED_UNDERNEATH]
    assert store.run("SELECT count(*) FROM lines") == [(1,)]


def test_a_handle_of_another_row_takes_nothing(store: Store) -> None:
    plant(store)
    (a,), (b,) = store.matches(by_id("a")), store.matches(by_id("b"))
    assert problems(
        store.remove(
            [
                replace(
                    a,
                    handle={
                        "rows": [
                            {**b.handle["rows"][0], "digest": a.handle["rows"][0]["digest"]}  # type: ignore[index]
                        ]
                    },
                )
            ]
        )
    ) == [ProblemCode.CHANGED_UNDERNEATH]
    assert names(store) == ["a", "b", "c"]


def test_nothing_is_deleted_for_nothing(store: Store) -> None:
    plant(store)
    with pytest.raises(EmptySelector):
        store.remove(())
    (match,) = store.matches(by_id("a"))
    assert store.remove([replace(match, handle={"rows": []})]) == ()
    assert names(store) == ["a", "b", "c"]


def test_a_record_to_which_another_refers_is_left(store: Store) -> None:
    plant(
        store,
        "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, "
        "parent TEXT REFERENCES memories ON DELETE CASCADE)",
    )
    store.run("UPDATE memories SET parent = 'a' WHERE id = 'b'")
    left = store.remove(store.matches(phrase(WORDS)))
    assert [item.match.id for item in left] == ["a"]
    assert problems(left) == [ProblemCode.UNSUPPORTED]
    assert names(store) == ["a", "b"]


def test_records_that_refer_to_one_another_go_together(store: Store) -> None:
    plant(
        store,
        "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, parent TEXT REFERENCES memories)",
    )
    store.run("UPDATE memories SET parent = 'a' WHERE id = 'c'")
    assert store.remove(store.matches(phrase(WORDS))) == ()
    assert names(store) == ["b"]


def test_what_hangs_on_a_record_that_is_left_is_left_as_well(store: Store) -> None:
    plant(
        store,
        "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, parent TEXT REFERENCES memories)",
    )
    store.run(
        "UPDATE memories SET parent = 'a' WHERE id = 'c'",
        "UPDATE memories SET parent = 'c' WHERE id = 'b'",
    )
    left = store.remove(store.matches(phrase(WORDS)))
    assert sorted(item.match.id for item in left) == ["a", "c"]
    assert names(store) == ["a", "b", "c"]


def test_a_trigger_that_forbids_one_record_does_not_spare_the_others(store: Store) -> None:
    plant(store)
    store.run(
        "CREATE TRIGGER kept BEFORE DELETE ON memories WHEN old.id = 'a' "
        "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    )
    left = store.remove(store.matches(phrase(WORDS)))
    assert [item.match.id for item in left] == ["a"]
    assert problems(left) == [ProblemCode.UNSUPPORTED]
    assert names(store) == ["a", "b"]


def test_a_trigger_that_rolls_back_is_an_error_and_loses_nothing(store: Store) -> None:
    plant(store)
    store.run(
        "CREATE TRIGGER kept BEFORE DELETE ON memories "
        "BEGIN SELECT RAISE(ROLLBACK, 'nothing at all'); END"
    )
    with pytest.raises(Permanent) as raised:
        store.remove(store.matches(phrase(WORDS)))
    assert raised.value.problem == ProblemCode.UNSUPPORTED
    assert names(store) == ["a", "b", "c"]


def test_a_trigger_that_only_hides_the_row_leaves_it_to_be_found_again(store: Store) -> None:
    plant(store)
    store.run(
        "CREATE TRIGGER kept BEFORE DELETE ON memories "
        "BEGIN UPDATE memories SET topic = 'deleted' WHERE id = old.id; "
        "SELECT RAISE(IGNORE); END"
    )
    run = store.purge(by_id("a"))
    assert [match.id for match in run.back] == ["a"]


def test_a_foreign_key_that_cannot_work_is_an_error_and_loses_nothing(store: Store) -> None:
    # SQLite accepts the declaration and fails at the first DELETE with foreign keys on.
    plant(store, TABLE, "CREATE TABLE lines (memory TEXT REFERENCES memories(topic))")
    store.run("INSERT INTO lines VALUES ('x')")
    with pytest.raises(StoreError):
        store.remove(store.matches(by_id("a")))
    assert names(store) == ["a", "b", "c"]


def test_what_is_deleted_is_overwritten_at_once(store: Store) -> None:
    plant(store)
    store.remove(store.matches(by_id("a")))
    assert store.path.read_bytes().count(SECRET.encode()) == 1


def test_a_thousand_records_go_in_one_transaction(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT, part INTEGER, body TEXT, PRIMARY KEY (id, part))")
    with closing(store.connect()) as connection:
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO memories VALUES (?, ?, ?)",
            [(f"m{at % 1500}", at // 1500, SECRET if at % 3 else OTHER) for at in range(3000)],
        )
        connection.execute("COMMIT")
    store.settings["id"] = "id"
    matches = store.matches(phrase(WORDS))
    assert len(matches) == 1000
    assert store.remove(matches) == ()
    assert store.run("SELECT count(*) FROM memories") == [(1000,)]


# --- blanking -------------------------------------------------------------------------------


def test_blanking_empties_the_fields_that_matched_as_well(store: Store) -> None:
    plant(store)
    store.settings["text"] = ["body"]
    store.run(("UPDATE memories SET topic = ? WHERE id = 'b'", (SECRET,)))
    run = store.purge(phrase(WORDS), Action.BLANK)
    assert run.is_clean
    assert store.run("SELECT * FROM memories ORDER BY id") == [
        ("a", "", None),
        ("b", "", ""),
        ("c", "", None),
    ]


def test_blanking_empties_a_path_in_json_and_leaves_the_rest_as_it_was(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, data JSON)")
    written = '{ "type":"text",  "parts": [ {"text": "%s", "n": 1.50} ], "note": "kept" }'
    store.run(("INSERT INTO memories VALUES ('a', ?)", (written.replace("%s", SECRET),)))
    store.settings["text"] = ["data.parts.text"]
    run = store.purge(by_id("a"), Action.BLANK)
    assert run.is_clean
    assert store.run("SELECT data FROM memories") == [(written.replace("%s", ""),)]
    (match,) = store.matches(by_id("a"), Action.BLANK)
    assert match.readability is Readability.BLANKED


def test_blanking_empties_a_number_that_matched(store: Store) -> None:
    store.run("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, phone INTEGER NOT NULL)")
    store.run("INSERT INTO memories VALUES ('a', 'of the phone', 66812345678)")
    store.purge(phrase("66812345678"), Action.BLANK)
    assert store.run("SELECT * FROM memories") == [("a", "", 0)]


def test_blanking_takes_null_where_a_constraint_refuses_the_empty_text(store: Store) -> None:
    plant(
        store,
        "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT CHECK (length(body) > 3))",
    )
    assert store.remove(store.matches(by_id("a"), Action.BLANK), Action.BLANK) == ()
    assert store.run("SELECT body FROM memories WHERE id = 'a'") == [(None,)]


def test_blanking_that_no_constraint_allows_is_left_and_said(store: Store) -> None:
    plant(
        store,
        "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT NOT NULL CHECK (length(body) > 3))",
    )
    left = store.remove(store.matches(by_id("a"), Action.BLANK), Action.BLANK)
    assert problems(left) == [ProblemCode.UNSUPPORTED]
    assert store.run("SELECT body FROM memories WHERE id = 'a'") == [(SECRET,)]


def test_words_in_the_id_itself_stay_and_so_the_record_is_still_readable(store: Store) -> None:
    store.run(TABLE)
    store.run(("INSERT INTO memories VALUES (?, 'x', 't')", (SECRET,)))
    run = store.purge(phrase(WORDS), Action.BLANK)
    assert [match.readability for match in run.back] == [Readability.READABLE]


def test_the_rows_below_are_emptied_by_the_fields_that_are_named(store: Store) -> None:
    store.run(
        TABLE,
        "CREATE TABLE lines (id TEXT PRIMARY KEY, memory TEXT REFERENCES memories, "
        "thread_id TEXT, data JSON)",
        "INSERT INTO memories VALUES ('a', 'a title', 't')",
        (
            "INSERT INTO lines VALUES ('l', 'a', 'thread', ?)",
            ('{"role": "user", "text": "' + SECRET + '"}',),
        ),
    )
    store.settings |= {
        "text": ["body"],
        "children": [{"table": "lines", "column": "memory", "parent": "id", "text": ["data.text"]}],
    }
    run = store.purge(by_id("a"), Action.BLANK)
    assert run.is_clean
    assert store.run("SELECT * FROM lines") == [
        ("l", "a", "thread", '{"role": "user", "text": ""}')
    ]
    assert store.run("SELECT * FROM memories") == [("a", "", "t")]


def test_blanking_twice_changes_nothing(store: Store) -> None:
    plant(store)
    matches = store.matches(by_id("a"), Action.BLANK)
    store.remove(matches, Action.BLANK)
    before = store.contents()
    assert store.remove(matches, Action.BLANK) == ()
    assert store.contents() == before


# --- what stands in the way -------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_lock_is_waited_for_a_moment_and_then_reported(store: Store, mode: str) -> None:
    plant(store)
    matches = store.matches(by_id("a"))
    with breakages.sqlite_locked(store.path, mode):
        # Looking takes no lock and meets none.
        assert store.matches(by_id("a")) == matches
        with pytest.raises(Transient) as raised:
            store.remove(matches)
    assert raised.value.problem == ProblemCode.BUSY
    assert store.remove(matches) == ()


def test_a_process_that_only_has_it_open_is_no_hindrance(store: Store) -> None:
    plant(store)
    with breakages.held_open([store.path]):
        assert store.purge(by_id("a")).is_clean


def test_a_file_that_is_read_only_is_left_even_by_root(store: Store) -> None:
    plant(store)
    matches = store.matches(by_id("a"))
    store.path.chmod(0o444)
    with pytest.raises(Permanent) as raised:
        store.remove(matches)
    assert raised.value.problem == ProblemCode.NO_PERMISSION
    store.path.chmod(0o644)
    assert store.remove(matches) == ()


def test_a_table_that_went_is_no_zero_deleted(store: Store) -> None:
    plant(store)
    matches = store.matches(by_id("a"))
    store.run("DROP TABLE memories")
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.remove(matches),
        lambda: store.find(by_id("a")),
    )
    for act in acts:
        with pytest.raises(Permanent) as raised:
            act()
        assert raised.value.problem == ProblemCode.UNREACHABLE


def test_a_database_is_never_created(store: Store) -> None:
    plant(store)
    matches = store.matches(by_id("a"))
    store.path.unlink()
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.find(by_id("a")),
        lambda: store.remove(matches),
        lambda: store.residue(by_id("a"), matches),
    )
    for act in acts:
        with pytest.raises(Permanent) as raised:
            act()
        assert raised.value.problem == ProblemCode.UNREACHABLE
    assert os.listdir(store.folder) == []


def test_a_database_outside_the_root_is_refused(store: Store) -> None:
    store.settings["url"] = "sqlite:///../elsewhere.db"
    with pytest.raises(Refused):
        store.find(by_id("a"))
