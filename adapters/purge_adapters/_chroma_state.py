"""One collection of a folder as the look for left-over copies needs it, and the parts to clean."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import Residue
from purge_adapters._chroma_index import Index
from purge_adapters._chroma_items import Item, LogRow
from purge_adapters._chroma_store import Collection

LOG: Final = "log"
INDEX: Final = "index"
MEMORY: Final = "memory"
PAGES: Final = "pages"
FULLTEXT: Final = "fulltext"
SCHEMA: Final = "schema"
ORPHANS: Final = "orphans"
ROWS: Final = "rows"


@dataclass(slots=True)
class State:
    """One collection of the site, as far as looking for residue needs it."""

    collection: Collection
    index: Index | None
    live: set[str]
    log: list[LogRow]
    touched: dict[str, Item] = field(default_factory=dict)
    """The live records that the log or a trace names."""

    @property
    def where(self) -> str:
        """The collection, for people."""
        return f"collection '{self.collection.name}'"

    def newest(self) -> dict[str, bytes]:
        """Return the vectors that wait in the log, by id."""
        return waiting(self.collection, self.log)

    def replaced(self) -> set[int]:
        """Return the elements of the index whose record has another vector by now."""
        if self.index is None:
            return set()
        found = set()
        for id_, vector in self.newest().items():
            slot = self.index.slots.get(id_)
            if slot is not None and slot not in self.index.alike(numbers(vector)):
                found.add(slot)
        return found

    def vector(self, id_: str) -> tuple[float, ...] | None:
        """Return the vector that a read returns for a record."""
        newest = self.newest().get(id_)
        if newest is not None:
            return numbers(newest)
        return None if self.index is None else self.index.vector(id_)


def fixable(where: str, why: str, part: str, collection: Collection | None = None) -> Residue:
    """Return a copy that cleaning one part of the folder removes."""
    handle: dict[str, object] = {"part": part}
    if collection is not None:
        handle["collection"] = collection.id
    return Residue(where, why, fixable=True, handle=handle)


def strings_of(item: Item) -> list[str]:
    """Return every string of a record, names of keys included."""
    texts = [] if item.document is None else [item.document]
    for key, value in item.metadata.items():
        texts.append(key)
        parts = value if isinstance(value, list) else [value]
        texts += [part for part in parts if isinstance(part, str)]
    return texts


def waiting(collection: Collection, log: Iterable[LogRow]) -> dict[str, bytes]:
    """Return the vectors that stand in the log and not yet in the index, by id."""
    return {row.id: row.vector for row in log if row.vector and row.seq > collection.vector_seq}


def numbers(vector: bytes) -> tuple[float, ...]:
    """Return the numbers of a vector as the log keeps it."""
    return struct.unpack(f"<{len(vector) // 4}f", vector)
