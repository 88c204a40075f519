"""Writing a small vector index out for the first time, with Chroma's own code.

Until a collection has seen a thousand writes (its ``sync_threshold``) its vectors stand in the log
alone, and with them everything that was ever written. Chroma 1.5.9 then also writes an index
without elements at every opening, filled with whatever stood in that memory before (by experiment:
texts of records among it). So the index is built in a private store that writes out at once, and
its files are taken over. Where no record is left, Chroma goes on as before at the next opening:
that writes from its own memory, not from ours.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from purge_adapters._chroma_client import PAGE, opened
from purge_adapters._chroma_index import (
    DATA,
    FILES,
    LENGTHS,
    Index,
    Malformed,
    sync_file,
    sync_folder,
)
from purge_adapters._chroma_store import DATABASE, Store
from purge_adapters._files import private_folder
from purge_adapters._sqlite import reading

_NAME: Final = "index"
_AT_ONCE: Final = 2
"""The smallest number of writes after which Chroma can be told to write an index out."""
_KNOWN: Final = (
    "space",
    "ef_construction",
    "max_neighbors",
    "ef_search",
    "num_threads",
    "resize_factor",
)


def build_index(
    folder: Path,
    vectors: Mapping[str, Sequence[float]],
    dimension: int,
    hnsw: Mapping[str, object],
) -> None:
    """Write the index of these vectors into an empty folder.

    Args:
        folder: exists and is empty.
        vectors: by the id of the record; may be empty.
        dimension: how many numbers a vector has.
        hnsw: how the collection is configured.

    Raises:
        Transient, Permanent: Chroma could not build it.
        Malformed: what it built is not the index of these vectors.
        OSError: it cannot be written.
    """
    configuration: Any = {
        "hnsw": {
            **{key: hnsw[key] for key in _KNOWN if key in hnsw},
            "sync_threshold": _AT_ONCE,
            "batch_size": _AT_ONCE,
        }
    }
    with private_folder("chroma-index") as scratch:
        with opened(scratch, "default_tenant", "default_database") as client:
            collection = client.create_collection(
                _NAME, embedding_function=None, configuration=configuration
            )
            nobody = uuid.uuid4().hex
            # Even an index that is of nobody has an element, as one has whose records are gone.
            wanted = vectors or {nobody: [0.0] * dimension}
            ids = list(wanted)
            for at in range(0, len(ids), PAGE):
                some = ids[at : at + PAGE]
                embeddings: Any = [list(wanted[id_]) for id_ in some]
                collection.add(ids=some, embeddings=embeddings)
            # The second write after a page of one, without which it would not be written out.
            collection.delete(ids=[nobody])
        with reading(scratch / DATABASE) as connection:
            segment = Store(connection).collections()[0].vector_segment
        for name in FILES:
            shutil.copyfile(scratch / str(segment) / name, folder / name)
    built = Index(folder)
    # Behind the last element stands memory that was never set.
    os.truncate(folder / DATA, built.count * built.stride)
    os.truncate(folder / LENGTHS, built.count * 4)
    for name in FILES:
        sync_file(folder / name)
    sync_folder(folder)
    if built.slots.keys() != vectors.keys() or any(
        slot not in built.alike(vectors[id_]) for id_, slot in built.slots.items()
    ):
        raise Malformed
