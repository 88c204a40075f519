"""Which files of the covered sites lie in which snapshots, each distinct one once.

A file is what its place and the ids of its pieces say: equal ids are equal bytes. What stands
alone (a log, a note) is one unit a file; what only means something together (a database and its
log, a folder of Chroma) is one unit a site. Reads trees only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final

from purge.adapter import Covered, NotChecked, ProblemCode
from purge_adapters._restic_repository import Node, Repository, Taken

__all__ = ["Holdings", "Stored", "Trees", "Unit", "places", "stands_alone", "survey"]

STAND_ALONE: Final = frozenset({"jsonl", "lines", "markdown"})
"""Adapters whose files can be looked at one by one. For any other, a site is looked at whole."""
ELSEWHERE: Final = "a copy at another place than the manifest says"
HISTORY: Final = "kept in the git history around the files"
_ROOT: Final = PurePosixPath("/")


@dataclass(frozen=True, slots=True)
class Stored:
    """One regular file in a snapshot.

    Args:
        place: the absolute path that it has, or had, for its site.
        inside: its path in the snapshot, which may differ.
        size: in bytes, as the snapshot says.
        content: the ids of its pieces.
        top: the path in the snapshot at or below which every file is known.
    """

    place: Path
    inside: PurePosixPath
    size: int
    content: tuple[str, ...]
    top: PurePosixPath


@dataclass(frozen=True, slots=True)
class Unit:
    """What is looked at as one.

    Args:
        site: the covered site.
        files: its files, in one snapshot.
        key: what tells it from every other content, in any snapshot of any repository.
        aside: why they are none of the site's own files, so that nothing is changed in them.
    """

    site: str
    files: tuple[Stored, ...]
    key: str
    aside: str = ""

    @classmethod
    def of(cls, site: str, files: Sequence[Stored], aside: str = "") -> Unit:
        """Make one."""
        ordered = tuple(sorted(files, key=lambda file: str(file.place)))
        parts = [[str(file.place), *file.content] for file in ordered]
        written = json.dumps([site, parts]).encode()
        return cls(site, ordered, hashlib.sha256(written).hexdigest(), aside)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(file.size for file in self.files)


@dataclass(slots=True)
class Holdings:
    """What the snapshots hold of the covered sites."""

    held_by: dict[str, list[tuple[Taken, Unit]]] = field(default_factory=dict)
    """By the key of each distinct unit, the snapshots that hold it, and as what."""
    files: dict[str, list[Stored]] = field(default_factory=dict)
    """By the id of a snapshot, all its files that are known."""
    sites: dict[str, set[str]] = field(default_factory=dict)
    """By covered site, the ids of the snapshots that hold something of it."""
    gaps: list[NotChecked] = field(default_factory=list)

    def add(self, snapshot: Taken, unit: Unit) -> None:
        """Take up what one snapshot holds."""
        self.held_by.setdefault(unit.key, []).append((snapshot, unit))
        self.files.setdefault(snapshot.id, []).extend(unit.files)
        self.sites.setdefault(unit.site, set()).add(snapshot.id)


class Trees:
    """The trees of the snapshots, walked downwards; each distinct one is read once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._files: dict[tuple[str, Path, PurePosixPath], tuple[Stored, ...]] = {}
        self._alone: dict[tuple[str, Stored], Unit] = {}

    def fetch(self, ids: Iterable[str | None]) -> None:
        """Read trees that will be asked for, some at the same time."""
        self._repository.trees(id for id in ids if id)

    def nodes(self, tree: str | None) -> tuple[Node, ...]:
        """Return the entries of a folder."""
        return self._repository.trees([tree])[tree] if tree else ()

    def child(self, tree: str | None, name: str) -> Node | None:
        """Return one entry of a folder."""
        return next((node for node in self.nodes(tree) if node.name == name), None)

    def at(self, root: str, inside: PurePosixPath) -> Node | None:
        """Return the entry at a path of a snapshot."""
        node: Node | None = Node("", "dir", 0, (), root)
        for name in inside.parts[1:]:
            if node is None or node.kind != "dir":
                return None
            node = self.child(node.subtree, name)
        return node

    def files(self, node: Node, place: Path, inside: PurePosixPath) -> tuple[Stored, ...]:
        """Return the regular files at and below an entry."""
        return self._below(node, place, inside, inside)

    def _below(
        self, node: Node, place: Path, inside: PurePosixPath, top: PurePosixPath
    ) -> tuple[Stored, ...]:
        if node.kind == "file":
            return (Stored(place, inside, node.size, node.content, top),)
        if node.kind != "dir" or node.subtree is None:
            return ()
        known = self._files.get((node.subtree, place, inside))
        if known is None:
            children = self.nodes(node.subtree)
            self.fetch(child.subtree for child in children if child.kind == "dir")
            known = tuple(
                file
                for child in children
                for file in self._below(child, place / child.name, inside / child.name, top)
            )
            self._files[node.subtree, place, inside] = known
        return known

    def changes(
        self, old: str | None, new: str | None, folder: PurePosixPath = _ROOT
    ) -> Iterator[tuple[str, str]]:
        """Yield the paths in which two trees differ, each with the sign of ``restic diff``."""
        if old == new:
            return
        before, after = ({node.name: node for node in self.nodes(tree)} for tree in (old, new))
        for name in sorted(before.keys() | after.keys()):
            one, other, path = before.get(name), after.get(name), folder / name
            if one is None:
                yield str(path), "+"
            elif other is None:
                yield str(path), "-"
            elif (one.kind, one.size, one.content) != (other.kind, other.size, other.content):
                yield str(path), "M"
            else:
                yield from self.changes(one.subtree, other.subtree, path)

    def alone(self, site: str, file: Stored) -> Unit:
        """Return a file as a unit; the same one for the same file."""
        made = self._alone.get((site, file))
        if made is None:
            made = self._alone[site, file] = Unit.of(site, (file,))
        return made


