"""Pieces of data that no snapshot needs any more, and that prune has not taken yet.

``forget`` only takes names away: ``cat blob`` still prints the data until a prune repacks it, and
by default prune leaves up to 5 % (measured with 0.14.0 and 0.18.0). A piece has no name and may be
a part of a file, so it is searched as bytes; what such a search cannot judge is said. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from purge.adapter import Examined, NotChecked, Observation, ProblemCode, Residue, Site
from purge.targets import NeedleKind, TargetKind, Targets
from purge_adapters._bytes import written_forms
from purge_adapters._restic_dates import Calendar
from purge_adapters._restic_look import Seen, digest, remember, remembered
from purge_adapters._restic_repository import Repository
from purge_adapters._restic_settings import Policy, ResticSettings
from purge_adapters._restic_units import Holdings

__all__ = ["look_at_unneeded"]

MOST_LISTED: Final = 200_000
"""Of how many pieces it is found out which are needed."""
MOST_READ: Final = 400
"""How many pieces are read."""
SMALLEST_PART: Final = 512 * 1024
"""restic cuts no file into pieces below this (its smallest chunk), so a smaller piece is a whole
file or the end of one."""
NEEDLE_BYTES: Final = 8


def look_at_unneeded(
    repository: Repository,
    site: Site,
    settings: ResticSettings,
    targets: Targets,
    calendar: Calendar,
    holdings: Holdings,
) -> Iterator[Observation]:
    """Yield what pieces that no snapshot needs hold, or may hold.

    Raises:
        Transient, Permanent: the repository cannot be read.
    """
    trees, data = repository.listed_blobs()
    needed = repository.needed_count()
    stored = len(trees) + len(data)
    if stored == needed:
        yield Examined(note="no data is stored that no snapshot needs")
        return
    if stored < needed:
        yield NotChecked(
            "the repository",
            "its index lacks data that snapshots need; run 'restic check'",
            ProblemCode.CORRUPT,
        )
        return
    in_use = {
        id for held in holdings.held_by.values() for f in held[-1][1].files for id in f.content
    }
    unsure = sorted(data - in_use)
    if len(unsure) > MOST_LISTED:
        yield from _maybe(
            settings, calendar, f"{stored - needed} pieces of data", "there are too many to look at"
        )
        return
    loose = sorted(data - in_use - repository.needed(unsure))
    yield from _look(repository, site, settings, targets, calendar, loose)


def _look(
    repository: Repository,
    site: Site,
    settings: ResticSettings,
    targets: Targets,
    calendar: Calendar,
    loose: Sequence[str],
) -> Iterator[Observation]:
    needles = _Needles(site, targets)
    seen_for = digest(targets, site.covers)
    keys: set[int] = set()
    holding = unclear = size = 0
    known = {id: remembered(seen_for, f"piece {id}") for id in loose}
    unread = [id for id in loose if known[id] is None]
    for id, content in repository.blobs(unread[:MOST_READ]):
        if content is None:
            known[id] = Seen()  # A prune took it meanwhile.
            continue
        size += len(content)
        found = needles.keys_in(content)
        gaps = () if found or _is_whole_text(content) else (_UNCLEAR,)
        known[id] = remember(seen_for, f"piece {id}", Seen(frozenset(found), gaps=gaps))
    for seen in known.values():
        if seen is None or (seen.gaps and not seen.holds):
            unclear += 1
        elif seen.holds:
            holding += 1
            keys |= seen.keys
    yield Examined(bytes=size, note=f"{len(loose)} pieces of data that no snapshot needs")
    if holding:
        until = calendar.pruned(calendar.now)
        yield Residue(
            f"{_pieces(holding)} that no snapshot needs",
            until.why if until.date is None else f"kept {until.why}",
            until=until.date,
            fixable=settings.policy is Policy.REWRITE,
            keys=frozenset(keys),
            handle={"prune": True},
        )
    if unclear:
        yield from _maybe(
            settings, calendar, _pieces(unclear), "parts of files cannot be judged one by one"
        )


_UNCLEAR: Final = NotChecked("a piece of data", "cannot be judged alone")


def _maybe(
    settings: ResticSettings, calendar: Calendar, what: str, why: str
) -> Iterator[Observation]:
    """Say that something may be held; until the next prune, where that will take it."""
    where = f"{what} that no snapshot needs"
    until = calendar.pruned(calendar.now)
    fixable = settings.policy is Policy.REWRITE
    if until.date is not None or fixable:
        yield Residue(
            where,
            f"may hold it ({why}), {until.why}",
            until=until.date,
            fixable=fixable,
            handle={"prune": True},
        )
    else:
        yield NotChecked(where, f"{why}; 'restic prune --max-unused 0' takes them")


def _pieces(number: int) -> str:
    return "1 piece of data" if number == 1 else f"{number} pieces of data"


def _is_whole_text(content: bytes) -> bool:
    """Whether a search of these bytes alone says what they hold."""
    if len(content) >= SMALLEST_PART or b"\0" in content:
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Needles:
    """What is looked for in bytes of which it is not known what they are part of."""

    def __init__(self, site: Site, targets: Targets) -> None:
        self._targets = targets
        self._keys: dict[bytes, set[int]] = {}
        for target in targets:
            if target.kind in (TargetKind.ID, TargetKind.SUBJECT):
                self._add(target.value, {target.key})
        for name in site.covers:
            for trace in targets.traces(name):
                keys = set(targets.keys_of(name, trace.id))
                for kind in (NeedleKind.ID, NeedleKind.TEXT):
                    for piece in trace.needles(kind):
                        self._add(piece, keys)

    def _add(self, text: str, keys: set[int]) -> None:
        for form in written_forms(text):
            if len(form) >= NEEDLE_BYTES:
                self._keys.setdefault(form, set()).update(keys)

    def keys_in(self, content: bytes) -> set[int]:
        """Return the targets of which something stands in ``content``."""
        found = set(self._targets.keys_mentioned_in(content))
        for form, keys in self._keys.items():
            if form in content:
                found |= keys
        return found
