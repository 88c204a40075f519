"""Formats that are made of files of several kinds, each served by the adapter that knows it.

What the kinds are is a preset's or the manifest's to say; this module only gives it a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from purge_adapters._composite import Composite
from purge_adapters._composite_format import FilesFormat, check_format

__all__ = ["FilesAdapter", "FilesSettings"]


@dataclass(frozen=True)
class FilesSettings:
    """What the manifest says of a site of files of several kinds."""

    path: str | list[str] = field(
        metadata={
            "description": "The folder in which the files lie, or several; or one file of them."
        }
    )
    format: str | FilesFormat = field(
        metadata={
            "description": "The name of a preset, or a description: {members: [{adapter: markdown, "
            "path: 'notes/**/*.md', record: file}, ...]}."
        }
    )

    def __post_init__(self) -> None:
        check_format(self.format, {})


class FilesAdapter(Composite):
    """Finds records in files of several kinds, and takes them or their text out."""

    Settings: ClassVar[type] = FilesSettings
