"""Notes in Markdown: whole files, their sections, or their smallest blocks.

Files are read and compared by their bytes; a rewrite keeps every byte that does not belong to a
record that goes. What lies beside the files (backups, trash, git histories) is looked at as
residue and not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from purge.adapter import (
    Action,
    Adapter,
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
from purge.errors import Permanent, StoreError
from purge.targets import Hit, TargetKind, Targets, Trace
from purge_adapters._files import Changed, folders, footprint, os_problem, sweep
from purge_adapters._markdown_check import check_site
from purge_adapters._markdown_edit import Cut, edit
from purge_adapters._markdown_files import DAMAGED, LINKED, SUFFIXES, Files, Opened
from purge_adapters._markdown_markers import markers_in, strike_in
from purge_adapters._markdown_records import FieldMap, Grain
from purge_adapters._markdown_residue import Look, match_unit
from purge_adapters._markdown_stamps import Stamp
from purge_adapters._markdown_units import Unit, trace_of, units_of
from purge_adapters._shadows import look_through, shadows

_CHANGED = "The record changed since it was found; it was left as it is."


@dataclass(frozen=True, slots=True)
class MarkdownSettings:
    """What the manifest says of a Markdown site."""

    path: str | tuple[str, ...] = field(
        metadata={
            "description": "A file, a folder (all .md, .markdown, .mdown, .mkd, .mdx and .txt "
            "files below it), a glob, or a list of these."
        }
    )
    record: Literal["file", "section", "block"] = field(
        default="block",
        metadata={
            "description": "The unit of removal: the whole file; a section, from its heading to "
            "the next of the same or a higher level; or the smallest block (paragraph, list "
            "item, quote, table row, code fence)."
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


class MarkdownAdapter(Adapter[MarkdownSettings]):
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
        self._fields = FieldMap.of(settings.id, site.subject, site.scope, site.derived_from)

    def footprint(self) -> tuple[Path, ...]:
        """The files and folders that ``path`` names."""
        return footprint(self.site, self._files.patterns)

    def check(self) -> Iterator[Statement]:
        """Read every file and say what is true of the site and what stands in the way."""
        yield from check_site(self.site, self._files, self._grain, self._fields)

    # --- find -----------------------------------------------------------------------------------

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that hold a target. A record that stands in several places under one
        id of its own is yielded once."""
        found: dict[str, Match] = {}
        for item in self._files.read():
            if isinstance(item, NotChecked):
                yield item
                continue
            units = units_of(item.note, self._grain, self._fields)
            for match in self._matches(item, units, targets):
                earlier = found.get(match.id)
                found[match.id] = match if earlier is None else _together(earlier, match)
            yield from self._gaps(item, targets)
            yield self._examined(item, units)
        yield from found.values()
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
        blanked = unit.blanked and not any(_by_words(targets, hit) for hit in hits)
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
        if note.lines.damaged:
            yield NotChecked(
                item.shown,
                DAMAGED,
                ProblemCode.CORRUPT,
            )
        elif not note.lines.faithful and not all(text.isascii() for text in targets.phrases()):
            yield NotChecked(
                item.shown,
                "it is neither UTF-8 nor UTF-16, so a phrase beyond ASCII may stand in it unseen",
            )
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
        records = [unit for unit in units if unit.part.grain is self._grain]
        unlinked = 0
        if any(self._fields.parents.values()):
            unlinked = sum(not unit.said.parents for unit in records)
        return Examined(files=1, bytes=item.size, records=len(records), unlinked=unlinked)

    # --- remove ---------------------------------------------------------------------------------

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Rewrite each file once, without the records that have to go in it."""
        guard(removals)
        for _ in self._files.paths():
            break  # Where nothing is there any more, nothing is said to be gone: this raises.
        by_file: dict[str, list[tuple[Removal, Mapping[str, object]]]] = {}
        for removal in removals:
            for place in _places(removal.match):
                by_file.setdefault(str(place["file"]), []).append((removal, place))
        said: set[int] = set()
        try:
            for file, jobs in by_file.items():
                for left in self._rewrite(file, jobs):
                    if id(left.match) not in said:
                        said.add(id(left.match))
                        yield left
        finally:
            try:
                self._files.sync()
            except OSError as error:
                raise os_problem(error) from error

    def _rewrite(
        self, file: str, jobs: Sequence[tuple[Removal, Mapping[str, object]]]
    ) -> Iterator[NotRemoved]:
        everyone = [removal.match for removal, _ in jobs]
        try:
            path = self._files.find(file)
            if path is None:
                return
            item = self._files.open(path)
            if self._files.other_names(item):
                raise Permanent(f"{item.shown} {LINKED}", problem=ProblemCode.UNSUPPORTED)
            if item.note.lines.damaged:
                raise Permanent(f"{item.shown}: {DAMAGED}.", problem=ProblemCode.CORRUPT)
            units = units_of(item.note, self._grain, self._fields)
            at_place = {(unit.part.grain.value, unit.digest, unit.ordinal): unit for unit in units}
            cuts: list[Cut] = []
            of_cut: list[Match] = []
            for removal, place in jobs:
                unit = at_place.get(_handle(place))
                if unit is not None:
                    stamp = None
                    if self.site.action is Action.BLANK:
                        stamp = Stamp(removal.request, removal.at.date().isoformat())
                    cuts.append(Cut(unit, stamp))
                    of_cut.append(removal.match)
                elif _changed(units, removal, place):
                    yield NotRemoved(removal.match, ProblemCode.CHANGED_UNDERNEATH, _CHANGED)
            if cuts:
                made = edit(item.note, cuts, units, self._fields)
                self._write(item, made.data)
                for at, sentence in made.refused.items():
                    yield NotRemoved(
                        of_cut[at], ProblemCode.UNSUPPORTED, f"{item.shown}: {sentence}"
                    )
        except Changed:
            for match in everyone:
                yield NotRemoved(match, ProblemCode.CHANGED_UNDERNEATH, _CHANGED)
        except StoreError as error:
            for match in everyone:
                yield NotRemoved(match, ProblemCode(error.problem), str(error))
        except OSError as error:
            problem = os_problem(error, file)
            for match in everyone:
                yield NotRemoved(match, ProblemCode(problem.problem), str(problem))

    def _write(self, item: Opened, data: bytes | None) -> None:
        before = item.note.lines.joined(item.note.lines.lines)
        if data is None and not self._files.is_named(item.path):
            self._files.take_away(item)
        elif (data or b"") != before:
            # A file that the manifest names stays, empty: a site without its file is a fault.
            self._files.replace(item, data or b"")

    # --- markers --------------------------------------------------------------------------------

    def markers(
        self, where: Mapping[str, str]
    ) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
        """Yield the marker lines of all notes, and what is like them."""
        yield from markers_in(self._files, self._grain, self._fields, where)

    def strike(self, markers: Sequence[tuple[Marker, str]]) -> Iterator[NotChecked]:
        """Strike marker lines, file by file; every other byte stays."""
        guard(markers)
        yield from strike_in(self._files, self._grain, self._fields, markers)

    # --- sanitize and residue -------------------------------------------------------------------

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Remove what an interrupted rewrite left beside the files. There is nothing else."""
        for folder in dict.fromkeys(Path(str(left.handle["file"])).parent for left in residue):
            try:
                sweep(folder)
            except OSError as error:
                problem = os_problem(error)
                yield NotChecked("a file left over", str(problem), ProblemCode(problem.problem))

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies beside the files that hold a target, or what a removed record said."""
        look = Look(self.site.name, targets, self._grain, self._fields)
        matches = [item for item in self.find(targets) if isinstance(item, Match)]
        look.begin(matches)
        going = frozenset(
            match.id for match in matches if match.readability is Readability.READABLE
        )
        own: list[Path] = []
        for item in self._files.read():
            if isinstance(item, NotChecked):
                yield item
                continue
            own.append(item.path)
            units = units_of(item.note, self._grain, self._fields)
            look.take(item.note, units, going)
            yield from self._gaps(item, targets)
            yield self._examined(item, ())
        yield from look.controls()
        around = shadows(
            own,
            self.site,
            folders=folders(self.site, self._files.patterns),
            suffixes=SUFFIXES,
        )
        yield from look_through(around, lambda shadow: look.holds(shadow.read()))


def _by_words(targets: Targets, hit: Hit) -> bool:
    return targets[hit.key].kind in (TargetKind.PHRASE, TargetKind.COPY)


def _places(match: Match) -> Iterable[Mapping[str, object]]:
    places = match.handle.get("places", ())
    assert isinstance(places, (list, tuple))
    return places


def _together(first: Match, second: Match) -> Match:
    """Join two places of one record."""
    readable = Readability.READABLE in (first.readability, second.readability)
    parents = dict(first.parents)
    for site, ids in second.parents.items():
        parents[site] = tuple(dict.fromkeys((*parents.get(site, ()), *ids)))
    return Match(
        first.id,
        tuple(dict.fromkeys((*first.hits, *second.hits))),
        f"{first.where}; {second.where}",
        {"places": [*_places(first), *_places(second)]},
        Trace(
            first.id,
            tuple(dict.fromkeys((*first.trace.texts, *second.trace.texts))),
            tuple(dict.fromkeys((*first.trace.metadata, *second.trace.metadata))),
        ),
        parents,
        Readability.READABLE if readable else Readability.BLANKED,
        first.carries_marker or second.carries_marker,
        subjects=tuple(dict.fromkeys((*first.subjects, *second.subjects))),
        scope={key: said for key, said in first.scope.items() if second.scope.get(key) == said},
    )


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
