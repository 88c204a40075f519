"""The manifest: which sites there are, how they derive from each other, and the safety limits.

Importing this package reads nothing and imports next to nothing: each name is fetched from its
module when it is asked for, so that a command that only wants to know where the ledger is does not
pay for the checking of manifests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from purge.manifest.find import LedgerPlace, find_manifest, locate_ledger
    from purge.manifest.load import load_manifest
    from purge.manifest.model import (
        Catalogue,
        Manifest,
        Markers,
        MarkerSource,
        Retention,
        Safety,
        SiteEntry,
        Snapshot,
    )
    from purge.manifest.redact import redacted
    from purge.manifest.schema import manifest_schema
    from purge.manifest.secret import Secret

__all__ = [
    "Catalogue",
    "LedgerPlace",
    "Manifest",
    "MarkerSource",
    "Markers",
    "Retention",
    "Safety",
    "Secret",
    "SiteEntry",
    "Snapshot",
    "find_manifest",
    "load_manifest",
    "locate_ledger",
    "manifest_schema",
    "redacted",
]

_ELSEWHERE: Final = {
    "LedgerPlace": "find",
    "Secret": "secret",
    "find_manifest": "find",
    "load_manifest": "load",
    "locate_ledger": "find",
    "manifest_schema": "schema",
    "redacted": "redact",
}
"""Where a name comes from; all others from ``model``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'model')}"), name)
