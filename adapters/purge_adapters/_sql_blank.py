"""Emptying records: the row, its key and its links stay, its text goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from purge_adapters._json_fields import shown
from purge_adapters._json_text import Path, leaves, replace_scalars
from purge_adapters._sql_layout import Child
from purge_adapters._sql_records import Records
from purge_adapters._sql_rows import Row, Rows, Whole, named, plain
from purge_adapters._sql_schema import Table
from purge_adapters._sql_values import Field, decoded, is_json, strings_at

if TYPE_CHECKING:
    from purge_adapters._sql_fulltext import Upkeep


class Blanks:
    """Empties records of one site."""

    def __init__(self, rows: Rows, records: Records) -> None:
        self._rows = rows
        self._records = records

    def changes(self, whole: Whole, fields: Sequence[str]) -> bool:
        """Whether there is anything to empty."""
        return any(new for _, _, new in self._plan(whole, fields))

    def blank(self, whole: Whole, fields: Sequence[str], upkeep: Upkeep) -> None:
        """Empty a record: what ``text`` names, the fields that matched, and the rows below.

        Raises:
            sqlite3.IntegrityError: a constraint wants text there.
        """
        for table, row, new in self._plan(whole, fields):
            if not new:
                continue
            upkeep.before_update(table, [row])
            self._update(table, row, new)
            values = tuple(
                new.get(name, value) for name, value in zip(table.names, row.values, strict=True)
            )
            upkeep.after_update(table, [Row(values, row.number)])

    def _plan(
        self, whole: Whole, fields: Sequence[str]
    ) -> Iterator[tuple[Table, Row, dict[str, Any]]]:
        layout = self._rows.layout
        kept = {*layout.key, layout.id}
        named_fields = [*layout.text]
        matched = [field for field in fields if field]
        yield (
            layout.table,
            whole.row,
            dict(_emptied(layout.table, whole.row, named_fields, matched, kept)),
        )
        for part in whole.below:
            if part.child.link:
                continue
            table = part.child.table
            prefix = f"{table.name}."
            inside = [each.removeprefix(prefix) for each in matched if each.startswith(prefix)]
            for row in part.rows:
                yield (
                    table,
                    row,
                    dict(_emptied(table, row, part.child.text, inside, _kept(part.child))),
                )

    def _update(self, table: Table, row: Row, new: Mapping[str, Any]) -> None:
        import sqlalchemy
        from sqlalchemy.exc import IntegrityError

        from purge_adapters._sql_remove import naming

        (condition,) = naming(table, [row])

        def update(values: Mapping[str, Any]) -> None:
            statement = sqlalchemy.update(plain(table)).where(condition)
            self._rows.core.execute(
                statement.values({named(table, name): value for name, value in values.items()})
            )

        try:
            update(new)
        except IntegrityError:
            # A CHECK or UNIQUE may refuse the empty text where it takes NULL.
            nullable = {each.name for each in table.columns if each.nullable}
            if not nullable.issuperset(new):
                raise
            update({name: None if value in ("", b"") else value for name, value in new.items()})


def _kept(child: Child) -> set[str]:
    below = {name for each in child.children for name in each.parent_columns}
    return {*child.table.primary_key, *child.columns, *below}


def _emptied(
    table: Table, row: Row, fields: Sequence[Field], matched: Sequence[str], kept: set[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a row that change, each with its new value."""
    for column, value in zip(table.columns, row.values, strict=True):
        if column.generated or column.name in kept or value is None:
            continue
        paths = [path for name, path in fields if name == column.name]
        hits = [
            each.removeprefix(column.name)
            for each in matched
            if each == column.name or each.startswith(f"{column.name}.")
        ]
        if not (paths or hits):
            continue
        if isinstance(value, str | bytes):
            new: object = _without_text(value, paths, [hit.removeprefix(".") for hit in hits])
        elif hits:
            new = None if column.nullable else 0
        else:
            continue
        if new != value:
            yield column.name, new


def _without_text(value: str | bytes, paths: Sequence[Path], hits: Sequence[str]) -> str | bytes:
    if not is_json(value):
        whole = any(not path for path in paths) or "" in hits
        if not whole:
            return value
        # What holds no string at all (a picture, a vector) is no text.
        if isinstance(value, bytes) and not any(True for _ in strings_at(value, ())) and not hits:
            return value
        return b"" if isinstance(value, bytes) else ""
    text = value.decode() if isinstance(value, bytes) else value
    numbers = {
        path
        for path, leaf, is_key in leaves(decoded(value))
        if not is_key and not isinstance(leaf, str)
    }

    def choose(path: Path, is_key: bool) -> str | None:
        if is_key:
            return "" if shown(path, is_key=True) in hits else None
        if shown(path) in hits:
            return ""
        if path not in numbers and any(_leads(each, path) for each in paths):
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
