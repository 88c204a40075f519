"""``purge demo`` as a person runs it: eight real stores, what it says of them, what it leaves.

What is looked for is looked for by plain clients; nothing here uses purge's own matching.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from purge_adapters._sandbox import (
    Services,
    Suggestion,
    build,
    last_night,
    look_at_bytes,
    look_at_services,
)

TOOLS = Path(__file__).parents[2] / ".tools" / "bin"
PATH = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
CONFIRMED = ("raw-logs", "notes", "memories", "embeddings", "summaries", "cache", "exports")
LOOK = """
import json, os
from pathlib import Path
from purge_adapters._sandbox import look_at_services
print(json.dumps(look_at_services(Path.cwd(), os.environ)))
"""
Built = tuple[Path, list[str], list[Suggestion]]


def run(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal."""
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PATH": PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def processes(folder: Path) -> list[int]:
    """The processes that were told of the folder, or work in it."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            told = str(folder).encode() in (place / "cmdline").read_bytes()
            works = (place / "cwd").readlink().is_relative_to(folder)
        except OSError:
            continue
        if told or works:
            found.append(int(place.name))
    return found


def none_left(folder: Path) -> bool:
    for _ in range(100):
        if not processes(folder):
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A name that a shell, a URL or a pattern would take for something else.
    return tmp_path_factory.mktemp("demo") / "a [box] & 100%"


@pytest.fixture(scope="module")
def shown(place: Path) -> dict[str, Any]:
    """What the demo says, as JSON."""
    done = run([sys.executable, "-m", "purge", "demo", str(place), "--json"], place.parent)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    answer["said"] = done.stderr
    return answer


def test_every_site_is_confirmed_and_the_backups_have_a_date(shown: dict[str, Any]) -> None:
    steps = {step["site"]: step for step in shown["report"]["steps"]}
    assert {site: steps[site]["state"] for site in CONFIRMED} == dict.fromkeys(
        CONFIRMED, "confirmed-deleted"
    )
    assert steps["backups"]["state"] == "backup-retained-until"
    assert steps["backups"]["until"] == shown["report"]["until"]
    assert not [step for step in steps.values() if step["problem"]]
    assert steps["exports"]["evidence"]["kind"] == "api"
    assert steps["cache"]["evidence"]["kind"] == "bytes"


def test_it_counts_by_plain_clients_before_and_after(shown: dict[str, Any]) -> None:
    said = " ".join(shown["said"].split())
    before = re.search(r"The wrong lesson stands in: (.*?backups \d+)", said)
    assert before is not None
    assert before[1] == (
        "raw-logs 13, notes 2, memories 1, embeddings 1, summaries 2, cache 1, exports 2, backups 7"
    )
    until = str(shown["report"]["until"])[:10]
    assert f"it stands in: backups 7 The backups let go of the last of it by {until}." in said


def test_no_backup_holds_the_lesson_from_before_it_was_given(shown: dict[str, Any]) -> None:
    (backups,) = (step for step in shown["report"]["steps"] if step["site"] == "backups")
    nights = [int(str(one["where"]).split(" snapshots", 1)[0]) for one in backups["residue"]]
    assert len(nights) == 11
    assert max(nights) == 7


def test_it_leaves_no_process_behind(place: Path, shown: dict[str, Any]) -> None:
    assert shown["folder"] == str(place)
    assert none_left(place)


def test_no_byte_of_the_lesson_is_left_in_a_file_that_shows_its_bytes(
    place: Path, shown: dict[str, Any]
) -> None:
    assert shown
    assert look_at_bytes(place) == dict.fromkeys((*CONFIRMED[:5], "cache"), 0)


def test_the_sandbox_starts_again_with_what_was_left(place: Path, shown: dict[str, Any]) -> None:
    assert shown
    looked = run([str(place / "with-services"), sys.executable, "-c", LOOK], place.parent)
    assert looked.stderr == ""
    assert json.loads(looked.stdout) == {"cache": 0, "exports": 0, "backups": 7}
    assert none_left(place)


@pytest.mark.long
def test_every_suggestion_works(place: Path, shown: dict[str, Any]) -> None:
    commands = re.findall(r"^  (\./with-services .*?)$", shown["said"], re.MULTILINE)
    assert len(commands) == 3
    exits = {}
    for command in commands:
        done = run(["sh", "-c", command], place)
        assert "busy" not in done.stdout, "the servers serve before the command runs"
        assert "not looked at" not in done.stdout
        exits[command.split()[2]] = done.returncode
        if "request" in command:
            assert "source-kept" in done.stdout, "there is something to decide"
    assert exits == {"request": 0, "verify": 0, "report": 0}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A sandbox with servers, of which nothing was purged; they are stopped again."""
    folder = tmp_path_factory.mktemp("built") / "kettle"
    said: list[str] = []
    today = last_night(datetime.now(UTC)).date()
    running: list[Services] = []

    def start(at: Path) -> Services:
        running.append(Services(at).__enter__())
        return running[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", PATH)
        try:
            sandbox = build(folder, said.append, today, start)
            counts = look_at_services(folder, running[0].environment)
        finally:
            for services in running:
                services.stop()
    assert counts == {"cache": 1, "exports": 2, "backups": 7}, "the look sees what is there"
    return folder, said, list(sandbox.suggestions)


def test_the_manifest_names_eight_sites(built: Built) -> None:
    sites = yaml.safe_load((built[0] / "purge.yaml").read_text())["sites"]
    assert tuple(sites) == (*CONFIRMED, "backups")
    assert sites["backups"]["covers"] == list(CONFIRMED[:5])


def test_secrets_are_for_their_owner_and_not_in_what_is_read(built: Built) -> None:
    folder = built[0]
    credentials = json.loads((folder / "s3.json").read_text())["identities"][0]["credentials"][0]
    password = (folder / "backups.password").read_text().strip()
    for name in ("s3.json", "backups.password"):
        assert (folder / name).stat().st_mode & 0o077 == 0
    for name in ("purge.yaml", "README.md", "with-services"):
        text = (folder / name).read_text()
        assert not [one for one in (*credentials.values(), password) if one in text]


def test_the_files_of_redis_show_the_lesson_before_it_is_purged(built: Built) -> None:
    assert look_at_bytes(built[0])["cache"] > 0
    assert (built[0] / "redis" / "dump.rdb").is_file()


def test_each_store_is_said_as_it_is_made(built: Built) -> None:
    _, said, suggestions = built
    assert [line.split(":")[0] for line in said] == [
        *("Five days of chat logs", "Notes and summaries", "Memories", "Embeddings"),
        *("Cache", "Exports", "Backups", "A manifest that names these eight sites"),
    ]
    assert all(one.command.startswith("./with-services purge ") for one in suggestions)


def test_two_commands_do_not_share_the_servers(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PATH)
    script = str(built[0] / "with-services")
    with Services(built[0]):
        second = run([script, "true"], built[0].parent)
    assert (second.returncode, second.stdout) == (1, "")
    assert "run already" in second.stderr
    assert "Traceback" not in second.stderr
    assert run([script, "true"], built[0].parent).returncode == 0


@pytest.mark.parametrize(
    ("now", "night"),
    [
        # Three in the morning in Tokyo is 18:00 UTC of the day before.
        ("2026-11-30T17:59:59+00:00", "2026-11-30"),
        ("2026-11-30T18:00:00+00:00", "2026-12-01"),
        ("2026-12-01T02:59:00+09:00", "2026-11-30"),
        ("2026-11-30T23:00:00-05:00", "2026-12-01"),
    ],
)
def test_the_last_night_is_the_last_three_in_the_morning(now: str, night: str) -> None:
    assert last_night(datetime.fromisoformat(now)).date() == date.fromisoformat(night)


def until(process: subprocess.Popen[str], wanted: Callable[[str], bool]) -> bool:
    """Read a process's output up to a line that is wanted; whether it came."""
    assert process.stdout is not None
    return any(wanted(line) for line in process.stdout)


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
    ],
)
def test_a_demo_that_is_stopped_stops_all_that_it_started(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "kettle"
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "purge", "demo", str(folder)],
        env={**os.environ, "PATH": PATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert until(process, lambda line: "Exports:" in line), process.communicate()[1]
    assert len(processes(folder)) >= 3, "the look must see the demo and its servers"
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert none_left(folder)
    assert "Traceback" not in errors
