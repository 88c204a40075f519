"""What a client's reads return, tried on a private copy of the folder.

In Chroma ``get`` and ``query`` read different structures and can disagree for good (seen in 1.5.9
after two processes wrote to one folder), so both are asked.
"""

from __future__ import annotations

from collections.abc import Collection as AnyOf
from collections.abc import Sequence
from typing import Final

from purge.adapter import NotChecked, ProblemCode
from purge.errors import StoreError
from purge_adapters._chroma_client import PAGE, opened
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_store import Collection, Store

MOST: Final = 10_000
"""Records that a search is asked for; of the rest the files of the index are read alone."""


def returned(
    folder: Folder, store: Store, collections: Sequence[Collection], ids: AnyOf[str]
) -> set[tuple[str, str]] | NotChecked:
    """Return which of the ids a fresh client returns, by the id of the collection.

    Args:
        folder: what to copy.
        store: its database.
        collections: where to look.
        ids: what to look for.
    """
    found: set[tuple[str, str]] = set()
    wanted = sorted(ids)
    try:
        with (
            folder.copied(store, collections) as copy,
            opened(copy, folder.tenant, folder.database) as client,
        ):
            for collection in collections:
                if collection.dimension is None:
                    continue
                reader = client.get_collection(collection.name, embedding_function=None)
                for at in range(0, len(wanted), PAGE):
                    answer = reader.get(ids=wanted[at : at + PAGE], include=[])
                    found |= {(collection.id, id_) for id_ in answer["ids"]}
                count = min(reader.count() + len(wanted), MOST)
                probe = [[1.0] + [0.0] * (collection.dimension - 1)]
                near = reader.query(query_embeddings=probe, n_results=count, include=[])  # type: ignore[arg-type]  # a list of lists is what it takes
                found |= {(collection.id, id_) for id_ in near["ids"][0] if id_ in ids}
    except StoreError as error:
        return NotChecked(
            folder.name, f"a search in a private copy failed: {error}", ProblemCode(error.problem)
        )
    return found
