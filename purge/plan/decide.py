"""What is to become of every record that a run meets. Pure; works on the whole picture at once.

Removed are the records that a request names, and what derives from them alone. Sources, copies
and records with other living sources are shown and wait, unless the caller or the manifest
decided. A request that was carried out before takes only what came back (:mod:`purge.plan.again`).
What a legal hold is on stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType

from purge.adapter import Match
from purge.plan.again import Again, Coming
from purge.plan.outcome import Role
from purge.plan.reach import Found, Name, Owed, Reach, RecordKey


def nothing_held(site: str, match: Match) -> bool:
    """No record is held."""
    del site, match
    return False


@dataclass(frozen=True, slots=True)
class Policy:
    """What bears on a decision beside what was met.

    Args:
        again: by number, the requests that were carried out before.
        spared: by number, the records that an earlier run met and left.
        waiting: by number, the records that go once a hold is released.
        markers: the requests that come from a marker: they take no record that carries one.
        held: whether a legal hold is on a record of a site.
    """

    again: Mapping[int, Again] = field(default_factory=dict)
    spared: Mapping[int, Set[RecordKey]] = field(default_factory=dict, repr=False)
    waiting: Mapping[int, Set[RecordKey]] = field(default_factory=dict, repr=False)
    markers: frozenset[int] = frozenset()
    held: Callable[[str, Match], bool] = nothing_held


@dataclass(slots=True)
class Decided:
    """Of one request: each record it reaches with its role, and which of them have to go."""

    roles: dict[RecordKey, Role] = field(default_factory=dict)
    remove: set[RecordKey] = field(default_factory=set)
    kept: set[RecordKey] = field(default_factory=set)
    """Shown ones that the caller decided to keep, and those that carry a marker."""
    changed: set[RecordKey] = field(default_factory=set)
    """Planned earlier, and now something else under the same id: what was named is gone, and what
    stands there now was never asked for."""
    back: set[RecordKey] = field(default_factory=set)
    """Of those that have to go: what was gone, or is made from what is gone, and came back."""
    seen_again: set[RecordKey] = field(default_factory=set)
    restated: set[RecordKey] = field(default_factory=set)
    held: set[RecordKey] = field(default_factory=set)
    """Would have to go, and a legal hold is on them."""
    cut: set[RecordKey] = field(default_factory=set)
    """Flagged earlier; the link to what went is gone, and what was made from it is not."""
    spared: set[RecordKey] = field(default_factory=set)
    """Met and left, so that a later run does not take them for what came back."""


def decide(
    reach: Reach, among: Iterable[int], policy: Policy | None = None
) -> Mapping[int, Decided]:
    """Return, by the number of each request, what is to become of what it reaches.

    Args:
        reach: everything that was met.
        among: the requests to carry out; the others (refused ones) remove nothing.
        policy: holds, and what earlier runs left.
    """
    picture = _Picture.of(reach, policy or Policy())
    decided = {number: Decided() for number in among}
    for number, mine in decided.items():
        _take_named(picture, number, mine)
    gone: set[RecordKey] = {key for mine in decided.values() for key in mine.remove}
    # A record may lose its last living source to another request of the run, so that all
    # requests are followed together until nothing changes.
    while True:
        before = len(gone)
        for number, mine in decided.items():
            _follow_down(picture, number, mine, gone)
            _take_shown(picture, number, mine)
            gone |= mine.remove
        if len(gone) == before:
            break
    for number, mine in decided.items():
        _take_cut(picture, number, mine)
        _note_spared(picture, number, mine)
    return MappingProxyType(decided)


@dataclass(frozen=True, slots=True)
class _Picture:
    """What was met, by request and by parent, so that no question goes through all of it."""

    reach: Reach
    policy: Policy
    met: Mapping[int, list[RecordKey]]
    copied: Mapping[int, list[RecordKey]]
    twins: Mapping[int, list[RecordKey]]
    cut: Mapping[int, list[RecordKey]]
    children: Mapping[Name, list[RecordKey]]

    @classmethod
    def of(cls, reach: Reach, policy: Policy) -> _Picture:
        met: dict[int, list[RecordKey]] = {}
        copied: dict[int, list[RecordKey]] = {}
        twins: dict[int, list[RecordKey]] = {}
        cut: dict[int, list[RecordKey]] = {}
        children: dict[Name, list[RecordKey]] = {}
        for key, found in reach.records.items():
            for number in {*found.named, *found.owed, *found.repeats}:
                met.setdefault(number, []).append(key)
            for number in found.copied:
                copied.setdefault(number, []).append(key)
            for number in found.twin:
                twins.setdefault(number, []).append(key)
            for number in found.cut:
                cut.setdefault(number, []).append(key)
            for parent in found.parents:
                children.setdefault(parent, []).append(key)
        return cls(reach, policy, met, copied, twins, cut, children)

    def stays(self, number: int, key: RecordKey, mine: Decided) -> bool:
        """Whether a record stays although it would have to go, and note why."""
        match = self.reach.records[key].match
        if self.policy.held(key.site, match):
            mine.held.add(key)
            return True
        if number in self.policy.markers and match.carries_marker:
            mine.roles[key] = Role.NAMED
            mine.kept.add(key)
            return True
        return False

    def coming(self, number: int, key: RecordKey) -> Coming | None:
        """What a living record is to a request that names it, or that planned it; ``None``:
        something else that stands under the id of a planned one."""
        found = self.reach.records[key]
        earlier, again = found.owed.get(number), self.policy.again.get(number)
        planned = earlier is not None and _is_still(found, earlier)
        named = number in found.named or number in found.repeats
        if planned or (named and (again is None or number in found.by_id)):
            return Coming.BACK if earlier is not None and earlier.gone else Coming.GOES
        if not named or again is None:
            return None
        if key in self.policy.waiting.get(number, ()):
            return Coming.GOES
        spared = key in self.policy.spared.get(number, ())
        if spared and number not in found.named:
            return None  # It only says the same, and said it all along.
        return again.judge(key.site, found.match, spared=spared)

    def is_back(self, number: int, key: RecordKey) -> bool:
        """Whether a derived record came back, rather than having been there all along."""
        again = self.policy.again.get(number)
        if again is None or again.removed is None:
            return False
        earlier = self.reach.records[key].owed.get(number)
        if earlier is not None:
            return earlier.gone is not None
        return key.site in again.looked and key not in self.policy.spared.get(number, ())


def _take_named(picture: _Picture, number: int, mine: Decided) -> None:
    for key in picture.met.get(number, ()):
        found = picture.reach.records[key]
        earlier = found.owed.get(number)
        if not (found.readable and found.match.hits):
            if earlier is not None:  # Gone, as it was planned.
                mine.roles[key] = earlier.role
                mine.remove.add(key)
            continue
        coming = picture.coming(number, key)
        if coming in (Coming.GOES, Coming.BACK):
            if picture.stays(number, key, mine):
                continue
            named = number in found.named or earlier is None
            mine.roles[key] = Role.NAMED if named or earlier is None else earlier.role
            mine.remove.add(key)
            if coming is Coming.BACK:
                mine.back.add(key)
            continue
        if coming is Coming.SEEN_AGAIN:
            mine.seen_again.add(key)
        elif coming is Coming.RESTATED:
            mine.restated.add(key)
        if earlier is not None:
            mine.roles[key] = earlier.role
            mine.remove.add(key)
            mine.changed.add(key)


def _is_still(found: Found, earlier: Owed) -> bool:
    """Whether a planned record is gone, or is still what was planned, by what it says.

    Ids are used again: SQLite gives the id of the last row to the next one.
    """
    if not found.match.hits or not found.readable:
        return True
    was, now = earlier.trace, found.match.trace
    told = (*was.texts, *was.metadata)
    if told or was.vectors:
        said = (*now.texts, *now.metadata)
        return any(text in other for text in told for other in said) or bool(
            set(was.vectors) & set(now.vectors)
        )
    return True


def _follow_down(picture: _Picture, number: int, mine: Decided, gone: set[RecordKey]) -> None:
    """Take what derives from records that were removed for their own sake, level by level."""
    todo = [
        key.name
        for key in mine.remove - mine.changed
        if mine.roles[key] in (Role.NAMED, Role.DERIVED)  # Sources and copies start no closure.
    ]
    while todo:
        for key in picture.children.get(todo.pop(), ()):
            found = picture.reach.records[key]
            if key in mine.changed:
                mine.changed.discard(key)  # It changed, and still derives from what has to go.
                todo.append(key.name)
            if key in mine.remove or not found.readable:
                continue  # Blanked, by this request or by somebody else: there is nothing to take.
            if picture.stays(number, key, mine):
                continue
            if _may_go(picture.reach, found, gone | mine.remove):
                mine.roles[key] = Role.DERIVED
                mine.remove.add(key)
                mine.seen_again.discard(key)
                mine.restated.discard(key)
                todo.append(key.name)
                if picture.is_back(number, key):
                    mine.back.add(key)
            else:
                mine.roles[key] = Role.FLAGGED


def _may_go(reach: Reach, found: Found, gone: set[RecordKey]) -> bool:
    if reach.graph.deletes_with_source(found.site):
        return True
    for parent in found.parents:
        known = reach.called(parent)
        if any(key not in gone and reach.records[key].readable for key in known):
            return False
        look = reach.looks.get(parent[0])
        if not known and look is not None and (look.failure or look.unseen):
            return False  # It may well be alive where nobody could look.
    return True


def _take_shown(picture: _Picture, number: int, mine: Decided) -> None:
    """Take the sources of named records, and copies, as the caller decided."""
    reach = picture.reach
    decisions = reach.requests[number].decisions
    sources: list[RecordKey] = []
    todo = [key for key, role in mine.roles.items() if role is Role.NAMED]
    seen = set(todo)
    while todo:
        for parent in reach.records[todo.pop()].parents:
            for key in reach.called(parent):
                if key not in seen:
                    seen.add(key)
                    todo.append(key)
                    sources.append(key)
    for key in sources:
        if key not in mine.remove:
            _show(picture, mine, key, Role.SOURCE, decisions.sources)
    for key in picture.copied.get(number, ()):
        # A record that says what it derives from is no copy: its lineage decides. A link that
        # leads nowhere decides nothing.
        linked = any(reach.called(parent) for parent in reach.records[key].parents)
        if not linked and mine.roles.get(key) in (None, Role.COPY) and key not in mine.remove:
            _show(picture, mine, key, Role.COPY, decisions.copies)


def _show(
    picture: _Picture, mine: Decided, key: RecordKey, role: Role, decision: bool | None
) -> None:
    if mine.roles.get(key) is Role.FLAGGED and role is Role.SOURCE:
        return
    if key in mine.held:
        return
    if decision is True and picture.policy.held(key.site, picture.reach.records[key].match):
        mine.held.add(key)
        mine.roles.pop(key, None)
        return
    mine.roles[key] = role
    if decision is True:
        mine.remove.add(key)
    elif decision is False:
        mine.kept.add(key)


def _take_cut(picture: _Picture, number: int, mine: Decided) -> None:
    """Flag what was made from what went, where the store took the link out with it.

    Until it is made again it says what it said.
    """
    for key in picture.cut.get(number, ()):
        found = picture.reach.records[key]
        if key in mine.roles or not (found.readable and found.match.hits):
            continue
        if set(found.cut[number].trace.texts) == set(found.match.trace.texts):
            mine.roles[key] = Role.FLAGGED
            mine.cut.add(key)


def _note_spared(picture: _Picture, number: int, mine: Decided) -> None:
    met = {*mine.roles, *mine.seen_again, *mine.restated}
    met.update(picture.twins.get(number, ()))
    there = {key for key in met if picture.reach.records[key].readable}
    mine.spared = there.union(picture.policy.spared.get(number, ())) - mine.remove - mine.held
