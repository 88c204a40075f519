"""What the manifest can say of a ``sql`` site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

LINKS: Final = "links"
"""What ``derived_from`` says where the ids stand in the only link table."""


@dataclass(frozen=True, slots=True)
class ChildTable:
    """A table whose rows belong to a record, as the schema does not say, or not in full."""

    table: str
    column: str
    """Its column that holds the key of the record."""
    parent: str | None = None
    """The column of the record that is meant; the site's ``id`` where it is not given."""
    text: tuple[str, ...] = ()
    """The fields that hold the words, for ``action: blank``."""


@dataclass(frozen=True, slots=True)
class LinkTable:
    """A table that says from which records of another site a record derives."""

    table: str
    own: str
    """Its column that holds the id of the record."""
    source: str
    """Its column that holds the id of the source."""


@dataclass(frozen=True, slots=True)
class Archived:
    """How a record says that the application no longer shows it."""

    column: str
    value: str | int | bool | None = None
    """What the column holds then; where this is not given, anything but NULL."""


def _described(sentence: str) -> dict[str, str]:
    return {"description": sentence}


@dataclass(frozen=True, slots=True)
class Belonging:
    """What a row of a described table says of the row of another one that it belongs to."""

    column: str
    """Its column that holds the key of the other row."""
    to: str | None = None
    """The column of the other table that is meant; its ``id`` where it is not given."""
    when_gone: Literal["delete", "unlink"] = "delete"
    """What happens to it when the other row goes: it goes too, or its column becomes NULL."""


@dataclass(frozen=True, slots=True)
class TableFormat:
    """One table of a site that has several."""

    id: str | None = None
    """The column with the record's id; the primary key where it is not given."""
    text: tuple[str, ...] = ()
    """The fields that hold words; all columns of text that mean nothing else by default."""
    metadata: tuple[str, ...] = ()
    """The fields that are looked for in the bytes besides id and text."""
    time: str | None = None
    """The field that says when the record was made."""
    belongs_to: dict[str, str | Belonging] = field(default_factory=dict)
    """By table of the site: the column that says to which of its rows a row belongs."""
    action: Literal["delete", "blank"] | None = None
    """What removal does to a row that only its words name: it goes, or the fields that hold the
    words are emptied. Default: ``blank`` where rows of other tables belong to it, else the site's
    action. A row that its id, subject or lineage names goes, and with it what belongs to it."""
    when_blank: Literal["keep", "delete"] = "keep"
    """With ``blank``: what becomes of a row none of whose ``text`` says anything any more."""
    counts: dict[str, str] = field(default_factory=dict)
    """By column: the table of which it counts the rows that belong to the row."""
    children: tuple[ChildTable, ...] = ()
    """Tables that are no records of their own: as ``children`` of the site."""
    links: tuple[LinkTable, ...] = ()
    """As ``links`` of the site."""
    archived: Archived | None = None
    """As ``archived`` of the site."""
    optional: bool = False
    """Some versions of the application do not have the table."""


