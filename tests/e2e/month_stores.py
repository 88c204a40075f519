"""What the stores hold, read without ``purge``: json, sqlite3, redis-py, chromadb and restic."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support.redis_servers import Server
from tests.support.restic_repos import Harbour, environment, program

VECTORS = """
import json, sys
import chromadb
from chromadb.config import Settings
for line in sys.stdin:
    client = chromadb.PersistentClient(sys.argv[1], Settings(anonymized_telemetry=False))
    made = client.get_or_create_collection("memories", embedding_function=None)
    for one in json.loads(line):
        made.upsert(ids=[one["id"]], documents=[one["text"]], embeddings=[one["vector"]],
                    metadatas=[{"memory": one["memory"]}])
    there = made.get()
    client.close()
    print(json.dumps(list(zip(there["ids"], there["documents"]))), flush=True)
"""
LIVE = ("logs", "notes", "team", "memories", "embeddings", "summaries", "rules", "cache")
WITH_MARKERS = ("notes", "team", "logs")


class Vectors:
    """An application of the vector store, in a process of its own; it opens the store each time."""

    def __init__(self, folder: Path) -> None:
        words = [sys.executable, "-c", VECTORS, str(folder)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def put(self, *records: dict[str, Any]) -> list[tuple[str, str]]:
        """Put records into the store, and return (id, text) of all that are there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(records) + "\n")
        self._process.stdin.flush()
        return [(id, text) for id, text in json.loads(self._process.stdout.readline())]

    def end(self) -> None:
        self._process.communicate(timeout=30)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot, as restic dumps it."""

    id: str
    taken: datetime
    files: dict[str, bytes] = field(repr=False)

    def says(self, words: str, besides: Collection[str] = ()) -> list[str]:
        """The files in which the words stand, marker lines and some texts aside."""
        return [
            name
            for name, content in self.files.items()
            if words.encode() in content and mentions(name, content, words, besides)
        ]


def mentions(name: str, content: bytes, words: str, besides: Collection[str] = ()) -> bool:
    """Whether a file says the words elsewhere than in a marker line or in some texts."""
    if name.endswith(".md"):
        return bool([line for line in content.decode().splitlines() if says(line, words)])
    if name.endswith(".jsonl"):
        texts = [json.loads(line)["text"] for line in content.decode().splitlines()]
        return any(says(text, words) for text in texts if text not in besides)
    return words.encode() in content


def says(text: str, words: str) -> bool:
    """Whether a line of text says the words, and is no marker."""
    return words in text and not text.startswith("RETRACTS:")


@dataclass(slots=True)
class Stores:
    """Readers of every store."""

    root: Path
    harbour: Harbour
    redis: Server
    vectors: Vectors
    _known: dict[str, Snapshot] = field(default_factory=dict, repr=False)

    def records(self) -> dict[str, list[tuple[str, str]]]:
        """Every record of every live site, as (where, text)."""
        data = self.root / "data"
        found: dict[str, list[tuple[str, str]]] = {}
        rows = [json.loads(line) for line in (data / "logs/chat.jsonl").open(encoding="utf-8")]
        found["logs"] = [(row["id"], row["text"]) for row in rows]
        for name in ("notes", "team", "summaries", "rules"):
            found[name] = [
                (path.name, line)
                for path in sorted((data / name).rglob("*.md"))
                for line in path.read_text(encoding="utf-8").splitlines()
            ]
        with closing(sqlite3.connect(f"file:{data}/memories.db?mode=ro", uri=True)) as database:
            found["memories"] = list(database.execute("SELECT id, content FROM memories"))
        found["embeddings"] = self.vectors.put()
        with self.redis.client() as client:
            keys: list[Any] = sorted(client.scan_iter("*"))
            found["cache"] = [(key.decode(), str(client.get(key))) for key in keys]
        return found

    def raw(self, site: str) -> bytes:
        """All bytes of a site's files, whatever stands in them."""
        data = self.root / "data"
        places = {
            "memories": list(data.glob("memories.db*")),
            "embeddings": list((data / "chroma").rglob("*")),
            "cache": list(self.redis.folder.rglob("*")),
        }
        paths = places.get(site) or list((data / site).rglob("*"))
        return b"\n".join(path.read_bytes() for path in paths if path.is_file())

    def print_of_all(self) -> dict[str, tuple[str, int]]:
        """A fingerprint and the time of every file below the sites."""
        return {
            str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
            for path in sorted((self.root / "data").rglob("*"))
            if path.is_file()
        }

    def snapshots(self) -> list[Snapshot]:
        """Every snapshot that is there now, oldest first."""
        found: list[Snapshot] = []
        for listed in self.harbour.snapshots():
            if listed["id"] not in self._known:
                self._known[listed["id"]] = self._dump(listed)
            found.append(self._known[listed["id"]])
        return sorted(found, key=lambda one: one.taken)

    def _dump(self, listed: dict[str, Any]) -> Snapshot:
        archived = self._restic("dump", listed["id"], str(self.root / "data"))
        files = {}
        with tarfile.open(fileobj=io.BytesIO(archived)) as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    files[member.name] = content.read()
        assert any(name.endswith("chat.jsonl") for name in files), sorted(files)
        return Snapshot(listed["id"], datetime.fromisoformat(listed["time"]), files)

    def blobs_with(self, words: str) -> list[str]:
        """The blobs in the repository that hold the words, whether a snapshot needs them or not."""
        found = []
        for line in self.harbour.run("list", "blobs").splitlines():
            kind, id = line.split()
            if kind == "data" and words.encode() in self._restic("cat", "blob", id):
                found.append(id)
        return found

    def keys_of(self, request: str) -> int:
        """How many wrapped keys there are for a request."""
        path = self.root / ".purge/ledger.keys.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            query = "SELECT count(*) FROM keys WHERE request = ?"
            return int(database.execute(query, (request,)).fetchone()[0])

    def _restic(self, *words: str) -> bytes:
        return subprocess.run(
            [str(program("0.18")), *words],
            env=environment(self.harbour.repository),
            check=True,
            capture_output=True,
        ).stdout
