"""Chroma: embeddings with their documents and metadata, in a folder or behind a server.

A folder is read by its files and written through a client of its own; what Chroma never takes out
of its files is taken out here. Of a server only the answers can be seen. Imports the driver only
when something is removed or a server is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    EvidenceKind,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Site,
    Statement,
    guard,
)
from purge.targets import Targets
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_local import Local
from purge_adapters._chroma_records import Fields
from purge_adapters._chroma_server import Address, Server


def _described(text: str) -> dict[str, str]:
    return {"description": text}


@dataclass(frozen=True, slots=True)
class ChromaSettings:
    """Where the store is, and which of its collections belong to the site.

    Raises:
        ValueError: neither a path nor a server is named, or both.
    """

    path: str | None = field(
        default=None, metadata=_described("Folder of a PersistentClient, relative to the manifest.")
    )
    url: str | None = field(
        default=None, repr=False, metadata=_described("Server, as http://HOST:PORT.")
    )
    host: str | None = field(default=None, metadata=_described("Server, instead of 'url'."))
    port: int | None = field(default=None, metadata=_described("Its port; 8000 by default."))
    ssl: bool = field(default=False, metadata=_described("Whether 'host' speaks TLS."))
    token: str | None = field(
        default=None, repr=False, metadata=_described("Sent as a bearer token. From ${ENV}.")
    )
    headers: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata=_described("Further headers, from ${ENV}.")
    )
    tenant: str = field(default="default_tenant", metadata=_described("Tenant."))
    database: str = field(default="default_database", metadata=_described("Database."))
    timeout: float = field(
        default=60.0, metadata=_described("Seconds to wait for an answer of the server.")
    )
    collections: tuple[str, ...] = field(
        default=(), metadata=_described("Collections of the site; none named: all of them.")
    )
    text: tuple[str, ...] = field(
        default=(),
        metadata=_described("Metadata keys that hold text, which 'action: blank' empties too."),
    )

    def __post_init__(self) -> None:
        places = [self.path, self.url, self.host]
        if sum(place is not None for place in places) != 1:
            raise ValueError("name one place: 'path' for a folder, 'url' or 'host' for a server")
        if self.url is not None:
            Address.of(self)


class Place(Protocol):
    """What a folder and a server have in common."""

    def check(self) -> Iterator[Statement]:
        """As the contract has it."""

    def find(self, targets: Targets) -> Iterator[Finding]:
        """As the contract has it."""

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """As the contract has it."""

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """As the contract has it."""

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """As the contract has it."""


class ChromaAdapter(Adapter[ChromaSettings]):
    """Collections of Chroma 1.5. A record is known by its id within a collection.

    Where the same id stands in several collections of the site, each is a record of its own.
    """

    info = AdapterInfo(
        name="chroma",
        summary="Chroma: embeddings, documents and metadata, in a folder or behind a server",
        evidence=EvidenceKind.BYTES,
        actions=frozenset(Action),
        extra="chroma",
        modules=("chromadb", "numpy"),
    )
    Settings = ChromaSettings

    def __init__(self, site: Site, settings: ChromaSettings) -> None:
        super().__init__(site, settings)
        fields = Fields(site, settings.text)
        self._paths: tuple[Path, ...] = ()
        if settings.path is not None:
            folder = Folder.of(
                site, settings.path, settings.tenant, settings.database, settings.collections
            )
            self._paths = (folder.directory,)
            self._place: Place = Local(folder, fields)
        else:
            self._place = Server(Address.of(settings), settings.collections, fields)

    def footprint(self) -> tuple[Path, ...]:
        """The folder; none for a server."""
        return self._paths

    def check(self) -> Iterator[Statement]:
        """Say what is there, who holds it, and what can be proved."""
        yield from self._place.check()

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that are named, in all collections of the site."""
        yield from self._place.find(targets)

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Delete or blank by id, in batches."""
        guard(removals)
        yield from self._place.remove(removals)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Take out of the files what Chroma leaves in them."""
        guard(residue)
        yield from self._place.sanitize(residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield what is left; of a server, that nothing can be seen."""
        yield from self._place.residue(targets)
