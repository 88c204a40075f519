"""Databases of applications that are known by name: mem0's history and opencode's sessions."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, Control, ProblemCode, Residue
from purge.targets import NeedleKind, Target, TargetKind, Targets
from tests.support.sql_stores import SITE, Store, by_id, lineage, of, phrase
from tests.support.sql_tables import NEAR, SECRET, clean, ids, insert, pieces, store

ACCENTED = "crème Yağmur card no 8812-KV"
DECOMPOSED = "cre\u0300me Yag\u0306mur card no 8812-KV"


HISTORY = """CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT,
    new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER,
    actor_id TEXT, role TEXT, tenant TEXT)"""
MESSAGES = """CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT,
    content TEXT, name TEXT, created_at DATETIME)"""

SESSION = """CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT,
    directory TEXT NOT NULL, title TEXT NOT NULL, time_created INTEGER, time_updated INTEGER)"""
MESSAGE = """CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL
    REFERENCES session(id) ON DELETE CASCADE, time_created INTEGER, data TEXT NOT NULL)"""
PART = """CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL REFERENCES message(id)
    ON DELETE CASCADE, session_id TEXT NOT NULL, time_created INTEGER, data TEXT NOT NULL)"""
TODO = """CREATE TABLE todo (session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    content TEXT NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (session_id, position))"""


@pytest.fixture
def mem0(tmp_path: Path) -> Store:
    made = store(tmp_path, {"format": "mem0"}, HISTORY, MESSAGES)
    when = "2026-02-03T08:00:00+00:00"

    def event(id: str, memory: str, old: Any, new: Any, what: str, at: Any = when) -> list[Any]:
        return [id, memory, old, new, what, at, None, what == "DELETE", None, None, "harbour"]

    insert(
        made,
        "history",
        event("h-1", "m-1", None, "Ilmari has a boathouse", "ADD"),
        event("h-2", "m-1", "Ilmari has a boathouse", SECRET, "UPDATE"),
        event("h-3", "m-1", SECRET, "Ilmari sold the boathouse", "UPDATE"),
        event("h-4", "m-2", None, SECRET, "ADD"),
        event("h-5", "m-2", SECRET, None, "DELETE", None),
        event("h-6", "m-3", None, DECOMPOSED, "ADD"),
        event("h-7", "m-4", None, NEAR, "ADD"),
    )
    insert(
        made,
        "messages",
        ["t-1", "user_id=ilmari", "user", f"keep this: {SECRET}", None, when],
        ["t-2", "user_id=ilmari", "assistant", "kept", None, when],
        ["h-7", "user_id=ilmari", "user", "an id that the history has too", None, when],
    )
    return made


def test_only_the_half_of_an_event_that_says_it_goes(mem0: Store) -> None:
    run = clean(mem0.purge(phrase(SECRET)))
    assert sorted(match.id for match in run.matches) == ["h-2", "h-3", "h-4", "h-5", "t-1"]
    rows = mem0.run("SELECT id, old_memory, new_memory, tenant FROM history ORDER BY id")
    assert rows == [
        ("h-1", None, "Ilmari has a boathouse", "harbour"),
        ("h-2", "Ilmari has a boathouse", "", "harbour"),
        ("h-3", "", "Ilmari sold the boathouse", "harbour"),
        ("h-6", None, DECOMPOSED, "harbour"),
        ("h-7", None, NEAR, "harbour"),
    ]
    assert ids(mem0, "messages") == ["h-7", "t-2"]


def test_an_event_of_the_history_goes_by_its_id_or_by_its_memory(mem0: Store) -> None:
    mem0.site |= {"derived_from": {"vectors": "memory_id"}}
    clean(mem0.purge(by_id("h-1")))
    assert "h-1" not in ids(mem0, "history")
    clean(mem0.purge(lineage("vectors", "m-2")))
    assert ids(mem0, "history") == ["h-2", "h-3", "h-6", "h-7"]
    assert len(ids(mem0, "messages")) == 3


def test_composed_letters_are_found_in_a_column(mem0: Store) -> None:
    clean(mem0.purge(phrase(ACCENTED)))
    assert "h-6" not in ids(mem0, "history")
    assert mem0.holding(DECOMPOSED) == []


@pytest.mark.parametrize("id", ["h-7", "t-1"])
def test_records_of_every_table_are_a_control_while_they_are_there(mem0: Store, id: str) -> None:
    seen = mem0.residue(by_id(id), mem0.matches(by_id(id)))
    assert of(Residue, seen) == ()
    controls = of(Control, seen)
    assert [c.passed for c in controls if c.kind is NeedleKind.TEXT and c.on_target] == [True]


def test_older_versions_have_no_messages(tmp_path: Path) -> None:
    made = store(tmp_path, {"format": "mem0"}, HISTORY)
    insert(made, "history", ["h-1", "m", None, SECRET, "ADD", None, None, 0, None, None, ""])
    clean(made.purge(phrase(SECRET)))
    assert ids(made, "history") == []
    made.run("DROP TABLE history")
    assert [each.sentence for each in made.check() if not each.ok] == [
        "There is no table 'history'."
    ]


def test_records_of_one_id_in_two_tables_are_two_records(mem0: Store) -> None:
    assert {match.part for match in mem0.matches(by_id("h-7"))} == {"history", "messages"}
    run = clean(mem0.purge(by_id("messages/h-7")))
    assert pieces(run.matches) == {("messages", "h-7"): 1}
    assert "h-7" in ids(mem0, "history")
    assert "h-7" not in ids(mem0, "messages")


def test_a_word_in_one_table_does_not_take_its_namesake_in_another(mem0: Store) -> None:
    run = clean(mem0.purge(phrase("an id that the history has too")))
    assert pieces(run.matches) == {("messages", "h-7"): 1}
    assert "h-7" in ids(mem0, "history")


def part(id: str, message: str, session: str, **data: Any) -> list[Any]:
    return [id, message, session, 1_772_000_000_000, json.dumps(data)]


@pytest.fixture
def opencode(tmp_path: Path) -> Store:
    made = store(
        tmp_path,
        {"format": "opencode"},
        "PRAGMA journal_mode = WAL",
        *(SESSION, MESSAGE, PART, TODO),
    )
    made.pragmas = ("journal_mode = WAL", "wal_autocheckpoint = 0")
    insert(
        made,
        "session",
        ["session-one", "p", None, "/srv/boats", f"About: {SECRET}", 1, 2],
        ["session-two", "p", "session-one", "/srv/boats", "looked up by a helper", 1, 2],
    )
    insert(
        made,
        "message",
        ["message-a", "session-one", 1, json.dumps({"role": "user", "time": {"created": 1}})],
        ["message-b", "session-one", 1, json.dumps({"role": "assistant", "summary": SECRET})],
        ["message-c", "session-two", 1, json.dumps({"role": "user"})],
    )
    tool = {"status": "completed", "input": {"q": "x"}, "output": f"row 1\n{DECOMPOSED}\nrow 3"}
    insert(
        made,
        "part",
        part("part-a1", "message-a", "session-one", type="text", text=SECRET),
        part("part-a2", "message-a", "session-one", type="text", text="and now the weather"),
        part("part-b1", "message-b", "session-one", type="tool", tool="read", state=tool),
        part("part-b2", "message-b", "session-one", type="text", text=NEAR),
        part("part-c1", "message-c", "session-two", type="text", text="tides of the month"),
    )
    insert(made, "todo", ["session-one", "oil the winch", 0], ["session-one", SECRET, 1])
    return made


def orphans(made: Store) -> list[Any]:
    return made.run(
        "SELECT id FROM part WHERE message_id NOT IN (SELECT id FROM message) "
        "OR session_id NOT IN (SELECT id FROM session) "
        "UNION ALL SELECT id FROM message WHERE session_id NOT IN (SELECT id FROM session) "
        "UNION ALL SELECT id FROM session WHERE parent_id NOT IN (SELECT id FROM session)"
    )


def test_a_sentence_takes_its_part_and_not_the_conversation(opencode: Store) -> None:
    other = opencode.run("SELECT * FROM part WHERE id <> 'part-a1' ORDER BY id")
    run = clean(opencode.purge(phrase(SECRET)))
    assert pieces(run.matches) == {
        ("session: words", "session-one"): 1,
        ("message: words", "message-b"): 1,
        ("part", "part-a1"): 1,
    }
    assert opencode.run("SELECT * FROM part ORDER BY id") == other
    titles = opencode.run("SELECT title, directory FROM session ORDER BY id")
    assert titles == [("", "/srv/boats"), ("looked up by a helper", "/srv/boats")]
    (said,) = opencode.run("SELECT data FROM message WHERE id = 'message-b'")
    assert json.loads(said[0]) == {"role": "assistant", "summary": ""}
    assert opencode.run("SELECT content FROM todo ORDER BY position") == [("oil the winch",), ("",)]
    assert orphans(opencode) == []
    assert len(opencode.holding(NEAR)) == 1


def test_a_tool_s_output_is_found_through_its_escapes(opencode: Store) -> None:
    run = clean(opencode.purge(phrase(f"row 1\n{ACCENTED}")))
    assert pieces(run.matches) == {("part", "part-b1"): 1}


def test_a_message_goes_with_its_parts(opencode: Store) -> None:
    run = clean(opencode.purge(by_id("message-a")))
    assert pieces(run.matches) == {("message", "message-a"): 3}
    assert ids(opencode, "part") == ["part-b1", "part-b2", "part-c1"]
    assert opencode.holding("and now the weather") == []
    assert opencode.holding("part-a2") == []
    assert orphans(opencode) == []


def test_the_names_of_parts_are_looked_for_too(opencode: Store) -> None:
    (match,) = opencode.matches(by_id("message-a"))
    assert {"part-a1", "part-a2"} <= set(match.trace.metadata)
    assert "and now the weather" in match.trace.texts


def test_a_session_goes_with_everything_and_lets_go_of_its_helpers(opencode: Store) -> None:
    run = clean(opencode.purge(by_id("session-one")))
    assert pieces(run.matches) == {("session", "session-one"): 7}
    assert opencode.run("SELECT id, parent_id FROM session") == [("session-two", None)]
    assert ids(opencode, "message") == ["message-c"]
    assert ids(opencode, "part") == ["part-c1"]
    assert opencode.run("SELECT count(*) FROM todo") == [(0,)]
    assert opencode.holding("session-one") == []
    assert orphans(opencode) == []


def test_no_row_counts_twice(opencode: Store) -> None:
    both = Targets(
        [
            Target(0, TargetKind.ID, "session-one", SITE),
            Target(1, TargetKind.ID, "message-a", SITE),
            Target(2, TargetKind.ID, "part-a2", SITE),
        ]
    )
    before = sum(len(ids(opencode, name)) for name in ("session", "message", "part"))
    run = clean(opencode.purge(both))
    after = sum(len(ids(opencode, name)) for name in ("session", "message", "part"))
    assert sum(match.pieces for match in run.matches) == before - after


def test_the_words_of_a_row_are_not_the_row(opencode: Store) -> None:
    """The engine looks for planned records by their ids, in one look with the words."""
    both = Targets([*phrase(SECRET), Target(7, TargetKind.ID, "session-one", SITE)])
    found = {match.part: match for match in opencode.matches(both) if match.id == "session-one"}
    assert {part: [hit.key for hit in match.hits] for part, match in found.items()} == {
        "session": [7],
        "session: words": [0],
    }
    assert opencode.remove([found["session: words"]]) == ()
    assert len(ids(opencode, "message")) == 3
    assert [match.part for match in opencode.matches(both) if match.id == "session-one"] == [
        "session"
    ]


def test_blanking_a_session_keeps_every_row(opencode: Store) -> None:
    before = [ids(opencode, name) for name in ("session", "message", "part")]
    run = opencode.purge(by_id("session-one"), Action.BLANK)
    assert run.is_clean
    assert [ids(opencode, name) for name in ("session", "message", "part")] == before
    (said,) = opencode.run("SELECT data FROM part WHERE id = 'part-a1'")
    assert json.loads(said[0]) == {"type": "text", "text": ""}
    assert opencode.holding("and now the weather") == []
    (kept,) = opencode.run("SELECT data FROM part WHERE id = 'part-c1'")
    assert json.loads(kept[0])["text"] == "tides of the month"


def test_blanking_words_in_a_title_leaves_the_parts(opencode: Store) -> None:
    opencode.purge(phrase(f"About: {SECRET}"), Action.BLANK)
    assert opencode.run("SELECT title FROM session ORDER BY id")[0] == ("",)
    (kept,) = opencode.run("SELECT data FROM part WHERE id = 'part-a2'")
    assert json.loads(kept[0])["text"] == "and now the weather"


def test_a_row_that_somebody_deleted_before_is_cleared_from_free_space(opencode: Store) -> None:
    words = "the old mooring is let to nobody at all"
    insert(opencode, "part", part("part-x", "message-c", "session-two", type="text", text=words))
    opencode.run("DELETE FROM part WHERE id = 'part-x'", "PRAGMA wal_checkpoint(TRUNCATE)")
    assert "memories.db" in opencode.holding(words)
    insert(opencode, "part", part("part-y", "message-c", "session-two", type="text", text=words))
    clean(opencode.purge(phrase(words)))
    assert opencode.holding(words) == []


def test_a_message_that_got_another_part_is_left(opencode: Store) -> None:
    matches = opencode.matches(by_id("message-a"))
    insert(opencode, "part", part("part-a3", "message-a", "session-one", type="text", text="new"))
    left = opencode.remove(matches)
    assert [each.problem for each in left] == [ProblemCode.CHANGED_UNDERNEATH]
    assert "message-a" in ids(opencode, "message")
    assert "part-a3" in ids(opencode, "part")


def test_a_title_is_emptied_while_the_conversation_goes_on(opencode: Store) -> None:
    matches = [m for m in opencode.matches(phrase(SECRET)) if m.part == "session: words"]
    insert(opencode, "part", part("part-a3", "message-a", "session-one", type="text", text="new"))
    assert opencode.remove(matches) == ()
    assert opencode.run("SELECT title FROM session ORDER BY id")[0] == ("",)


def test_another_table_that_holds_the_words_is_residue(opencode: Store) -> None:
    opencode.run("CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT)")
    insert(opencode, "project", ["p", SECRET])
    run = opencode.purge(phrase(SECRET))
    assert [each.where for each in run.residue] == ["table project"]


def test_looking_changes_no_file(opencode: Store) -> None:
    with closing(opencode.connect()) as connection:
        connection.execute("SELECT * FROM part").fetchall()
        before = opencode.contents()
        assert "memories.db-wal" in before
        opencode.find(phrase(SECRET))
        opencode.residue(phrase(SECRET), opencode.matches(phrase(SECRET)))
        assert opencode.contents() == before
