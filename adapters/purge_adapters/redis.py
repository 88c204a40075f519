"""Redis and what speaks like it: records in keys, or in the elements of their values.

Keys and values are opaque bytes. Removing happens in transactions that notice when somebody else
writes meanwhile. What was deleted is then looked for in the append-only file, the dump, the slow
log, the unread parts of streams and the replicas; where the files are out of reach, that is said.
The driver has the same name as this module; it is imported only where something is asked of a
server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    EvidenceKind,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Statement,
    guard,
)
from purge.targets import Targets
from purge_adapters._redis_settings import RedisSettings

__all__ = ["RedisAdapter", "RedisSettings"]


class RedisAdapter(Adapter[RedisSettings]):
    """Keys of one server, of a cluster's masters, and of the replicas that are named."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="redis",
        summary="keys of Redis, or the elements of their values",
        evidence=EvidenceKind.BYTES,
        actions=frozenset(Action),
        extra="redis",
        modules=("redis",),
    )
    Settings: ClassVar[type] = RedisSettings

    def check(self) -> Iterator[Statement]:
        """Say what the server is, what it holds and what can be proved; see the contract."""
        from purge_adapters._redis_check import check

        yield from check(self.site, self.settings)

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that hold a target; see the contract."""
        from purge_adapters._redis_find import find

        yield from find(self.site, self.settings, targets)

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Unlink the keys, or take out the elements; see the contract."""
        guard(removals)
        from purge_adapters._redis_remove import remove

        yield from remove(self.site, self.settings, removals)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Rewrite the files that the server keeps anyway; see the contract."""
        from purge_adapters._redis_sanitize import sanitize

        yield from sanitize(self.site, self.settings, residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies that outlive removal; see the contract."""
        from purge_adapters._redis_residue import residue

        yield from residue(self.site, self.settings, targets)
