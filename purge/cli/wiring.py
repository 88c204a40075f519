"""The built-in adapters by name. Strings only: nothing is imported before it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from purge.registry import Registry

BUILTIN: Final = {
    "chroma": "purge_adapters.chroma:ChromaAdapter",
    "files": "purge_adapters.files:FilesAdapter",
    "json": "purge_adapters.json:JsonAdapter",
    "jsonl": "purge_adapters.jsonl:JsonlAdapter",
    "lines": "purge_adapters.lines:LinesAdapter",
    "markdown": "purge_adapters.markdown:MarkdownAdapter",
    "redis": "purge_adapters.redis:RedisAdapter",
    "restic": "purge_adapters.restic:ResticAdapter",
    "s3": "purge_adapters.s3:S3Adapter",
    "snapshots": "purge_adapters.snapshots:SnapshotsAdapter",
    "sql": "purge_adapters.sql:SqlAdapter",
}
SANDBOX: Final = "purge_adapters._sandbox"
"""Builds the stores of ``purge demo``; it needs drivers, so it lives beside the adapters."""


def registry() -> Registry:
    """Return a registry with the built-in adapters."""
    from purge.registry import Registry

    return Registry(BUILTIN)
