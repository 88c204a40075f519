"""Logs as JSON Lines: one record a line, in plain, gzip or zstd files.

A file is never edited behind a writer's back and never partly replaced; kept lines stay byte for
byte. What cannot be parsed is searched as text. Copies beside the files are looked at and left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from purge.adapter import (
    Action,
    AdapterInfo,
    EvidenceKind,
    Examined,
    Finding,
    Marker,
    NotAMarker,
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
from purge_adapters._composite import WithFormat
from purge_adapters._composite_format import FilesFormat, check_format
from purge_adapters._file_looks import shared_files, take_abandoned
from purge_adapters._files import footprint, relative, walk
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_check import check_logs
from purge_adapters._jsonl_edit import edit_log, leave, parts_of
from purge_adapters._jsonl_markers import markers_in, strike_in, strikes_of
from purge_adapters._jsonl_match import search
from purge_adapters._jsonl_residue import examine

__all__ = ["JsonlAdapter", "JsonlSettings"]

_SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst")


@dataclass(frozen=True)
class JsonlSettings:
    """The keys of a ``jsonl`` site in the manifest, besides the general ones."""

    path: str | list[str] = field(
        metadata={
            "description": "A file, a folder (all *.jsonl, *.ndjson below it, also .gz and .zst) "
            "or a glob in which ** stands for any folders; or a list of them."
        }
    )
    id: str | None = field(
        default=None,
        metadata={
            "description": "The field with the record's id, a dotted path (message.id). Lines "
            "with the same id are one record and go together. Without it, a record is named "
            "after its content."
        },
    )
    text: list[str] = field(
        default_factory=list,
        metadata={
            "description": "The fields that 'action: blank' empties, besides those that matched. "
            "A path to an object or list means all the text below it."
        },
    )
    time: str | None = field(
        default=None,
        metadata={"description": "The field that says when the record was made."},
    )
    format: str | FilesFormat | None = field(
        default=None,
        metadata={
            "description": "Instead of all other keys but 'path': the name of a preset, or a "
            "description, as for the adapter 'files', which then serves the site."
        },
    )

    def __post_init__(self) -> None:
        check_format(self.format, {"id": self.id, "text": self.text, "time": self.time})


class JsonlAdapter(WithFormat[JsonlSettings]):
    """JSON Lines files."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="jsonl",
        summary="Logs with one JSON record a line; plain, gzip or zstd.",
        evidence=EvidenceKind.BYTES,
        actions=frozenset({Action.DELETE, Action.BLANK, Action.REPORT}),
        extra="jsonl",
    )
    Settings = JsonlSettings

    @property
    def _patterns(self) -> list[str]:
        path = self.settings.path
        return [path] if isinstance(path, str) else path

    @property
    def _fields(self) -> Fields:
        return Fields.of(self.site, self.settings.id, self.settings.text, self.settings.time)

    def footprint(self) -> tuple[Path, ...]:
        """The files and folders that ``path`` names."""
        return footprint(self.site, self._patterns)

    def own_files(self) -> Iterator[Path | NotChecked]:
        """Yield the files of the site, and what could not be listed."""
        return walk(self.site, self._patterns, _SUFFIXES)

    def _files(self) -> tuple[list[Path], list[NotChecked]]:
        if not self._patterns:
            raise Permanent(
                f"Site '{self.site.name}' names no path.", problem=ProblemCode.UNREACHABLE
            )
        found = list(walk(self.site, self._patterns, _SUFFIXES))
        return (
            [item for item in found if isinstance(item, Path)],
            [item for item in found if isinstance(item, NotChecked)],
        )

    def check(self) -> Iterator[Statement]:
        """Say what is true of the files and of what lies around them."""
        files, gaps = self._files()
        everything = {it for it in walk(self.site, self._patterns) if isinstance(it, Path)}
        yield from check_logs(self.site, files, gaps, sorted(everything - set(files)), self._fields)

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield every record that holds a target, one for each id."""
        files, gaps = self._files()
        yield from gaps
        yield from search(self.site, files, self._fields, targets)

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Delete or blank records, file by file."""
        guard(removals)
        files, _ = self._files()
        shared = {gap.where: gap for gap in shared_files(files, self.site)}
        told: set[tuple[str, str]] = set()
        for name, parts in parts_of(removals).items():
            path = self.site.path(name)
            where = relative(path, self.site)
            if path not in files:
                left = leave(parts, ProblemCode.UNREACHABLE, f"{where} is not there any more.")
            elif where in shared:
                left = leave(
                    parts,
                    ProblemCode.UNSUPPORTED,
                    f"{where}: the file has other names (hard links), which would keep the text. "
                    "Name them in the site as well, or copy the file to part them.",
                )
            else:
                left = edit_log(path, where, parts, self._fields, self.site.action)
            for item in left:
                record = (item.match.id, item.match.part)
                if record not in told:
                    told.add(record)
                    yield item

    def markers(
        self, where: Mapping[str, str]
    ) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
        """Yield the marker lines in the strings of all records, and what is like them."""
        files, gaps = self._files()
        yield from gaps
        yield from markers_in(self.site, files, self._fields, where)

    def strike(self, markers: Sequence[tuple[Marker, str]]) -> Iterator[NotChecked]:
        """Strike marker lines, file by file; every other byte stays as it is written."""
        guard(markers)
        files, _ = self._files()
        shared = {gap.where: gap for gap in shared_files(files, self.site)}
        for name, strikes in strikes_of(markers).items():
            path = self.site.path(name)
            where = relative(path, self.site)
            if path not in files:
                for one in strikes:
                    yield NotChecked(
                        one.marker.where, "its file is not there any more", ProblemCode.UNREACHABLE
                    )
            elif where in shared:
                yield shared[where]
            else:
                yield from strike_in(path, where, strikes, self._fields)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Remove what an interrupted replacement left. Other copies are not ours to delete."""
        yield from take_abandoned(self.site, residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies that outlive removal, in the files and around them."""
        files, gaps = self._files()
        yield from gaps
        yield from examine(self.site, files, self._patterns, _SUFFIXES, self._fields, targets)
