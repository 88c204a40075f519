"""``restic``: copies of other sites in the snapshots of a restic repository.

A backup is no normal read: ``find`` yields no records. What a snapshot holds is found by content:
every distinct file of the covered sites is looked at once, by the adapter of its own site, in a
private copy. Snapshots are waited for (``policy: wait``, with the date on which the last one
goes), or replaced by ones without the item (``policy: rewrite``). Locks are never forced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    EvidenceKind,
    Examined,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Snapshot,
    Statement,
    guard,
)
from purge.targets import Targets
from purge_adapters._restic_settings import ResticSettings

__all__ = ["ResticAdapter", "ResticSettings"]


class ResticAdapter(Adapter[ResticSettings]):
    """The snapshots of one repository."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="restic",
        summary="Snapshots of other sites in a restic repository.",
        evidence=EvidenceKind.BYTES,
        actions=frozenset({Action.DELETE, Action.REPORT}),
        extra="restic",
        modules=("plumbum",),
        programs=("restic",),
    )
    Settings: ClassVar[type] = ResticSettings

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the snapshots with the covered sites that each holds in full, newest first."""
        from purge_adapters._restic_check import snapshots

        yield from snapshots(self.site, self.settings)

    def check(self) -> Iterator[Statement]:
        """Say what the repository is, what it holds, and what the policy means."""
        from purge_adapters._restic_check import check

        yield from check(self.site, self.settings)

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Find no record: a backup is not read by applications. Its copies are residue."""
        from purge_adapters._restic_repository import Repository

        del targets
        with Repository.open(self.site, self.settings) as repository:
            count = len(repository.snapshots())
        yield Examined(records=count, note="snapshots listed")

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Remove nothing: there is never a record to remove."""
        guard(removals)
        yield from ()

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Replace snapshots by ones without the item, and prune; see the contract."""
        guard(residue)
        from purge_adapters._restic_rewrite import rewrite

        yield from rewrite(self.site, self.settings, residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield what the snapshots, and data that no snapshot needs any more, still hold."""
        from purge_adapters._restic_residue import residue

        yield from residue(self.site, self.settings, targets)
