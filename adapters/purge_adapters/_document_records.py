"""The records that a format declares, as they stand in a JSON value.

Every string of a value belongs to the innermost record around it, or to none. This module opens
no file.
"""

from __future__ import annotations

from collections.abc import Iterator

from purge.matching.fragments import runs
from purge_adapters._document_files import Unit
from purge_adapters._document_items import Item, PartPlace, Said, meets
from purge_adapters._format_model import FileKind, RecordKind
from purge_adapters._format_routes import INSIDE, enter
from purge_adapters._json_fields import Fields
from purge_adapters._json_text import Path, items

__all__ = ["columns_of", "read_unit"]


def read_unit(
    unit: Unit, kind: FileKind, file: str, fields: Fields, *, numbers: bool = False
) -> list[Item]:
    """Return the records of a unit, outer ones first, and the frame around them as the last.

    Args:
        unit: the value.
        kind: what the format says of its file.
        file: the name of the file, for handles.
        fields: what the site maps.
        numbers: numbers count as strings as well.
    """
    root = unit.entry.value
    frame = next(record for record in kind.records if record.is_frame)
    around = Item(frame, (), root, unit, file, fields, None)
    found: dict[Path, Item] = {}
    entered: set[Path] = set()
    for record in kind.records:
        if record.is_frame:
            continue
        for path, value in record.at.places(root):
            for place, further, said in _rows(record, path, value):
                if place not in found and meets(said, record.where):
                    item = Item(record, place, said, unit, file, fields, around, further=further)
                    found[place] = item
                    found.update(dict.fromkeys(further, item))
    for path, item in found.items():
        if path != item.path:
            continue
        for taken in range(len(path) - 1, -1, -1):
            if path[:taken] in found:
                item.outer = found[path[:taken]]
                break
        for part in item.kind.parts if unit.entry.parsed else ():
            for place, value in item.values(part.at):
                if place not in item.parts and meets(value, part.where):
                    item.parts[place] = PartPlace(place, part, value)
                    _note_entered(place, entered)
        for link in item.kind.links:
            if link.field.enters:
                for place, _ in item.values(link.field):
                    _note_entered(place, entered)
        _note_entered(path, entered)
    _tell(root, around, found, entered, numbers)
    _tell_pieces(root, around, found, entered)
    if not unit.entry.parsed:
        torn = found.get((), around)
        torn.said += [Said((), text, False) for text in unit.entry.lines()]
    each = {id(item): item for item in found.values()}
    return [*sorted(each.values(), key=lambda item: len(item.path)), around]


def _rows(
    record: RecordKind, path: Path, value: object
) -> Iterator[tuple[Path, tuple[Path, ...], object]]:
    """Yield the records at a place: one, or the rows of columns that stand side by side."""
    if not record.columns:
        yield path, (), value
        return
    columns = columns_of(record, value)
    if columns is not None and len({len(column) for column in columns.values()}) == 1:
        for at in range(len(next(iter(columns.values())))):
            places = [(*path, name, at) for name in columns]
            yield places[0], tuple(places[1:]), {name: it[at] for name, it in columns.items()}


def columns_of(record: RecordKind, value: object) -> dict[str, list[object]] | None:
    """Return the columns of a record kind that an object has; ``None`` where it has none."""
    if not isinstance(value, dict):
        return None
    found = {name: value[name] for name in record.columns if isinstance(value.get(name), list)}
    return found or None


def _note_entered(path: Path, entered: set[Path]) -> None:
    for at, step in enumerate(path):
        if step == INSIDE:
            entered.add(path[:at])


def _tell(
    root: object, frame: Item, found: dict[Path, Item], entered: set[Path], numbers: bool
) -> None:
    """Give every string of a value to the record in which it stands."""
    stack: list[tuple[Path, object, Item, PartPlace | None]] = [((), root, frame, None)]
    while stack:
        path, value, owner, part = stack.pop()
        owner, part = _owner(path, owner, part, found)
        if isinstance(value, dict):
            for key, inner in items(value):
                below = (*path, key)
                at, in_part = _owner(below, owner, part, found)
                at.said.append(Said(below, key, True, in_part))
                stack.append((below, inner, owner, part))
        elif isinstance(value, list):
            for n, inner in enumerate(value):
                stack.append(((*path, n), inner, owner, part))
        elif isinstance(value, str):
            if path in entered:
                inside = enter(value)
                if isinstance(inside, dict | list):
                    stack.append(((*path, INSIDE), inside, owner, part))
                    continue
            mended = owner.unit.entry.mend(value)
            owner.said.append(Said(path, mended, False, part))
        elif numbers and isinstance(value, int | float) and not isinstance(value, bool):
            owner.said.append(Said(path, str(value), False, part))


def _tell_pieces(root: object, frame: Item, found: dict[Path, Item], entered: set[Path]) -> None:
    """Give every text in several strings to the record in which all of them stand."""
    if not frame.unit.entry.parsed:
        return
    values: list[tuple[Path, object]] = [((), root)]
    for place in sorted(entered, key=len):
        inside = enter(_value_at(root, place))
        if isinstance(inside, dict | list):
            values.append(((*place, INSIDE), inside))
    for base, value in values:
        for run in runs(value, base):
            owners = {id(it): it for it in (_owner_of(path, frame, found) for path in run.paths)}
            # A text that goes over several records is nobody's, so that it is told and left.
            owner = next(iter(owners.values())) if len(owners) == 1 else frame
            apart = [_value_at(value, path[len(base) :]) for path in run.paths]
            owner.in_pieces.append(_in_pieces(owner, run.paths, run.text, apart))
    for item in {id(it): it for it in found.values()}.values():
        for route in item.kind.joined:
            for place, value in item.values(route):
                if isinstance(value, list) and all(isinstance(it, str) for it in value):
                    paths = tuple((*place, at) for at in range(len(value)))
                    item.in_pieces.append(_in_pieces(item, paths, "".join(value), value))


def _in_pieces(owner: Item, paths: tuple[Path, ...], text: str, apart: list[object]) -> Said:
    parts = {_part_of(path, owner) for path in paths}
    part = parts.pop() if len(parts) == 1 else None
    mend = owner.unit.entry.mend
    at = paths[0] if paths else owner.path
    said = tuple(mend(piece) for piece in apart if isinstance(piece, str))
    return Said(at, mend(text), False, part, paths, said)


def _part_of(path: Path, owner: Item) -> PartPlace | None:
    places = (path[:taken] for taken in range(len(owner.path), len(path) + 1))
    return next((owner.parts[place] for place in places if place in owner.parts), None)


def _owner_of(path: Path, frame: Item, found: dict[Path, Item]) -> Item:
    places = (path[:taken] for taken in range(len(path), -1, -1))
    return next((found[place] for place in places if place in found), frame)


def _value_at(value: object, path: Path) -> object:
    """Return what stands at a path, in strings that hold JSON too; ``None`` for nothing."""
    for step in path:
        if step == INSIDE:
            value = enter(value)
        elif isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return None
    return value


def _owner(
    path: Path, owner: Item, part: PartPlace | None, found: dict[Path, Item]
) -> tuple[Item, PartPlace | None]:
    item = found.get(path)
    if item is not None:
        owner, part = item, None
    return owner, owner.parts.get(path, part) if part is None else part
