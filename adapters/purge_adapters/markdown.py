"""Notes in Markdown: whole files, their sections, or their smallest blocks.

Files are read and compared by their bytes; a rewrite keeps every byte that does not belong to a
record that goes. What lies beside the files (backups, trash, git histories) is looked at as
residue and not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from purge.adapter import (
    Action,
    AdapterInfo,
    EvidenceKind,
    Examined,
    Finding,
    Marker,
    Match,
    NotAMarker,
    NotChecked,
    NotRemoved,
    Observation,
    ProblemCode,
    Readability,
    Removal,
    Residue,
    Site,
    Statement,
    guard,
)
from purge.targets import Hit, Targets
from purge_adapters._composite import WithFormat
from purge_adapters._composite_format import FilesFormat, check_format
from purge_adapters._files import footprint
from purge_adapters._markdown_check import check_site
from purge_adapters._markdown_edit import Cut, edit
from purge_adapters._markdown_files import Files, Opened
from purge_adapters._markdown_links import Index, is_index, is_linked, linked_blocks
from purge_adapters._markdown_markers import markers_in, strike_one
from purge_adapters._markdown_records import FieldMap, Grain, grain_in
from purge_adapters._markdown_residue import Look, match_unit
from purge_adapters._markdown_stamps import Stamp
from purge_adapters._markdown_units import Unit, trace_of, units_of
from purge_adapters._match_places import together
from purge_adapters._text_looks import by_words, gaps_in, going
from purge_adapters._text_remove import CHANGED, Job, remove_in, strike_in, sweep_up, write_back


@dataclass(frozen=True, slots=True)
class MarkdownSettings:
    """What the manifest says of a Markdown site."""

    path: str | tuple[str, ...] = field(
        metadata={
            "description": "A file, a folder (all .md, .markdown, .mdown, .mkd, .mdx and .txt "
            "files below it), a glob, or a list of these."
        }
    )
    record: Literal["file", "section", "block", "file-or-block"] = field(
        default="block",
        metadata={
            "description": "The unit of removal: the whole file; a section, from its heading to "
            "the next of the same or a higher level; or the smallest block (paragraph, list "
            "item, quote, table row, code fence). 'file-or-block': the whole file where it has "
            "front matter, otherwise the blocks."
        },
    )
    id: str | None = field(
        default=None,
        metadata={
            "description": "The field that holds the id: of a file in its front matter, of a "
            "section or block in itself; '$key' is the path of the file. Blocks are also "
            "known as PATH#^block-id, sections as PATH#Heading."
        },
    )
    index: str | tuple[str, ...] = field(
        default=(),
        metadata={
            "description": "Files that list others, by the ends of their paths (MEMORY.md): a list "
            "item or table row in them that begins with its link, or an import (@path) that stands "
            "alone, goes with the file that it links to, when that goes whole."
        },
    )
    sources: str | None = field(
        default=None,
        metadata={
            "description": "The front matter field in which a note names other notes of the site "
            "that it was made from. One that names a note that goes stays, and is reported."
        },
    )
    block_ids: Literal["go", "stay"] = field(
        default="go",
        metadata={
            "description": "What becomes of a block id (^id) that other notes name when its block "
            "is deleted: it goes, or it stays on a dated line, so that no link breaks."
        },
    )
    format: str | FilesFormat | None = field(
        default=None,
        metadata={
            "description": "Instead of all other keys but 'path': the name of a preset, or a "
            "description, as for the adapter 'files', which then serves the site."
        },
    )

    def __post_init__(self) -> None:
        check_format(self.format, {"id": self.id, "index": self.index, "sources": self.sources})


class MarkdownAdapter(WithFormat[MarkdownSettings]):
    """Finds records in notes, and takes them or their text out."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="markdown",
        summary="notes in Markdown or plain text: files, sections or blocks",
        evidence=EvidenceKind.BYTES,
        actions=frozenset((Action.DELETE, Action.BLANK, Action.REPORT)),
    )
    Settings: ClassVar[type] = MarkdownSettings

    def __init__(self, site: Site, settings: MarkdownSettings) -> None:
        super().__init__(site, settings)
        patterns = (settings.path,) if isinstance(settings.path, str) else settings.path
        self._files = Files(site, patterns)
        self._grain = Grain(settings.record)
        self._linked: frozenset[tuple[str, str]] | None = None
        index = (settings.index,) if isinstance(settings.index, str) else settings.index
        self._index = index if site.action is Action.DELETE else ()
        self._fields = FieldMap.of(settings.id, site.subject, site.scope, site.derived_from)

    def footprint(self) -> tuple[Path, ...]:
        """The files and folders that ``path`` names."""
        return footprint(self.site, self._files.patterns)

    def own_files(self) -> Iterator[Path | NotChecked]:
        """Yield the files of the site, and what could not be listed."""
        return self._files.paths()

    def check(self) -> Iterator[Statement]:
        """Read every file and say what is true of the site and what stands in the way."""
        yield from check_site(self.site, self._files, self._grain, self._fields, self._index)

    # --- find -----------------------------------------------------------------------------------

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that hold a target. A record that stands in several places under one
        id of its own is yielded once."""
        found: dict[str, Match] = {}
        index = Index(self._index, self._fields.reader)
        for item in self._files.read():
            if isinstance(item, NotChecked):
                yield item
                continue
            units = units_of(item.note, self._grain, self._fields)
            index.take(item, units)
            for match in self._matches(item, units, targets):
                earlier = found.get(match.id)
                found[match.id] = match if earlier is None else together(earlier, match)
            yield from self._gaps(item, targets)
            yield self._examined(item, units)
        yield from index.joined(found.values())
        yield Examined()

    def _matches(self, item: Opened, units: Sequence[Unit], targets: Targets) -> Iterator[Match]:
        named: dict[int, set[int]] = {}
        for at, unit in enumerate(units):
            hits = match_unit(self.site.name, targets, unit)
            named[at] = {hit.key for hit in hits}
            if unit.part.members:
                # Some headings below each other: only what none of them holds alone.
                held = set().union(*(named[member] for member in unit.part.members))
                hits = tuple(hit for hit in hits if hit.key not in held)
            if hits:
                yield self._match(item, unit, hits, targets)

    def _match(self, item: Opened, unit: Unit, hits: tuple[Hit, ...], targets: Targets) -> Match:
        blanked = unit.blanked and not any(by_words(targets, hit.key) for hit in hits)
        whole = unit.part.grain is Grain.FILE
        place: dict[str, object] = {
            "file": item.place,
            "grain": unit.part.grain.value,
            "digest": unit.digest,
            "ordinal": unit.ordinal,
            "records": unit.siblings,
        }
        return Match(
            unit.id,
            hits,
            item.shown if whole else f"{item.shown}, line {unit.line}",
            {"places": [place]},
            trace_of(item.note, unit, self._fields.reader),
            {site: tuple(ids) for site, ids in unit.said.parents.items()},
            Readability.BLANKED if blanked else Readability.READABLE,
            unit.carries_marker,
            subjects=tuple(unit.said.subjects),
            scope=dict(unit.said.scope),
        )

    def _gaps(self, item: Opened, targets: Targets) -> Iterator[NotChecked]:
        """Yield what could not be read in a file, as far as it matters for these targets."""
        note = item.note
        yield from gaps_in(item.shown, note.lines, targets)
        if note.front.broken and self._needs_front(targets):
            yield NotChecked(
                item.shown,
                "its front matter is not valid YAML, so that its fields cannot be read; "
                "the text was searched",
            )

    def _needs_front(self, targets: Targets) -> bool:
        fields = self._fields
        return bool(
            (fields.id and targets.ids(self.site.name))
            or (fields.subject and targets.subjects())
            or any(targets.lineage(source) for source in fields.parents)
            or (fields.scope and any(target.scope for target in targets))
        )

    def _examined(self, item: Opened, units: Sequence[Unit]) -> Examined:
        own = grain_in(item.note, self._grain)
        records = [unit for unit in units if unit.part.grain is own]
        unlinked = 0
        if any(self._fields.parents.values()):
            unlinked = sum(not unit.said.parents for unit in records)
        return Examined(files=1, bytes=item.size, records=len(records), unlinked=unlinked)

    # --- remove ---------------------------------------------------------------------------------

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Rewrite each file once, without the records that have to go in it."""
        guard(removals)
        yield from remove_in(self._files, removals, self._rewrite, is_index)

    def _rewrite(self, item: Opened, jobs: Sequence[Job]) -> Iterator[NotRemoved]:
        units = units_of(item.note, self._grain, self._fields)
        at_place = {(unit.part.grain.value, unit.digest, unit.ordinal): unit for unit in units}
        cuts: list[Cut] = []
        of_cut: list[Match] = []
        for removal, place in jobs:
            unit = at_place.get(_handle(place))
            if unit is not None:
                stamp = Stamp(removal.request, removal.at.date().isoformat())
                cuts.append(Cut(unit, stamp if self._stays(item, unit) else None))
                of_cut.append(removal.match)
            elif not is_index(place) and _changed(units, removal, place):
                yield NotRemoved(removal.match, ProblemCode.CHANGED_UNDERNEATH, CHANGED)
        if cuts:
            made = edit(item.note, cuts, units, self._fields)
            write_back(self._files, item, made.data)
            for at, sentence in made.refused.items():
                yield NotRemoved(of_cut[at], ProblemCode.UNSUPPORTED, f"{item.shown}: {sentence}")

    def _stays(self, item: Opened, unit: Unit) -> bool:
        """Whether something of a record has to stay in its place."""
        if self.site.action is Action.BLANK:
            return True
        if self.settings.block_ids == "go" or unit.part.anchor is None:
            return False
        if self._linked is None:
            self._linked = linked_blocks(self._files)
        return is_linked(item.place, unit.part.anchor, self._linked)

    # --- markers --------------------------------------------------------------------------------

    def markers(
        self, where: Mapping[str, str]
    ) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
        """Yield the marker lines of all notes, and what is like them."""
        yield from markers_in(self._files, self._grain, self._fields, where)

    def strike(self, markers: Sequence[tuple[Marker, str]]) -> Iterator[NotChecked]:
        """Strike marker lines, file by file; every other byte stays."""
        guard(markers)
        strike = partial(strike_one, self._files, self._grain, self._fields)
        yield from strike_in(self._files, markers, strike)

    # --- sanitize and residue -------------------------------------------------------------------

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Remove what an interrupted rewrite left beside the files. There is nothing else."""
        yield from sweep_up(residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies beside the files that hold a target, or what a removed record said."""
        look = Look(self.site.name, targets, self._grain, self._fields)
        matches = [item for item in self.find(targets) if isinstance(item, Match)]
        look.begin(matches)
        leaving = going(matches)
        own: list[Path] = []
        for item in self._files.read():
            if isinstance(item, NotChecked):
                yield item
                continue
            own.append(item.path)
            units = units_of(item.note, self._grain, self._fields)
            look.take(item.note, units, leaving)
            if self.settings.sources is not None and (
                made := look.made_from(item, self.settings.sources, leaving)
            ):
                yield made
            yield from self._gaps(item, targets)
            yield self._examined(item, ())
        yield from look.controls()
        yield from look.beside(self._files, own)


def _handle(place: Mapping[str, object]) -> tuple[str, str, int]:
    """Return what a handle says of a record: it is found wherever in the file it stands by now."""
    grain, digest, ordinal = place["grain"], place["digest"], place["ordinal"]
    assert isinstance(grain, str)
    assert isinstance(digest, str)
    assert isinstance(ordinal, int)
    return grain, digest, ordinal


def _changed(units: Sequence[Unit], removal: Removal, place: Mapping[str, object]) -> bool:
    """Whether a record that is not there any more stands there in another form.

    One with an id of its own is known by it. Of another nothing can be known but that the file
    has as many records as before.
    """
    left = [unit for unit in units if unit.part.grain.value == place["grain"]]
    named = [unit for unit in left if unit.named and unit.id == removal.match.id]
    if named:
        return any(not unit.blanked for unit in named)
    if any(unit.blanked for unit in left):
        return False
    records = place["records"]
    return isinstance(records, int) and len(left) >= records
