"""Reading the rows of records and of the tables below them, by bound values only.

Every statement is SQLAlchemy's, with quoted names. What a statement returns is compared again in
Python, exactly: a database's own comparison may let other spellings of an id through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._sql_layout import Child, Layout, Link
from purge_adapters._sql_schema import Table
from purge_adapters._sql_sqlite import BATCH
from purge_adapters._sql_values import Field, id_text, spellings

if TYPE_CHECKING:
    import sqlalchemy

    from purge_adapters._sql_tables import Layouts

_SPACES: Final = " \t\r\n"
_FEW: Final = 20
"""Up to how many ids a list in JSON is searched for by the database already."""

Values = tuple[Any, ...]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its values in the order of the table's columns, and what names it for certain.

    ``number`` is the database's own number of the row, where there is one.
    """

    values: Values
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Below:
    """The rows of one child table that belong to one record."""

    child: Child
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """A row of the table and everything below it, in a fixed order."""

    row: Row
    below: tuple[Below, ...] = ()
    table: Table | None = None

    def without_records(self) -> Iterator[tuple[Table, Row]]:
        """Yield the row and the rows below it that are no records of their own, with their
        tables."""
        if self.table is not None:
            yield self.table, self.row
        for part in self.below:
            if not (part.child.own or part.child.link):
                yield from ((part.child.table, row) for row in part.rows)

    def all_values(self, *, own: bool = True) -> Iterator[Values]:
        """Yield the values of every row; ``own``: of those that are records of their own too."""
        yield self.row.values
        for part in self.below:
            if own or not part.child.own:
                for row in part.rows:
                    yield row.values


