"""Looking for what outlives the records of texts: the shadows of their files.

Every line of a live file that says something belongs to a record, so what is left in live files
is what ``find`` yields. Copies lie beside: backups, swap files, trash, git histories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from purge.adapter import Control, Match, Readability
from purge.targets import NeedleKind, TargetKind, Targets, Trace
from purge_adapters._lines_grammar import Grammar
from purge_adapters._lines_records import (
    Entry,
    LineFields,
    Transcript,
    entries_of,
    said_by,
    take_apart,
    trace_of,
)
from purge_adapters._markdown_residue import folded_readings, needles_of, seen
from purge_adapters._markdown_text import plain_ends
from purge_adapters._owners import Held, Owners


@dataclass(slots=True)
class Look:
    """What is looked for in the shadows of one site, and whether the look can see.

    Feed it every live file with :meth:`take` first; then :meth:`controls` and :meth:`holds`.
    """

    site: str
    targets: Targets
    grammar: Grammar
    fields: LineFields
    needles: set[str] = field(default_factory=set)
    """Pieces of the records that go, as long as they stand in no record that stays."""
    _owners: Owners[str] = field(default_factory=Owners)
    _neighbour: bool | None = None
    _targets_seen: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for trace in self.targets.traces(self.site):
            self._add(trace, self.targets.keys_of(self.site, trace.id))

    def _add(self, trace: Trace, keys: frozenset[int]) -> None:
        pieces = needles_of(trace)
        self.needles |= pieces
        self._owners.add(pieces, keys)

    def begin(self, matches: Iterable[Match]) -> None:
        """Take what the records say that are still readable."""
        for match in matches:
            if match.readability is Readability.READABLE:
                self._add(match.trace, frozenset(hit.key for hit in match.hits))

    def take(self, text: Transcript, entries: Sequence[Entry], going: frozenset[str]) -> None:
        """Take one live file.

        Args:
            text: the file.
            entries: its records.
            going: the ids of the readable records that have to go.
        """
        whole = _folded([text], self.grammar)
        staying: list[Entry] = []
        for entry in entries:
            mine = needles_of(trace_of(entry, self.fields))
            if entry.id in going:
                if mine:
                    self._targets_seen.append(bool(seen(mine, whole)))
                continue
            staying.append(entry)
            if mine and self._neighbour is None:
                self._neighbour = bool(seen(mine, whole))
        if self.needles and staying:
            for entry in staying:
                lines = text.lines.lines[entry.span.start : entry.span.end]
                texts = (entry.said, plain_ends("".join(lines)))
                folded = tuple(piece for one in texts for piece in folded_readings(one))
                self.needles -= seen(self.needles, folded)

    def controls(self) -> Iterator[Control]:
        """Yield whether the look could have found something."""
        if self._targets_seen:
            yield Control(NeedleKind.TEXT, all(self._targets_seen), True)
        elif self._neighbour is not None:
            yield Control(NeedleKind.TEXT, self._neighbour, False)
        else:
            # Nothing is there that could be seen: every byte of every file was accounted for.
            yield Control(None, True, False)

    def holds(self, data: bytes) -> Held:
        """Return what a copy of a file holds of what is looked for."""
        # A broken copy may hold a line in the middle of NUL characters.
        text = take_apart(self.grammar, "\0", data.replace(b"\0", b"\n"))
        wide = take_apart(self.grammar, "\0", data)
        if self.needles:
            held = self._owners.of(seen(self.needles, _folded([text, wide], self.grammar)))
            if held is True:
                return True
        else:
            held = frozenset()
        keys = set(held or ())
        for one in (text, wide):
            for entry in entries_of(one, self.grammar, self.fields):
                hits = self.targets.match(self.site, entry.record)
                if hits and not (entry.blanked and all(map(self._by_name, (h.key for h in hits)))):
                    keys.update(hit.key for hit in hits)
        return frozenset(keys)

    def _by_name(self, key: int) -> bool:
        return self.targets[key].kind not in (TargetKind.PHRASE, TargetKind.COPY)


def _folded(texts: Iterable[Transcript], grammar: Grammar) -> tuple[str, ...]:
    """Return all that texts say, as it is compared: as written, and without the prefixes."""
    found: list[str] = []
    for text in texts:
        said = (said_by(text.lines, grammar, span) for span in text.spans)
        found += folded_readings(plain_ends("".join(text.lines.lines)))
        found += folded_readings("\n".join(said))
    return tuple(dict.fromkeys(found))
