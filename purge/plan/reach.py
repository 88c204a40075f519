"""What a request reaches: the records it names, what derives from them, and what must be shown.

Finding and following go on until nothing new is found. The looks themselves are handed in, so
that this module knows no adapter; what is to become of each record is decided afterwards, by
:mod:`purge.plan.decide`, from the whole picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple, Protocol

from purge.adapter import Examined, Match, NotChecked, Readability
from purge.matching import How, width
from purge.plan.again import Again
from purge.plan.outcome import Role, at_most
from purge.plan.request import Request
from purge.state import Problem
from purge.targets import Hit, Target, TargetKind, Targets, Trace

Name = tuple[str, str]
"""What other records know a record by: its site and its id."""


class RecordKey(NamedTuple):
    """A record in a plan. Where one site holds several of one id, ``part`` tells them apart."""

    site: str
    id: str
    part: str = ""

    @property
    def name(self) -> Name:
        """What other records know it by."""
        return self.site, self.id


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at one site saw."""

    matches: tuple[Match, ...] = ()
    unseen: tuple[NotChecked, ...] = ()
    examined: Examined = field(default_factory=Examined)
    failure: Problem | None = None

    def __add__(self, other: Look) -> Look:
        return Look(
            (*self.matches, *other.matches),
            tuple(dict.fromkeys((*self.unseen, *other.unseen))),
            at_most(self.examined, other.examined),
            self.failure or other.failure,
        )


Finder = Callable[[str, Targets], Look]
"""Looks at one site for targets; never raises for what the site does."""


class Graph(Protocol):
    """How sites derive from each other, and how they are to be treated."""

    def sources_first(self) -> Sequence[str]:
        """The names of all sites, each after the ones it derives from."""

    def ancestors(self, site: str) -> frozenset[str]:
        """The sites it derives from, over any number of steps."""

    def descendants(self, site: str) -> frozenset[str]:
        """The sites that derive from it, over any number of steps."""

    def recorded_sources(self, site: str) -> Mapping[str, str | None]:
        """The sites it derives from directly, with the field that says so."""

    def deletes_with_source(self, site: str) -> bool:
        """Whether a record of the site goes with any of its sources."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A record that an earlier plan of a request took out, or has to. It may be gone by now."""

    site: str
    trace: Trace = field(repr=False)
    role: Role
    how: str
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    part: str = ""
    pieces: int = 1
    gone: datetime | None = None
    """When a look first found it gone, after it was last there."""

    @property
    def key(self) -> RecordKey:
        """The record."""
        return RecordKey(self.site, self.trace.id, self.part)

    def ghost(self) -> Match:
        """Stand in for the record until a look finds it; never readable, so never removed."""
        return Match(
            self.trace.id,
            (),
            self.site,
            {},
            self.trace,
            self.parents,
            Readability.BLANKED,
            part=self.part,
            pieces=self.pieces,
        )


@dataclass(slots=True)
class Found:
    """One record that some request of the run meets, over all looks."""

    site: str
    match: Match
    named: dict[int, str] = field(default_factory=dict)
    """By the number of the request: how (``id``, ``exact``, ``folded``)."""
    scope_unknown: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)
    """Requests for which it holds the text of a record named by id."""
    by_id: set[int] = field(default_factory=set)
    """Requests that name it by its own id."""
    twin: set[int] = field(default_factory=set)
    """Requests for which it holds the text of another record of its own site, named by id."""
    repeats: set[int] = field(default_factory=set)
    """Carried-out requests of which it repeats a removed record."""
    owed: dict[int, Owed] = field(default_factory=dict)
    """By the number of the request: what an earlier plan of it says of this record."""
    cut: dict[int, Owed] = field(default_factory=dict)
    """By the number of the request: what it was when it was flagged, before its link was cut."""
    down: bool = False
    up: bool = False
    """Whether what derives from it, and what it derives from, was asked for."""

    @property
    def readable(self) -> bool:
        """Whether it still has its text; archived records count, blanked ones do not."""
        return self.match.readability is not Readability.BLANKED

    @property
    def parents(self) -> tuple[Name, ...]:
        """The records that it says it derives from."""
        return tuple((site, id) for site, ids in self.match.parents.items() for id in ids)