class Rows:
    """The rows of one table of a site, through one connection."""

    def __init__(self, core: sqlalchemy.Connection, layout: Layout) -> None:
        self.core = core
        self.layout = layout
        self._places = {name: at for at, name in enumerate(layout.table.names)}
        self.read = 0
        """How many rows were read."""

    def place(self, column: str) -> int:
        """Return where a column of the table stands in the values of a row."""
        return self._places[column]

    def value(self, row: Row, column: str) -> object:
        """Return one value of a row of the table."""
        if column == self.layout.table.row_number and column not in self._places:
            return row.number
        return row.values[self._places[column]]

    def key(self, row: Row) -> Key:
        """Return the values of the primary key."""
        return tuple(row.values[self._places[name]] for name in self.layout.key)

    def stream(self, table: Table, *conditions: Any) -> Iterator[Row]:
        """Yield the rows of a table that meet any of some conditions; all, where there is none."""
        import sqlalchemy

        statement = select(table)
        if conditions:
            statement = statement.where(sqlalchemy.or_(*conditions))
        numbered = table.row_number is not None
        for found in self.core.execute(statement):
            self.read += 1
            values = tuple(found)
            yield Row(values[1:], values[0]) if numbered else Row(values)

    def by_id(self, wanted: Iterable[str]) -> Iterator[Row]:
        """Yield the rows with these ids."""
        place = self.place(self.layout.id)
        for chunk in chunks(wanted):
            exact = set(chunk)
            column = named(self.layout.table, self.layout.id)
            candidates = [value for each in chunk for value in spellings(each)]
            for part in chunks(candidates):
                for row in self.stream(self.layout.table, column.in_(part)):
                    if id_text(row.values[place]) in exact:
                        yield row

    def by_field(self, field: Field, wanted: Sequence[str]) -> Iterator[Row]:
        """Yield the rows whose field may hold one of these ids, and others.

        The field may hold an id, a list of them in JSON, or JSON in which they stand at a path.
        """
        import sqlalchemy

        table, (name, path) = self.layout.table, field
        column = named(table, name)
        if not path:
            for chunk in chunks([value for each in wanted for value in spellings(each)]):
                yield from self.stream(table, column.in_(chunk))
        first = sqlalchemy.func.substr(sqlalchemy.func.ltrim(column, _SPACES), 1, 1)
        packed = sqlalchemy.or_(
            first.in_(["{", "[", '"']), sqlalchemy.func.typeof(column) == "blob"
        )
        if len(wanted) <= _FEW:
            # An id stands in JSON as it is, or behind a backslash somewhere.
            instr = sqlalchemy.func.instr
            holds = [instr(column, each) > 0 for each in (*wanted, "\\")]
            packed = sqlalchemy.and_(packed, sqlalchemy.or_(*holds))
        yield from self.stream(table, packed)

    def by_link(self, link: Link, wanted: Iterable[str]) -> Iterator[Row]:
        """Yield the rows that a link table ties to one of these ids."""
        owners: dict[str, None] = {}
        for own, source in self._links(link, link.source, wanted):
            if id_text(source) is not None and (said := id_text(own)) is not None:
                owners[said] = None
        yield from self.by_id(owners)

    def linked(self, link: Link, owners: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return, by the id of a record, the ids of its sources in a link table."""
        found: dict[str, dict[str, None]] = {}
        for own, source in self._links(link, link.own, owners):
            owner, said = id_text(own), id_text(source)
            if owner is not None and said is not None:
                found.setdefault(owner, {})[said] = None
        return {owner: tuple(sources) for owner, sources in found.items()}

    def _links(
        self, link: Link, column: str, wanted: Iterable[str]
    ) -> Iterator[tuple[object, object]]:
        import sqlalchemy

        own, source = named(link.table, link.own), named(link.table, link.source)
        asked = own if column == link.own else source
        exact = set(wanted)
        for chunk in chunks([value for each in exact for value in spellings(each)]):
            statement = sqlalchemy.select(own, source).where(asked.in_(chunk))
            for left, right in self.core.execute(statement):
                if id_text(left if column == link.own else right) in exact:
                    yield left, right

    def unlinked(self, parents: Iterable[Field | Link | None]) -> int:
        """Return how many rows say nothing in any of these fields."""
        import sqlalchemy

        empty: list[Any] = []
        for parent in parents:
            if isinstance(parent, Link):
                own = named(self.layout.table, self.layout.id)
                other = named(parent.table, parent.own)
                empty.append(~sqlalchemy.exists().where(other == own))
            elif parent is not None:
                empty.append(self._says_nothing(parent))
        statement = sqlalchemy.select(sqlalchemy.func.count()).select_from(plain(self.layout.table))
        return int(self.core.execute(statement.where(*empty)).scalar_one())

    def _says_nothing(self, field: Field) -> Any:
        import sqlalchemy

        column = named(self.layout.table, field[0])
        if not field[1]:
            # Compared as it stands, so that an index on the column serves.
            return sqlalchemy.or_(column.is_(None), column.in_(["", "[]", "{}", "null", '""']))
        valid = sqlalchemy.func.json_valid(column) == 1
        steps = "".join(f'."{step}"' for step in field[1])
        inside = sqlalchemy.func.json_extract(column, "$" + steps)
        return sqlalchemy.or_(
            column.is_(None),
            sqlalchemy.case((valid, inside.is_(None)), else_=True),
        )

    def whole(self, rows: Iterable[Row]) -> Iterator[Whole]:
        """Yield rows of the table with everything that is below them."""
        for chunk in chunks(rows):
            parts: list[list[Below]] = [[] for _ in chunk]
            for child in self.layout.children:
                self._descend(child, self.layout.table, [[row] for row in chunk], parts)
            for row, below in zip(chunk, parts, strict=True):
                yield Whole(row, tuple(below), self.layout.table)

    def _descend(
        self, child: Child, parent: Table, above: list[list[Row]], parts: list[list[Below]]
    ) -> None:
        """Add to each record the rows of ``child`` that refer to its rows in ``parent``."""
        owners: dict[tuple[str | None, ...], set[int]] = {}
        for at, rows in enumerate(above):
            for row in rows:
                key = said(parent, row, child.parent_columns)
                if None not in key:
                    owners.setdefault(key, set()).add(at)
        found: list[list[Row]] = [[] for _ in above]
        for row in self.referring(child, owners):
            for at in owners.get(said(child.table, row, child.columns), ()):
                found[at].append(row)
        for at, rows in enumerate(found):
            if child.table == parent:
                found[at] = rows = self._at_any_depth(child, rows, above[at])
            if rows:
                rows.sort(key=_order)
                parts[at].append(Below(child, tuple(rows)))
        if any(found):
            for below in child.children:
                self._descend(below, child.table, found, parts)

    def _at_any_depth(self, child: Child, first: list[Row], top: list[Row]) -> list[Row]:
        """Return rows that refer to rows of their own table, and all that refer to those."""
        met = {identity(child.table, row): row for row in top}
        found: list[Row] = []
        fresh = first
        while fresh := [row for row in fresh if identity(child.table, row) not in met]:
            met.update((identity(child.table, row), row) for row in fresh)
            found += fresh
            wanted = {said(child.table, row, child.parent_columns) for row in fresh}
            fresh = [
                row
                for row in self.referring(child, wanted)
                if said(child.table, row, child.columns) in wanted
            ]
        return found

    def referring(self, child: Child, keys: Iterable[tuple[str | None, ...]]) -> Iterator[Row]:
        """Yield the rows of a child table that may refer to one of these keys, and others."""
        column = named(child.table, child.columns[0])
        values = dict.fromkeys(
            value for key in keys if key[0] is not None for value in spellings(key[0])
        )
        for chunk in chunks(values):
            yield from self.stream(child.table, column.in_(chunk))

    def owners(self, child: Child, parent: Table, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of ``parent`` to which rows of its ``child`` refer."""
        keys = {said(child.table, row, child.columns) for row in rows}
        column = named(parent, child.parent_columns[0])
        values = dict.fromkeys(
            value for key in keys if key[0] is not None for value in spellings(key[0])
        )
        for chunk in chunks(values):
            for row in self.stream(parent, column.in_(chunk)):
                if said(parent, row, child.parent_columns) in keys:
                    yield row


class Tables:
    """The rows of all tables of one site, through one connection."""

    def __init__(self, core: sqlalchemy.Connection, layouts: Layouts) -> None:
        self.layouts = layouts
        self.each = tuple(Rows(core, layout) for layout in layouts.each)

    @property
    def read(self) -> int:
        """How many rows were read."""
        return sum(rows.read for rows in self.each)


def select(table: Table) -> Any:
    """Return a statement that selects the row's number, where there is one, and all columns."""
    import sqlalchemy

    first = [named(table, table.row_number)] if table.row_number else []
    return sqlalchemy.select(*first, *(named(table, name) for name in table.names))


@cache
def _as_it_is() -> Any:
    """Return a type that passes values as they are. Otherwise SQLAlchemy takes the type of the
    first value of a list for that of all."""
    from sqlalchemy.types import UserDefinedType

    class AsItIs(UserDefinedType[Any]):
        cache_ok = True

    return AsItIs()


@lru_cache(maxsize=64)
def plain(table: Table) -> Any:
    """Return a table for a statement: names always quoted, values passed as they are."""
    import sqlalchemy
    from sqlalchemy.sql.elements import quoted_name

    numbers = [table.row_number] if table.row_number else []
    columns = (
        sqlalchemy.column(quoted_name(name, True), _as_it_is()) for name in (*numbers, *table.names)
    )
    return sqlalchemy.table(quoted_name(table.name, True), *columns)


def named(table: Table, name: str) -> Any:
    """Return a column of a table for a statement."""
    return plain(table).c[name]


def said(table: Table, row: Row, columns: Iterable[str]) -> tuple[str | None, ...]:
    """Return what a row says in some columns, as ids are said."""
    return tuple(
        id_text(row.values[table.names.index(name)] if name in table.names else row.number)
        for name in columns
    )


def identity(table: Table, row: Row) -> tuple[object, ...]:
    """Return what names a row among those of its table that were read with it."""
    if row.number is not None:
        return (row.number,)
    return tuple(row.values[table.names.index(name)] for name in table.primary_key) or row.values


def naming(table: Table, rows: Sequence[Row]) -> Iterator[Any]:
    """Yield conditions that name exactly these rows, which were read in this transaction.

    Raises:
        Permanent: the table has neither row numbers nor a primary key.
    """
    import sqlalchemy

    if table.row_number is not None:
        yield named(table, table.row_number).in_([row.number for row in rows])
        return
    if not table.primary_key:
        raise Permanent(
            "A table that belongs to the records has no primary key.",
            problem=ProblemCode.UNSUPPORTED,
        )
    places = [(named(table, name), table.names.index(name)) for name in table.primary_key]
    for row in rows:
        yield sqlalchemy.and_(*(column == row.values[at] for column, at in places))


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield values in parts that one statement can ask for."""
    rest = iter(values)
    while part := list(islice(rest, BATCH)):
        yield part


def _order(row: Row) -> tuple[bool, int, str]:
    return row.number is None, row.number or 0, repr(row.values)
