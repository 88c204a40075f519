"""Reading a restic repository: its snapshots, its trees, its pieces. Takes no lock, writes nothing.

A tree is read with ``cat blob``, which prints the ids of each file's pieces (``ls`` does not; and
0.14 has no ``cat tree``). Names of pieces are hashes of their content, so a tree that was read
once is the same for ever, in any repository, and is remembered for the length of the process.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from purge.adapter import ProblemCode, Site
from purge.errors import Permanent
from purge_adapters._restic_program import Restic
from purge_adapters._restic_settings import ResticSettings

__all__ = ["Node", "Repository", "Taken", "escaped"]

AT_ONCE: Final = max(1, min(4, os.cpu_count() or 1))
"""How many restic processes read at the same time: each spends most of its time on its key."""
_REMEMBERED: Final = 100_000
_FRACTION: Final = re.compile(r"(\.\d{1,6})\d*")
_SPECIAL: Final = re.compile(r"([\\*?\[\]])")
_ARGUMENT_BYTES: Final = 1_000_000
"""What may stand in the arguments of one process; Linux allows about twice as much."""


@dataclass(frozen=True, slots=True)
class Node:
    """One entry of a folder in a snapshot."""

    name: str
    kind: str
    """``file``, ``dir``, ``symlink`` …"""
    size: int
    content: tuple[str, ...]
    """The ids of the pieces of a file, in their order."""
    subtree: str | None


@dataclass(frozen=True, slots=True)
class Taken:
    """One snapshot."""

    id: str
    time: datetime
    host: str
    paths: tuple[str, ...]
    tags: tuple[str, ...]
    tree: str
    original: str | None = None

    @property
    def seconds(self) -> datetime:
        """Its time as ``backup --time`` can set it: in whole seconds."""
        return self.time.replace(microsecond=0)


_TREES: dict[str, tuple[Node, ...]] = {}


class Repository:
    """One repository while it is read."""

    def __init__(self, restic: Restic) -> None:
        self.restic = restic
        self._snapshots: tuple[Taken, ...] | None = None
        self.trees_read = 0

    @classmethod
    @contextmanager
    def open(cls, site: Site, settings: ResticSettings) -> Iterator[Repository]:
        """Give the repository that the settings name. Nothing is read yet.

        Raises:
            Permanent: there is no restic program.
        """
        yield cls(Restic(site, settings))

    def snapshots(self) -> tuple[Taken, ...]:
        """Return all snapshots, the oldest first.

        Raises:
            Transient, Permanent: they cannot be listed.
        """
        if self._snapshots is None:
            listed = json.loads(self.restic.read("snapshots", "--json").must().out or b"null")
            found = (_taken(item) for item in listed or ())
            self._snapshots = tuple(sorted(found, key=lambda one: (one.time, one.id)))
        return self._snapshots

    def trees(self, ids: Iterable[str]) -> Mapping[str, tuple[Node, ...]]:
        """Return folders by the ids of their trees.

        Raises:
            Transient, Permanent: one cannot be read.
        """
        wanted = list(dict.fromkeys(ids))
        missing = [id for id in wanted if id not in _TREES]
        if len(_TREES) + len(missing) > _REMEMBERED:
            _TREES.clear()
            missing = wanted
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for id, nodes in zip(missing, pool.map(self._tree, missing), strict=True):
                _TREES[id] = nodes
        self.trees_read += len(missing)
        return {id: _TREES[id] for id in wanted}

    def _tree(self, id: str) -> tuple[Node, ...]:
        content = self.restic.read("cat", "blob", id).must().out
        try:
            return tuple(_node(item) for item in json.loads(content)["nodes"] or ())
        except (ValueError, KeyError, TypeError) as error:
            raise Permanent(
                "A folder in the repository cannot be read.", problem=ProblemCode.CORRUPT
            ) from error

    def blob(self, id: str) -> bytes | None:
        """Return a piece of data; ``None``: the repository has none of that id (any more).

        Raises:
            Transient, Permanent: it cannot be told.
        """
        done = self.restic.read("cat", "blob", id)
        if not done.ok and "blob not found" in done.said:
            return None
        return done.must().out

    def blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Yield pieces of data, as :meth:`blob` does."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for start in range(0, len(ids), AT_ONCE):
                some = ids[start : start + AT_ONCE]
                yield from zip(some, pool.map(self.blob, some), strict=True)

    def listed_blobs(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ids of all pieces that are stored: of trees, and of data.

        Raises:
            Transient, Permanent: they cannot be listed.
        """
        found: dict[bytes, set[str]] = {b"tree": set(), b"data": set()}
        with self.restic.output("list", "blobs") as lines:
            for line in lines:
                kind, _, id = line.strip().partition(b" ")
                if kind in found:
                    found[kind].add(id.decode("ascii"))
        return frozenset(found[b"tree"]), frozenset(found[b"data"])

    def needed_count(self) -> int:
        """Return how many pieces, trees and data, the snapshots need.

        Raises:
            Transient, Permanent: it cannot be told.
        """
        if not self.snapshots():
            return 0
        done = self.restic.read("stats", "--json", "--mode", "raw-data").must()
        count: int = json.loads(_document(done.out))["total_blob_count"]
        return count

    def needed(self, ids: Sequence[str]) -> frozenset[str]:
        """Return which of some pieces of data a snapshot needs.

        Raises:
            Transient, Permanent: it cannot be told.
        """
        found: set[str] = set()
        size = _ARGUMENT_BYTES // 80
        for start in range(0, len(ids), size):
            some = ids[start : start + size]
            with self.restic.output("find", "--json", "--blob", *some) as out:
                text = out.read()
            found.update(match.decode("ascii") for match in _FOUND.findall(text))
        return frozenset(ids) & found

    def named(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the snapshot and the path of everything that has one of some names.

        Raises:
            Transient, Permanent: it cannot be told.
        """
        patterns = sorted({escaped(name) for name in names})
        if not patterns:
            return []
        with self.restic.output("find", "--json", *patterns) as out:
            content = out.read()
        return [
            (str(group["snapshot"]), str(match["path"]))
            for group in json.loads(content or b"[]") or ()
            for match in group.get("matches") or ()
        ]

    def restore(self, snapshot: str, paths: Sequence[PurePosixPath], target: Path) -> None:
        """Bring files or folders of a snapshot into a folder, under their paths in the snapshot.

        Without paths, all of it.

        Raises:
            Transient, Permanent: something was not restored.
        """
        patterns = [word for path in paths for word in ("--include", escaped(str(path)))]
        self.restic.bring("restore", snapshot, "--target", str(target), *patterns).must()


_FOUND: Final = re.compile(rb'"object_type":"blob","id":"([0-9a-f]{64})"')


def escaped(path: str) -> str:
    """Return a path as a pattern of restic's that matches it alone."""
    return _SPECIAL.sub(r"\\\1", path)


def _document(out: bytes) -> str:
    """Return the first JSON document of an output that may go on after it."""
    text = out.decode()
    start = text.index("{")
    return text[start : start + json.JSONDecoder().raw_decode(text[start:])[1]]


def _node(item: Mapping[str, Any]) -> Node:
    # Names that are not UTF-8 are written by restic as escapes within the JSON text.
    return Node(
        name=_unquoted(item["name"]),
        kind=item["type"],
        size=int(item.get("size", 0)),
        content=tuple(item.get("content") or ()),
        subtree=item.get("subtree"),
    )


def _unquoted(name: str) -> str:
    """Undo what restic does to names: it quotes them as Go strings (``strconv.Quote``)."""
    if "\\" not in name:
        return name
    escapes = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34}
    made = bytearray()
    at = 0
    while at < len(name):
        letter = name[at]
        if letter != "\\":
            made += letter.encode("utf-8", "surrogateescape")
            at += 1
            continue
        kind = name[at + 1 : at + 2]
        width = {"x": 2, "u": 4, "U": 8}.get(kind, 0)
        if width:
            value = int(name[at + 2 : at + 2 + width], 16)
            made += bytes([value]) if kind == "x" else chr(value).encode("utf-8")
        else:
            made.append(escapes.get(kind, 92))
        at += 2 + width
    return os.fsdecode(bytes(made))


def _taken(item: Mapping[str, Any]) -> Taken:
    # Go writes nanoseconds, and Python reads microseconds.
    written = _FRACTION.sub(r"\1", item["time"])
    return Taken(
        id=item["id"],
        time=datetime.fromisoformat(written),
        host=item.get("hostname", ""),
        paths=tuple(item.get("paths") or ()),
        tags=tuple(item.get("tags") or ()),
        tree=item.get("tree") or "",
        original=item.get("original"),
    )
