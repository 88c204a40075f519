"""Removing one record from a Chroma collection of 10,000, proved to the bytes, against the recipe.

The recipe is what one would do by hand with Chroma's own client: write over the record and delete
it, tell the collection to write its index out at once, do so in a new process, set it back, merge
the trigram index and compact the database, then look at every byte and search for the vector.
``purge request --apply`` does what leads to the same, and keeps a ledger of it. Both start from
nothing, so that interpreter and driver are in both.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench._measure import best, say, show

COUNT = 10_000
DIMENSION = 384
TURNS = 3
GONE = f"memory-{COUNT // 2}"
TEXT = f"Note {COUNT // 2}: the spare key of locker {COUNT // 2} lies under the blue crab pot."

_FILL = f"""
import sys, chromadb, numpy
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
collection = client.create_collection("memories", embedding_function=None)
vectors = numpy.random.default_rng(7).normal(size=({COUNT}, {DIMENSION})).astype("float32")
for at in range(0, {COUNT}, 1000):
    span = range(at, at + 1000)
    collection.add(
        ids=[f"memory-{{n}}" for n in span],
        embeddings=vectors[at : at + 1000],
        documents=[
            f"Note {{n}}: the spare key of locker {{n}} lies under the blue crab pot." for n in span
        ],
        metadatas=[{{"owner": f"keeper-{{n % 97}}", "page": n}} for n in span],
    )
client.close()
"""
_OPEN = """
import sys, chromadb, numpy
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
collection = client.get_collection("memories", embedding_function=None)
"""
_OVERWRITE = f"""{_OPEN}
found = collection.get(ids=[sys.argv[2]], include=["embeddings", "metadatas"])
numpy.save(sys.argv[3], numpy.asarray(found["embeddings"][0], dtype="float32"))
collection.update(
    ids=[sys.argv[2]], embeddings=[[0.0] * {DIMENSION}], documents=["x"],
    metadatas=[dict.fromkeys(found["metadatas"][0])],
)
collection.delete(ids=[sys.argv[2]])
collection.modify(configuration={{"hnsw": {{"sync_threshold": 2, "batch_size": 2}}}})
client.close()
"""
_CHURN = f"""{_OPEN}
some = collection.get(limit=1, include=["embeddings"])["embeddings"][0]
for turn in range(3):
    ids = [f"dummy-{{turn}}-{{n}}" for n in range(3)]
    collection.add(ids=ids, embeddings=[some] * 3)
    collection.delete(ids=ids)
collection.modify(configuration={{"hnsw": {{"sync_threshold": 1000, "batch_size": 100}}}})
client.close()
"""
_PROVE = f"""
import sqlite3
from pathlib import Path
{_OPEN}
client.close()
database = sqlite3.connect(sys.argv[1] + "/chroma.sqlite3", isolation_level=None)
table = "embedding_fulltext_search"
database.execute(f"INSERT INTO {{table}}({{table}}) VALUES ('optimize')")
database.execute("VACUUM")
assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
database.close()
vector = numpy.load(sys.argv[3])
needles = [sys.argv[4].encode(), vector.tobytes(), sys.argv[2].encode() + b"\\0"]
for path in Path(sys.argv[1]).rglob("*"):
    if path.is_file():
        content = path.read_bytes()
        assert not any(needle in content for needle in needles), path
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
collection = client.get_collection("memories", embedding_function=None)
near = collection.query(query_embeddings=[vector.tolist()], n_results=collection.count())
assert sys.argv[2] not in near["ids"][0]
assert collection.count() == {COUNT - 1}
"""
_MANIFEST = """
purge: 1
name: bench
sites:
  embeddings: {adapter: chroma, path: chroma, collections: [memories]}
"""


def run(*words: str) -> None:
    """Run a Python program; what it prints is thrown away."""
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


def by_hand(folder: Path) -> None:
    """Follow the recipe in three processes."""
    words = [str(folder / "chroma"), GONE, str(folder / "vector.npy"), TEXT]
    for program in (_OVERWRITE, _CHURN, _PROVE):
        run("-c", program, *words)


def by_purge(folder: Path) -> None:
    """Let purge do it."""
    words = ("--id", f"embeddings:{GONE}", "--reason", "bench", "--apply")
    run("-m", "purge", "request", "--manifest", str(folder / "purge.yaml"), *words)


def main() -> None:
    """Print the ratio."""
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "model"
        model.mkdir()
        (model / "purge.yaml").write_text(_MANIFEST)
        run("-c", _FILL, str(model / "chroma"))
        copies = iter(_copies(model, 2 * TURNS))

        def act(way: Callable[[Path], None]) -> Callable[[], None]:
            mine = [next(copies) for _ in range(TURNS)]
            return lambda: way(mine.pop())

        times = best({"the recipe by hand": act(by_hand), "purge": act(by_purge)}, TURNS)
    say(f"{COUNT} records of {DIMENSION} numbers, one removed")
    show(times, "the recipe by hand", {"purge": 1.5})


def _copies(model: Path, count: int) -> Iterator[Path]:
    for number in range(count):
        copy = model.with_name(f"copy-{number}")
        shutil.copytree(model, copy)
        yield copy
