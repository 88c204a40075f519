"""What is seen in the snapshots of a real restic repository, of both generations."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Covered, Examined, ProblemCode, Site
from purge.errors import Permanent, StoreError
from purge.targets import Target, TargetKind, Targets
from tests.support.restic_repos import (
    OTHER,
    SECRET,
    Harbour,
    phrase,
    record,
    restic,
    wrapper,
    write_log,
)

PLAN: dict[str, Any] = {
    "keep": {"daily": 3},
    "schedule": {"backup": "03:00", "forget": "03:30", "prune": "forget"},
    "max_unused": 0,
}


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restic")


@pytest.fixture(
    params=[pytest.param("0.14", marks=pytest.mark.long), "0.18"],
)
def harbour(request: pytest.FixtureRequest, tmp_path: Path, templates: Path) -> Harbour:
    """Two sites, and nothing backed up yet."""
    made = Harbour.make(request.param, tmp_path, templates)
    made.cover("logs", "jsonl", {"path": "logs", "id": "id"}, scope={"project": "project"})
    made.cover("notes", "markdown", {"path": "notes"})
    write_log(made.root / "logs" / "a.jsonl", OTHER, SECRET)
    write_log(made.root / "logs" / "b.jsonl", OTHER, OTHER)
    (made.root / "notes").mkdir()
    (made.root / "notes" / "n.md").write_text(f"# Quay\n\n{OTHER}\n")
    return made


@pytest.fixture
def newest(tmp_path: Path, templates: Path) -> Harbour:
    """The newer generation alone, for what does not depend on restic."""
    made = Harbour.make("0.18", tmp_path, templates)
    made.cover("logs", "jsonl", {"path": "logs", "id": "id"}, scope={"project": "project"})
    return made


def nights(harbour: Harbour, *days: int) -> None:
    for day in days:
        harbour.backup(f"2025-06-{day:02} 03:00:00")


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_ctime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_an_item_is_found_by_content_in_every_snapshot_that_holds_it(harbour: Harbour) -> None:
    nights(harbour, 16, 17, 18)
    write_log(harbour.root / "logs" / "a.jsonl", OTHER)
    nights(harbour, 19, 20)
    before = state(harbour.repository)
    look = harbour.look(phrase(), **PLAN)
    assert state(harbour.repository) == before
    (copy,) = look.residue
    assert copy.where == "3 snapshots (2025-06-16 to 2025-06-18) of logs (logs/a.jsonl)"
    # The last of them is dropped when three newer nights are there, two of which are already.
    assert copy.until == datetime(2025, 6, 21, 3, 30, tzinfo=UTC)
    assert copy.keys == {1}
    assert not copy.fixable
    assert not look.gaps
    assert all(control.passed for control in look.controls)
    by_id = harbour.look(record("logs", "a-1"), **PLAN)
    assert [one.where for one in by_id.residue] == [copy.where]
    with harbour.adapter() as adapter:
        assert [type(item) for item in adapter.find(phrase())] == [Examined]


def test_what_was_never_there_is_proved_not_to_be(harbour: Harbour) -> None:
    nights(harbour, 19, 20)
    assert harbour.look(phrase("a phrase that nobody has ever written here")).is_clean
    assert harbour.look(record("logs", "no-such-id-anywhere", "unheard-of words")).is_clean


def test_each_distinct_file_is_looked_at_once_and_no_lock_is_taken(
    harbour: Harbour, tmp_path: Path
) -> None:
    nights(harbour, *range(1, 9))
    program, notes = wrapper(harbour.version, tmp_path)
    look = harbour.look(phrase(), program=str(program))
    calls = notes.read_text().splitlines()
    assert sum(call.startswith("restore") for call in calls) == 1
    assert all("--no-lock" in call for call in calls if not call.startswith("version"))
    assert not any("pass" in call or str(harbour.repository) in call for call in calls)
    size = sum(path.stat().st_size for path in harbour.root.rglob("*") if path.is_file())
    assert look.bytes_read == size
    notes.unlink()
    assert harbour.look(phrase(), program=str(program)).residue == look.residue
    again = notes.read_text()
    assert "restore" not in again
    assert "cat blob" not in again


def test_a_deleted_row_in_the_free_space_of_a_database_is_seen(harbour: Harbour) -> None:
    harbour.cover("memories", "sql", {"url": "sqlite:///memories.db", "table": "memories"})
    with closing(sqlite3.connect(harbour.root / "memories.db")) as db, db:
        db.execute("PRAGMA secure_delete=OFF")
        db.execute("CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT)")
        db.executemany("INSERT INTO memories VALUES (?, ?)", [("m1", SECRET), ("m2", OTHER)])
    write_log(harbour.root / "logs" / "a.jsonl", OTHER)
    nights(harbour, 18)
    with closing(sqlite3.connect(harbour.root / "memories.db")) as db, db:
        db.execute("PRAGMA secure_delete=OFF")
        db.execute("DELETE FROM memories WHERE id = 'm1'")
    assert SECRET.encode() in (harbour.root / "memories.db").read_bytes()
    nights(harbour, 19)
    with closing(sqlite3.connect(harbour.root / "memories.db", isolation_level=None)) as db:
        db.execute("VACUUM")
    nights(harbour, 20)
    copies = harbour.look(record("memories", "m1"), **PLAN).residue
    # The row is known to be the request's own; what lies in free space nobody can tell apart.
    assert [(copy.where[:23], copy.keys) for copy in copies] == [
        ("1 snapshot (2025-06-19)", frozenset()),
        ("1 snapshot (2025-06-18)", frozenset({1})),
    ]


def test_a_marker_line_in_a_snapshot_is_no_hit(harbour: Harbour) -> None:
    write_log(harbour.root / "logs" / "a.jsonl", OTHER)
    note = harbour.root / "notes" / "n.md"
    note.write_text(f"RETRACTS: {SECRET}\n")
    nights(harbour, 19)
    assert harbour.look(phrase()).is_clean
    note.write_text(f"RETRACTS: {SECRET}\n\nAnd again: {SECRET}\n")
    nights(harbour, 20)
    (copy,) = harbour.look(phrase()).residue
    assert copy.where.startswith("1 snapshot (2025-06-20) of notes")


def test_a_record_of_another_scope_is_no_copy(newest: Harbour) -> None:
    path = newest.root / "logs" / "a.jsonl"
    path.parent.mkdir()
    lines = [{"id": "1", "text": SECRET, "project": "quay"}, {"id": "2", "text": SECRET}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    nights(newest, 20)

    def within(project: str) -> Targets:
        return Targets([Target(1, TargetKind.PHRASE, SECRET, None, {"project": project})])

    assert newest.look(within("pier")).is_clean
    assert newest.look(within("quay")).residue


def test_places_in_a_snapshot_that_differ_from_those_of_the_machine(harbour: Harbour) -> None:
    odd = harbour.root / "logs" / "we[i]rd*?\\ dir"
    write_log(odd / "a.jsonl", SECRET)
    write_log(harbour.root / "logs" / "a.jsonl", OTHER)
    harbour.backup("2025-06-17 03:00:00", "place", cwd=harbour.root.parent)
    harbour.backup("2025-06-18 03:00:00", ".", cwd=harbour.root)
    harbour.backup("2025-06-19 03:00:00", "logs", "notes", cwd=harbour.root)
    write_log(odd / "a.jsonl", OTHER, SECRET)
    harbour.backup("2025-06-20 03:00:00", str(odd / "a.jsonl"))
    look = harbour.look(phrase())
    (copy,) = look.residue
    assert copy.where.startswith("4 snapshots (2025-06-17 to 2025-06-20) of logs")
    assert not look.gaps


def test_a_copy_under_another_path_is_seen_and_left_to_people(
    harbour: Harbour, tmp_path: Path
) -> None:
    """A backup of a temporary copy, or of another machine, has other paths."""
    away = tmp_path / "run-4711"
    harbour.root.rename(away)
    harbour.backup("2025-06-19 03:00:00", str(away), host="pier")
    away.rename(harbour.root)
    write_log(harbour.root / "logs" / "a.jsonl", OTHER)
    nights(harbour, 20)
    (copy,) = harbour.look(phrase(), policy="rewrite").residue
    assert copy.where.startswith("1 snapshot (2025-06-19)")
    assert "another place" in copy.why
    assert not copy.fixable


def test_a_git_history_around_a_site_is_looked_into(newest: Harbour) -> None:
    log = newest.root / "logs" / "a.jsonl"
    write_log(log, SECRET)
    git = ["git", "-C", str(newest.root), "-c", "user.name=k", "-c", "user.email=k@example.org"]
    for words in (["init", "-q"], ["add", "logs"], ["commit", "-q", "-m", "the first log"]):
        subprocess.run([*git, *words], check=True)
    write_log(log, OTHER)
    nights(newest, 20)
    (copy,) = newest.look(phrase(), policy="rewrite").residue
    assert "git history" in copy.why
    assert not copy.fixable


def test_data_that_no_snapshot_needs_is_looked_at_until_it_is_pruned(harbour: Harbour) -> None:
    nights(harbour, 18)
    write_log(harbour.root / "logs" / "a.jsonl", OTHER)
    nights(harbour, 19, 20)
    oldest = harbour.snapshots()[0]["id"]
    harbour.run("forget", "-q", oldest)
    (copy,) = harbour.look(phrase(), **PLAN).residue
    assert copy.where == "1 piece of data that no snapshot needs"
    assert copy.until == datetime(2025, 6, 21, 3, 30, tzinfo=UTC)
    # By default prune may leave it there for ever.
    (copy,) = harbour.look(phrase(), **{**PLAN, "max_unused": None}).residue
    assert copy.until is None
    harbour.run("prune", "-q", "--max-unused", "0")
    assert harbour.look(phrase(), **PLAN).is_clean


def test_a_part_of_a_file_that_cannot_be_judged_is_said(newest: Harbour) -> None:
    write_log(newest.root / "logs" / "a.jsonl", OTHER)
    (newest.root / "logs" / "big.jsonl.gz").write_bytes(os.urandom(5000))
    nights(newest, 18)
    (newest.root / "logs" / "big.jsonl.gz").unlink()
    nights(newest, 19)
    newest.run("forget", "-q", newest.snapshots()[0]["id"])
    (gap,) = newest.look(phrase()).gaps
    assert "cannot be judged" in gap.why
    (copy,) = newest.look(phrase(), **PLAN).residue
    assert "may hold it" in copy.why
    assert copy.until == datetime(2025, 6, 21, 3, 30, tzinfo=UTC)


def test_a_site_that_no_snapshot_holds_is_not_checked(newest: Harbour) -> None:
    write_log(newest.root / "logs" / "a.jsonl", SECRET)
    (newest.root / "other").write_text("no log")
    newest.backup("2025-06-20 03:00:00", str(newest.root / "other"))
    look = newest.look(phrase())
    assert "no snapshot holds anything" in look.gaps[0].why
    assert not look.is_clean


def test_a_site_behind_a_server_is_not_checked(newest: Harbour) -> None:
    write_log(newest.root / "logs" / "a.jsonl", OTHER)
    nights(newest, 20)
    adapter = newest.adapter()
    logs = newest.covered("logs")
    server = Covered(Site("server", newest.root), (), logs.open)
    site = Site("backups", newest.root, covers={"logs": logs, "server": server})
    with type(adapter)(site, adapter.settings) as looking:
        gaps = [item for item in looking.residue(phrase()) if getattr(item, "why", "")]
    assert [gap.problem for gap in gaps] == [ProblemCode.BYTES_NOT_VISIBLE]  # type: ignore[union-attr]  # only those have a why


def test_snapshots_say_which_sites_they_hold_whole(harbour: Harbour) -> None:
    nights(harbour, 18)
    harbour.backup("2025-06-19 03:00:00", str(harbour.root / "logs"))
    harbour.backup("2030-01-01 03:00:00", "--exclude", "b.jsonl", str(harbour.root))
    with harbour.adapter() as adapter:
        found = [(one.taken.day, sorted(one.sites)) for one in adapter.snapshots()]
    assert found == [(1, ["notes"]), (19, ["logs"]), (18, ["logs", "notes"])]


def test_check_says_what_the_rules_mean(harbour: Harbour) -> None:
    nights(harbour, 19, 20)
    with harbour.adapter(**PLAN) as adapter:
        said = list(adapter.check())
    assert all(one.ok for one in said)
    text = " ".join(one.sentence for one in said)
    for words in (f"restic {harbour.version}", "2 snapshots", "goes by itself on 2025-06-23"):
        assert words in text
    with harbour.adapter() as adapter:
        assert "no end date" in " ".join(one.sentence for one in adapter.check())


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"repository": "/nowhere/at/all"}, ProblemCode.UNREACHABLE),
        ({"password_file": None, "password_command": "echo wrong"}, ProblemCode.NO_PERMISSION),
        ({"program": "no-such-restic"}, ProblemCode.UNREACHABLE),
    ],
    ids=["repository", "password", "program"],
)
def test_what_keeps_it_from_looking_is_told_apart(
    harbour: Harbour, settings: dict[str, Any], problem: ProblemCode
) -> None:
    with pytest.raises(StoreError) as caught:
        harbour.look(phrase(), **settings)
    assert caught.value.problem == problem
    assert isinstance(caught.value, Permanent)


def test_a_damaged_repository_proves_nothing(harbour: Harbour) -> None:
    nights(harbour, 20)
    for pack in (harbour.repository / "data").rglob("*"):
        if pack.is_file():
            pack.chmod(0o600)
            pack.write_bytes(b"\0" * pack.stat().st_size)
    with pytest.raises(StoreError):
        assert not harbour.look(phrase("words for a fresh look at damage")).is_clean


_LOOK = """
import sys
from pathlib import Path
from tests.support.restic_repos import Harbour, phrase
harbour = Harbour("0.18", Path(sys.argv[1]), Path(sys.argv[2]))
harbour.cover("logs", "jsonl", {"path": "logs", "id": "id"})
harbour.look(phrase(), program=sys.argv[3])
"""


def test_private_copies_go_also_when_the_look_is_killed(newest: Harbour, tmp_path: Path) -> None:
    write_log(newest.root / "logs" / "a.jsonl", SECRET)
    nights(newest, 20)
    program, notes = wrapper("0.18", tmp_path, '[ "$1" = restore ] && sleep 3')
    copies = tmp_path / "copies"
    copies.mkdir()
    here = Path(__file__).resolve().parents[2]
    child = subprocess.Popen(
        [sys.executable, "-c", _LOOK, str(newest.root), str(newest.repository), str(program)],
        env={**os.environ, "TMPDIR": str(copies), "PYTHONPATH": f"{here}:{here / 'adapters'}"},
    )
    end = time.monotonic() + 30
    while "restore" not in (notes.read_text() if notes.exists() else ""):
        assert time.monotonic() < end
        assert child.poll() is None
        time.sleep(0.05)
    assert list(copies.glob("purge-private-*"))
    child.send_signal(signal.SIGKILL)
    child.wait()
    end = time.monotonic() + 10
    while list(copies.glob("purge-private-*")):
        assert time.monotonic() < end
        time.sleep(0.1)
    # restic ends with the look, or it would make the folder again and go on filling it.
    time.sleep(4)
    assert not list(copies.iterdir())
    assert not restic("0.18", newest.repository, "list", "locks", "--no-lock").strip()
