"""Comparing records of declared formats with what is looked for. Opens no file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import Action, Site
from purge.matching import How
from purge.targets import Hit, Record, Targets, Text
from purge_adapters._document_files import Unit
from purge_adapters._document_items import (
    Item,
    PartPlace,
    Said,
    content_name,
    digest_value,
    empties,
)
from purge_adapters._format_model import (
    FileKind,
    Format,
    Layout,
    RecordKind,
    Taking,
    Unique,
)
from purge_adapters._format_routes import INSIDE, shown_route
from purge_adapters._json_fields import shown
from purge_adapters._json_text import Path, leaves

__all__ = ["Comparison", "Finder", "Grouping", "Key", "Taken", "is_certain"]

_NOBODY: Final = "\0no record has this name\0"
_SHORT: Final = 96
_REMEMBERED: Final = 100_000
_NUMERIC: Final = re.compile(r"[-+.0-9eE]+")
Key = tuple[str, str, str]
"""What one record is: the name of its kind, its own, and what tells it from others of both."""


def is_certain(hits: Sequence[Hit]) -> bool:
    """Whether some hit names the record without a doubt about its scope."""
    return any(not hit.scope_unknown for hit in hits)


class Grouping:
    """Which places are one record.

    Args:
        format: what is declared of ids.
    """

    def __init__(self, format: Format) -> None:
        places: dict[str, set[str]] = {}
        for file in format.files:
            for record in file.records:
                if not record.is_frame:
                    places.setdefault(record.name, set()).add(record.at.written)
        self._several = {name for name, routes in places.items() if len(routes) > 1}
        self._many_kinds = len(places) > 1

    def key(self, item: Item) -> Key:
        """Return which record a place belongs to."""
        kind = item.kind
        if item.id is None:
            return kind.name, item.name, self._part(kind, item.scope_part)
        return kind.name, item.id, self._part(kind, item.scope_part, *self._apart(item))

    def is_open_ended(self, item: Item) -> bool:
        """Whether other places may belong to the same record without saying the same."""
        return item.id is not None

    def _apart(self, item: Item) -> tuple[str, ...]:
        unique = item.kind.unique
        if unique is Unique.SITE or (unique is None and item.kind.name in self._several):
            return ()
        if unique is Unique.FILE:
            return (item.file,)
        if unique is Unique.RECORD:
            around = item.outer
            return (item.file, str(item.unit.number), json.dumps(around.path if around else ()))
        # Nobody says where the id is unique. What has the same id and another text is taken to be
        # another record: ids that count from 1 in every file are common.
        said = item.text if item.kind.text else [it for it in item.said if not it.is_key]
        return tuple(sorted({one.text for one in said if not item.is_fixed(one.path)}))

    def _part(self, kind: RecordKind, *apart: str) -> str:
        told = [text for text in apart if text]
        digest = ""
        if told:
            digest = hashlib.blake2b(json.dumps(told).encode("ascii"), digest_size=8).hexdigest()
        return ":".join(filter(None, (kind.name if self._many_kinds else "", digest)))


@dataclass(slots=True)
class Taken:
    """What of one place of a record would be taken, and by what it is named.

    ``part``: only that part of it. ``strings``: those that hold what is looked for. ``only``:
    nothing but these strings is emptied.
    """

    item: Item
    hits: tuple[Hit, ...]
    strings: list[Said] = field(repr=False)
    part: PartPlace | None = None
    only: bool = False

    @property
    def name(self) -> str:
        """How what is taken is called: a record by its name, a part by what it says."""
        if self.part is not None:
            return content_name(
                "part", self.item.kind.name, self.item.name, digest_value(self.part.value)
            )
        if self.only:
            said = sorted({one.text for one in self.strings})
            return content_name("strings", self.item.kind.name, self.item.name, *said)
        return self.item.name


class Finder:
    """Compares what stands in files with targets.

    Args:
        site: the site.
        targets: what is looked for.
    """

    def __init__(self, site: Site, targets: Targets) -> None:
        self.site = site
        self.targets = targets
        self.numbers = any(_NUMERIC.fullmatch(phrase.strip()) for phrase in targets.phrases())
        self._dull: set[str] = set()
        self._wanted = frozenset((*targets.ids(site.name), *targets.subjects()))
        self._names = {value for value in targets.ids(site.name) if value.startswith("content-")}

    def may_name(self, unit: Unit) -> bool:
        """Whether something in a line may be named; if not, nothing is, for certain.

        Tells without taking the line apart into records. Only for sites where a record says all of
        itself: :attr:`is_told_by_strings`.
        """
        entry = unit.entry
        if not entry.parsed:
            return True
        texts = self.targets.needs_texts
        for _, value, is_key in leaves(entry.value):
            if isinstance(value, str):
                said = entry.mend(value)
                if said in self._wanted or (self._wanted and not is_key and said[:1] == "["):
                    return True
                if texts and (len(said) > _SHORT or not self._is_dull(said)) and self._says(said):
                    return True
            elif isinstance(value, int | float) and (self._wanted or self.numbers):
                said = str(value)
                if said in self._wanted or (self.numbers and self._says(said)):
                    return True
        return texts and any(self._says(run.text) for run in entry.in_pieces())

    def _says(self, text: str) -> bool:
        return bool(self.targets.match(self.site.name, Record(_NOBODY, (Text("", text),))))

    def is_told_by_strings(self, kind: FileKind) -> bool:
        """Whether :meth:`may_name` can be asked: each line of a file is one record, and nothing
        else than what stands in it says how it is called."""
        routes = [route for record in kind.records for route in record.id]
        return (
            kind.layout is Layout.LINES
            and not self.site.derived_from
            and not self._names
            and all(not record.at.steps for record in kind.records)
            and all(route.alone is None for route in routes)
            and not any(record.joined or record.columns for record in kind.records)
        )

    def loose(self, texts: Sequence[Text]) -> bool:
        """Whether one of some texts that belong to no record holds a phrase."""
        return self.targets.needs_texts and any(
            self.targets.match(self.site.name, Record(_NOBODY, (text,))) for text in texts
        )

    def keys_in(self, text: Text) -> frozenset[int]:
        """Return the targets that a text names that belongs to no record."""
        hits = self.targets.match(self.site.name, Record(_NOBODY, (text,)))
        return frozenset(hit.key for hit in hits if not hit.scope_unknown)

    def in_frame(self, item: Item) -> bool:
        """Whether a string around the records holds a phrase."""
        return any(True for _ in self._matched(item))

    def compare(self, item: Item) -> list[Taken]:
        """Return what of a record is named, whole or in parts."""
        return Comparison(self, item).taken()

    def matched(self, item: Item) -> list[tuple[Said, tuple[Hit, ...]]]:
        """Return the strings of a record that hold a phrase, and how each is named."""
        return list(self._matched(item))

    def _matched(self, item: Item) -> Iterator[tuple[Said, tuple[Hit, ...]]]:
        if not self.targets.needs_texts:
            return
        for one in item.said:
            if len(one.text) <= _SHORT and self._is_dull(one.text):
                continue
            hits = self._search(item, one)
            if hits:
                yield one, hits
        for one in item.in_pieces:
            hits = self._search(item, one)
            if hits:
                # What stands in one of the strings is found there.
                known = {key for text in one.apart for key in self.keys_in(Text("", text))}
                hits = tuple(hit for hit in hits if hit.key not in known)
            if hits:
                yield one, hits

    def _search(self, item: Item, one: Said) -> tuple[Hit, ...]:
        text = Text(_field(item, one), one.text)
        record = Record(_NOBODY, (text,), scope=item.scope)
        return self.targets.match(self.site.name, record)

    def _is_dull(self, value: str) -> bool:
        if value in self._dull:
            return True
        if self.targets.match(self.site.name, Record(_NOBODY, (Text("", value),))):
            return False
        if len(self._dull) >= _REMEMBERED:
            self._dull.clear()
        self._dull.add(value)
        return True

    def named(self, item: Item) -> tuple[Hit, ...]:
        """Return how a record is named otherwise than by its text."""
        return self.targets.match(self.site.name, item.record([]))

    def named_parts(self, item: Item) -> Iterator[tuple[PartPlace, tuple[Hit, ...]]]:
        """Yield the parts that are named by the name that an earlier look gave them."""
        for part in item.parts.values() if self._names else ():
            name = Taken(item, (), [], part).name
            if name in self._names:
                yield part, self.targets.match(self.site.name, Record(name, (), scope=item.scope))


class Comparison:
    """One record compared with targets."""

    def __init__(self, finder: Finder, item: Item) -> None:
        self._finder = finder
        self._item = item
        self._named = finder.named(item)
        self._matched = finder.matched(item)

    def taken(self) -> list[Taken]:
        """Return what of the record is named."""
        found: list[Taken] = []
        parts = {part.path: (part, hits) for part, hits in self._finder.named_parts(self._item)}
        if not self._named and not self._matched and not parts:
            return []
        whole = self._whole_keys()
        hits = (*self._named, *(hit for _, some in self._matched for hit in some))
        mine = tuple(dict.fromkeys(hit for hit in hits if hit.key in whole))
        if mine:
            strings = [one for one, some in self._matched if is_certain(some)]
            found.append(Taken(self._item, mine, strings))
        rest = [
            (one, tuple(hit for hit in some if hit.key not in whole)) for one, some in self._matched
        ]
        rest = [(one, some) for one, some in rest if some]
        if not rest and not parts:
            return found
        if self._item.kind.taking is Taking.BLANK:
            some = tuple(dict.fromkeys(hit for _, hits in rest for hit in hits))
            found.append(Taken(self._item, some, [one for one, _ in rest], only=True))
            return found
        by_part: dict[Path, tuple[PartPlace, list[Hit], list[Said]]] = {
            path: (part, list(some), []) for path, (part, some) in parts.items()
        }
        for one, some in rest:
            assert one.part is not None
            _, known, strings = by_part.setdefault(one.part.path, (one.part, [], []))
            known += some
            strings.append(one)
        for part, known, strings in by_part.values():
            found.append(Taken(self._item, tuple(dict.fromkeys(known)), strings, part))
        return found

    def _whole_keys(self) -> set[int]:
        """Return the targets for which the whole record goes."""
        item = self._item
        found = {hit.key for hit in self._named if hit.how in (How.ID, How.LINEAGE)}
        texts = {hit.key for _, some in self._matched for hit in some}
        if self._finder.site.action is Action.BLANK:
            return found | texts
        if item.kind.taking is Taking.BLANK:
            return found
        for key in texts - found:
            mine = [one for one, some in self._matched if any(hit.key == key for hit in some)]
            places = {one.part.path for one in mine if one.part is not None}
            if any(one.part is None for one in mine) or empties(item.lists, item.has_more, places):
                found.add(key)
        return found


def _field(item: Item, said: Said) -> str:
    """Return where a string stands as a hit carries it: from the record, ids left out."""
    taken = 0 if item.kind.columns else min(len(item.path), len(said.path))
    around = shown_route(said.path[:taken], item.kind.at)
    below = tuple("$json" if step == INSIDE else step for step in said.path[taken:])
    is_key = said.is_key and bool(below)
    return ".".join(filter(None, (around, shown(below, is_key=is_key) if below else "")))
