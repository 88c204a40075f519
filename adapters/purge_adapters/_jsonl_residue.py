"""Looking at logs and around them for what outlives removal. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from purge.adapter import (
    Action,
    Examined,
    Observation,
    ProblemCode,
    Residue,
    Site,
)
from purge.targets import Hit, NeedleKind, Targets
from purge_adapters._bytes import written_forms
from purge_adapters._file_looks import (
    KINDS,
    NEIGHBOURS,
    SNIFFED,
    Trials,
    needles_in_bytes,
    phrases_in_bytes,
    shared_files,
)
from purge_adapters._files import folders
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_lines import is_wide, lines_of
from purge_adapters._jsonl_match import Look, Matcher, damaged, is_certain, read_log
from purge_adapters._jsonl_record import Entry, entries_of
from purge_adapters._owners import Held, together
from purge_adapters._prefilter_site import sieves_for
from purge_adapters._shadows import Shadow, look_through, shadows

__all__ = ["examine"]


def examine(
    site: Site,
    files: Sequence[Path],
    patterns: Sequence[str],
    suffixes: Sequence[str],
    fields: Fields,
    targets: Targets,
) -> Iterator[Observation]:
    """Yield what ``residue`` of the adapter yields for some files."""
    examination = _Examination(site, files, fields, targets)
    for path in files:
        yield from examination.look_at(path)
    yield from examination.trials.controls(whole=examination.whole)
    yield from shared_files(files, site)
    around = shadows(files, site, folders=folders(site, patterns), suffixes=suffixes)
    yield from look_through(around, lambda shadow: examination.holds(shadow, files))


class _Examination:
    """One look at the bytes of a site's files and of their shadows."""

    def __init__(self, site: Site, files: Sequence[Path], fields: Fields, targets: Targets) -> None:
        self.site = site
        self.fields = fields
        self.matcher = Matcher(site.name, targets)
        self.traces = targets.traces(site.name)
        self.needles = needles_in_bytes(site.name, targets)
        self.phrases = phrases_in_bytes(targets)
        self.sieves = sieves_for(site, files, fields, targets, self.needles)
        self.trials = Trials()
        self.whole = self.sieves is None or self.sieves.is_seeing
        """Every byte of every file belongs to a line that was looked at, or passed over as holding
        nothing for certain."""

    def look_at(self, path: Path) -> Iterator[Observation]:
        """Look at one file of the site."""
        look = Look.at(path, self.site)
        self._try_neighbours(path)
        sieve = self.sieves.second if self.sieves else None
        for line, entry in read_log(look, self.fields, sieve=sieve):
            hits = self.matcher.hits(entry)
            if entry.is_damaged:
                look.gaps.append(damaged(look, line))
            if not hits:
                continue
            if self._is_blanked(entry) and not self.matcher.matched(entry):
                if self._still_says(entry):
                    yield Residue(
                        f"{look.where}, {line.place}",
                        "the blanked record says the same in a field that was not emptied",
                        problem=ProblemCode.UNSUPPORTED,
                        keys=self._keys_of(entry, hits),
                    )
            elif is_certain(hits):
                self._try(entry, on_target=True)
                if self.sieves and not self.sieves.first.gives(line.data):
                    yield Residue(
                        f"{look.where}, {line.place}",
                        "it holds what is looked for, and the search for it passed it over",
                        problem=ProblemCode.CONTROL_FAILED,
                        keys=frozenset(hit.key for hit in hits if not hit.scope_unknown),
                    )
        self.whole = self.whole and not look.gaps
        yield from dict.fromkeys(look.gaps)
        yield Examined(1, look.size, look.records)

    def holds(self, shadow: Shadow, files: Sequence[Path]) -> Held:
        """Return what a shadow holds of what is looked for, as records or as bytes."""
        keys: set[int] = set()
        suspected: set[bytes] = set()
        blocks = shadow.blocks()
        head = next(blocks, b"")
        blocks = chain((head,), blocks)
        if shadow.group and b"\0" in head[:SNIFFED] and not is_wide(head):
            # Pictures and programs in a history: as bytes only. Taking them for text in every
            # possible encoding would take minutes.
            data = b"".join(blocks)
            keys |= together([self.phrases.of([form for form in self.phrases if form in data])])
            suspected.update(needle for needle in self.needles if needle in data)
            blocks = iter(())
        for line in lines_of(blocks):
            for entry in entries_of(line.data, self.fields):
                hits = self.matcher.hits(entry)
                said = self.matcher.matched(entry)
                if is_certain(hits) and (said or not self._is_blanked(entry)):
                    keys.update(hit.key for hit in hits if not hit.scope_unknown)
                if not self._is_record(entry):
                    suspected.update(needle for needle in self.needles if needle in entry.data)
        if not suspected:
            return frozenset(keys)
        left = self.needles.of(suspected - self._live(suspected, files))
        return left if left is True else frozenset(keys) | frozenset(left or ())

    def _keys_of(self, entry: Entry, hits: Sequence[Hit]) -> frozenset[int]:
        """Return the targets of a blanked record that still says what it said."""
        own = self.matcher.targets.keys_of(self.site.name, entry.name)
        return own | {hit.key for hit in hits} if own else frozenset()

    def _is_record(self, entry: Entry) -> bool:
        """Whether it is one record of this site for certain, and not another form of some."""
        if not entry.parsed or not isinstance(entry.value, dict):
            return False
        return self.fields.id is None or bool(entry.ids)

    def _live(self, needles: set[bytes], files: Sequence[Path]) -> set[bytes]:
        """Return which needles stand in live records that may stay: these prove nothing."""
        found: set[bytes] = set()
        for path in files:
            for line, entry in read_log(Look.at(path, self.site), self.fields):
                if not is_certain(self.matcher.hits(entry)):
                    found.update(needle for needle in needles - found if needle in line.data)
        return found

    def _try_neighbours(self, path: Path) -> None:
        """Try the look on the first live records of a file; what it misses is noted elsewhere."""
        tried = 0
        for _, entry in read_log(Look.at(path, self.site), self.fields):
            if not self.matcher.hits(entry) and self._try(entry, on_target=False):
                tried += 1
                if tried == NEIGHBOURS:
                    return

    def _try(self, entry: Entry, *, on_target: bool) -> bool:
        """See whether the look finds the needles of a live record in its bytes."""
        trace = entry.trace(path for path, _ in self.matcher.matched(entry))
        seen = False
        for kind in KINDS:
            needles = () if kind is NeedleKind.ID and not entry.ids else trace.needles(kind)
            for needle in needles:
                seen = True
                self.trials.note(kind, _stands_in(needle, entry), on_target=on_target)
        return seen

    def _is_blanked(self, entry: Entry) -> bool:
        return self.site.action is Action.BLANK and entry.parsed and entry.is_blanked

    def _still_says(self, entry: Entry) -> bool:
        """Whether a blanked record holds a text that was known of it before."""
        texts = {
            needle
            for trace in self.traces
            if trace.id == entry.name
            for needle in trace.needles(NeedleKind.TEXT)
        }
        return any(_stands_in(needle, entry) for needle in texts)


def _stands_in(needle: str, entry: Entry) -> bool:
    """Whether a needle is seen in the bytes of a record, or in what they decode to."""
    if any(form in entry.data for form in written_forms(needle)):
        return True
    return any(needle in text for _, text, _ in entry.strings()) or any(
        needle in text for text in entry.lines()
    )
