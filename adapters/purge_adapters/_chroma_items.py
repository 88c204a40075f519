"""Records and writes of Chroma as values, and how rows of its tables become records.

Does no input or output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

DOCUMENT: Final = "chroma:document"
URI: Final = "chroma:uri"
ADD, UPDATE, UPSERT, DELETE = range(4)
"""Operations of the log."""

Value = str | int | float | bool | list["str | int | float | bool"]


@dataclass(frozen=True, slots=True)
class Item:
    """One record as ``get`` returns it. ``metadata`` holds the URI too, not the document."""

    id: str = field(repr=False)
    document: str | None = field(repr=False)
    metadata: Mapping[str, Value] = field(repr=False)
    made: str = ""
    """When the row was made, as SQLite writes the time."""

    @property
    def created(self) -> datetime | None:
        """When the row was made."""
        try:
            return datetime.fromisoformat(self.made).replace(tzinfo=UTC)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class LogRow:
    """One write as it stands in the log."""

    seq: int
    operation: int
    id: str = field(repr=False)
    vector: bytes | None = field(repr=False)
    content: Mapping[str, object] = field(repr=False)
    """Document and metadata; ``None`` as a value takes a key out."""

    def item(self) -> Item:
        """Return what this write alone says of its record."""
        return applied(Item(self.id, None, {}), self)

    def removed_keys(self) -> list[str]:
        """Return the metadata keys that this write takes out."""
        return [key for key, value in self.content.items() if value is None]


def content_of(item: Item) -> str:
    """Return document and metadata as the log writes them."""
    content: dict[str, object] = dict(item.metadata)
    if item.document is not None:
        content[DOCUMENT] = item.document
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def grouped(
    rows: Iterable[Sequence[object]], arrays: Mapping[int, Mapping[str, Value]]
) -> Iterator[Item]:
    """Put the rows of one record after the other together."""
    current: object = None
    id_, made, document, metadata = "", "", None, dict[str, Value]()
    for row, name, at, key, *values in rows:
        if row != current:
            if current is not None:
                yield Item(id_, document, metadata, made)
            current, id_, made = row, str(name), str(at)
            document, metadata = None, dict(arrays.get(int(str(row)), {}))
        if key == DOCUMENT:
            document = None if values[0] is None else str(values[0])
        elif key is not None:
            metadata[str(key)] = value_of(values)
    if current is not None:
        yield Item(id_, document, metadata, made)


def value_of(values: Sequence[object]) -> str | int | float | bool:
    """Return the one value that the columns of a metadata row hold."""
    text, whole, real, truth = values
    if text is not None:
        return str(text)
    if truth is not None:
        return bool(truth)
    if isinstance(whole, int):
        return whole
    return float(real) if isinstance(real, float | int) else ""


def applied(item: Item, row: LogRow) -> Item:
    """Return a record after an update: what is given replaces, ``None`` takes out."""
    document, metadata = item.document, dict(item.metadata)
    for key, value in row.content.items():
        if key == DOCUMENT:
            document = value if isinstance(value, str) else document
        elif value is None:
            metadata.pop(key, None)
        elif isinstance(value, str | int | float | bool | list):
            metadata[key] = value
    return replace(item, document=document, metadata=metadata)
