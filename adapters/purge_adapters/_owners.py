"""Whose a left-over copy is: which targets of a run it holds, where that can be told.

What cannot be told apart counts against every request. Values only; no input or output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["Held", "Owners", "together"]

N = TypeVar("N", str, bytes)
Held = frozenset[int] | bool
"""What a copy holds: the keys of targets, none if nothing; or ``True`` where that it holds
something is all that is known."""


def together(held: Iterable[Held]) -> frozenset[int]:
    """Return the keys of all of some holdings; none where one of them cannot be told apart."""
    found: set[int] = set()
    for each in held:
        if each is True:
            return frozenset()
        found.update(each or ())
    return frozenset(found)


class Owners(Generic[N]):
    """Whose a needle is: from a piece of a record that goes to the keys of targets.

    A needle may be of several records. One of a record that no target names by its id is nobody's,
    and what holds it cannot be told apart.
    """

    def __init__(self) -> None:
        self._keys: dict[N, set[int]] = {}
        self._nobodys: set[N] = set()

    def add(self, needles: Iterable[N], keys: frozenset[int]) -> None:
        """Note whose some needles are."""
        for needle in needles:
            self._keys.setdefault(needle, set()).update(keys)
            if not keys:
                self._nobodys.add(needle)

    def __iter__(self) -> Iterator[N]:
        return iter(self._keys)

    def of(self, needles: Collection[N]) -> Held:
        """Return whose needles were seen."""
        if not self._nobodys.isdisjoint(needles):
            return True
        return frozenset(key for needle in needles for key in self._keys[needle])
