"""Rewriting files of text, each once, and saying what was left alone: records go, marker lines are
struck, and what an interrupted rewrite left is swept up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from purge.adapter import Marker, Match, NotChecked, NotRemoved, ProblemCode, Removal, Residue
from purge.errors import Permanent, StoreError, Transient
from purge_adapters._files import Changed, os_problem, sweep
from purge_adapters._markdown_text import Lines
from purge_adapters._match_places import places_of
from purge_adapters._text_files import DAMAGED, Opened, TextFiles

__all__ = [
    "CHANGED",
    "NOT_STRUCK",
    "Job",
    "Strike",
    "remove_in",
    "strike_in",
    "sweep_up",
    "write_back",
]


class _HasLines(Protocol):
    @property
    def lines(self) -> Lines:
        """The file as lines."""


N = TypeVar("N", bound=_HasLines)
CHANGED: Final = "The record changed since it was found; it was left as it is."
NOT_STRUCK: Final = "it changed since it was read, so that it was not struck"
Job = tuple[Removal, Mapping[str, object]]
"""A record that has to go, and one of its places."""
Strike = tuple[Marker, str]
"""A marker, and what stands in its place afterwards."""


def remove_in(
    files: TextFiles[N],
    removals: Sequence[Removal],
    rewrite: Callable[[Opened[N], Sequence[Job]], Iterator[NotRemoved]],
    last: Callable[[Mapping[str, object]], bool] = lambda _: False,
) -> Iterator[NotRemoved]:
    """Yield what ``remove`` of an adapter of text files yields.

    Args:
        files: the files of the site.
        removals: what has to go; the handle of each names its places, with the ``file`` of each.
        rewrite: writes one file without the records that go in it; yields what it left.
        last: whether a place goes only after the others of its record, and not if one of those
            was left.
    """
    for _ in files.paths():
        break  # Where nothing is there any more, nothing is said to be gone: this raises.
    said: set[int] = set()
    try:
        for turn in (False, True):
            by_file: dict[str, list[Job]] = {}
            for removal in removals:
                for place in places_of(removal.match):
                    if last(place) is turn and id(removal.match) not in said:
                        by_file.setdefault(str(place["file"]), []).append((removal, place))
            for file, jobs in by_file.items():
                for left in _guarded(files, file, jobs, rewrite):
                    if id(left.match) not in said:
                        said.add(id(left.match))
                        yield left
    finally:
        try:
            files.sync()
        except OSError as error:
            raise os_problem(error) from error


def _guarded(
    files: TextFiles[N],
    file: str,
    jobs: Sequence[Job],
    rewrite: Callable[[Opened[N], Sequence[Job]], Iterator[NotRemoved]],
) -> Iterator[NotRemoved]:
    try:
        path = files.find(file)
        if path is None:
            return
        yield from rewrite(_sound(files, path), jobs)
    except Changed:
        yield from _leave(jobs, ProblemCode.CHANGED_UNDERNEATH, CHANGED)
    except StoreError as error:
        yield from _leave(jobs, ProblemCode(error.problem), str(error))
    except OSError as error:
        problem = os_problem(error, file)
        yield from _leave(jobs, ProblemCode(problem.problem), str(problem))


def _sound(files: TextFiles[N], path: Path) -> Opened[N]:
    """Read a file that has to be rewritten.

    Raises:
        Permanent: it has other names, or may be damaged.
        OSError: it cannot be read.
    """
    item = files.open_to_rewrite(path)
    if item.note.lines.damaged:
        raise Permanent(f"{item.shown}: {DAMAGED}.", problem=ProblemCode.CORRUPT)
    return item


def _leave(jobs: Sequence[Job], problem: ProblemCode, sentence: str) -> Iterator[NotRemoved]:
    everyone: dict[int, Match] = {id(removal.match): removal.match for removal, _ in jobs}
    for match in everyone.values():
        yield NotRemoved(match, problem, sentence)


def write_back(files: TextFiles[N], item: Opened[N], data: bytes | None) -> None:
    """Give a file what is left of it; ``None``: nothing is.

    Raises:
        Changed, Held: it was left alone.
        OSError: it cannot be written.
    """
    before = item.note.lines.joined(item.note.lines.lines)
    if data is None and not files.is_named(item.path):
        files.take_away(item)
    elif (data or b"") != before:
        # A file that the manifest names stays, empty: a site without its file is a fault.
        files.replace(item, data or b"")


def strike_in(
    files: TextFiles[N],
    markers: Sequence[Strike],
    strike: Callable[[Opened[N], Sequence[Strike]], Iterator[NotChecked]],
) -> Iterator[NotChecked]:
    """Yield what ``strike`` of an adapter of text files yields; each file is rewritten once.

    Args:
        files: the files of the site.
        markers: what has to be struck; the handle of each has ``file``, ``record``, ``ordinal``.
        strike: writes one file with some of its markers struck; yields what it left.

    Raises:
        Permanent: a handle is none of this adapter's.
        Transient: the system is short of something; trying again may help.
    """
    by_file: dict[str, list[Strike]] = {}
    for marker, replacement in markers:
        if not {"file", "record", "ordinal"} <= marker.handle.keys():
            raise Permanent(
                "A marker was read by another adapter or version; read it again.",
                problem=ProblemCode.UNSUPPORTED,
            )
        by_file.setdefault(str(marker.handle["file"]), []).append((marker, replacement))
    for file, jobs in by_file.items():
        try:
            path = files.find(file)
            if path is None:
                why = "its file is not there any more"
                yield from _unstruck(jobs, why, ProblemCode.UNREACHABLE)
            else:
                yield from strike(_sound(files, path), jobs)
        except Changed:
            yield from _unstruck(jobs, NOT_STRUCK, ProblemCode.CHANGED_UNDERNEATH)
        except StoreError as error:
            yield from _unstruck(jobs, f"it was not struck: {error}", error.problem)
        except OSError as error:
            problem = os_problem(error, file)
            if isinstance(problem, Transient):
                raise problem from None
            yield from _unstruck(jobs, str(problem), problem.problem)


def _unstruck(jobs: Sequence[Strike], why: str, problem: str) -> Iterator[NotChecked]:
    for marker, _ in jobs:
        yield NotChecked(marker.where, why, ProblemCode(problem))


def sweep_up(residue: Sequence[Residue]) -> Iterator[NotChecked]:
    """Remove what an interrupted rewrite left beside files; yield what cannot be."""
    for folder in dict.fromkeys(Path(str(left.handle["file"])).parent for left in residue):
        try:
            sweep(folder)
        except OSError as error:
            problem = os_problem(error)
            yield NotChecked("a file left over", str(problem), ProblemCode(problem.problem))