@dataclass(frozen=True, slots=True)
class SqlFormat:
    """How an application keeps its records in a database: which tables, and what they mean."""

    tables: dict[str, TableFormat]


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """The keys of a ``sql`` site besides those that every site has.

    A field is a column, or a column of JSON and a dotted path in it (``data.message.text``).

    Raises:
        ValueError: no table is named, or in two ways; the format is not known.
    """

    url: str = field(
        metadata=_described(
            "The database as SQLAlchemy names it: sqlite:///relative/path.db, or with four "
            "slashes an absolute path. Other databases are not supported yet."
        )
    )
    table: str | None = field(
        default=None, metadata=_described("The table whose rows are the records.")
    )
    tables: dict[str, TableFormat] = field(
        default_factory=dict,
        metadata=_described(
            "Instead of 'table', where several tables hold records: each with its 'id', 'text', "
            "'time', 'metadata', 'children', 'links', 'archived'; 'belongs_to' ({TABLE: COLUMN}: "
            "it goes when that row goes, or {TABLE: {column, to, when_gone: unlink}}); 'counts' "
            "({COLUMN: TABLE}); 'action' (what happens to a row that only its words name); "
            "'when_blank'; 'optional'."
        ),
    )
    format: str | SqlFormat | None = field(
        default=None,
        metadata=_described(
            "Instead of 'table', the format of an application that is known: mem0, opencode; or "
            "a description of one, {tables: {...}}. 'tables' adds to it."
        ),
    )
    id: str | None = field(
        default=None,
        metadata=_described("The column with the record's id. Default: the primary key."),
    )
    text: tuple[str, ...] = field(
        default=(),
        metadata=_described(
            "The fields that 'action: blank' empties, besides those that matched. Default: all "
            "columns of text that are neither keys nor mapped to something else."
        ),
    )
    metadata: tuple[str, ...] = field(
        default=(),
        metadata=_described(
            "The fields whose values are looked for in the bytes besides id and text. Default: "
            "all columns of text that are not mapped to anything."
        ),
    )
    time: str | None = field(
        default=None, metadata=_described("The field that says when the record was made.")
    )
    children: tuple[ChildTable, ...] = field(
        default=(),
        metadata=_described(
            "Tables whose rows go with their record although the schema declares no foreign key "
            "(those that it declares are found); 'text' names their fields with the words."
        ),
    )
    links: tuple[LinkTable, ...] = field(
        default=(),
        metadata=_described(
            "Tables that say from which other records a record derives. 'derived_from' names one "
            "as TABLE.COLUMN, or as 'links' where there is only one."
        ),
    )
    archived: Archived | None = field(
        default=None,
        metadata=_described("Which records the application has hidden. They go as well."),
    )
    lock_timeout: float = field(
        default=3.0,
        metadata=_described("How many seconds to wait for a lock that someone else holds."),
    )

    def __post_init__(self) -> None:
        several = bool(self.described_tables())
        if self.table is None and not several:
            raise ValueError("name a 'table', several 'tables', or a 'format'")
        if self.table is not None and several:
            raise ValueError("name either a 'table', or 'tables' or a 'format'")
        for_one = (self.id, self.text, self.metadata, self.time, self.children, self.links)
        if several and (any(for_one) or self.archived):
            raise ValueError(
                "say 'id', 'text', 'metadata', 'time', 'children', 'links' and 'archived' of each "
                "of the tables"
            )

    def described_tables(self) -> Mapping[str, TableFormat]:
        """Return the tables of a site that has several; none where it has one.

        Raises:
            ValueError: the format is not known.
        """
        described: Mapping[str, TableFormat] = {}
        if isinstance(self.format, SqlFormat):
            described = self.format.tables
        elif self.format is not None:
            described = known_format(self.format).tables
        return {**described, **self.tables}

    def each_table(self) -> Mapping[str, TableFormat]:
        """Return the tables of the site, also where it has only one."""
        if self.table is None:
            return self.described_tables()
        return {
            self.table: TableFormat(
                id=self.id,
                text=self.text,
                metadata=self.metadata,
                time=self.time,
                children=self.children,
                links=self.links,
                archived=self.archived,
            )
        }


def known_format(name: str) -> SqlFormat:
    """Return a preset.

    Raises:
        ValueError: there is none of this name.
    """
    from purge_adapters._presets import named

    found = named("sql", name)
    return SqlFormat({table: _table(given) for table, given in found["tables"].items()})


def _table(given: Mapping[str, Any]) -> TableFormat:
    """Return what a preset says of one table. A test holds it against what a manifest would."""
    belongs_to = {
        table: said if isinstance(said, str) else Belonging(**said)
        for table, said in given.get("belongs_to", {}).items()
    }
    lists = {key: tuple(given[key]) for key in ("text", "metadata") if key in given}
    return TableFormat(**{**given, **lists, "belongs_to": belongs_to})
