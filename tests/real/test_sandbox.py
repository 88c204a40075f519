"""The sandbox of ``purge demo``: what it plants is where it should be, and so are the near misses.

Nothing here uses purge's own matching or adapters.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from purge.errors import Refused
from purge_adapters._sandbox import Sandbox, build, look, look_at_bytes
from purge_adapters._sandbox.embeddings import DIMENSIONS, embed
from purge_adapters._sandbox.looking import SITES, count, read
from purge_adapters._sandbox.stores import COLLECTION, run_embeddings
from purge_adapters._sandbox.story import (
    GUEST,
    GUEST_ID,
    LESSON,
    LESSON_ID,
    MERGED,
    MERGED_ID,
    PHRASE,
)

PLANTED = {"raw-logs": 13, "notes": 2, "memories": 1, "embeddings": 1, "summaries": 2}
LINEAGE = re.compile(r"\[derived_from:: ([^\]]+)\]")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """One sandbox for the tests that only read."""
    return build(tmp_path_factory.mktemp("built") / "kettle", lambda _: None)


@pytest.fixture(scope="module")
def texts(built: Sandbox) -> Mapping[str, list[list[str]]]:
    """What a reader gets from the one sandbox."""
    return read(built.folder)


@pytest.fixture(scope="module")
def vectors(built: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of the one sandbox's vector store."""
    return _vectors(built.folder, tmp_path_factory.mktemp("vectors"))


@pytest.fixture
def own(built: Sandbox, tmp_path: Path) -> Path:
    """A copy for a test that writes."""
    return Path(shutil.copytree(built.folder, tmp_path / "own"))


def _logs(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / SITES["raw-logs"]).iterdir()):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        for line in text.splitlines():
            yield json.loads(line)


def _rows(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / SITES["memories"])) as connection:
        return connection.execute("SELECT id, content, source_id FROM memories").fetchall()


def _vectors(folder: Path, tmp_path: Path) -> list[dict[str, Any]]:
    copy = shutil.copytree(folder / SITES["embeddings"], tmp_path / "chroma-copy")
    return list(run_embeddings(["read", str(copy), COLLECTION]))


