"""What a git repository keeps of old contents: every object in its store, reachable or not.

Runs ``git cat-file``, which reads. No hook, filter, pager or remote is involved, nothing is
fetched, no lock is taken, and the arguments hold no text that is looked for.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._bytes import BLOCK

__all__ = ["GitObject", "enclosing_repositories", "object_store", "objects"]

LIMIT_BYTES: Final = 512 * 1024 * 1024
"""How much content, taken out of its compression, is looked through in one repository."""
_KINDS: Final = frozenset({"blob", "commit", "tag"})


def enclosing_repositories(folders: Iterator[Path], within: Path | None = None) -> tuple[Path, ...]:
    """Return the object-owning git folders (``.git``) around some folders, each once.

    Args:
        folders: where to begin.
        within: what lies outside of this folder is not looked at.
    """
    found: dict[Path, None] = {}
    known: set[Path] = set()
    for folder in folders:
        for place in (folder, *folder.parents):
            if place in known or (within is not None and not place.is_relative_to(within)):
                break
            known.add(place)
            store = object_store(place / ".git")
            if store is not None:
                found[store] = None
    return tuple(found)


def object_store(git: Path) -> Path | None:
    """Return the folder that holds the objects of a ``.git`` folder or file, if it is one.

    A worktree or a submodule has a file there that names the real folder, and a worktree's folder
    names the one that it shares.
    """
    try:
        if git.is_file():
            kind, _, place = git.read_text("utf-8", "surrogateescape").partition(":")
            if kind != "gitdir":
                return None
            git = (git.parent / place.strip()).resolve()
        shared = git / "commondir"
        if shared.is_file():
            git = (git / shared.read_text("utf-8", "surrogateescape").strip()).resolve()
        return git if (git / "objects").is_dir() and (git / "HEAD").is_file() else None
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object while the stream stands at it; to be read before the next is asked for."""

    kind: str
    size: int
    stream: _Part

    def blocks(self) -> Iterator[bytes]:
        """Yield the content."""
        while block := self.stream.read(BLOCK):
            yield block


class _Part:
    """The next so many bytes of a stream."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(min(size, self._left))
        if self._left and not block:
            raise _failed()
        self._left -= len(block)
        return block


def objects(git: Path) -> Iterator[GitObject]:
    """Yield every blob, commit and tag in a repository's object store.

    Args:
        git: what :func:`object_store` returned.

    Raises:
        Permanent: git is not installed or fails, or there is more than :data:`LIMIT_BYTES`.
    """
    with tempfile.TemporaryFile() as names:
        total = 0
        for line in _listing(git):
            name, kind, size = _header(line)
            if kind in _KINDS:
                total += size
                names.write(name + b"\n")
        if total > LIMIT_BYTES:
            raise Permanent(
                f"The history holds more than {LIMIT_BYTES // 2**20} MiB and was not looked at.",
                problem=ProblemCode.NOT_CHECKED,
            )
        names.seek(0)
        with _git(git, "--batch", stdin=names) as process:
            assert process.stdout is not None
            try:
                while header := process.stdout.readline():
                    _, kind, size = _header(header)
                    part = _Part(process.stdout, size)
                    yield GitObject(kind, size, part)
                    while part.read(BLOCK):
                        pass
                    process.stdout.read(1)
            except BaseException:
                process.kill()
                raise
            if process.wait() != 0:
                raise _failed()


def _header(line: bytes) -> tuple[bytes, str, int]:
    """Take the line apart that git writes of an object: its name, what it is, its size."""
    try:
        name, kind, size = line.split()
        return name, kind.decode("ascii"), int(size)
    except ValueError:  # "NAME missing": the object is damaged.
        raise _failed() from None


def _listing(git: Path) -> Iterator[bytes]:
    shape = "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    with _git(git, "--batch-all-objects", "--unordered", shape) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode != 0:
        raise _failed()


def _git(
    git: Path, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "LC_ALL": "C",
    }
    try:
        return subprocess.Popen(
            ["git", f"--git-dir={git}", "--no-pager", "cat-file", *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
    except OSError:
        raise Permanent(
            "The history was not looked at: the program git is not there.",
            problem=ProblemCode.NOT_CHECKED,
        ) from None


def _failed() -> Permanent:
    return Permanent(
        "The history was not looked at: git could not read it.", problem=ProblemCode.NOT_CHECKED
    )
