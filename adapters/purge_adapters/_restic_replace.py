"""Putting cleaned files into a snapshot: a new one under the same time, host, tags and paths.

restic cannot change a file in a snapshot. So the snapshot is brought back whole into a private
folder, the cleaned files are put there, and the folder is backed up again while it lies (for that
one process) at the paths of the original. The new snapshot is compared with the old one before
the old one may go. What cannot be the same is said in the documentation: numbers of inodes, times
of change of status, parts of seconds of the snapshot's own time, and the folders above its paths.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path, PurePosixPath
from typing import Final
from zoneinfo import ZoneInfo

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters import _restic_inside
from purge_adapters._restic_clean import Change
from purge_adapters._restic_program import RETRY_LOCK, Done, Version, repository_folder
from purge_adapters._restic_repository import Repository, Taken
from purge_adapters._restic_units import Trees, roots

__all__ = ["back_up_again", "is_replacement", "same_origin"]

_COMPARED: Final = ("type", "uid", "gid", "size", "mode", "mtime")
_ROOM: Final = 1.1
SCRIPT = str(Path(_restic_inside.__file__))


def back_up_again(
    repository: Repository,
    snapshot: Taken,
    changes: Sequence[Change],
    folder: Path,
    zone: tzinfo,
    version: Version,
) -> None:
    """Make a snapshot that is ``snapshot`` with some changes. The old one stays.

    Args:
        repository: gets the new snapshot.
        snapshot: is the model.
        changes: to its files.
        folder: a private folder with room for the whole snapshot.
        zone: the manifest's time zone.
        version: of restic.

    Raises:
        Permanent: it cannot be done on this machine; nothing was made.
        Transient, Permanent: restic failed.
    """
    inside = roots(Trees(repository), snapshot)
    base = _start_folder(snapshot, inside)
    _must_have_room(repository, snapshot, folder)
    whole = folder / "whole"
    repository.restore(snapshot.id, (), whole)
    for change in changes:
        _put(whole, change)
    arguments = ["backup", "--force", "--json", "--quiet", "--host", snapshot.host]
    named, local = _zone_of(snapshot.time, zone)
    arguments += ["--time", f"{snapshot.time.astimezone(local):%Y-%m-%d %H:%M:%S}"]
    arguments += [word for tag in snapshot.tags for word in ("--tag", tag)]
    if version >= RETRY_LOCK:
        arguments += ["--retry-lock", f"{max(repository.restic.settings.lock_timeout, 0):.0f}s"]
    arguments += ["--", *_words(inside, base)]
    binds = [
        (whole.joinpath(*there.parts[1:]), place)
        for place, there in inside.items()
        if not any(place != other and place.is_relative_to(other) for other in inside)
    ]
    done = _run_inside(repository, arguments, binds, base or Path("/"), {"TZ": named}, folder)
    if done.code == _restic_inside.REFUSED:
        raise Permanent(
            "Putting a cleaned file into a snapshot needs a mount namespace, which this machine "
            "does not allow to this user. Run it as root, or allow user namespaces.",
            problem=ProblemCode.UNSUPPORTED,
        )
    done.must()


def _start_folder(snapshot: Taken, inside: dict[Path, PurePosixPath]) -> Path | None:
    """Return from where the snapshot was taken; ``None``: its paths were absolute.

    Raises:
        Permanent: its paths cannot be had again.
    """
    starts: set[Path | None] = set()
    for written in snapshot.paths:
        path = Path(written)
        there = inside.get(path)
        if there is None or len(path.parts) < 2:
            raise _not_here("its paths are not all in it, or it is of a whole machine")
        if not path.exists():
            raise _not_here("a path that it holds is not on this machine")
        count = len(there.parts) - 1
        is_absolute = there.parts[1:] == path.parts[1:]
        starts.add(None if is_absolute else Path(*path.parts[: len(path.parts) - count]))
    if len(starts) != 1:
        raise _not_here("its paths were given from more than one folder")
    return next(iter(starts))


def _not_here(why: str) -> Permanent:
    return Permanent(
        f"A cleaned file cannot be put into a snapshot here: {why}. Do it on the machine that made "
        "the backup.",
        problem=ProblemCode.UNSUPPORTED,
    )


def _words(inside: dict[Path, PurePosixPath], base: Path | None) -> list[str]:
    if base is None:
        return [str(place) for place in inside]
    return [str(place.relative_to(base)) for place in inside]


def _must_have_room(repository: Repository, snapshot: Taken, folder: Path) -> None:
    done = repository.restic.read("stats", "--json", "--mode", "restore-size", snapshot.id).must()
    size = int(json.loads(done.out[done.out.index(b"{") :].splitlines()[0])["total_size"])
    if shutil.disk_usage(folder).free < size * _ROOM:
        raise Permanent(
            f"There is no room to bring the snapshot back whole: it takes {size / 1e9:.1f} GB of "
            "temporary space. Set TMPDIR to a larger disk.",
            problem=ProblemCode.UNSUPPORTED,
        )


def _put(whole: Path, change: Change) -> None:
    """Make one change in the files that were brought back; all times stay as they were."""
    path = whole.joinpath(*change.inside.parts[1:])
    # A rebuilt index lies in a folder of its own, which the snapshot does not have.
    missing = [folder for folder in path.parents if not folder.exists()]
    known = missing[-1].parent if missing else path.parent
    around = known.stat()
    if change.fresh is None:
        path.unlink()
    elif change.is_new:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(change.fresh, path)
        os.chown(path, around.st_uid, around.st_gid)
        for folder in missing:
            os.chown(folder, around.st_uid, around.st_gid)
            folder.chmod(around.st_mode & 0o7777)
    else:
        before = path.stat()
        path.chmod(0o600)
        with open(path, "r+b") as old, open(change.fresh, "rb") as new:
            old.truncate()
            shutil.copyfileobj(new, old)
        path.chmod(before.st_mode & 0o7777)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(known, ns=(around.st_atime_ns, around.st_mtime_ns))


def _zone_of(time: datetime, zone: tzinfo) -> tuple[str, tzinfo]:
    """Return a zone, by the name that restic knows it by, in which a time is written as it was."""
    offset = time.utcoffset() or timedelta(0)
    hours = offset / timedelta(hours=1)
    if hours == 0:
        return "UTC", UTC
    if isinstance(zone, ZoneInfo) and zone.key and time.astimezone(zone).utcoffset() == offset:
        return zone.key, zone
    if hours == int(hours) and -12 <= hours <= 14:
        name = f"Etc/GMT{-int(hours):+d}"
        return name, ZoneInfo(name)
    return "UTC", UTC


def _run_inside(
    repository: Repository,
    arguments: Sequence[str],
    binds: Sequence[tuple[Path, Path]],
    start: Path,
    extra: dict[str, str],
    folder: Path,
) -> Done:
    """Run restic where folders lie at other places, with all that it needs still in reach."""
    from plumbum import local

    restic = repository.restic
    temporary = folder / "temporary"
    temporary.mkdir()
    # What lies below a place that is about to be covered has to stay in reach.
    reach = {"TMPDIR": str(temporary)}
    own = repository_folder(restic.site, restic.settings)
    if own is not None:
        reach["RESTIC_REPOSITORY"] = str(own)
    for name in ("RESTIC_PASSWORD_FILE", "RESTIC_CACHE_DIR"):
        named = restic.environment.get(name)
        if named and Path(named).exists():
            reach[name] = named
    wanted = {
        "binds": [[str(source), str(place)] for source, place in binds],
        "reach": reach,
        "program": str(restic.path),
        "arguments": list(arguments),
        "folder": str(start),
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        code = (
            local[sys.executable]["-I", "-S", SCRIPT, json.dumps(wanted)]
            .popen(
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                env={**restic.environment, **extra},
                cwd="/",
                new_session=True,
            )
            .wait()
        )
        error.seek(0)
        return Done(code, b"", error.read().decode(errors="replace"))


def same_origin(one: Taken, other: Taken) -> bool:
    """Whether a snapshot stands for the same backup as another: time, host, tags and paths."""
    return (
        one.id != other.id
        and one.seconds == other.seconds
        and one.host == other.host
        and sorted(one.paths) == sorted(other.paths)
        and sorted(one.tags) == sorted(other.tags)
    )


def is_replacement(
    repository: Repository, old: Taken, new: Taken, changes: Sequence[Change]
) -> bool:
    """Whether a snapshot is another one with these changes and no others.

    Raises:
        Transient, Permanent: they cannot be read.
    """
    if not same_origin(new, old):
        return False
    before, after = (_listed(repository, one) for one in (old, new))
    added = {
        str(parent)
        for change in changes
        if change.is_new
        for parent in change.inside.parents[:-1]
        if str(parent) not in before
    }
    expected = {str(change.inside): change.sign for change in changes}
    expected |= {f"{folder}/": "+" for folder in added}
    differ: dict[str, str] = {}
    with repository.restic.output("diff", "--json", old.id, new.id) as lines:
        for line in lines:
            item = json.loads(line)
            if item.get("message_type") == "change":
                differ[item["path"]] = item["modifier"]
    if _shape(differ, before) != _shape(expected, before):
        return False
    loose = {path.rstrip("/") for path in differ}
    below = [str(there) for there in roots(Trees(repository), old).values()]
    return all(
        before.get(path) == after.get(path)
        for path in before.keys() | after.keys()
        if path not in loose and any(_is_below(path, top) for top in below)
    )


def _shape(signs: Mapping[str, str], before: Container[str]) -> list[tuple[str, str]]:
    """Return changes without the names of new folders: an index made again has another each time.

    Args:
        signs: what ``restic diff`` shows, by path; folders end in a slash.
        before: the paths that the old snapshot has.
    """
    shape = []
    for path, sign in signs.items():
        above = [path.rstrip("/")] if path.endswith("/") else []
        above += map(str, PurePosixPath(path).parents[:-1])
        new = [folder for folder in above if folder not in before]
        if sign == "+" and new:
            top = PurePosixPath(new[-1])
            path = f"{top.parent}/\0{path[len(str(top)) :]}"
        shape.append((path, sign))
    return sorted(shape)


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _listed(repository: Repository, snapshot: Taken) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    with repository.restic.output("ls", "--json", snapshot.id) as lines:
        for line in lines:
            item = json.loads(line)
            if item.get("struct_type") == "node":
                found[item["path"]] = tuple(item.get(name) for name in _COMPARED)
    return found
