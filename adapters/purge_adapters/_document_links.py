"""What hangs on records that go: which others go with them, and which links have to be mended.

Works on what was noted of all records of a site, in one way for looking and for removing, so that
both come to the same. A link that led nowhere before is left. This module opens no file.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from purge_adapters._document_items import Item, empties
from purge_adapters._format_model import Count, Format, Gone, Last, Link, RecordKind, Unique
from purge_adapters._format_routes import Route, is_at_or_below
from purge_adapters._json_fields import scalar
from purge_adapters._json_text import Path

__all__ = ["Causes", "Facts", "Mend", "Ref", "Web"]

Ref = tuple[str, int, Path]
"""Where a record stands: file, unit, path."""
Causes = frozenset[int]
"""The matches for whose sake something goes."""
_NONE: Causes = frozenset()


@dataclass(frozen=True, slots=True)
class _End:
    """One link of a record: the rule, where it stands, and to what it points."""

    link: Link
    path: Path
    entry: Path
    id: str


@dataclass(frozen=True, slots=True)
class _Via:
    """What a record points to itself: for links that are to point past it."""

    id: str
    value: object = field(repr=False)
    entry: object = field(repr=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is noted of one record."""

    ref: Ref
    kind: RecordKind
    id: str | None = field(repr=False)
    name: str = field(repr=False)
    outer: Ref | None
    ends: tuple[_End, ...] = field(repr=False)
    vias: Mapping[tuple[Route, Route], tuple[_Via, ...]] = field(repr=False)
    parts: tuple[tuple[Path, tuple[str, ...]], ...] = field(repr=False)
    """The paths of its parts, and by what each of them is paired."""
    pairs: tuple[str, ...] = field(repr=False)
    lists: Mapping[Path, frozenset[Path]] = field(repr=False)
    """Lists of parts with the last of which the record goes, and the parts in them."""
    has_more: bool
    """It has text outside of such parts."""
    by: Mapping[Route, frozenset[str]] = field(repr=False)
    numbers: tuple[tuple[Count, Path, int], ...]
    """Its counts of other records: the rule, where the number stands, what it says."""


@dataclass(frozen=True, slots=True)
class Mend:
    """A change that keeps a link right: what stands at a path of a unit becomes other values;
    none: it is dropped. ``causes``: for whose sake."""

    ref: Ref
    path: Path
    values: tuple[object, ...] = field(repr=False)
    causes: Causes


