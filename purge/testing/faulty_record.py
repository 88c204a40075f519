"""Reading one record of the fault-injecting adapter's store: its strings, fields and digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from purge.adapter import Readability
from purge.testing.faulty_store import Fields


def digest(fields: Fields) -> str:
    """Return what tells one state of a record from another."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def readability(fields: Fields) -> Readability:
    """Return whether normal reads return the record's text."""
    if fields.get("blanked"):
        return Readability.BLANKED
    return Readability.ARCHIVED if fields.get("archived") else Readability.READABLE


def field_at(fields: Fields, path: str) -> Any:
    """Return the value at a dotted path, or ``None``."""
    value: Any = fields
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def values_at(fields: Fields, path: str) -> tuple[str, ...]:
    """Return the value at a dotted path, or each of a list, as strings."""
    value = field_at(fields, path)
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def strings(value: Any, path: str = "", *, keys: bool = True) -> Iterator[tuple[str, str]]:
    """Yield every string of a JSON value with its dotted path.

    Args:
        value: the record.
        path: where it stands.
        keys: also yield the names of inner fields, which may say as much as values.
    """
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item, path, keys=keys)
    elif isinstance(value, dict):
        for name, item in value.items():
            if path and keys:
                yield path, name
            yield from strings(item, f"{path}.{name}" if path else name, keys=keys)


def bytes_in_file(text: str) -> bytes:
    """Return the bytes in which the store writes a text."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
