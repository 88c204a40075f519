"""Objects in S3: whole ones, and records inside of them, with every version that is kept.

Removal never makes an older version readable: what reads return is taken away by a delete marker
or a new version, and the versions below go by their ids. Unchanged objects are never written.
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
    Site,
    Statement,
    guard,
)
from purge.targets import Targets
from purge_adapters._s3_check import check
from purge_adapters._s3_find import find
from purge_adapters._s3_look import Reader
from purge_adapters._s3_remove import remove
from purge_adapters._s3_residue import examine
from purge_adapters._s3_sanitize import sanitize
from purge_adapters._s3_settings import S3Settings
from purge_adapters._s3_store import Store

__all__ = ["S3Adapter", "S3Settings"]


class S3Adapter(Adapter[S3Settings]):
    """A bucket, or a part of it."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="s3",
        summary="Objects in S3 and compatible stores, and records in JSONL, JSON, CSV and Parquet.",
        evidence=EvidenceKind.API,
        actions=frozenset({Action.DELETE, Action.REPORT}),
        extra="s3",
        modules=("boto3",),
    )
    Settings = S3Settings

    def __init__(self, site: Site, settings: S3Settings) -> None:
        super().__init__(site, settings)
        self._store = Store(settings, site.clock)

    def close(self) -> None:
        """Let go of the connections."""
        self._store.close()

    def check(self) -> Iterator[Statement]:
        """Say what is true of the bucket: versions, locks, rules, replicas, and its records."""
        yield from check(self.site, self._store)

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield every record in the current objects that a target names."""
        yield from find(Reader(self.site, self._store, targets))

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Take objects away, or records out of objects, on the condition that they are the same."""
        guard(removals)
        yield from remove(self.site, self._store, removals)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Remove versions by their ids, and abort uploads."""
        yield from sanitize(self._store, residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the versions, hidden objects and unfinished uploads that hold a target."""
        yield from examine(Reader(self.site, self._store, targets))
