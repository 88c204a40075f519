"""Blanking in a Chroma folder, and folders that another process holds or that have copies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purge.adapter import Action, NotChecked, Readability, Residue
from purge.state import ProblemCode
from purge.targets import Target, TargetKind, Targets
from tests.real.chroma_stores import (
    NAME,
    Store,
    files_with,
    fill,
    holds_vector,
    ids,
    opened,
    plant,
    see,
    served,
)

# --- blanking -------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("count", [60, 1200])
def test_a_blanked_record_keeps_its_links_and_disturbs_no_search(
    tmp_path: Path, space: str, count: int
) -> None:
    store = Store(
        tmp_path,
        site={"action": Action.BLANK, "derived_from": {"memories": "owner"}},
        text=("summary",),
    )
    vectors = fill(store.folder, count, space=space)
    with opened(store.folder) as client:
        client.get_collection(NAME, embedding_function=None).update(
            ids=["memory-5"],
            embeddings=[vectors[5].tolist()],
            metadatas=[{"summary": "Of the brasskeyling.", "other": "brasskeyling, once more"}],
        )
    named = Targets(
        [
            Target(0, TargetKind.ID, "memory-5", "embeddings"),
            Target(1, TargetKind.PHRASE, "brasskeyling, once more"),
        ]
    )
    before = see(store.folder)
    store.purge(named)
    seen = see(store.folder)
    document, metadata = seen.records["memory-5"]
    assert (document, metadata["summary"], metadata["other"]) == ("", "", "")
    assert metadata["owner"] == "keeper-5-of-boxes"
    assert metadata["page"] == 5
    assert files_with(store.folder, "brasskeyling", "in tin box 5.") == {}
    assert holds_vector(store.folder, vectors[5]) == []
    others = before.without(["memory-5"])
    assert others.differs(seen.without(["memory-5"]), tolerance=1e-6) == []
    with opened(store.folder) as client:
        collection = client.get_collection(NAME, embedding_function=None)
        near = collection.query(query_embeddings=vectors[:50], n_results=10)
        assert not any("memory-5" in answer for answer in near["ids"])
    (match,) = store.matches(ids("memory-5"))
    assert match.readability is Readability.BLANKED


def test_a_record_without_a_document_is_not_blanked_for_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, site={"action": Action.BLANK})
    plant(store.folder, {"a": (None, {"data": "Ottoline, of all people."}), "b": ("x", None)})
    (left,) = store.remove(store.matches(ids("a")))
    assert left.problem is ProblemCode.UNSUPPORTED
    assert see(store.folder).records["a"][1] == {"data": "Ottoline, of all people."}
    named = Store(tmp_path, site={"action": Action.BLANK}, text=("data",))
    named.purge(ids("a"))
    assert see(store.folder).records["a"] == (None, {"data": ""})
    assert files_with(store.folder, "ottoline") == {}


# --- other processes ------------------------------------------------------------------------------

HOLD = """
import sys, chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
collection = client.get_collection("memories", embedding_function=None)
collection.query(query_embeddings=[[0.0] * 16], n_results=1)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(kind: str, folder: Path) -> Iterator[int]:
    """Hold a folder open from another process; give its id."""
    if kind == "server":
        with served(folder) as (_, pid):
            yield pid
        return
    words = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"held\n"
        yield process.pid
    finally:
        process.communicate(timeout=30)


@pytest.mark.parametrize("kind", ["client", "server"])
def test_nothing_is_written_behind_the_back_of_another_process(tmp_path: Path, kind: str) -> None:
    """CHR-05: it would go on returning what was deleted, and write it back."""
    store = Store(tmp_path)
    fill(store.folder, 1200)
    named = ids("memory-5")
    found = store.matches(named)
    with holding(kind, store.folder) as pid:
        before = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
        assert [match.id for match in store.matches(named)] == ["memory-5"]
        (left,) = store.remove(found)
        assert left.problem is ProblemCode.HELD_OPEN
        assert f"Process {pid}" in left.sentence
        residue, _, gaps = store.look(named, found)
        assert [gap.problem for gap in gaps] == [ProblemCode.HELD_OPEN]
        fixable = [item for item in residue if item.fixable]
        (undone,) = store.sanitize(fixable or pretended())
        assert isinstance(undone, NotChecked)
        assert undone.problem is ProblemCode.HELD_OPEN
        assert f"Process {pid}" in next(s.sentence for s in store.check() if not s.ok)
        after = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
        assert before == after
    store.purge(named)
    assert see(store.folder).count == 1199


def pretended() -> list[Residue]:
    return [Residue("trigram index", "a test says so", fixable=True, handle={"part": "fulltext"})]


def test_a_client_of_this_very_process_counts_as_well(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store.folder, 20)
    found = store.matches(ids("memory-5"))
    with opened(store.folder) as client:
        client.get_collection(NAME, embedding_function=None).get(limit=1)
        (left,) = store.remove(found)
        assert left.problem is ProblemCode.HELD_OPEN
        assert "This process" in left.sentence
    store.purge(ids("memory-5"))


def test_copies_beside_the_folder_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store.folder, 20)
    shutil.copytree(store.folder, tmp_path / "chroma.bak")
    shutil.copy(store.folder / "chroma.sqlite3", store.folder / "chroma.sqlite3.old")
    found = store.matches(ids("memory-5"))
    assert store.remove(found) == []
    assert store.sanitize(store.residue(ids("memory-5"), found)) == []
    left = store.residue(ids("memory-5"), found)
    assert {item.where.split("/")[-1] for item in left} == {"chroma.bak", "chroma.sqlite3.old"}
    assert not any(item.fixable for item in left)
