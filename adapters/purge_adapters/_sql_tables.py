"""All tables of a site, and what ties their rows: which go with which, which lose a link.

From the settings and the schema to one :class:`Layouts`, or to everything that is wrong with them.
This module reads no store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from purge.adapter import Action, ProblemCode, Site
from purge.errors import Permanent
from purge_adapters._sql_layout import (
    Above,
    Child,
    Count,
    Draft,
    Layout,
    Unlink,
    draw_one,
    nearest,
)
from purge_adapters._sql_schema import Schema, Table
from purge_adapters._sql_settings import Belonging, SqlSettings, TableFormat
from purge_adapters._sql_values import Field


@dataclass(frozen=True, slots=True)
class Layouts:
    """What means what in the tables of a site."""

    schema: Schema
    each: tuple[Layout, ...]

    @property
    def table_names(self) -> frozenset[str]:
        """The case-folded names of all tables that hold parts of records."""
        return frozenset(name for layout in self.each for name in layout.table_names)

    def tables(self) -> dict[Table, None]:
        """Return the tables that hold parts of records, each once."""
        below = (child.table for layout in self.each for child in layout.all_children())
        return dict.fromkeys((*(layout.table for layout in self.each), *below))

    def depths(self) -> dict[str, int]:
        """Return how far below a record the rows of each table stand at most."""
        found: dict[str, int] = {}

        def go(table: Table, children: Sequence[Child], depth: int) -> None:
            found[table.name] = max(depth, found.get(table.name, 0))
            for child in children:
                go(child.table, child.children, depth + 1)

        for layout in self.each:
            go(layout.table, layout.children, 0)
        return found


def lay_out(site: Site, settings: SqlSettings, schema: Schema) -> Layouts:
    """Return where everything is.

    Raises:
        Permanent: something is missing or cannot be worked with; the first fault.
    """
    layouts, faults = draw(site, settings, schema)
    if layouts is None or faults:
        names = [name for name, said in settings.each_table().items() if not said.optional]
        missing = layouts is None or any(schema.table(name) is None for name in names)
        problem = ProblemCode.UNREACHABLE if missing else ProblemCode.UNSUPPORTED
        raise Permanent(faults[0], problem=problem)
    return layouts


def draw(
    site: Site, settings: SqlSettings, schema: Schema
) -> tuple[Layouts | None, tuple[str, ...]]:
    """Return where everything is, as far as it can be told, and all faults.

    Nothing where none of the tables is there.
    """
    given = settings.each_table()
    several = settings.table is None
    faults: list[str] = []
    drawn: dict[str, Layout] = {}
    said: dict[str, TableFormat] = {}
    for name, table in given.items():
        if table.optional and schema.table(name) is None:
            continue
        draft = Draft(site, name, table, schema, others=len(given) > 1, faults=faults)
        layout = draw_one(draft)
        if layout is not None:
            key = layout.table.name
            drawn[key] = replace(layout, part=key if several else "")
            said[key] = table
    if not drawn:
        if not faults:
            faults.append(f"None of the tables {', '.join(given)} is in the database.")
        return None, tuple(faults)
    if several:
        faults.extend(_mapped_nowhere(site, drawn.values()))
        drawn = _Ties(schema, tuple(given), drawn, said, faults).tied()
    return Layouts(schema, tuple(drawn.values())), tuple(faults)


def _mapped_nowhere(site: Site, layouts: Collection[Layout]) -> Iterator[str]:
    """Yield a fault for every field of all records that no table has."""
    for key, name in site.scope.items():
        if not any(key in layout.scope for layout in layouts):
            yield f"scope.{key}: no table of the site has a column '{name}'."
    if site.subject and not any(layout.subject for layout in layouts):
        yield f"subject: no table of the site has a column '{site.subject}'."
    for source, field_name in site.derived_from.items():
        if field_name and not any(layout.parents.get(source) for layout in layouts):
            yield f"derived_from.{source}: no table of the site has a column '{field_name}'."


@dataclass(slots=True)
class _Ties:
    """What ties the tables of a site with one another."""

    schema: Schema
    given: Collection[str]
    drawn: Mapping[str, Layout]
    said: Mapping[str, TableFormat]
    faults: list[str]
    below: dict[str, list[Child]] = field(default_factory=dict)
    """By table, those whose rows belong to its rows."""
    unlinks: dict[str, list[Unlink]] = field(default_factory=dict)
    ties: dict[str, set[str]] = field(default_factory=dict)

    def tied(self) -> dict[str, Layout]:
        """Return the layouts with what ties them."""
        for name in self.drawn:
            for other, said in self.said[name].belongs_to.items():
                self._described(name, other, Belonging(said) if isinstance(said, str) else said)
        for name in self.drawn:
            self._declared(name)
        return {name: self._with_ties(layout) for name, layout in self.drawn.items()}

    def _described(self, name: str, other: str, said: Belonging) -> None:
        layout, setting = self.drawn[name], f"belongs_to.{other}"
        upper = next((o for o in self.drawn if o.casefold() == other.casefold()), None)
        if upper is None:
            if other.casefold() not in {each.casefold() for each in self.given}:
                known = nearest(other, self.given)
                self.faults.append(f"{name}.{setting}: the site has no table '{other}'.{known}")
            return
        column = layout.table.column(said.column)
        target = self.drawn[upper].table.column(said.to or self.drawn[upper].id)
        for found, table, wanted in (
            (column, layout.table, said.column),
            (target, self.drawn[upper].table, said.to or ""),
        ):
            if found is None:
                self.faults.append(
                    f"{name}.{setting}: the table '{table.name}' has no column '{wanted}'."
                    f"{nearest(wanted, table.names)}"
                )
        if column is None or target is None:
            return
        self.ties.setdefault(name, set()).add(column.name)
        self.ties.setdefault(upper, set()).add(target.name)
        if said.when_gone == "delete":
            child = Child(layout.table, (column.name,), (target.name,), declared=False)
            self.below.setdefault(upper, []).append(child)
        elif column.nullable:
            unlink = Unlink(layout.table, column.name, target.name)
            self.unlinks.setdefault(upper, []).append(unlink)
        else:
            self.faults.append(
                f"{name}.{setting}: '{column.name}' may not be NULL, so that a row cannot be "
                "unlinked. Say 'when_gone: delete'."
            )

    def _declared(self, upper: str) -> None:
        """Add what the schema says of two tables of the site and the description does not."""
        known = {(child.table.name, child.columns) for child in self.below.get(upper, ())} | {
            (each.table.name, (each.column,)) for each in self.unlinks.get(upper, ())
        }
        for each in self.schema.referring_to(upper):
            if each.table == upper or each.outlives or each.table not in self.drawn:
                continue
            self.ties.setdefault(each.table, set()).update(each.columns)
            if (each.table, each.columns) not in known:
                lower = self.drawn[each.table].table
                child = Child(lower, each.columns, each.target_columns, declared=True)
                self.below.setdefault(upper, []).append(child)

    def _with_ties(self, layout: Layout) -> Layout:
        name, said = layout.table.name, self.said[layout.table.name]
        described = {(each.table.name, each.columns) for each in self.below.get(name, ())} | {
            (each.table.name, (each.column,)) for each in self.unlinks.get(name, ())
        }
        on_words = Action(said.action) if said.action else None
        if on_words is None and self.below.get(name):
            on_words = Action.BLANK
        return replace(
            layout,
            text=self._text(layout),
            children=self._children(layout, (name,)),
            refers_to_itself=tuple(
                each for each in layout.refers_to_itself if (name, each[0]) not in described
            ),
            on_words=on_words,
            drops_blank=said.when_blank == "delete",
            unlinks=tuple(self.unlinks.get(name, ())),
            counts=tuple(self._counts(name)),
            above=self._above(name, (name,)),
            ties=frozenset(self.ties.get(name, ())),
        )

    def _counts(self, name: str) -> Iterator[Count]:
        table = self.drawn[name].table
        for column, other in self.said[name].counts.items():
            found = table.column(column)
            below = [
                child
                for child in self.below.get(name, ())
                if child.table.name.casefold() == other.casefold()
            ]
            if found is None:
                self.faults.append(
                    f"{name}.counts: the table '{name}' has no column '{column}'."
                    f"{nearest(column, table.names)}"
                )
            elif below:
                yield Count(found.name, below[0])
            elif other.casefold() not in {each.casefold() for each in self.given} - {
                each.casefold() for each in self.drawn
            }:
                self.faults.append(
                    f"{name}.counts.{column}: no rows of a table '{other}' belong to it."
                )

    def _above(self, name: str, path: tuple[str, ...]) -> tuple[Above, ...]:
        """Return the tables to whose rows those of a table belong, on every path."""
        return tuple(
            Above(child, replace(self.drawn[upper], above=self._above(upper, (*path, upper))))
            for upper, children in self.below.items()
            for child in children
            if child.table.name == name and upper not in path
        )

    def _children(self, layout: Layout, path: tuple[str, ...]) -> tuple[Child, ...]:
        """Return everything below a table, on every path that visits no table twice."""
        loose = [
            self._marked(each) for each in layout.children if each.table.name not in self.drawn
        ]
        own: list[Child] = []
        inside: list[Child] = []
        for each in self.below.get(layout.table.name, ()):
            name = each.table.name
            kept = frozenset(self.ties.get(name, ()))
            child = replace(each, own=True, kept=kept, text=self._text(self.drawn[name]))
            if name == layout.table.name:
                inside.append(child)
            elif name not in path:
                below = self._children(self.drawn[name], (*path, name))
                own.append(replace(child, children=below))
        itself = [replace(each, children=(*loose, *own)) for each in inside]
        return (*loose, *itself, *own)

    def _text(self, layout: Layout) -> tuple[Field, ...]:
        ties = self.ties.get(layout.table.name, ())
        return tuple(each for each in layout.text if each[1] or each[0] not in ties)

    def _marked(self, child: Child) -> Child:
        """Return a child that is no record; what is below it may be one."""
        below = tuple(self._marked(each) for each in child.children)
        return replace(child, own=child.table.name in self.drawn, children=below)
