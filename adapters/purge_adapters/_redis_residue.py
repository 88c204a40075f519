"""What is left of records apart from what reads return: on every node, in memory and in files.

Only reads, and asks nobody who deleted. A needle that stands where it also stands now is no
left-over: it is live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from purge.adapter import (
    Control,
    Examined,
    NotChecked,
    Observation,
    ProblemCode,
    Residue,
    Site,
)
from purge.targets import NeedleKind, Targets, Trace
from purge_adapters._jsonl_match import is_certain
from purge_adapters._redis_controls import Trial
from purge_adapters._redis_errors import translate
from purge_adapters._redis_find import Named, Search
from purge_adapters._redis_needles import Needles
from purge_adapters._redis_node_look import NodeLook
from purge_adapters._redis_nodes import Node, Nodes, connected
from purge_adapters._redis_records import Item, Reader, is_local
from purge_adapters._redis_replicas import follow, unknown_replicas
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._redis_values import STREAM

Key = tuple[int, bytes]


def residue(site: Site, settings: RedisSettings, targets: Targets) -> Iterator[Observation]:
    """Yield what ``residue`` of the adapter yields."""
    with connected(site, settings) as nodes:
        yield from _Examination(site, settings, nodes, targets).run()


@dataclass(slots=True)
class _Live:
    """What one look at the live records of the masters has seen."""

    readable: set[tuple[str, str]] = field(default_factory=set, repr=False)
    """Ids and parts of the records that are named and still say something."""
    traces: set[int] = field(default_factory=set)
    """Positions of the traces whose records are readable."""
    streams: dict[str, dict[Key, None]] = field(default_factory=dict, repr=False)
    """By master, the streams of the site."""
    half_blanked: bool = False


class _Examination:
    """One look for what is left at a site."""

    def __init__(self, site: Site, settings: RedisSettings, nodes: Nodes, targets: Targets) -> None:
        self.site = site
        self.settings = settings
        self.nodes = nodes
        self.targets = targets
        self.reader = Reader.of(site, settings)
        self.traces = targets.traces(site.name)
        self.search = Search(site, self.reader, nodes, targets)
        self.trial = Trial()

    def run(self) -> Iterator[Observation]:
        """Yield everything that is left, and whether it could have been seen."""
        live = _Live()
        yield from self._survey(live)
        if live.half_blanked:
            yield Residue(
                "a blanked record",
                "it says the same in a field that was not emptied",
                problem=ProblemCode.UNSUPPORTED,
            )
        gone = [trace for at, trace in enumerate(self.traces) if at not in live.traces]
        needles = Needles(self.site.name, self.targets, gone)
        looks = [
            NodeLook(node, self.site, self.settings, needles, self.trial, bool(gone))
            for node in self.nodes
        ]
        for look in looks:
            if look.node.is_replica:
                yield from self._replica(look, live)
            else:
                yield from look.everything(
                    self.nodes.databases, live.streams.get(look.node.name, ())
                )
        yield from unknown_replicas(self.nodes)
        if any(look.is_complete for look in looks):
            yield from self.trial.controls()
        yield Control(None, passed=all(look.sound for look in looks), on_target=False)

    def _replica(self, look: NodeLook, live: _Live) -> Iterator[Observation]:
        """Look at a replica; what goes wrong there does not keep the others from being seen."""
        from redis.exceptions import RedisError

        node = look.node
        try:
            gap = follow(node, self.nodes.masters, self.settings.socket_connect_timeout)
            if gap is not None:
                yield gap
                return
            yield from [*self._served_by(node, live), *look.everything(self.nodes.databases, ())]
        except (RedisError, OSError) as error:
            problem = translate(error)
            yield NotChecked(node.name, str(problem), ProblemCode(problem.problem))

    def _survey(self, live: _Live) -> Iterator[NotChecked | Examined]:
        """See which records are readable, and try the look on them and on neighbours."""
        wanted: dict[str, list[tuple[int, Trace]]] = {}
        for at, trace in enumerate(self.traces):
            wanted.setdefault(trace.id, []).append((at, trace))

        def witness(node: Node, database: int, item: Item, is_named: bool) -> None:
            value = item.value_of
            if value is None:
                return
            if value.kind == STREAM:
                live.streams.setdefault(node.name, {})[database, value.key] = None
            if not is_named:
                self._try(database, value.key, item, item.trace(()), on_target=False)

        search = Search(self.site, self.reader, self.nodes, self.targets, witness)
        for found in search.run():
            if not isinstance(found, Named):
                yield found
                continue
            same = wanted.get(found.item.name, ())
            if found.is_blanked(self.site):
                live.half_blanked = live.half_blanked or self._still_says(found.item, same)
                continue
            if not is_certain(found.hits):
                continue
            live.readable.add((found.item.name, self.search.part_of(found)))
            own = found.item.trace(path for path, is_key in found.matched if not is_key)
            live.traces.update(at for at, trace in same if _is_same(own, trace))
            self._try(found.database, found.value.key, found.item, own, on_target=True)

    def _try(self, database: int, key: bytes, item: Item, trace: Trace, *, on_target: bool) -> None:
        self.trial.add(database, key, trace, on_target=on_target, without_id=is_local(item))

    @staticmethod
    def _still_says(item: Item, same: Iterable[tuple[int, Trace]]) -> bool:
        texts = {text for _, trace in same for text in trace.needles(NeedleKind.TEXT)}
        said = [text for _, text, _ in item.strings()]
        return any(needle in text for needle in texts for text in said)

    def _served_by(self, node: Node, live: _Live) -> Iterator[Observation]:
        """Say where a replica still returns what the masters no longer do."""
        left = 0
        for found in Search(self.site, self.reader, self.nodes, self.targets).on(node):
            if isinstance(found, NotChecked):
                yield NotChecked(f"{node.name}, {found.where}", found.why, found.problem)
            elif isinstance(found, Named):
                name = (found.item.name, self.search.part_of(found))
                is_left = is_certain(found.hits) and not found.is_blanked(self.site)
                left += is_left and name not in live.readable
        if left:
            yield Residue(
                node.name,
                "it still returns what its master no longer has",
                problem=ProblemCode.STILL_READABLE,
            )


def _is_same(own: Trace, trace: Trace) -> bool:
    """Whether a record is the one that left a trace, and still says what it said."""
    said = {*own.texts, *own.metadata}
    known = {*trace.texts, *trace.metadata}
    return not known or bool(said & set(trace.texts)) or (not trace.texts and bool(said & known))
