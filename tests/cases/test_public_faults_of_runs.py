"""Faults that people met in dry runs, nightly runs, time zones and reports; each by its number."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from purge.adapter import Covered, Residue, Site
from purge.cli.wiring import registry
from purge.engine import Engine
from purge.ledger import run_lock
from purge.plan.request import Wanted
from purge.registry import Registry
from purge.report.document import report_document
from purge.targets import Target, TargetKind, Targets
from purge.testing.faults import Journal
from purge.testing.faulty_store import FaultyStore
from purge.testing.snapshots import age, differences, take_snapshot
from purge_adapters.jsonl import JsonlAdapter, JsonlSettings
from purge_adapters.snapshots import SnapshotsAdapter, SnapshotsSettings
from tests.real import chroma_stores
from tests.support import s3_servers
from tests.support.places import Places
from tests.support.restic_repos import Harbour
from tests.support.s3_buckets import Bucket, lines

FACT = "Tilda keeps the spare key in the blue tin"
LIVE = "Tilda keeps the spare lamp in the blue tin"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restic")


def log_site(**more: Any) -> dict[str, Any]:
    return {"adapter": "jsonl", "path": "logs", "id": "id", **more}


def test_run_01_a_dry_run_by_id_changes_nothing(tmp_path: Path, templates: Path) -> None:
    """RUN-01: not a byte, a time, a version of an object or a lock of a repository."""
    harbour = Harbour.make("0.18", tmp_path, templates)
    places = Places(harbour.root)
    places.lines("logs/a.jsonl", [{"id": "x1", "text": FACT}, {"id": "x2", "text": LIVE}])
    places.sql(
        "m.db",
        "CREATE TABLE m (id TEXT PRIMARY KEY, body TEXT, source TEXT)",
        ("INSERT INTO m VALUES ('m1', ?, 'x1'), ('m2', ?, 'x2')", [FACT, LIVE]),
    )
    chroma_stores.plant(places.folder / "chroma", {"v1": (FACT, {"of": "m1"})})
    server = s3_servers.moto()
    bucket = Bucket(server, server.bucket(versioned=True))
    bucket.put("a.jsonl", lines(("x1", FACT), ("x2", LIVE)))
    harbour.backup("2025-06-18 03:00:00")
    password = harbour.repository.with_name("password")
    program = harbour.adapter().settings.program
    places.manifest(
        {
            "logs": log_site(),
            "memories": {
                **{"adapter": "sql", "url": "sqlite:///m.db", "table": "m", "id": "id"},
                "derived_from": {"logs": "source"},
            },
            "vectors": {"adapter": "chroma", "path": "chroma", "derived_from": {"memories": "of"}},
            "exports": {
                **{"adapter": "s3", "format": "jsonl", "id": "id", **server.settings(bucket.name)},
                "derived_from": {"logs": "id"},
            },
            "backups": {
                "adapter": "restic",
                "repository": str(harbour.repository),
                "password_file": str(password),
                "cache_dir": str(harbour.repository.with_name("cache")),
                "program": str(program),
                "outside_root": True,
                "covers": ["logs", "memories"],
            },
        }
    )
    age(tmp_path)
    before, versions = take_snapshot(tmp_path), bucket.versions()
    shown = places.ask("request", "--id", "logs:x1")
    assert shown.code == 0, shown.err
    assert (shown.json["applied"], shown.json["to_remove"]) == (False, 4)
    changed = differences(before, take_snapshot(tmp_path))
    # restic moves no access time back; its cache and the manifest are no stores.
    by_reading = ("repository", "password", "cache", "place/purge.yaml")
    assert [each for each in changed if not each.startswith(by_reading)] == []
    assert [
        each for each in changed if not each.startswith("cache") and not each.endswith(": accessed")
    ] == []
    assert bucket.versions() == versions
    assert list((harbour.repository / "locks").iterdir()) == []


def test_run_04_what_is_shown_is_what_goes(places: Places) -> None:
    """RUN-04: of 12,000 records the last holds it; no page or limit lies between."""
    rows = [{"id": f"l{n}", "text": LIVE} for n in range(11_999)]
    places.lines("logs/a.jsonl", [*rows, {"id": "last", "text": FACT}])
    places.sql(
        "m.db",
        "CREATE TABLE m (id TEXT PRIMARY KEY, body TEXT)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 11999)"
        " INSERT INTO m SELECT printf('m%05d', i), 'all is well' FROM n",
        ("INSERT INTO m VALUES ('zz', ?)", [FACT]),
    )
    places.manifest(
        {
            "logs": log_site(),
            "memories": {"adapter": "sql", "url": "sqlite:///m.db", "table": "m", "id": "id"},
        }
    )
    shown = places.ask("request", "--phrase", FACT)
    done = places.forget("--phrase", FACT)
    assert shown.json["to_remove"] == 2
    assert [done.step(site)["removed"] for site in ("logs", "memories")] == [1, 1]
    assert len(places.read("logs/a.jsonl")) == 11_999
    assert places.sql("m.db", "SELECT count(*) FROM m") == [(11_999,)]


def test_run_08_of_two_runs_the_second_ends_at_once(places: Places) -> None:
    """RUN-08: with an exit code of its own, and nothing is touched."""
    path = places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}])
    places.manifest({"logs": log_site()})
    engine = Engine.open(places.folder / "purge.yaml", registry(), environ={})
    before = path.read_bytes()
    with run_lock(engine.manifest.ledger, clock=engine.clock):
        second = places.run("request", "--phrase", FACT, "--apply")
    assert second.code == 5
    assert path.read_bytes() == before
    assert places.forget("--phrase", FACT).code == 0


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_run_10_dates_do_not_depend_on_where_it_runs(tmp_path: Path, zone: str) -> None:
    """RUN-10: the zone of the machine changes no date; every date says its offset."""
    folder = tmp_path / "data"
    places = Places(folder)
    folder.mkdir()
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}])
    taken = datetime.now(UTC) - timedelta(hours=2)
    shutil.copytree(folder / "logs", folder / "snapshots" / f"{taken:%Y-%m-%dT%H%M}" / "logs")
    places.manifest(
        {
            "logs": log_site(),
            "backups": {
                "adapter": "snapshots",
                "path": "snapshots",
                "covers": ["logs"],
                "keep_for": "10d",
            },
        },
        timezone="UTC",
    )
    done = subprocess.run(
        [sys.executable, "-m", "purge", "request", "--phrase", FACT, "--apply", "--json"],
        cwd=folder,
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(done.stdout)
    assert said["state"] == "backup-retained-until"
    until = datetime.fromisoformat(said["until"])
    expected = taken.replace(second=0, microsecond=0) + timedelta(days=10)
    assert until == expected
    dates = re.findall(r'"(\d{4}-\d\d-\d\dT[^"]*)"', done.stdout)
    assert dates
    assert all(datetime.fromisoformat(date).tzinfo is not None for date in dates)


def test_run_15_a_copy_that_is_kept_for_a_day_has_the_date_of_the_next_day(
    tmp_path: Path,
) -> None:
    """RUN-15: looked at half past midnight, over the change of the clocks."""
    zone = ZoneInfo("Europe/Lisbon")
    now = datetime(2026, 3, 29, 0, 30, tzinfo=zone)
    live = tmp_path / "logs"
    for root in (live, tmp_path / "snapshots" / "2026-03-28T0045" / "logs"):
        root.mkdir(parents=True)
        (root / "a.jsonl").write_text(json.dumps({"id": "1", "text": FACT}) + "\n")
    (live / "a.jsonl").write_text("")
    logs = Site("logs", tmp_path)
    settings = JsonlSettings(path="logs", id="id")
    covered = Covered(logs, (live,), lambda site: JsonlAdapter(site, settings))
    site = Site("backups", tmp_path, covers={"logs": covered}, timezone=zone, clock=lambda: now)
    adapter = SnapshotsAdapter(site, SnapshotsSettings(path="snapshots", keep_for="1d"))
    targets = Targets([Target(1, TargetKind.PHRASE, FACT)])
    (until,) = (item.until for item in adapter.residue(targets) if isinstance(item, Residue))
    assert until == datetime(2026, 3, 29, 0, 45, tzinfo=zone)


def faulty(folder: Path, **faults: Any) -> Engine:
    store = FaultyStore(folder / "store")
    store.make()
    store.plant([{"id": f"r{n}", "text": FACT} for n in range(3)])
    path = folder / "purge.yaml"
    path.write_text(
        json.dumps(
            {
                "purge": 1,
                "name": "faulty",
                "sites": {
                    "store": {
                        **{"adapter": "faulty", "path": "store", "journal": "store.journal"},
                        "faults": faults,
                    }
                },
            }
        )
    )
    return Engine.open(path, Registry({"faulty": "purge.testing.faulty:FaultyAdapter"}), environ={})


def test_rep_11_counts_come_from_the_look_afterwards(tmp_path: Path) -> None:
    """REP-10, REP-11, S3-15: the store says that it removed three, and the look finds them."""
    outcome = faulty(tmp_path, lies=True).request([Wanted(TargetKind.PHRASE, FACT)], apply=True)
    assert Journal(tmp_path / "store.journal").calls("remove")
    (step,) = report_document(outcome)["steps"]
    assert (step["found"], step["removed"], step["left"]) == (3, 0, 3)
    assert step["state"] == "accepted"


def test_rep_04_what_nobody_can_delete_keeps_the_whole_from_being_confirmed(
    places: Places,
) -> None:
    """REP-04: a place that only a person can clean is shown beside the others."""
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}])
    places.lines("sealed/a.jsonl", [{"id": "s1", "text": FACT}])
    places.manifest({"logs": log_site(), "sealed": log_site(path="sealed", action="report")})
    done = places.forget("--phrase", FACT)
    assert done.code == 3
    assert done.states() == {"logs": "confirmed-deleted", "sealed": "accepted"}
    assert done.problem("sealed") == "report-only"
    assert done.json["state"] == "accepted"


def test_rep_01_no_report_log_or_ledger_repeats_the_words(places: Places) -> None:
    """REP-01, BAK-14: nor does what is printed; an error neither."""
    places.lines("logs/a.jsonl", [{"id": "l1", "text": FACT}, {"id": "l2", "text": LIVE}])
    places.manifest({"logs": log_site()})
    done = places.forget("--phrase", FACT)
    id = done.json["request"]["id"]
    said = [done]
    for form in ("text", "markdown", "html", "json"):
        said.append(places.run("report", id, "--format", form))
    said += [places.run("status"), places.run("verify", id), places.run("ledger", "verify")]
    (places.folder / "logs/a.jsonl").unlink()
    (places.folder / "logs").rmdir()
    said.append(places.run("request", "--phrase", FACT, "--apply"))
    assert all("spare key" not in each.out + each.err for each in said)
    assert not [
        path
        for path in places.folder.rglob("*")
        if path.is_file() and b"spare key" in path.read_bytes()
    ]
