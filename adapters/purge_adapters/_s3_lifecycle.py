"""When the rules of a bucket will remove a copy, as far as they say.

S3 applies rules once a day, counts in whole days rounded up to the next midnight UTC, and removes
some time after that: a date is "not before" (Amazon S3 user guide, "Setting lifecycle
configuration"). This module does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["Aged", "Rules", "ceiling"]


def ceiling(moment: datetime) -> datetime:
    """Return the next midnight UTC that is not before a moment."""
    moment = moment.astimezone(UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if midnight == moment else midnight + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Aged:
    """An old version, as rules see it.

    Args:
        key: of the object.
        size: in bytes.
        tags: of the version.
        since: when a newer version or a delete marker took its place.
        newer: how many newer versions of it are noncurrent too.
    """

    key: str = field(repr=False)
    size: int
    tags: Mapping[str, str] = field(repr=False)
    since: datetime
    newer: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """The lifecycle rules of a bucket that are in force."""

    all: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, configuration: Mapping[str, Any] | None) -> Rules:
        """Take the rules that are enabled."""
        rules = (configuration or {}).get("Rules", ())
        return cls(tuple(rule for rule in rules if rule.get("Status") == "Enabled"))

    @property
    def ask_for_tags(self) -> bool:
        """Whether a rule depends on the tags of an object."""
        return any(_Filter.of(rule).tags for rule in self.all)

    def version_until(self, aged: Aged, now: datetime) -> datetime | None:
        """Return when an old version goes, not before; ``None`` where no rule removes it."""
        return _earliest(self._version_dates(aged), now)

    def _version_dates(self, aged: Aged) -> Iterator[datetime]:
        for rule in self.all:
            expiration = rule.get("NoncurrentVersionExpiration")
            if not expiration or not _Filter.of(rule).takes(aged.key, aged.size, aged.tags):
                continue
            # As long as fewer newer ones are there, this one is kept, however old it is.
            if aged.newer < int(expiration.get("NewerNoncurrentVersions") or 0):
                continue
            days = int(expiration.get("NoncurrentDays") or 0)
            yield ceiling(aged.since + timedelta(days=days))

    def upload_until(self, key: str, begun: datetime, now: datetime) -> datetime | None:
        """Return when an unfinished upload is given up, not before."""
        return _earliest(self._upload_dates(key, begun), now)

    def _upload_dates(self, key: str, begun: datetime) -> Iterator[datetime]:
        for rule in self.all:
            days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
            if days and key.startswith(_Filter.of(rule).prefix):
                yield ceiling(begun + timedelta(days=int(days)))


def _earliest(dates: Iterator[datetime], now: datetime) -> datetime | None:
    """Return the first date; one that is past and was not kept can only be the next midnight."""
    first = min(dates, default=None)
    if first is None:
        return None
    return first if first > now else ceiling(now + timedelta(microseconds=1))


@dataclass(frozen=True, slots=True)
class _Filter:
    """Which objects a rule takes."""

    prefix: str
    tags: Sequence[Mapping[str, str]]
    above: int | None
    below: int | None

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> _Filter:
        given = rule.get("Filter") or {}
        both = given.get("And") or {}
        tags = [*both.get("Tags", ())]
        if given.get("Tag"):
            tags.append(given["Tag"])
        return cls(
            # A rule of the older form has the prefix beside the filter.
            both.get("Prefix") or given.get("Prefix") or rule.get("Prefix") or "",
            tags,
            both.get("ObjectSizeGreaterThan", given.get("ObjectSizeGreaterThan")),
            both.get("ObjectSizeLessThan", given.get("ObjectSizeLessThan")),
        )

    def takes(self, key: str, size: int, tags: Mapping[str, str]) -> bool:
        return (
            key.startswith(self.prefix)
            and all(tags.get(tag["Key"]) == tag["Value"] for tag in self.tags)
            and (self.above is None or size > self.above)
            and (self.below is None or size < self.below)
        )
