"""The contract between ``purge`` and the code that knows one kind of store.

The docstrings here are the specification; the suite in :mod:`purge.testing` is its proof. An
adapter finds, removes, makes removal physical and looks for what outlives it. It has no opinion:
what a look means is judged by the core alone, from what the adapter *saw*, never from what the
store *answered*.

An adapter module imports the standard library, its own driver (inside functions, so that the
class can be read without it), this module, :mod:`purge.targets`, :mod:`purge.matching` and
:mod:`purge.errors`. It contains no ``if dry_run``, no retry loop, no print, no log line, and no
message that holds an identifier or a text of a record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from purge.errors import EmptySelector, Permanent, Refused
from purge.state import ProblemCode
from purge.targets import Hit, NeedleKind, Targets, Trace

__all__ = [
    "Action",
    "Adapter",
    "AdapterInfo",
    "Control",
    "ControlKind",
    "Covered",
    "EvidenceKind",
    "Examined",
    "Finding",
    "Match",
    "NotChecked",
    "NotRemoved",
    "Observation",
    "ProblemCode",
    "Readability",
    "Removal",
    "Residue",
    "Site",
    "Snapshot",
    "Statement",
    "guard",
]


class Action(StrEnum):
    """What removal does to a record."""

    DELETE = "delete"
    """The record goes."""
    BLANK = "blank"
    """The record, its id and its links stay, its text goes."""
    REPORT = "report"
    """Nothing is touched; a person is told. The engine never calls ``remove``."""


class EvidenceKind(StrEnum):
    """How far a look reached."""

    BYTES = "bytes"
    """The files of the store were read."""
    API = "api"
    """The store lists its physical copies, and was asked."""
    DECLARED = "declared"
    """The manifest states what the provider does."""


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """What an adapter is and can do; plain data, readable without its driver."""

    name: str
    summary: str
    evidence: EvidenceKind
    actions: frozenset[Action]
    extra: str | None = None
    """The extra of the distribution that brings the driver."""
    modules: tuple[str, ...] = ()
    """The driver's import names, to tell whether it is there."""
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """What the manifest says of one site, apart from the adapter's own settings."""

    name: str
    root: Path
    """The folder that paths are relative to and may not leave."""
    action: Action = Action.DELETE
    derived_from: Mapping[str, str | None] = field(default_factory=dict)
    """Source site to the field that holds its ids (``None``: the link was never recorded)."""
    scope: Mapping[str, str] = field(default_factory=dict)
    """Scope key to field."""
    subject: str | None = None
    """The field that holds the id of the person the record is about."""
    outside_root: bool = False
    covers: Mapping[str, Covered] = field(default_factory=dict)
    """For a site that keeps copies of others (backups): those others, by name."""
    timezone: tzinfo = UTC
    """The manifest's: times of day in a schedule are meant in it."""
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC), repr=False)
    """The time of the run, with a time zone."""
    copy_in: Path | None = None
    """For a look at a copy: the folder in which the copy lies, under the paths of the original."""

    def copied_to(self, folder: Path) -> Site:
        """Return this site as it is in a copy: every absolute path ``/a/b`` is ``folder/a/b``."""
        return replace(self, root=_within(folder, self.root.resolve()), copy_in=folder)

    def place(self, name: str) -> Path:
        """Return where a path or pattern in the manifest points to, as it is written: links are
        not resolved, and nothing is refused. For looking at; never for opening."""
        if self.copy_in is not None and Path(name).is_absolute():
            return _within(self.copy_in, Path(name))
        return self.root / name

    def path(self, name: str) -> Path:
        """Return the absolute path for a path in the manifest.

        Symbolic links on the way are resolved first, so that none leads out.

        Raises:
            Refused: it lies outside the root and the site does not say ``outside_root: true``.
        """
        found = self.place(name).resolve()
        if not self.outside_root and not found.is_relative_to(self.root.resolve()):
            raise Refused(
                f"Site '{self.name}': a path leaves the manifest's root folder. Move it below the "
                "root, or set 'outside_root: true' on the site if that is meant."
            )
        return found


def _within(folder: Path, path: Path) -> Path:
    return folder / path.relative_to(path.anchor)


@dataclass(frozen=True, slots=True)
class Covered:
    """A site of which another one keeps copies.

    Args:
        site: what the manifest says of it.
        paths: the absolute files and folders that it consists of (:meth:`Adapter.footprint`).
        open: makes its adapter for a site; give it ``site.copied_to(folder)`` to look into, or to
            clean, a copy that lies in a private folder.
    """

    site: Site
    paths: tuple[Path, ...]
    open: Callable[[Site], Adapter[Any]]


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
class Snapshot:
    """One backup of other sites, as the store lists it.

    Args:
        taken: when it was begun.
        sites: the names of the covered sites of which it holds everything that the manifest's
            paths name. A backup that failed half way holds none that it has not read to the end.
    """

    taken: datetime
    sites: frozenset[str]


