"""What ``purge check`` says of log files. Only reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from purge.adapter import Action, NotChecked, Site, Statement
from purge_adapters._codecs import Codec
from purge_adapters._file_checks import around, fault, so_many, writable
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_match import Look, read_log
from purge_adapters._jsonl_record import Entry

__all__ = ["check_logs"]

_COMPARED: Final = 200_000
"""For how many records it is looked at whether their ids are unique."""
_TOO_COMMON: Final = 5
"""From how many records for each value on a field is taken to be no id. A log that was resumed in
another file has its ids two or three times."""


_KINDS_SHOWN: Final = 5
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,8}")


@dataclass(slots=True)
class _Census:
    """What was counted in all files."""

    fields: Fields
    records: int = 0
    size: int = 0
    nameless: int = 0
    not_json: int = 0
    damaged: int = 0
    present: set[str] = field(default_factory=set)
    """Which of the mapped fields some record has."""
    ids: dict[int, int] = field(default_factory=dict)
    """Hash of an id to the hash of the first line that has it."""
    compared: int = 0
    repeated: int = 0
    codecs: Counter[str] = field(default_factory=Counter)
    read_only: list[str] = field(default_factory=list)
    """Files that can be read and, for what they are written in, not rewritten."""

    def count(self, entry: Entry) -> None:
        self.records += 1
        self.not_json += not entry.parsed
        self.damaged += entry.is_damaged
        self.present.update(f"scope {key}" for key in entry.scope)
        self.present.update(f"derived_from {name}" for name in entry.parents)
        if entry.subjects:
            self.present.add("subject")
        if not entry.ids:
            self.nameless += 1
        elif self.compared < _COMPARED:
            self.compared += 1
            line = hash(entry.data)
            self.repeated += self.ids.setdefault(hash(entry.name), line) != line

    def mapped(self) -> Iterator[str]:
        """Yield the names of the mapped fields."""
        yield from (f"scope {key}" for key in self.fields.scope)
        yield from (f"derived_from {name}" for name, path in self.fields.parents.items() if path)
        if self.fields.subject:
            yield "subject"


def check_logs(
    site: Site,
    files: Sequence[Path],
    gaps: Sequence[NotChecked],
    others: Sequence[Path],
    fields: Fields,
) -> Iterator[Statement]:
    """Yield what is true of the files of a site, faults included.

    Args:
        site: the site.
        files: its files.
        gaps: what could not be looked at.
        others: files in its folders that are no logs by their names.
        fields: what the fields of a record mean.
    """
    census = _Census(fields)
    for gap in gaps:
        yield fault(gap)
    for path in files:
        look = Look.at(path, site)
        for _, entry in read_log(look, fields):
            census.count(entry)
        census.size += look.size
        census.codecs[look.codec.value] += 1
        if look.wide or look.codec in (Codec.BZIP2, Codec.XZ):
            census.read_only.append(look.where)
        for gap in look.gaps:
            yield fault(gap)
    yield from _counted(census, len(files))
    yield from _besides(others)
    yield from _fitting(census, site)
    yield from writable(site, files, census.read_only)
    yield from around(site, files)


def _counted(census: _Census, files: int) -> Iterator[Statement]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(census.codecs.items()))
    yield Statement(
        f"{so_many(files, 'file')} ({kinds or 'none'}), {census.size} bytes, "
        f"{so_many(census.records, 'record')}; all of it is read to tell what is left of one."
    )
    if census.not_json - census.damaged:
        yield Statement(
            f"Not JSON, and searched as text: {so_many(census.not_json - census.damaged, 'line')}."
        )
    if census.damaged:
        yield Statement(
            f"Damaged, neither JSON nor text: {so_many(census.damaged, 'line')}. While they are "
            "there, nothing can be confirmed. Repair or remove them.",
            ok=False,
        )


def _besides(others: Sequence[Path]) -> Iterator[Statement]:
    if others:
        kinds = Counter(path.suffix if _SUFFIX.fullmatch(path.suffix) else "*" for path in others)
        most = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(_KINDS_SHOWN))
        yield Statement(
            f"Other files in its folders, which are not looked at: {len(others)} ({most}). Name "
            "those that may hold the same words in 'path' or in a site of their own."
        )


def _fitting(census: _Census, site: Site) -> Iterator[Statement]:
    """Compare the manifest's fields with what the records have."""
    records = census.records
    if census.fields.id and records:
        sentence = f"Without the id field, and named after their content: {census.nameless} of "
        yield Statement(f"{sentence}{so_many(records, 'record')}.", ok=census.nameless < records)
    if census.repeated:
        yield Statement(
            f"With an id that a different line has too: {so_many(census.repeated, 'line')}. "
            "Lines with one id are one record and go together.",
            ok=census.compared < _TOO_COMMON * len(census.ids),
        )
    for name in census.mapped():
        if records and name not in census.present:
            yield Statement(f"No record has the field that '{name}' names.", ok=False)
    if site.action is Action.BLANK and not census.fields.text:
        yield Statement("'action: blank' needs 'text': the fields that are to be emptied.", False)
