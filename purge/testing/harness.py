"""What an adapter's author supplies so that the contract suite can try the adapter.

A harness makes one store of its kind in a private folder, plants records in it, reads them back
as an application does, shows the bytes, and breaks the store. It talks to the store with the
store's own client or by hand, and never through the adapter under test: it is the other witness.

What a store cannot hold or show is *declared* here, with a reason, so that the suite has no
special case for any store. This module may not import pytest or a driver.
"""

from __future__ import annotations

import shutil
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final

from purge.adapter import Action, Adapter
from purge.targets import NeedleKind
from purge.testing import breakages

SITE: Final = "under-test"
"""The name of the site under test."""
SOURCE: Final = "source"
"""The site from which planted records derive: a key of ``Planted.parents``."""
OTHER: Final = "other"
"""A second one, where a store has more than one field for parents."""
SCOPE: Final = "project"
"""The only scope key that is planted: a key of ``Planted.scope``."""
METADATA: Final = "topic"
"""The only metadata key that is planted: a key of ``Planted.metadata``."""
VECTOR_LENGTH: Final = 8
"""How many numbers a planted vector has."""


class Breakage(StrEnum):
    """What can be wrong with a store when the adapter comes to it."""

    MISSING = "missing"
    """The store is not where the manifest says."""
    LOCKED = "locked"
    """Another process holds it open for writing, or holds its lock, so that nobody else may write
    to it. (A reader that lets others write is not meant.)"""
    READ_ONLY = "read-only"
    """It can be read and not written."""
    CORRUPT = "corrupt"
    """Its bytes are not what they should be."""
    TORN = "torn"
    """It ends half way, as after a full disk or a broken copy."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One record, as the suite asks for it and as an application reads it back.

    Args:
        id: the record's own id. Always given.
        text: one line that begins with a letter; it may hold quotes, backslashes, other scripts.
        scope: :data:`SCOPE` to a value, or empty: then the record may not have the field at all.
        subject: the id of the person it is about; ``None``: the record may not have the field.
        parents: :data:`SOURCE` and :data:`OTHER` to the ids that it derives from, in order. A
            site without ids is absent.
        metadata: :data:`METADATA` to a value, or empty.
        vector: :data:`VECTOR_LENGTH` numbers, or ``None`` when the store has no vectors. Numbers
            fit a 32-bit float exactly, and the vector has length 1, so that a store that
            normalises returns what it was given (within 1e-6).
    """

    id: str
    text: str
    scope: Mapping[str, str] = field(default_factory=dict)
    subject: str | None = None
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    vector: tuple[float, ...] | None = None


