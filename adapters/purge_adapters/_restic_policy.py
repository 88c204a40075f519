"""What ``restic forget`` keeps: its rules, as the installed version applies them. Pure.

Written from what the program does (0.14.0 and 0.18.0; tests compare with ``forget --dry-run``).
Rules are applied to a group from the newest snapshot to the oldest. Since 0.16 a rule that still
has snapshots to give also keeps the oldest one, and -1 keeps all.
A version between the two may drop a snapshot sooner than is said here, never later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from purge_adapters._restic_repository import Taken
from purge_adapters._restic_schedule import Duration, parse_duration
from purge_adapters._restic_settings import Keep, ResticSettings

__all__ = ["Group", "Rules", "group_key", "in_filter", "kept"]

KEEPS_OLDEST: Final = (0, 16)
REFUSES_TO_DROP_ALL: Final = (0, 17)
Group = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Host, paths, tags, as far as they are grouped by."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Keep rules, ready to be applied."""

    counts: tuple[int, ...]
    """last, hourly, daily, weekly, monthly, yearly."""
    within: tuple[Duration | None, ...]
    """all, hourly, daily, weekly, monthly, yearly."""
    tags: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, keep: Keep) -> Rules:
        """Return the rules of a manifest."""
        return cls(
            (keep.last, keep.hourly, keep.daily, keep.weekly, keep.monthly, keep.yearly),
            tuple(parse_duration(text) if text else None for text in keep.lengths()),
            tuple(frozenset(one.split(",")) for one in keep.tags),
        )

    @property
    def empty(self) -> bool:
        """Whether nothing is said; restic keeps everything then."""
        return not (any(self.counts) or any(self.within) or self.tags)


def group_key(snapshot: Taken, group_by: str) -> Group:
    """Return the group in which ``forget`` puts a snapshot."""
    by = {part.strip().rstrip("s") for part in group_by.split(",")}
    return (
        snapshot.host if "host" in by else "",
        tuple(sorted(snapshot.paths)) if "path" in by else (),
        tuple(sorted(snapshot.tags)) if "tag" in by else (),
    )


def in_filter(snapshot: Taken, settings: ResticSettings) -> bool:
    """Whether the scheduled ``forget`` sees a snapshot at all."""
    if settings.hosts and snapshot.host not in settings.hosts:
        return False
    wanted = [set(filter(None, one.split(","))) for one in settings.tags]
    return not wanted or any(
        tags <= set(snapshot.tags) if tags else not snapshot.tags for tags in wanted
    )


_BUCKETS: Final[tuple[Callable[[datetime, int], object], ...]] = (
    lambda _, number: number,
    lambda time, _: (time.year, time.month, time.day, time.hour),
    lambda time, _: (time.year, time.month, time.day),
    lambda time, _: time.isocalendar()[:2],
    lambda time, _: (time.year, time.month),
    lambda time, _: time.year,
)


def kept(
    group: Iterable[Taken], rules: Rules, version: tuple[int, int], now: datetime
) -> frozenset[str]:
    """Return the ids of the snapshots of one group that a run of ``forget`` at ``now`` keeps."""
    snapshots = sorted(group, key=lambda one: one.time, reverse=True)
    if rules.empty or not snapshots:
        return frozenset(one.id for one in snapshots)
    newer = version >= KEEPS_OLDEST
    left = list(rules.counts)
    last: list[object] = [None] * len(_BUCKETS)
    last_within: list[object] = [None] * len(_BUCKETS)
    latest = max((one.time for one in snapshots if one.time < now), default=None)
    edges = [_before(latest, length) if length and latest else None for length in rules.within]
    keeping: set[str] = set()
    for number, one in enumerate(snapshots):
        keep = any(tags <= set(one.tags) for tags in rules.tags)
        for rule, bucket in enumerate(_BUCKETS):
            value = bucket(one.time, number)
            oldest = newer and number == len(snapshots) - 1
            counts = left[rule] > 0 or (newer and left[rule] == -1)
            if counts and (value != last[rule] or oldest):
                keep = True
                last[rule] = value
                left[rule] -= left[rule] > 0
            edge = edges[rule]
            if edge is not None and one.time > edge and (value != last_within[rule] or oldest):
                keep = True
                last_within[rule] = value
        if keep:
            keeping.add(one.id)
    if not keeping and version >= REFUSES_TO_DROP_ALL:
        return frozenset(one.id for one in snapshots)
    return frozenset(keeping)


def _before(latest: datetime, length: Duration) -> datetime:
    """Return ``latest`` less a length of time, as Go's ``AddDate`` reckons: 31 March less a month
    is 31 February, which is 3 March."""
    months = latest.year * 12 + latest.month - 1 - length.years * 12 - length.months
    first = latest.replace(year=max(months // 12, 1), month=months % 12 + 1, day=1)
    return first + timedelta(days=latest.day - 1 - length.days, hours=-length.hours)


def in_groups(snapshots: Sequence[Taken], group_by: str) -> Mapping[Group, list[Taken]]:
    """Return snapshots by their groups, each the oldest first."""
    groups: dict[Group, list[Taken]] = {}
    for one in snapshots:
        groups.setdefault(group_key(one, group_by), []).append(one)
    return groups
