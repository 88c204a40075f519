"""Full-text tables beside the records: kept in step, emptied of what is gone, or reported."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from purge.adapter import Action, Residue
from purge_adapters._sqlite_segments import segments, stored_rows
from tests.support.sql_stores import OTHER, SECRET, Store, by_id, of, phrase

TABLE = "CREATE TABLE memories (number INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, topic TEXT)"
OVER = "content='memories', content_rowid='number'"
ADDED = (
    "CREATE TRIGGER added AFTER INSERT ON memories BEGIN "
    "INSERT INTO words(rowid, body) VALUES (new.number, new.body); END"
)
GONE = (
    "CREATE TRIGGER gone AFTER DELETE ON memories BEGIN "
    "INSERT INTO words(words, rowid, body) VALUES ('delete', old.number, old.body); END"
)
EDITED = (
    "CREATE TRIGGER edited AFTER UPDATE ON memories BEGIN "
    "INSERT INTO words(words, rowid, body) VALUES ('delete', old.number, old.body); "
    "INSERT INTO words(rowid, body) VALUES (new.number, new.body); END"
)
TOKENIZERS = ("unicode61 remove_diacritics 2", "trigram", "porter")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, settings={"id": "id", "text": ["body"], "metadata": ["topic"]})


def make(store: Store, declared: str, *triggers: str, rows: int = 12) -> None:
    store.run(TABLE, f"CREATE VIRTUAL TABLE words USING {declared}", *triggers)
    for at in range(rows):
        add(store, f"mem-{at:03}", f"{OTHER} {at}")
    add(store, "mem-of-the-key", SECRET)


def add(store: Store, name: str, body: str) -> None:
    store.run(("INSERT INTO memories (id, body, topic) VALUES (?, ?, 'quay')", (name, body)))


def fill(store: Store) -> None:
    """Fill the index as an application does that has no triggers."""
    store.run("INSERT INTO words(rowid, body) SELECT number, body FROM memories")


def matching(store: Store, words: str) -> list[int]:
    return [
        row[0]
        for row in store.run(("SELECT rowid FROM words WHERE words MATCH ?", (f'"{words}"',)))
    ]


def still_stored(store: Store, term: str) -> set[int]:
    with closing(store.connect()) as connection:
        return stored_rows(connection, "words", term)


def is_in_step(store: Store) -> bool:
    store.run("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
    return True


def places(items: Sequence[object]) -> list[str]:
    return [item.where for item in of(Residue, items)]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_the_words_of_a_row_leave_the_older_segments(store: Store, tokenizer: str) -> None:
    make(store, f"fts5(body, {OVER}, tokenize='{tokenizer}')", ADDED, GONE, EDITED)
    term = "bra" if tokenizer == "trigram" else "third"
    store_terms = still_stored(store, term)
    assert store_terms == {13}
    matches = store.matches(by_id("mem-of-the-key"))
    store.remove(matches)
    # The index hides the row, and still has it.
    assert matching(store, "third flowerpot") == []
    assert still_stored(store, term) == {13}
    seen = store.residue(by_id("mem-of-the-key"), matches)
    assert places(seen) == ["full-text index words"]
    run = store.purge(by_id("mem-of-the-key"), knowing=matches)
    assert run.is_clean
    assert still_stored(store, term) == set()
    assert len(matching(store, "east quay")) == 12
    assert is_in_step(store)


def test_a_later_look_is_not_disturbed_by_what_others_add(store: Store) -> None:
    make(store, f"fts5(body, {OVER})", ADDED, GONE, EDITED)
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    for at in range(5):
        add(store, f"mem-new-{at}", f"the spare one is number {at}")
    store.run("DELETE FROM memories WHERE id = 'mem-new-3'")
    with closing(store.connect()) as connection:
        assert len(segments(connection, "words")) > 1
    again = store.purge(by_id("mem-of-the-key"), knowing=run.matches)
    assert again.is_clean


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_an_index_that_no_trigger_tells_is_told(store: Store, tokenizer: str) -> None:
    make(store, f"fts5(body, {OVER}, tokenize='{tokenizer}')")
    fill(store)
    assert matching(store, "third flowerpot") == [13]
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert matching(store, "third flowerpot") == []
    assert len(matching(store, "east quay")) == 12
    assert is_in_step(store)


def test_an_index_that_was_out_of_step_is_built_anew_and_not_spoilt(store: Store) -> None:
    make(store, f"fts5(body, {OVER})")
    fill(store)
    # The application changed the row and never told the index.
    store.run("UPDATE memories SET body = 'quite another text' WHERE id = 'mem-of-the-key'")
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert matching(store, "third flowerpot") == []
    assert is_in_step(store)


def test_what_an_application_deleted_and_left_in_the_index_goes_by_building_it_anew(
    store: Store,
) -> None:
    make(store, f"fts5(body, {OVER})")
    fill(store)
    known = store.matches(by_id("mem-of-the-key"))
    store.run("PRAGMA secure_delete = ON", "DELETE FROM memories WHERE id = 'mem-of-the-key'")
    assert matching(store, "third flowerpot") == [13]
    run = store.purge(by_id("mem-of-the-key"), knowing=known)
    assert "full-text index words" in places(run.before)
    assert run.is_clean
    assert matching(store, "third flowerpot") == []


def test_a_blanked_record_leaves_the_index(store: Store) -> None:
    make(store, f"fts5(body, {OVER})")
    fill(store)
    run = store.purge(by_id("mem-of-the-key"), Action.BLANK)
    assert run.is_clean
    assert matching(store, "third flowerpot") == []
    assert still_stored(store, "flowerpot") == set()
    assert is_in_step(store)


def test_an_index_without_content_is_told_by_its_triggers(store: Store) -> None:
    make(store, "fts5(body, content='')", ADDED, GONE)
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert still_stored(store, "flowerpot") == set()
    assert len(matching(store, "east quay")) == 12


def test_an_index_without_content_that_nobody_tells_is_told_here(store: Store) -> None:
    make(store, "fts5(body, content='')", ADDED)
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert matching(store, "third flowerpot") == []
    assert len(matching(store, "east quay")) == 12


def test_words_in_an_index_without_content_and_without_a_tie_are_reported(store: Store) -> None:
    make(store, "fts5(body, content='')")
    fill(store)
    run = store.purge(by_id("mem-of-the-key"))
    assert [(item.where, item.fixable) for item in run.residue] == [
        ("full-text index words", False)
    ]


def test_a_table_with_copies_of_its_own_is_another_table_that_holds_it(store: Store) -> None:
    make(store, "fts5(id UNINDEXED, body)")
    store.run("INSERT INTO words(id, body) SELECT id, body FROM memories")
    run = store.purge(by_id("mem-of-the-key"))
    assert places(run.after) == ["table words"]
    assert not run.is_clean


def test_a_table_with_copies_of_its_own_goes_with_the_record_where_it_is_named(
    store: Store,
) -> None:
    make(store, "fts5(id UNINDEXED, body)")
    store.run("INSERT INTO words(id, body) SELECT id, body FROM memories")
    store.settings["children"] = [{"table": "words", "column": "id"}]
    assert store.ids(phrase("third flowerpot")) == ["mem-of-the-key"]
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert matching(store, "third flowerpot") == []
    assert still_stored(store, "flowerpot") == set()
    assert len(matching(store, "east quay")) == 12


def test_what_only_the_index_has_is_found_by_a_phrase(store: Store) -> None:
    make(store, f"fts5(body, {OVER})", ADDED, GONE, EDITED)
    store.run(
        "DELETE FROM memories WHERE id = 'mem-of-the-key'",
        "PRAGMA secure_delete = ON",
        "VACUUM",
    )
    assert store.holding(SECRET) == []
    run = store.purge(phrase("spare brasskeyling lies under the third"))
    assert places(run.before) == ["full-text index words"]
    assert run.is_clean
    assert still_stored(store, "brasskeyling") == set()


def test_fts4_is_told_and_merged(store: Store) -> None:
    make(store, "fts4(body, content='memories')")
    store.run("INSERT INTO words(docid, body) SELECT number, body FROM memories")
    assert matching(store, "third flowerpot") == [13]
    run = store.purge(by_id("mem-of-the-key"))
    assert run.is_clean
    assert matching(store, "third flowerpot") == []
    assert store.run("SELECT count(*) FROM words_segdir") == [(1,)]
    assert len(matching(store, "east quay")) == 12


def test_the_look_at_an_index_changes_nothing(store: Store) -> None:
    make(store, f"fts5(body, {OVER})", ADDED, GONE, EDITED)
    matches = store.matches(by_id("mem-of-the-key"))
    store.remove(matches)
    before = store.contents()
    store.residue(by_id("mem-of-the-key"), matches)
    assert store.contents() == before