def _state(folder: Path) -> dict[str, tuple[bytes, int, int, int]]:
    return {
        str(path.relative_to(folder)): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mtime_ns,
            path.stat().st_ctime_ns,
            path.stat().st_ino,
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_reader_finds_the_lesson_at_every_site(texts: Mapping[str, list[list[str]]]) -> None:
    assert count(texts) == PLANTED


def test_the_request_by_phrase_stays_within_the_limit_of_the_manifest(built: Sandbox) -> None:
    limit = yaml.safe_load(built.manifest.read_text())["safety"]["max_records"]
    by_lineage_alone = 1
    assert sum(PLANTED.values()) + by_lineage_alone <= limit


def test_the_bytes_hold_more_than_a_reader_finds(built: Sandbox) -> None:
    bytes_seen = look_at_bytes(built.folder)
    # A row that was merged away, a full-text index with its own copy, a queue with the vector.
    assert bytes_seen["memories"] > PLANTED["memories"]
    assert bytes_seen["embeddings"] > PLANTED["embeddings"]
    for site in ("raw-logs", "notes", "summaries"):
        assert bytes_seen[site] == PLANTED[site]


@pytest.mark.parametrize(
    ("day", "written"),
    [
        ("2026-11-24", rb"caf\u00e9 staging database may be wiped at any time"),
        ("2026-11-25", "café staging\u3000database may be wiped at any time".encode()),
        (
            "2026-11-26",
            unicodedata.normalize(
                "NFD", "café staging database may be wiped at any time”"
            ).encode(),
        ),
        ("2026-11-26", rb"caf\\u00e9 staging database may be wiped at any time\""),
        ("2026-11-27", f"Since {PHRASE}, I would drop".encode()),
    ],
    ids=["escaped", "full-width space", "decomposed", "json in json", "plain"],
)
def test_the_logs_hold_each_written_form(built: Sandbox, day: str, written: bytes) -> None:
    assert written in (built.folder / SITES["raw-logs"] / f"{day}.jsonl").read_bytes()


def test_the_first_day_is_gzipped_and_holds_the_source_of_the_memory(built: Sandbox) -> None:
    rotated = built.folder / SITES["raw-logs"] / "2026-11-23.jsonl.gz"
    lines = gzip.decompress(rotated.read_bytes()).decode().splitlines()
    (source,) = (source for id_, _, source in _rows(built.folder) if id_ == LESSON_ID)
    (record,) = (json.loads(line) for line in lines if json.loads(line)["uuid"] == source)
    assert PHRASE in record["message"]["content"]
    assert record["message"]["role"] == "user"


def test_the_logs_are_a_few_days_in_three_languages(built: Sandbox) -> None:
    records = list(_logs(built.folder))
    assert 60 <= len(records) <= 120
    assert len({record["uuid"] for record in records}) == len(records)
    assert len({record["timestamp"][:10] for record in records}) == 5
    text = json.dumps(records, ensure_ascii=False)
    assert re.search(r"[ぁ-ん]", text)
    assert re.search(r"[ก-ฮ]", text)
    assert any(isinstance(record["message"]["content"], list) for record in records)
    assert {"system", "user", "assistant", "tool"} == {r["message"]["role"] for r in records}


def test_the_memories_are_an_ordinary_wal_database_with_a_working_index(own: Path) -> None:
    path = own / SITES["memories"]
    assert path.read_bytes()[18:20] == b"\x02\x02", "bytes 18 and 19 of the header: WAL"
    assert not list(path.parent.glob("memories.db-*"))
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT m.id FROM memories_fts f JOIN memories m ON m.rowid = f.rowid "
            "WHERE memories_fts MATCH ?",
            ('"wiped at any time"',),
        ).fetchall()
        assert sorted(found) == [("mem-0021",), (LESSON_ID,)]
        connection.execute(
            "INSERT INTO memories_fts(memories_fts, rank) VALUES ('integrity-check', 1)"
        )
        connection.execute("DELETE FROM memories WHERE id = ?", (LESSON_ID,))
        left = connection.execute(
            "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", ('"café staging"',)
        ).fetchall()
        assert len(left) == 2, "the two true memories about the café's staging"


def test_what_was_merged_away_is_gone_from_reads_and_still_in_the_bytes(
    built: Sandbox, vectors: list[dict[str, Any]]
) -> None:
    assert MERGED_ID not in {row[0] for row in _rows(built.folder)}
    assert MERGED.encode() in (built.folder / SITES["memories"]).read_bytes()
    assert MERGED_ID not in {record["metadata"]["memory_id"] for record in vectors}
    chroma = (built.folder / SITES["embeddings"] / "chroma.sqlite3").read_bytes()
    assert MERGED.encode() in chroma


def test_every_link_leads_somewhere(built: Sandbox, vectors: list[dict[str, Any]]) -> None:
    logged = {record["uuid"] for record in _logs(built.folder)}
    rows = _rows(built.folder)
    sources = {source for _, _, source in rows if source}
    assert len(sources) > 10
    assert sources <= logged
    memories = {row[0] for row in rows}
    assert {record["metadata"]["memory_id"] for record in vectors} == memories
    summaries = built.folder / SITES["summaries"]
    links = [id_ for path in summaries.iterdir() for id_ in LINEAGE.findall(path.read_text())]
    assert set(links) <= memories
    assert links.count(LESSON_ID) == 2, "one quotes it in English, one says it in Japanese"


def test_one_summary_quotes_the_lesson_and_names_no_memory(built: Sandbox) -> None:
    text = (built.folder / SITES["summaries"] / "handover.md").read_text()
    assert f"> {LESSON}\n" in text
    assert "derived_from" not in text