class Harness(ABC):
    """One store of one kind, for one test.

    ``Harness(folder)`` must be cheap; the suite calls :meth:`make` once before anything else and
    :meth:`stop` at the end. Every read goes through a fresh client, and every client is closed
    again before a method returns, so that the adapter finds nobody holding the store.

    Args:
        folder: an empty private folder, which becomes the ``root`` of the site. All files of the
            store lie below it.
    """

    # --- declared: what this store can hold and show ---------------------------------------

    adapter: ClassVar[type[Adapter[Any]]]
    has_scope: ClassVar[bool] = True
    has_subject: ClassVar[bool] = True
    has_parents: ClassVar[bool] = True
    """Records can say which record of :data:`SOURCE` they derive from."""
    many_parents: ClassVar[bool] = True
    """A record can have several parents, of :data:`SOURCE` and of :data:`OTHER`."""
    has_metadata: ClassVar[bool] = True
    has_vectors: ClassVar[bool] = False
    visible: ClassVar[frozenset[NeedleKind]] = frozenset(
        (NeedleKind.ID, NeedleKind.TEXT, NeedleKind.METADATA)
    )
    """What :meth:`contents` shows of a live record. Empty where the bytes of the store are out of
    reach (then :attr:`invisible` says why, and ``bytes-not-visible`` is expected as residue)."""
    invisible: ClassVar[str] = ""
    untold: ClassVar[str] = ""
    """Why the adapter cannot tell which of the targets a left-over copy holds; empty: it can."""
    unbreakable: ClassVar[Mapping[Breakage, str]] = {}
    """Breakages that this store cannot have, each with the reason."""
    kill_points: ClassVar[int] = 8
    """How many moments of ``remove`` and of ``sanitize`` the suite kills in. Each one makes and
    fills a store and starts two or three processes: lower it where that is slow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cannot_hold(self, record_id: str) -> str | None:
        """Return why the store cannot hold a record with this id, or ``None`` when it can."""
        return None

    # --- to write --------------------------------------------------------------------------

    @abstractmethod
    def make(self) -> None:
        """Make an empty store in :attr:`folder`. Where left-over bytes can be made likely (SQLite:
        ``PRAGMA secure_delete=OFF``), make them likely: else the suite passes for nothing."""

    @abstractmethod
    def settings(self, action: Action) -> Mapping[str, Any]:
        """Return what the manifest says of the site, without ``adapter``.

        The site's general keys (``action``, ``scope``, ``subject``, ``derived_from``,
        ``outside_root``) and the adapter's own stand side by side, as in YAML::

            {"path": "store.jsonl", "id": "id", "text": ["text"], "action": action.value,
             "scope": {SCOPE: "project"}, "subject": "user",
             "derived_from": {SOURCE: "source_ids", OTHER: "other_ids"}}
        """

    @abstractmethod
    def plant(self, records: Sequence[Planted]) -> None:
        """Add records as an application does, after those that are there already."""

    @abstractmethod
    def change(self, record: Planted) -> None:
        """Replace the record that has this id, as an application does that edits it."""

    @abstractmethod
    def read(self) -> Mapping[str, Planted]:
        """Return all that a fresh client returns, on every read path (get, list, search), by id.

        A blanked record is returned with what stands in the place of its text. What a store does
        not have (vectors, say) is left at its default.
        """

    # --- to override where the default does not fit -------------------------------------------

    def stop(self) -> None:  # noqa: B027  (most stores have nothing to stop)
        """End what :meth:`make` started (a server). Called once, also after a failure."""

    def id_of(self, record: Planted) -> str:
        """Return the id under which the *adapter* knows a planted record."""
        return record.id

    def files(self) -> Iterable[Path]:
        """Return every file of the store, the files beside it (logs, journals) included."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def leave_copy(self) -> bool:
        """Leave a copy of the store as it is now where the adapter looks for such, for good.

        Return whether that can be done. The default does nothing; :meth:`copy_beside` serves
        stores that are files.
        """
        return False

    def copy_beside(self) -> bool:
        """Copy every file of the store to ``NAME.bak``; return whether there was one."""
        files = tuple(self.files())
        for path in files:
            shutil.copy2(path, path.with_name(f"{path.name}.bak"))
        return bool(files)

    def contents(self) -> Mapping[str, bytes]:
        """Return all bytes that the store keeps, by a name. Override to take a compression off."""
        return {
            str(path.relative_to(self.folder)): breakages.read_quietly(path)
            for path in self.files()
        }

    def vector_forms(self, vector: Sequence[float]) -> tuple[bytes, ...]:
        """Return the bytes in which a vector may stand in :meth:`contents`."""
        return (struct.pack(f"<{len(vector)}f", *vector),)

    def raw(self) -> Mapping[str, bytes] | None:
        """Return the bytes of each record by id (its whole line, section or file), or ``None``
        where a record has no bytes of its own. They must survive the removal of a neighbour."""
        return None

    def break_it(self, kind: Breakage) -> AbstractContextManager[None]:
        """Break the store until the context ends; it is undone there where that makes sense.

        The default moves all files away, holds them open for writing from another process, takes
        all write permission, overwrites the middle of the largest file, or cuts the largest file
        in half (the last two are not undone). :mod:`purge.testing.breakages` has more to compose.
        """
        files = tuple(self.files())
        match kind:
            case Breakage.MISSING:
                return breakages.moved_away(sorted(self.folder.iterdir()))
            case Breakage.LOCKED:
                return breakages.held_open(files)
            case Breakage.READ_ONLY:
                return breakages.read_only(self.folder)
            case Breakage.CORRUPT:
                return breakages.overwritten(breakages.largest(files))
            case Breakage.TORN:
                return breakages.cut_in_half(breakages.largest(files))
