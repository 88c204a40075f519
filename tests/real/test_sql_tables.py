"""Several tables behind one site, described in the manifest: what goes with what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, Match, ProblemCode
from tests.support.sql_stores import Store, by_id, of, phrase
from tests.support.sql_tables import SECRET, clean, ids, insert, pieces, store

# A forum that nobody has heard of: integers as ids, replies to replies, marks beside them.

FORUM = (
    "CREATE TABLE boards (board INTEGER PRIMARY KEY, heading TEXT, latest INTEGER)",
    "CREATE TABLE posts (post INTEGER PRIMARY KEY, on_board INTEGER, answers INTEGER, body TEXT)",
    "CREATE TABLE marks (mark INTEGER PRIMARY KEY, of_post INTEGER, emoji TEXT, note TEXT)",
)
DESCRIBED: dict[str, Any] = {
    "boards": {
        "text": ["heading"],
        "belongs_to": {"posts": {"column": "latest", "when_gone": "unlink"}},
    },
    "posts": {
        "text": ["body"],
        "action": "delete",
        "belongs_to": {"boards": "on_board", "posts": "answers"},
    },
    "marks": {"text": ["note"], "belongs_to": {"posts": {"column": "of_post", "to": "post"}}},
}


@pytest.fixture
def forum(tmp_path: Path) -> Store:
    made = store(tmp_path, {"format": {"tables": DESCRIBED}}, *FORUM)
    insert(made, "boards", [1, "general talk about tar", 3], [2, "weather", 5])
    insert(
        made,
        "posts",
        *([1, 1, None, "who has seen the barrel"], [2, 1, 1, SECRET], [3, 1, 2, "thank you"]),
        *([4, 1, 3, "no more of this"], [5, 2, None, "rain by noon"]),
    )
    insert(made, "marks", [1, 1, "ok", ""], [2, 3, "heart", "so kind of you all"], [3, 5, "x", ""])
    return made


def test_replies_go_with_what_they_answer_at_any_depth(forum: Store) -> None:
    run = clean(forum.purge(phrase(SECRET)))
    assert pieces(run.matches) == {("posts", "2"): 4}
    assert forum.run("SELECT post FROM posts ORDER BY post") == [(1,), (5,)]
    assert forum.run("SELECT mark FROM marks ORDER BY mark") == [(1,), (3,)]
    assert forum.run("SELECT board, latest FROM boards ORDER BY board") == [(1, None), (2, 5)]
    assert forum.holding("so kind of you all") == []


def test_a_table_can_be_named_before_an_id(forum: Store) -> None:
    assert len(forum.matches(by_id("1"))) == 3
    clean(forum.purge(by_id("marks/1")))
    assert forum.run("SELECT count(*) FROM marks") == [(2,)]
    assert forum.run("SELECT count(*) FROM posts") == [(5,)]
    run = clean(forum.purge(by_id("boards/1")))
    assert pieces(run.matches) == {("boards", "1"): 6}
    assert forum.run("SELECT post FROM posts") == [(5,)]


def test_words_in_a_heading_do_not_take_the_board(forum: Store) -> None:
    clean(forum.purge(phrase("general talk about tar")))
    assert forum.run("SELECT heading FROM boards ORDER BY board") == [("",), ("weather",)]
    assert forum.run("SELECT count(*) FROM posts") == [(5,)]


def test_words_that_name_or_tie_a_row_are_left_and_said(tmp_path: Path) -> None:
    tables = {
        "boards": {"id": "name", "action": "blank"},
        "posts": {"belongs_to": {"boards": "board"}, "action": "blank"},
    }
    made = store(
        tmp_path,
        {"tables": tables},
        "CREATE TABLE boards (name TEXT PRIMARY KEY, about TEXT)",
        "CREATE TABLE posts (id TEXT PRIMARY KEY, board TEXT, body TEXT)",
        f"INSERT INTO boards VALUES ('{SECRET}', 'rules')",
        f"INSERT INTO posts VALUES ('post-1', '{SECRET}', 'hello')",
    )
    left = made.remove(made.matches(phrase(SECRET)))
    assert [each.problem for each in left] == [ProblemCode.UNSUPPORTED] * 2
    assert made.run("SELECT * FROM boards") == [(SECRET, "rules")]
    assert made.run("SELECT * FROM posts") == [("post-1", SECRET, "hello")]


def test_a_trigger_that_takes_rows_of_another_table_is_refused(chat: Store) -> None:
    chat.run(
        "CREATE TRIGGER t AFTER DELETE ON files BEGIN DELETE FROM entries WHERE id = 'entry-3'; END"
    )
    matches = [match for match in chat.matches(phrase(SECRET)) if match.part == "files"]
    left = chat.remove(matches)
    assert [each.problem for each in left] == [ProblemCode.UNSUPPORTED] * 2
    assert len(ids(chat, "entries")) == 4
    assert len(ids(chat, "files")) == 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"belongs_to": {"bords": "on_board"}}, "posts.belongs_to.bords: the site has no table"),
        ({"belongs_to": {"boards": "on_bord"}}, "has no column 'on_bord'. Did you mean 'on_board'"),
        ({"belongs_to": {"boards": {"column": "on_board", "to": "bord"}}}, "no column 'bord'"),
        ({"text": ["bodi"]}, "text: the table 'posts' has no column 'bodi'. Did you mean 'body'?"),
    ],
)
def test_what_a_description_has_wrong_is_said(
    forum: Store, change: dict[str, Any], sentence: str
) -> None:
    forum.settings["format"] = {"tables": {**DESCRIBED, "posts": {**DESCRIBED["posts"], **change}}}
    faults = [each.sentence for each in forum.check() if not each.ok]
    assert len(faults) == 1
    assert sentence in faults[0]


def test_a_column_that_may_not_be_null_cannot_let_go(tmp_path: Path) -> None:
    unlink = {"belongs_to": {"b": {"column": "of", "when_gone": "unlink"}}}
    made = store(
        tmp_path,
        {"tables": {"a": unlink, "b": {}}},
        "CREATE TABLE a (id TEXT PRIMARY KEY, of TEXT NOT NULL)",
        "CREATE TABLE b (id TEXT PRIMARY KEY)",
    )
    (fault,) = [each.sentence for each in made.check() if not each.ok]
    assert "'of' may not be NULL" in fault


def test_a_field_of_all_records_may_stand_in_one_table_only(forum: Store) -> None:
    forum.site |= {"scope": {"board": "on_board"}}
    forum.settings["format"] = {"tables": DESCRIBED}
    (found,) = forum.matches(phrase(SECRET, board="1"))
    assert found.scope == {"board": "1"}
    assert forum.matches(phrase(SECRET, board="2")) == ()
    forum.site["scope"] = {"board": "nowhere"}
    faults = [each.sentence for each in forum.check() if not each.ok]
    assert faults == ["scope.board: no table of the site has a column 'nowhere'."]


@pytest.fixture
def chat(tmp_path: Path) -> Store:
    """Rooms with numbers of what is in them; only the room says whose it is."""
    made = store(
        tmp_path,
        {
            "tables": {
                "rooms": {"text": ["topic"], "counts": {"entries": "entries", "files": "files"}},
                "entries": {
                    "belongs_to": {"rooms": "room"},
                    "counts": {"files": "files"},
                    "action": "delete",
                },
                "files": {"belongs_to": {"entries": "entry", "rooms": "room"}},
            }
        },
        "CREATE TABLE rooms (id TEXT PRIMARY KEY, team TEXT, topic TEXT, entries INT, files INT)",
        "CREATE TABLE entries (id TEXT PRIMARY KEY, room TEXT, said TEXT, files INT)",
        "CREATE TABLE files (id TEXT PRIMARY KEY, entry TEXT, room TEXT, caption TEXT)",
        scope={"team": "team"},
    )
    insert(
        made,
        "rooms",
        *(["room-1", "red", "oars", 3, 2], ["room-2", "blue", "nets", 1, 1]),
    )
    insert(
        made,
        "entries",
        *(["entry-1", "room-1", SECRET, 1], ["entry-2", "room-1", "hello", 1]),
        *(["entry-3", "room-1", "bye", None], ["entry-4", "room-2", "hello", 1]),
    )
    insert(
        made,
        "files",
        *(["file-1", "entry-1", "room-1", "a map"], ["file-2", "entry-2", "room-1", SECRET]),
        ["file-3", "entry-4", "room-2", SECRET],
    )
    return made


def test_numbers_of_what_belongs_to_a_row_stay_right(chat: Store) -> None:
    chat.run("UPDATE rooms SET files = NULL WHERE id = 'room-2'")
    clean(chat.purge(phrase(SECRET)))
    rooms = chat.run("SELECT id, entries, files FROM rooms")
    assert rooms == [("room-1", 2, 0), ("room-2", 1, None)]
    assert chat.run("SELECT id, files FROM entries ORDER BY id") == [
        ("entry-2", 0),
        ("entry-3", None),
        ("entry-4", 0),
    ]


def test_what_a_row_belongs_to_says_its_scope(chat: Store) -> None:
    run = clean(chat.purge(phrase(SECRET, team="red")))
    assert pieces(run.matches) == {("entries", "entry-1"): 2, ("files", "file-2"): 1}
    assert not any(hit.scope_unknown for match in run.matches for hit in match.hits)
    assert ids(chat, "files") == ["file-3"]
    chat.run("UPDATE files SET room = NULL")
    (by_entry,) = chat.matches(phrase(SECRET, team="blue"))
    assert by_entry.scope == {"team": "blue"}
    assert [hit.scope_unknown for hit in by_entry.hits] == [False]
    chat.run("UPDATE files SET entry = NULL")
    (lost,) = chat.matches(phrase(SECRET, team="blue"))
    assert [hit.scope_unknown for hit in lost.hits] == [True]


def test_blanking_keeps_what_ties_rows(chat: Store) -> None:
    chat.site["scope"] = {}
    run = chat.purge(by_id("room-1"), Action.BLANK)
    assert run.is_clean
    assert chat.run("SELECT id, room, said FROM entries ORDER BY id")[:2] == [
        ("entry-1", "room-1", ""),
        ("entry-2", "room-1", ""),
    ]
    assert chat.run("SELECT entry, room, caption FROM files ORDER BY id") == [
        ("entry-1", "room-1", ""),
        ("entry-2", "room-1", ""),
        ("entry-4", "room-2", SECRET),
    ]


def test_a_copy_beside_the_database_is_asked_too(chat: Store) -> None:
    chat.run(("UPDATE files SET caption = ? WHERE id = 'file-1'", [SECRET.upper()]))
    chat.run("VACUUM INTO '" + str(chat.folder / "memories.db.bak") + "'")
    run = chat.purge(phrase(SECRET))
    assert [each.where for each in run.residue] == ["memories.db.bak"]


def test_a_number_of_nothing_is_said(chat: Store) -> None:
    chat.settings["tables"]["rooms"] = {"counts": {"entrys": "entries", "files": "flies"}}
    assert [each.sentence for each in chat.check() if not each.ok] == [
        "rooms.counts: the table 'rooms' has no column 'entrys'. Did you mean 'entries'?",
        "rooms.counts.files: no rows of a table 'flies' belong to it.",
    ]


def test_a_foreign_key_that_is_not_described_counts_all_the_same(tmp_path: Path) -> None:
    made = store(
        tmp_path,
        {"tables": {"trips": {"text": ["plan"]}, "stops": {"text": ["said"]}}},
        "CREATE TABLE trips (id TEXT PRIMARY KEY, plan TEXT)",
        "CREATE TABLE stops (id TEXT PRIMARY KEY, trip TEXT REFERENCES trips(id), said TEXT)",
    )
    insert(made, "trips", ["trip-one", "north"], ["trip-two", "south"])
    insert(made, "stops", ["stop-one", "trip-one", SECRET], ["stop-two", "trip-two", "calm"])
    assert pieces(made.matches(phrase(SECRET))) == {("stops", "stop-one"): 1}
    run = clean(made.purge(by_id("trip-one")))
    assert pieces(run.matches) == {("trips", "trip-one"): 2}
    assert ids(made, "stops") == ["stop-two"]
    assert of(Match, made.find(phrase(SECRET))) == ()


@pytest.mark.parametrize(
    ("described", "action"),
    [
        ({"tables": {"notes": {"action": "blank"}}}, Action.DELETE),
        ({"table": "notes", "text": ["topic"]}, Action.BLANK),
    ],
)
def test_strings_under_odd_names_are_emptied_one_by_one(
    tmp_path: Path, described: dict[str, Any], action: Action
) -> None:
    said = {"first of all!": SECRET, "second of all!": "calm seas", "plain": [SECRET, "wind"]}
    made = store(
        tmp_path, described, "CREATE TABLE notes (id TEXT PRIMARY KEY, data TEXT, topic TEXT)"
    )
    insert(made, "notes", ["note-one", json.dumps(said), ""])
    clean(made.purge(phrase(SECRET), action))
    ((left,),) = made.run("SELECT data FROM notes")
    assert json.loads(left) == {
        "first of all!": "",
        "second of all!": "calm seas",
        "plain": ["", "wind"],
    }


def test_full_text_indexes_of_several_tables_stay_in_step(tmp_path: Path) -> None:
    described = {"t": {"text": ["title"]}, "m": {"text": ["body"], "belongs_to": {"t": "t"}}}
    made = store(
        tmp_path,
        {"tables": described},
        "CREATE TABLE t (id TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID",
        "CREATE TABLE m (id INTEGER PRIMARY KEY, t TEXT, body TEXT)",
        "CREATE VIRTUAL TABLE m_words USING fts5(body, content='m', content_rowid='id')",
        "CREATE TRIGGER m_added AFTER INSERT ON m BEGIN "
        "INSERT INTO m_words(rowid, body) VALUES (new.id, new.body); END",
    )
    insert(made, "t", ["thread-one", SECRET], ["thread-two", "calm"])
    insert(made, "m", *([at, "thread-one", f"{at} seals and a walrus"] for at in range(1, 9)))
    insert(made, "m", [20, "thread-two", "one seal, no walrus"], [21, "thread-one", SECRET])
    clean(made.purge(phrase(SECRET)))
    assert made.run("SELECT title FROM t ORDER BY id") == [("",), ("calm",)]
    assert made.run("SELECT count(*) FROM m_words WHERE m_words MATCH 'boathouse'") == [(0,)]
    clean(made.purge(by_id("thread-one")))
    assert made.run("SELECT rowid FROM m_words WHERE m_words MATCH 'walrus'") == [(20,)]
    made.run("INSERT INTO m_words(m_words) VALUES ('integrity-check')")


def test_names_that_need_quotes(tmp_path: Path) -> None:
    made = store(
        tmp_path,
        {"tables": {"sess ion": {"id": "ID"}, "select": {"belongs_to": {"Sess Ion": "from"}}}},
        'CREATE TABLE "Sess Ion" (Id TEXT PRIMARY KEY, "group" TEXT)',
        'CREATE TABLE "select" ("order" INTEGER PRIMARY KEY, "from" TEXT, "where" TEXT)',
    )
    insert(made, '"Sess Ion"', ["session-1", SECRET])
    insert(made, '"select"', [1, "session-1", SECRET], [2, "session-1", "calm"])
    run = clean(made.purge(phrase(SECRET)))
    assert pieces(run.matches) == {("Sess Ion: words", "session-1"): 1, ("select", "1"): 1}
    clean(made.purge(by_id("session-1")))
    assert made.run('SELECT count(*) FROM "select"') == [(0,)]


def test_tables_that_belong_to_each_other(tmp_path: Path) -> None:
    made = store(
        tmp_path,
        {"tables": {"a": {"belongs_to": {"b": "b"}}, "b": {"belongs_to": {"a": "a"}}}},
        "CREATE TABLE a (id TEXT PRIMARY KEY, b TEXT, said TEXT)",
        "CREATE TABLE b (id TEXT PRIMARY KEY, a TEXT, said TEXT)",
    )
    insert(made, "a", ["pair-a-1", "pair-b-1", SECRET])
    insert(made, "b", ["pair-b-1", "pair-a-1", "calm"])
    clean(made.purge(phrase(SECRET)))
    assert made.run("SELECT * FROM a") == [("pair-a-1", "pair-b-1", "")]
    clean(made.purge(by_id("pair-a-1")))
    assert made.run("SELECT count(*) FROM b") == [(0,)]
