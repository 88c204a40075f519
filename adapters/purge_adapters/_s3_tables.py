"""Tables over objects (Delta Lake, Iceberg, Hudi): which objects belong to one. Only reads.

Such a table lists its files, with their sizes and counts, in a log of its own, and keeps older
states. A file that is written again or taken away behind its back breaks every read of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._s3_store import Store

__all__ = ["TABLE", "Tables"]

TABLE: Final = (
    "it belongs to a table that keeps a log and older states of its own (Delta Lake, Iceberg or "
    "Hudi). Delete the rows with the table's engine and let it expire its snapshots and vacuum; "
    "what is in its files is looked at here as long as they are there"
)
_COLUMNAR: Final = (".parquet", ".orc", ".avro")
_LOGS: Final = (("_delta_log/", ".json"), (".hoodie/", ""), ("metadata/", ".metadata.json"))
"""Where a table keeps its log, and how a file of it ends (Delta protocol, "File Types"; Hudi
timeline; Iceberg table specification, "Table Metadata")."""


@dataclass(slots=True)
class Tables:
    """The tables of a bucket, as far as somebody asked for them."""

    store: Store
    _known: dict[str, bool] = field(default_factory=dict, repr=False)

    def have(self, key: str) -> bool:
        """Whether an object is a file of a table, as far as this client may list the bucket.

        Raises:
            StoreError: the bucket cannot be listed below the site's own prefix.
        """
        if not key.lower().endswith(_COLUMNAR):
            return False
        own = self.store.places.listed
        folder = key.rpartition("/")[0]
        while True:
            try:
                if self._is_table(folder):
                    return True
            except Permanent as error:
                # A policy may allow the site's prefix alone; a partition of a table is then a
                # folder of files like any other.
                if error.problem != ProblemCode.NO_PERMISSION or folder.startswith(own):
                    raise
            if not folder:
                return False
            folder = folder.rpartition("/")[0]

    def _is_table(self, folder: str) -> bool:
        known = self._known.get(folder)
        if known is None:
            base = f"{folder}/" if folder else ""
            known = any(self.store.has_any(base + log, ending) for log, ending in _LOGS)
            self._known[folder] = known
        return known
