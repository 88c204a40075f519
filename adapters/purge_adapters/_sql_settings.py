"""What the manifest can say of a ``sql`` site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
class SqlSettings:
    """The keys of a ``sql`` site besides those that every site has.

    A field is a column, or a column of JSON and a dotted path in it (``data.message.text``).
    """

    url: str = field(
        metadata=_described(
            "The database as SQLAlchemy names it: sqlite:///relative/path.db, or with four "
            "slashes an absolute path. Other databases are not supported yet."
        )
    )
    table: str = field(metadata=_described("The table whose rows are the records."))
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
