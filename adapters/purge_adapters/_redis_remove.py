"""Taking keys and elements out, or emptying them, in transactions that notice other writers.

A handle is never trusted: what stands in the key must have its digest. Keys are named in commands;
of elements only those of sets and hashes, which cannot be named otherwise.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from purge.adapter import Action, NotRemoved, ProblemCode, Removal, Site
from purge.errors import Permanent
from purge_adapters._json_text import Path
from purge_adapters._redis_edit import Edits, commands, emptied, lives_apart
from purge_adapters._redis_nodes import Node, Session, connected
from purge_adapters._redis_records import Reader
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._redis_stream import rebuild
from purge_adapters._redis_values import STREAM, Element, Value, read

_BATCH: Final = 100
"""Keys that one transaction takes away."""
_LOOKS: Final = 3
"""How often a key that somebody else writes to is tried."""
_CHANGED: Final = "It changed after it was found, and was left alone."


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a record that has to go, as a handle says it."""

    removal: Removal
    database: int
    key: bytes = field(repr=False)
    kind: str
    digest: str
    is_element: bool
    strings: frozenset[Path] = field(repr=False)
    keys: frozenset[Path] = field(repr=False)
    name: str = field(repr=False)
    """The id of the element or key itself, which may go because another one does."""


def places_of(removals: Sequence[Removal]) -> dict[tuple[int, bytes], list[Place]]:
    """Return the places of the records, by key.

    Raises:
        Permanent: a handle is none of this adapter's.
    """
    found: dict[tuple[int, bytes], list[Place]] = {}
    for removal in removals:
        handle: Any = removal.match.handle
        try:
            for told in handle["places"]:
                place = Place(
                    removal,
                    int(told["database"]),
                    b64decode(told["key"]),
                    str(told["kind"]),
                    str(told["digest"]),
                    bool(told["is_element"]),
                    frozenset(tuple(path) for path in told["strings"]),
                    frozenset(tuple(path) for path in told["keys"]),
                    str(told["name"]),
                )
                found.setdefault((place.database, place.key), []).append(place)
        except (KeyError, TypeError, ValueError):
            raise Permanent(
                "A plan was made for another adapter or by another version; make it again.",
                problem=ProblemCode.UNSUPPORTED,
            ) from None
    return found


def remove(
    site: Site, settings: RedisSettings, removals: Sequence[Removal]
) -> Iterator[NotRemoved]:
    """Yield what ``remove`` of the adapter yields."""
    by_key = places_of(removals)
    with connected(site, settings) as nodes:
        work = _Work(site.action, Reader.of(site, settings))
        whole: dict[tuple[str, int], list[list[Place]]] = {}
        for (database, key), places in by_key.items():
            node = nodes.master_of(key)
            if site.action is Action.DELETE and not all(place.is_element for place in places):
                batches = whole.setdefault((node.name, database), [])
                if not batches or len(batches[-1]) >= _BATCH or node.slots:
                    batches.append([])
                batches[-1].extend(place for place in places if not place.is_element)
            else:
                work.change(node, database, key, places)
        for (name, database), batches in whole.items():
            found = nodes.named(name)
            assert found is not None
            for batch in batches:
                work.unlink(found.session(database), batch)
        left = list(work.left.values())
    yield from left


