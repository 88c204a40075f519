"""Emptying records: the row, its key and its links stay, its text goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from purge_adapters._json_text import Path, leaves, replace_scalars
from purge_adapters._sql_layout import Child
from purge_adapters._sql_records import Way
from purge_adapters._sql_rows import Row, Rows, Whole, identity, named, naming, plain
from purge_adapters._sql_schema import Table
from purge_adapters._sql_values import Field, decoded, is_json, strings_at, unpack

if TYPE_CHECKING:
    from purge_adapters._sql_fulltext import Upkeep

Place = tuple[Path, bool]
"""A path in the JSON of a column, and whether the key that stands there is meant."""
Words = Mapping[tuple[str, tuple[object, ...]], Mapping[str, Collection[Place]]]
"""By table and row, by column: where the words stand."""


def words_of(handle: Mapping[str, Any]) -> Words:
    """Return where the words stand by which a row was named, as its handle says it.

    Raises:
        KeyError, TypeError, ValueError: the handle is none of this adapter's.
    """
    found: dict[tuple[str, tuple[object, ...]], dict[str, list[Place]]] = {}
    for each in handle["words"]:
        row = tuple(unpack(value) for value in each["row"])
        columns = found.setdefault((str(each["table"]), row), {})
        columns[str(each["column"])] = [(tuple(path), bool(key)) for path, key in each["paths"]]
    return found


class Blanks:
    """Empties records of one table of a site."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def changes(self, whole: Whole, way: Way, words: Words) -> bool:
        """Whether there is anything to empty."""
        return any(new for _, _, new in self._plan(whole, way, words))

    def blank(self, whole: Whole, way: Way, words: Words, upkeep: Upkeep) -> None:
        """Empty a record: what ``text`` names, what holds the words, and the rows below.

        Raises:
            sqlite3.IntegrityError: a constraint wants text there.
        """
        for table, row, new in self._plan(whole, way, words):
            if new:
                update(self._rows, table, row, new, upkeep)

    def _plan(
        self, whole: Whole, way: Way, words: Words
    ) -> Iterator[tuple[Table, Row, dict[str, Any]]]:
        layout = self._rows.layout
        only_words = way is Way.EMPTY_WORDS
        kept = {*layout.key, layout.id, *layout.ties}

        def emptied(table: Table, row: Row, fields: Sequence[Field], kept: set[str]) -> Any:
            places = words.get((table.name, identity(table, row)), {})
            return dict(_emptied(table, row, () if only_words else fields, places, kept))

        yield layout.table, whole.row, emptied(layout.table, whole.row, layout.text, kept)
        for part in whole.below:
            child = part.child
            if child.link or (child.own and not way.reaches_records_below):
                continue
            for row in part.rows:
                yield child.table, row, emptied(child.table, row, child.text, _kept(child))


def update(rows: Rows, table: Table, row: Row, new: Mapping[str, Any], upkeep: Upkeep) -> None:
    """Set some columns of a row, and keep the full-text indexes in step.

    Raises:
        sqlite3.IntegrityError: a constraint does not let them be set.
    """
    import sqlalchemy
    from sqlalchemy.exc import IntegrityError

    (condition,) = naming(table, [row])

    def run(values: Mapping[str, Any]) -> None:
        statement = sqlalchemy.update(plain(table)).where(condition)
        rows.core.execute(
            statement.values({named(table, name): value for name, value in values.items()})
        )

    upkeep.before_update(table, [row])
    try:
        run(new)
    except IntegrityError:
        # A CHECK or UNIQUE may refuse the empty text where it takes NULL.
        nullable = {each.name for each in table.columns if each.nullable}
        if not nullable.issuperset(new):
            raise
        new = {name: None if value in ("", b"") else value for name, value in new.items()}
        run(new)
    values = tuple(
        new.get(name, value) for name, value in zip(table.names, row.values, strict=True)
    )
    upkeep.after_update(table, [Row(values, row.number)])


def _kept(child: Child) -> set[str]:
    below = {name for each in child.children for name in each.parent_columns}
    return {*child.table.primary_key, *child.columns, *child.kept, *below}


def _emptied(
    table: Table,
    row: Row,
    fields: Sequence[Field],
    words: Mapping[str, Collection[Place]],
    kept: set[str],
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a row that change, each with its new value."""
    for column, value in zip(table.columns, row.values, strict=True):
        if column.generated or column.name in kept or value is None:
            continue
        paths = [path for name, path in fields if name == column.name]
        places = words.get(column.name, ())
        if not (paths or places):
            continue
        if isinstance(value, str | bytes):
            new: object = _without_text(value, paths, places)
        elif places:
            new = None if column.nullable else 0
        else:
            continue
        if new != value:
            yield column.name, new


def _without_text(
    value: str | bytes, paths: Sequence[Path], places: Collection[Place]
) -> str | bytes:
    if not is_json(value):
        if not places and all(paths):
            return value
        # What holds no string at all (a picture, a vector) is no text.
        if isinstance(value, bytes) and not any(True for _ in strings_at(value, ())) and not places:
            return value
        return b"" if isinstance(value, bytes) else ""
    text = value.decode() if isinstance(value, bytes) else value
    numbers = {
        path
        for path, leaf, is_key in leaves(decoded(value))
        if not is_key and not isinstance(leaf, str)
    }
    chosen = set(places)

    def choose(path: Path, is_key: bool) -> str | None:
        if (path, is_key) in chosen:
            return ""
        if not is_key and path not in numbers and any(_leads(each, path) for each in paths):
            return ""
        return None

    new = replace_scalars(text, choose)
    return new.encode() if isinstance(value, bytes) else new


def _leads(path: Path, place: Path) -> bool:
    """Whether a dotted path means ``place`` or something above it. Lists are stepped over."""
    if not path:
        return True
    if not place:
        return False
    if isinstance(place[0], int):
        if str(path[0]) == str(place[0]):
            return _leads(path[1:], place[1:])
        return not str(path[0]).isdecimal() and _leads(path, place[1:])
    for taken in range(1, len(path) + 1):
        if ".".join(map(str, path[:taken])) == place[0]:
            return _leads(path[taken:], place[1:])
    return False
