"""What the looks at files of JSON records and around them have in common, whatever a record is.

Only :func:`take_abandoned` changes anything: it removes what an interrupted replacement left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from purge.adapter import Control, NotChecked, ProblemCode, Residue, Site
from purge.targets import NeedleKind, Targets
from purge_adapters._bytes import written_forms
from purge_adapters._files import OWN_PREFIX, is_abandoned, os_problem, relative
from purge_adapters._jsonl_record import is_content_name
from purge_adapters._owners import Owners

__all__ = [
    "KINDS",
    "NEIGHBOURS",
    "SNIFFED",
    "Trials",
    "needles_in_bytes",
    "phrases_in_bytes",
    "shared_files",
    "take_abandoned",
]

KINDS: Final = (NeedleKind.ID, NeedleKind.TEXT, NeedleKind.METADATA)
SNIFFED: Final = 8000
"""As git does, content with a zero byte this near its beginning is taken to be no text."""
NEIGHBOURS: Final = 8
"""On how many live records of each file the look is tried."""


class Trials:
    """How often a look was tried on each kind of needle, and whether it saw every time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[NeedleKind, bool], list[bool]] = {}

    def note(self, kind: NeedleKind, seen: bool, *, on_target: bool) -> None:
        """Note one try, on a live record that has to go or on a neighbour."""
        self._seen.setdefault((kind, on_target), []).append(seen)

    def controls(self, *, whole: bool) -> Iterator[Control]:
        """Yield whether the look could see what it is for.

        Args:
            whole: every byte that has to be looked at was looked at.
        """
        for kind in KINDS:
            for on_target in (True, False):
                if seen := self._seen.get((kind, on_target)):
                    yield Control(kind, all(seen), on_target=on_target)
                    break
        yield Control(None, whole, on_target=False)


def phrases_in_bytes(targets: Targets) -> Owners[bytes]:
    """Return the bytes in which phrases may stand where nothing tells records apart."""
    found: Owners[bytes] = Owners()
    for target in targets.unscoped_words():
        found.add(written_forms(target.value), frozenset({target.key}))
    return found


def needles_in_bytes(site: str, targets: Targets) -> Owners[bytes]:
    """Return the bytes in which the records that have to go may stand anywhere."""
    found: Owners[bytes] = Owners()
    for trace in targets.traces(site):
        keys = targets.keys_of(site, trace.id)
        ids = () if is_content_name(trace.id) else trace.needles(NeedleKind.ID)
        for needle in (*ids, *trace.needles(NeedleKind.TEXT)):
            found.add(written_forms(needle), keys)
    return found


def take_abandoned(site: Site, residue: Iterable[Residue]) -> Iterator[NotChecked]:
    """Remove what interrupted replacements left; yield what cannot be removed."""
    for item in residue:
        path = site.path(str(item.handle.get("file", "")))
        if not is_abandoned(path):
            yield NotChecked(item.where, "another run may be using it", ProblemCode.HELD_OPEN)
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            problem = os_problem(error, item.where)
            yield NotChecked(item.where, str(problem), ProblemCode(problem.problem))


def shared_files(files: Sequence[Path], site: Site) -> Iterator[NotChecked]:
    """Yield the files that have further names (hard links) which the site does not cover.

    Such a file must not be rewritten: its other names would keep the old content, and no later
    look could tell.
    """
    names: dict[tuple[int, int], list[tuple[Path, int]]] = {}
    own: set[Path] = set()
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        if status.st_nlink > 1:
            key = (status.st_dev, status.st_ino)
            names.setdefault(key, []).append((path, status.st_nlink))
            own.update(path.parent.glob(f"{OWN_PREFIX}*"))
    # A replacement that was interrupted leaves a second name too; it is removed by the next one.
    inodes: Counter[tuple[int, int]] = Counter()
    for path in own:
        with suppress(FileNotFoundError):
            inodes[path.lstat().st_dev, path.lstat().st_ino] += 1
    for key, same in names.items():
        for path, count in same:
            more = count - len(same) - inodes[key]
            if more > 0:
                yield NotChecked(
                    relative(path, site),
                    f"it has {more} more names (hard links) that the site does not cover; what "
                    "they keep was not looked at",
                    ProblemCode.UNSUPPORTED,
                )
