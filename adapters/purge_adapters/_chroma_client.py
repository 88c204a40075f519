"""The one place that calls Chroma's client, for a folder and for a server.

Maps the driver's errors. Telemetry is off, and no embedding function is ever set, so that none is
called: an update without vectors would make one from the text (by experiment with 1.5.9). Nothing
here may put an id or a text into a message.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from purge.adapter import Action, Match, NotRemoved, ProblemCode, Removal
from purge.errors import Permanent, StoreError, Transient
from purge_adapters._chroma_items import DOCUMENT, URI, Item
from purge_adapters._chroma_records import Fields, Handle, digest, neutral

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

PAGE: Final = 1000
"""Records a call: few calls, and far below what one may carry (5,461 in 1.5.9)."""
_SETTLE_S: Final = 5.0


@contextmanager
def opened(directory: Path, tenant: str, database: str) -> Iterator[ClientAPI]:
    """Open a folder with a client of its own, and let go of its files before returning.

    Raises:
        Transient, Permanent: it cannot be opened, or its files were not let go.
    """
    import chromadb
    from chromadb.config import Settings

    with speaking():
        client: Any = chromadb.PersistentClient(
            str(directory),
            settings=Settings(anonymized_telemetry=False),
            tenant=tenant,
            database=database,
        )
        try:
            yield client
        finally:
            client.close()
    # Its files are closed a few milliseconds later, by threads of the driver.
    if not let_go(directory):
        raise Transient(
            "This process still holds the folder open. Close the client that it opened.",
            problem=ProblemCode.HELD_OPEN,
        )


def let_go(directory: Path, patience_s: float = _SETTLE_S) -> bool:
    """Wait until this process has no file below a folder open; say whether that came to be."""
    below = f"{directory.resolve()}/"
    end = time.monotonic() + patience_s
    while any(path.startswith(below) for path in _own_files()):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _own_files() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue


@contextmanager
def connected(
    host: str,
    port: int,
    *,
    ssl: bool,
    headers: Mapping[str, str],
    tenant: str,
    database: str,
    timeout_s: float,
) -> Iterator[ClientAPI]:
    """Connect to a server.

    Args:
        host: its name or address.
        port: its port.
        ssl: whether it speaks TLS.
        headers: sent with every request.
        tenant: whose database.
        database: which one.
        timeout_s: how long to wait for an answer. The driver itself would wait for ever.

    Raises:
        Transient, Permanent: it cannot be reached, or does not let us in.
    """
    import chromadb
    import httpx
    from chromadb.config import Settings

    with speaking():
        # The driver greets the server without a time limit, so it is greeted before.
        httpx.get(
            f"{'https' if ssl else 'http'}://{host}:{port}/api/v2/heartbeat",
            headers=dict(headers),
            timeout=timeout_s,
        )
        client: Any = chromadb.HttpClient(
            host=host,
            port=port,
            ssl=ssl,
            headers=dict(headers),
            settings=Settings(anonymized_telemetry=False),
            tenant=tenant,
            database=database,
        )
        # No setting reaches the driver's session (1.5.9), which has no time limit of its own.
        session = getattr(getattr(client, "_server", None), "_session", None)
        if session is not None:
            session.timeout = timeout_s
        try:
            yield client
        finally:
            client.close()


@contextmanager
def speaking() -> Iterator[None]:
    """Turn the driver's errors into ours. What they say is dropped: it quotes ids and paths."""
    import httpx
    from chromadb.errors import ChromaError

    try:
        yield
    except ChromaError as error:
        raise _store_error(error) from None
    except httpx.TimeoutException:
        raise Transient("The server did not answer in time.", problem=ProblemCode.BUSY) from None
    except httpx.HTTPError:
        raise Transient("The server could not be reached.") from None
    except ValueError as error:
        # The driver turns every failure to connect into a plain ValueError.
        if "connect" in str(error).lower():
            raise Transient("The server could not be reached.") from None
        raise Permanent(
            "Chroma refused what was asked of it.", problem=ProblemCode.UNSUPPORTED
        ) from None
    except BaseException as error:
        # A panic in the driver's core is no Exception. It met what it did not expect on disk.
        if type(error).__name__ != "PanicException":
            raise
        raise Permanent(
            "Chroma could not read what it found in the store.", problem=ProblemCode.CORRUPT
        ) from None


