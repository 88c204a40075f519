"""What a record of Chroma means for a request: its texts, its links, and what ``blank`` empties.

The same for a folder and for a server. Does no input or output.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection as AnyOf
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import Action, Match, Readability, Site
from purge.matching import How
from purge.matching import carries_marker as text_carries_marker
from purge.targets import Hit, Record, Targets, Text, Trace
from purge_adapters._chroma_items import DOCUMENT, URI, Item, Value

OWN_ID: Final = "$id"
KEY: Final = "$key:"
"""Marks, in the name of a field, that the words stand in the key and not in its value."""
_FAR: Final = 1000.0
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]{0,39}")


@dataclass(frozen=True, slots=True)
class Fields:
    """Which metadata keys mean what.

    Args:
        site: maps keys to sources, scopes and the subject.
        text: further keys that ``blank`` empties.
    """

    site: Site
    text: tuple[str, ...] = ()

    def match(self, targets: Targets, item: Item) -> tuple[Hit, ...]:
        """Return how a record is named."""
        record = self.record(item)
        hits = targets.match(self.site.name, record)
        if not hits or self.site.action is not Action.BLANK:
            return hits
        # What is to be emptied is every field with the words, not the first one alone.
        alone = (Record("", (text,), scope=record.scope) for text in record.texts)
        more = (hit for each in alone for hit in targets.match(self.site.name, each))
        return tuple(dict.fromkeys((*hits, *more)))

    def record(self, item: Item) -> Record:
        """Return what looking needs to know of a record."""
        return Record(
            id=item.id,
            texts=tuple(_texts(item, self._given())),
            subjects=self.subjects(item),
            scope=self.scope(item),
            parents=self.parents(item),
        )

    def subjects(self, item: Item) -> tuple[str, ...]:
        """Return the ids of the persons that a record is about."""
        return self._ids(item, self.site.subject) if self.site.subject else ()

    def scope(self, item: Item) -> dict[str, str]:
        """Return what a record says of the scope fields; a key that it leaves open is absent."""
        return {
            key: str(value)
            for key, field_name in self.site.scope.items()
            if (value := _said(item, field_name)) is not None
        }

    def _given(self) -> set[str]:
        return {*self.text, *mapped(self.site)}

    def parents(self, item: Item) -> dict[str, tuple[str, ...]]:
        """Return the ids a record says it derives from, by site."""
        found = {
            source: self._ids(item, field_name)
            for source, field_name in self.site.derived_from.items()
            if field_name is not None
        }
        return {source: ids for source, ids in found.items() if ids}

    def is_unlinked(self, item: Item) -> bool:
        """Whether a record of a derived site does not say what it derives from."""
        return bool(self.site.derived_from) and not self.parents(item)

    @staticmethod
    def _ids(item: Item, field_name: str) -> tuple[str, ...]:
        value = item.id if field_name == OWN_ID else item.metadata.get(field_name)
        return tuple(dict.fromkeys(id_ for id_ in _ids_in(value) if id_))

    def trace(self, item: Item, vectors: Sequence[Sequence[float]]) -> Trace:
        """Return what a record looks like in bytes."""
        given = {*self._given(), URI}
        metadata = sorted(key for key in item.metadata if key not in given)
        metadata += [
            text
            for key, value in sorted(item.metadata.items())
            if key not in self.text
            for text in _strings(value)
        ]
        return Trace(
            id=item.id,
            texts=self.texts(item),
            metadata=tuple(dict.fromkeys(metadata)),
            vectors=tuple(dict.fromkeys(tuple(vector) for vector in vectors)),
        )

    def texts(self, item: Item) -> tuple[str, ...]:
        """Return the document and what stands in the text fields."""
        found = [item.document, *(t for key in self.text for t in _strings(item.metadata.get(key)))]
        return tuple(text for text in found if text)

    def readability(
        self, item: Item, hits: Sequence[Hit], vector: Sequence[float] | None
    ) -> Readability:
        """Return whether the record still has its text, or was blanked.

        Only where the site blanks: a record without text is still a record that has to go.
        """
        if self.site.action is not Action.BLANK or any(
            hit.how in (How.EXACT, How.FOLDED) for hit in hits
        ):
            return Readability.READABLE
        texts = [item.document, *(item.metadata.get(key) for key in self.text)]
        present = [text for text in texts if text is not None]
        empty = bool(present) and all(text == "" for text in present)
        if empty and (vector is None or is_neutral(vector)):
            return Readability.BLANKED
        return Readability.READABLE

    def emptied(self, item: Item, hits: Sequence[Hit]) -> dict[str, str | None]:
        """Return what ``blank`` sets: document and text fields to nothing, telling keys away.

        Links, scope and subject are kept, even where words were found in them.
        """
        site = self.site
        kept = {*site.derived_from.values(), *site.scope.values(), site.subject}
        named = [hit.field for hit in hits if hit.how in (How.EXACT, How.FOLDED)]
        found: dict[str, str | None] = {}
        if item.document is not None:
            found[DOCUMENT] = ""
        names = {_shown(item, key): key for key in item.metadata}
        for key in (*self.text, *named):
            shown = key.removeprefix(KEY)
            bare = names.get(shown, shown)
            if bare in kept or bare not in item.metadata:
                continue
            is_text = isinstance(item.metadata[bare], str)
            found[bare] = "" if is_text and shown == key else None
        return found

    def is_emptied(self, item: Item, hits: Sequence[Hit], vector: Sequence[float] | None) -> bool:
        """Whether ``blank`` has been here already."""
        said = self.emptied(item, hits)
        is_empty = all(
            (item.document if key == DOCUMENT else item.metadata.get(key)) == value
            for key, value in said.items()
        )
        return bool(said) and is_empty and (vector is None or is_neutral(vector))


@dataclass(frozen=True, slots=True)
class Handle:
    """What ``remove`` needs to take exactly one record."""

    collection: str
    """The id of the collection."""
    id: str = field(repr=False)
    digest: str | None = field(repr=False)
    """Of document and metadata; ``None`` where only the vector index still has the record."""

    def as_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {"collection": self.collection, "id": self.id, "digest": self.digest}

    @classmethod
    def of(cls, match: Match) -> Handle:
        """Read it back."""
        kept = match.handle
        digest = kept["digest"]
        return cls(
            str(kept["collection"]), str(kept["id"]), None if digest is None else str(digest)
        )


def digest(item: Item) -> str:
    """Return a digest of document and metadata, to tell whether a record changed."""
    said = json.dumps([item.document, item.metadata], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def carries_marker(item: Item) -> bool:
    """Whether a line of the record is a marker."""
    return any(text_carries_marker(text.value) for text in _texts(item))


def neutral(space: str, dimension: int, own: Sequence[float] | None) -> list[float]:
    """Return a vector that says nothing and is no record's neighbour.

    Zeros are at distance 1 of everything by cosine and inner product. By Euclidean distance they
    would be closer to a query than most records, so there it lies far outside.
    """
    if space != "l2":
        return [0.0] * dimension
    largest = max((abs(number) for number in own or ()), default=1.0)
    return [_FAR * 2.0 ** math.ceil(math.log2(max(1.0, largest)))] * dimension


def is_neutral(vector: Sequence[float]) -> bool:
    """Whether a vector says nothing: all its numbers are the same."""
    return len(vector) > 1 and max(vector) - min(vector) <= 1e-6 * max(1.0, abs(vector[0]))


def _texts(item: Item, given: AnyOf[str] = ()) -> Iterable[Text]:
    """Yield every string of a record; of the keys those that the manifest does not name."""
    if item.document is not None:
        yield Text(DOCUMENT, item.document)
    for key, value in item.metadata.items():
        if key not in given and key != URI:
            yield Text(KEY + _shown(item, key), key)
        for text in _strings(value):
            yield Text(_shown(item, key), text)


def _shown(item: Item, key: str) -> str:
    """Return a key as a hit carries it. One that may be content is told by its place alone."""
    return key if _NAME.fullmatch(key) else f"*{sorted(item.metadata).index(key)}"


def _strings(value: Value | None) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (part for part in value if isinstance(part, str))


def _said(item: Item, field_name: str) -> object:
    """Return the one value of a field, or ``None`` where it has none or several."""
    value = item.id if field_name == OWN_ID else item.metadata.get(field_name)
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None
    return value


def _ids_in(value: object) -> Iterable[str]:
    """Yield the ids that a field holds: one, a list, or a JSON array in a string."""
    if isinstance(value, str):
        inner = _array(value)
        if inner is None:
            yield value
        else:
            yield from _ids_in(inner)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, str | int | float) and not isinstance(part, bool):
                yield str(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def _array(text: str) -> list[object] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def mapped(site: Site) -> Mapping[str, str]:
    """Return every metadata key that the manifest maps, with what it is for."""
    found = {
        field: f"derived_from.{source}" for source, field in site.derived_from.items() if field
    }
    found |= {field: f"scope.{key}" for key, field in site.scope.items()}
    if site.subject:
        found[site.subject] = "subject"
    return {field: use for field, use in found.items() if field != OWN_ID}
