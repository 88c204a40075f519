"""``policy: rewrite``: snapshots without the item in the place of those that hold it.

Where all that goes are whole files, ``restic rewrite`` takes them out (0.15 and later); where a
record stands in a file with others, a cleaned file is put in its place. The new snapshot is there
and was compared before the old one goes, and a run that was killed in between goes on from there.
Last comes ``prune --max-unused 0``. No lock is ever removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from purge.adapter import NotChecked, NotRemoved, ProblemCode, Residue, Site
from purge.errors import Permanent, StoreError
from purge.targets import Targets
from purge_adapters._files import os_problem, private_folder
from purge_adapters._restic_clean import Change, clean
from purge_adapters._restic_program import Version
from purge_adapters._restic_replace import back_up_again, is_replacement, same_origin
from purge_adapters._restic_repository import Repository, Taken, escaped
from purge_adapters._restic_settings import ResticSettings
from purge_adapters._restic_targets import read
from purge_adapters._restic_units import Trees, survey

__all__ = ["rewrite"]

HAS_REWRITE: Final[Version] = (0, 15)
_STOPS: Final = frozenset(
    {ProblemCode.BUSY, ProblemCode.NO_PERMISSION, ProblemCode.UNREACHABLE, ProblemCode.CORRUPT}
)


@dataclass(slots=True)
class _Task:
    """What has to be done to one snapshot."""

    places: set[tuple[str, str]] = field(default_factory=set)
    """Sites, and the place in them that holds something."""


def rewrite(
    site: Site, settings: ResticSettings, residue: Sequence[Residue]
) -> Iterator[NotRemoved | NotChecked]:
    """Yield what ``sanitize`` of the adapter yields.

    Raises:
        Transient, Permanent: the repository cannot be read or pruned.
    """
    tasks: dict[str, _Task] = {}
    targets: Targets | None = None
    keys: set[int] = set()
    for copy in residue:
        if "targets" not in copy.handle:
            continue
        if targets is None:
            targets = read(cast(dict[str, object], copy.handle["targets"]))
        # What others ask for is left alone: a copy that was not given may be on hold.
        keys |= copy.keys or {target.key for target in targets}
        for id in cast(Sequence[str], copy.handle["snapshots"]):
            place = (str(copy.handle["site"]), str(copy.handle["place"]))
            tasks.setdefault(id, _Task()).places.add(place)
    with Repository.open(site, settings) as repository:
        version = repository.restic.version()
        if targets is not None:
            mine = targets.only(frozenset(keys))
            worker = _Worker(repository, site, mine, version, frozenset(tasks))
            for snapshot in repository.snapshots():
                if snapshot.id not in tasks:
                    continue
                problem = worker.replace(snapshot, tasks[snapshot.id])
                if problem is not None:
                    yield problem
                    if problem.problem in _STOPS:
                        return
        done = repository.restic.change("prune", "--max-unused", "0", version=version)
        if not done.ok:
            problem_ = done.problem()
            yield NotChecked("prune", str(problem_), ProblemCode(problem_.problem))


@dataclass(frozen=True, slots=True)
class _Worker:
    """Replaces snapshots, one after the other."""

    repository: Repository
    site: Site
    targets: Targets
    version: Version
    holding: frozenset[str]
    """The snapshots that hold something, none of which can stand for a cleaned one."""

    def replace(self, snapshot: Taken, task: _Task) -> NotChecked | None:
        """Put a snapshot without the item in the place of one; say what kept it from being done."""
        where = f"the snapshot of {snapshot.time:%Y-%m-%d %H:%M}"
        try:
            with private_folder("restic") as folder:
                self._replace(snapshot, task, folder)
        except StoreError as error:
            return NotChecked(where, str(error), ProblemCode(error.problem))
        except OSError as error:
            problem = os_problem(error, "A private copy")
            return NotChecked(where, str(problem), ProblemCode(problem.problem))
        return None

    def _replace(self, snapshot: Taken, task: _Task, folder: Path) -> None:
        names = {name for name, _ in task.places}
        covers = {name: self.site.covers[name] for name in names}
        found = survey(self.repository, covers, [snapshot])
        units = [
            unit
            for held in found.held_by.values()
            for _, unit in held
            if not unit.aside
            and any(
                unit.site == name and (len(unit.files) > 1 or str(unit.files[0].place) == place)
                for name, place in task.places
            )
        ]
        changes = clean(
            self.repository, snapshot, units, covers, self.targets, folder, self.site.clock()
        )
        if not changes:
            return
        if self._standing_in(snapshot, changes) is None:
            self._make(snapshot, changes, folder)
        self._forget(snapshot)

    def _standing_in(self, snapshot: Taken, changes: Sequence[Change]) -> Taken | None:
        """Return the snapshot that a run which was killed made to stand for this one."""
        for other in _listed(self.repository):
            if other.id not in self.holding and is_replacement(
                self.repository, snapshot, other, changes
            ):
                return other
        return None

    def _make(self, snapshot: Taken, changes: Sequence[Change], folder: Path) -> None:
        before = {one.id for one in _listed(self.repository)}
        if all(change.fresh is None for change in changes):
            if self.version < HAS_REWRITE:
                raise Permanent(
                    "Taking a file out of a snapshot needs restic 0.15 or later; this one is "
                    f"{self.version[0]}.{self.version[1]}.",
                    problem=ProblemCode.UNSUPPORTED,
                )
            words = [
                word for change in changes for word in ("--exclude", escaped(str(change.inside)))
            ]
            # With --forget restic leaves the tags as they are; it saves the new one first.
            self.repository.restic.change(
                "rewrite", "--forget", *words, snapshot.id, version=self.version
            ).must()
            self._verify_rewritten(snapshot, changes, before)
            return
        back_up_again(self.repository, snapshot, changes, folder, self.site.timezone, self.version)
        made = [one for one in _listed(self.repository) if one.id not in before]
        if any(is_replacement(self.repository, snapshot, one, changes) for one in made):
            return
        for one in made:
            if same_origin(one, snapshot):
                self.repository.restic.change("forget", one.id, version=self.version)
        raise Permanent(
            "The new snapshot would differ from the old one in more than what has to go (files of "
            "other users, or attributes that this user may not set); the old one was left. "
            "Run it as root.",
            problem=ProblemCode.UNSUPPORTED,
        )

    def _verify_rewritten(
        self, snapshot: Taken, changes: Sequence[Change], before: set[str]
    ) -> None:
        """Compare what restic made with the old tree, which stays until the prune."""
        expected = {str(change.inside): change.sign for change in changes}
        trees = Trees(self.repository)
        for one in _listed(self.repository):
            if one.id not in before and same_origin(one, snapshot):
                if dict(trees.changes(snapshot.tree, one.tree)) == expected:
                    return
                break
        raise Permanent(
            "restic rewrote a snapshot otherwise than it was told; nothing was pruned. Look at "
            "the repository before the next prune.",
            problem=ProblemCode.CORRUPT,
        )

    def _forget(self, snapshot: Taken) -> None:
        if all(one.id != snapshot.id for one in _listed(self.repository)):
            return
        self.repository.restic.change("forget", snapshot.id, version=self.version).must()
        # Up to 0.18 restic ends well although the server refused to delete (measured).
        if any(one.id == snapshot.id for one in _listed(self.repository)):
            raise Permanent(
                "The repository does not let this client delete: it is append-only, or its objects "
                "are locked. Whoever runs the server can delete there; until then the snapshots "
                "stay as long as its own rules say.",
                problem=ProblemCode.NO_PERMISSION,
            )


def _listed(repository: Repository) -> tuple[Taken, ...]:
    """Return the snapshots as they are now."""
    return Repository(repository.restic).snapshots()