class Web:
    """All records of a site and how they hang together.

    Args:
        format: what the links mean.
    """

    def __init__(self, format: Format) -> None:
        self.facts: dict[Ref, Facts] = {}
        self.gone: dict[Ref, Causes] = {}
        self.gone_parts: dict[Ref, dict[Path, Causes]] = defaultdict(dict)
        self._holders: dict[tuple[str, str], list[Ref]] = defaultdict(list)
        self._normal: dict[tuple[str, str], list[Ref]] = defaultdict(list)
        self._paired: dict[str, list[tuple[Ref, Path | None]]] = defaultdict(list)
        self._vias: dict[str, set[tuple[Route, Route]]] = defaultdict(set)
        self._by: dict[str, set[Route]] = defaultdict(set)
        self._home: dict[int, frozenset[str]] = {}
        for file in format.files:
            names = frozenset(record.name for record in file.records)
            for record in file.records:
                self._home[id(record)] = names
                for link in record.links:
                    for name in link.to:
                        self._vias[name].add(_way(link))
                for count in record.counts:
                    if count.records and count.by:
                        self._by[count.records].add(count.by)

    # --- noting -------------------------------------------------------------------------------

    def note(self, item: Item) -> None:
        """Note a record, or the frame of a unit after its records."""
        kind = item.kind
        if item.ref in self.facts:
            return  # Noted before; or it is the frame, and a record is all of the unit.
        found = Facts(
            ref=item.ref,
            kind=kind,
            id=item.id,
            name=item.name,
            outer=item.outer.ref
            if item.outer is not None and not item.outer.kind.is_frame
            else None,
            # What is torn is not edited; it is as if it said nothing.
            ends=tuple(_ends(item)) if item.unit.entry.parsed else (),
            vias={way: _past(item, *way) for way in self._vias.get(kind.name, ())},
            parts=tuple((part.path, part.pairs()) for part in item.parts.values()),
            pairs=tuple(_ids(item, kind.pair)),
            lists=item.lists,
            has_more=item.has_more,
            by={route: frozenset(_ids(item, (route,))) for route in self._by.get(kind.name, ())},
            numbers=tuple(_numbers(item)),
        )
        self.facts[item.ref] = found
        if found.id is not None and not kind.is_frame:
            self._holders[kind.name, found.id].append(item.ref)
            self._normal[kind.name, _normal(found.id)].append(item.ref)
        for pair in found.pairs:
            self._paired[pair].append((item.ref, None))
        for path, pairs in found.parts:
            for pair in pairs:
                self._paired[pair].append((item.ref, path))

    # --- what goes with what ------------------------------------------------------------------

    def spread(self) -> None:
        """Let everything go that goes with what is in ``gone`` and ``gone_parts``."""
        more = True
        while more:
            more = False
            for facts in self.facts.values():
                if facts.kind.is_frame:
                    continue
                causes = self.gone.get(facts.ref, _NONE)
                new = causes | self._causes_of(facts)
                if new != causes:
                    self.gone[facts.ref] = new
                    more = True
            for ref, path, causes in list(self._paired_causes()):
                known = self.gone_parts[ref].get(path, _NONE)
                if causes - known:
                    self.gone_parts[ref][path] = causes | known
                    more = True

    def _causes_of(self, facts: Facts) -> Causes:
        found = set(self.gone.get(facts.outer, _NONE)) if facts.outer else set()
        for link in facts.kind.links:
            ends = [end for end in facts.ends if end.link is link]
            broken = [end for end in ends if self.is_broken(facts, end)]
            if not broken:
                continue
            lost = link.when_gone is Gone.REMOVE or (
                link.when_gone is Gone.DROP
                and link.last is Last.REMOVE
                and len(broken) == len(ends)
            )
            if link.when_gone is Gone.RELINK and link.otherwise is Gone.REMOVE:
                lost = not all(self._next(facts, end) for end in broken)
            if lost:
                for end in broken:
                    found |= self._causes_behind(facts, end)
        for pair in facts.pairs:
            found |= self._lost_pair(facts.ref, None, pair)
        mine = self.gone_parts.get(facts.ref)
        if mine and empties(facts.lists, facts.has_more, mine):
            found |= set().union(*mine.values())
        return frozenset(found)

    def _paired_causes(self) -> Iterator[tuple[Ref, Path, Causes]]:
        for facts in self.facts.values():
            for path, pairs in facts.parts:
                causes: set[int] = set()
                for pair in pairs:
                    causes |= self._lost_pair(facts.ref, path, pair)
                if causes and facts.ref not in self.gone:
                    yield facts.ref, path, frozenset(causes)

    def _lost_pair(self, ref: Ref, path: Path | None, pair: str) -> Causes:
        """Return for whose sake one of its nearest counterparts goes."""
        others = [it for it in self._paired[pair] if it != (ref, path)]
        near = [it for it in others if it[0][0] == ref[0]] or others
        gone = [self._gone_at(*it) for it in near]
        return _NONE.union(*gone)

    def _gone_at(self, ref: Ref, path: Path | None) -> Causes:
        found = self.gone.get(ref, _NONE)
        parts = self.gone_parts.get(ref)
        return found | parts.get(path, _NONE) if parts and path is not None else found

    # --- links --------------------------------------------------------------------------------

    def is_broken(self, facts: Facts, end: _End) -> bool:
        """Whether a link pointed to something that lived and goes."""
        holders = self._near(facts, end.link, end.id)
        return bool(holders) and all(ref in self.gone for ref in holders)

    def dangling(self) -> Iterator[tuple[Facts, Link]]:
        """Yield the links that lead nowhere."""
        for facts in self.facts.values():
            for end in facts.ends:
                if not self._near(facts, end.link, end.id):
                    yield facts, end.link

    def _near(self, facts: Facts, link: Link, id: str) -> list[Ref]:
        """Return the records that a link can mean: those nearest to it that have the id."""
        holders, wanted = (self._normal, _normal(id)) if link.normalized else (self._holders, id)
        found = [ref for name in link.to for ref in holders.get((name, wanted), ())]
        found = [ref for ref in found if self._may_mean(facts, ref)]
        around = facts.outer or (facts.ref if not facts.kind.is_frame else None)
        if around is not None and around[2]:
            inside = [
                ref
                for ref in found
                if ref[:2] == around[:2] and is_at_or_below(ref[2], around[2]) and ref != facts.ref
            ]
            if inside:
                return inside
        return [ref for ref in found if ref[0] == facts.ref[0]] or found

    def _may_mean(self, facts: Facts, ref: Ref) -> bool:
        """Whether a record with the id that a link says is one that the link can mean."""
        there = self.facts[ref]
        if there.kind.unique is Unique.RECORD:
            return there.outer is not None and there.outer in (facts.outer, facts.ref)
        # Where nobody says where an id is unique, those of the own file are meant if they are of
        # the same kinds of files: numbers that begin anew in every file are common.
        own_file = there.kind.unique is Unique.FILE or (
            there.kind.unique is None and there.kind.name in self._home[id(facts.kind)]
        )
        return not own_file or ref[0] == facts.ref[0]

    def _causes_behind(self, facts: Facts, end: _End) -> Causes:
        return _NONE.union(
            *(self.gone.get(ref, _NONE) for ref in self._near(facts, end.link, end.id))
        )

    def _next(self, facts: Facts, end: _End) -> list[_Via]:
        """Return what a link points to past the records that go: the nearest that stay."""
        found: dict[str, _Via] = {}
        seen: set[str] = set()
        pending = [(facts, end.id)]
        while pending:
            origin, id = pending.pop()
            if id in seen:
                continue
            seen.add(id)
            holder = next(iter(self._near(origin, end.link, id)), None)
            if holder is None:
                continue
            gone = self.facts[holder]
            for via in reversed(gone.vias.get(_way(end.link), ())):
                near = self._near(gone, end.link, via.id)
                if near and all(ref in self.gone for ref in near):
                    pending.append((gone, via.id))
                elif via.id != facts.id:
                    found[via.id] = via
        return list(reversed(found.values()))

    # --- mending ------------------------------------------------------------------------------

    def mends(self) -> Iterator[Mend]:
        """Yield the changes that keep links and counts right in what stays."""
        for facts in self.facts.values():
            if facts.ref in self.gone:
                continue
            kept = {end.id for end in facts.ends if not self.is_broken(facts, end)}
            told: set[str] = set()
            for end in facts.ends:
                if self.is_broken(facts, end) and not self._goes_with_a_part(facts, end.path):
                    yield from self._mend(facts, end, kept, told)
            for count, path, number in facts.numbers:
                before, after, causes = self._living(count, facts.id)
                if number == before != after:
                    yield Mend(facts.ref, path, (after,), causes)

    def _goes_with_a_part(self, facts: Facts, path: Path) -> bool:
        parts = self.gone_parts.get(facts.ref)
        if not parts:
            return False
        return any(path[:taken] in parts for taken in range(len(path) + 1))

    def _mend(self, facts: Facts, end: _End, kept: set[str], told: set[str]) -> Iterator[Mend]:
        rule = end.link.when_gone
        causes = self._causes_behind(facts, end)
        if rule is Gone.RELINK:
            found = self._next(facts, end)
            in_list = bool(end.entry) and isinstance(end.entry[-1], int)
            if in_list:
                # A list of ids takes all that the record that goes had below it, in its place.
                found = [via for via in found if via.id not in kept | told]
                told.update(via.id for via in found)
                yield Mend(facts.ref, end.entry, tuple(via.entry for via in found), causes)
                return
            if found:
                yield Mend(facts.ref, end.entry, (found[0].entry,), causes)
                return
            rule = end.link.otherwise
        if rule is Gone.DROP:
            yield Mend(facts.ref, end.entry, (), causes)
        elif rule is Gone.NULL:
            yield Mend(facts.ref, end.path, (None,), causes)

    def _living(self, count: Count, id: str | None) -> tuple[int, int, Causes]:
        """Return how many records a count counts, how many stay, and why the others go."""
        found = [
            facts
            for facts in self.facts.values()
            if facts.kind.name == count.records
            and (count.by is None or id in facts.by.get(count.by, ()))
        ]
        gone = [self.gone[facts.ref] for facts in found if facts.ref in self.gone]
        return len(found), len(found) - len(gone), _NONE.union(*gone)

    def seeds(self) -> set[str]:
        """Return what a record says that hangs on what goes: ids, and what pairs have alike."""
        found: set[str] = set()
        for ref in self.gone:
            facts = self.facts[ref]
            found.update(facts.pairs, *(pairs for _, pairs in facts.parts))
            if facts.id is not None:
                found.update((facts.id, _normal(facts.id)))
        for ref, parts in self.gone_parts.items():
            for path, pairs in self.facts[ref].parts:
                if path in parts:
                    found.update(pairs)
        return found

    def begin(self) -> None:
        """Forget what goes, and keep what was noted."""
        self.gone.clear()
        self.gone_parts.clear()