@dataclass(slots=True)
class Reach:
    """Everything that the requests of a run meet, before anything is decided."""

    requests: tuple[Request, ...]
    graph: Graph
    records: dict[RecordKey, Found] = field(default_factory=dict)
    by_name: dict[Name, list[RecordKey]] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)
    direct: tuple[Target, ...] = ()
    """The requests' own targets; their keys say whose they are, by :attr:`owner`."""
    owner: dict[int, int] = field(default_factory=dict)
    bare: dict[int, set[str]] = field(default_factory=dict)
    """Bare id targets: the sites that have a record of that id."""

    def put(self, key: RecordKey, found: Found) -> Found:
        """Note a record."""
        if key not in self.records:
            self.by_name.setdefault(key.name, []).append(key)
        self.records[key] = found
        return found

    def called(self, name: Name) -> Sequence[RecordKey]:
        """The records that are known by a name."""
        return self.by_name.get(name, ())


def explore(
    requests: Sequence[Request],
    graph: Graph,
    find: Finder,
    *,
    min_copy_width: int,
    owed: Mapping[int, Iterable[Owed]] | None = None,
    cut: Mapping[int, Iterable[Owed]] | None = None,
    again: Mapping[int, Again] | None = None,
    among: Iterable[int] | None = None,
) -> Reach:
    """Look for everything that the requests reach, sources first, until nothing new is found.

    Args:
        requests: all requests of the run; each site is asked for all of them at once.
        graph: the sites.
        find: the look.
        min_copy_width: display columns that a text must have to be looked for as a copy.
        owed: by the number of a request, the records of its earlier plan. They are looked for by
            id besides the request's own targets, and what derives from them is followed even
            where they are gone.
        cut: by number, the records that were flagged as made from what has to go; a store may take
            their link out together with what it led to.
        again: by number, the requests that were carried out before: what repeats a removed record
            is looked for too.
        among: the numbers of the requests to look for; ``None``: all.
    """
    search = _Search(Reach(tuple(requests), graph), find, min_copy_width, again or {})
    search.begin(owed or {}, range(len(requests)) if among is None else among)
    search.begin_cut(cut or {})
    search.run()
    return search.reach