S = TypeVar("S")


class Adapter(ABC, Generic[S]):
    """The code that knows one kind of store. One instance serves one site for one phase of a run.

    The engine makes a new instance for every phase, so each look comes through a fresh
    connection. Instances are used by one thread.

    Args:
        site: what the manifest says of the site.
        settings: the validated ``Settings`` of the class.
    """

    info: ClassVar[AdapterInfo]
    Settings: ClassVar[type]
    """A frozen dataclass: the site's own keys in the manifest. Read by pydantic, which reports
    wrong types and unknown keys. Use ``field(metadata={"description": ...})`` to document one."""

    def __init__(self, site: Site, settings: S) -> None:
        self.site = site
        self.settings = settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything held. Called once, also after an error."""

    def footprint(self) -> tuple[Path, ...]:
        """Return the absolute files and folders on this machine of which the site consists.

        Also those that are not there yet. Opens nothing. Empty for a store that is reached
        through a server.
        """
        return ()

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the backups that the site holds of the sites it covers, the newest first.

        Reads only. A sweep asks for it before it deletes anything.

        Raises:
            Permanent: a site of this kind holds no backups, or they cannot be listed.
            Transient: they cannot be listed now.
        """
        raise Permanent(
            f"Site '{self.site.name}' keeps no backups, so it cannot vouch for the others.",
            problem=ProblemCode.UNSUPPORTED,
        )

    @abstractmethod
    def check(self) -> Iterator[Statement]:
        """Reach the site and say what is true of it and what could be proved at it.

        Reads only. Yields a fault for everything that would make a run go wrong (a missing table,
        a view, no primary key, no permission), all of them, not the first.
        """

    @abstractmethod
    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield every record that holds a target, and say what could not be looked at.

        - Read only: no byte, time or lock of the store changes. Where a client writes by merely
          opening, the files or a private copy are read instead.
        - Complete: all pages, and all states of a record, archived and superseded ones too; on
          every read path that an application has (by id, by listing, by search).
        - A record is yielded once, however many targets name it. Hits come from
          :meth:`purge.targets.Targets.match`.
        - Every part that could not be looked at is a :class:`NotChecked`.
        - Yields at least one :class:`Examined`, also when nothing was found.

        Raises:
            Transient, Permanent: the site cannot be read at all.
        """

    @abstractmethod
    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Take these records, and nothing else, out of the store, by the site's action.

        - Never called with an empty sequence; raises :class:`EmptySelector` if it is.
        - Idempotent: a record that is no longer there is no error.
        - Neighbours stay byte for byte where the store has bytes, equal where it has not.
        - A record that changed since it was found is left, and yielded as ``changed-underneath``.
        - A store that another process holds is not written to behind its back: ``held-open``.
        - By id and bound parameter only. No statement spells out a text.
        - Yields what it left alone. That it yields nothing proves nothing.

        Raises:
            Transient, Permanent: the store refused; what was done until then stays done.
        """

    @abstractmethod
    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Make removal physical: checkpoint, compact, rewrite, rebuild.

        Called with what ``residue`` of this adapter just yielded as ``fixable``, and does only
        what that calls for. Idempotent, and safe to be killed in at any point: every other record
        is there afterwards, or is there again after the next call. Yields a ``NotChecked`` for
        what it left undone and why.

        Raises:
            Transient, Permanent: as for ``remove``.
        """

    @abstractmethod
    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies that outlive removal: where, why, until when.

        Looks at the store independently of the calls that delete: at files, metadata, versions,
        and the shadows of files (backups, trash, rotated siblings, git history). Read only, as
        ``find`` is. What is looked for: the needles of ``targets.traces(site)``, and whatever
        else ``targets`` matches in a shadow.

        - While a record of ``targets`` is still readable, its live bytes are no residue: they are
          the control. For each kind of needle that the look relies on, yield one
          :class:`Control`: ``on_target`` when such records are readable (passed: each of them was
          seen), otherwise tried on a live neighbour. Where there is no neighbour, or bytes cannot
          be needles, use structure (``kind=None``).
        - Bytes are a needle only if they are at least 8 long and stand in no live record;
          otherwise use structural evidence.
        - Everything that could not be looked at is a :class:`NotChecked`.
        - Yields at least one :class:`Examined` and one :class:`Control`.
        - ``until`` only where something will really remove the copy.

        Raises:
            Transient, Permanent: the site cannot be looked at.
        """


def guard(removals: Sequence[Removal] | Iterable[object]) -> None:
    """Stop an empty selection before it reaches a store.

    Raises:
        EmptySelector: there is nothing in it.
    """
    if not any(True for _ in removals):
        raise EmptySelector("An empty selection was stopped before it reached the store.")
