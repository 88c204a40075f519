"""Faults that people met in public with Chroma, each rebuilt (the numbers are our own)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from purge.errors import EmptySelector
from purge.state import ProblemCode
from purge.targets import Target, TargetKind, Targets
from tests.real.chroma_stores import NAME, Store, files_with, fill, ids, lineage, opened, see


def test_chr_01_a_deleted_text_in_the_log_is_no_confirmation(tmp_path: Path) -> None:
    """CHR-01: the log keeps text and vector, automatic purge or not, for a thousand writes."""
    store = Store(tmp_path)
    fill(store.folder, 40)
    named = ids("memory-7")
    found = store.matches(named)
    assert store.remove(found) == []
    assert store.matches(named) == []
    text = "in tin box 7."
    assert files_with(store.folder, text)
    residue = store.residue(named, found)
    assert "log of collection 'memories'" in [item.where for item in residue]
    assert {(item.until, item.problem, item.fixable) for item in residue} == {
        (None, ProblemCode.NO_END_DATE, True)
    }
    assert store.sanitize(residue) == []
    assert files_with(store.folder, text) == {}
    assert store.residue(named, found) == []


@pytest.mark.parametrize("asked", ["memory-", "memory-70", "%", "*", "emory-7"])
def test_chr_03_nothing_found_means_that_no_delete_is_sent(tmp_path: Path, asked: str) -> None:
    """CHR-03: an empty list of ids once deleted everything."""
    store = Store(tmp_path)
    fill(store.folder, 40)
    before = see(store.folder)
    assert store.matches(ids(asked)) == []
    with pytest.raises(EmptySelector):
        store.remove([])
    assert before.differs(see(store.folder)) == []


@pytest.mark.parametrize("nothing", ["", "   ", "\n"])
def test_chr_07_a_filter_of_nothing_is_stopped_before_the_store(nothing: str) -> None:
    """CHR-07: ``{}`` meant everything to some versions and an error to others."""
    with pytest.raises(EmptySelector):
        Targets([Target(0, TargetKind.PHRASE, nothing)])


def test_mem_10_versions_that_were_replaced_are_records_too(tmp_path: Path) -> None:
    """MEM-10: a delete that passes over chunks in the state 'replaced' leaves their vectors."""
    store = Store(tmp_path, site={"derived_from": {"notes": "note"}})
    vectors: Any = fill(store.folder, 3)
    with opened(store.folder) as client:
        client.get_collection(NAME, embedding_function=None).add(
            ids=["note-1@1", "note-1@2", "note-1@3", "note-10@1"],
            embeddings=[[0.1 * n] * 15 + [1.0] for n in range(4)],
            documents=["Ottoline one.", "Ottoline two.", "Ottoline three.", "Someone else."],
            metadatas=[
                {"note": "note-1", "state": "replaced"},
                {"note": "note-1", "state": "archived"},
                {"note": "note-1", "state": "ready"},
                {"note": "note-10", "state": "ready"},
            ],
        )
    assert len(vectors) == 3
    found = store.purge(lineage("notes", "note-1"))
    assert sorted(match.id for match in found) == ["note-1@1", "note-1@2", "note-1@3"]
    assert files_with(store.folder, "ottoline one", "ottoline two", "note-1@") == {}
    assert see(store.folder).count == 4


def test_mem_08_a_store_that_says_deleted_decides_nothing(tmp_path: Path) -> None:
    """MEM-08: what was found and could not be taken stays found."""
    store = Store(tmp_path)
    fill(store.folder, 10)
    found = store.matches(ids("memory-3"))
    with opened(store.folder) as client:
        collection = client.get_collection(NAME, embedding_function=None)
        collection.update(ids=["memory-3"], embeddings=[[0.5] * 16], documents=["Changed."])
    (left,) = store.remove(found)
    assert left.problem is ProblemCode.CHANGED_UNDERNEATH
    assert [match.id for match in store.matches(ids("memory-3"))] == ["memory-3"]
