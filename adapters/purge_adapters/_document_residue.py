"""Looking at files of declared formats and around them for what outlives removal. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from purge.adapter import (
    Action,
    Examined,
    NotChecked,
    Observation,
    ProblemCode,
    Residue,
)
from purge.targets import Hit, NeedleKind, Targets, Text
from purge_adapters._bytes import written_forms
from purge_adapters._document_files import (
    NO_FIELDS,
    DocumentFile,
    Unit,
    loose_texts,
    units_of,
)
from purge_adapters._document_find import UNCOVERED, look_at_others
from purge_adapters._document_items import Item
from purge_adapters._document_match import Finder, Taken, is_certain
from purge_adapters._document_records import read_unit
from purge_adapters._document_source import Source, items_of
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
from purge_adapters._format_model import FileKind, Layout
from purge_adapters._jsonl_lines import is_wide, lines_of, narrowed, wide_encoding
from purge_adapters._jsonl_record import entries_of
from purge_adapters._owners import Held, together
from purge_adapters._shadows import Shadow, look_through, shadows

__all__ = ["examine"]


def examine(
    source: Source, patterns: Sequence[str], suffixes: Sequence[str], targets: Targets
) -> Iterator[Observation]:
    """Yield what ``residue`` of the adapter yields."""
    look = _Examination(source, targets)
    for file in source.documents():
        yield from look.look_at(file)
    yield from look_at_others(source, look.finder)
    yield from look.trials.controls(whole=look.whole)
    files = [path for path, _ in source.files]
    yield from shared_files(files, source.site)
    around = shadows(
        [*files, *source.others],
        source.site,
        folders=folders(source.site, patterns),
        suffixes=suffixes,
    )
    yield from look_through(around, look.holds)


class _Examination:
    """One look at the bytes of a site's files and of their shadows."""

    def __init__(self, source: Source, targets: Targets) -> None:
        self.source = source
        self.site = source.site
        self.targets = targets
        self.finder = Finder(source.site, targets)
        self.traces = targets.traces(self.site.name)
        self.needles = needles_in_bytes(self.site.name, targets)
        self.phrases = phrases_in_bytes(targets)
        self.trials = Trials()
        self.whole = True
        """Every byte of every file belongs to a value or text that was looked at."""

    # --- the files themselves -----------------------------------------------------------------

    def look_at(self, file: DocumentFile) -> Iterator[Observation]:
        """Look at one file of the site."""
        neighbours = 0
        quick = self.finder.is_told_by_strings(file.kind)

        def wanted(unit: Unit) -> bool:
            return neighbours < NEIGHBOURS or not quick or self.finder.may_name(unit)

        for found in items_of(file, self.source.fields, numbers=self.finder.numbers, wanted=wanted):
            for item in found[:-1]:
                taken = self.finder.compare(item)
                if not taken:
                    if neighbours < NEIGHBOURS and self._try(item, [], on_target=False):
                        neighbours += 1
                    continue
                yield from self._named(file, item, taken)
            if self.finder.in_frame(found[-1]):
                file.gaps.append(
                    NotChecked(
                        file.where + found[-1].unit.place, UNCOVERED, ProblemCode.UNSUPPORTED
                    )
                )
        if file.loose and self.finder.loose(file.loose):
            file.gaps.append(NotChecked(file.where, UNCOVERED, ProblemCode.UNSUPPORTED))
        self.whole = self.whole and not file.gaps
        yield from dict.fromkeys(file.gaps)
        yield Examined(1, file.size, file.records)

    def _named(self, file: DocumentFile, item: Item, taken: list[Taken]) -> Iterator[Observation]:
        strings = [one for each in taken for one in each.strings]
        if self._is_blanked(item) and not strings:
            if self._still_says(item):
                hits = tuple(hit for each in taken for hit in each.hits)
                yield Residue(
                    file.where + item.unit.place,
                    "the blanked record says the same in a field that was not emptied",
                    problem=ProblemCode.UNSUPPORTED,
                    keys=self._keys_of(item, hits),
                )
        elif any(is_certain(each.hits) for each in taken):
            self._try(item, taken, on_target=True)

    def _try(self, item: Item, taken: list[Taken], *, on_target: bool) -> bool:
        """See whether the look finds the needles of a live record in its bytes."""
        trace = item.trace(item.name, [one for each in taken for one in each.strings])
        whole = not taken or any(each.part is None and not each.only for each in taken)
        seen = False
        for kind in KINDS:
            needles = () if kind is NeedleKind.ID and item.id is None else trace.needles(kind)
            if not whole and kind is not NeedleKind.TEXT:
                continue
            for needle in needles:
                seen = True
                self.trials.note(kind, _stands_in(needle, item), on_target=on_target)
        return seen

    def _is_blanked(self, item: Item) -> bool:
        return self.site.action is Action.BLANK and item.unit.entry.parsed and item.is_blanked

    def _still_says(self, item: Item) -> bool:
        texts = {
            needle
            for trace in self.traces
            if trace.id == item.name
            for needle in trace.needles(NeedleKind.TEXT)
        }
        return any(needle in one.text for one in item.said for needle in texts)

    def _keys_of(self, item: Item, hits: Sequence[Hit]) -> frozenset[int]:
        own = self.targets.keys_of(self.site.name, item.name)
        return own | {hit.key for hit in hits} if own else frozenset()

    # --- shadows ------------------------------------------------------------------------------

    def holds(self, shadow: Shadow) -> Held:
        """Return what a shadow holds of what is looked for, as records or as bytes."""
        content = shadow.read()
        keys: set[int] = set()
        suspected: set[bytes] = set()
        if shadow.group and b"\0" in content[:SNIFFED] and not is_wide(content[:8]):
            # Pictures and programs in a history: as bytes only.
            keys |= together([self.phrases.of([it for it in self.phrases if it in content])])
            suspected.update(needle for needle in self.needles if needle in content)
        else:
            known = [self._in_records(kind, content, keys) for kind in self._kinds_for(shadow)]
            if not any(known):
                keys |= self._keys_in(loose_texts(content))
            suspected.update(needle for needle in self.needles if needle in content)
        if not suspected:
            return frozenset(keys)
        left = self.needles.of(suspected - self._live(suspected))
        return left if left is True else frozenset(keys) | frozenset(left or ())

    def _kinds_for(self, shadow: Shadow) -> list[FileKind]:
        """Return what a shadow may be: by its name, else all kinds that there are."""
        names = _names_of(shadow.path.name) if shadow.path is not None else []
        kinds = self.source.format.files
        return [kind for kind in kinds if any(kind.fits(name) for name in names)] or list(kinds)

    def _in_records(self, kind: FileKind, content: bytes, keys: set[int]) -> bool:
        """Look for records of a kind in a shadow; return whether there are any."""
        any_record = False
        file = DocumentFile(Path("-"), kind, "-", "-")
        for unit in _units(content, file):
            found = read_unit(unit, kind, "-", self.source.fields, numbers=self.finder.numbers)
            for item in found[:-1]:
                any_record = True
                for taken in self.finder.compare(item):
                    if not self._is_blanked(item) or taken.strings:
                        keys.update(hit.key for hit in taken.hits if not hit.scope_unknown)
            for _, hits in self.finder.matched(found[-1]):
                keys.update(hit.key for hit in hits if not hit.scope_unknown)
        if any_record:
            keys |= self._keys_in(file.loose)
        return any_record

    def _keys_in(self, texts: Sequence[Text]) -> set[int]:
        found: set[int] = set()
        if self.targets.needs_texts:
            for text in texts:
                found |= self.finder.keys_in(text)
        return found

    def _live(self, needles: set[bytes]) -> set[bytes]:
        """Return which needles stand in live files: these prove nothing of a shadow.

        What has to go and is still there is no live record; then the needles count.
        """
        found: set[bytes] = set()
        for file in self.source.documents():
            for items in items_of(file, self.source.fields):
                for item in items:
                    named = [] if item.kind.is_frame else self.finder.compare(item)
                    skipped = {p for each in named for one in each.strings for p in one.paths}
                    if any(each.part is None and not each.only for each in named):
                        continue
                    said = [one.text for one in item.said if one.path not in skipped]
                    for needle in needles - found:
                        if any(_is_in(needle, text) for text in said):
                            found.add(needle)
        return found


def _is_in(needle: bytes, text: str) -> bool:
    return any(needle in form for form in written_forms(text))


def _names_of(name: str) -> list[str]:
    """Return what a copy may have been called: its name with ends taken off, one by one."""
    plain = name.strip("#~.")
    found = [name, plain]
    while "." in plain:
        plain = plain.rpartition(".")[0]
        found.append(plain)
    return [str(PurePosixPath(it)) for it in found if it]


def _units(content: bytes, file: DocumentFile) -> Iterator[Unit]:
    encoding = wide_encoding(content[:8])
    if encoding is not None:
        content = b"".join(narrowed([content], encoding))
    if file.kind.layout is not Layout.LINES:
        yield from units_of(content, file)
        return
    for number, line in enumerate(lines_of(iter((content,)))):
        for entry in entries_of(line.data, NO_FIELDS):
            yield Unit(entry, line.offset, number)


def _stands_in(needle: str, item: Item) -> bool:
    """Whether a needle is seen in the bytes of a record, or in what they decode to."""
    if any(form in item.unit.entry.data for form in written_forms(needle)):
        return True
    return any(needle in one.text for one in item.said)
