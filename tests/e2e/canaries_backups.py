"""A restic repository in whose snapshots the canaries lie, and a look at it without ``purge``.

Made and read by restic's own command line: every file of every snapshot is dumped. Nothing here
imports purge.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Final

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


def contents(backups: Backups) -> dict[tuple[str, str], Mapping[str, tuple[Any, bytes]]]:
    """Return every file of every snapshot, by the snapshot's time and host."""
    seen = {}
    for one in backups.snapshots():
        files: dict[str, tuple[Any, bytes]] = {}
        with tarfile.open(fileobj=BytesIO(backups.run("dump", one["id"], "/"))) as archive:
            for member in archive:
                got = archive.extractfile(member) if member.isreg() else None
                kind = (member.type, member.mode, member.mtime, member.linkname)
                files["/" + member.name] = (kind, got.read() if got is not None else b"")
        seen[one["time"][:19], one["hostname"]] = files
    return seen


def about(backups: Backups) -> list[Any]:
    """Return what must stay of every snapshot: its time, host, tags and paths."""
    return [
        (one["time"][:19], one["hostname"], one.get("tags"), one["paths"])
        for one in backups.snapshots()
    ]


def unpack(files: Mapping[str, tuple[Any, bytes]], folder: Path) -> None:
    """Write the files of a snapshot below a folder, to look at them there."""
    for name, (kind, content) in files.items():
        if kind[0] == tarfile.REGTYPE:
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def blobs(backups: Backups) -> dict[str, bytes]:
    """Return every blob of data that the repository still stores, by its id, unpacked."""
    listed = backups.run("list", "blobs").decode().split("\n")
    ids = [line.split()[1] for line in listed if line.startswith("data")]
    return {id: backups.run("cat", "blob", id) for id in ids}


def files_of(folder: Path, names: Sequence[str] = ()) -> dict[str, str]:
    """Return the digests of the files below a folder, of a repository that must not change."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in names
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
