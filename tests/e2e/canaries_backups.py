"""A restic repository in whose snapshots the canaries lie, and a look at it without ``purge``.

Made and read by restic's own command line: every file of every snapshot is dumped. Nothing here
imports purge.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from tests.e2e.canaries import canaries

PASSWORD_FILE: Final = "password"
KEEP_DAILY: Final = 4
COVERED: Final = "[logs, notes, memories, vectors, summaries]"
NIGHTS: Final = 3
"""How many nights back the oldest snapshot was taken; a canary is in all but that one."""


def sites(policy: str) -> str:
    """Return the site as a manifest says it."""
    return f"""
  backups:
    adapter: restic
    repository: ../restic/repository
    outside_root: true
    password_file: ../restic/{PASSWORD_FILE}
    cache_dir: ../restic/cache
    program: restic-0.18
    covers: {COVERED}
    policy: {policy}
    keep: {{daily: {KEEP_DAILY}}}
    schedule: {{backup: "03:00", forget: "03:30", prune: forget}}
    max_unused: 0
"""


@dataclass(frozen=True, slots=True)
class Backups:
    """A repository, as its owner uses it.

    Args:
        folder: holds the repository, its password and restic's cache.
        program: restic.
    """

    folder: Path
    program: Path

    def run(self, *words: str, cwd: Path | None = None) -> bytes:
        """Run restic and return what it prints."""
        done = subprocess.run(
            [str(self.program), *words],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "TZ": "UTC",
                "RESTIC_REPOSITORY": str(self.folder / "repository"),
                "RESTIC_PASSWORD_FILE": str(self.folder / PASSWORD_FILE),
                "RESTIC_CACHE_DIR": str(self.folder / "cache"),
            },
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def backup(self, at: datetime, *words: str, host: str = "quay") -> None:
        """Take a snapshot at a made-up time."""
        self.run("backup", "-q", "--host", host, "--time", f"{at:%Y-%m-%d %H:%M:%S}", *words)

    def snapshots(self) -> list[dict[str, Any]]:
        """List the snapshots, oldest first."""
        listed: list[dict[str, Any]] = json.loads(self.run("snapshots", "--json"))
        return sorted(listed, key=lambda one: str(one["time"]))

    def dropped(self) -> set[str]:
        """Return the ids of the snapshots that the nightly forget would drop now."""
        said = self.run(
            *("forget", "--dry-run", "--json", "--group-by", "host,paths"),
            *("--keep-daily", str(KEEP_DAILY)),
        )
        groups = json.loads(said.splitlines()[0])
        return {one["id"] for group in groups for one in group["remove"] or ()}


def last_night() -> datetime:
    """Return when the last nightly backup was due."""
    now = datetime.now(UTC)
    due = now.replace(hour=3, minute=0, second=0, microsecond=0)
    return due if due <= now else due - timedelta(days=1)


def plant(backups: Backups, data: Path, other: Path) -> None:
    """Back up a memory night by night; it changes in between.

    Args:
        backups: an empty repository.
        data: the folder of the memory; a file is added to it and changes.
        other: another folder, of another host.
    """
    photo, hidden = data / "photo.bin", data.parent / "not yet"
    photo.write_bytes(bytes(range(256)) * 40)
    photo.chmod(0o640)
    (data / "link to photo").symlink_to("photo.bin")
    other.mkdir()
    (other / "accounts.txt").write_text("of another machine\n")
    due = last_night()
    hidden.mkdir()
    for name in ("memories.db", "chroma"):
        (data / name).rename(hidden / name)
    kept = data / "logs" / "day.jsonl"
    content = kept.read_bytes()
    kept.write_bytes(content.split(b"\n")[1] + b"\n")
    papers = {path: path.read_bytes() for path in (data / "notes").iterdir()}
    papers[data / "summaries" / "week.md"] = (data / "summaries" / "week.md").read_bytes()
    packed = data / "logs" / "old" / "week.jsonl.gz"
    packed.rename(hidden / packed.name)
    for path in papers:
        path.write_text("# Before\n\nnothing yet\n")
    backups.backup(due - timedelta(days=NIGHTS), str(data), "--tag", "first")
    (hidden / packed.name).rename(packed)
    for name in ("memories.db", "chroma"):
        (hidden / name).rename(data / name)
    hidden.rmdir()
    kept.write_bytes(content)
    for path, old in papers.items():
        path.write_bytes(old)
    backups.backup(due - timedelta(days=2), str(data), "--tag", "a tag")
    backups.backup(due - timedelta(days=1), str(other), host="pier")
    photo.write_bytes(photo.read_bytes()[::-1])
    backups.backup(due, str(data))


@dataclass(frozen=True, slots=True)
class Seen:
    """What restic shows of a repository.

    Args:
        about: of each snapshot its time, host, tags and paths, oldest first.
        ids: of the snapshots, by their first tag, or the host where there is none.
        contents: every file of every snapshot, by the snapshot's time and host.
        blobs: the ids of all data that is stored.
    """

    about: list[Any]
    ids: dict[str, str]
    contents: dict[tuple[str, str], dict[str, tuple[Any, bytes]]]
    blobs: list[str]

    @classmethod
    def of(cls, backups: Backups) -> Seen:
        """Look at all of a repository."""
        about, ids, contents = [], {}, {}
        for one in backups.snapshots():
            time, host = one["time"][:19], one["hostname"]
            about.append((time, host, one.get("tags"), one["paths"]))
            ids[(one.get("tags") or [host])[0]] = one["id"]
            contents[time, host] = _files(backups.run("dump", one["id"], "/"))
        assert len(contents) == len(about)
        return cls(about, ids, contents, blobs(backups))


def _files(packed: bytes) -> dict[str, tuple[Any, bytes]]:
    files: dict[str, tuple[Any, bytes]] = {}
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        for member in archive:
            got = archive.extractfile(member) if member.isreg() else None
            kind = (member.type, member.mode, member.mtime, member.uid, member.linkname)
            files["/" + member.name] = (kind, got.read() if got is not None else b"")
    return files


def unpack(files: Mapping[str, tuple[Any, bytes]], folder: Path) -> None:
    """Write the files of a snapshot below a folder, to look at them there."""
    for name, (kind, content) in files.items():
        if kind[0] == tarfile.REGTYPE:
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def blobs(backups: Backups) -> list[str]:
    """Return the ids of all data that the repository stores, whether a snapshot needs it or not."""
    listed = backups.run("list", "blobs").decode().split("\n")
    return sorted(line.split()[1] for line in listed if line.startswith("data"))


def holding(backups: Backups, folder: Path, ids: Iterable[str]) -> set[str]:
    """Return in which of some blobs a canary stands.

    Args:
        backups: the repository.
        folder: does not exist; for the blobs, while they are looked at.
        ids: of the blobs; they name their content.
    """
    folder.mkdir()
    for id in ids:
        (folder / f"{id}.blob").write_bytes(backups.run("cat", "blob", id))
    found = canaries(folder)
    shutil.rmtree(folder)
    return {Path(place).stem for places in found.values() for place in places}


def files_of(folder: Path) -> dict[str, str]:
    """Return the digests of the files below a folder, of a repository that must not change."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def drop_night(backups: Backups, held: set[str], data: Path) -> datetime:
    """Live through the coming nights, and return when restic drops the last of some snapshots.

    Args:
        backups: a copy of the repository; it gets new, empty snapshots.
        held: the ids of the snapshots.
        data: the folder that is backed up every night.
    """
    night = last_night()
    for _ in range(40):
        night += timedelta(days=1)
        backups.backup(night, "--exclude", "*.*", "--exclude", "chroma", str(data))
        if held <= backups.dropped():
            return night + timedelta(minutes=30)
    raise AssertionError("restic would keep them for ever")
