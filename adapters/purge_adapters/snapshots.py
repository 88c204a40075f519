"""Dated snapshots of other sites: folders that rsync, ``cp -al`` or a file system has made.

Each folder below ``path`` whose name holds a date is one snapshot. What it holds of a covered
site is looked at by the adapter of that site, in place, so one definition of a record holds in
backups too. Nothing is ever removed from a snapshot: it says what is there, and until when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    Control,
    ControlKind,
    Covered,
    EvidenceKind,
    Examined,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Snapshot,
    Statement,
    guard,
)
from purge.targets import Targets
from purge_adapters._copies import look_into_copy
from purge_adapters._files import os_problem

_NAME: Final = re.compile(
    r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)(?:[T_ .-]?(\d\d)[:.-]?(\d\d)(?:[:.-]?(\d\d))?)?(?!\d)"
)
_UNFINISHED: Final = re.compile(
    r"\.(partial|part|tmp|inprogress|incomplete)$|^\.|~$", re.IGNORECASE
)
_SPAN: Final = re.compile(r"(\d+)\s*([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class SnapshotsSettings:
    """Where the snapshots lie, and how long they are kept."""

    path: str = field(
        metadata={"description": "The folder that holds one folder for each snapshot."}
    )
    base: str = field(
        default=".",
        metadata={
            "description": "The folder of which each snapshot is a copy, relative to the "
            "manifest; '/' where a snapshot holds the whole absolute path. Default: the root.",
        },
    )
    keep_for: str | None = field(
        default=None,
        metadata={
            "description": "How long after it was taken something removes a snapshot (30d). "
            "Without it copies in snapshots have no end date."
        },
    )
    complete: str | None = field(
        default=None,
        metadata={
            "description": "A file that the snapshot job writes into a snapshot at its end. One "
            "without it failed half way, and does not count as a snapshot to go back to."
        },
    )

    def __post_init__(self) -> None:
        if self.keep_for is not None and not _SPAN.fullmatch(self.keep_for.strip()):
            raise ValueError("'keep_for' is a length of time such as 30d")


@dataclass(frozen=True, slots=True)
class _Taken:
    folder: Path
    taken: datetime
    finished: bool


class SnapshotsAdapter(Adapter[SnapshotsSettings]):
    """Folders of dated snapshots."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="snapshots",
        summary="Snapshots of other sites in dated folders.",
        evidence=EvidenceKind.BYTES,
        actions=frozenset({Action.DELETE, Action.REPORT}),
    )
    Settings = SnapshotsSettings

    def check(self) -> Iterator[Statement]:
        """Say what snapshots there are, and what they hold of the covered sites."""
        if not self.site.covers:
            yield Statement("It covers no site: name those that it backs up in 'covers'.", ok=False)
        found = self._taken()
        if not found:
            yield Statement("There is no snapshot: no folder whose name holds a date.", ok=False)
            return
        newest = found[0]
        yield Statement(f"{len(found)} snapshots, the newest of {newest.taken:%Y-%m-%d %H:%M}.")
        missing = sorted(set(self.site.covers) - self._sites(newest))
        if missing:
            yield Statement(f"The newest lacks {', '.join(missing)}.", ok=False)
        if self.settings.keep_for is None:
            yield Statement(
                "Nothing says how long a snapshot is kept (keep_for), so copies in them have no "
                "end date."
            )
        else:
            yield Statement(f"A snapshot is gone {self.settings.keep_for} after it was taken.")

    def snapshots(self) -> Iterator[Snapshot]:
        """Yield the snapshots that were finished, newest first."""
        for one in self._taken():
            if one.finished:
                yield Snapshot(one.taken, frozenset(self._sites(one)))

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Find no record: a backup is not read by applications. Its copies are residue."""
        del targets
        yield Examined(records=len(self._taken()), note="snapshots listed")

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Remove nothing: there is never a record to remove."""
        guard(removals)
        yield from ()

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Do nothing: what is in a snapshot goes with the snapshot."""
        guard(residue)
        yield from ()

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield, for each snapshot and covered site, that it holds something."""
        if not self.site.covers:
            yield NotChecked(
                self.site.name, "the site covers none: name those that it backs up in 'covers'"
            )
        controls: dict[ControlKind, bool] = {None: True}
        count = 0
        for taken in self._taken():
            for name, covered in self.site.covers.items():
                if not any(there.exists() for there in self._places(taken, covered)):
                    continue
                copy = covered.site.copied_to(taken.folder, self._base())
                seen = look_into_copy(covered, copy, targets)
                count += 1
                where = f"snapshot {taken.taken:%Y-%m-%d %H:%M} of {name}"
                yield from (NotChecked(where, gap.why, gap.problem) for gap in seen.gaps)
                for kind, passed in seen.controls:
                    controls[kind] = controls.get(kind, True) and passed
                if seen.holds:
                    yield self._copy(where, taken, seen.keys if not seen.everything else None)
        yield Examined(records=count, note="copies of sites in dated folders")
        for kind, passed in controls.items():
            yield Control(kind, passed, on_target=False)

    def _copy(self, where: str, taken: _Taken, keys: frozenset[int] | None) -> Residue:
        until = self._until(taken)
        past = until is not None and until <= self.site.clock()
        if until is None:
            why = "nothing says when this snapshot goes (keep_for)"
        elif past:
            why = f"it was to be gone {self.settings.keep_for} after it was taken, and is not"
            until = None
        else:
            why = f"snapshots are kept for {self.settings.keep_for}"
        return Residue(where, why, until, keys=keys or frozenset())

    def _until(self, taken: _Taken) -> datetime | None:
        if self.settings.keep_for is None:
            return None
        span = _SPAN.fullmatch(self.settings.keep_for.strip())
        assert span is not None
        return taken.taken + int(span[1]) * _UNITS[span[2]]

    def _base(self) -> Path:
        base = self.settings.base
        return Path("/") if base == "/" else (self.site.root / base).resolve()

    def _places(self, taken: _Taken, covered: Covered) -> Iterator[Path]:
        base = self._base()
        for path in covered.paths:
            if path.resolve().is_relative_to(base):
                yield taken.folder / path.resolve().relative_to(base)

    def _sites(self, taken: _Taken) -> set[str]:
        """The covered sites of which the snapshot holds every place that is there now."""
        base = self._base()
        whole = set()
        for name, covered in self.site.covers.items():
            there = [path.resolve() for path in covered.paths if path.exists()]
            inside = all(path.is_relative_to(base) for path in there)
            # What came and went since (the side files of a database) is no sign of a failure.
            main = [path for path in there if not path.name.endswith(("-wal", "-journal"))]
            copies = [taken.folder / path.relative_to(base) for path in main] if inside else []
            if copies and all(path.exists() for path in copies):
                whole.add(name)
        return whole

    def _taken(self) -> list[_Taken]:
        """Return the snapshots, newest first.

        Raises:
            Permanent, Transient: the folder cannot be listed.
        """
        folder = self.site.path(self.settings.path)
        try:
            below = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
        except OSError as error:
            raise os_problem(error, self.settings.path) from None
        found = []
        for path in below:
            date = _NAME.search(path.name)
            if date is None:
                continue
            finished = not _UNFINISHED.search(path.name)
            if self.settings.complete is not None:
                finished = finished and (path / self.settings.complete).exists()
            numbers = [int(part) if part else 0 for part in date.groups()]
            try:
                taken = datetime(*numbers, tzinfo=self.site.timezone)  # type: ignore[arg-type,misc]  # six numbers
            except ValueError:
                continue
            found.append(_Taken(path, taken, finished))
        return sorted(found, key=lambda one: (one.taken, one.folder.name), reverse=True)
