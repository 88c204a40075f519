"""Looking for what outlives the records of texts: the shadows of their files.

Every line of a live file that says something belongs to a record, so what is left in live files
is what ``find`` yields. Copies lie beside: backups, swap files, trash, git histories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
from purge_adapters._markdown_text import plain_ends
from purge_adapters._owners import Held
from purge_adapters._text_looks import TextLook, folded_readings, needles_of, seen


@dataclass(slots=True)
class Look(TextLook):
    """What is looked for in the shadows of one site, and whether the look can see.

    Feed it every live file with :meth:`take` first.
    """

    grammar: Grammar
    fields: LineFields

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
                keys |= self.keys_of(hits, blanked=entry.blanked)
        return frozenset(keys)


def _folded(texts: Iterable[Transcript], grammar: Grammar) -> tuple[str, ...]:
    """Return all that texts say, as it is compared: as written, and without the prefixes."""
    found: list[str] = []
    for text in texts:
        said = (said_by(text.lines, grammar, span) for span in text.spans)
        found += folded_readings(plain_ends("".join(text.lines.lines)))
        found += folded_readings("\n".join(said))
    return tuple(dict.fromkeys(found))
