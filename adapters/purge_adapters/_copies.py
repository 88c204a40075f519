"""Looking into a copy of a site with the site's own adapter, for adapters of backups.

Reads only. What is kept of a look holds no text and no id of a record.
"""

from __future__ import annotations

from dataclasses import dataclass

from purge.adapter import (
    Control,
    ControlKind,
    Covered,
    Match,
    NotChecked,
    ProblemCode,
    Readability,
    Residue,
    Site,
)
from purge.errors import PurgeError
from purge.targets import Targets, Trace

__all__ = ["Seen", "keys_in_copy", "look_into_copy"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look into a unit saw. Holds no text and no id of a record.

    Args:
        keys: the targets that it holds.
        everything: it holds something that cannot be told apart.
        gaps: what could not be looked at, and why.
        controls: by kind of needle, whether the look could see a live value.
    """

    keys: frozenset[int] = frozenset()
    everything: bool = False
    gaps: tuple[NotChecked, ...] = ()
    controls: tuple[tuple[ControlKind, bool], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether something that is looked for is there."""
        return bool(self.keys) or self.everything


def keys_in_copy(site: str, targets: Targets, match: Match) -> frozenset[int]:
    """Return the targets for which a record in a copy of a site has to go; none: it stays."""
    if match.readability is Readability.BLANKED:
        return frozenset()
    return targets.counting(
        site,
        match.hits,
        id=match.id,
        part=match.part,
        texts=match.trace.texts,
        carries_marker=match.carries_marker,
    )


def look_into_copy(covered: Covered, site: Site, targets: Targets) -> Seen:
    """Return what a copy of a site holds, as the site's own adapter sees it.

    Args:
        covered: the site.
        site: the site as it is in the copy (:meth:`purge.adapter.Site.copied_to`).
        targets: what is looked for.
    """
    keys: set[int] = set()
    everything = False
    gaps: list[NotChecked] = []
    controls: dict[ControlKind, bool] = {}
    there: dict[str, Trace] = {}
    try:
        with covered.open(site) as adapter:
            for item in adapter.find(targets):
                if isinstance(item, Match):
                    counting = keys_in_copy(site.name, targets, item)
                    if counting:
                        keys |= counting
                        there[item.id] = item.trace
                elif isinstance(item, NotChecked):
                    gaps.append(item)
        with covered.open(site) as adapter:
            for seen in adapter.residue(_as_there(targets, site.name, there)):
                if isinstance(seen, Residue):
                    keys.update(seen.keys)
                    everything = everything or not seen.keys
                elif isinstance(seen, NotChecked):
                    gaps.append(seen)
                elif isinstance(seen, Control):
                    controls[seen.kind] = controls.get(seen.kind, True) and seen.passed
    except PurgeError as error:
        code = getattr(error, "problem", ProblemCode.NOT_CHECKED)
        gaps.append(NotChecked("a copy", str(error), ProblemCode(code)))
    found = dict.fromkeys(gap.problem for gap in gaps)
    where = f"snapshots of {covered.site.name}"
    told = [
        NotChecked(where, next(gap.why for gap in gaps if gap.problem is code), code)
        for code in found
    ]
    return Seen(frozenset(keys), everything, tuple(told), tuple(controls.items()))


def _as_there(targets: Targets, site: str, there: dict[str, Trace]) -> Targets:
    """Return the targets with the records that the copy has as they are in the copy.

    A record may have been edited since, and Chroma gives a vector back in other last digits once
    its index was written: what the copy could show is what the copy has.
    """
    traces = {trace.id: trace for trace in targets.traces(site)} | there
    return Targets(targets, {site: tuple(traces.values())}, {site: targets.spared(site)})
