"""What a description of a format says: where its records stand, and what hangs on them.

Values only. A description is written in a manifest, or is a preset; both are read by
:mod:`purge_adapters._format_reading`, in the same language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from purge_adapters._format_routes import Route

__all__ = [
    "Condition",
    "Count",
    "FileKind",
    "Format",
    "Gone",
    "Hash",
    "Last",
    "Layout",
    "Leave",
    "Link",
    "PartKind",
    "RecordKind",
    "Taking",
    "Unique",
]


class Layout(StrEnum):
    """How JSON stands in a file."""

    DOCUMENT = "document"
    """The file is one JSON value."""
    LINES = "lines"
    """A JSON value a line."""
    EMBEDDED = "embedded"
    """A JSON value in a file of another kind, behind declared words."""


class Gone(StrEnum):
    """What becomes of a link when the record that it points to goes."""

    RELINK = "relink"
    """It points to what that record itself points to, to the nearest one that lives."""
    DROP = "drop"
    """It goes, with its list element or member."""
    NULL = "null"
    """It says ``null``."""
    REMOVE = "remove"
    """The record that has the link goes as well."""
    KEEP = "keep"
    """It stays as it is: a mere mention."""


class Leave(StrEnum):
    """What stands in the place of a part that was taken out."""

    NOTHING = "nothing"
    NULL = "null"
    EMPTY = "empty"
    """The empty value of its kind: a string, a list, an object."""


class Last(StrEnum):
    """What becomes of a record when the last of its parts or links goes."""

    REMOVE = "remove"
    KEEP = "keep"


class Taking(StrEnum):
    """What removal does to a record in whose own text something was found."""

    DELETE = "delete"
    BLANK = "blank"
    """The strings in which it was found are emptied; the record stays."""


class Unique(StrEnum):
    """Where an id names one record only."""

    SITE = "site"
    FILE = "file"
    RECORD = "record"
    """Within the record around it."""


Condition = Mapping[Route, tuple[object, ...] | None]
"""What must stand somewhere: one of these values; ``None``: anything but ``null``."""


@dataclass(frozen=True, slots=True)
class PartKind:
    """Something of a record that can be taken out by itself.

    Args:
        at: from the record.
        where: what a part must say to be one.
        leave: what stands in its place.
        last: whether the record goes with its last part, if it has no other text.
        signed: it is covered by a signature, so that it is never edited and goes whole.
        pair: fields of the part; parts that say the same in them go together (call and result).
    """

    at: Route
    where: Condition = field(default_factory=dict)
    leave: Leave = Leave.NOTHING
    last: Last = Last.REMOVE
    signed: bool = False
    pair: tuple[Route, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A field that holds the id of another record, or several.

    Args:
        field: from the record.
        to: the names of the kinds of records to which it may point.
        when_gone: what becomes of it.
        via: for ``relink``: the field of the record that goes in which the next one stands.
        entry: what is dropped, or put in its place by ``relink``; the field itself as a rule.
        last: whether the record goes with the last of these links.
        otherwise: for ``relink``: what happens where nothing is left to point to.
        normalized: ids are compared after Unicode normalisation.
    """

    field: Route
    to: tuple[str, ...]
    when_gone: Gone
    via: Route
    entry: Route
    last: Last = Last.KEEP
    otherwise: Gone = Gone.NULL
    normalized: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """A number that says how many there are of something in the same record.

    Args:
        field: the number.
        of: what is counted, in the same record; or
        records: the name of a kind whose records are counted,
        by: and their field that holds the id of the record with the number (none: all of them).
    """

    field: Route
    of: Route | None = None
    records: str | None = None
    by: Route | None = None


@dataclass(frozen=True, slots=True)
class Hash:
    """A digest of a text of the same record, which is kept right."""

    field: Route
    of: Route
    algorithm: str


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind of record.

    Args:
        name: by which links and other places call it. Records of one name and id are copies.
        at: where they stand, from the beginning of the document or line.
        where: what a value must say to be one.
        id: fields with its id; the first that is there counts.
        text: fields with what people wrote; ``action: blank`` empties them.
        time: the field that says when it was made.
        taking: what is done when something is found in its own text.
        unique: where its id names one record; without it, copies are told by their text.
        joined: lists of strings that are one text when they are put together.
        columns: names of lists in the object at ``at``; what has the same place in all of them is
            one record, an object with these names.
        pair: fields of the record; records and parts that say the same in them go together.
        is_frame: it is no record but what lies around them, and is never taken out.
    """

    name: str
    at: Route
    where: Condition = field(default_factory=dict)
    id: tuple[Route, ...] = ()
    text: tuple[Route, ...] = ()
    time: Route | None = None
    taking: Taking = Taking.DELETE
    unique: Unique | None = None
    joined: tuple[Route, ...] = ()
    columns: tuple[str, ...] = ()
    pair: tuple[Route, ...] = ()
    parts: tuple[PartKind, ...] = ()
    links: tuple[Link, ...] = ()
    counts: tuple[Count, ...] = ()
    hashes: tuple[Hash, ...] = ()
    is_frame: bool = False


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind of file: which they are by their names, and what is in them."""

    path: str
    layout: Layout
    records: tuple[RecordKind, ...]
    begins: str = ""
    """For ``embedded``: the words behind which the value begins."""

    def fits(self, place: str) -> bool:
        """Whether a file of that name is one. The pattern is compared with the end of the path."""
        return any(PurePosixPath(name).match(self.path) for name in (place, _unpacked(place)))


def _unpacked(place: str) -> str:
    return place.removesuffix(".gz").removesuffix(".zst")


@dataclass(frozen=True, slots=True)
class Format:
    """A whole description."""

    name: str
    files: tuple[FileKind, ...]

    def kind_of(self, place: str) -> FileKind | None:
        """Return what a file is by its name: the first kind that fits."""
        return next((kind for kind in self.files if kind.fits(place)), None)
