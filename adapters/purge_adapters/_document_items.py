"""One record of a declared format: its fields, its texts, its parts, how it looks in bytes.

This module opens no file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from purge.matching import carries_marker
from purge.targets import NEEDLE_BYTES, Record, Text, Trace
from purge_adapters._document_files import Unit
from purge_adapters._format_model import Condition, Last, Leave, PartKind, RecordKind
from purge_adapters._format_routes import INSIDE, Route, is_at_or_below
from purge_adapters._json_fields import Fields, moment, part_of, scalar, scalars, values_at
from purge_adapters._json_text import Path

__all__ = [
    "Item",
    "PartPlace",
    "Said",
    "content_name",
    "digest_value",
    "empties",
    "empty_of",
    "meets",
]

_TAGS: Final = frozenset({"type", "role"})
_TAG_VALUE: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_LONGEST_TEXT: Final = 64 * 1024


def digest_value(value: object) -> str:
    """Return a digest of a JSON value."""
    said = json.dumps(value, separators=(",", ":")).encode("ascii")
    return hashlib.blake2b(said, digest_size=24).hexdigest()


def content_name(*said: str) -> str:
    """Return a name made from content, in the form that stands nowhere in bytes."""
    joined = json.dumps(said).encode("ascii")
    return "content-" + hashlib.sha256(joined).hexdigest()[:40]


def meets(value: object, condition: Condition) -> bool:
    """Whether a value says what a condition asks for."""
    for route, wanted in condition.items():
        found = [inner for _, inner in route.places(value) if inner is not None]
        if wanted is None:
            if not found:
                return False
        elif not any(_same(inner, each) for inner in found for each in wanted) and not (
            None in wanted and not found
        ):
            return False
    return True


def _same(value: object, wanted: object) -> bool:
    return type(value) is type(wanted) and value == wanted


@dataclass(frozen=True, slots=True, eq=False)
class PartPlace:
    """A part of a record: where it stands in the document, what it is, and its value."""

    path: Path
    kind: PartKind
    value: object = field(repr=False)

    def pairs(self) -> tuple[str, ...]:
        """Return what it has in the fields by which parts go together."""
        found = (scalar(v) for route in self.kind.pair for _, v in route.places(self.value))
        return tuple(dict.fromkeys(text for text in found if text))


@dataclass(slots=True)
class Said:
    """One string of a value, or one text in several strings: where it stands."""

    path: Path
    text: str = field(repr=False)
    is_key: bool
    part: PartPlace | None = None
    pieces: tuple[Path, ...] = ()
    """The strings that make up the text, where it stands in several."""
    apart: tuple[str, ...] = field(default=(), repr=False)
    """What each of them says."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the string stands, or those of which the text is made."""
        return self.pieces or (self.path,)