def survey(
    repository: Repository, covers: Mapping[str, Covered], snapshots: Sequence[Taken]
) -> Holdings:
    """Return what snapshots hold of the covered sites.

    Raises:
        Transient, Permanent: the repository cannot be read.
    """
    trees = Trees(repository)
    _read_ahead(trees, covers, snapshots)
    found = Holdings()
    for name, covered in covers.items():
        if not covered.paths:
            found.gaps.append(
                NotChecked(
                    name,
                    "the site is reached through a server, so its copies in a backup of files "
                    "are not known",
                    ProblemCode.BYTES_NOT_VISIBLE,
                )
            )
            continue
        alone = stands_alone(covered)
        for snapshot in snapshots:
            files = tuple(_files(trees, snapshot, covered.paths))
            for unit in _units(trees, name, files, alone):
                found.add(snapshot, unit)
            if alone and files:
                for unit in _histories(trees, snapshot, name, covered.paths):
                    found.add(snapshot, unit)
    _look_elsewhere(repository, trees, covers, snapshots, found)
    for name, covered in covers.items():
        if covered.paths and not found.sites.get(name):
            found.gaps.append(
                NotChecked(
                    name,
                    "no snapshot holds anything at the site's paths; is 'covers' right?",
                )
            )
    return found


def stands_alone(covered: Covered) -> bool:
    """Whether the files of a site can be looked at one by one."""
    with covered.open(covered.site) as adapter:
        return adapter.info.name in STAND_ALONE


def _units(trees: Trees, site: str, files: Sequence[Stored], alone: bool) -> Iterator[Unit]:
    if alone:
        yield from (trees.alone(site, file) for file in files)
    elif files:
        yield Unit.of(site, files)


def _read_ahead(trees: Trees, covers: Mapping[str, Covered], snapshots: Sequence[Taken]) -> None:
    """Read the folders on the way to the sites, of all snapshots at the same time."""
    wanted = {path for covered in covers.values() for path in covered.paths}
    names = {part for path in wanted for part in path.parts}
    level = [snapshot.tree for snapshot in snapshots]
    while level:
        trees.fetch(level)
        level = [
            node.subtree
            for tree in dict.fromkeys(level)
            for node in trees.nodes(tree)
            if node.kind == "dir" and node.name in names and node.subtree
        ]


