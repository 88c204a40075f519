"""What ``purge check`` says of files of declared formats. Only reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import Action, NotChecked, Statement
from purge_adapters._codecs import Codec
from purge_adapters._document_items import Item
from purge_adapters._document_links import Web
from purge_adapters._document_source import Source, items_of
from purge_adapters._file_checks import around, fault, so_many, writable
from purge_adapters._files import relative
from purge_adapters._format_model import FileKind, Last, RecordKind, Taking
from purge_adapters._format_routes import Every

__all__ = ["check_documents"]

_SHOWN: Final = 5


@dataclass(slots=True)
class _Census:
    """What was counted in all files."""

    size: int = 0
    not_json: int = 0
    records: Counter[str] = field(default_factory=Counter)
    nameless: Counter[str] = field(default_factory=Counter)
    torn: Counter[str] = field(default_factory=Counter)
    with_text: Counter[str] = field(default_factory=Counter)
    reached: set[tuple[str, str]] = field(default_factory=set)
    """Kinds of files, and the routes of records that lead somewhere in one of them."""
    met: set[str] = field(default_factory=set)
    """The kinds of files that are there, by their patterns."""
    present: set[str] = field(default_factory=set)
    read_only: list[str] = field(default_factory=list)

    def count(self, item: Item) -> None:
        name = item.kind.name
        self.records[name] += 1
        self.torn[name] += not item.unit.entry.parsed
        self.nameless[name] += bool(item.kind.id) and item.id is None
        self.with_text[name] += bool(item.text)
        self.present.update(f"scope {key}" for key in item.scope)
        self.present.update(f"derived_from {site}" for site in item.parents)
        if item.subjects:
            self.present.add("subject")


def check_documents(source: Source, gaps: Sequence[NotChecked]) -> Iterator[Statement]:
    """Yield what is true of the files of a site, faults included."""
    census = _Census()
    web = Web(source.format)
    for gap in gaps:
        yield fault(gap)
    for file in source.documents():
        for found in items_of(file, source.fields):
            census.met.add(file.kind.path)
            census.not_json += not found[-1].unit.entry.parsed
            _reach(census, file.kind, found[-1].value)
            for item in found:
                web.note(item)
            for item in found[:-1]:
                census.count(item)
        census.size += file.size
        if file.wide or file.codec in (Codec.BZIP2, Codec.XZ):
            census.read_only.append(file.where)
        for gap in file.gaps:
            yield fault(gap)
    yield from _counted(census, source)
    yield from _fitting(census, source)
    yield from _links(web)
    yield from _removal(source)
    files = [path for path, _ in source.files]
    yield from writable(source.site, files, census.read_only)
    yield from around(source.site, files)


def _reach(census: _Census, kind: FileKind, value: object) -> None:
    for record in kind.records:
        steps = record.at.steps
        while steps and isinstance(steps[-1], Every):
            steps = steps[:-1]
        shorter = type(record.at)(record.at.written, steps)
        if any(True for _ in shorter.places(value)):
            census.reached.add((kind.path, record.at.written))


def _counted(census: _Census, source: Source) -> Iterator[Statement]:
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(census.records.items()))
    yield Statement(
        f"{so_many(len(source.files), 'file')}, {census.size} bytes, with records: "
        f"{kinds or 'none'}; all of it is read to tell what is left of one."
    )
    if census.not_json:
        yield Statement(
            f"Not JSON, and searched as text: {so_many(census.not_json, 'line')}. A line of them "
            "that holds what is looked for goes whole."
        )
    if source.others:
        shown = ", ".join(relative(path, source.site) for path in source.others[:_SHOWN])
        more = f" and {len(source.others) - _SHOWN} more" if len(source.others) > _SHOWN else ""
        yield Statement(
            f"Files of no kind that the format declares: {shown}{more}. They are searched as text "
            "and never edited."
        )


def _fitting(census: _Census, source: Source) -> Iterator[Statement]:
    """Compare the description with what stands in the files."""
    for file in source.format.files:
        for record in file.records:
            where = (file.path, record.at.written)
            if not record.is_frame and file.path in census.met and where not in census.reached:
                yield Statement(
                    f"format: in no file '{file.path}' does '{record.at.written}' lead anywhere, "
                    f"where '{record.name}' should stand.",
                    ok=False,
                )
    for record in _kinds(source):
        count = census.records[record.name]
        if record.id and count and census.nameless[record.name]:
            yield Statement(
                f"Without an id, and named after their content: {census.nameless[record.name]} of "
                f"{count} '{record.name}'.",
                ok=census.nameless[record.name] < count,
            )
        if record.text and count > census.torn[record.name] and not census.with_text[record.name]:
            yield Statement(
                f"No '{record.name}' has any of the fields that its 'text' names.", ok=False
            )
    fields = source.fields
    mapped = [f"scope {key}" for key in fields.scope]
    mapped += [f"derived_from {name}" for name, path in fields.parents.items() if path]
    mapped += ["subject"] if fields.subject else []
    for name in mapped:
        if census.records and name not in census.present:
            yield Statement(f"No record has the field that '{name}' names.", ok=False)
    if source.site.action is Action.BLANK and not any(it.text for it in _kinds(source)):
        yield Statement("'action: blank' needs 'text' in the records of the format.", ok=False)


def _kinds(source: Source) -> list[RecordKind]:
    found: dict[str, RecordKind] = {}
    for file in source.format.files:
        for record in file.records:
            if not record.is_frame:
                known = found.setdefault(record.name, record)
                if record.text and not known.text:
                    found[record.name] = record
    return list(found.values())


def _links(web: Web) -> Iterator[Statement]:
    found = Counter(f"{facts.kind.name}.{link.field.written}" for facts, link in web.dangling())
    if found:
        shown = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
        yield Statement(f"Links that lead to no record here, and stay as they are: {shown}.")


def _removal(source: Source) -> Iterator[Statement]:
    """Say what removal does to a record, where that is not plain."""
    if source.site.action is Action.BLANK:
        return
    for record in _kinds(source):
        if record.taking is Taking.BLANK:
            yield Statement(
                f"'{record.name}': what is found in its own text is emptied; it goes only when it "
                "is named by its id."
            )
        lists = [part for part in record.parts if part.last is Last.REMOVE]
        if record.parts:
            what = "goes too" if lists else "stays"
            yield Statement(
                f"'{record.name}': a part that is found goes alone; with the last one the record "
                f"{what}."
            )
