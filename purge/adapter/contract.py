"""The verbs. Their docstrings are the specification; the suite in :mod:`purge.testing` is its
proof."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from purge.adapter.looks import (
    Examined,
    Finding,
    Marker,
    NotAMarker,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Snapshot,
    Statement,
)
from purge.adapter.site import AdapterInfo, Site
from purge.errors import EmptySelector, Permanent
from purge.state import ProblemCode
from purge.targets import Targets

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

    def markers(
        self, where: Mapping[str, str]
    ) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
        """Yield the marker lines of all records, and the lines that nearly are.

        Reads only. What counts is decided by :func:`purge.matching.read_markers`.

        Args:
            where: fields (as in the site's other keys) and the values that a record must have
                there; the lines of other records are yielded as :class:`NotAMarker`.

        Raises:
            Permanent: records of this kind of site carry no markers; or as for ``find``.
        """
        raise Permanent(
            f"Site '{self.site.name}': records of the adapter '{self.info.name}' carry no markers. "
            "Take it out of 'markers.from'.",
            problem=ProblemCode.UNSUPPORTED,
        )

    def strike(self, markers: Sequence[tuple[Marker, str]]) -> Iterator[NotChecked]:
        """Replace the phrase of each marker line by what stands beside it, and nothing else.

        The line then says ``STRUCK: `` and the replacement, so that it is no marker any more. A
        record that changed since it was read is left, and yielded as not checked.

        Raises:
            EmptySelector: there is none. Otherwise as for ``remove``.
        """
        raise Permanent(
            f"Site '{self.site.name}': records of the adapter '{self.info.name}' carry no markers.",
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
