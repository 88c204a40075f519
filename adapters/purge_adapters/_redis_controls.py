"""Whether the look at files could have seen what it did not see: live values are looked for too.

Does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import Control
from purge.targets import NeedleKind, Trace
from purge_adapters._redis_needles import KINDS, forms_of, spelled
from purge_adapters._redis_rdb import Stored

_NEIGHBOURS: Final = 8


@dataclass(slots=True)
class _Tried:
    """One live record: where it stands, and which of its needles were not seen yet."""

    on_target: bool
    wanted: dict[tuple[NeedleKind, str], bool] = field(repr=False)


@dataclass(slots=True)
class Trial:
    """Live records, and what of them a look at files has seen."""

    _records: dict[tuple[int, bytes], list[_Tried]] = field(default_factory=dict, repr=False)
    _neighbours: int = 0

    def add(
        self, database: int, key: bytes, trace: Trace, *, on_target: bool, without_id: bool
    ) -> None:
        """Add a live record; of neighbours only the first few.

        Args:
            database: where it stands.
            key: in which key.
            trace: what it looks like.
            on_target: it is one that has to go.
            without_id: its id stands nowhere in bytes.
        """
        if not on_target:
            if self._neighbours >= _NEIGHBOURS:
                return
            self._neighbours += 1
        wanted = {
            (kind, needle): False
            for kind in KINDS
            if not (without_id and kind is NeedleKind.ID)
            for needle in trace.needles(kind)
        }
        if wanted:
            self._records.setdefault((database, key), []).append(_Tried(on_target, wanted))

    def watch(self, stored: Iterable[Stored]) -> Iterator[Stored]:
        """Pass on what a file holds, and note which live needles stand in it."""
        for each in stored:
            for tried in self._records.get((each.database, each.key), ()):
                content = b""
                for (kind, needle), seen in tried.wanted.items():
                    if not seen:
                        content = content or spelled(each.pieces)
                        is_there = any(form in content for form in forms_of(needle))
                        tried.wanted[kind, needle] = is_there
            yield each

    def controls(self) -> Iterator[Control]:
        """Yield, for each kind of needle, whether all live ones were seen."""
        every = [tried for some in self._records.values() for tried in some]
        for kind in KINDS:
            for on_target in (True, False):
                results = [
                    seen
                    for tried in every
                    if tried.on_target is on_target
                    for (which, _), seen in tried.wanted.items()
                    if which is kind
                ]
                if results:
                    yield Control(kind, all(results), on_target)
                    break