class _Search:
    """The work list of :func:`explore`."""

    def __init__(
        self, reach: Reach, find: Finder, min_copy_width: int, again: Mapping[int, Again]
    ) -> None:
        self.again = again
        self.reach = reach
        self.find = find
        self.min_copy_width = min_copy_width
        self.sites = tuple(reach.graph.sources_first())
        self.waiting: dict[str, list[Target]] = {site: [] for site in self.sites}
        self.purpose: dict[int, str] = {}
        self.asked: set[tuple[str, TargetKind, str | None, str, int | None]] = set()
        self.next_key = 0

    def begin(self, owed: Mapping[int, Iterable[Owed]], among: Iterable[int]) -> None:
        direct: list[Target] = []
        for number in among:
            request = self.reach.requests[number]
            for wanted in request.wanted:
                target = self._target(
                    wanted.kind, wanted.value, wanted.site, number, "direct", request.scope
                )
                sites = [wanted.site] if wanted.site else self.sites
                for site in sites:
                    self.waiting[site].append(target)
                if wanted.kind is TargetKind.ID and wanted.site is None:
                    self.reach.bare[target.key] = set()
                direct.append(target)
            for entry in owed.get(number, ()):
                if entry.site in self.waiting:
                    self._begin_owed(entry, number)
        self.reach.direct = tuple(direct)

    def _begin_owed(self, entry: Owed, number: int) -> None:
        key = entry.key
        target = self._target(TargetKind.ID, entry.trace.id, entry.site, number, "owed")
        self.waiting[entry.site].append(target)
        found = self.reach.records.get(key) or self.reach.put(key, Found(entry.site, entry.ghost()))
        found.owed[number] = entry
        if entry.role in (Role.NAMED, Role.DERIVED):
            self._follow(found, down=True)
        if entry.role is Role.NAMED and entry.how == How.ID.value:
            self._look_for_copies(found, number)
        if number in self.again and entry.how not in (How.EXACT.value, How.FOLDED.value):
            # What was named by a phrase is found by it again; the rest only by what it said.
            self._ask_for_texts(entry.trace.texts, self.sites, number, "again")

    def begin_cut(self, cut: Mapping[int, Iterable[Owed]]) -> None:
        """Look for records whose link to what went may be gone as well."""
        for number, entries in cut.items():
            for entry in entries:
                if entry.site not in self.waiting:
                    continue
                key = entry.key
                target = self._target(TargetKind.ID, entry.trace.id, entry.site, number, "cut")
                self.waiting[entry.site].append(target)
                found = self.reach.records.get(key)
                found = found or self.reach.put(key, Found(entry.site, entry.ghost()))
                found.cut[number] = entry

    def _target(
        self,
        kind: TargetKind,
        value: str,
        site: str | None,
        number: int | None,
        purpose: str,
        scope: Mapping[str, str] | None = None,
    ) -> Target:
        self.next_key += 1
        target = Target(self.next_key, kind, value, site, scope or {})
        self.purpose[target.key] = purpose
        if number is not None:
            self.reach.owner[target.key] = number
        return target

    def run(self) -> None:
        while any(self.waiting.values()):
            for site in self.sites:
                batch, self.waiting[site] = self.waiting[site], []
                if not batch:
                    continue
                targets = Targets(batch)
                look = self.find(site, targets)
                self.reach.looks[site] = self.reach.looks.get(site, Look()) + look
                for match in look.matches:
                    self._take(site, match, targets)

    def _take(self, site: str, match: Match, targets: Targets) -> None:
        key = RecordKey(site, match.id, match.part)
        found = self.reach.records.get(key)
        if found is None or not found.match.hits:  # New, or a ghost that turns out to be there.
            earlier = found
            found = self.reach.put(key, Found(site, match))
            if earlier is not None:
                found.owed, found.down, found.up = earlier.owed, earlier.down, earlier.up
                found.cut = earlier.cut
        else:
            hits = tuple(dict.fromkeys((*found.match.hits, *match.hits)))
            found.match = replace(match, hits=hits)
        down, up = False, False
        for hit in match.hits:
            purpose = self.purpose[hit.key]
            number = self.reach.owner.get(hit.key)
            if purpose == "direct" and number is not None:
                taken = self._take_direct(found, hit, number, targets[hit.key].kind)
                down, up = down or taken, up or taken
            elif purpose == "copy" and number is not None:
                self._take_copy(found, hit, number)
                up = True  # Whether it has lineage shows when its parents were asked for.
            elif purpose == "twin" and number is not None:
                found.twin.add(number)
            elif purpose == "cut":
                continue  # It is only looked whether it is still there.
            elif purpose == "again" and number is not None:
                if not hit.scope_unknown and self.again[number].repeats(match):
                    found.repeats.add(number)
                    down, up = True, True
            else:
                down, up = down or purpose == "lineage", True
        if up:
            self._follow(found, down=down)

    def _take_direct(self, found: Found, hit: Hit, number: int, kind: TargetKind) -> bool:
        """Note that a request names a record; whether it really does is the answer."""
        if hit.scope_unknown:
            found.scope_unknown.add(number)
            return False
        if hit.key in self.reach.bare:
            self.reach.bare[hit.key].add(found.site)
        found.named.setdefault(number, hit.how.value)
        if kind is TargetKind.ID:
            found.by_id.add(number)
        if kind in (TargetKind.ID, TargetKind.SUBJECT):
            self._look_for_copies(found, number)
        return True

    def _follow(self, found: Found, *, down: bool) -> None:
        """Look for the records it derives from and, if asked, for what derives from it."""
        if down and not found.down:
            found.down = True
            for site in self.sites:
                if found.site in self.reach.graph.recorded_sources(site):
                    self._ask(site, TargetKind.LINEAGE, found.match.id, found.site, "lineage")
        if not found.up:
            found.up = True
            for source, id in found.parents:
                if source in self.waiting:
                    self._ask(source, TargetKind.ID, id, source, "parent")

    def _ask(self, at: str, kind: TargetKind, value: str, site: str, purpose: str) -> None:
        question = (at, kind, site, value, None)
        if question in self.asked or not value.strip():
            return
        self.asked.add(question)
        self.waiting[at].append(self._target(kind, value, site, None, purpose))

    def _look_for_copies(self, found: Found, number: int) -> None:
        texts = found.match.trace.texts
        self._ask_for_texts(texts, [s for s in self.sites if s != found.site], number, "copy")
        # At its own site the id says which record is meant; others are only noted, so that they
        # are not taken for it later.
        self._ask_for_texts(texts, [found.site], number, "twin")

    def _ask_for_texts(
        self, texts: Iterable[str], sites: Iterable[str], number: int, purpose: str
    ) -> None:
        scope = self.reach.requests[number].scope
        for text in texts:
            if width(text) < self.min_copy_width:
                continue
            for site in sites:
                question = (site, TargetKind.COPY, purpose, text, number)
                if question not in self.asked:
                    self.asked.add(question)
                    self.waiting[site].append(
                        self._target(TargetKind.COPY, text, None, number, purpose, scope)
                    )

    def _take_copy(self, found: Found, hit: Hit, number: int) -> None:
        """Note a record that holds the text of one named by its id."""
        if hit.scope_unknown:
            found.scope_unknown.add(number)
        else:
            found.copied.add(number)