@dataclass(eq=False)
class Item:
    """One record, or the frame around records, in one unit of a file."""

    kind: RecordKind
    path: Path
    value: object = field(repr=False)
    unit: Unit = field(repr=False)
    file: str
    fields: Fields = field(repr=False)
    outer: Item | None = field(repr=False)
    """The record around it, or the frame."""
    parts: dict[Path, PartPlace] = field(default_factory=dict, repr=False)
    said: list[Said] = field(default_factory=list, repr=False)
    in_pieces: list[Said] = field(default_factory=list, repr=False)
    """Texts that stand in several strings, besides the strings themselves."""
    further: tuple[Path, ...] = ()
    """Where the rest of it stands, if it is a row of columns."""

    @property
    def ref(self) -> tuple[str, int, Path]:
        """Where it stands: file, unit, path. The same for the same content of a file."""
        return self.file, self.unit.number, self.path

    def values(self, route: Route) -> Iterator[tuple[Path, object]]:
        """Yield what stands at a route of the record, with the paths in the document."""
        match route.alone:
            case None if not self.kind.columns:
                yield from route.places(self.value, self.path)
            case None:
                for path, value in route.places(self.value):
                    yield self.absolute(path), value
            case "$key":
                key = next((s for s in reversed(self.path) if s != INSIDE), None)
                if isinstance(key, str):
                    yield self.path, key
            case "$file":
                yield (), PurePosixPath(self.file).name.split(".")[0]
            case _:
                yield (), PurePosixPath(self.file).parent.name

    def absolute(self, path: Path) -> Path:
        """Return the path in the document for one from the record."""
        if self.kind.columns and path:
            return (*self.path[:-2], path[0], self.path[-1], *path[1:])
        return (*self.path, *path)

    def relative(self, path: Path) -> Path:
        """Return the path from the record for one in the document."""
        around = len(self.path) - 2
        if self.kind.columns:
            return (path[around], *path[around + 2 :])
        return path[len(self.path) :]

    @cached_property
    def id(self) -> str | None:
        """Its own id."""
        for route in self.kind.id:
            for _, value in self.values(route):
                text = scalar(value)
                if text:
                    return text
        return None

    @cached_property
    def digest(self) -> str:
        """Tells what it says from all else. A line that is no JSON is its bytes."""
        return digest_value(self.value) if self.unit.entry.parsed else self.unit.entry.digest

    @cached_property
    def name(self) -> str:
        """Its id, or a name made from its content."""
        return self.id or content_name(self.kind.name, self.digest)

    @cached_property
    def scope(self) -> dict[str, str]:
        """Scope key to the one value that it, or else a record around it, has."""
        return self.fields.scope_of(self._field)

    @cached_property
    def scope_part(self) -> str:
        """Tells records of one id apart that say different scopes; shows none of them."""
        return part_of(self.scope)

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """The ids of the people that it is about."""
        return self.fields.subjects_of(self._field)

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Source site to the ids that it says it derives from."""
        return self.fields.parents_of(self._field)

    @cached_property
    def created(self) -> datetime | None:
        """When it says that it was made."""
        if self.kind.time is None:
            return None
        times = (moment(value) for _, value in self.values(self.kind.time))
        return next((when for when in times if when is not None), None)

    def _field(self, path: Path) -> Iterator[str]:
        if len(path) == 1 and path[0] in ("$id", "$key", "$file", "$folder"):
            if path[0] == "$id":
                yield self.name
            else:
                route = Route.read(str(path[0]))
                yield from (str(value) for _, value in self.values(route))
            return
        around: Item | None = self
        while around is not None:
            found = [t for _, value in values_at(around.value, path) for t in scalars(value)]
            if found:
                yield from found
                return
            around = around.outer

    def record(self, texts: list[Text], name: str | None = None) -> Record:
        """Return it in the form in which targets are compared with it."""
        return Record(name or self.name, texts, self.subjects, self.scope, self.parents)

    # --- its text -----------------------------------------------------------------------------

    @cached_property
    def fixed(self) -> tuple[Path, ...]:
        """Where what identifies or links it stands, which blanking keeps."""
        routes = [*self.kind.id, *self.kind.pair, *(link.field for link in self.kind.links)]
        routes += [h.field for h in self.kind.hashes]
        routes += [self.kind.time] if self.kind.time else []
        found = [path for r in routes if r.alone is None for path, _ in self.values(r)]
        mapped = (self.fields.subject, *self.fields.scope.values(), *self.fields.parents.values())
        for wanted in mapped:
            if wanted:
                found += [self.absolute(path) for path, _ in values_at(self.value, wanted)]
        for part in self.parts.values():
            for route in part.kind.pair:
                found += [path for path, _ in route.places(part.value, part.path)]
        return tuple(found)

    def is_fixed(self, path: Path) -> bool:
        """Whether a string identifies or links the record."""
        return any(is_at_or_below(path, place) for place in self.fixed)

    @cached_property
    def text(self) -> tuple[Said, ...]:
        """What people wrote in it: the strings of its text fields."""
        places = [path for route in self.kind.text for path, _ in self.values(route)]
        return tuple(
            one
            for one in self.said
            if not one.is_key
            and any(is_at_or_below(one.path, place) for place in places)
            and not (one.path[-1:] and one.path[-1] in _TAGS and _TAG_VALUE.fullmatch(one.text))
            and not self.is_fixed(one.path)
        )

    @cached_property
    def lists(self) -> dict[Path, frozenset[Path]]:
        """Lists of parts with the last of which the record goes, and the parts in them."""
        found: dict[Path, set[Path]] = {}
        for part in self.parts.values():
            if part.kind.last is Last.REMOVE:
                found.setdefault(part.path[:-1], set()).add(part.path)
        return {path: frozenset(inner) for path, inner in found.items()}

    @cached_property
    def has_more(self) -> bool:
        """Whether it has text outside of its parts."""
        return bool(self.lists) and any(one.part is None and one.text.strip() for one in self.text)

    @property
    def is_blanked(self) -> bool:
        """Whether it has text fields and all of them are empty."""
        return bool(self.text) and not any(one.text for one in self.text)

    @cached_property
    def carries_marker(self) -> bool:
        """Whether some text of it has a marker line."""
        return any(carries_marker(one.text) for one in self.said)

    def trace(self, name: str, chosen: list[Said]) -> Trace:
        """Return what it looks like in bytes.

        Args:
            name: by which it is called.
            chosen: the strings that hold what is looked for.
        """
        wanted = {path for one in (*self.text, *chosen) for path in one.paths}
        texts: dict[str, None] = {}
        metadata: dict[str, None] = {}
        for one in self.said:
            if one.is_key or len(one.text.encode("utf-8", "surrogatepass")) < NEEDLE_BYTES:
                continue
            target = texts if one.path in wanted else metadata
            for piece in _pieces(one.text):
                target[piece] = None
        if not self.unit.entry.parsed and not self.path:
            texts.update(dict.fromkeys(_pieces(self.unit.entry.text.strip())))
        return Trace(name, tuple(texts), tuple(t for t in metadata if t not in texts and t != name))


def empties(lists: Mapping[Path, frozenset[Path]], has_more: bool, gone: Collection[Path]) -> bool:
    """Whether a record has nothing left when some of its parts go, so that it goes as well."""
    touched = [paths for paths in lists.values() if not paths.isdisjoint(gone)]
    return bool(touched) and not has_more and all(paths <= set(gone) for paths in lists.values())


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), _LONGEST_TEXT):
        yield text[at : at + _LONGEST_TEXT]


def empty_of(value: object, leave: Leave) -> object:
    """Return what is to stand in the place of a part."""
    if leave is Leave.NULL:
        return None
    if isinstance(value, list):
        return []
    return {} if isinstance(value, dict) else ""
