"""Files of structured JSON: whole documents, and lines that are linked with each other.

What is in them is said by a description of the format, a preset or the user's own. Edits are made
in place, so that everything else stays byte for byte; links, lists and counts that would point to
what is gone are kept in step. Copies beside the files are looked at and left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    EvidenceKind,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    ProblemCode,
    Removal,
    Residue,
    Statement,
    guard,
)
from purge.errors import Permanent
from purge.targets import Targets
from purge_adapters._document_check import check_documents
from purge_adapters._document_find import search
from purge_adapters._document_remove import remove
from purge_adapters._document_residue import examine
from purge_adapters._document_source import Source
from purge_adapters._file_looks import take_abandoned
from purge_adapters._files import footprint, place, walk
from purge_adapters._format_model import Format
from purge_adapters._format_reading import FormatFault, read_format
from purge_adapters._json_fields import Fields
from purge_adapters._presets import preset, preset_names
from purge_adapters._shadows import is_variant

__all__ = ["JsonAdapter", "JsonSettings"]

_TEXTUAL: Final = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".html",
    ".htm",
    ".txt",
    ".md",
    ".csv",
    ".log",
    ".yaml",
    ".yml",
    ".xml",
)
"""Files of no declared kind that are looked into when a whole folder is named."""


@dataclass(frozen=True)
class JsonSettings:
    """The keys of a ``json`` site in the manifest, besides the general ones."""

    path: str | list[str] = field(
        metadata={
            "description": "A file, a folder (all files below it of the kinds that the format "
            "names) or a glob in which ** stands for any folders; or a list of them."
        }
    )
    format: str | dict[str, Any] = field(
        metadata={
            "description": "The name of a preset (chatgpt, claude-code, langfuse, llamaindex, "
            "mcp-memory, mem0), or a description: which files there are, where their records "
            "stand, what hangs on them."
        }
    )

    def __post_init__(self) -> None:
        """Read the description, so that what is wrong with it is said with the manifest.

        Raises:
            FormatFault: there is no such preset, or the description is not understood.
        """
        self.described()

    def described(self) -> Format:
        """Return what the format says. Raises ``FormatFault``."""
        if not isinstance(self.format, str):
            return read_format(self.format)
        found = preset("json", self.format)
        if found is None:
            known = preset_names("json")
            close = get_close_matches(self.format, known, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise FormatFault(
                f"The adapter 'json' has no format of that name.{hint} It has: {', '.join(known)}."
            )
        return read_format(found, self.format)


class JsonAdapter(Adapter[JsonSettings]):
    """Files of structured JSON."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="json",
        summary="Structured JSON by a declared format: documents and linked lines.",
        evidence=EvidenceKind.BYTES,
        actions=frozenset({Action.DELETE, Action.BLANK, Action.REPORT}),
        extra="json",
    )
    Settings = JsonSettings

    @property
    def _patterns(self) -> list[str]:
        path = self.settings.path
        return [path] if isinstance(path, str) else path

    @cached_property
    def _format(self) -> Format:
        return self.settings.described()

    @cached_property
    def _suffixes(self) -> tuple[str, ...]:
        """The ends of the names of the files that the format names."""
        found = {PurePosixPath(kind.path).suffix for kind in self._format.files}
        plain = {suffix for suffix in found if suffix and "*" not in suffix} or {".json"}
        return tuple(sorted({*plain, *(f"{s}{c}" for s in plain for c in (".gz", ".zst"))}))

    def footprint(self) -> tuple[Path, ...]:
        """The files and folders that ``path`` names."""
        return footprint(self.site, self._patterns)

    def _look(self) -> tuple[Source, list[NotChecked]]:
        """Return what there is to look at, and what cannot be."""
        if not self._patterns:
            raise Permanent(
                f"Site '{self.site.name}' names no path.", problem=ProblemCode.UNREACHABLE
            )
        files: list[tuple[Path, int]] = []
        others: list[Path] = []
        gaps: list[NotChecked] = []
        for item in walk(self.site, self._patterns):
            if isinstance(item, NotChecked):
                gaps.append(item)
                continue
            kind = self._format.kind_of(place(item, self.site))
            if kind is None:
                others.append(item)
            else:
                files.append((item, self._format.files.index(kind)))
        names = {(path.parent, path.name) for path, _ in files}
        source = Source(
            self.site,
            self._format,
            Fields.of(self.site, None, (), None),
            files,
            [path for path in others if self._is_text(path, names)],
        )
        return source, gaps

    def _is_text(self, path: Path, names: set[tuple[Path, str]]) -> bool:
        """Whether a file of no declared kind is looked into: a copy of one is a shadow."""
        if any(folder == path.parent and is_variant(path.name, name) for folder, name in names):
            return False
        return path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(_TEXTUAL)

    def check(self) -> Iterator[Statement]:
        """Say what is true of the files, and whether the description fits them."""
        yield from check_documents(*self._look())

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield every record, or part of one, that holds a target."""
        source, gaps = self._look()
        yield from gaps
        yield from search(source, targets)

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Take records out, with what hangs on them, and keep the rest in step."""
        guard(removals)
        source, _ = self._look()
        yield from remove(source, removals)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Remove what an interrupted replacement left. Other copies are not ours to delete."""
        yield from take_abandoned(self.site, residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies that outlive removal, in the files and around them."""
        source, gaps = self._look()
        yield from gaps
        yield from examine(source, self._patterns, self._suffixes, targets)
