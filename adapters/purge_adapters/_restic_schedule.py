"""When scheduled commands run: the little language of ``schedule``, and its occurrences. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_DURATION: Final = re.compile(r"(?:(\d+)y)?(?:(\d+)m)?(?:(\d+)d)?(?:(\d+)h)?")
_LATEST: Final = time(23, 59, 59)
_HELP: Final = (
    'a schedule says "03:00", "sunday 04:00", "1 04:00" (a day of the month), hourly, daily, '
    "weekly or monthly."
)


@dataclass(frozen=True, slots=True)
class Times:
    """One kind of moments that come again.

    Args:
        at: the time of day; ``None``: every hour.
        weekday: 0 for Monday; ``None``: any day.
        day: the day of the month; the last one in shorter months.
        slack: how much later it may be, where the day was not said.
    """

    at: time | None
    weekday: int | None = None
    day: int | None = None
    slack: timedelta = timedelta(0)

    def on(self, day: date) -> bool:
        """Whether one of them is on this day."""
        if self.weekday is not None:
            return day.weekday() == self.weekday
        if self.day is not None:
            return day.day == min(self.day, calendar.monthrange(day.year, day.month)[1])
        return True


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time as restic counts it: years and months by the calendar."""

    years: int = 0
    months: int = 0
    days: int = 0
    hours: int = 0


def parse_duration(text: str) -> Duration:
    """Return what restic's ``1y6m3d12h`` means.

    Raises:
        ValueError: it is no such length.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found or not any(found.groups()):
        raise ValueError("a length of time is written as restic does: 1y6m3d12h.")
    years, months, days, hours = (int(part or 0) for part in found.groups())
    return Duration(years, months, days, hours)


def parse_times(text: str | tuple[str, ...]) -> tuple[Times, ...]:
    """Return the moments that a ``schedule`` names.

    Raises:
        ValueError: it names none.
    """
    if isinstance(text, tuple):
        return tuple(moment for one in text for moment in parse_times(one))
    words = text.strip().lower().split()
    if words == ["hourly"]:
        return (Times(None),)
    if words == ["daily"]:
        return (Times(_LATEST),)
    if words == ["weekly"]:
        # Programs disagree on the day, so any may be meant.
        return (Times(_LATEST, weekday=6, slack=timedelta(days=7)),)
    if words == ["monthly"]:
        return (Times(_LATEST, day=31, slack=timedelta(days=31)),)
    at = _LATEST
    if words and (clock := _CLOCK.fullmatch(words[-1])):
        hour, minute, second = (int(part or 0) for part in clock.groups())
        at = time(hour, minute, second)
        words = words[:-1]
        if not words or words == ["daily"]:
            return (Times(at),)
    if len(words) == 2 and words[0] in ("weekly", "monthly"):
        words = words[1:]
    if len(words) != 1:
        raise ValueError(_HELP)
    named = [number for number, name in enumerate(_DAYS) if name.startswith(words[0])]
    if len(words[0]) >= 3 and len(named) == 1:
        return (Times(at, weekday=named[0]),)
    if words[0].isdecimal() and 1 <= int(words[0]) <= 31:
        return (Times(at, day=int(words[0])),)
    raise ValueError(_HELP)


def occurrences(times: tuple[Times, ...], after: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield the moments after ``after``, the first one first, without end."""
    day = after.astimezone(zone).date() - timedelta(days=1)
    before = after
    while True:
        found: set[datetime] = set()
        for one in times:
            if not one.on(day):
                continue
            clocks = [one.at] if one.at is not None else [time(hour) for hour in range(24)]
            found.update(datetime.combine(day, clock, zone) for clock in clocks)
        for moment in sorted(found, key=lambda moment: moment.timestamp()):
            if moment.timestamp() > before.timestamp():
                before = moment
                yield moment
        day += timedelta(days=1)


def next_after(times: tuple[Times, ...], after: datetime, zone: tzinfo) -> datetime:
    """Return by when one of the moments after ``after`` has surely come."""
    first = next(occurrences(times, after, zone))
    exact = [one for one in times if not one.slack]
    if exact:
        return next(occurrences(tuple(exact), after, zone))
    return first if first - after >= times[0].slack else after + times[0].slack
