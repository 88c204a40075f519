"""Which elements of a key may not stay without each other: calls and what answers them.

This module does no input or output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from purge_adapters._json_fields import scalars, values_at
from purge_adapters._json_text import Path
from purge_adapters._redis_records import Item
from purge_adapters._redis_settings import Pairs
from purge_adapters._redis_values import LIST


def companions(
    items: Sequence[Item], named: Collection[int], pairs: Pairs
) -> dict[int, tuple[int, ...]]:
    """Return which elements go because others do.

    Args:
        items: all elements of one value, in its order.
        named: the positions of those that go by themselves.
        pairs: what ties them.

    Returns:
        By the position of one that goes by itself, the positions of those that go with it; each
        of them once.
    """
    group = list(range(len(items)))

    def leader(at: int) -> int:
        while group[at] != at:
            at = group[at]
        return at

    for one, other in _ties(items, pairs):
        low, high = sorted((leader(one), leader(other)))
        group[high] = low
    by_leader: dict[int, int] = {}
    for at in sorted(named):
        by_leader.setdefault(leader(at), at)
    found: dict[int, list[int]] = {}
    for at in range(len(items)):
        first = by_leader.get(leader(at))
        if first is not None and at not in named:
            found.setdefault(first, []).append(at)
    return {at: tuple(others) for at, others in found.items()}


def _ties(items: Sequence[Item], pairs: Pairs) -> Iterator[tuple[int, int]]:
    """Yield the positions of a call and of what answers it.

    Ids of calls may be used again in one conversation: the last call before counts, and where
    none stands before, the first one after.
    """
    calls = [tuple(path.split(".")) for path in pairs.calls]
    result = tuple(pairs.result.split("."))
    order = list(range(len(items)))
    value = items[0].value_of if items else None
    if pairs.newest_first and value is not None and value.kind == LIST:
        order.reverse()
    last: dict[str, int] = {}
    early: dict[str, list[int]] = {}
    for at in order:
        for path in calls:
            for name in _ids(items[at], path):
                last[name] = at
                for before in early.pop(name, ()):
                    yield at, before
        for name in _ids(items[at], result):
            if name in last:
                yield last[name], at
            else:
                early.setdefault(name, []).append(at)


def _ids(item: Item, path: Path) -> Iterator[str]:
    for _, below in values_at(item.value, path):
        yield from scalars(below)
