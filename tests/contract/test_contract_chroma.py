"""The Chroma adapter keeps the whole contract, on a folder and behind a real server."""

from __future__ import annotations

import atexit
import math
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import chromadb
import pytest
from chromadb.config import Settings

from purge.adapter import Action
from purge.targets import NeedleKind
from purge.testing import (
    METADATA,
    OTHER,
    SCOPE,
    SOURCE,
    AdapterContract,
    Breakage,
    Harness,
    Planted,
)
from purge_adapters.chroma import ChromaAdapter

NAME = "memories"
TEMPORARY = tempfile.gettempdir()
KEYS = {"source_ids": SOURCE, "other_ids": OTHER}


class Imported(ChromaAdapter):
    """The adapter, from a module that imports the driver.

    A process that runs a verb to be killed in it has paid for the import before the moments are
    counted, so that they fall into the adapter's own work.
    """


def let_go(folder: Path) -> None:
    """Wait until the threads of a closed client have let go of its files."""
    below = f"{folder.resolve()}/"
    for _ in range(500):
        held = []
        for link in Path("/proc/self/fd").iterdir():
            try:
                held.append(str(link.readlink()))
            except OSError:
                continue
        if not any(path.startswith(below) for path in held):
            return
        time.sleep(0.01)
    raise RuntimeError("a closed client still holds its files")


def record_of(id: str, text: str | None, fields: Mapping[str, Any], vector: Any) -> Planted:
    parents = {site: tuple(fields[key]) for key, site in KEYS.items() if key in fields}
    return Planted(
        id,
        text or "",
        {SCOPE: fields["project"]} if "project" in fields else {},
        fields.get("user"),
        parents,
        {METADATA: fields["topic"]} if "topic" in fields else {},
        tuple(float(number) for number in vector),
    )


def fields_of(record: Planted) -> dict[str, Any] | None:
    fields: dict[str, Any] = {
        key: list(record.parents[site]) for key, site in KEYS.items() if site in record.parents
    }
    if record.scope:
        fields["project"] = record.scope[SCOPE]
    if record.subject is not None:
        fields["user"] = record.subject
    if record.metadata:
        fields["topic"] = record.metadata[METADATA]
    return fields or None


class ChromaHarness(Harness):
    """What a folder and a server have in common."""

    adapter = Imported
    has_vectors = True

    @contextmanager
    def client(self) -> Iterator[Any]:
        raise NotImplementedError

    def place(self) -> dict[str, Any]:
        raise NotImplementedError

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            **self.place(),
            "collections": [NAME],
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "user",
            "derived_from": {SOURCE: "source_ids", OTHER: "other_ids"},
        }

    def make(self) -> None:
        with self.client() as client:
            client.create_collection(
                NAME, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )

    def plant(self, records: Sequence[Planted]) -> None:
        with self.client() as client:
            collection = client.get_collection(NAME, embedding_function=None)
            for at in range(0, len(records), 500):
                some = records[at : at + 500]
                collection.add(
                    ids=[record.id for record in some],
                    embeddings=[list(record.vector or ()) for record in some],
                    documents=[record.text for record in some],
                    metadatas=[fields_of(record) for record in some],
                )

    def change(self, record: Planted) -> None:
        with self.client() as client:
            client.get_collection(NAME, embedding_function=None).update(
                ids=[record.id],
                embeddings=[list(record.vector or ())],
                documents=[record.text],
                metadatas=[fields_of(record)],
            )

    def read(self) -> Mapping[str, Planted]:
        with self.client() as client:
            collection = client.get_collection(NAME, embedding_function=None)
            got = collection.get(include=["documents", "metadatas", "embeddings"])
            vectors: Any = got["embeddings"]
            found = {
                id: record_of(id, got["documents"][at], got["metadatas"][at] or {}, vectors[at])
                for at, id in enumerate(got["ids"])
            }
            if collection.count():
                near = collection.query(
                    query_embeddings=[[1.0, *[0.0] * 7]], n_results=len(found) + 10, include=[]
                )
                # What only a search returns is read as well, and equal to nothing planted.
                for id in near["ids"][0]:
                    found.setdefault(id, Planted(id, "", metadata={METADATA: "search only"}))
            return found


