"""What an adapter yields and is handed: matches, copies, controls, markers. Plain values.

Nothing here decides anything; values that may be personal never show in a ``repr``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from purge.state import ProblemCode
from purge.targets import Hit, NeedleKind, Trace


class Readability(StrEnum):
    """Whether normal reads still return the record's text."""

    READABLE = "readable"
    BLANKED = "blanked"
    ARCHIVED = "archived"
    """Hidden from normal reads by the application, and still there. It has to go as well."""


@dataclass(frozen=True, slots=True)
class Match:
    """One record that holds a target.

    Args:
        id: the record's own id, opaque; where the record has none, a stable name made from its
            content (never from its position).
        hits: how it is named; never empty.
        where: a place for people (a relative path, a table), without text or personal ids.
        handle: what ``remove`` of the same adapter needs to take exactly this record; made of
            JSON values, so that a plan can be kept.
        part: where one site may hold several records of the same id, what tells them apart (a
            collection); each part is a record of its own. Without personal ids.
        subjects: the ids of the persons that it is about, by the site's ``subject`` field.
        scope: what it says of the site's scope fields; a key that it leaves open is absent.
        pieces: of how many lines, rows or places the record is made that would go; what the safety
            limits and reports count.
        parents: source site to the ids that the record says it derives from.
        trace: what it looks like in bytes.
        carries_marker: the record carries a marker line.
        created: when the record says that it was made.
    """

    id: str = field(repr=False)
    hits: tuple[Hit, ...]
    where: str
    handle: Mapping[str, object] = field(repr=False)
    trace: Trace = field(repr=False)
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    readability: Readability = Readability.READABLE
    carries_marker: bool = False
    created: datetime | None = None
    part: str = ""
    pieces: int = 1
    subjects: tuple[str, ...] = field(default=(), repr=False)
    scope: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A part of the site that could not be looked at, so that nothing is said of it."""

    where: str
    why: str
    problem: ProblemCode = ProblemCode.NOT_CHECKED


@dataclass(frozen=True, slots=True)
class Examined:
    """How much was read. Yielded any number of times; the parts are added up."""

    files: int = 0
    bytes: int = 0
    records: int = 0
    unlinked: int = 0
    """Records of a derived site that do not say what they derive from."""
    note: str = ""
    """What else was done to look, in a few words ("query in a private copy")."""


@dataclass(frozen=True, slots=True)
class Residue:
    """A copy that normal reads no longer return and that still exists.

    Args:
        where: a place for people, without text or personal ids.
        why: one clause: what keeps it there.
        until: when it goes by itself, with a time zone; ``None`` where nothing will remove it.
        fixable: ``sanitize`` of this adapter can remove it.
        problem: what the step carries while this is all that is left.
        handle: what ``sanitize`` of the same adapter needs; JSON values.
    """

    where: str
    why: str
    until: datetime | None = None
    fixable: bool = False
    problem: ProblemCode = ProblemCode.NO_END_DATE
    handle: Mapping[str, object] = field(default_factory=dict, repr=False)
    keys: frozenset[int] = frozenset()
    """The targets that it holds, where the look can tell them apart. Empty: it counts against
    every request of the run. For a needle of a trace: :meth:`Targets.keys_of` of the trace's id."""


ControlKind = NeedleKind | None
"""What a control vouches for; ``None``: the structure of the store (no free page, no other
version, every byte accounted for), used where bytes cannot be needles."""


@dataclass(frozen=True, slots=True)
class Control:
    """Whether the look that found nothing could have found something.

    ``on_target``: it was tried on the records that have to go, while they were readable.
    Otherwise it was tried on a live neighbour, or on the structure of the store.
    """

    kind: ControlKind
    passed: bool
    on_target: bool


Finding = Match | NotChecked | Examined
"""What ``find`` yields."""
Observation = Residue | Control | NotChecked | Examined
"""What ``residue`` yields."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A match that has to go, and the request that says so (for tombstones)."""

    match: Match
    request: str
    at: datetime


@dataclass(frozen=True, slots=True)
class NotRemoved:
    """A match that ``remove`` left alone, and why."""

    match: Match
    problem: ProblemCode
    sentence: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of ``purge check``: something true of the site, or a fault (``ok=False``)."""

    sentence: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker line that counts: its record asks for a phrase to be forgotten.

    Args:
        record: the id of the record that carries it, as in :class:`Match`; ``part`` likewise.
        phrase: what follows ``RETRACTS:``, without the white space around it. May be empty.
        where: a place for people, without text.
        scope: what the record says of the site's scope fields.
        created: when the record says that it was made; where it says nothing, when its file
            changed last.
        handle: what ``strike`` of the same adapter needs; JSON values.
    """

    record: str = field(repr=False)
    phrase: str = field(repr=False)
    where: str
    scope: Mapping[str, str] = field(default_factory=dict, repr=False)
    created: datetime | None = None
    part: str = ""
    handle: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class NotAMarker:
    """A line that nearly is a marker and is not obeyed. ``why``: one clause."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One backup of other sites, as the store lists it.

    Args:
        taken: when it was begun.
        sites: the names of the covered sites of which it holds everything that the manifest's
            paths name. A backup that failed half way holds none that it has not read to the end.
    """

    taken: datetime
    sites: frozenset[str]
