"""What the manifest says of a restic repository. Plain values; nothing is run here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from purge_adapters._restic_schedule import parse_duration, parse_times


class Policy(StrEnum):
    """What becomes of copies in snapshots."""

    WAIT = "wait"
    REWRITE = "rewrite"


def _described(sentence: str) -> dict[str, str]:
    return {"description": sentence}


@dataclass(frozen=True, slots=True)
class Keep:
    """The keep rules of the scheduled ``restic forget``, by the names of its options.

    Whole numbers count snapshots or periods (-1: all of them); lengths of time are written as
    restic writes them (``1y6m3d12h``); ``tags`` are lists of tags joined by commas, as each
    ``--keep-tag`` takes one.
    """

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0
    within: str | None = None
    within_hourly: str | None = None
    within_daily: str | None = None
    within_weekly: str | None = None
    within_monthly: str | None = None
    within_yearly: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for count in (self.last, self.hourly, self.daily, self.weekly, self.monthly, self.yearly):
            if count < -1:
                raise ValueError("a number of snapshots to keep is -1 (all) or more.")
        for length in self.lengths():
            if length is not None:
                parse_duration(length)

    def lengths(self) -> tuple[str | None, ...]:
        """Return the ``within`` rules: all, hourly, daily, weekly, monthly, yearly."""
        return (
            self.within,
            self.within_hourly,
            self.within_daily,
            self.within_weekly,
            self.within_monthly,
            self.within_yearly,
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the commands run by themselves, in the manifest's time zone.

    Each is ``"03:00"`` (every day), ``"sunday 04:00"``, ``"1 04:00"`` (a day of every month),
    ``hourly``, ``daily``, ``weekly`` or ``monthly``, or a list of these. Where the time is not
    said, the latest is meant. ``prune: forget`` says that forget runs with ``--prune``.
    """

    backup: str | tuple[str, ...] | None = None
    forget: str | tuple[str, ...] | None = None
    prune: str | tuple[str, ...] | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        for times in (self.backup, self.forget, self.prune):
            if times is not None and times != "forget":
                parse_times(times)
        if "forget" in (self.backup, self.forget):
            raise ValueError("'forget' is for prune only: say a time.")
        if self.timezone is not None:
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(self.timezone)
            except (ValueError, OSError) as error:
                raise ValueError("the time zone of the schedule is unknown.") from error


@dataclass(frozen=True, slots=True)
class ResticSettings:
    """The keys of a ``restic`` site in the manifest, besides the general ones."""

    repository: str = field(
        metadata=_described(
            "The repository as restic names it (a folder, sftp:…, rest:…, s3:…); a relative "
            "folder is relative to the manifest's root."
        )
    )
    password_file: str | None = field(
        default=None, metadata=_described("The file with the repository's password.")
    )
    password_command: str | None = field(
        default=None,
        metadata=_described(
            "The command that prints the password. Without either, RESTIC_PASSWORD, "
            "RESTIC_PASSWORD_FILE or RESTIC_PASSWORD_COMMAND of the environment is used."
        ),
    )
    policy: Policy = field(
        default=Policy.WAIT,
        metadata=_described(
            "'wait': nothing is removed from backups, and the report says when the last copy "
            "goes by itself. 'rewrite': the snapshots that hold the item are replaced by ones "
            "without it, and the repository is pruned."
        ),
    )
    keep: Keep | None = field(
        default=None,
        metadata=_described(
            "The keep rules of the scheduled forget: last, hourly, daily, weekly, monthly, "
            "yearly, within, within_hourly …, tags."
        ),
    )
    schedule: Schedule | None = field(
        default=None,
        metadata=_described(
            'When backup, forget and prune run by themselves: "03:00", "sunday 04:00", '
            "\"1 04:00\", hourly, daily, weekly, monthly, or a list; 'prune: forget' for "
            "forget --prune. 'timezone' where it is not the manifest's."
        ),
    )
    max_unused: str | int | None = field(
        default=None,
        metadata=_described(
            "The --max-unused of the scheduled prune. Only 0 makes sure that dropped data goes; "
            "restic's own default keeps up to 5 %."
        ),
    )
    group_by: str = field(
        default="host,paths",
        metadata=_described("The --group-by of the scheduled forget: host, paths, tags."),
    )
    hosts: tuple[str, ...] = field(
        default=(),
        metadata=_described("The --host options of the scheduled forget, if it has any."),
    )
    tags: tuple[str, ...] = field(
        default=(),
        metadata=_described(
            "The --tag options of the scheduled forget, if it has any; each may join several "
            "tags by commas. Snapshots that they leave out are never dropped."
        ),
    )
    program: str = field(
        default="restic", metadata=_described("The restic program: a name or a path.")
    )
    lock_timeout: float = field(
        default=60.0,
        metadata=_described(
            "How many seconds to wait for a lock of the repository that someone else holds."
        ),
    )
    cache_dir: str | None = field(
        default=None, metadata=_described("restic's cache folder, where it is not the usual one.")
    )

    def __post_init__(self) -> None:
        unknown = set(filter(None, self.group_by.split(","))) - {
            "host",
            "hosts",
            "path",
            "paths",
            "tag",
            "tags",
        }
        if unknown:
            raise ValueError("group_by is made of host, paths and tags, joined by commas.")
        if not self.repository.strip():
            raise ValueError("the repository is empty.")
