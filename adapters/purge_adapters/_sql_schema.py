"""What a database's schema says, whichever database it is, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a name in the schema is."""

    TABLE = "table"
    VIEW = "view"
    VIRTUAL = "virtual table"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``key`` is its place in the primary key, from 1; 0: it is not in it."""

    name: str
    type: str
    nullable: bool
    key: int = 0
    generated: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is declared to hold text or JSON."""
        declared = self.type.upper()
        return any(word in declared for word in ("CHAR", "CLOB", "TEXT", "JSON", "STRING"))


@dataclass(frozen=True, slots=True)
class Table:
    """A table, view or virtual table."""

    name: str
    kind: Kind
    columns: tuple[Column, ...]
    row_number: str | None = None
    """The name by which the database's own number of a row can be asked for."""

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The names of the columns of the primary key, in its order."""
        inside = sorted((column.key, column.name) for column in self.columns if column.key)
        return tuple(name for _, name in inside)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column | None:
        """Return the column of this name. Databases do not tell capitals apart."""
        exact = (each for each in self.columns if each.name == name)
        folded = (each for each in self.columns if each.name.casefold() == name.casefold())
        return next(exact, None) or next(folded, None)


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared foreign key: ``table.columns`` refer to ``target.target_columns``."""

    table: str
    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]
    on_delete: str

    @property
    def outlives(self) -> bool:
        """Whether the schema says that the row stays when what it refers to goes."""
        return self.on_delete in ("SET NULL", "SET DEFAULT")


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: on which table, at what, and what it does, as it was declared."""

    name: str
    table: str
    statement: str


@dataclass(frozen=True, slots=True)
class Schema:
    """Everything that was declared. Keys of ``tables`` are case-folded names."""

    tables: Mapping[str, Table]
    references: tuple[Reference, ...] = ()
    triggers: tuple[Trigger, ...] = ()

    def table(self, name: str) -> Table | None:
        """Return the table or view of this name."""
        return self.tables.get(name.casefold())

    def referring_to(self, name: str) -> Iterator[Reference]:
        """Yield the foreign keys that refer to a table."""
        for reference in self.references:
            if reference.target.casefold() == name.casefold():
                yield reference

    def triggers_on(self, name: str) -> Iterator[Trigger]:
        """Yield the triggers of a table."""
        for trigger in self.triggers:
            if trigger.table.casefold() == name.casefold():
                yield trigger
