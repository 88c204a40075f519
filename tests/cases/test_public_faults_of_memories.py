"""Faults that people met in memories, their indexes, summaries and caches; each by its number."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real import chroma_stores
from tests.real.markdown_notes import held
from tests.support.places import Places
from tests.support.redis_servers import Server

FACT = "Tilda keeps the spare key in the blue tin"
LIVE = "Tilda keeps the spare lamp in the blue tin"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


def test_mem_01_a_memory_is_gone_when_no_read_path_returns_it(places: Places) -> None:
    """MEM-01: deleted by the subject; list, get and search are asked, and say nothing any more."""
    folder = places.folder / "chroma"
    chroma_stores.plant(folder, {"m1": (FACT, {"user": "tilda"}), "m2": (LIVE, {"user": "mika"})})
    places.manifest({"vectors": {"adapter": "chroma", "path": "chroma", "subject": "user"}})
    done = places.forget("--subject", "tilda")
    assert done.states() == {"vectors": "confirmed-deleted"}
    seen = chroma_stores.see(folder)
    assert list(seen.records) == ["m2"]
    with chroma_stores.opened(folder) as client:
        collection = client.get_collection(chroma_stores.NAME, embedding_function=None)
        near = collection.query(query_embeddings=[[0.1, 0.2, 0.3, 0.4]], n_results=2)["ids"]
        words = collection.get(where_document={"$contains": "spare key"})["ids"]
    assert (near, words) == ([["m2"]], [])


def test_mem_06_a_live_fact_comes_first_again_in_the_index(places: Places) -> None:
    """MEM-06: the place of the record in the full-text index goes with it."""
    places.sql(
        "m.db",
        "CREATE TABLE facts (id INTEGER PRIMARY KEY, body TEXT)",
        "CREATE VIRTUAL TABLE index_of_facts"
        " USING fts5 (body, content='facts', content_rowid='id')",
        *(
            (f"INSERT INTO {table} ({key}, body) VALUES (?, ?)", row)
            for row in ((1, f"{FACT}, tin, tin"), (2, LIVE))
            for table, key in (("facts", "id"), ("index_of_facts", "rowid"))
        ),
    )
    search = (
        "SELECT rowid FROM index_of_facts WHERE index_of_facts MATCH 'tin' ORDER BY rank LIMIT 1"
    )
    assert places.sql("m.db", search) == [(1,)]
    places.manifest(
        {"facts": {"adapter": "sql", "url": "sqlite:///m.db", "table": "facts", "id": "id"}}
    )
    assert places.forget("--id", "facts:1").states() == {"facts": "confirmed-deleted"}
    assert places.sql("m.db", search) == [(2,)]
    assert b"spare key" not in (places.folder / "m.db").read_bytes()


def test_mem_06_a_live_fact_comes_first_again_in_the_vector_index(places: Places) -> None:
    """MEM-06: nor does it take up a place among the nearest neighbours."""
    folder = places.folder / "chroma"
    chroma_stores.plant(folder, {"m1": (FACT, None), "m2": (LIVE, None)})
    places.manifest({"vectors": {"adapter": "chroma", "path": "chroma"}})
    assert places.forget("--id", "vectors:m1").code == 0
    with chroma_stores.opened(folder) as client:
        collection = client.get_collection(chroma_stores.NAME, embedding_function=None)
        found = collection.query(query_embeddings=[[0.1, 0.1, 0.1, 0.1]], n_results=1)
    assert (found["ids"], found["documents"]) == ([["m2"]], [[LIVE]])


def chain(places: Places) -> None:
    """A log, a memory made from it, and an answer that was kept."""
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}, {"id": "l2", "text": LIVE}])
    places.sql(
        "m.db",
        "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, source TEXT)",
        "INSERT INTO memories VALUES ('m1', 'the key is with the tins', 'l1')",
        "INSERT INTO memories VALUES ('m2', 'the lamp is with the tins', 'l2')",
    )
    places.lines("answers/a.jsonl", [{"id": "a1", "memory": "m1"}, {"id": "a2", "memory": "m2"}])
    memories: dict[str, Any] = {
        "adapter": "sql",
        "url": "sqlite:///m.db",
        "table": "memories",
        "id": "id",
    }
    memories["lock_timeout"] = 0.05
    places.manifest(
        {
            "logs": {"adapter": "jsonl", "path": "logs", "id": "id"},
            "memories": {**memories, "derived_from": {"logs": "source"}},
            "answers": {
                "adapter": "jsonl",
                "path": "answers",
                "id": "id",
                "derived_from": {"memories": "memory"},
            },
        }
    )


@pytest.mark.parametrize("failing", ["logs", "memories", "answers"])
def test_mem_12_a_step_that_failed_is_done_by_the_plan(places: Places, failing: str) -> None:
    """MEM-12, MEM-16: whichever step fails, the next run finishes it, though a new search would
    no longer find what derives from what is gone."""
    chain(places)
    with hindered(places, failing):
        first = places.forget("--phrase", FACT)
    assert first.code == 3
    assert first.states()[failing] != "confirmed-deleted"
    done = places.ask("resume", first.json["request"]["id"])
    assert (done.code, set(done.states().values())) == (0, {"confirmed-deleted"})
    assert [each["id"] for each in places.read("logs/a.jsonl")] == ["l2"]
    assert places.sql("m.db", "SELECT id FROM memories") == [("m2",)]
    assert [each["id"] for each in places.read("answers/a.jsonl")] == ["a2"]


@contextlib.contextmanager
def hindered(places: Places, site: str) -> Iterator[None]:
    """Keep a site from being written to."""
    if site == "memories":
        path = places.folder / "m.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
    else:
        with held(places.folder / site / "a.jsonl", "a"):
            yield


def summary_of_five(places: Places) -> None:
    places.lines(
        "logs/a.jsonl",
        [
            {"id": f"l{n}", "text": f"message {n}: {FACT if n == 3 else 'all well'}"}
            for n in range(1, 6)
        ],
    )
    places.sql(
        "m.db",
        "CREATE TABLE summaries (id TEXT PRIMARY KEY, body TEXT, sources TEXT)",
        (
            "INSERT INTO summaries VALUES ('s1', 'all is in its place', ?)",
            [json.dumps([f"l{n}" for n in range(1, 6)])],
        ),
        "INSERT INTO summaries VALUES ('s2', 'nothing new', '[\"l9\"]')",
    )
    places.manifest(
        {
            "logs": {"adapter": "jsonl", "path": "logs", "id": "id"},
            "summaries": {
                "adapter": "sql",
                "url": "sqlite:///m.db",
                "table": "summaries",
                "id": "id",
                "derived_from": {"logs": "sources"},
            },
        }
    )


@pytest.mark.parametrize("number", [3, 5])
def test_der_03_any_message_that_goes_makes_the_summary_doubtful(
    places: Places, number: int
) -> None:
    """DER-03: not only the one at which it ends."""
    summary_of_five(places)
    done = places.forget("--id", f"logs:l{number}")
    assert done.code == 3
    assert done.problem("summaries") == "derived-from-purged"
    assert done.states()["summaries"] != "confirmed-deleted"
    assert places.sql("m.db", "SELECT id FROM summaries ORDER BY id") == [("s1",), ("s2",)]


def test_der_05_a_summary_of_nothing_goes(places: Places) -> None:
    """DER-05: all its messages are purged, so there is nothing that it could be made from anew."""
    summary_of_five(places)
    every = [word for n in range(1, 6) for word in ("--id", f"logs:l{n}")]
    done = places.forget(*every)
    assert set(done.states().values()) == {"confirmed-deleted"}
    assert places.sql("m.db", "SELECT id FROM summaries") == [("s2",)]


def test_mem_19_an_episode_leaves_the_links_of_an_edge_that_stays(places: Places) -> None:
    """MEM-19: in a table of links the purged episode leaves every edge, and the edge stays."""
    places.sql(
        "g.db",
        "CREATE TABLE episodes (id TEXT PRIMARY KEY, body TEXT)",
        "CREATE TABLE edges (id TEXT PRIMARY KEY, fact TEXT)",
        "CREATE TABLE mentions (edge TEXT, episode TEXT REFERENCES episodes ON DELETE CASCADE)",
        ("INSERT INTO episodes VALUES ('e1', ?), ('e2', 'the tins are full')", [FACT]),
        "INSERT INTO edges VALUES ('edge-1', 'tins are kept by somebody')",
        "INSERT INTO mentions VALUES ('edge-1', 'e1'), ('edge-1', 'e2')",
    )
    common = {"adapter": "sql", "url": "sqlite:///g.db", "id": "id"}
    places.manifest(
        {
            "episodes": {**common, "table": "episodes"},
            "edges": {
                **common,
                "table": "edges",
                "derived_from": {"episodes": "mentions.episode"},
                "links": [{"table": "mentions", "own": "edge", "source": "episode"}],
            },
        }
    )
    done = places.forget("--id", "episodes:e1")
    assert done.states()["episodes"] == "confirmed-deleted"
    assert places.sql("g.db", "SELECT id FROM edges") == [("edge-1",)]
    assert places.sql("g.db", "SELECT * FROM mentions") == [("edge-1", "e2")]
    # The link went with the episode; that the edge was made from it as well did not.
    assert done.step("edges")["problem"]["code"] == "derived-from-purged"
    again = places.forget("--id", "episodes:e1")
    assert again.step("edges")["problem"]["code"] == "derived-from-purged"
    places.sql("g.db", "UPDATE edges SET fact = 'the tins are full'")
    assert places.forget("--id", "episodes:e1").states()["edges"] == "confirmed-deleted"


def test_der_01_a_kept_answer_goes_with_any_of_its_sources(places: Places, server: Server) -> None:
    """DER-01: a cache that is named as a store goes on answering with nothing that was purged."""
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}, {"id": "l2", "text": LIVE}])
    with server.client() as client:
        client.flushall()
        client.set("answer:1", json.dumps({"says": "with the tins", "of": ["l1", "l2"]}))
        client.set("answer:2", json.dumps({"says": "with the lamps", "of": ["l2"]}))
        places.manifest(
            {
                "logs": {"adapter": "jsonl", "path": "logs", "id": "id"},
                "cache": {
                    "adapter": "redis",
                    "url": server.url,
                    "keys": "answer:*",
                    "derived_from": {"logs": "of"},
                    "when_source_purged": "delete",
                },
            }
        )
        done = places.forget("--phrase", FACT)
        assert done.step("cache")["removed"] == 1
        assert client.keys("answer:*") == [b"answer:2"]


def test_mat_06_a_fact_that_is_only_alike_stays(places: Places) -> None:
    """MAT-06: vectors that are nearly the same decide nothing."""
    folder = places.folder / "chroma"
    with chroma_stores.opened(folder) as client:
        collection = client.create_collection(chroma_stores.NAME, embedding_function=None)
        collection.add(
            ids=["m1", "m2"],
            documents=[FACT, LIVE],
            embeddings=[[1.0, 0.0, 0.0, 0.0], [0.999999, 0.000001, 0.0, 0.0]],
        )
    places.manifest({"vectors": {"adapter": "chroma", "path": "chroma"}})
    done = places.forget("--phrase", FACT)
    assert done.step("vectors")["removed"] == 1
    assert list(chroma_stores.see(folder).records) == ["m2"]


def test_mat_10_a_phrase_that_meets_much_is_refused_until_the_number_is_named(
    places: Places,
) -> None:
    """MAT-10: nothing goes on a refusal."""
    kept = places.lines(
        "logs/a.jsonl",
        [{"id": f"l{n}", "text": FACT if n % 5 < 2 else LIVE} for n in range(100)],
    )
    places.manifest({"logs": {"adapter": "jsonl", "path": "logs", "id": "id"}})
    before = kept.read_bytes()
    refused = places.run("request", "--phrase", FACT, "--apply")
    assert refused.code == 4
    assert "40" in refused.out + refused.err
    assert kept.read_bytes() == before
    wrong = places.run("request", "--phrase", FACT, "--expect", "41", "--apply")
    assert (wrong.code, kept.read_bytes()) == (4, before)
    assert places.forget("--phrase", FACT, "--expect", "40").code == 0
    assert len(places.read("logs/a.jsonl")) == 60


def test_log_03_the_chain_of_a_conversation_leads_back_to_its_beginning(places: Places) -> None:
    """LOG-03: the middle line of five is blanked in its place."""
    names = [None, "u1", "u2", "u3", "u4", "u5"]
    said = [
        {
            "uuid": names[n],
            "parentUuid": names[n - 1],
            "message": {"content": FACT if n == 3 else "so"},
        }
        for n in range(1, 6)
    ]
    places.lines("logs/a.jsonl", said)
    places.manifest(
        {
            "logs": {
                "adapter": "jsonl",
                "path": "logs",
                "id": "uuid",
                "text": ["message.content"],
                "action": "blank",
            }
        }
    )
    assert places.forget("--phrase", FACT).states() == {"logs": "confirmed-deleted"}
    left = {line["uuid"]: line for line in places.read("logs/a.jsonl")}
    walk, at = [], "u5"
    while at is not None:
        walk.append(at)
        at = left[at]["parentUuid"]
    assert walk == ["u5", "u4", "u3", "u2", "u1"]
    assert left["u3"]["message"]["content"] == ""


def test_log_10_words_that_wait_in_the_write_ahead_log_do_not_come_back(places: Places) -> None:
    """LOG-10: opened again after the purge, no file of the database has them."""
    places.sql(
        "m.db", "PRAGMA journal_mode = WAL", "CREATE TABLE t (id TEXT PRIMARY KEY, body TEXT)"
    )
    with sqlite3.connect(places.folder / "m.db", isolation_level=None) as writer:
        writer.execute("PRAGMA secure_delete = OFF")
        writer.execute("INSERT INTO t VALUES ('1', ?), ('2', ?)", [FACT, LIVE])
        for name in ("m.db", "m.db-wal"):
            shutil.copy(places.folder / name, places.folder / f"kept-{name}")
    writer.close()
    # As after a crash: the frames wait, and nobody has them open.
    for name in ("m.db", "m.db-wal"):
        shutil.move(places.folder / f"kept-{name}", places.folder / name)
    assert FACT.encode() in (places.folder / "m.db-wal").read_bytes()
    places.manifest({"t": {"adapter": "sql", "url": "sqlite:///m.db", "table": "t", "id": "id"}})
    assert places.forget("--phrase", FACT).states() == {"t": "confirmed-deleted"}
    assert places.sql("m.db", "SELECT id FROM t") == [("2",)]
    assert not [p for p in places.folder.glob("m.db*") if FACT.encode() in p.read_bytes()]
