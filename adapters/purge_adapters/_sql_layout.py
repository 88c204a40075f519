"""Where in a database's schema the things are that the manifest speaks of one table.

From what it says and the schema to one :class:`Layout`, or to everything that is wrong with them;
what ties the tables of a site is added by :mod:`purge_adapters._sql_tables`. Reads no store.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Final

from purge.adapter import Action, Site
from purge_adapters._sql_schema import Column, Kind, Schema, Table
from purge_adapters._sql_settings import LINKS, Archived, ChildTable, LinkTable, TableFormat
from purge_adapters._sql_values import Field

_ID_LIKE: Final = re.compile(r"(?i:(?:^|_)(?:id|ids|uuid|guid|key|hash)$)|[a-z]Ids?$")
_MOST_CHILDREN: Final = 64
"""Foreign keys may run in circles; a path never visits a table twice, and there is an end."""


@dataclass(frozen=True, slots=True)
class Child:
    """A table whose rows belong to the rows of the table above it.

    ``link``: its rows only tie a record to others; they hold none of its text. ``own``: they are
    records of their own, which go with the one above and are named by themselves. A child in the
    table of its parent stands for those below it at any depth.
    """

    table: Table
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]
    declared: bool
    text: tuple[Field, ...] = ()
    """The fields whose words are the record's."""
    link: bool = False
    own: bool = False
    kept: frozenset[str] = frozenset()
    """Further columns that tie its rows to others."""
    children: tuple[Child, ...] = ()

    def descend(self) -> Iterator[Child]:
        """Yield this child and all below it."""
        yield self
        for child in self.children:
            yield from child.descend()


@dataclass(frozen=True, slots=True)
class Link:
    """Where the ids of source records stand, if not in the record itself."""

    table: Table
    own: str
    source: str


@dataclass(frozen=True, slots=True)
class Unlink:
    """A column of another table, or the same, that becomes NULL when the row it names goes."""

    table: Table
    column: str
    to: str


@dataclass(frozen=True, slots=True)
class Count:
    """A column that says how many rows below belong to a row."""

    column: str
    child: Child


@dataclass(frozen=True, slots=True)
class Above:
    """A table of the site to whose rows rows belong, and by what."""

    child: Child
    layout: Layout


