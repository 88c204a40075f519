"""What an adapter is told: its site, and what is known of its kind. Plain values.

Imports nothing of ``purge`` above the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from purge.errors import Refused

if TYPE_CHECKING:
    from purge.adapter.contract import Adapter


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
    copy_of: Path = Path("/")
    """For a look at a copy: the folder of which ``copy_in`` is the copy."""

    def copied_to(self, folder: Path, of: Path = Path("/")) -> Site:
        """Return this site as it is in a copy: every absolute path ``/a/b`` is ``folder/a/b``.

        Args:
            folder: where the copy lies.
            of: of which folder it is one; ``OF/a/b`` is then ``folder/a/b``, and what lies
                elsewhere is not in it.
        """
        root = _within(folder, self.root.resolve(), of)
        return replace(self, root=root, copy_in=folder, copy_of=of)

    def place(self, name: str) -> Path:
        """Return where a path or pattern in the manifest points to, as it is written: links are
        not resolved, and nothing is refused. For looking at; never for opening."""
        if self.copy_in is not None and Path(name).is_absolute():
            return _within(self.copy_in, Path(name), self.copy_of)
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


def _within(folder: Path, path: Path, of: Path) -> Path:
    if path.is_relative_to(of):
        return folder / path.relative_to(of)
    return folder / ".not-in-this-copy" / path.relative_to(path.anchor)


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