class _Work:
    """Removing from the nodes of one site; ``left`` is what was left alone."""

    def __init__(self, action: Action, reader: Reader) -> None:
        self.action = action
        self.reader = reader
        self.left: dict[tuple[int, str], NotRemoved] = {}

    def leave(self, places: Iterable[Place], problem: ProblemCode, sentence: str) -> None:
        """Note that records were left alone."""
        for place in places:
            said = NotRemoved(place.removal.match, problem, sentence)
            self.left.setdefault((id(place.removal), problem), said)

    def unlink(self, session: Session, places: Sequence[Place]) -> None:
        """Take away whole keys, all at once; one by one where somebody else writes meanwhile."""
        by_key = {place.key: [p for p in places if p.key == place.key] for place in places}
        for _ in range(_LOOKS if len(by_key) == 1 else 1):
            session.call("WATCH", *by_key)
            values = read(session, list(by_key), watched=True)
            there = {value.key: value for value in values if isinstance(value, Value)}
            due: list[bytes] = []
            changed: list[bytes] = []
            for key, same in by_key.items():
                if key in there:
                    fits = any(place.digest == there[key].digest() for place in same)
                    (due if fits else changed).append(key)
            if not due:
                session.call("UNWATCH")
            elif session.transact([("UNLINK", *due)]) is None:
                continue
            for key in changed:
                self.leave(by_key[key], ProblemCode.CHANGED_UNDERNEATH, _CHANGED)
            return
        if len(by_key) == 1:
            self.leave(places, ProblemCode.CHANGED_UNDERNEATH, _CHANGED)
            return
        for same in by_key.values():
            self.unlink(session, same)

    def change(self, node: Node, database: int, key: bytes, places: Sequence[Place]) -> None:
        """Take elements out of a value, or empty what it says."""
        session = node.session(database)
        for _ in range(_LOOKS):
            session.call("WATCH", key)
            found = [v for v in read(session, [key], watched=True) if isinstance(v, Value)]
            edits = self._edits(found[0], places) if found else {}
            if edits and lives_apart(session, found[0], edits):
                self.leave(
                    places,
                    ProblemCode.UNSUPPORTED,
                    "Its fields live for a time of their own, which 'blank' would lose.",
                )
                edits = {}
            if not edits:
                session.call("UNWATCH")
                return
            if found[0].kind == STREAM:
                session.call("UNWATCH")
                self._rebuild(node, database, found[0], edits, places)
                return
            if session.transact(commands(session, found[0], edits)) is not None:
                return
        self.leave(places, ProblemCode.CHANGED_UNDERNEATH, _CHANGED)

    def _edits(self, value: Value, places: Sequence[Place]) -> Edits:
        """Return what is to become of which elements; note what has changed meanwhile."""
        edits: Edits = {}
        wanted = {place.digest: place for place in places if place.kind == value.kind}
        met: set[str] = set()
        others: dict[str, bool] = {}
        single = places[0].is_element
        for at, item in enumerate(self.reader.items(value)):
            digest = value.elements[at].digest(value.kind) if single else value.digest()
            place = wanted.get(digest)
            if place is None:
                others[item.name] = self.action is Action.BLANK and item.is_blanked
                continue
            met.add(digest)
            if self.action is Action.DELETE:
                edits[at] = None
                continue
            new = emptied(item, place.strings, place.keys)
            if isinstance(new, str):
                self.leave([place], ProblemCode.UNSUPPORTED, new)
            else:
                edits |= new
        for place in places:
            # A record of this id that says something else has changed; without one it is gone.
            if place.digest not in met and not others.get(place.name, True):
                self.leave([place], ProblemCode.CHANGED_UNDERNEATH, _CHANGED)
        return edits

    def _rebuild(
        self, node: Node, database: int, value: Value, edits: Edits, places: Sequence[Place]
    ) -> None:
        changes = {value.elements[at].name: new for at, new in edits.items()}
        read_as = {value.elements[at].name: value.elements[at].parts for at in edits}

        def change(entry: Element) -> Element | None:
            fits = entry.name in changes and entry.parts == read_as[entry.name]
            return changes[entry.name] if fits else entry

        setback = rebuild(node, database, value.key, change)
        if setback is None:
            return
        if setback.problem is ProblemCode.UNSUPPORTED:
            # At least no read returns them; what is left of them is found as residue.
            session = node.session(database)
            gone = [name for name, new in changes.items() if new is None]
            if gone:
                session.call("XDEL", value.key, *gone)
        self.leave(places, setback.problem, setback.sentence)
