"""The store of the fault-injecting adapter: a folder with one JSON file, and copies of it.

A real store, small enough to be read by eye: fresh instances, other processes and killed ones see
the same data. Deleting leaves the old copy in the file's ``graves`` until they are cleared, as
databases do. This is what tests plant in and read with; it knows nothing of targets.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

Fields = dict[str, Any]
"""One record: a JSON object with whatever fields."""

FILE: Final = "store.json"
_UNFINISHED: Final = "store.json.unfinished-"
_BACKUP: Final = ".backup.json"


class Unreadable(ValueError):
    """The file is not what it should be."""


class Taken(OSError):
    """Another process holds the store's lock."""


@dataclass(slots=True)
class Content:
    """What the file holds."""

    records: list[Fields] = field(default_factory=list)
    graves: list[Fields] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Backup:
    """An older copy of the store, and when it goes."""

    path: Path
    until: datetime | None
    records: tuple[Fields, ...] = field(repr=False)


class FaultyStore:
    """A folder that holds records.

    Args:
        folder: it need not exist before :meth:`make`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / FILE

    # --- as an application ------------------------------------------------------------------

    def make(self) -> None:
        """Make the folder and an empty store in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.save(Content())

    def plant(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records."""
        with self.locked():
            content = self.load()
            content.records.extend(map(dict, records))
            self.save(content)

    def records(self) -> list[Fields]:
        """Return the live records, blanked ones included."""
        return self.load().records

    def back_up(self, until: datetime | None) -> Path:
        """Copy the live records into a backup that goes at ``until`` (``None``: never)."""
        path = self.folder / f"{len(list(self.backups())):04}{_BACKUP}"
        stated = until.isoformat() if until else None
        _write(path, {"until": stated, "records": self.records()})
        return path

    def expire(self, now: datetime) -> None:
        """Delete the backups whose time has come."""
        for backup in tuple(self.backups()):
            if backup.until is not None and backup.until <= now:
                backup.path.unlink()

    # --- for the adapter --------------------------------------------------------------------

    def load(self) -> Content:
        """Read the file.

        Raises:
            OSError: it cannot be read.
            Unreadable: it is damaged.
        """
        data = _read(self.file)
        if not isinstance(data.get("records"), list) or not isinstance(data.get("graves"), list):
            raise Unreadable("not a store")
        return Content(data["records"], data["graves"])

    def save(self, content: Content) -> None:
        """Replace the file, atomically and durably.

        Raises:
            OSError: it cannot be written.
        """
        _write(self.file, {"records": content.records, "graves": content.graves})

    def backups(self) -> Iterator[Backup]:
        """Yield the backups.

        Raises:
            OSError, Unreadable: one cannot be read.
        """
        for path in sorted(self.folder.glob(f"*{_BACKUP}")):
            data = _read(path)
            until = datetime.fromisoformat(data["until"]) if data["until"] else None
            yield Backup(path, until, tuple(data["records"]))

    def unfinished(self) -> tuple[Path, ...]:
        """Return what killed writers left."""
        return tuple(sorted(self.folder.glob(f"{_UNFINISHED}*")))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock, without waiting for it.

        Raises:
            Taken: another process has it.
            OSError: the folder cannot be opened.
        """
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Taken from error
            yield
        finally:
            os.close(descriptor)


def _read(path: Path) -> Fields:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _leave_time_alone(path))
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read()
    try:
        data = json.loads(content)
    except ValueError:
        raise Unreadable("not JSON") from None
    if not isinstance(data, dict):
        raise Unreadable("not an object")
    return data


def _leave_time_alone(path: Path) -> int:
    return os.O_NOATIME if path.stat().st_uid == os.geteuid() else 0


def _write(path: Path, data: Fields) -> None:
    unfinished = path.with_name(f"{_UNFINISHED}{os.getpid()}")
    with unfinished.open("w", encoding="utf-8", errors="surrogatepass") as stream:
        json.dump(data, stream, ensure_ascii=False, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