_SAID: Final[Sequence[tuple[str, type[StoreError], ProblemCode, str]]] = (
    ("locked", Transient, ProblemCode.BUSY, "The database is locked by someone else."),
    ("readonly", Permanent, ProblemCode.NO_PERMISSION, "The store may not be written to."),
    ("read-only", Permanent, ProblemCode.NO_PERMISSION, "The store may not be written to."),
    ("permission", Permanent, ProblemCode.NO_PERMISSION, "The store may not be written to."),
    ("malformed", Permanent, ProblemCode.CORRUPT, "The database is damaged."),
    ("not a database", Permanent, ProblemCode.CORRUPT, "The database is damaged."),
    ("corrupt", Permanent, ProblemCode.CORRUPT, "The database is damaged."),
    ("hnsw", Permanent, ProblemCode.CORRUPT, "The files of a vector index are damaged."),
    ("full", Permanent, ProblemCode.UNREACHABLE, "There is no space left for the store."),
)


def _store_error(error: Exception) -> StoreError:
    from chromadb import errors

    if isinstance(error, errors.NotFoundError):
        return Permanent(
            "The tenant, database or collection is not there.", problem=ProblemCode.UNREACHABLE
        )
    if isinstance(error, errors.AuthorizationError):
        return Permanent("The server refused access.", problem=ProblemCode.NO_PERMISSION)
    if isinstance(error, errors.RateLimitError):
        return Transient("The server asks to come back later.", problem=ProblemCode.BUSY)
    said = str(error).lower()
    for word, kind, problem, sentence in _SAID:
        if word in said:
            return kind(sentence, problem=problem)
    return Permanent(
        f"Chroma could not do what was asked ({type(error).__name__}).",
        problem=ProblemCode.UNREACHABLE,
    )


def collections_of(client: ClientAPI) -> dict[str, str]:
    """Return the names of all collections by their id, page by page."""
    found: dict[str, str] = {}
    while page := client.list_collections(limit=PAGE, offset=len(found)):
        before = len(found)
        found.update({str(each.id): each.name for each in page})
        if len(found) == before:
            break
    return found


def space_of(collection: Collection) -> str:
    """Return how a collection measures distance: ``l2``, ``cosine`` or ``ip``."""
    configuration: Any = collection.configuration_json
    for kind in ("hnsw", "spann"):
        part = configuration.get(kind) if isinstance(configuration, dict) else None
        if isinstance(part, dict) and "space" in part:
            return str(part["space"])
    return "l2"


Known = tuple[Item, tuple[float, ...] | None]
"""A record and its vector."""


def get(collection: Collection, *, vectors: bool = False, **which: Any) -> Iterator[Known]:
    """Yield records as ``get`` returns them; ``which`` is what it takes (ids, limit, offset)."""
    include: list[Any] = ["documents", "metadatas", "uris"]
    answer = collection.get(include=[*include, "embeddings"] if vectors else include, **which)
    documents, metadatas = answer["documents"] or [], answer["metadatas"] or []
    uris, embeddings = answer["uris"] or [], answer["embeddings"]
    for at, id_ in enumerate(answer["ids"]):
        metadata: dict[str, Any] = dict(metadatas[at] or {})
        if uris and uris[at] is not None:
            metadata[URI] = uris[at]
        vector = None if embeddings is None else tuple(float(each) for each in embeddings[at])
        yield Item(id_, documents[at], metadata), vector


def get_by_id(
    collection: Collection, ids: Sequence[str], *, vectors: bool = False
) -> Iterator[Known]:
    """Yield the records that have these ids, a page of ids a call."""
    for at in range(0, len(ids), PAGE):
        yield from get(collection, vectors=vectors, ids=list(ids[at : at + PAGE]))


