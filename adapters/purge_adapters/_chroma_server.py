"""The four verbs for a Chroma server: what it answers, and that its files cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from purge.adapter import (
    Control,
    Examined,
    Finding,
    Match,
    NotChecked,
    NotRemoved,
    Observation,
    ProblemCode,
    Readability,
    Removal,
    Residue,
    Statement,
)
from purge.targets import Hit, NeedleKind, Targets, Trace
from purge_adapters._chroma_client import (
    PAGE,
    collections_of,
    connected,
    get,
    get_by_id,
    take_out,
)
from purge_adapters._chroma_items import Item
from purge_adapters._chroma_records import (
    Fields,
    Handle,
    carries_marker,
    digest,
    is_neutral,
)

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_NEAR = 100
"""Results that a search for a removed vector is asked for."""


class Told(Protocol):
    """The settings that say where a server is."""

    @property
    def url(self) -> str | None: ...
    @property
    def host(self) -> str | None: ...
    @property
    def port(self) -> int | None: ...
    @property
    def ssl(self) -> bool: ...
    @property
    def token(self) -> str | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def tenant(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def timeout(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and how it is greeted."""

    host: str
    port: int
    ssl: bool
    headers: Mapping[str, str] = field(repr=False)
    tenant: str
    database: str
    timeout_s: float

    @classmethod
    def of(cls, told: Told) -> Address:
        """Read it from the settings.

        Raises:
            ValueError: the URL is none of a server.
        """
        headers = dict(told.headers)
        if told.token:
            headers.setdefault("Authorization", f"Bearer {told.token}")
        host, port, ssl = told.host, told.port or 8000, told.ssl
        if told.url is not None:
            parts = urlsplit(told.url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("'url' is http://HOST:PORT or https://HOST:PORT")
            if parts.path.strip("/") or parts.username or parts.password:
                raise ValueError("'url' has no path and no password; use 'token' or 'headers'")
            ssl = parts.scheme == "https"
            host, port = parts.hostname, parts.port or told.port or (443 if ssl else 8000)
        return cls(
            host or "localhost", port, ssl, headers, told.tenant, told.database, told.timeout
        )

    def connect(self) -> AbstractContextManager[ClientAPI]:
        """Give a client of its own."""
        return connected(
            self.host,
            self.port,
            ssl=self.ssl,
            headers=self.headers,
            tenant=self.tenant,
            database=self.database,
            timeout_s=self.timeout_s,
        )


class Server:
    """A server as a site.

    Args:
        address: where it is.
        wanted: names of the site's collections; empty: all.
        fields: what their metadata keys mean.
    """

    def __init__(self, address: Address, wanted: Sequence[str], fields: Fields) -> None:
        self.address = address
        self.wanted = tuple(wanted)
        self.fields = fields

    def _collections(self, client: ClientAPI) -> tuple[dict[str, Collection], list[NotChecked]]:
        """Return the site's collections by id, and what is missing of them."""
        names = collections_of(client)
        missing = [
            NotChecked(
                f"collection '{name}'", "there is none of this name", ProblemCode.UNREACHABLE
            )
            for name in self.wanted
            if name not in names.values()
        ]
        found = {
            id_: client.get_collection(name, embedding_function=None)
            for id_, name in sorted(names.items(), key=lambda pair: pair[1])
            if not self.wanted or name in self.wanted
        }
        return found, missing

    # Looking.

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that are named, page by page."""
        with self.address.connect() as client:
            collections, missing = self._collections(client)
            yield from missing
            for id_, collection in collections.items():
                held: list[tuple[Item, tuple[Hit, ...]]] = []
                count = unlinked = 0
                for item in _pages(collection):
                    count += 1
                    unlinked += self.fields.is_unlinked(item)
                    if hits := self.fields.match(targets, item):
                        held.append((item, hits))
                yield Examined(records=count, unlinked=unlinked)
                if count != collection.count():
                    yield NotChecked(
                        f"collection '{collection.name}'",
                        "it changed while it was read",
                        ProblemCode.CHANGED_UNDERNEATH,
                    )
                yield from self._matches(id_, collection, held)
            yield from self._ghosts(collections, targets)

    def _matches(
        self, id_: str, collection: Collection, held: Sequence[tuple[Item, tuple[Hit, ...]]]
    ) -> Iterator[Match]:
        ids = [item.id for item, _ in held]
        vectors = {item.id: vector for item, vector in get_by_id(collection, ids, vectors=True)}
        for item, hits in held:
            vector = vectors.get(item.id)
            yield Match(
                id=item.id,
                part=id_,
                hits=hits,
                where=f"collection '{collection.name}'",
                handle=Handle(id_, item.id, digest(item)).as_json(),
                trace=self.fields.trace(item, [vector] if vector else []),
                parents=self.fields.parents(item),
                readability=self.fields.readability(item, hits, vector),
                carries_marker=carries_marker(item),
                subjects=self.fields.subjects(item),
                scope=self.fields.scope(item),
            )

    def _ghosts(
        self, collections: Mapping[str, Collection], targets: Targets
    ) -> Iterator[Match | Examined]:
        """Ask the search for ids that ``get`` does not return: the two can disagree."""
        wanted = set(targets.ids(self.fields.site.name))
        for collection in collections.values():
            wanted -= {item.id for item, _ in get_by_id(collection, sorted(wanted))}
        if not wanted:
            return
        yield Examined(note="query")
        for id_, collection in collections.items():
            dimension = next(
                (len(vector) for _, vector in get(collection, vectors=True, limit=1) if vector), 0
            )
            if not dimension:
                continue
            near = collection.query(
                query_embeddings=[[1.0] + [0.0] * (dimension - 1)],  # type: ignore[arg-type]  # a list of lists is what it takes
                n_results=min(collection.count() + len(wanted), PAGE),
                include=[],
            )
            for ghost in sorted(wanted.intersection(near["ids"][0])):
                item = Item(ghost, None, {})
                yield Match(
                    id=ghost,
                    part=id_,
                    hits=self.fields.match(targets, item),
                    where=f"collection '{collection.name}', vector index only",
                    handle=Handle(id_, ghost, None).as_json(),
                    trace=self.fields.trace(item, []),
                )

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield that the files cannot be seen, and whether a search still returns a record."""
        with self.address.connect() as client:
            collections, missing = self._collections(client)
            yield from missing
            traces = targets.traces(self.fields.site.name)
            names = {trace.id for trace in traces}
            readable: set[str] = set()
            seen: set[str] = set()
            ghosts = 0
            for collection in collections.values():
                there = set()
                for item, vector in get_by_id(collection, sorted(names), vectors=True):
                    there.add(item.id)
                    if self._is_readable(item, vector, traces, targets):
                        readable.add(item.id)
                near = self._near(collection, [v for trace in traces for v in trace.vectors])
                seen |= near & names
                ghosts += len(near & names - there)
            for _ in range(ghosts):
                yield Residue(
                    "search of the server",
                    "it still returns a record that is gone",
                    problem=ProblemCode.STILL_READABLE,
                )
            yield Residue(
                "files of the server",
                "the log, the vector index and free pages cannot be seen through the server",
                problem=ProblemCode.BYTES_NOT_VISIBLE,
            )
            if readable:
                yield Control(NeedleKind.ID, passed=True, on_target=True)
                if any(trace.vectors for trace in traces):
                    yield Control(NeedleKind.VECTOR, passed=readable <= seen, on_target=True)
            yield Control(None, passed=True, on_target=False)
            yield Examined(records=len(names), note="get and query by the removed vectors")

    def _is_readable(
        self,
        item: Item,
        vector: Sequence[float] | None,
        traces: Sequence[Trace],
        targets: Targets,
    ) -> bool:
        """Whether a record is one that was found, and still has its text."""
        texts = self.fields.texts(item)
        if not any(trace.id == item.id and trace.texts == texts for trace in traces):
            return False
        hits = self.fields.match(targets, item)
        return self.fields.readability(item, hits, vector) is Readability.READABLE

    @staticmethod
    def _near(collection: Collection, vectors: Sequence[Sequence[float]]) -> set[str]:
        """Return the ids that a search for these vectors returns."""
        telling = [list(vector) for vector in vectors if not is_neutral(vector)]
        count = collection.count()
        if not telling or not count:
            return set()
        some = next((v for _, v in get(collection, vectors=True, limit=1)), None)
        fitting = [vector for vector in telling if some is not None and len(vector) == len(some)]
        if not fitting:
            return set()
        answer = collection.query(
            query_embeddings=fitting,  # type: ignore[arg-type]  # a list of lists is what it takes
            n_results=min(count + 1, _NEAR),
            include=[],
        )
        return {id_ for found in answer["ids"] for id_ in found}

    def check(self) -> Iterator[Statement]:
        """Say what the server is and has, and that bytes cannot be proved."""
        with self.address.connect() as client:
            yield Statement(f"The server answers; it is version {client.get_version()}.")
            collections, missing = self._collections(client)
            for each in missing:
                yield Statement(f"There is no {each.where}.", ok=False)
            for collection in collections.values():
                yield Statement(
                    f"Collection '{collection.name}' holds {collection.count()} records."
                )
        yield Statement(
            "Through a server it can be shown that nothing is returned any more, not that no "
            "byte is left. Name its folder under 'path', and stop it meanwhile, to prove that."
        )

    # Acting.

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Write over the records, then delete them."""
        with self.address.connect() as client:
            yield from take_out(client, removals, self.fields, overwrite=True)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Do nothing: a server has no call that reaches its files."""
        del residue
        yield from ()


def _pages(collection: Collection) -> Iterator[Item]:
    """Yield all records. Nothing is deleted meanwhile, so that offsets hold."""
    at = 0
    while True:
        page = [item for item, _ in get(collection, limit=PAGE, offset=at)]
        yield from page
        at += len(page)
        if len(page) < PAGE:
            return
