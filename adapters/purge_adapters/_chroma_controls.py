"""Whether the look for left-over copies could have found one: it is tried on what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from purge.adapter import Control
from purge.targets import NeedleKind, Targets, Trace
from purge_adapters._chroma_needles import Database, needles_of, vector_pieces
from purge_adapters._chroma_records import Fields
from purge_adapters._chroma_state import State
from purge_adapters._chroma_store import Store

_NEIGHBOURS: Final = 40


@dataclass(frozen=True, slots=True)
class Trial:
    """What the look is tried on.

    Args:
        store: the tables.
        database: the bytes of the same file.
        states: the collections of the site.
        fields: what metadata keys mean.
    """

    store: Store
    database: Database
    states: Sequence[State]
    fields: Fields

    def controls(self, readable: Sequence[Trace]) -> Iterator[Control]:
        """Yield, by kind of needle, whether the look sees it.

        Args:
            readable: the records that have to go and are still there; without any, neighbours
                are tried.
        """
        tried = list(readable) or list(self._neighbours())
        for kind in NeedleKind:
            traces = [trace for trace in tried if _has(trace, kind)]
            if traces:
                seen = (self._sees(trace, kind) for trace in traces)
                passed = all(seen) if readable else any(seen)
                yield Control(kind, passed=passed, on_target=bool(readable))

    def _sees(self, trace: Trace, kind: NeedleKind) -> bool:
        if kind is NeedleKind.VECTOR:
            return any(self._sees_vector(vector) for vector in trace.vectors)
        only = Trace(
            trace.id if kind is NeedleKind.ID else "",
            trace.texts if kind is NeedleKind.TEXT else (),
            trace.metadata if kind is NeedleKind.METADATA else (),
        )
        needles = needles_of([only], Targets(()), self.fields.site.name)
        return any(place.kind is None for place in self.database.places(needles))

    def _sees_vector(self, vector: Sequence[float]) -> bool:
        pieces = vector_pieces(vector)
        return any(
            (state.index is not None and len(state.index.alike(vector)))
            or any(row.vector and any(p in row.vector for p in pieces) for row in state.log)
            for state in self.states
        )

    def _neighbours(self) -> Iterator[Trace]:
        """Yield what a few live records look like."""
        for state in self.states:
            some = sorted(state.live)[: _NEIGHBOURS // len(self.states) + 1]
            for item in self.store.items(state.collection, some):
                vector = state.vector(item.id)
                yield self.fields.trace(item, [vector] if vector else [])


def _has(trace: Trace, kind: NeedleKind) -> bool:
    if kind is NeedleKind.VECTOR:
        return any(vector_pieces(vector) for vector in trace.vectors)
    return bool(trace.needles(kind))
