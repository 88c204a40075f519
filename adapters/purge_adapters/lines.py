"""Transcripts and other texts whose lines say where a record begins.

What a record is stands in the manifest, as patterns for lines. Files are read and compared by
their bytes; a rewrite keeps every byte that does not belong to a record that goes, and every
record that stays reads as before. Copies beside the files are looked at as residue and left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

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
from purge_adapters._lines_check import check_lines
from purge_adapters._lines_edit import Cut, edit
from purge_adapters._lines_grammar import Grammar, LineKind
from purge_adapters._lines_markers import markers_in, strike_one
from purge_adapters._lines_records import (
    Entry,
    LineFields,
    Transcript,
    created,
    entries_of,
    take_apart,
    trace_of,
)
from purge_adapters._lines_residue import Look
from purge_adapters._match_places import together
from purge_adapters._text_files import Opened, TextFiles
from purge_adapters._text_looks import by_words, gaps_in, going
from purge_adapters._text_remove import CHANGED, Job, remove_in, strike_in, sweep_up, write_back

_ENDS: Final = (".md", ".txt", ".log", ".text", ".history")


@dataclass(frozen=True)
class LinesSettings:
    """What the manifest says of a site of lines."""

    path: str | list[str] = field(
        metadata={
            "description": "A file, a folder (all .md, .txt, .log, .text and .history files below "
            "it), a glob, or a list of these."
        }
    )
    kinds: dict[str, LineKind] = field(
        default_factory=dict,
        metadata={
            "description": "The kinds of records, by name: how their lines look. The first that "
            "claims a line has it. Without any, each file is one record."
        },
    )
    fields: dict[str, str] = field(
        default_factory=dict,
        metadata={
            "description": "Fields that stand in what a record says: by name, a regular "
            "expression with one group, the value. Named groups of 'kinds' are fields as well."
        },
    )
    passed_over: str | None = field(
        default=None,
        metadata={
            "description": "A regular expression for lines that the program itself passes over "
            "when it reads the text back, so that they keep no records apart."
        },
    )
    id: str | None = field(
        default=None,
        metadata={
            "description": "The field that holds the record's id; '$key' is the path of the file. "
            "Without it, a record is named after its content."
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
        others = ("kinds", "fields", "passed_over", "id", "time")
        check_format(self.format, {name: getattr(self, name) for name in others})
        grammar = self.grammar()
        for key, name in (("id", self.id), ("time", self.time)):
            if name is not None and not name.startswith("$") and name not in grammar.names:
                raise ValueError(f"{key}: no group and none of 'fields' is called '{name}'.")

    def grammar(self) -> Grammar:
        """Return the description, ready to read with. Raises ``ValueError``."""
        return Grammar(self.kinds, self.fields, self.passed_over)


class LinesAdapter(WithFormat[LinesSettings]):
    """Finds records in texts by a grammar of lines, and takes them or their words out."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="lines",
        summary="transcripts and other texts whose lines say where a record begins",
        evidence=EvidenceKind.BYTES,
        actions=frozenset((Action.DELETE, Action.BLANK, Action.REPORT)),
    )
    Settings: ClassVar[type] = LinesSettings

    def __init__(self, site: Site, settings: LinesSettings) -> None:
        super().__init__(site, settings)
        self._grammar = settings.grammar()
        self._fields = LineFields.of(site, settings.id, settings.time)
        patterns = [settings.path] if isinstance(settings.path, str) else settings.path
        self._files = TextFiles[Transcript](
            site, patterns, _ENDS, partial(take_apart, self._grammar)
        )

    def _entries(self, text: Transcript) -> tuple[Entry, ...]:
        return entries_of(text, self._grammar, self._fields)

    def footprint(self) -> tuple[Path, ...]:
        """The files and folders that ``path`` names."""
        return footprint(self.site, self._files.patterns)

    def own_files(self) -> Iterator[Path | NotChecked]:
        """Yield the files of the site, and what could not be listed."""
        return self._files.paths()

    def check(self) -> Iterator[Statement]:
        """Read every file and say what is true of the site and what stands in the way."""
        yield from check_lines(self.site, self._files, self._grammar, self._fields)

    # --- find -----------------------------------------------------------------------------------

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that hold a target. A record that stands in several places under one
        id of its own is yielded once."""
        found: dict[str, Match] = {}
        for item in self._files.read():
            if isinstance(item, NotChecked):
                yield item
                continue
            entries = self._entries(item.note)
            for entry in entries:
                if hits := targets.match(self.site.name, entry.record):
                    match = self._match(item, entry, hits, targets)
                    earlier = found.get(match.id)
                    found[match.id] = match if earlier is None else together(earlier, match)
            yield from gaps_in(item.shown, item.note.lines, targets)
            unlinked = 0
            if any(self._fields.parents.values()):
                unlinked = sum(not entry.record.parents for entry in entries)
            yield Examined(files=1, bytes=item.size, records=len(entries), unlinked=unlinked)
        yield from found.values()
        yield Examined()

    def _match(
        self, item: Opened[Transcript], entry: Entry, hits: tuple[Hit, ...], targets: Targets
    ) -> Match:
        named_by_words = any(by_words(targets, hit.key) for hit in hits)
        place: dict[str, object] = {
            "file": item.place,
            "digest": entry.digest,
            "ordinal": entry.ordinal,
            "records": entry.siblings,
        }
        where = item.shown if self._grammar.whole else f"{item.shown}, line {entry.span.start + 1}"
        return Match(
            entry.id,
            hits,
            where,
            {"places": [place]},
            trace_of(entry, self._fields),
            {site: tuple(ids) for site, ids in entry.record.parents.items()},
            Readability.BLANKED if entry.blanked and not named_by_words else Readability.READABLE,
            entry.carries_marker,
            created(entry, self._fields, self.site.timezone),
            subjects=tuple(entry.record.subjects),
            scope=dict(entry.record.scope),
        )

    # --- remove ---------------------------------------------------------------------------------

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Rewrite each file once, without the records that have to go in it."""
        guard(removals)
        yield from remove_in(self._files, removals, self._rewrite)

    def _rewrite(self, item: Opened[Transcript], jobs: Sequence[Job]) -> Iterator[NotRemoved]:
        entries = self._entries(item.note)
        at_place = {(entry.digest, entry.ordinal): entry for entry in entries}
        cuts: list[Cut] = []
        of_cut: list[Match] = []
        for removal, place in jobs:
            entry = at_place.get((str(place["digest"]), int(str(place["ordinal"]))))
            if entry is not None:
                blank = self.site.action is Action.BLANK
                stamp = (removal.request, removal.at.date().isoformat()) if blank else None
                cuts.append(Cut(entry, stamp))
                of_cut.append(removal.match)
            elif _changed(entries, removal, place):
                yield NotRemoved(removal.match, ProblemCode.CHANGED_UNDERNEATH, CHANGED)
        if cuts:
            made = edit(item.note, cuts, self._grammar, self._fields)
            write_back(self._files, item, made.data)
            for at, sentence in made.refused.items():
                yield NotRemoved(of_cut[at], ProblemCode.UNSUPPORTED, f"{item.shown}: {sentence}")

    # --- markers --------------------------------------------------------------------------------

    def markers(
        self, where: Mapping[str, str]
    ) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
        """Yield the marker lines in what the records say, and what is like them."""
        yield from markers_in(self._files, self._entries, self._grammar, where)

    def strike(self, markers: Sequence[tuple[Marker, str]]) -> Iterator[NotChecked]:
        """Strike marker lines, file by file; every other byte stays."""
        guard(markers)
        strike = partial(strike_one, self._files, self._entries, self._grammar)
        yield from strike_in(self._files, markers, strike)

    # --- sanitize and residue -------------------------------------------------------------------

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Remove what an interrupted rewrite left beside the files. There is nothing else."""
        yield from sweep_up(residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies beside the files that hold a target, or what a removed record said."""
        look = Look(self.site.name, targets, self._grammar, self._fields)
        matches = [item for item in self.find(targets) if isinstance(item, Match)]
        look.begin(matches)
        leaving = going(matches)
        own: list[Path] = []
        for item in self._files.read():
            if isinstance(item, NotChecked):
                yield item
                continue
            own.append(item.path)
            look.take(item.note, self._entries(item.note), leaving)
            yield from gaps_in(item.shown, item.note.lines, targets)
            yield Examined(files=1, bytes=item.size)
        yield from look.controls()
        yield from look.beside(self._files, own)


def _changed(entries: Sequence[Entry], removal: Removal, place: Mapping[str, object]) -> bool:
    """Whether a record that is not there any more stands there in another form.

    One with an id of its own is known by it. Of another nothing can be known but that the file
    has as many records as before.
    """
    named = [entry for entry in entries if entry.named and entry.id == removal.match.id]
    if named:
        return any(not entry.blanked for entry in named)
    if any(entry.blanked for entry in entries):
        return False
    records = place["records"]
    return isinstance(records, int) and len(entries) >= records
