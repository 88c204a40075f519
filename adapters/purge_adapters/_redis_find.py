"""Looking for records in all keys of a site. Only reads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from purge.adapter import (
    Action,
    Examined,
    Finding,
    Match,
    NotChecked,
    ProblemCode,
    Readability,
    Site,
)
from purge.targets import Hit, Record, Targets, Text, Trace
from purge_adapters._jsonl_match import Matcher, is_certain
from purge_adapters._redis_keys import named
from purge_adapters._redis_nodes import Node, Nodes, connected
from purge_adapters._redis_pairs import companions
from purge_adapters._redis_records import KEY, Item, Reader
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._redis_values import Value, read, scan

_NOBODY = "\0no record has this name\0"


@dataclass(slots=True)
class _Group:
    """All that is known of one record."""

    name: str = field(repr=False)
    part: str
    places: list[dict[str, object]] = field(default_factory=list, repr=False)
    where: str = ""
    hits: dict[Hit, None] = field(default_factory=dict)
    parents: dict[str, dict[str, None]] = field(default_factory=dict, repr=False)
    texts: dict[str, None] = field(default_factory=dict, repr=False)
    metadata: dict[str, None] = field(default_factory=dict, repr=False)
    scope: dict[str, str] | None = field(default=None, repr=False)
    subjects: dict[str, None] = field(default_factory=dict, repr=False)
    is_blanked: bool = True
    carries_marker: bool = False
    created: datetime | None = None

    def match(self) -> Match:
        """Return it as the contract has it."""
        more = f" and {len(self.places) - 1} more" if len(self.places) > 1 else ""
        metadata = tuple(text for text in self.metadata if text not in self.texts)
        return Match(
            id=self.name,
            hits=tuple(self.hits),
            where=self.where + more,
            handle={"places": self.places},
            trace=Trace(self.name, tuple(self.texts), metadata),
            parents={source: tuple(ids) for source, ids in self.parents.items()},
            readability=Readability.BLANKED if self.is_blanked else Readability.READABLE,
            carries_marker=self.carries_marker,
            created=self.created,
            part=self.part,
            scope=self.scope or {},
            subjects=tuple(self.subjects),
            pieces=len(self.places),
        )


def find(site: Site, settings: RedisSettings, targets: Targets) -> Iterator[Finding]:
    """Yield what ``find`` of the adapter yields."""
    with connected(site, settings) as nodes:
        search = Search(site, Reader.of(site, settings), nodes, targets)
        groups: dict[tuple[str, str], _Group] = {}
        for found in search.run():
            if isinstance(found, Named):
                key = (found.item.name, search.part_of(found))
                group = groups.setdefault(key, _Group(*key))
                _add(group, found, site)
            else:
                yield found
        for group in groups.values():
            yield group.match()


@dataclass(frozen=True, slots=True)
class Named:
    """A record that targets name, and where it stands."""

    node: Node
    database: int
    item: Item = field(repr=False)
    hits: tuple[Hit, ...]
    matched: tuple[tuple[tuple[str | int, ...], bool], ...] = field(repr=False)
    companions: tuple[Item, ...] = field(default=(), repr=False)
    """Elements of the same key that may not stay without it."""

    @property
    def value(self) -> Value:
        """The value that it stands in."""
        assert self.item.value_of is not None
        return self.item.value_of

    def is_blanked(self, site: Site) -> bool:
        """Whether ``blank`` has been here already."""
        return site.action is Action.BLANK and self.item.is_blanked and not self.matched


class Search:
    """One look at all keys of a site.

    Args:
        site: what the manifest says of it.
        reader: makes records of values.
        nodes: the connections.
        targets: what is looked for.
        witness: is told of every record, named or not: its node, its database, itself, and
            whether it is named.
    """

    def __init__(
        self,
        site: Site,
        reader: Reader,
        nodes: Nodes,
        targets: Targets,
        witness: Callable[[Node, int, Item, bool], None] = lambda *_: None,
    ) -> None:
        self.site = site
        self.reader = reader
        self.nodes = nodes
        self.targets = targets
        self.matcher = Matcher(site.name, targets)
        self.witness = witness

    def part_of(self, found: Named) -> str:
        """Return what tells a record from others of the same id."""
        several = len(self.nodes.databases) > 1
        database = f"database {found.database}" if several else ""
        return " ".join(filter(None, (database, found.item.part)))

    def run(self) -> Iterator[Named | NotChecked | Examined]:
        """Yield the records that are named on the masters, what could not be seen, how much was."""
        if missing := self.nodes.missing_slots():
            yield NotChecked(
                "cluster",
                f"no master serves {missing} of its hash slots",
                ProblemCode.UNREACHABLE,
            )
        for node in self.nodes.masters:
            yield from self.on(node)

    def on(self, node: Node) -> Iterator[Named | NotChecked | Examined]:
        """Yield the same of one node."""
        for database in self.nodes.databases:
            size = records = unlinked = 0
            gaps: dict[NotChecked, None] = {}
            for value in self.values(node, database):
                if isinstance(value, NotChecked):
                    gaps[value] = None
                    continue
                size += sum(len(part) for each in value.elements for part in each.parts)
                gaps.update(dict.fromkeys(self._names_of_keys(database, value)))
                for item, hits, others in self._met(value):
                    records += 1
                    if self.site.derived_from and not item.parents:
                        unlinked += 1
                    self.witness(node, database, item, bool(hits))
                    gaps.update(dict.fromkeys(self._unseen(database, item, hits)))
                    if hits:
                        matched = tuple(self.matcher.matched(item))
                        yield Named(node, database, item, hits, matched, others)
            yield from gaps
            yield Examined(0, size, records, unlinked)

    def _met(self, value: Value) -> Iterator[tuple[Item, tuple[Hit, ...], tuple[Item, ...]]]:
        """Yield the records of a value, the ways in which they are named, and what goes too."""
        pairs = self.reader.settings.pairs
        met = ((item, self.matcher.hits(item)) for item in self.reader.items(value))
        if pairs is None or self.site.action is Action.BLANK:
            yield from ((item, hits, ()) for item, hits in met)
            return
        all_met = list(met)
        named = {at for at, (_, hits) in enumerate(all_met) if is_certain(hits)}
        items = [item for item, _ in all_met]
        others = companions(items, named, pairs) if named else {}
        for at, (item, hits) in enumerate(all_met):
            yield item, hits, tuple(items[other] for other in others.get(at, ()))

    def values(self, node: Node, database: int) -> Iterator[Value | NotChecked]:
        """Yield the values of all keys of the site in one database of one node, each once."""
        session = node.session(database)
        seen: set[bytes] = set()
        plain = {each.glob for each in self.reader.keys.patterns if not each.is_template}
        for glob in self.reader.keys.globs():
            for page in scan(session, glob):
                fresh = [
                    key
                    for key in dict.fromkeys(page)
                    if key not in seen
                    and (glob in plain or self.reader.keys.id_of(key) is not None)
                ]
                seen.update(fresh)
                yield from read(session, fresh)

    def _unseen(self, database: int, item: Item, hits: tuple[Hit, ...]) -> Iterator[NotChecked]:
        if not self.targets.needs_texts or is_certain(hits):
            return
        where = f"database {database}"
        if item.sealed:
            yield NotChecked(
                where,
                "a value is compressed or packed in a way that cannot be read here",
                ProblemCode.UNSUPPORTED,
            )
        if any(self.targets.mentioned_in(piece.replace(b"\0", b"")) for piece in item.opaque):
            yield NotChecked(
                where,
                "a value that is neither text nor JSON holds the words between other bytes; "
                "whether it is a record of its own cannot be told",
                ProblemCode.UNSUPPORTED,
            )

    def _names_of_keys(self, database: int, value: Value) -> Iterator[NotChecked]:
        """Say where the words stand in the name of a key that stays whatever its elements are."""
        if not self.targets.needs_texts or self.reader.settings.record == "key":
            return
        said = Record(_NOBODY, [Text(KEY, named(value.key))])
        if is_certain(self.targets.match(self.site.name, said)):
            yield NotChecked(
                f"database {database}",
                "the name of a key holds the words, and with 'record: element' keys stay",
                ProblemCode.UNSUPPORTED,
            )


def _add(group: _Group, found: Named, site: Site) -> None:
    item, value = found.item, found.value
    strings = [list(path) for path, is_key in found.matched if not is_key]
    keys = [list(path) for path, is_key in found.matched if is_key]
    group.places.append({**_place(found.database, item), "strings": strings, "keys": keys})
    what = "a key" if item.element is None else "an element of a key"
    group.where = group.where or f"database {found.database}, {what} of type {value.kind}"
    group.hits.update(dict.fromkeys(found.hits))
    for source, ids in item.parents.items():
        group.parents.setdefault(source, {}).update(dict.fromkeys(ids))
    trace = item.trace(path for path, is_key in found.matched if not is_key)
    group.texts.update(dict.fromkeys(trace.texts))
    group.metadata.update(dict.fromkeys(trace.metadata))
    for other in found.companions:
        group.places.append({**_place(found.database, other), "strings": [], "keys": []})
        trace = other.trace(())
        group.texts.update(dict.fromkeys(trace.texts))
        group.metadata.update(dict.fromkeys((*trace.metadata, *other.ids)))
        group.carries_marker = group.carries_marker or other.carries_marker
    group.subjects.update(dict.fromkeys(item.subjects))
    if group.scope is None:
        group.scope = dict(item.scope)
    group.is_blanked = group.is_blanked and found.is_blanked(site)
    group.carries_marker = group.carries_marker or item.carries_marker
    group.created = group.created or item.created


def _place(database: int, item: Item) -> dict[str, object]:
    """Return where a record stands, and what it said, for a handle."""
    value, element = item.value_of, item.element
    assert value is not None
    return {
        "database": database,
        "key": b64encode(value.key).decode("ascii"),
        "kind": value.kind,
        "digest": element.digest(value.kind) if element is not None else value.digest(),
        "is_element": element is not None,
        "name": item.name,
    }
