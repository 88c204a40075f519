"""The proof: canaries in every kind of site, purged by the program, and looked for without it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from purge.engine.crash import POINTS, VARIABLE
from tests.e2e import canaries

ALL = {"phrase", "curly", "upper", "decomposed", "wide", "row note", "vector note", "vector"}
COMMAND = ["request", "--phrase", "-", "--apply", "--json", "--reason", "asked for by its owner"]
OF_A_SWEEP = {"swept", "closed"}
"""Points that a request does not pass; tests of the sweep kill it there."""
FEW = {"planned", "remove.intended", "sanitize.done", "judged"}
"""One of each phase; all of them take minutes."""
WITHOUT_SANITIZE = """
import sys
from purge.engine.sites import Removed, Sites
Sites.sanitize = lambda self, name, residue: Removed()
from purge.cli.app import main
main()
"""


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memory, built once; tests work on copies."""
    folder = tmp_path_factory.mktemp("planted")
    canaries.build(folder)
    return folder


@pytest.fixture
def memory(planted: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    shutil.copytree(planted, folder)
    return folder


def run(
    folder: Path, *arguments: str, crash: str | None = None, program: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program as a user does; the phrase goes through standard input."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if crash is not None:
        environment[VARIABLE] = crash
    code = ["-c", program] if program else ["-m", "purge"]
    return subprocess.run(
        [sys.executable, *code, *arguments],
        cwd=folder,
        env=environment,
        input=canaries.PHRASE,
        capture_output=True,
        text=True,
        timeout=300,
    )


def assert_gone(folder: Path, before: dict[str, Any]) -> None:
    """Without any code of purge: no canary is left, and every neighbour is as it was."""
    assert canaries.canaries(folder) == {}
    canaries.assert_neighbours(canaries.look(folder), before)


def assert_true(report: dict[str, Any]) -> None:
    """Every statement of the report agrees with what was planted and what is left."""
    assert report["schema"] == "purge/report/1"
    assert report["applied"] is True
    assert report["state"] == "confirmed-deleted"
    assert report["settled"] is True
    assert report["until"] is None
    assert {step["site"]: step["found"] for step in report["steps"]} == canaries.COUNTS
    for step in report["steps"]:
        assert step["state"] == "confirmed-deleted", step
        assert step["removed"] == step["found"], step
        assert (step["left"], step["residue"], step["not_checked"]) == (0, [], []), step
        assert step["problem"] is None, step
        evidence = step["evidence"]
        assert evidence["kind"] == "bytes", step
        assert evidence["control"], step
        assert all(evidence["control"].values()), step
    by_site = {step["site"]: step for step in report["steps"]}
    assert by_site["vectors"]["evidence"]["control"].keys() >= {"id", "text", "metadata", "vector"}
    assert by_site["memories"]["evidence"]["control"].keys() >= {"id", "text", "metadata"}


def test_nothing_is_left_and_every_statement_is_true(memory: Path) -> None:
    before = canaries.look(memory)
    found = canaries.canaries(memory)
    assert found.keys() >= ALL, "the look without purge must see what was planted"
    dry = run(memory, *[word for word in COMMAND if word != "--apply"])
    assert dry.returncode == 0, dry.stderr
    assert canaries.canaries(memory) == found
    would = {step["site"]: step["to_remove"] for step in json.loads(dry.stdout)["steps"]}
    done = run(memory, *COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert_gone(memory, before)
    assert_true(report)
    assert would == {step["site"]: step["removed"] for step in report["steps"]}
    for said in (dry.stdout, done.stdout, done.stderr, dry.stderr):
        assert "7731" not in said
        assert "canary" not in said
    again = run(memory, *COMMAND)
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout)["request"]["id"] == report["request"]["id"]
    assert_gone(memory, before)


def test_without_the_clean_up_the_same_proof_fails_and_nothing_is_claimed(memory: Path) -> None:
    before = canaries.look(memory)
    done = run(memory, *COMMAND, program=WITHOUT_SANITIZE)
    assert done.returncode == 3, done.stdout + done.stderr
    report = json.loads(done.stdout)
    with pytest.raises(AssertionError):
        assert_gone(memory, before)
    left = {
        place.split("/")[1] for places in canaries.canaries(memory).values() for place in places
    }
    assert left >= {"memories.db", "chroma"}
    states = {step["site"]: step["state"] for step in report["steps"]}
    assert states["memories"] == states["vectors"] == "removed-from-reads"


@pytest.mark.parametrize(
    "point",
    [
        *(
            pytest.param(point, marks=[] if point in FEW else pytest.mark.long)
            for point in POINTS
            if point not in OF_A_SWEEP
        ),
        "remove.done@vectors",
        pytest.param("remove.done@summaries", marks=pytest.mark.long),
        pytest.param("remove.recorded@memories", marks=pytest.mark.long),
        pytest.param("sanitize.done@vectors", marks=pytest.mark.long),
    ],
)
def test_a_killed_run_is_finished_by_running_it_again(memory: Path, point: str) -> None:
    before = canaries.look(memory)
    killed = run(memory, *COMMAND, crash=point)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    done = run(memory, *COMMAND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_gone(memory, before)
    report = json.loads(done.stdout)
    assert_true(report)
    checked = run(memory, "ledger", "verify")
    assert checked.returncode == 0, checked.stderr
