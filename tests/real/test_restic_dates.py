"""The dates of ``policy: wait``, against what restic itself would drop, on both generations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from purge.adapter import Site
from purge.shapes import ShapeFault, validate
from purge_adapters._restic_dates import Calendar
from purge_adapters._restic_policy import Rules, in_groups, kept
from purge_adapters._restic_repository import Taken
from purge_adapters._restic_settings import Keep, ResticSettings
from tests.support.restic_repos import VERSIONS, Harbour

TOKYO = ZoneInfo("Asia/Tokyo")
NIGHTLY = {"backup": "03:00", "forget": "03:30", "prune": "forget"}
RULES: list[dict[str, Any]] = [
    {"last": 3},
    {"hourly": 3},
    {"daily": 4},
    {"weekly": 3},
    {"monthly": 4},
    {"yearly": 2},
    {"daily": 3, "weekly": 2, "monthly": 2, "yearly": 3},
    {"within": "1m3d"},
    {"within": "12h", "last": 1},
    {"within_daily": "10d", "within_weekly": "1y"},
    {"within_monthly": "2y", "within_yearly": "9y"},
    {"tags": ["keep,me"], "last": 1},
    {"tags": ["keep", "other"], "daily": 2},
]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restic")


@pytest.fixture(scope="module", params=VERSIONS)
def long_past(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, templates: Path
) -> Harbour:
    """Snapshots over years, of two hosts and changing paths, some tagged, some with offsets."""
    harbour = Harbour.make(request.param, tmp_path_factory.mktemp("past"), templates)
    for name in ("one", "two"):
        (harbour.root / name).write_text(name)
    one, two = str(harbour.root / "one"), str(harbour.root / "two")
    times = ["2021-12-31 23:00:00", "2022-02-28 01:00:00", "2023-01-01 12:00:00"]
    times += [f"2024-{month:02}-29 03:00:00" for month in (2, 3, 5, 8)]
    times += [f"2024-12-{day} 03:00:00" for day in (29, 30, 31)]
    times += ["2025-01-01 03:00:00", "2025-01-01 03:20:00", "2025-01-01 04:00:00"]
    for number, time in enumerate(times):
        tags = [["--tag", "keep", "--tag", "me"], ["--tag", "keep"], []][number % 3]
        # Beyond midnight in UTC, so that a day is another one where it was taken.
        zone = "Asia/Tokyo" if number % 4 == 1 else "UTC"
        harbour.backup(time, *tags, one, host="quay", zone=zone)
    for time in times[3:7]:
        harbour.backup(time, "--tag", "me", two, host="quay")
    for time in times[-2:]:
        harbour.backup(time, one, host="pier")
    return harbour


def real(harbour: Harbour) -> list[Taken]:
    from purge_adapters._restic_repository import Repository

    adapter = harbour.adapter()
    with Repository.open(adapter.site, adapter.settings) as repository:
        return list(repository.snapshots())


def options(keep: Mapping[str, Any]) -> list[str]:
    """Write rules as options of restic's."""
    words = []
    for name, value in keep.items():
        for one in value if name == "tags" else [value]:
            words += [f"--keep-{name.replace('_', '-').removesuffix('s')}", str(one)]
    return words


@pytest.mark.parametrize("keep", RULES, ids=str)
def test_rules_keep_what_forget_keeps(long_past: Harbour, keep: dict[str, Any]) -> None:
    group_by = "host,paths" if "tags" not in keep else "host"
    said = json.loads(
        long_past.run(
            *("forget", "--dry-run", "--json", "--no-lock"),
            *("--group-by", group_by, *options(keep)),
        ).splitlines()[0]
    )
    rules = Rules.of(validate(Keep, keep))
    version = (0, int(long_past.version.split(".")[1]))
    ours = {
        frozenset(kept(group, rules, version, datetime.now(UTC)))
        for group in in_groups(real(long_past), group_by).values()
    }
    assert ours == {frozenset(one["id"] for one in group["keep"] or ()) for group in said}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "keep",
    [
        {"daily": 3},
        pytest.param({"daily": 2, "weekly": 2}, marks=pytest.mark.long),
        {"within": "4d"},
    ],
    ids=str,
)
def test_the_date_is_when_restic_drops_and_prunes_it(
    version: str, keep: dict[str, Any], tmp_path: Path, templates: Path
) -> None:
    """Live through the nights that the date foresees: the item goes in that night, no sooner."""
    harbour = Harbour.make(version, tmp_path, templates)
    (harbour.root / "log").write_text("day 0")
    first = datetime(2025, 6, 1, 3, tzinfo=UTC)
    for number in range(2):
        harbour.backup(f"{first + timedelta(days=number):%Y-%m-%d %H:%M:%S}")
    held = [one.id for one in real(harbour)]
    harbour.clock = first + timedelta(days=1, hours=9)
    found = calendar(harbour, keep=keep).until(held)
    assert found.date is not None
    night = first + timedelta(days=1)
    while True:
        night += timedelta(days=1)
        assert night < first + timedelta(days=40)
        harbour.backup(f"{night:%Y-%m-%d %H:%M:%S}")
        harbour.run("forget", "-q", "--group-by", "host,paths", *options(keep))
        alive = {one.id for one in real(harbour)}
        if not alive & set(held):
            break
    assert found.date == night + timedelta(minutes=30)


