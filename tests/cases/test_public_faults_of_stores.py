"""Faults that people met in Redis, S3, backups and databases; each by its number."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import ProblemCode
from purge.errors import StoreError
from tests.support import s3_servers, sql_stores
from tests.support.places import Places
from tests.support.redis_servers import Server
from tests.support.restic_repos import (
    OTHER,
    SECRET,
    Harbour,
    environment,
    phrase,
    program,
    write_log,
)
from tests.support.s3_buckets import PHRASE, WORDS, Bucket, gaps, residue

FACT = "Tilda keeps the spare key in the blue tin"
LIVE = "Tilda keeps the spare lamp in the blue tin"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restic")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.mark.parametrize("name", ["back\\slash", "a*b", "a?b", "a[b]", "a^b", "a\\*b", "*"])
def test_red_01_only_the_key_that_is_named_goes(places: Places, server: Server, name: str) -> None:
    """RED-01, RED-03: a backslash hides no key, and a star or question mark takes no other."""
    others = {"back\\slash", "backslash", "a*b", "a?b", "aXb", "a[b]", "ab", "a\\*b", "a^b", "*"}
    with server.client() as client:
        client.flushall()
        for each in others:
            client.set(f"sess:{each}".encode(), FACT)
        places.manifest({"cache": {"adapter": "redis", "url": server.url, "keys": "sess:{id}"}})
        done = places.forget("--id", f"cache:{name}")
        assert done.step("cache")["removed"] == 1, done.err
        left = {key.decode().removeprefix("sess:") for key in client.keys("*")}
    assert left == others - {name}


@pytest.mark.parametrize(
    ("markers", "page"),
    [pytest.param(40, 7, id="40"), pytest.param(2500, 1000, id="2500", marks=pytest.mark.long)],
)
def test_s3_01_both_lists_are_walked_to_their_ends(markers: int, page: int) -> None:
    """S3-01, S3-07, S3-14: 3 versions under 2,500 delete markers, more than a call may delete."""
    server = s3_servers.moto()
    bucket = Bucket(server, server.bucket(versioned=True), {"prefix": "m/"})
    for _ in range(3):
        bucket.put("m/a.jsonl", b'{"id": "a", "text": "%b"}\n' % WORDS.encode())
    kept = bucket.put("m/b.jsonl", b'{"id": "b", "text": "paper rolls"}\n')
    with closing(bucket.client()) as client:
        for at in range(0, markers, 1000):
            objects = [{"Key": "m/a.jsonl"}] * min(1000, markers - at)
            client.delete_objects(Bucket=bucket.name, Delete={"Objects": objects, "Quiet": True})
    assert len(bucket.versions()) == markers + 4
    sent: list[int] = []
    adapter = bucket.adapter()
    events = adapter._store.client.meta.events

    def in_pages(params: dict[str, Any], **_: Any) -> None:
        params["MaxKeys"] = page

    def note(params: dict[str, Any], **_: Any) -> None:
        sent.append(len(params["Delete"]["Objects"]))

    events.register("before-parameter-build.s3.ListObjectVersions", in_pages)
    events.register("before-parameter-build.s3.DeleteObjects", note)
    fixable = [each for each in residue(list(adapter.residue(PHRASE))) if each.fixable]
    assert list(adapter.sanitize(fixable)) == []
    assert bucket.versions() == [("m/b.jsonl", kept, False)]
    assert all(count <= 1000 for count in sent)
    after = bucket.look(PHRASE)
    assert (residue(after), gaps(after)) == ([], [])


@pytest.mark.parametrize("month", [1, 6])
def test_bak_03_a_group_that_has_stopped_has_no_date(
    tmp_path: Path, templates: Path, month: int
) -> None:
    """BAK-03: the time that is kept counts from the newest snapshot of the group; one that goes on
    has a date."""
    harbour = Harbour.make("0.18", tmp_path, templates)
    harbour.cover("logs", "jsonl", {"path": "logs", "id": "id"})
    write_log(harbour.root / "logs/a.jsonl", SECRET, OTHER)
    for day in (10, 12, 14):
        harbour.backup(f"2025-{month:02}-{day} 03:00:00")
    write_log(harbour.root / "logs/a.jsonl", OTHER)
    if month == 6:
        harbour.backup("2025-06-20 03:00:00")
    seen = harbour.look(
        phrase(),
        keep={"within": "3m"},
        schedule={"backup": "03:00", "forget": "03:30", "prune": "forget"},
        max_unused=0,
    )
    assert seen.residue
    dates = {copy.until for copy in seen.residue}
    assert (dates == {None}) is (month == 1)


@pytest.mark.parametrize("alive", [True, False], ids=["alive", "left behind"])
def test_bak_08_no_lock_is_ever_taken_away(tmp_path: Path, templates: Path, alive: bool) -> None:
    """BAK-08: neither that of a running backup nor what a killed one left; it is said, and tried
    again later."""
    harbour = Harbour.make("0.18", tmp_path, templates)
    harbour.cover("logs", "jsonl", {"path": "logs", "id": "id"})
    write_log(harbour.root / "logs/a.jsonl", SECRET, OTHER)
    harbour.backup("2025-06-18 03:00:00")
    write_log(harbour.root / "logs/a.jsonl", OTHER)
    seen = harbour.look(phrase(), policy="rewrite")
    assert [copy.fixable for copy in seen.residue] == [True]
    with locked(harbour, alive=alive) as lock:
        try:
            said: list[Any] = harbour.clean(seen)
        except StoreError as error:
            said = [error]
        assert [each.problem for each in said]
        assert lock.exists()
        assert harbour.look(phrase(), policy="rewrite").residue
    assert harbour.clean(seen) == []
    assert harbour.look(phrase(), policy="rewrite").residue == []


@contextlib.contextmanager
def locked(harbour: Harbour, *, alive: bool) -> Iterator[Path]:
    """Let restic hold a lock: it keeps one while it waits for what it is to back up."""
    folder = harbour.repository / "locks"
    before = set(folder.iterdir())
    process = subprocess.Popen(
        [str(program("0.18")), "backup", "--stdin", "-q"],
        env=environment(harbour.repository),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        give_up = time.monotonic() + 20
        while not (new := {it for it in folder.iterdir() if "tmp" not in it.name} - before):
            assert time.monotonic() < give_up
            time.sleep(0.02)
        if not alive:
            process.kill()
            process.wait()
        yield new.pop()
    finally:
        process.kill()
        process.communicate()
        for left in set(folder.iterdir()) - before:
            left.unlink()


def test_log_16_a_row_that_was_deleted_long_ago_is_readable_until_the_purge(
    tmp_path: Path,
) -> None:
    """LOG-16: the application deleted it; its bytes lie in free pages, and go."""
    store = sql_stores.Store(tmp_path)
    filler = "so they went on and on about boats " * 100
    store.run(
        sql_stores.TABLE,
        *(
            ("INSERT INTO memories VALUES (?, ?, NULL)", (f"m{n}", f"{FACT}. {filler}"))
            for n in range(40)
        ),
        ("INSERT INTO memories VALUES ('live', ?, NULL)", (LIVE,)),
        "DELETE FROM memories WHERE id != 'live'",
    )
    assert store.path.read_bytes().count(b"spare key") > 10
    places = Places(tmp_path)
    places.manifest(
        {
            "memories": {
                **{"adapter": "sql", "url": "sqlite:///memories.db", "table": "memories"},
                "id": "id",
            },
            "logs": {"adapter": "jsonl", "path": "logs", "id": "id"},
        }
    )
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}])
    done = places.forget("--phrase", FACT)
    assert done.states() == {"memories": "confirmed-deleted", "logs": "confirmed-deleted"}
    assert b"spare key" not in store.path.read_bytes()
    assert store.run("SELECT id FROM memories") == [("live",)]


def test_log_18_the_index_and_the_compacted_block_go_with_the_message(places: Places) -> None:
    """LOG-18: the words stand in the message, in its full-text index, and once more in a block that
    an application made to save room."""
    places.sql(
        "s.db",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)",
        "CREATE VIRTUAL TABLE messages_fts"
        " USING fts5 (body, content='messages', content_rowid='id')",
        "CREATE TRIGGER added AFTER INSERT ON messages BEGIN"
        " INSERT INTO messages_fts (rowid, body) VALUES (new.id, new.body); END",
        "CREATE TRIGGER gone AFTER DELETE ON messages BEGIN INSERT INTO messages_fts"
        " (messages_fts, rowid, body) VALUES ('delete', old.id, old.body); END",
        "CREATE TABLE blocks (id INTEGER PRIMARY KEY, body TEXT, of INTEGER)",
        ("INSERT INTO messages VALUES (1, ?), (2, ?)", [FACT, LIVE]),
        ("INSERT INTO blocks VALUES (1, ?, 1), (2, 'nothing', 2)", [f"Earlier: {FACT}"]),
    )
    common = {"adapter": "sql", "url": "sqlite:///s.db", "id": "id"}
    places.manifest(
        {
            "messages": {**common, "table": "messages"},
            "blocks": {**common, "table": "blocks", "derived_from": {"messages": "of"}},
        }
    )
    done = places.forget("--phrase", FACT)
    assert done.states() == {"messages": "confirmed-deleted", "blocks": "confirmed-deleted"}
    match = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'spare'"
    assert places.sql("s.db", match) == [(2,)]
    assert places.sql("s.db", "SELECT id FROM blocks") == [(2,)]
    assert b"spare key" not in (places.folder / "s.db").read_bytes()


def test_log_18_a_block_that_no_site_names_is_said(places: Places) -> None:
    """LOG-18: a table that the manifest forgot keeps the whole from being confirmed."""
    places.sql(
        "s.db",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)",
        "CREATE TABLE blocks (id INTEGER PRIMARY KEY, body TEXT)",
        ("INSERT INTO messages VALUES (1, ?), (2, ?)", [FACT, LIVE]),
        ("INSERT INTO blocks VALUES (1, ?)", [f"Earlier: {FACT}"]),
    )
    places.manifest(
        {"messages": {"adapter": "sql", "url": "sqlite:///s.db", "table": "messages", "id": "id"}}
    )
    done = places.forget("--phrase", FACT)
    assert done.states() == {"messages": "removed-from-reads"}
    assert done.problem("messages") == ProblemCode.NO_END_DATE
    assert any("blocks" in each["where"] for each in done.step("messages")["residue"])


def test_bak_13_a_snapshot_that_outlived_its_rule_has_no_date(places: Places) -> None:
    """BAK-13: the rule says 14 days and one of 40 days is there; the contradiction is shown."""
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}])
    old = datetime.now(UTC) - timedelta(days=40)
    folder = f"snapshots/{old:%Y-%m-%d}/logs"
    places.lines(f"{folder}/a.jsonl", [{"id": "l1", "text": FACT}])
    places.manifest(
        {
            "logs": {"adapter": "jsonl", "path": "logs", "id": "id"},
            "backups": {
                "adapter": "snapshots",
                "path": "snapshots",
                "covers": ["logs"],
                "keep_for": "14d",
            },
        }
    )
    done = places.forget("--phrase", FACT)
    step = done.step("backups")
    assert (step["state"], step["until"]) == ("removed-from-reads", None)
    assert done.problem("backups") == "no-end-date"
    assert any("was to be gone 14d" in each["why"] for each in step["residue"])
    assert done.code == 3


def test_mem_04_a_row_without_a_time_is_found_like_any(places: Places) -> None:
    """MEM-04: nothing is passed over because it does not say when it was made."""
    places.sql(
        "h.db",
        "CREATE TABLE history (id TEXT PRIMARY KEY, body TEXT, created_at TEXT)",
        ("INSERT INTO history VALUES ('1', ?, NULL), ('2', ?, '2026-03-01')", [FACT, FACT]),
        ("INSERT INTO history VALUES ('3', ?, NULL)", [LIVE]),
    )
    places.manifest(
        {
            "history": {
                **{"adapter": "sql", "url": "sqlite:///h.db", "table": "history", "id": "id"},
                "time": "created_at",
            }
        }
    )
    done = places.forget("--phrase", FACT)
    assert done.step("history")["removed"] == 2
    with closing(sqlite3.connect(places.folder / "h.db")) as connection:
        assert connection.execute("SELECT id FROM history").fetchall() == [("3",)]
