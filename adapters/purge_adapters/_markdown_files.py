"""The files of a Markdown site, read as notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from purge.adapter import Site
from purge_adapters._markdown_records import Note, read_note
from purge_adapters._text_files import DAMAGED, TextFiles
from purge_adapters._text_files import Opened as _Opened

__all__ = ["DAMAGED", "SUFFIXES", "Files", "Opened"]

_ENDS: Final = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".txt")
SUFFIXES: Final = tuple(form for end in _ENDS for form in (end, end.upper(), end.capitalize()))
"""Which files of a folder are notes, by the ends of their names."""

Opened = _Opened[Note]


class Files(TextFiles[Note]):
    """The notes that a site's ``path`` names."""

    def __init__(self, site: Site, patterns: Sequence[str]) -> None:
        super().__init__(site, patterns, SUFFIXES, read_note)