def calendar(harbour: Harbour, **settings: Any) -> Calendar:
    raw = {"schedule": NIGHTLY, "max_unused": 0, **settings}
    adapter = harbour.adapter(**{key: value for key, value in raw.items() if value is not None})
    version = (0, int(harbour.version.split(".")[1]))
    return Calendar(adapter.site, adapter.settings, real(harbour), version, harbour.clock)


# From here on without restic: the sums alone.


def planned(
    nights: int = 5,
    *,
    version: tuple[int, int] = (0, 18),
    now: datetime = datetime(2025, 6, 20, 12, tzinfo=TOKYO),
    snapshots: list[Taken] | None = None,
    **settings: Any,
) -> Any:
    """Return until when the oldest of some nightly snapshots lasts."""
    raw = {
        "repository": "r",
        "keep": {"daily": 7},
        "schedule": NIGHTLY,
        "max_unused": 0,
        **settings,
    }
    checked = validate(ResticSettings, {k: v for k, v in raw.items() if v is not None})
    site = Site("backups", Path("/nowhere"), timezone=TOKYO)
    if snapshots is None:
        last = datetime(2025, 6, 20, 3, tzinfo=TOKYO)
        snapshots = [
            Taken(f"s{n}", last - timedelta(days=n), "quay", ("/a",), (), "t")
            for n in range(nights)
        ]
    return Calendar(site, checked, snapshots, version, now).until([snapshots[0].id])


def test_the_plain_case_in_the_zone_of_the_manifest() -> None:
    assert planned().date == datetime(2025, 6, 27, 3, 30, tzinfo=TOKYO)


def test_the_schedule_may_have_a_zone_of_its_own() -> None:
    found = planned(schedule={**NIGHTLY, "timezone": "UTC"})
    assert found.date == datetime(2025, 6, 27, 3, 30, tzinfo=UTC)


def test_since_0_16_the_oldest_snapshot_stays_while_a_rule_has_more_to_give() -> None:
    first = [
        Taken(f"s{n}", datetime(2025, 6, n, 3, tzinfo=TOKYO), "quay", ("/a",), (), "t")
        for n in range(18, 21)
    ]
    settings: dict[str, Any] = {"snapshots": first, "keep": {"daily": 2, "monthly": 3}}
    assert planned(version=(0, 14), **settings).date == datetime(2025, 6, 21, 3, 30, tzinfo=TOKYO)
    # Kept as the oldest of its month until three months are there: 1 August at the earliest.
    newer = planned(version=(0, 18), **settings)
    assert newer.date == datetime(2025, 8, 1, 3, 30, tzinfo=TOKYO)


@pytest.mark.parametrize(
    ("prune", "date"),
    [
        ("forget", (2025, 6, 27, 3, 30)),
        ("04:00", (2025, 6, 27, 4, 0)),
        ("sunday 05:00", (2025, 6, 29, 5, 0)),
        ("weekly", (2025, 7, 4, 3, 30)),  # Which day is not said, so the latest counts.
        (["wednesday 05:00", "saturday 05:00"], (2025, 6, 28, 5, 0)),
        ("31 05:00", (2025, 6, 30, 5, 0)),
    ],
)
def test_prune_comes_after_forget(prune: Any, date: tuple[int, ...]) -> None:
    found = planned(schedule={"backup": "03:00", "forget": "03:30", "prune": prune})
    assert found.date == datetime(*date, tzinfo=TOKYO)  # type: ignore[misc,arg-type]  # five numbers


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"keep": None}, "no keep rules"),
        ({"keep": {}}, "no keep rules"),
        ({"schedule": None}, "no schedule"),
        ({"schedule": {"backup": "03:00", "prune": "weekly"}}, "no schedule for forget"),
        ({"schedule": {"backup": "03:00", "forget": "03:30"}}, "no schedule for prune"),
        ({"max_unused": None}, "5 %"),
        ({"max_unused": "10%"}, "up to its limit"),
        ({"max_unused": "unlimited"}, "up to its limit"),
        ({"keep": {"last": -1}}, "for good"),
        ({"hosts": ["pier"]}, "leaves out"),
        ({"tags": ["nightly"]}, "leaves out"),
        ({"nights": 1}, "single snapshot"),
        ({"now": datetime(2025, 11, 20, 12, tzinfo=TOKYO)}, "no longer receives"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_without_something_that_really_removes_it_there_is_no_date(
    settings: dict[str, Any], reason: str
) -> None:
    found = planned(**settings)
    assert found.date is None
    assert reason in found.why


def test_runs_that_each_have_a_path_of_their_own_are_never_dropped() -> None:
    """Cellarion PR 1183: keep-last 1 kept 85 of 85, since each run was a group of its own."""
    last = datetime(2025, 6, 20, 3, tzinfo=TOKYO)
    snapshots = [
        Taken(f"s{n}", last - timedelta(days=n), "quay", (f"/tmp/run-{n}",), (), "t")
        for n in range(3)
    ]
    assert planned(snapshots=snapshots, keep={"last": 1}).date is None
    assert planned(snapshots=snapshots, keep={"last": 1}, group_by="host").date is not None


def test_faults_in_the_rules_are_told_with_their_path() -> None:
    for keep, schedule in (({"daily": -2}, {}), ({"within": "5 weeks"}, {}), ({}, {"prune": "25"})):
        raw = {"repository": "r", "keep": keep, "schedule": schedule}
        if schedule:
            raw["schedule"] = {"forget": "nightly"}
        with pytest.raises(ShapeFault, match=r"keep|schedule"):
            validate(ResticSettings, raw)