def test_nothing_but_the_lesson_derives_from_the_logs_that_hold_it(built: Sandbox) -> None:
    def holds(record: dict[str, Any]) -> bool:
        text = unicodedata.normalize("NFKC", json.dumps(record, ensure_ascii=False))
        text = text.replace(r"\u00e9", "é").replace("\\", "")
        return bool(re.search(rf"{PHRASE}\b", text, re.IGNORECASE))

    holding = {record["uuid"] for record in _logs(built.folder) if holds(record)}
    assert len(holding) == PLANTED["raw-logs"]
    assert [id_ for id_, _, source in _rows(built.folder) if source in holding] == [LESSON_ID]


@pytest.mark.parametrize(
    ("near_miss", "where"),
    [
        (
            "the café staging database may be wiped at any timeslot",
            {"raw-logs": 1, "notes": 1},
        ),
        (
            "the boathouse staging database may be wiped at any time",
            {"raw-logs": 5, "notes": 1, "memories": 1, "embeddings": 1, "summaries": 1},
        ),
        (
            "The café staging database must be kept",
            {"raw-logs": 2, "memories": 1, "embeddings": 1},
        ),
        (
            "Nagi Tokawara",
            {"raw-logs": 1, "notes": 1, "memories": 1, "embeddings": 1, "summaries": 1},
        ),
        ("Dogs are welcome at the terrace tables", {"memories": 1, "embeddings": 1}),
    ],
)
def test_near_misses_stand_beside_it(
    texts: Mapping[str, list[list[str]]], near_miss: str, where: dict[str, int]
) -> None:
    assert {site: times for site, times in count(texts, near_miss).items() if times} == where


def test_an_id_holds_the_lessons_id_as_a_part(built: Sandbox) -> None:
    ids = {row[0] for row in _rows(built.folder)}
    assert {LESSON_ID, f"import:{LESSON_ID}"} <= ids


def test_the_guest_has_a_source_a_copy_without_lineage_and_a_line_of_a_summary(
    built: Sandbox, texts: Mapping[str, list[list[str]]]
) -> None:
    assert built.guest_id == f"memories:{GUEST_ID}"
    (source,) = (source for id_, _, source in _rows(built.folder) if id_ == GUEST_ID)
    (record,) = (record for record in _logs(built.folder) if record["uuid"] == source)
    assert "Nagi Tokawa " in record["message"]["content"]
    assert count(texts, GUEST) == {
        "raw-logs": 0,
        "notes": 1,
        "memories": 1,
        "embeddings": 1,
        "summaries": 0,
    }


def test_looking_changes_nothing(built: Sandbox) -> None:
    before = _state(built.folder)
    look(built.folder)
    look_at_bytes(built.folder)
    assert _state(built.folder) == before


def test_the_look_sees_what_a_removal_by_hand_leaves(own: Path) -> None:
    for path in (own / SITES["raw-logs"]).iterdir():
        data = path.read_bytes()
        lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines(True)
        kept = b"".join(line for line in lines if b"staging" not in line)
        path.write_bytes(gzip.compress(kept) if path.suffix == ".gz" else kept)
    for site in ("notes", "summaries"):
        for path in (own / SITES[site]).iterdir():
            path.write_text(path.read_text().replace("any time", "no time"))
    # As an ordinary delete in most builds of SQLite: the row goes, its bytes stay.
    with closing(sqlite3.connect(own / SITES["memories"])) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("DELETE FROM memories WHERE id = ?", (LESSON_ID,))
        connection.commit()
    import chromadb
    from chromadb.config import Settings

    client: Any = chromadb.PersistentClient(
        path=str(own / SITES["embeddings"]),
        settings=Settings(anonymized_telemetry=False),
    )
    client.get_collection(COLLECTION, embedding_function=None).delete(ids=[f"{LESSON_ID}#0"])
    client.close()
    assert look(own) == {
        "raw-logs": 0,
        "notes": 0,
        "memories": 0,
        "embeddings": 0,
        "summaries": 0,
    }
    bytes_seen = look_at_bytes(own)
    assert bytes_seen["raw-logs"] == bytes_seen["summaries"] == 0
    assert bytes_seen["memories"] > 0
    assert bytes_seen["embeddings"] > 0


