"""A Redis site of a test: the adapter driven through the order of a run, without a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from purge.adapter import Action
from purge.testing.case import Case
from purge.testing.harness import Harness, Planted
from purge_adapters.redis import RedisAdapter


class RedisSite(Harness):
    """Settings for a server that a test fills and reads by itself."""

    adapter = RedisAdapter

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder)
        self._settings = settings

    def make(self) -> None: ...

    def settings(self, action: Action) -> Mapping[str, Any]:
        return self._settings

    def plant(self, records: Sequence[Planted]) -> None: ...

    def change(self, record: Planted) -> None: ...

    def read(self) -> Mapping[str, Planted]:
        return {}


def site(folder: Path, action: Action = Action.DELETE, **settings: Any) -> Case:
    """Return a site with these settings."""
    return Case(RedisSite(folder, settings), action)


def names(items: Sequence[Any]) -> Iterator[str]:
    """Yield the places that observations name."""
    yield from (item.where for item in items)