def roots(trees: Trees, snapshot: Taken) -> dict[Path, PurePosixPath]:
    """Return, for each path that a snapshot says it holds, where in the snapshot that lies.

    ``backup /a/b`` puts it at ``/a/b``, and ``backup b`` within ``/a`` at ``/b``, although both
    say ``/a/b``; ``backup .`` puts the content of the folder at ``/`` (measured).
    """
    found: dict[Path, PurePosixPath] = {}
    for written in snapshot.paths:
        path = Path(written)
        parts = path.parts[1:]
        for start in range(len(parts)):
            inside = _ROOT.joinpath(*parts[start:])
            if trees.at(snapshot.tree, inside) is not None:
                found[path] = inside
                break
        else:
            if len(snapshot.paths) == 1:
                found[path] = _ROOT
    return found


def places(trees: Trees, snapshot: Taken, path: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    """Yield where a path lies in a snapshot: pairs of a place on the machine and one inside."""
    for root, inside in roots(trees, snapshot).items():
        if path.is_relative_to(root):
            yield path, inside.joinpath(*path.relative_to(root).parts)
        elif root.is_relative_to(path):
            yield root, inside


def _files(trees: Trees, snapshot: Taken, paths: Sequence[Path]) -> Iterator[Stored]:
    seen: set[Path] = set()
    for path in paths:
        for place, inside in places(trees, snapshot, path):
            for file in _here(trees, snapshot, place, inside):
                if file.place not in seen:
                    seen.add(file.place)
                    yield file


def _here(trees: Trees, snapshot: Taken, place: Path, inside: PurePosixPath) -> Iterator[Stored]:
    """Yield the files at a place, and those beside a file that are named after it."""
    node = trees.at(snapshot.tree, inside)
    if node is not None:
        yield from trees.files(node, place, inside)
    if inside.name and (node is None or node.kind == "file"):
        around = trees.at(snapshot.tree, inside.parent)
        for sibling in trees.nodes(around.subtree) if around else ():
            named_after = place.stem and place.stem in sibling.name
            if sibling.kind == "file" and sibling.name != inside.name and named_after:
                there = inside.parent / sibling.name
                beside = place.parent / sibling.name
                yield Stored(beside, there, sibling.size, sibling.content, there)


def _histories(trees: Trees, snapshot: Taken, site: str, paths: Sequence[Path]) -> Iterator[Unit]:
    """Yield the git folders in a snapshot that lie around the files of a site."""
    met: set[PurePosixPath] = set()
    for path in paths:
        for place, inside in places(trees, snapshot, path):
            for above, there in zip(place.parents, inside.parents, strict=False):
                node = trees.at(snapshot.tree, there / ".git")
                if there not in met and node is not None and node.kind == "dir":
                    files = trees.files(node, above / ".git", there / ".git")
                    if files:
                        yield Unit.of(site, files, HISTORY)
                met.add(there)


def _look_elsewhere(
    repository: Repository,
    trees: Trees,
    covers: Mapping[str, Covered],
    snapshots: Sequence[Taken],
    found: Holdings,
) -> None:
    """Take up what snapshots without a site's paths hold under the same names elsewhere.

    Backups of another host, of a temporary copy, or over a symbolic link have other paths.
    """
    lacking = {
        name: {s.id: s for s in snapshots if s.id not in found.sites.get(name, set())}
        for name, covered in covers.items()
        if covered.paths
    }
    names = {path.name for name in lacking if lacking[name] for path in covers[name].paths}
    if not names:
        return
    # The longest path first: a file within a folder that was met too belongs to that folder.
    met = sorted(set(repository.named(names)), key=lambda one: (one[0], len(one[1])))
    for name, by_id in lacking.items():
        alone = stands_alone(covers[name])
        for snapshot in by_id.values():
            folders: dict[str, list[Stored]] = {}
            for id, inside in met:
                if id != snapshot.id:
                    continue
                there = PurePosixPath(inside)
                for path in covers[name].paths:
                    if path.name == there.name:
                        files = _here(trees, snapshot, path, there)
                        folders.setdefault(str(there.parent), []).extend(files)
            for here in folders.values():
                once = {file.place: file for file in here}
                for unit in _units(trees, name, tuple(once.values()), alone):
                    found.add(snapshot, replace(unit, aside=ELSEWHERE))