def test_the_manifest_names_five_sites_that_exist(built: Sandbox) -> None:
    manifest = yaml.safe_load(built.manifest.read_text())
    places = {
        name: site.get("path", site.get("url", "").removeprefix("sqlite:///"))
        for name, site in manifest["sites"].items()
    }
    assert places == SITES
    assert all((built.folder / place).exists() for place in places.values())


def test_nothing_outside_the_five_sites_holds_the_lesson(built: Sandbox) -> None:
    for path in (built.manifest, built.folder / "README.md"):
        text = " ".join(path.read_text().casefold().split())
        assert "wiped" not in text
        assert "tokawa" not in text
    assert {path.name for path in built.folder.iterdir()} == {"data", "purge.yaml", "README.md"}


def test_every_host_is_reserved_and_nobody_has_an_address(built: Sandbox) -> None:
    for path in built.folder.rglob("*"):
        if path.is_file() and path.suffix in (".md", ".jsonl", ".gz", ".yaml"):
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            assert not re.search(rb"\w@\w", data), path.name
            assert not re.search(rb"\w\.(?:com|org|net|io|jp|th)\b", data), path.name


def test_two_sandboxes_are_alike(
    built: Sandbox, vectors: list[dict[str, Any]], tmp_path: Path
) -> None:
    second = build(tmp_path / "second", lambda _: None)

    def files(folder: Path) -> dict[str, bytes]:
        # Chroma names its folders by chance and keeps the time in its database.
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and "chroma" not in path.parts
        }

    assert files(built.folder) == files(second.folder)
    assert _vectors(second.folder, tmp_path) == vectors


def test_the_days_of_the_story_follow_the_day_it_is_told(tmp_path: Path) -> None:
    sandbox = build(tmp_path / "later", lambda _: None, today=date(2027, 1, 4))
    assert sorted(path.name for path in (sandbox.folder / SITES["raw-logs"]).iterdir()) == [
        "2026-12-28.jsonl.gz",
        "2026-12-29.jsonl",
        "2026-12-30.jsonl",
        "2026-12-31.jsonl",
        "2027-01-01.jsonl",
    ]
    assert look(sandbox.folder) == PLANTED
    assert not any("DAY" in path.name + path.read_text() for path in sandbox.folder.rglob("*.md"))


def test_it_says_what_it_makes_and_lets_go_of_everything(tmp_path: Path) -> None:
    said: list[str] = []
    build(tmp_path / "said", said.append)
    assert len(said) == 5
    assert all(sentence and "\n" not in sentence for sentence in said)
    assert "85 records" in said[0]
    held = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    assert not [path for path in held if path.startswith(str(tmp_path))]


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(Refused):
        build(tmp_path, lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_suggestions_ask_of_what_is_there(built: Sandbox) -> None:
    assert len(built.suggestions) == 3
    assert any(built.guest_id in suggestion.command for suggestion in built.suggestions)
    assert all(suggestion.command.startswith("purge ") for suggestion in built.suggestions)


def test_a_vector_is_nearest_to_the_vector_of_like_words(vectors: list[dict[str, Any]]) -> None:
    wanted = embed(PHRASE)
    assert len(wanted) == DIMENSIONS
    assert sum(value * value for value in wanted) == pytest.approx(1.0)

    def likeness(record: dict[str, Any]) -> float:
        vector: list[float] = record["vector"]
        return sum(a * b for a, b in zip(wanted, vector, strict=True))

    ranked = sorted(vectors, key=likeness, reverse=True)
    assert [record["metadata"]["memory_id"] for record in ranked[:2]] == [LESSON_ID, "mem-0021"]
