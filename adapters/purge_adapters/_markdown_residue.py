"""Looking for what outlives the records of notes: the shadows of their files.

Every byte of a live note belongs to a record or to the structure around it, so what is left in
live notes is what ``find`` yields. Copies lie beside: backups, swap files, trash, git histories,
files without a name that a process holds open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from purge.adapter import ProblemCode, Residue
from purge.matching import Flavor
from purge.targets import Hit, Record, TargetKind, Targets, Text
from purge_adapters._markdown_fields import front_list
from purge_adapters._markdown_files import Opened
from purge_adapters._markdown_front import look_up
from purge_adapters._markdown_records import FieldMap, Grain, Note, read_note
from purge_adapters._markdown_text import plain_ends, read_lines, visible
from purge_adapters._markdown_units import Unit, trace_of, units_of
from purge_adapters._owners import Held
from purge_adapters._text_looks import TextLook, folded_readings, needles_of, seen


def match_unit(site: str, targets: Targets, unit: Unit) -> tuple[Hit, ...]:
    """Return every way in which a record is named, by any of its names."""
    hits = list(targets.match(site, unit.record()))
    known = {hit.key for hit in hits}
    for alias in unit.aliases:
        if alias == unit.id:
            continue
        record = Record(alias, (), (), unit.said.scope)
        for hit in targets.match(site, record):
            if hit.key not in known:
                known.add(hit.key)
                hits.append(hit)
    return tuple(hits)


@dataclass(slots=True)
class Look(TextLook):
    """What is looked for in the shadows of one site, and whether the look can see.

    Feed it every live note with :meth:`take` first.
    """

    grain: Grain
    fields: FieldMap

    def take(self, note: Note, units: Sequence[Unit], going: frozenset[str]) -> None:
        """Take one live note.

        Args:
            note: the note.
            units: its records.
            going: the ids of the readable records that have to go.
        """
        whole = folded_readings(plain_ends("".join(note.lines.lines)))
        gone: set[int] = set()
        for unit in units:
            if unit.id in going:
                gone.update(at for a, b in unit.spans for at in range(a, b))
                if mine := self._needles_of(note, unit):
                    self._targets_seen.append(bool(seen(mine, whole)))
        for unit in units if self._neighbour is None else ():
            if all(at in gone for a, b in unit.spans for at in range(a, b)):
                continue
            if mine := self._needles_of(note, unit):
                self._neighbour = bool(seen(mine, whole))
                break
        if self.needles:
            rest = [line for at, line in enumerate(note.lines.lines) if at not in gone]
            self.needles -= seen(self.needles, folded_readings(plain_ends("".join(rest))))

    def made_from(self, item: Opened, field: str, going: frozenset[str]) -> Residue | None:
        """Return a note that stays and says that it was made from one that goes or is gone.

        Args:
            item: the note.
            field: in which field of its front matter it names others.
            going: the ids of the readable records that have to go.
        """
        if item.note.name in going:
            return None
        named = set(front_list(look_up(item.note.front.values, field)))
        gone = {trace.id for trace in self.targets.traces(self.site)} | going
        if not (named := named & gone):
            return None
        keys = [self.targets.keys_of(self.site, id) for id in named]
        return Residue(
            item.shown,
            "it says that it was made from a note that goes; what it tells of that is for a "
            "person to judge",
            problem=ProblemCode.DERIVED_FROM_PURGED,
            keys=frozenset().union(*keys) if all(keys) else frozenset(),
        )

    def _needles_of(self, note: Note, unit: Unit) -> frozenset[str]:
        return needles_of(trace_of(note, unit, self.fields.reader))

    def holds(self, data: bytes) -> Held:
        """Return what a copy of a file holds of what is looked for."""
        lines = read_lines(data)
        text = plain_ends("".join(lines.lines)).replace("\0", "\n")
        pieces = seen(self.needles, folded_readings(text)) if self.needles else set()
        held = self._owners.of(pieces)
        if held is True:
            return True
        keys = set(held or ())
        said = [Text("", reading, Flavor.MARKDOWN) for reading in (text, visible(text))]
        whole = self.targets.match(self.site, Record("\0", said))
        if not whole and not self._may_name(text):
            return frozenset(keys)
        note = read_note("\0", data)
        units = units_of(note, self.grain, self.fields)
        for unit in units:
            hits = match_unit(self.site, self.targets, unit)
            keys |= self.keys_of(hits, blanked=unit.blanked)
        return frozenset(keys)

    def _may_name(self, text: str) -> bool:
        """Whether a text may hold a field that names one of its records."""
        sources = {
            target.site or "" for target in self.targets if target.kind is TargetKind.LINEAGE
        }
        named = (
            *self.targets.ids(self.site),
            *self.targets.subjects(),
            *(id for source in sources for id in self.targets.lineage(source)),
        )
        return any(name in text or not name.isprintable() or '"' in name for name in named)
