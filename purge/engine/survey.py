"""A survey: what the looks of one round met, and what was decided of it, per request and site.

Reads the picture only; asks no site and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from purge.adapter import Match, Residue
from purge.matching import How
from purge.plan.decide import Decided, Policy, decide
from purge.plan.outcome import Role, Tally
from purge.plan.reach import Found, Look, Name, Owed, Reach, RecordKey
from purge.targets import Spared, Target, TargetKind, Targets, Trace

EXCERPT = 160
"""How many characters of a text an excerpt shows."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A record that a dry run met, with its words. For a terminal, never for a log or a file."""

    site: str
    where: str
    role: str
    texts: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is looked for among left-over copies, and whose it is."""

    targets: Targets
    owners: Mapping[int, frozenset[int]]
    """By the key of a target: the numbers of the requests that it belongs to."""

    def of(self, number: int, copies: Iterable[Residue]) -> tuple[Residue, ...]:
        """Return the copies that count against a request: its own, and those that nobody could
        tell apart."""
        return tuple(
            copy
            for copy in copies
            if not copy.keys or any(number in self.owners.get(key, ()) for key in copy.keys)
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """What was met, and what is to become of it."""

    reach: Reach
    decided: Mapping[int, Decided]

    unknown: Mapping[tuple[int, str], Sequence[RecordKey]] = field(default_factory=dict)
    """By request and site, the records that do not say to which scope they belong."""

    @classmethod
    def of(cls, reach: Reach, among: Iterable[int], policy: Policy | None = None) -> Survey:
        """Decide over what was met for some of the requests."""
        unknown: dict[tuple[int, str], list[RecordKey]] = {}
        for key, found in reach.records.items():
            for number in found.scope_unknown:
                unknown.setdefault((number, key.site), []).append(key)
        return cls(reach, decide(reach, among, policy), unknown)

    def look(self, site: str) -> Look:
        """What the looks at a site amounted to."""
        return self.reach.looks.get(site, Look())

    def by_site(self, number: int) -> Counter[str]:
        """How many records of a request have to go and are still there, by site."""
        mine = self.decided[number]
        return self._in_order(
            (key, self._pieces(key)) for key in mine.remove - mine.changed if self._readable(key)
        )

    def planned(self, number: int) -> Counter[str]:
        """How many records of a request have to go or are gone already, by site."""
        return self._in_order(
            (key, self._planned_pieces(number, key)) for key in self.decided[number].remove
        )

    def _in_order(self, keys: Iterable[tuple[RecordKey, int]]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for key, pieces in keys:
            counts[key.site] += pieces
        return Counter(
            {site: counts[site] for site in self.reach.graph.sources_first() if counts[site]}
        )

    def to_remove(self, site: str) -> list[tuple[int, Match]]:
        """The readable records of a site that have to go, each once, and a request that says so."""
        taken: dict[RecordKey, tuple[int, Match]] = {}
        for number, mine in self.decided.items():
            for key in mine.remove - mine.changed:
                if key.site == site and key not in taken and self._readable(key):
                    taken[key] = (number, self.reach.records[key].match)
        return [taken[key] for key in sorted(taken)]

    def back(self, number: int) -> set[RecordKey]:
        """The records of a request that had been gone and are there again."""
        mine = self.decided[number]
        return {key for key in mine.back - mine.changed if self._readable(key)}

    def alive(self, number: int) -> set[RecordKey]:
        """The planned records of a request that are there, or of which that is not known."""
        mine = self.decided[number]
        return {
            key
            for key in mine.remove
            if (key not in mine.changed and self._readable(key))
            or (look := self.look(key.site)).failure is not None
            or look.unseen
        } | mine.held

    def owed(self, number: int) -> list[Owed]:
        """What has to go for a request, in the form in which a plan keeps it."""
        mine = self.decided[number]
        return [
            Owed(
                site=key.site,
                trace=(found := self.reach.records[key]).match.trace,
                role=mine.roles[key],
                how=self._how(number, found, mine.roles[key]),
                parents={site: tuple(ids) for site, ids in found.match.parents.items()},
                part=key.part,
                pieces=found.match.pieces,
            )
            for key in sorted(mine.remove - mine.changed)
        ]

    def flagged(self, number: int) -> list[Owed]:
        """The records that were made from what has to go and wait for a person."""
        mine = self.decided[number]
        return [
            Owed(
                site=key.site,
                trace=self.reach.records[key].match.trace,
                role=Role.FLAGGED,
                how=How.LINEAGE.value,
                part=key.part,
                pieces=self.reach.records[key].match.pieces,
            )
            for key, role in sorted(mine.roles.items())
            if role is Role.FLAGGED
        ]

    def tally(self, number: int, site: str, late: int = 0) -> Tally:
        """Count the records of a request at a site by what is to become of them."""
        mine = self.decided[number]
        roles = {key: role for key, role in mine.roles.items() if key.site == site}
        going = {key for key in roles if key in mine.remove}
        still = {key for key in going - mine.changed if self._readable(key)}
        shown = {key for key in roles if key not in mine.remove and self._readable(key)}

        def undecided(role: Role) -> int:
            return sum(self._pieces(key) for key in shown - mine.kept if roles[key] is role)

        planned = sum(self._planned_pieces(number, key) for key in going)
        left_to_go = min(planned, sum(map(self._pieces, still)))
        asked = self._count(mine.seen_again - going, site) + self._count(mine.held, site)
        left = left_to_go + sum(map(self._pieces, shown)) + asked
        how = Counter(
            self._how(number, self.reach.records[key], roles[key]) for key in going | shown
        )
        return Tally(
            found=planned + sum(map(self._pieces, shown)) + asked,
            to_remove=planned,
            removed=planned - left_to_go,
            left=left,
            sources=undecided(Role.SOURCE),
            flagged=undecided(Role.FLAGGED),
            copies=undecided(Role.COPY),
            kept=sum(map(self._pieces, shown & mine.kept)),
            scope_unknown=self._scope_unknown(number, site, roles),
            late=late,
            reappeared=self._count(mine.back, site),
            seen_again=self._count(mine.seen_again, site),
            restated=self._count(mine.restated, site),
            held=self._count(mine.held, site),
            by_how=dict(how),
        )

    def _count(self, keys: Iterable[RecordKey], site: str) -> int:
        return sum(self._pieces(key) for key in keys if key.site == site and self._readable(key))

    def _pieces(self, key: RecordKey) -> int:
        """Of how many pieces a record is made, as the last look saw it."""
        return self.reach.records[key].match.pieces

    def _planned_pieces(self, number: int, key: RecordKey) -> int:
        """Of how many pieces it was made when it was planned, or is now if there are more."""
        found = self.reach.records[key]
        earlier = found.owed.get(number)
        return max(found.match.pieces, earlier.pieces if earlier else 1)

    def found_anywhere(self, number: int) -> bool:
        """Whether any site holds, or held, something that the request reaches."""
        mine = self.decided[number]
        return bool(mine.roles or mine.seen_again or mine.restated or mine.held)

    def excerpts(self) -> list[Excerpt]:
        """What was met, for a person to look at."""
        return [
            Excerpt(
                site=key.site,
                where=(match := self.reach.records[key].match).where,
                role=role.value,
                texts=tuple(_shorten(text) for text in match.trace.texts),
            )
            for mine in self.decided.values()
            for key, role in sorted(mine.roles.items())
            if self._readable(key)
        ]

    def leftovers(
        self,
        numbers: Sequence[int],
        earlier: Callable[[int], Iterable[Owed]],
        markers: Set[int] = frozenset(),
    ) -> Leftovers:
        """Everything to look for among left-over copies: targets, removed ids, and traces.

        Args:
            numbers: the requests.
            earlier: by number, what earlier rounds and plans took out.
            markers: the requests that come from markers.
        """
        wanted = set(numbers)
        direct = [t for t in self.reach.direct if self.reach.owner[t.key] in wanted]
        owners = {target.key: {self.reach.owner[target.key]} for target in direct}
        traces: dict[RecordKey, Trace] = {}
        named: dict[Name, set[int]] = {}
        for number in numbers:
            changed = self.decided[number].changed
            for entry in (*earlier(number), *self.owed(number)):
                if entry.key not in changed:
                    traces.setdefault(entry.key, entry.trace)
                    named.setdefault(entry.key.name, set()).add(number)
        next_key = max((target.key for target in self.reach.direct), default=0) + 1
        for at, ((site, id), of) in enumerate(named.items(), next_key):
            direct.append(Target(at, TargetKind.ID, id, site))
            owners[at] = of
        by_site: dict[str, list[Trace]] = {}
        for key, trace in traces.items():
            by_site.setdefault(key.site, []).append(trace)
        direct = [
            replace(it, from_marker=owners[it.key] <= markers, whose=frozenset(owners[it.key]))
            for it in direct
        ]
        return Leftovers(
            Targets(direct, by_site, self._spared(numbers, owners)),
            {key: frozenset(of) for key, of in owners.items()},
        )

    def _spared(
        self, numbers: Sequence[int], owners: Mapping[int, Set[int]]
    ) -> Mapping[str, Sequence[Spared]]:
        """Return, by site, the new statements: their copies are no copies of what was removed."""
        spared: dict[str, list[Spared]] = {}
        for number in numbers:
            restated = self.decided[number].restated
            if not restated:
                continue
            mine = frozenset(key for key, of in owners.items() if of == {number})
            for key in sorted(restated):
                texts = frozenset(self.reach.records[key].match.trace.texts)
                spared.setdefault(key.site, []).append(Spared(key.id, key.part, texts, mine))
        return spared

    def _readable(self, key: RecordKey) -> bool:
        found = self.reach.records[key]
        return bool(found.match.hits) and found.readable

    def _scope_unknown(self, number: int, site: str, roles: Mapping[RecordKey, Role]) -> int:
        met = self.unknown.get((number, site), ())
        return sum(1 for key in met if key not in roles and self._readable(key))

    @staticmethod
    def _how(number: int, found: Found, role: Role) -> str:
        if number in found.named:
            return found.named[number]
        if number in found.owed:
            return found.owed[number].how
        return How.EXACT.value if role is Role.COPY else How.LINEAGE.value


def _shorten(text: str) -> str:
    # Control characters could redraw the terminal that shows them.
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= EXCERPT else plain[: EXCERPT - 1] + "…"
