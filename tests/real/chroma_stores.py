"""Real Chroma stores for tests: making them, reading them, and looking at their files.

Talks to Chroma's own client and to plain files, and to nothing of the adapter but its verbs.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import chromadb
import httpx
import numpy
from chromadb.config import Settings
from numpy.typing import NDArray

from purge.adapter import (
    Control,
    Examined,
    Match,
    NotChecked,
    NotRemoved,
    Removal,
    Residue,
    Site,
    Statement,
)
from purge.targets import Target, TargetKind, Targets
from purge_adapters.chroma import ChromaAdapter, ChromaSettings

SITE = "embeddings"
NAME = "memories"
Floats = NDArray[numpy.float32]


@contextmanager
def opened(folder: Path) -> Iterator[Any]:
    """Open a folder as an application does, and wait until it is closed again."""
    client: Any = chromadb.PersistentClient(
        str(folder), settings=Settings(anonymized_telemetry=False)
    )
    try:
        yield client
    finally:
        client.close()
        below = f"{folder.resolve()}/"
        give_up = time.monotonic() + 5
        while any(path.startswith(below) for path in own_files()):
            assert time.monotonic() < give_up
            time.sleep(0.005)


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """Run ``chroma run`` on a folder; give its port and its process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    chroma = Path(sys.executable).with_name("chroma")
    process = subprocess.Popen(
        [str(chroma), "run", "--path", str(folder), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        give_up = time.monotonic() + 60
        while not answers(port):
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.02)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(port: int) -> bool:
    """Whether a server is up, with its database."""
    try:
        httpx.get(f"http://localhost:{port}/api/v2/pre-flight-checks").raise_for_status()
    except httpx.HTTPError:
        return False
    return True


def own_files() -> list[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:
            continue
    return found


def vectors_of(count: int, dimension: int = 16, seed: int = 1) -> Floats:
    """Return vectors in a few clusters, as embeddings of related texts are."""
    chance = numpy.random.default_rng(seed)
    centres = chance.normal(size=(12, dimension))
    found = centres[chance.integers(0, 12, size=count)] + 0.6 * chance.normal(
        size=(count, dimension)
    )
    return found.astype(numpy.float32)


def text_of(number: int) -> str:
    """Return a text that shares most of its words with others, and has some of its own."""
    return f"Note {number}: Ottoline keeps permit {number * 7919 % 100_003} in tin box {number}."


def fill(
    folder: Path,
    count: int,
    *,
    space: str = "l2",
    dimension: int = 16,
    name: str = NAME,
    step: int = 500,
    **hnsw: int,
) -> Floats:
    """Make a collection of ``count`` records: ``memory-0``, ``memory-1``, …"""
    vectors = vectors_of(count, dimension)
    with opened(folder) as client:
        collection = client.create_collection(
            name,
            embedding_function=None,
            metadata={"purpose": "test"},
            configuration={"hnsw": {"space": space, **hnsw}},
        )
        for at in range(0, count, step):
            span = range(at, min(count, at + step))
            collection.add(
                ids=[f"memory-{number}" for number in span],
                embeddings=vectors[at : span.stop],
                documents=[text_of(number) for number in span],
                metadatas=[
                    {"owner": f"keeper-{number}-of-boxes", "page": number, "half": number / 2}
                    for number in span
                ],
            )
    return vectors


def plant(
    folder: Path,
    records: Mapping[str, tuple[str | None, Mapping[str, Any] | None]],
    name: str = NAME,
) -> None:
    vectors = vectors_of(len(records), 4, seed=3)
    with opened(folder) as client:
        collection = client.get_or_create_collection(name, embedding_function=None)
        for vector, (id, (document, metadata)) in zip(vectors, records.items(), strict=True):
            collection.add(
                ids=[id],
                embeddings=[vector.tolist()],
                documents=None if document is None else [document],
                metadatas=None if metadata is None else [dict(metadata)],
            )


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a fresh client returns of one collection."""

    collection_id: str
    configuration: Any
    metadata: Any
    count: int
    records: Mapping[str, tuple[str | None, Any]]
    vectors: Mapping[str, Floats] = field(repr=False)

    def without(self, ids: Iterable[str]) -> Seen:
        """Return it as it has to be once some records are gone."""
        gone = set(ids)
        return Seen(
            self.collection_id,
            self.configuration,
            self.metadata,
            self.count - len(gone),
            {id: said for id, said in self.records.items() if id not in gone},
            {id: vector for id, vector in self.vectors.items() if id not in gone},
        )

    def differs(self, other: Seen, *, tolerance: float = 0.0) -> list[str]:
        """Return what is not the same in another reading."""
        found = [
            name
            for name in ("collection_id", "configuration", "metadata", "count", "records")
            if getattr(self, name) != getattr(other, name)
        ]
        if self.vectors.keys() != other.vectors.keys() or any(
            float(numpy.abs(vector - other.vectors[id]).max()) > tolerance
            for id, vector in self.vectors.items()
        ):
            found.append("vectors")
        return found


def see(folder: Path, name: str = NAME) -> Seen:
    """Read a collection with a fresh client."""
    with opened(folder) as client:
        collection = client.get_collection(name, embedding_function=None)
        got = collection.get(include=["documents", "metadatas", "embeddings"])
        records = zip(got["documents"], got["metadatas"], strict=True)
        return Seen(
            str(collection.id),
            collection.configuration_json,
            collection.metadata,
            collection.count(),
            dict(zip(got["ids"], records, strict=True)),
            {
                id: numpy.asarray(vector, dtype=numpy.float32)
                for id, vector in zip(got["ids"], got["embeddings"], strict=True)
            },
        )


def recall(folder: Path, *, space: str = "l2", queries: int = 60, name: str = NAME) -> float:
    """Return which share of the ten true nearest neighbours a search finds."""
    with opened(folder) as client:
        collection = client.get_collection(name, embedding_function=None)
        got = collection.get(include=["embeddings"])
        ids, all_ = got["ids"], numpy.asarray(got["embeddings"], dtype=numpy.float64)
        asked = vectors_of(queries, all_.shape[1], seed=99).astype(numpy.float64)
        answers = collection.query(query_embeddings=asked, n_results=10, include=[])["ids"]
    hits = 0
    for query, answer in zip(asked, answers, strict=True):
        if space == "l2":
            distances = ((all_ - query) ** 2).sum(axis=1)
        elif space == "ip":
            distances = -(all_ @ query)
        else:
            lengths = numpy.linalg.norm(all_, axis=1)
            distances = -(all_ @ query) / numpy.where(lengths > 0, lengths, 1.0)
        nearest = {ids[place] for place in numpy.argsort(distances)[:10]}
        hits += len(nearest & set(answer))
    return hits / (10 * queries)


class Store:
    """A folder and the adapter for it; every verb through a new instance.

    Args:
        root: the folder of the manifest.
        site: keys of the site besides its name.
        settings: the adapter's own; ``path`` is ``chroma`` if no place is named.
    """

    def __init__(self, root: Path, *, site: Mapping[str, Any] | None = None, **settings: Any):
        self.root = root
        self.folder = root / "chroma"
        self.site = Site(SITE, root, **(site or {}))
        if not settings.keys() & {"path", "url", "host"}:
            settings["path"] = "chroma"
        self.settings = ChromaSettings(**settings)

    def adapter(self) -> ChromaAdapter:
        return ChromaAdapter(self.site, self.settings)

    def check(self) -> list[Statement]:
        with self.adapter() as adapter:
            return list(adapter.check())

    def find(self, targets: Targets) -> tuple[list[Match], list[NotChecked], list[Examined]]:
        with self.adapter() as adapter:
            found = list(adapter.find(targets))
        return of(Match, found), of(NotChecked, found), of(Examined, found)

    def matches(self, targets: Targets) -> list[Match]:
        return self.find(targets)[0]

    def remove(self, matches: Sequence[Match]) -> list[NotRemoved]:
        at = datetime.now(UTC)
        with self.adapter() as adapter:
            return list(adapter.remove([Removal(match, "01J", at) for match in matches]))

    def look(
        self, targets: Targets, known: Iterable[Match] = ()
    ) -> tuple[list[Residue], list[Control], list[NotChecked]]:
        traced = Targets(targets.all, {SITE: tuple(match.trace for match in known)})
        with self.adapter() as adapter:
            found = list(adapter.residue(traced))
        assert of(Examined, found)
        return of(Residue, found), of(Control, found), of(NotChecked, found)

    def residue(self, targets: Targets, known: Iterable[Match] = ()) -> list[Residue]:
        return self.look(targets, known)[0]

    def sanitize(self, residue: Sequence[Residue]) -> list[NotRemoved | NotChecked]:
        with self.adapter() as adapter:
            return list(adapter.sanitize([each for each in residue if each.fixable]))

    def purge(self, targets: Targets) -> list[Match]:
        """Remove what is named and all that is left of it, and demand that it worked."""
        found, gaps, _ = self.find(targets)
        assert gaps == []
        if found:
            assert self.remove(found) == []
        left = self.residue(targets, found)
        if left:
            assert self.sanitize(left) == []
        residue, controls, gaps = self.look(targets, found)
        assert (residue, gaps) == ([], [])
        assert all(control.passed for control in controls)
        return found


def of(kind: type[Any], found: Iterable[object]) -> list[Any]:
    return [item for item in found if isinstance(item, kind)]


def ids(*values: str) -> Targets:
    return Targets(Target(key, TargetKind.ID, value, SITE) for key, value in enumerate(values))


def phrase(value: str) -> Targets:
    return Targets([Target(0, TargetKind.PHRASE, value)])


def lineage(source: str, *values: str) -> Targets:
    return Targets(
        Target(key, TargetKind.LINEAGE, value, source) for key, value in enumerate(values)
    )


def files_with(folder: Path, *needles: str | bytes) -> dict[str, list[str]]:
    """Return the files below a folder that hold a needle, by the needle."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes().lower()
            for needle in needles:
                form = needle.lower().encode() if isinstance(needle, str) else needle.lower()
                if form in content:
                    found.setdefault(repr(needle), []).append(path.name)
    return found


def holds_vector(folder: Path, vector: Sequence[float] | Floats) -> list[str]:
    """Return the files that hold a vector anywhere, as it is or normalised, nearly or exactly.

    Goes through every offset at which numbers could begin, and knows no format.
    """
    wanted = numpy.asarray(vector, dtype=numpy.float32)
    forms = [wanted, wanted / numpy.linalg.norm(wanted)]
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        for shift in range(4):
            numbers = numpy.frombuffer(content[shift:], "<f4", (len(content) - shift) // 4)
            for form in forms:
                with numpy.errstate(invalid="ignore"):
                    near = numpy.abs(numbers - form[0]) <= 1e-5 * abs(form[0])
                for place in numpy.flatnonzero(near).tolist():
                    part = numbers[place : place + len(form)]
                    if len(part) == len(form) and numpy.allclose(part, form, rtol=1e-5, atol=1e-7):
                        found.append(path.name)
    return found


def packed(vector: Sequence[float] | Floats) -> bytes:
    return struct.pack(f"<{len(vector)}f", *(float(number) for number in vector))
