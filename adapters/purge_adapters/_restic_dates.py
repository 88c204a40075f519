"""Until when snapshots last: the real ones, and those to come, under the rules of the manifest.

Simulates the scheduled backups of each group and every run of ``forget``, until the snapshots in
question have been dropped, and takes the prune after that. Where something does not hold (no
schedule, a group that no longer receives snapshots, a prune that keeps unused data), there is no
date, and a reason. Pure, apart from the clock that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfo

from purge.adapter import Site
from purge_adapters._restic_policy import Rules, in_filter, in_groups, kept
from purge_adapters._restic_repository import Taken
from purge_adapters._restic_schedule import Times, next_after, occurrences, parse_times
from purge_adapters._restic_settings import ResticSettings, Schedule

__all__ = ["Calendar", "Until"]

MISSED: Final = 3
"""After so many scheduled backups that did not come, a group counts as ended."""
LONGEST_YEARS: Final = 60
_YEAR: Final = timedelta(days=366)
_PERIODS: Final = (
    timedelta(0),
    timedelta(hours=1),
    timedelta(days=1),
    timedelta(days=7),
    timedelta(days=31),
    timedelta(days=366),
)


@dataclass(frozen=True, slots=True)
class Until:
    """When something goes: a date, or why there is none."""

    date: datetime | None
    why: str


class Calendar:
    """What the schedule and the rules of a site mean for its snapshots.

    Args:
        site, settings: say the rules.
        snapshots: all that the repository has.
        version: of restic, since 0.14 and later ones differ.
        now: the time.
    """

    def __init__(
        self,
        site: Site,
        settings: ResticSettings,
        snapshots: Sequence[Taken],
        version: tuple[int, int],
        now: datetime,
    ) -> None:
        self.settings = settings
        self.snapshots = snapshots
        self.version = version
        self.now = now
        self.schedule = settings.schedule or Schedule()
        named = self.schedule.timezone
        self.zone: tzinfo = ZoneInfo(named) if named else site.timezone
        self.rules = Rules.of(settings.keep) if settings.keep else None

    @cached_property
    def prune_keeps(self) -> str | None:
        """Why no scheduled prune is sure to take unused data; ``None``: one is."""
        if self.schedule.prune is None:
            return "the manifest states no schedule for prune, so nothing takes its data"
        amount = str(self.settings.max_unused).strip().lower()
        if self.settings.max_unused is None:
            return (
                "prune keeps unused data up to its limit (restic's default is 5 %), so it may "
                "stay for ever; run it with --max-unused 0 and say 'max_unused: 0'"
            )
        if amount.rstrip("%bkmgti") not in ("0", "0.0"):
            return f"prune keeps unused data up to its limit ({amount}), so it may stay for ever"
        return None

    def pruned(self, dropped: datetime) -> Until:
        """Return when data that no snapshot needs since ``dropped`` goes."""
        if self.prune_keeps is not None:
            return Until(None, self.prune_keeps)
        assert self.schedule.prune is not None
        if self.schedule.prune == "forget":
            if self.schedule.forget is None:
                return Until(None, "the manifest states no schedule for forget")
            times = parse_times(self.schedule.forget)
            if any(not one.slack for one in times) and dropped in set(
                _up_to(occurrences(times, dropped - timedelta(seconds=1), self.zone), dropped)
            ):
                return Until(dropped, "until the next forget --prune")
            return Until(next_after(times, dropped, self.zone), "until the next forget --prune")
        times = parse_times(self.schedule.prune)
        return Until(next_after(times, dropped, self.zone), "until the next prune")

    def until(self, ids: Iterable[str]) -> Until:
        """Return when the last of some snapshots is dropped and its data is pruned."""
        wanted = frozenset(ids)
        why = self._no_date()
        if why is not None:
            return Until(None, why)
        unseen = [s for s in self.snapshots if s.id in wanted and not in_filter(s, self.settings)]
        if unseen:
            return Until(
                None,
                f"the scheduled forget leaves out {_count(len(unseen))} (its hosts or tags)",
            )
        dates: list[datetime] = []
        seen = [one for one in self.snapshots if in_filter(one, self.settings)]
        for group in in_groups(seen, self.settings.group_by).values():
            held = {one.id for one in group} & wanted
            if held:
                found = self._group_until(group, held)
                if found.date is None:
                    return found
                dates.append(found.date)
        return Until(max(dates), "until the keep rules drop the last of them and prune has run")

    def _no_date(self) -> str | None:
        if self.rules is None or self.rules.empty:
            return "the manifest states no keep rules, so nothing drops them"
        for name, times in (("backup", self.schedule.backup), ("forget", self.schedule.forget)):
            if times is None:
                return f"the manifest states no schedule for {name}, so nothing drops them for sure"
        return self.prune_keeps

    def _group_until(self, group: Sequence[Taken], held: set[str]) -> Until:
        why = self.ended(group)
        if why is not None:
            return Until(None, why)
        assert self.schedule.forget is not None
        dates: list[datetime] = []
        for times in _variants(parse_times(self.schedule.forget)):
            dropped = self._dropped(group, held, times)
            if dropped is None:
                return Until(None, "the keep rules keep some of them for good")
            found = self.pruned(dropped)
            if found.date is None:
                return found
            dates.append(found.date)
        return Until(max(dates), "")

    def ended(self, group: Sequence[Taken]) -> str | None:
        """Why a group may receive no more snapshots, so that none of it is ever dropped."""
        newest = max(one.time for one in group)
        if len(group) < 2:
            return (
                "their group (host and paths) has a single snapshot, so it is not known whether "
                "more will come, without which none is dropped"
            )
        times = self._backups(newest)
        expected = occurrences(times, newest, self.zone)
        for _ in range(MISSED - 1):
            next(expected)
        if next(expected) < self.now:
            return (
                "their group (host and paths) no longer receives snapshots "
                f"(the newest is of {newest.astimezone(self.zone):%Y-%m-%d}), so nothing drops them"
            )
        return None

    def _backups(self, newest: datetime) -> tuple[Times, ...]:
        """The backups to come; where the schedule does not say the time, as the newest was."""
        assert self.schedule.backup is not None
        local = newest.astimezone(self.zone)
        written = self.schedule.backup
        words = (written,) if isinstance(written, str) else written
        made: list[Times] = []
        for word in words:
            for one in parse_times(word):
                plain = word.strip().lower()
                if plain == "daily":
                    made.append(replace(one, at=local.time()))
                elif plain == "weekly":
                    made.append(Times(local.time(), weekday=local.weekday()))
                elif plain == "monthly":
                    made.append(Times(local.time(), day=local.day))
                else:
                    made.append(one)
        return tuple(made)

    def _dropped(
        self, group: Sequence[Taken], held: set[str], forget: tuple[Times, ...]
    ) -> datetime | None:
        """Return when the last of ``held`` is dropped; ``None``: not within a lifetime."""
        assert self.rules is not None
        alive = list(group)
        newest = max(group, key=lambda one: one.time)
        coming = occurrences(self._backups(newest.time), max(newest.time, self.now), self.zone)
        backup = next(coming)
        end = self.now + self._horizon(newest.time)
        for run in occurrences(forget, self.now, self.zone):
            if run > end:
                return None
            while backup < run:
                alive.append(replace(newest, id=f"to come {backup}", time=backup))
                backup = next(coming)
            keeping = kept(alive, self.rules, self.version, run)
            alive = [one for one in alive if one.id in keeping]
            if not held & keeping:
                return run
        return None

    def _horizon(self, newest: datetime) -> timedelta:
        """How long it may take at most until the rules have dropped what they ever drop."""
        assert self.rules is not None
        coming = occurrences(self._backups(newest), newest, self.zone)
        first = next(coming)
        gap = max(next(coming) - first, first - newest)
        total = 3 * _YEAR
        for count, period in zip(self.rules.counts, _PERIODS, strict=True):
            total += max(count, 0) * max(period, gap)
        for length in self.rules.within:
            if length is not None:
                total += _YEAR * length.years + timedelta(
                    days=31 * length.months + length.days, hours=length.hours
                )
        return min(total, LONGEST_YEARS * _YEAR)

    def groups(self) -> Mapping[str, Sequence[Taken]]:
        """Return all snapshots by a name of their group for people."""
        found = in_groups(self.snapshots, self.settings.group_by)
        return {
            ", ".join(filter(None, (key[0], " ".join(key[1]), " ".join(key[2])))) or "all": group
            for key, group in found.items()
        }


def _variants(times: tuple[Times, ...]) -> Iterator[tuple[Times, ...]]:
    """Yield the schedules that may be meant where a day was not said; all of them count."""
    vague = [one for one in times if one.slack]
    exact = tuple(one for one in times if not one.slack)
    if not vague:
        yield exact
        return
    for one in vague:
        if one.weekday is not None:
            yield from ((*exact, Times(one.at, weekday=day)) for day in range(7))
        else:
            yield from ((*exact, Times(one.at, day=day)) for day in range(1, 32))


def _up_to(moments: Iterator[datetime], last: datetime) -> Iterator[datetime]:
    for moment in moments:
        if moment > last:
            return
        yield moment


def _count(number: int) -> str:
    return "1 snapshot" if number == 1 else f"{number} snapshots"
