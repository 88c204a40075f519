"""What a handle of the adapter for declared formats says that has to go. Opens no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from purge.adapter import ProblemCode, Removal
from purge.errors import Permanent
from purge_adapters._document_edit import Blanking
from purge_adapters._document_links import Ref
from purge_adapters._document_match import Key
from purge_adapters._json_text import Path as Steps

__all__ = ["Wanted", "wanted_of"]


@dataclass(slots=True)
class Wanted:
    """One removal, as its handle says it, and what of it was found in the files."""

    removal: Removal
    what: str
    key: Key
    places: Mapping[tuple[str, str], tuple[frozenset[Steps], frozenset[Steps]]] = field(repr=False)
    children: frozenset[tuple[str, str, str]] = field(repr=False)
    refs: list[Ref] = field(default_factory=list)
    parts: list[tuple[Ref, Steps]] = field(default_factory=list)
    blanked: list[tuple[Ref, Blanking]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    """Files in which a record of the same id says something else by now."""
    obstacle: str = ""


def wanted_of(removal: Removal) -> Wanted:
    """Return what a removal says.

    Raises:
        Permanent: its handle is none of this adapter's.
    """
    handle: Mapping[str, Any] = removal.match.handle
    try:
        kind, name, part = handle["key"]
        places = {
            (str(place["file"]), str(place["digest"])): (
                frozenset(tuple(path) for path in place.get("strings", ())),
                frozenset(tuple(path) for path in place.get("keys", ())),
            )
            for place in handle["places"]
        }
        children = frozenset((str(f), str(k), str(n)) for f, k, n in handle["children"])
        return Wanted(removal, str(handle["what"]), (kind, name, part), places, children)
    except (KeyError, TypeError, ValueError):
        raise Permanent(
            "A plan was made for another adapter or by another version; make it again.",
            problem=ProblemCode.UNSUPPORTED,
        ) from None
