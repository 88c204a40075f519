"""The files of a site and their records, unit by unit. Only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from purge.adapter import NotChecked, ProblemCode, Site
from purge_adapters._document_files import DocumentFile, Unit, read_file
from purge_adapters._document_items import Item
from purge_adapters._document_records import columns_of, read_unit
from purge_adapters._format_model import Format, RecordKind
from purge_adapters._json_fields import Fields

__all__ = ["Source", "items_of"]


@dataclass(frozen=True, slots=True)
class Source:
    """What a look goes over: the files of a site and what their format says."""

    site: Site
    format: Format
    fields: Fields
    files: Sequence[tuple[Path, int]]
    """Each with the number of its kind in the format."""
    others: Sequence[Path] = ()
    """Files of no declared kind."""

    def documents(self) -> Iterator[DocumentFile]:
        """Yield the files, each ready to be read."""
        for path, number in self.files:
            yield DocumentFile.at(path, self.format.files[number], self.site)


def items_of(
    file: DocumentFile,
    fields: Fields,
    *,
    numbers: bool = False,
    wanted: Callable[[Unit], bool] | None = None,
) -> Iterator[list[Item]]:
    """Yield the records of a file, unit by unit; the frame around them is the last of each.

    Args:
        file: the file.
        fields: what the site maps.
        numbers: numbers count as strings as well.
        wanted: which units to take apart, of a file with one record in each; without it, all.
    """
    for unit in read_file(file):
        if wanted is not None and not wanted(unit):
            file.records += 1
            continue
        found = read_unit(unit, file.kind, file.key, fields, numbers=numbers)
        if any(_is_uneven(record, unit.entry.value) for record in file.kind.records):
            file.gaps.append(
                NotChecked(
                    file.where + unit.place,
                    "columns that belong together are of different lengths, so that nobody can "
                    "tell its rows; it was searched as text",
                    ProblemCode.CORRUPT,
                )
            )
        if any(record.at.is_shut(unit.entry.value) for record in file.kind.records):
            file.gaps.append(
                NotChecked(
                    file.where + unit.place,
                    "a string in which the format declares JSON holds none; it was searched as "
                    "text, and what records it has is not known",
                    ProblemCode.CORRUPT,
                )
            )
        file.records += len(found) - 1
        yield found


def _is_uneven(record: RecordKind, value: object) -> bool:
    """Whether columns that belong together are of different lengths."""
    if not record.columns:
        return False
    found = (columns_of(record, inner) for _, inner in record.at.places(value))
    return any(len({len(it) for it in columns.values()}) > 1 for columns in found if columns)