def take_out(
    client: ClientAPI, removals: Sequence[Removal], fields: Fields, *, overwrite: bool
) -> Iterator[NotRemoved]:
    """Delete or blank records, by the site's action, each only if it is as it was found.

    Args:
        client: opened for this.
        removals: what has to go.
        fields: say what ``blank`` empties.
        overwrite: write nothing over text and vector before deleting. For a store whose files
            are out of reach: what it writes out later is then empty.
    """
    names = collections_of(client)
    by_collection: dict[str, list[tuple[Handle, Removal]]] = {}
    for removal in removals:
        handle = Handle.of(removal.match)
        by_collection.setdefault(handle.collection, []).append((handle, removal))
    for id_, wanted in by_collection.items():
        if id_ not in names:
            continue
        collection = client.get_collection(names[id_], embedding_function=None)
        if str(collection.id) != id_:
            raise Permanent(
                "A collection was replaced by another of the same name.",
                problem=ProblemCode.CHANGED_UNDERNEATH,
            )
        for at in range(0, len(wanted), PAGE):
            yield from _take_page(collection, wanted[at : at + PAGE], fields, overwrite)


def _take_page(
    collection: Collection,
    wanted: Sequence[tuple[Handle, Removal]],
    fields: Fields,
    overwrite: bool,
) -> Iterator[NotRemoved]:
    blank = fields.site.action is Action.BLANK
    ids = list(dict.fromkeys(handle.id for handle, _ in wanted))
    there = {
        item.id: (item, vector)
        for item, vector in get_by_id(collection, ids, vectors=blank or overwrite)
    }
    due: dict[str, Match] = {}
    for handle, removal in wanted:
        item = there[handle.id][0] if handle.id in there else None
        if (
            item is not None
            and handle.digest != digest(item)
            and not (overwrite and _is_overwritten(item))
        ):
            if blank and fields.is_emptied(item, removal.match.hits, there[handle.id][1]):
                continue
            yield NotRemoved(
                removal.match,
                ProblemCode.CHANGED_UNDERNEATH,
                "A record changed after it was found; look again.",
            )
        elif item is not None or handle.digest is None:
            due[handle.id] = removal.match
    if not due:
        return
    if blank:
        emptied = {
            id_: fields.emptied(there[id_][0], match.hits)
            for id_, match in due.items()
            if id_ in there
        }
        for id_ in [id_ for id_, said in emptied.items() if not said]:
            yield NotRemoved(
                due[id_],
                ProblemCode.UNSUPPORTED,
                "A record has no document; name the metadata keys to empty under 'text'.",
            )
            del emptied[id_]
        _update(collection, there, emptied)
        return
    if overwrite:
        nothing = {id_: _nothing(there[id_][0]) for id_ in due if id_ in there}
        _update(collection, there, nothing)
    collection.delete(ids=list(due))


def _nothing(item: Item) -> dict[str, str | None]:
    return {DOCUMENT: "", **dict.fromkeys(item.metadata)}


def _is_overwritten(item: Item) -> bool:
    """Whether a removal that was broken off has written over the record already."""
    return item.document == "" and not any(item.metadata.values())


def _update(
    collection: Collection, there: Mapping[str, Known], said: Mapping[str, Mapping[str, str | None]]
) -> None:
    if not said:
        return
    space = space_of(collection)
    vectors: list[Any] = []
    for id_ in said:
        own = there[id_][1]
        vectors.append(neutral(space, len(own or ()), own))
    more: dict[str, Any] = {}
    if any(URI in each for each in said.values()):
        more["uris"] = [_uri(each, there[id_][0]) for id_, each in said.items()]
    documents: list[Any] = [each.get(DOCUMENT) for each in said.values()]
    metadatas: list[Any] = [
        {key: value for key, value in each.items() if key not in (DOCUMENT, URI)} or None
        for each in said.values()
    ]
    # None in a list leaves that part of a record as it is; None as a value takes the key out.
    collection.update(
        ids=list(said), embeddings=vectors, documents=documents, metadatas=metadatas, **more
    )


def _uri(said: Mapping[str, str | None], item: Item) -> object:
    return "" if URI in said else item.metadata.get(URI)
