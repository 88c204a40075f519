"""What is to become of every record that a run meets. Pure; works on the whole picture at once.

Removed are the records that a request names, and what derives from them alone. Sources, copies
and records with other living sources are shown and wait, unless the caller or the manifest
decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from purge.plan.outcome import Role
from purge.plan.reach import Found, Owed, Reach, RecordKey


@dataclass(slots=True)
class Decided:
    """Of one request: each record it reaches with its role, and which of them have to go."""

    roles: dict[RecordKey, Role] = field(default_factory=dict)
    remove: set[RecordKey] = field(default_factory=set)
    kept: set[RecordKey] = field(default_factory=set)
    """Shown ones that the caller decided to keep."""
    changed: set[RecordKey] = field(default_factory=set)
    """Planned earlier, and now something else under the same id: what was named is gone, and what
    stands there now was never asked for."""


def decide(reach: Reach, among: Iterable[int]) -> Mapping[int, Decided]:
    """Return, by the number of each request, what is to become of what it reaches.

    Args:
        reach: everything that was met.
        among: the requests to carry out; the others (refused ones) remove nothing.
    """
    decided = {number: Decided() for number in among}
    for number, mine in decided.items():
        _take_named(reach, number, mine)
    gone: set[RecordKey] = {key for mine in decided.values() for key in mine.remove}
    # A record may lose its last living source to another request of the run, so that all
    # requests are followed together until nothing changes.
    while True:
        before = len(gone)
        for number, mine in decided.items():
            _follow_down(reach, mine, gone)
            _take_shown(reach, number, mine)
            gone |= mine.remove
        if len(gone) == before:
            break
    return MappingProxyType(decided)


def _take_named(reach: Reach, number: int, mine: Decided) -> None:
    for key, found in reach.records.items():
        earlier = found.owed.get(number)
        if number in found.named and found.readable:
            mine.roles[key] = Role.NAMED
            mine.remove.add(key)
        elif earlier is not None:
            mine.roles[key] = earlier.role
            mine.remove.add(key)
            if not _is_still(found, earlier):
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


def _follow_down(reach: Reach, mine: Decided, gone: set[RecordKey]) -> None:
    """Take what derives from records that were removed for their own sake, level by level."""
    changed = True
    while changed:
        changed = False
        starters = {
            key.name
            for key in mine.remove - mine.changed
            if mine.roles[key] in (Role.NAMED, Role.DERIVED)  # Sources and copies start no closure.
        }
        for key, found in reach.records.items():
            if not starters.intersection(found.parents):
                continue
            if key in mine.changed:
                mine.changed.discard(key)  # It changed, and still derives from what has to go.
                changed = True
            if key in mine.remove:
                continue
            if not found.readable:
                continue  # Blanked, by this request or by somebody else: there is nothing to take.
            if _may_go(reach, found, gone | mine.remove):
                mine.roles[key] = Role.DERIVED
                mine.remove.add(key)
                changed = True
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


def _take_shown(reach: Reach, number: int, mine: Decided) -> None:
    """Take the sources of named records, and copies, as the caller decided."""
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
            _show(mine, key, Role.SOURCE, decisions.sources)
    for key, found in reach.records.items():
        # A record that says what it derives from is no copy: its lineage decides. A link that
        # leads nowhere decides nothing.
        linked = any(reach.called(parent) for parent in found.parents)
        if number in found.copied and not linked and mine.roles.get(key) in (None, Role.COPY):
            _show(mine, key, Role.COPY, decisions.copies)


def _show(mine: Decided, key: RecordKey, role: Role, decision: bool | None) -> None:
    if mine.roles.get(key) is Role.FLAGGED and role is Role.SOURCE:
        return
    mine.roles[key] = role
    if decision is True:
        mine.remove.add(key)
    elif decision is False:
        mine.kept.add(key)
