"""``purge sweep``, ``replay``, ``hold`` and ``schedule`` as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from purge.engine.crash import VARIABLE

LESSON = "the staging database may be wiped at any time"
MANIFEST = """\
purge: 1
name: two sites
sites:
  logs: {adapter: jsonl, path: data/logs, id: id, text: [text], subject: user}
  notes: {adapter: markdown, path: data/notes, record: block}
  backups: {adapter: snapshots, path: snapshots, covers: [logs, notes], keep_for: 10d}
safety: {snapshot: {site: backups, max_age: 26h}}
markers: {from: [notes]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data/logs").mkdir(parents=True)
    (tmp_path / "data/notes").mkdir()
    lines = [
        {"id": "l1", "user": "edwin", "text": f"Keep in mind: {LESSON}."},
        {"id": "l2", "user": "mika", "text": "paper rolls are low"},
    ]
    (tmp_path / "data/logs/a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "data/notes/a.md").write_text(f"# Corrections\n\nRETRACTS: {LESSON}\n")
    (tmp_path / "purge.yaml").write_text(MANIFEST)
    back_up(tmp_path)
    return tmp_path


def back_up(folder: Path, age: timedelta = timedelta()) -> None:
    name = f"{datetime.now().astimezone() - age:%Y-%m-%dT%H%M}"
    utc = subprocess.run(
        ["date", "-u", "+%Y-%m-%dT%H%M"], capture_output=True, text=True, check=True
    ).stdout.strip()
    shutil.copytree(folder / "data", folder / "snapshots" / (utc if not age else name) / "data")


def run(
    folder: Path, *arguments: str, crash: str | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if crash is not None:
        environment[VARIABLE] = crash
    return subprocess.run(
        [sys.executable, "-m", "purge", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        input=given,
        timeout=120,
    )


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return dict(json.loads(done.stdout))


def logs(folder: Path) -> str:
    return (folder / "data/logs/a.jsonl").read_text()


def test_a_shown_sweep_says_plainly_that_nothing_was_deleted(folder: Path) -> None:
    shown = run(folder, "sweep")
    assert shown.returncode == 0, shown.stderr
    assert "1 record would be removed; the oldest request waits since" in shown.stdout
    assert "Nothing was deleted" in shown.stdout
    assert LESSON in logs(folder)
    assert not (folder / ".purge").exists()


def test_an_applied_sweep_does_it_and_tells_those_who_watch(folder: Path) -> None:
    done = run(folder, "sweep", "--apply", "--json", "--metrics", "purge.prom", "--log", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    said = document(done)
    assert said["schema"] == "purge/sweep/1"
    assert (said["applied"], said["to_remove"], said["overdue"]) == (True, 0, [])
    (request,) = said["requests"]
    assert request["state"] == "backup-retained-until"
    assert request["marker"] == "notes"
    assert LESSON not in logs(folder)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["event"] for line in lines} == {"phase", "request", "sweep"}
    metrics = (folder / "purge.prom").read_text()
    assert "purge_open_requests 1\n" in metrics
    assert 'purge_steps{state="backup-retained-until"} 1\n' in metrics
    assert "purge_last_snapshot_timestamp_seconds " in metrics
    assert LESSON not in done.stdout + done.stderr + metrics


def test_without_a_fresh_snapshot_it_ends_with_four_and_one_sentence(folder: Path) -> None:
    shutil.rmtree(folder / "snapshots")
    (folder / "snapshots").mkdir()
    done = run(folder, "sweep", "--apply")
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Nothing was deleted." in done.stderr
    assert LESSON in logs(folder)


@pytest.mark.parametrize(
    "point",
    [
        *("planned", "remove.intended@logs", "remove.done@logs", "reread.done"),
        *("examined", "judged", "swept"),
    ],
)
def test_a_killed_sweep_is_finished_by_the_next(folder: Path, point: str) -> None:
    killed = run(folder, "sweep", "--apply", crash=point)
    assert killed.returncode == -signal.SIGKILL
    done = run(folder, "sweep", "--apply", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert LESSON not in logs(folder)
    (request,) = document(done)["requests"]
    assert request["state"] == "backup-retained-until"
    assert run(folder, "ledger", "verify").returncode == 0


def test_replay_needs_to_be_told_which_sites(folder: Path) -> None:
    assert run(folder, "replay").returncode == 2
    assert run(folder, "replay", "--site", "logs", "--all").returncode == 2
    kept = logs(folder)
    assert run(folder, "sweep", "--apply").returncode == 0
    (folder / "data/logs/a.jsonl").write_text(kept)
    shown = run(folder, "replay", "--all")
    assert "1 record would be removed" in shown.stdout
    assert run(folder, "replay", "--all", "--apply").returncode == 0
    assert LESSON not in logs(folder)


def test_a_hold_keeps_a_person_until_it_is_released(folder: Path) -> None:
    added = run(
        *(folder, "hold", "add", "--subject", "-", "--reason", "a claim is open", "--json"),
        given="edwin\n",
    )
    assert added.returncode == 0, added.stderr
    hold = document(added)
    assert hold["on"] == {"subject": 1}
    done = run(folder, "sweep", "--apply")
    assert done.returncode == 3
    assert "held" in done.stdout
    assert LESSON in logs(folder)
    listed = run(folder, "hold", "list")
    assert "1 person" in listed.stdout
    assert "edwin" not in listed.stdout + (folder / ".purge/ledger.db").read_bytes().decode(
        "latin-1"
    )
    assert "no open" not in run(folder, "status").stdout
    assert hold["id"] not in run(folder, "status", "--all").stdout
    assert run(folder, "resume", hold["id"]).returncode == 2
    assert run(folder, "hold", "release", hold["id"][:10]).returncode == 0
    assert run(folder, "hold", "release", hold["id"]).returncode == 2
    assert run(folder, "sweep", "--apply").returncode == 0
    assert LESSON not in logs(folder)
    assert document(run(folder, "hold", "list", "--json"))["holds"] == []
    assert run(folder, "ledger", "verify").returncode == 0


def test_a_hold_on_nothing_or_without_a_field_is_refused(folder: Path) -> None:
    nothing = run(folder, "hold", "add")
    assert nothing.returncode == 2
    assert "A hold is on something" in nothing.stderr
    assert run(folder, "hold", "add", "--scope", "tenant=x").returncode == 2
    assert run(folder, "hold", "add", "--id", "logs:").returncode == 2


def test_schedule_prints_units_and_installs_nothing(folder: Path) -> None:
    units = document(run(folder, "schedule", "--json"))["files"]
    assert sorted(units) == [
        "purge-sweep-two-sites-failed.service",
        "purge-sweep-two-sites.service",
        "purge-sweep-two-sites.timer",
    ]
    service = units["purge-sweep-two-sites.service"]
    assert "sweep --apply --log text --manifest" in service
    assert "OnFailure=purge-sweep-two-sites-failed.service" in service
    assert "OnCalendar=*-*-* 04:30:00 UTC" in units["purge-sweep-two-sites.timer"]
    after = document(run(folder, "schedule", "--after", "restic.service", "--json"))["files"]
    assert "OnSuccess=purge-sweep-two-sites.service" in after["restic.service.d/purge.conf"]
    assert sorted(path.name for path in folder.iterdir()) == ["data", "purge.yaml", "snapshots"]


def test_schedule_prints_a_crontab_line_with_a_hook(folder: Path) -> None:
    said = run(folder, "schedule", "--as", "cron", "--at", "05:10").stdout
    assert "10 5 * * *  " in said
    assert "CRON_TZ=UTC" in said
    assert " || logger " in said
    assert run(folder, "schedule", "--at", "25:00").returncode == 2


def test_a_deadline_that_passes_is_overdue(folder: Path) -> None:
    asked = run(
        *(folder, "request", "--phrase", "words that are nowhere here", "--apply"),
        *("--deadline", "1s", "--json"),
    )
    assert asked.returncode == 3
    assert document(asked)["request"]["deadline"] is not None
    time.sleep(1.1)
    done = run(folder, "sweep", "--apply", "--json")
    assert done.returncode == 3
    assert [late["request"] for late in document(done)["overdue"]] == [
        document(asked)["request"]["id"]
    ]
    assert run(folder, "request", "--phrase", LESSON, "--deadline", "soon").returncode == 2


@pytest.mark.parametrize("key", ["path", "key_file"])
def test_check_refuses_a_ledger_or_key_that_is_backed_up(folder: Path, key: str) -> None:
    assert run(folder, "check").returncode == 0
    with (folder / "purge.yaml").open("a") as manifest:
        manifest.write(f"ledger: {{{key}: data/logs/private}}\n")
    checked = run(folder, "check", "--json")
    assert checked.returncode == 1
    said = {site["site"]: site for site in document(checked)["sites"]}
    wrong = [line for line in said["backups"]["statements"] if not line["ok"]]
    assert all("lies under 'logs', which this site backs up" in one["sentence"] for one in wrong)
    assert wrong
