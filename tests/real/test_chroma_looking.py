"""What a look at a Chroma folder finds: forms of fields, several collections, torn states."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purge.adapter import Readability
from purge.errors import Permanent
from purge.matching import How
from purge.state import ProblemCode
from purge.targets import Target, TargetKind, Targets
from tests.real.chroma_stores import (
    NAME,
    Store,
    files_with,
    fill,
    holds_vector,
    ids,
    lineage,
    opened,
    phrase,
    plant,
    see,
)


@contextmanager
def database(folder: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(folder / "chroma.sqlite3", isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


# --- fields ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "mem-1",
        '["mem-1"]',
        '["mem-0", "mem-1"]',
        ' [ "mem-1" ] ',
        '["mem\\u002d1"]',
        ["mem-1", "mem-2"],
    ],
)
def test_lineage_is_read_in_every_form(tmp_path: Path, value: object) -> None:
    store = Store(tmp_path, site={"derived_from": {"memories": "memory_ids"}})
    plant(
        store.folder,
        {
            "child": ("One.", {"memory_ids": value}),
            "other": ("Two.", {"memory_ids": "mem-10"}),
            "none": ("Three: mem-1.", {"topic": "mem-1"}),
            "bare": ("Four.", None),
        },
    )
    found, _, examined = store.find(lineage("memories", "mem-1"))
    assert [match.id for match in found] == ["child"]
    assert "mem-1" in found[0].parents["memories"]
    assert sum(part.unlinked for part in examined) == 2
    assert sum(part.records for part in examined) == 4


def test_numbers_are_ids_too(tmp_path: Path) -> None:
    store = Store(
        tmp_path, site={"derived_from": {"memories": "memory"}, "subject": "user", "scope": {}}
    )
    plant(
        store.folder,
        {"a": ("One.", {"memory": 7, "user": 12}), "b": ("Two.", {"memory": 77, "user": 1})},
    )
    assert [match.id for match in store.matches(lineage("memories", "7"))] == ["a"]
    about = Targets([Target(0, TargetKind.SUBJECT, "1")])
    assert [match.id for match in store.matches(about)] == ["b"]


def test_an_id_may_be_the_link(tmp_path: Path) -> None:
    store = Store(tmp_path, site={"derived_from": {"memories": "$id"}})
    plant(store.folder, {"mem-1": ("One.", None), "mem-10": ("Two.", None)})
    found, _, examined = store.find(lineage("memories", "mem-1"))
    assert [match.id for match in found] == ["mem-1"]
    assert sum(part.unlinked for part in examined) == 0


def test_a_link_that_was_never_recorded_is_counted(tmp_path: Path) -> None:
    store = Store(tmp_path, site={"derived_from": {"memories": None}})
    plant(store.folder, {"a": ("One.", None), "b": ("Two.", {"memory": "x"})})
    _, _, examined = store.find(ids("a"))
    assert sum(part.unlinked for part in examined) == 2


def test_words_are_found_wherever_they_stand(tmp_path: Path) -> None:
    store = Store(tmp_path)
    words = "permit zanderberry five"
    plant(
        store.folder,
        {
            "document": (f"The {words}.", None),
            "value": ("x", {"note": f"see {words}"}),
            "list": ("x", {"notes": ["y", words]}),
            "key": ("x", {words: 1}),
            "json": ("x", {"payload": json.dumps({"inner": words.upper()})}),
            "other": ("The permit zanderberry fivefold.", None),
        },
    )
    found = {match.id: match.hits[0] for match in store.matches(phrase(words))}
    assert sorted(found) == ["document", "json", "key", "list", "value"]
    assert {id: hit.field for id, hit in found.items()} == {
        "document": "chroma:document",
        "value": "note",
        "list": "notes",
        "key": "$key:*0",
        "json": "payload",
    }
    assert found["json"].how is How.FOLDED


def test_both_ways_to_write_an_accent_are_found(tmp_path: Path) -> None:
    """MAT-01: ``$contains`` of Chroma is exact to the byte."""
    store = Store(tmp_path)
    plant(
        store.folder,
        {
            "composed": ("The caf\u00e9 of owls opens.", None),
            "decomposed": ("The cafe\u0301 of owls opens.", None),
            "plain": ("The cafe of owls opens.", None),
        },
    )
    for asked in ("caf\u00e9 of owls", "cafe\u0301 of owls"):
        assert [m.id for m in store.matches(phrase(asked))] == ["composed", "decomposed"]
    store.purge(phrase("caf\u00e9 of owls"))
    assert list(see(store.folder).records) == ["plain"]
    assert files_with(store.folder, "cafe\u0301", "caf\u00e9") == {}


def test_a_uri_is_read_and_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with opened(store.folder) as client:
        client.create_collection(NAME, embedding_function=None).add(
            ids=["a", "b"],
            embeddings=[[1.0, 0.0], [0.0, 1.0]],
            uris=["file:///vexworthy/a", "file:///other/b"],
        )
    store.purge(phrase("file:///vexworthy/a"))
    assert list(see(store.folder).records) == ["b"]
    assert files_with(store.folder, "vexworthy") == {}


# --- collections ----------------------------------------------------------------------------------


def test_one_id_in_several_collections_is_a_record_of_each(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plant(store.folder, {"1": ("The blue crab pot is here.", None), "2": ("x", None)}, "chats")
    plant(store.folder, {"1": ("Quite another thing.", None), "3": ("y", None)}, "notes")
    both = store.matches(ids("1"))
    assert [match.where for match in both] == ["collection 'chats'", "collection 'notes'"]
    assert [match.id for match in both] == ["1", "1"]
    assert len({match.part for match in both}) == 2
    (said,) = store.purge(phrase("blue crab pot"))
    assert (said.id, said.part) == (both[0].id, both[0].part)
    assert list(see(store.folder, "chats").records) == ["2"]
    assert sorted(see(store.folder, "notes").records) == ["1", "3"]
    assert [match.part for match in store.matches(ids("1"))] == [both[1].part]
    # What is known of the one that is gone is not taken for the one that stays.
    residue, controls, gaps = store.look(ids("1"), [said])
    # Chroma 1.5.9 writes uninitialised memory out at every opening; this process knows the words.
    assert [copy for copy in residue if "written out with it" not in copy.why] == []
    assert gaps == []
    assert not any(control.on_target for control in controls)


def test_only_the_collections_of_the_site_are_touched(tmp_path: Path) -> None:
    store = Store(tmp_path, collections=("chats",))
    text = "The permit of Ottoline is in the tin box."
    plant(store.folder, {"1": (text, None), "2": ("x", None)}, "chats")
    plant(store.folder, {"1": (text, None), "3": ("y", None)}, "notes")
    before = see(store.folder, "notes")
    (match,) = store.matches(phrase("permit of Ottoline"))
    assert match.id == "1"
    store.purge(phrase("permit of Ottoline"))
    assert list(see(store.folder, "chats").records) == ["2"]
    assert before.differs(see(store.folder, "notes")) == []


def test_a_collection_that_is_not_there_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path, collections=(NAME, "memoris"))
    fill(store.folder, 3)
    _, gaps, _ = store.find(ids("memory-1"))
    assert [gap.where for gap in gaps] == ["collection 'memoris'"]
    (fault,) = [said for said in store.check() if not said.ok]
    assert "memoris" in fault.sentence
    assert "Did you mean 'memories'?" in fault.sentence


def test_a_key_that_no_record_has_is_said_with_the_nearest(tmp_path: Path) -> None:
    store = Store(tmp_path, site={"derived_from": {"memories": "memory_id"}, "subject": "user"})
    plant(store.folder, {"a": ("x", {"memory_ids": "m"})}, "chats")
    plant(store.folder, {"b": ("x", {"user": "u"})}, "notes")
    faults = [said.sentence for said in store.check() if not said.ok]
    assert faults == [
        "No record has the metadata key that 'derived_from.memories' names. "
        "Did you mean 'memory_ids'?"
    ]


# --- states that only a broken-off write leaves ---------------------------------------------------


def test_a_write_that_stands_in_the_log_alone_is_found_and_goes(tmp_path: Path) -> None:
    """Killed after the log was written and before the tables were."""
    store = Store(tmp_path)
    vectors = fill(store.folder, 20)
    secret = "Ottoline hides the brasskeyling."
    with database(store.folder) as connection:
        (topic,) = connection.execute("SELECT topic FROM embeddings_queue LIMIT 1").fetchone()
        connection.execute(
            "INSERT INTO embeddings_queue (operation, topic, id, vector, encoding, metadata) "
            "VALUES (0, ?, 'late', ?, 'FLOAT32', ?)",
            (topic, (vectors[0] * 2).tobytes(), json.dumps({"chroma:document": secret})),
        )
        connection.execute(
            "INSERT INTO embeddings_queue (operation, topic, id, metadata) "
            "VALUES (1, ?, 'memory-3', ?)",
            (topic, json.dumps({"chroma:document": "Changed at the last moment."})),
        )
    assert [match.id for match in store.matches(phrase("hides the brasskeyling"))] == ["late"]
    assert [match.id for match in store.matches(phrase("at the last moment"))] == ["memory-3"]
    store.purge(phrase("hides the brasskeyling"))
    assert files_with(store.folder, "brasskeyling") == {}
    assert holds_vector(store.folder, vectors[0] * 2) == []
    seen = see(store.folder)
    assert seen.count == 20
    assert seen.records["memory-3"][0] == "Changed at the last moment."


def test_a_record_that_only_the_search_returns_is_found_and_goes(tmp_path: Path) -> None:
    """CHR-05: two processes on one folder can leave an index that knows more than the tables."""
    store = Store(tmp_path)
    vectors = fill(store.folder, 1200)
    with database(store.folder) as connection:
        (row,) = connection.execute(
            "SELECT id FROM embeddings WHERE embedding_id = 'memory-5'"
        ).fetchone()
        for table in ("embeddings", "embedding_metadata"):
            connection.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        connection.execute("DELETE FROM embedding_fulltext_search WHERE rowid = ?", (row,))
    with opened(store.folder) as client:
        collection = client.get_collection(NAME, embedding_function=None)
        near = collection.query(query_embeddings=[vectors[5].tolist()], n_results=1)
        assert near["ids"] == [["memory-5"]]
        assert collection.get(ids=["memory-5"])["ids"] == []
    (ghost,) = store.matches(ids("memory-5"))
    assert ghost.readability is Readability.READABLE
    assert ghost.trace.vectors
    store.purge(ids("memory-5"))
    assert holds_vector(store.folder, vectors[5]) == []
    with opened(store.folder) as client:
        collection = client.get_collection(NAME, embedding_function=None)
        near = collection.query(query_embeddings=[vectors[5].tolist()], n_results=1199)
        assert "memory-5" not in near["ids"][0]


def test_what_a_broken_off_rewrite_left_is_recognised(tmp_path: Path) -> None:
    store = Store(tmp_path)
    vectors = fill(store.folder, 1200)
    with database(store.folder) as connection:
        (live,) = connection.execute("SELECT id FROM segments WHERE scope = 'VECTOR'").fetchone()
    left = store.folder / "0f0f0f0f-1111-4222-8333-444455556666"
    left.mkdir()
    (left / "data_level0.bin").write_bytes((store.folder / live / "data_level0.bin").read_bytes())
    keep = store.folder / "1f0f0f0f-1111-4222-8333-444455556666"
    keep.mkdir()
    (keep / "mine.txt").write_text("not Chroma's")
    before = see(store.folder)
    residue = store.residue(ids("memory-5"))
    assert [(item.where, item.fixable) for item in residue] == [
        (left.name, True),
        (keep.name, False),
    ]
    assert store.sanitize(residue) == []
    assert not left.exists()
    assert keep.exists()
    assert before.differs(see(store.folder)) == []
    assert holds_vector(store.folder, vectors[5]) == ["data_level0.bin"]


def test_an_index_that_cannot_be_understood_is_no_all_clear(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store.folder, 1200)
    found = store.matches(ids("memory-5"))
    (index,) = store.folder.glob("*/index_metadata.pickle")
    index.write_bytes(b"\x80\x03cposix\nsystem\nX\x07\x00\x00\x00touch xtR.")
    _, gaps, _ = store.find(ids("memory-5"))
    assert [gap.problem for gap in gaps] == [ProblemCode.CORRUPT]
    _, controls, gaps = store.look(ids("memory-5"), found)
    assert ProblemCode.CORRUPT in [gap.problem for gap in gaps]
    assert not all(control.passed for control in controls)
    assert not (Path.cwd() / "x").exists()


def test_a_store_of_a_newer_chroma_is_left_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store.folder, 20)
    found = store.matches(ids("memory-5"))
    with database(store.folder) as connection:
        connection.execute("INSERT INTO migrations VALUES ('sysdb', 11, 'new', '', '')")
    before = (store.folder / "chroma.sqlite3").read_bytes()
    for act in (lambda: store.find(ids("a")), lambda: store.remove(found), store.check):
        with pytest.raises(Permanent) as raised:
            act()
        assert raised.value.problem is ProblemCode.UNSUPPORTED
    assert (store.folder / "chroma.sqlite3").read_bytes() == before


def test_a_store_of_an_older_chroma_is_read_and_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store.folder, 20)
    with database(store.folder) as connection:
        connection.execute("DELETE FROM migrations WHERE dir = 'metadb' AND version = 6")
        connection.execute("DROP TABLE embedding_metadata_array")
    (match,) = store.matches(ids("memory-5"))
    with pytest.raises(Permanent) as raised:
        store.remove([match])
    assert raised.value.problem is ProblemCode.UNSUPPORTED
    assert [said for said in store.check() if not said.ok]