@dataclass(frozen=True, slots=True)
class Layout:
    """What means what in one table of a site."""

    schema: Schema
    table: Table
    id: str
    text: tuple[Field, ...]
    metadata: tuple[Field, ...]
    time: Field | None
    scope: Mapping[str, Field]
    subject: Field | None
    parents: Mapping[str, Field | Link | None]
    archived: Archived | None
    children: tuple[Child, ...]
    refers_to_itself: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """Foreign keys within the table that forbid or carry on a delete: columns and their target."""
    part: str = ""
    """What tells its records from those of the site's other tables, where there are any."""
    on_words: Action | None = None
    """What happens to a row that only its words name, if not the site's action."""
    drops_blank: bool = False
    """With ``blank``: a row goes when nothing of its text is left."""
    unlinks: tuple[Unlink, ...] = ()
    """What loses its link when a row of this table goes."""
    counts: tuple[Count, ...] = ()
    above: tuple[Above, ...] = ()
    """Where a scope is said that the table has no field for."""
    ties: frozenset[str] = frozenset()
    """The columns that say to which rows of other tables a row belongs."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return self.table.primary_key

    def all_children(self) -> Iterator[Child]:
        """Yield every table below, on every path."""
        for child in self.children:
            yield from child.descend()

    @property
    def table_names(self) -> frozenset[str]:
        """The case-folded names of all tables that hold parts of records."""
        below = (child.table.name.casefold() for child in self.all_children())
        return frozenset((self.table.name.casefold(), *below))


@dataclass(slots=True)
class Draft:
    """A layout in the making and what is wrong with it.

    ``others``: the site has further tables; what the manifest says of all its records need not
    mean something in each.
    """

    site: Site
    name: str
    settings: TableFormat
    schema: Schema
    others: bool = False
    faults: list[str] = field(default_factory=list)


def draw_one(draft: Draft) -> Layout | None:
    """Return where everything is in one table, as far as it can be told."""
    table = _main_table(draft)
    if table is None:
        return None
    identity = _identity(draft, table)
    site, settings, schema = draft.site, draft.settings, draft.schema
    scope = {key: _mapped(draft, table, name, f"scope.{key}") for key, name in site.scope.items()}
    subject = _mapped(draft, table, site.subject, "subject") if site.subject else None
    time = _field(draft, table, settings.time, "time") if settings.time else None
    parents = {
        source: _parent(draft, table, name, f"derived_from.{source}")
        for source, name in site.derived_from.items()
    }
    archived = settings.archived
    if archived and (column := _column(draft, table, archived.column, "archived.column")):
        archived = Archived(column.name, archived.value)
    children = _children(draft, table, identity)
    mapped = {
        each[0]
        for each in (*scope.values(), subject, time, *parents.values())
        if isinstance(each, tuple)
    }
    mapped |= {*table.primary_key, identity, archived.column if archived else identity}
    mapped |= {
        name for each in schema.references if each.table == table.name for name in each.columns
    }
    text = _fields(draft, table, settings.text, "text")
    metadata = _fields(draft, table, settings.metadata, "metadata")
    free = _free(table, mapped)
    text = text or free
    named = {each[0] for each in text if not each[1]}
    return Layout(
        schema=schema,
        table=table,
        id=identity,
        text=text,
        metadata=metadata or tuple(each for each in free if each[0] not in named),
        time=time,
        scope={key: each for key, each in scope.items() if each},
        subject=subject,
        parents=parents,
        archived=archived,
        children=children,
        refers_to_itself=tuple(
            (each.columns, each.target_columns)
            for each in schema.referring_to(table.name)
            if each.table == table.name and not each.outlives
        ),
    )


def _free(table: Table, mapped: Collection[str]) -> tuple[Field, ...]:
    """Return the columns that may hold words: of text, not mapped, and not an id by their name."""
    return tuple(
        (column.name, ())
        for column in table.columns
        if column.is_text
        and not column.generated
        and column.name not in mapped
        and not _ID_LIKE.search(column.name)
    )


def _main_table(draft: Draft) -> Table | None:
    name = draft.name
    table = draft.schema.table(name)
    if table is None:
        known = [each.name for each in draft.schema.tables.values()]
        draft.faults.append(f"There is no table '{name}'.{nearest(name, known)}")
        return None
    if table.kind is not Kind.TABLE:
        draft.faults.append(
            f"'{table.name}' is a {table.kind.value}; name the table that holds the rows."
        )
        return None
    if not table.primary_key:
        draft.faults.append(
            f"The table '{table.name}' has no primary key, so that no row can be named for "
            "certain. Give it one."
        )
        return None
    return table


def _identity(draft: Draft, table: Table) -> str:
    if draft.settings.id is not None:
        column = _column(draft, table, draft.settings.id, "id")
        return column.name if column else table.primary_key[0]
    if len(table.primary_key) > 1:
        names = ", ".join(table.primary_key)
        draft.faults.append(
            f"The primary key of '{table.name}' has several columns ({names}): say with 'id' "
            "which one is the record's id."
        )
    return table.primary_key[0]


def _column(draft: Draft, table: Table, name: str, setting: str) -> Column | None:
    column = table.column(name)
    if column is None:
        draft.faults.append(
            f"{setting}: the table '{table.name}' has no column '{name}'."
            f"{nearest(name, table.names)}"
        )
    return column


def _field(draft: Draft, table: Table, name: str, setting: str) -> Field | None:
    """Return the column and path that a field means: the longest column name wins."""
    parts = name.split(".")
    for taken in range(len(parts), 0, -1):
        column = table.column(".".join(parts[:taken]))
        if column is not None:
            return column.name, tuple(parts[taken:])
    _column(draft, table, parts[0], setting)
    return None


def _mapped(draft: Draft, table: Table, name: str, setting: str) -> Field | None:
    """Return the field that the manifest maps for all records of the site.

    Where there are several tables it may be ``TABLE.FIELD``, and some may not have it.
    """
    own = name.removeprefix(f"{table.name}.") if draft.others else name
    if draft.others and table.column(own.split(".")[0]) is None:
        return None
    return _field(draft, table, own, setting)


def _fields(draft: Draft, table: Table, names: tuple[str, ...], setting: str) -> tuple[Field, ...]:
    found = (_field(draft, table, name, setting) for name in names)
    return tuple(each for each in found if each is not None)


def _parent(draft: Draft, table: Table, name: str | None, setting: str) -> Field | Link | None:
    if name is None:
        return None
    links = draft.settings.links
    for link in links:
        if name == f"{link.table}.{link.source}":
            return _link(draft, link, setting)
    if name == LINKS and table.column(LINKS) is None and links:
        if len(links) > 1:
            draft.faults.append(
                f"{setting}: there are several link tables; name one as TABLE.COLUMN."
            )
            return None
        return _link(draft, links[0], setting)
    return _mapped(draft, table, name, setting)


def _link(draft: Draft, link: LinkTable, setting: str) -> Link | None:
    table = _other_table(draft, link.table, setting)
    if table is None:
        return None
    own = _column(draft, table, link.own, f"{setting}: links.own")
    source = _column(draft, table, link.source, f"{setting}: links.source")
    return Link(table, own.name, source.name) if own and source else None


def _other_table(draft: Draft, name: str, setting: str) -> Table | None:
    table = draft.schema.table(name)
    if table is None or table.kind is Kind.VIEW:
        what = "is a view" if table else "does not exist"
        known = [each.name for each in draft.schema.tables.values() if each.kind is not Kind.VIEW]
        draft.faults.append(f"{setting}: the table '{name}' {what}.{nearest(name, known)}")
        return None
    return table


def _children(draft: Draft, table: Table, identity: str) -> tuple[Child, ...]:
    found = list(_declared(draft.schema, table, (table.name,)))
    for given in draft.settings.children:
        child = _given(draft, table, identity, given)
        if child is None:
            continue
        known = [each for each in found if _is_same(each, child)]
        if known and child.text:
            found[found.index(known[0])] = replace(known[0], text=child.text)
        elif not known:
            found.append(child)
    for link in draft.settings.links:
        other = draft.schema.table(link.table)
        own = other.column(link.own) if other else None
        if other is None or own is None or other.name == table.name:
            continue
        child = Child(other, (own.name,), (identity,), declared=False, link=True)
        found = [each for each in found if not _is_same(each, child)]
        if not any(_is_same(each, child) for each in found):
            found.append(child)
    return tuple(found)


def _is_same(one: Child, other: Child) -> bool:
    return one.table == other.table and one.columns == other.columns


def _given(draft: Draft, table: Table, identity: str, given: ChildTable) -> Child | None:
    """Return a child table that the manifest names."""
    child = _other_table(draft, given.table, "children")
    if child is None:
        return None
    if child.name == table.name:
        draft.faults.append(f"children: '{child.name}' is the table of the records itself.")
        return None
    if given.column == child.row_number:
        name: str | None = given.column
    else:
        column = _column(draft, child, given.column, "children.column")
        name = column.name if column else None
    target: str | None = identity
    if given.parent is not None and given.parent == table.row_number:
        target = given.parent
    elif given.parent is not None:
        parent = _column(draft, table, given.parent, "children.parent")
        target = parent.name if parent else None
    if name is None or target is None:
        return None
    below = tuple(_declared(draft.schema, child, (table.name, child.name)))
    text = _fields(draft, child, given.text, "children.text")
    mapped = {name, *child.primary_key}
    return Child(child, (name,), (target,), False, text or _free(child, mapped), children=below)


def _declared(schema: Schema, table: Table, path: tuple[str, ...]) -> Iterator[Child]:
    for reference in schema.referring_to(table.name):
        child = schema.table(reference.table)
        if child is None or child.name in path or reference.outlives or len(path) > _MOST_CHILDREN:
            continue
        below = tuple(_declared(schema, child, (*path, child.name)))
        mapped = {*child.primary_key, *reference.columns}
        mapped |= {name for each in below for name in each.parent_columns}
        yield Child(
            child,
            reference.columns,
            reference.target_columns,
            True,
            _free(child, mapped),
            children=below,
        )


def nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name.casefold(), {each.casefold(): each for each in known}, n=1)
    by_folded = {each.casefold(): each for each in known}
    return f" Did you mean '{by_folded[close[0]]}'?" if close else ""
