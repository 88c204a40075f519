"""What is to be changed in one file of a declared format: from decisions to bytes.

Only what was decided is touched; every other byte stays as it is written. What would not be valid
JSON afterwards is not written. This module opens no file.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._document_files import DocumentFile, Unit
from purge_adapters._document_items import Item, PartPlace, empty_of
from purge_adapters._format_model import Layout, Leave
from purge_adapters._format_routes import INSIDE, is_at_or_below
from purge_adapters._json_text import NOT_JSON, Path, parse
from purge_adapters._json_tree import Ambiguous, JsonEditing, apply
from purge_adapters._jsonl_edit import Edit
from purge_adapters._jsonl_record import encode

__all__ = ["Blanking", "UnitWork", "edits_of", "texts_to_blank"]


@dataclass(frozen=True, slots=True)
class Blanking:
    """Strings that are emptied, names that are, and signed parts that go instead."""

    strings: frozenset[Path] = field(repr=False)
    keys: frozenset[Path] = field(repr=False)
    parts: tuple[PartPlace, ...] = field(repr=False)


def texts_to_blank(
    item: Item, strings: Iterable[Path], keys: Iterable[Path], *, only: bool
) -> Blanking | str:
    """Return what is emptied in a record, or why it cannot be.

    Args:
        item: the record.
        strings: what was found, from the record.
        keys: names that were found, from the record.
        only: nothing but these.
    """
    if not item.unit.entry.parsed:
        return "is not valid JSON and cannot be blanked. Use 'action: delete'."
    found = {item.absolute(path) for path in strings}
    names = {item.absolute(path) for path in keys}
    if any(item.is_fixed(path) for path in found) or item.path in names:
        return "has the words in its id or a link, which blanking keeps. Use 'action: delete'."
    if not only:
        found |= {one.path for one in item.text}
        if not found and not names:
            return "has no text field, so nothing can be emptied."
    signed = tuple(
        part
        for part in item.parts.values()
        if part.kind.signed and any(is_at_or_below(path, part.path) for path in found | names)
    )
    return Blanking(frozenset(found), frozenset(names), signed)


@dataclass(slots=True)
class UnitWork:
    """What is to be done to one unit."""

    gone: set[Path] = field(default_factory=set)
    """The records that go, by their paths; the empty one is the whole unit."""
    parts: set[Path] = field(default_factory=set)
    mends: list[tuple[Path, tuple[object, ...]]] = field(default_factory=list)
    blanked: list[Blanking] = field(default_factory=list)


def edits_of(file: DocumentFile, found: Sequence[tuple[list[Item], UnitWork]]) -> list[Edit]:
    """Return the edits for the units of a file that have work to be done.

    Args:
        file: the file.
        found: the records of each such unit, and the work.

    Raises:
        Permanent: it cannot be done without breaking something.
    """
    edits: list[Edit] = []
    lines: dict[int, list[tuple[Unit, UnitWork]]] = defaultdict(list)
    for items, work in found:
        unit = items[-1].unit
        if () in work.gone:
            lines[unit.line].append((unit, work))
        else:
            edits.append(Edit(unit.offset, _end(unit), _edited(items, work, file)))
    for line, gone in lines.items():
        edits += _cut(file, line, [unit for unit, _ in gone])
    return sorted(edits, key=lambda edit: edit.start)


def _end(unit: Unit) -> int:
    return unit.offset + len(unit.entry.data)


def _cut(file: DocumentFile, line: int, units: list[Unit]) -> Iterator[Edit]:
    """Take whole units out. Where nothing else is in a line, the line goes."""
    if not line:
        new = b"null" if file.kind.layout is Layout.EMBEDDED else b""
        yield from (Edit(unit.offset, _end(unit), new) for unit in units)
        return
    start, end = units[0].around
    if units[0].entry.whole:
        # What stands before the record in its line is a byte order mark.
        yield Edit(units[0].offset, end, b"")
    elif len(units) == units[0].siblings:
        yield Edit(min(start, units[0].offset), end, b"")
    else:
        yield from (Edit(unit.offset, _end(unit), b"") for unit in units)


def _edited(items: list[Item], work: UnitWork, file: DocumentFile) -> bytes:
    unit = items[-1].unit
    text = unit.entry.text
    core = text.strip("\0")
    at = text.index(core)
    try:
        editing = JsonEditing(core)
        dropped = _do(editing, items, work)
        _keep_counts(editing, items, work, dropped)
        made = apply(core, editing.changes())
    except Ambiguous:
        raise Permanent(
            f"{file.where}{unit.place}: a name stands twice in an object that would have to be "
            "changed.",
            problem=ProblemCode.UNSUPPORTED,
        ) from None
    parts = parse(made)
    if len(parts) != 1 or parts[0][2] is NOT_JSON:
        raise Permanent(
            f"{file.where}{unit.place}: the change would leave invalid JSON.",
            problem=ProblemCode.UNSUPPORTED,
        )
    return encode(text[:at] + made + text[at + len(core) :])


def _do(editing: JsonEditing, items: list[Item], work: UnitWork) -> set[Path]:
    """Carry the work out; return the paths that are dropped."""
    dropped: set[Path] = set()
    for path in work.gone:
        while path and path[-1] == INSIDE:
            path = path[:-1]
        dropped.add(path)
    emptied: dict[Path, object] = {}
    for item in items:
        if item.path in work.gone:
            dropped.update(item.further)
        for path, part in item.parts.items():
            if path in work.parts:
                if part.kind.leave is Leave.NOTHING:
                    dropped.add(path)
                else:
                    emptied[path] = empty_of(part.value, part.kind.leave)
    for blanking in work.blanked:
        dropped.update(part.path for part in blanking.parts)
    for path, values in work.mends:
        if not values:
            dropped.add(path)
    for path in dropped:
        if not _is_covered(path, dropped, itself=False):
            editing.drop(path)
    for path, value in emptied.items():
        if not _is_covered(path, dropped):
            editing.put(path, [value])
    for path, values in work.mends:
        if values and not _is_covered(path, dropped):
            editing.put(path, list(values))
    blanked = {path for blanking in work.blanked for path in blanking.strings}
    for path in blanked:
        if not _is_covered(path, dropped):
            editing.put(path, [""])
    for path in {path for blanking in work.blanked for path in blanking.keys}:
        if not _is_covered(path, dropped):
            editing.rename(path, "")
    _keep_hashes(editing, items, {**emptied, **dict.fromkeys(blanked, "")}, dropped)
    return dropped


def _is_covered(path: Path, dropped: set[Path], *, itself: bool = True) -> bool:
    """Whether a path leads into something that is dropped, or to it."""
    return any(path[:taken] in dropped for taken in range(len(path) + itself))


def _keep_hashes(
    editing: JsonEditing, items: list[Item], changed: dict[Path, object], dropped: set[Path]
) -> None:
    """Make digests right again that were right before."""
    for item in items:
        for rule in item.kind.hashes:
            texts = [(path, text) for path, text in item.values(rule.of) if isinstance(text, str)]
            fields = list(item.values(rule.field))
            if len(texts) != 1 or len(fields) != 1 or _is_covered(item.path, dropped):
                continue
            (path, text), (place, said) = texts[0], fields[0]
            if said != _digest(rule.algorithm, text) or _is_covered(place, dropped):
                continue
            if path in changed:
                new = changed[path]
                editing.put(place, [_digest(rule.algorithm, new) if isinstance(new, str) else None])
            elif _is_covered(path, dropped):
                editing.put(place, [None])


def _digest(algorithm: str, text: str) -> str:
    return hashlib.new(algorithm, text.encode("utf-8", "surrogatepass")).hexdigest()


def _keep_counts(
    editing: JsonEditing, items: list[Item], work: UnitWork, dropped: set[Path]
) -> None:
    """Make counts right again that were right before."""
    more: dict[Path, int] = {
        path: len(values) - 1 for path, values in work.mends if len(values) > 1
    }
    for item in items:
        for count in item.kind.counts:
            if count.of is None or _is_covered(item.path, dropped):
                continue
            places = [path for path, _ in item.values(count.of)]
            stay = [path for path in places if not _is_covered(path, dropped)]
            after = len(stay) + sum(more.get(path, 0) for path in stay)
            for path, said in item.values(count.field):
                right = said == len(places) and not isinstance(said, bool)
                if right and after != said and not _is_covered(path, dropped):
                    editing.put(path, [after])