_COUNT = f"""
import sys, chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False))
collection = client.get_collection("{NAME}", embedding_function=None)
near = collection.query(query_embeddings=[[1.0] + [0.0] * 7], n_results=10)
print(len(collection.get()["ids"]), len(near["ids"][0]))
client.close()
"""


class Folder(ChromaHarness):
    """The folder of a persistent client."""

    kill_points = 5
    visible = frozenset(NeedleKind)
    untold = "the pages, indexes and copies of a folder are searched for everything at once"

    def place(self) -> dict[str, Any]:
        return {"path": "chroma"}

    def leave_copy(self) -> bool:
        return self.copy_beside()

    @contextmanager
    def client(self) -> Iterator[Any]:
        folder = self.folder / "chroma"
        client: Any = chromadb.PersistentClient(
            str(folder), settings=Settings(anonymized_telemetry=False)
        )
        try:
            yield client
        finally:
            client.close()
            let_go(folder)

    def read(self) -> Mapping[str, Planted]:
        # Chroma 1.5.9 writes an index without records anew at every opening, filled with what
        # stood in that memory before, and the memory of this process holds all that is planted.
        connection = sqlite3.connect(self.folder / "chroma" / "chroma.sqlite3")
        (count,) = connection.execute("SELECT count(*) FROM embeddings").fetchone()
        connection.close()
        if count:
            return super().read()
        words = [sys.executable, "-c", _COUNT, str(self.folder / "chroma")]
        done = subprocess.run(words, capture_output=True, check=True, text=True)
        assert done.stdout.split() == ["0", "0"]
        return {}

    def vector_forms(self, vector: Sequence[float]) -> tuple[bytes, ...]:
        length = math.sqrt(sum(number * number for number in vector))
        normal = [number / length for number in vector]
        return tuple({struct.pack("<8f", *vector), struct.pack("<8f", *normal)})


class TestChromaFolder(AdapterContract):
    harness = Folder


class OneServer:
    """A ``chroma run`` of its own, shared by the stores of this process, each in a database."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="chroma-server-", dir=TEMPORARY)
        self.port = free_port()
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("chroma")),
                "run",
                "--path",
                self.folder.name,
                "--port",
                str(self.port),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.05)
        raise RuntimeError("the server did not start")

    @contextmanager
    def down(self) -> Iterator[None]:
        self.process.terminate()
        self.process.wait(timeout=30)
        try:
            yield
        finally:
            self.process = self.start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.folder.cleanup()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@cache
def one_server() -> OneServer:
    server = OneServer()
    atexit.register(server.stop)
    return server


class Served(ChromaHarness):
    """Collections behind a server, whose files are out of reach."""

    kill_points = 2
    visible = frozenset()
    invisible = "the adapter is given the address of a server, not its folder"
    unbreakable: ClassVar[Mapping[Breakage, str]] = dict.fromkeys(
        set(Breakage) - {Breakage.MISSING},
        "what happens to the files of a server is not the adapter's to see",
    )

    def place(self) -> dict[str, Any]:
        return {"url": f"http://localhost:{one_server().port}", "database": self.database}

    def make(self) -> None:
        self.database = uuid.uuid4().hex
        admin = chromadb.AdminClient(
            Settings(
                chroma_api_impl="chromadb.api.fastapi.FastAPI",
                chroma_server_host="localhost",
                chroma_server_http_port=one_server().port,
                anonymized_telemetry=False,
            )
        )
        admin.create_database(self.database)
        super().make()

    @contextmanager
    def client(self) -> Iterator[Any]:
        client: Any = chromadb.HttpClient(
            "localhost",
            one_server().port,
            settings=Settings(anonymized_telemetry=False),
            database=self.database,
        )
        try:
            yield client
        finally:
            client.close()

    def contents(self) -> Mapping[str, bytes]:
        return {}

    def break_it(self, kind: Breakage) -> AbstractContextManager[None]:
        assert kind is Breakage.MISSING
        return one_server().down()


@pytest.mark.long
class TestChromaServer(AdapterContract):
    harness = Served

    # Nothing hinders a server without breaking it, so these have nothing to show.
    test_a_hindered_remove_is_done_once_the_hindrance_is_gone = None  # type: ignore[assignment]
    test_a_hindered_sanitize_loses_nothing_and_is_never_silent = None  # type: ignore[assignment]
    test_a_store_that_comes_back_is_found_as_it_was = None  # type: ignore[assignment]