def _way(link: Link) -> tuple[Route, Route]:
    """Return the fields in which a record that goes says what comes next: the id, the entry."""
    return link.via, link.entry if link.via == link.field else link.via


def _ends(item: Item) -> Iterator[_End]:
    for link in item.kind.links:
        entries = [path for path, _ in item.values(link.entry)] if link.entry != link.field else []
        for path, value in item.values(link.field):
            id = scalar(value)
            if id:
                entry = next((it for it in entries if is_at_or_below(path, it)), path)
                yield _End(link, path, entry, id)


def _numbers(item: Item) -> Iterator[tuple[Count, Path, int]]:
    for count in item.kind.counts:
        if count.records is not None:
            for path, value in item.values(count.field):
                if isinstance(value, int) and not isinstance(value, bool):
                    yield count, path, value


def _past(item: Item, via: Route, entry: Route) -> tuple[_Via, ...]:
    entries = list(item.values(entry))
    found = []
    for path, value in item.values(via):
        id = scalar(value)
        if id:
            around = next((inner for it, inner in entries if is_at_or_below(path, it)), value)
            found.append(_Via(id, value, around))
    return tuple(found)


def _ids(item: Item, routes: Iterable[Route]) -> Iterator[str]:
    for route in routes:
        for _, value in item.values(route):
            text = scalar(value)
            if text:
                yield text


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)
