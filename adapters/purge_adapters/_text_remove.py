"""Rewriting the files in which records have to go, each once, and saying what was left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from purge.adapter import Match, NotRemoved, ProblemCode, Removal
from purge.errors import StoreError
from purge_adapters._files import Changed, os_problem
from purge_adapters._match_places import places_of
from purge_adapters._text_files import Opened, TextFiles

__all__ = ["CHANGED", "Job", "remove_in"]

N = TypeVar("N")
CHANGED = "The record changed since it was found; it was left as it is."
Job = tuple[Removal, Mapping[str, object]]
"""A record that has to go, and one of its places."""


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
        yield from rewrite(files.open_to_rewrite(path), jobs)
    except Changed:
        yield from _leave(jobs, ProblemCode.CHANGED_UNDERNEATH, CHANGED)
    except StoreError as error:
        yield from _leave(jobs, ProblemCode(error.problem), str(error))
    except OSError as error:
        problem = os_problem(error, file)
        yield from _leave(jobs, ProblemCode(problem.problem), str(problem))


def _leave(jobs: Sequence[Job], problem: ProblemCode, sentence: str) -> Iterator[NotRemoved]:
    everyone: dict[int, Match] = {id(removal.match): removal.match for removal, _ in jobs}
    for match in everyone.values():
        yield NotRemoved(match, problem, sentence)
