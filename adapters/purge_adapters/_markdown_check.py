"""What ``purge check`` says of a Markdown site. Reads only."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from purge.adapter import NotChecked, Site, Statement
from purge.errors import PurgeError
from purge_adapters._files import folders
from purge_adapters._markdown_files import Files, Opened
from purge_adapters._markdown_links import Index
from purge_adapters._markdown_records import FieldMap, Grain, grain_in
from purge_adapters._markdown_units import note_id, units_of
from purge_adapters._text_looks import surroundings


@dataclass(slots=True)
class _Count:
    """What was seen, added up over the files of a site."""

    files: int = 0
    bytes: int = 0
    records: int = 0
    named: int = 0
    named_notes: int = 0
    unlinked: int = 0
    broken: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)
    folders: set[Path] = field(default_factory=set)


def check_site(
    site: Site, files: Files, grain: Grain, fields: FieldMap, lists: Sequence[str] = ()
) -> Iterator[Statement]:
    """Yield what is true of a site and every fault that would make a run go wrong."""
    count = _Count()
    index = Index(lists, fields.reader)
    try:
        for item in files.read():
            if isinstance(item, NotChecked):
                yield Statement(f"{item.where} is not looked at: {item.why}.", ok=False)
            else:
                _add(count, item, grain, fields)
                index.take(item, units_of(item.note, grain, fields) if lists else ())
        covered = folders(site, files.patterns)
    except PurgeError as error:
        yield Statement(str(error), ok=False)
        return
    yield Statement(
        f"{_number(count.files, 'file')}, {count.bytes} bytes, "
        f"{_number(count.records, f'record ({grain.value})', f'records ({grain.value})')}, "
        f"{count.named} with an id of their own."
    )
    yield from _faults(count, fields)
    for place, line in index.dead():
        yield Statement(f"{place}, line {line} links to a note that is not there.")
    yield from surroundings({*count.folders, *covered})
    yield Statement(
        "Every byte of every file is read, and each belongs to a record or to the structure "
        "around it: 'confirmed-deleted' is proved by bytes where no copy lies beside the files."
    )


def _add(count: _Count, item: Opened, grain: Grain, fields: FieldMap) -> None:
    count.files += 1
    count.bytes += item.size
    count.folders.add(item.path.parent)
    own = grain_in(item.note, grain)
    units = [unit for unit in units_of(item.note, grain, fields) if unit.part.grain is own]
    count.records += len(units)
    count.named += sum(unit.named for unit in units)
    count.named_notes += note_id(item.note, fields) is not None
    count.ids.update(unit.id for unit in units if unit.named)
    if any(fields.parents.values()):
        count.unlinked += sum(not unit.said.parents for unit in units)
    if item.note.front.size and not any(
        line.strip() for line in item.note.lines.lines[item.note.front.size :]
    ):
        count.empty.append(item.shown)
    if item.note.front.broken:
        count.broken.append(item.shown)
    if item.note.lines.damaged:
        count.damaged.append(item.shown)
    elif not item.note.lines.faithful:
        count.foreign.append(item.shown)
    if not os.access(item.path, os.W_OK) or not os.access(item.path.parent, os.W_OK | os.X_OK):
        count.fixed.append(item.shown)


def _faults(count: _Count, fields: FieldMap) -> Iterator[Statement]:
    if not count.files:
        yield Statement("No file is there. Is the path right?", ok=False)
    for places, why in (
        (count.broken, "has front matter that is not valid YAML: its fields cannot be read"),
        (count.damaged, "holds NUL characters as no text does: it may be damaged"),
        (count.foreign, "is neither UTF-8 nor UTF-16: only ASCII phrases can be found in it"),
        (count.fixed, "or its folder may not be written to: nothing can be removed from it"),
    ):
        for place in places:
            yield Statement(f"{place} {why}.", ok=False)
    for place in count.empty:
        yield Statement(f"{place} has front matter and nothing else.")
    doubled = sum(1 for times in count.ids.values() if times > 1)
    if doubled:
        yield Statement(
            f"{_number(doubled, 'id stands', 'ids stand')} in more than one place; a request for "
            "one takes all of its places.",
            ok=False,
        )
    if fields.id and not fields.id.startswith("$") and count.records and not count.named:
        if count.named_notes:
            yield Statement(
                f"The field '{fields.id}' stands in the front matter of "
                f"{_number(count.named_notes, 'note')}: it names all records of the note."
            )
        else:
            yield Statement(f"No record has the field '{fields.id}' that 'id' names.", ok=False)
    if count.unlinked:
        yield Statement(
            f"{_number(count.unlinked, 'record does', 'records do')} not say what they derive "
            "from; what they paraphrase cannot be ruled out."
        )


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
