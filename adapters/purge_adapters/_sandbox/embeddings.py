"""A program of its own: makes or reads the vector store of the sandbox.

Chroma keeps files open and indexes cached for as long as a process lives, and two processes on
one folder spoil each other's index. So the sandbox never opens the store in its own process: it
runs this file, which ends and lets go. It imports nothing but the standard library and Chroma.

    python embeddings.py write FOLDER < store.json    (keys: collection, add, delete)
    python embeddings.py read FOLDER COLLECTION > records.json
"""

from __future__ import annotations

import json
import math
import sys
import unicodedata
import zlib
from typing import Any, Final

DIMENSIONS: Final = 64


def embed(text: str) -> list[float]:
    """Return a vector for a text: its trigrams of characters, hashed and normalised.

    It needs no model and no network, gives the same numbers everywhere, and puts texts with
    common words near each other, in any script.
    """
    plain = f"  {unicodedata.normalize('NFKC', text).casefold()}  "
    sums = [0.0] * DIMENSIONS
    for at in range(len(plain) - 2):
        code = zlib.crc32(plain[at : at + 3].encode("utf-8", "surrogatepass"))
        sums[code % DIMENSIONS] += 1.0 if code & 0x8000_0000 else -1.0
    length = math.sqrt(sum(value * value for value in sums)) or 1.0
    return [value / length for value in sums]


def _client(folder: str) -> Any:
    import chromadb
    from chromadb.config import Settings

    return chromadb.PersistentClient(path=folder, settings=Settings(anonymized_telemetry=False))


def write(folder: str, store: dict[str, Any]) -> None:
    """Make a collection, add records, and delete some of them in the ordinary way."""
    client = _client(folder)
    collection = client.create_collection(
        store["collection"], embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    records = store["add"]
    collection.add(
        ids=[record["id"] for record in records],
        documents=[record["document"] for record in records],
        embeddings=[embed(record["document"]) for record in records],
        metadatas=[record["metadata"] for record in records],
    )
    if store["delete"]:
        collection.delete(ids=store["delete"])
    client.close()


def read(folder: str, name: str) -> list[dict[str, Any]]:
    """Return every record of a collection with its vector."""
    client = _client(folder)
    found = client.get_collection(name, embedding_function=None).get(
        include=["documents", "metadatas", "embeddings"]
    )
    client.close()
    return [
        {"id": id_, "document": document, "metadata": metadata, "vector": list(map(float, vector))}
        for id_, document, metadata, vector in zip(
            found["ids"],
            found["documents"],
            found["metadatas"],
            found["embeddings"],
            strict=True,
        )
    ]


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    match arguments:
        case ["write", folder]:
            write(folder, json.load(sys.stdin))
        case ["read", folder, name]:
            json.dump(read(folder, name), sys.stdout)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
