"""The proof over all kinds of sites: a cache, exports and backups beside the memory itself.

Servers are killed and started again between the phases, and the program at its crash points.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from purge.engine.crash import POINTS, VARIABLE
from tests.e2e import canaries, canaries_backups, canaries_cache, canaries_exports
from tests.e2e.canaries_backups import Backups
from tests.support import restic_repos
from tests.support.redis_servers import Server
from tests.support.s3_servers import ACCESS_KEY, SECRET_KEY

COMMAND = ["request", "--phrase", "-", "--json", "--reason", "asked for by its owner"]
COUNTS = canaries.COUNTS | canaries_cache.COUNTS | canaries_exports.COUNTS
OTHERS = ("cache", "chats", "exports", "backups")
IN_FILES = {"phrase", "curly", "upper", "decomposed", "wide"}
DIES_BEFORE_FORGET = """
import os, signal
from purge_adapters import _restic_rewrite
for kind in vars(_restic_rewrite).values():
    if isinstance(kind, type) and "_forget" in vars(kind):
        kind._forget = lambda self, snapshot: os.kill(os.getpid(), signal.SIGKILL)
from purge.cli.app import main
main()
"""
BackedUp = tuple[canaries_backups.Seen, set[str]]
WITHOUT_SANITIZE = """
import sys
from purge.engine.sites import Removed, Sites
Sites.sanitize = lambda self, name, residue: Removed()
from purge.cli.app import main
main()
"""
OF_A_SWEEP = {"swept", "closed"}
"""Points that a request does not pass; tests of the sweep kill it there."""


@dataclass
class Everywhere:
    """All the stores of one memory, and the servers that run on them."""

    folder: Path
    cache: Server
    exports: canaries_exports.Seaweed

    @classmethod
    def at(cls, folder: Path) -> Everywhere:
        """Return what lies in a folder; no server runs yet."""
        cache = Server(folder / "redis", canaries_cache.OPTIONS)
        return cls(folder, cache, canaries_exports.Seaweed(folder / "s3"))

    @property
    def memory(self) -> Path:
        return self.folder / "memory"

    @property
    def backups(self) -> Backups:
        return Backups(self.folder / "restic", restic_repos.program("0.18"))

    def start(self) -> None:
        self.cache.start()
        self.exports.start()

    def stop(self) -> None:
        self.cache.stop()
        self.exports.stop()

    def restart(self) -> None:
        """Kill the servers, without a chance to save anything, and start them again."""
        self.cache.kill()
        self.exports.kill()
        self.start()

    def run(
        self, *arguments: str, crash: str | None = None, program: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program as a user does."""
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        environment |= {"REDIS_URL": self.cache.url, "S3_URL": self.exports.url}
        environment |= {"S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY}
        environment["PATH"] = f"{restic_repos.TOOLS}:{os.environ['PATH']}"
        if crash is not None:
            environment[VARIABLE] = crash
        code = ["-c", program] if program else ["-m", "purge"]
        return subprocess.run(
            [sys.executable, *code, *arguments],
            cwd=self.memory,
            env=environment,
            input=canaries.PHRASE,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def policy(self, policy: str) -> None:
        """Write the manifest."""
        (self.memory / "purge.yaml").write_text(
            canaries.MANIFEST
            + canaries_cache.SITES
            + canaries_exports.SITES
            + canaries_backups.sites(policy)
        )


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything, built once. Its copies lie at one place: snapshots know where their files lay."""
    home = tmp_path_factory.mktemp("everywhere")
    live = Everywhere.at(home / "live")
    canaries.build(live.memory)
    canaries_cache.build(live.cache.folder)
    canaries_exports.build(live.exports.folder)
    harbour_folder = home / "harbour"
    harbour_folder.mkdir()
    templates = tmp_path_factory.mktemp("restic")
    made = restic_repos.Harbour.make("0.18", harbour_folder, templates)
    live.backups.folder.mkdir()
    shutil.move(made.repository, live.backups.folder / "repository")
    (live.backups.folder / canaries_backups.PASSWORD_FILE).write_text(restic_repos.PASSWORD + "\n")
    canaries_backups.plant(live.backups, live.memory / "data", live.folder / "other")
    live.folder.rename(home / "planted")
    return home


@pytest.fixture
def live(built: Path) -> Iterator[Everywhere]:
    place = built / "live"
    shutil.copytree(built / "planted", place, symlinks=True)
    made = Everywhere.at(place)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(place)


@pytest.fixture(scope="session")
def backed_up(built: Path) -> BackedUp:
    """What restic shows before anything is purged, and which blobs hold a canary."""
    backups = Everywhere.at(built / "planted").backups
    seen = canaries_backups.Seen.of(backups)
    return seen, canaries_backups.holding(backups, built / "blobs", seen.blobs)


@dataclass(frozen=True)
class Look:
    """All that plain clients see."""

    memory: dict[str, Any]
    cache: dict[bytes, Any]
    exports: dict[str, Any]

    @classmethod
    def at(cls, live: Everywhere) -> Look:
        return cls(
            canaries.look(live.memory),
            canaries_cache.look(live.cache),
            canaries_exports.look(live.exports.url),
        )


def assert_gone(live: Everywhere, before: Look) -> None:
    """Without any code of purge: no canary in any store, and every neighbour as it was."""
    assert canaries.canaries(live.memory) == {}
    assert canaries.canaries(live.cache.folder) == {}
    after = Look.at(live)
    canaries.assert_neighbours(after.memory, before.memory)
    assert after.cache == canaries_cache.expected(before.cache)
    canaries_exports.assert_gone(after.exports, before.exports)


def assert_true(report: dict[str, Any]) -> None:
    """Every statement about a site that is no backup agrees with what was planted and is left."""
    assert report["applied"] is True
    steps = {step["site"]: step for step in report["steps"]}
    assert steps.keys() == {*COUNTS, "backups"}
    assert {name: steps[name]["found"] for name in COUNTS} == COUNTS
    for name in COUNTS:
        step = steps[name]
        assert step["state"] == "confirmed-deleted", step
        assert step["removed"] == step["found"], step
        assert (step["left"], step["residue"], step["not_checked"]) == (0, [], []), step
        assert step["problem"] is None, step
        assert step["evidence"]["kind"] == ("api" if name == "exports" else "bytes"), step
        assert step["evidence"]["control"], step
        assert all(step["evidence"]["control"].values()), step
    assert steps["backups"]["removed"] == 0


def assert_out_of_backups(
    live: Everywhere, before: canaries_backups.Seen, holding: set[str]
) -> None:
    """By restic alone: no file of any snapshot and no blob holds it, and all else is as it was."""
    backups = live.backups
    after = canaries_backups.Seen.of(backups)
    data = str(live.memory / "data")
    assert after.about == before.about
    assert after.ids["first"] == before.ids["first"]
    assert after.ids["pier"] == before.ids["pier"]
    for moment, files in after.contents.items():
        had = before.contents[moment]
        folder = live.folder / "unpacked" / moment[0].replace(":", "")
        canaries_backups.unpack(files, folder / "after")
        assert canaries.canaries(folder / "after") == {}, moment
        kept = {name: file for name, file in had.items() if not may_change(name, data)}
        assert kept.keys() == {name for name in files if not may_change(name, data)}
        for name, file in kept.items():
            assert files[name] == file, name
        if any(name.endswith("chroma/chroma.sqlite3") for name in had):
            canaries_backups.unpack(had, folder / "before")
            was, now = (folder / one / data.lstrip("/") for one in ("before", "after"))
            canaries.assert_neighbours(canaries.look(now.parent), canaries.look(was.parent))
    fresh = set(after.blobs) - set(before.blobs)
    assert canaries_backups.holding(backups, live.folder / "blobs", fresh) == set()
    assert not holding & set(after.blobs)
    backups.run("check", "--read-data")
    assert not list((backups.folder / "repository" / "locks").iterdir())
    shutil.rmtree(live.folder / "unpacked")


def may_change(name: str, data: str) -> bool:
    """Whether a file of a snapshot loses a record, or is a folder above what was backed up."""
    losing = ("logs/day.jsonl", "logs/old/week", "notes/", "memories.db", "chroma/", "summaries/")
    return f"{data}/".startswith(f"{name}/") or name.startswith(
        tuple(f"{data}/{one}" for one in losing)
    )


def test_nothing_is_left_anywhere_and_servers_may_die_in_between(
    live: Everywhere, backed_up: BackedUp
) -> None:
    live.policy("rewrite")
    before = Look.at(live)
    found = canaries.canaries(live.memory)
    assert found.keys() >= IN_FILES, "the look without purge must see what was planted"
    in_cache = canaries.canaries(live.cache.folder)
    assert in_cache.keys() >= IN_FILES
    assert {Path(place).suffix for place in in_cache["phrase"]} >= {".rdb", ".aof"}
    in_volumes = canaries_exports.in_volumes(live.exports)
    assert in_volumes
    kept, holding = backed_up
    assert len(holding) >= len(canaries.COUNTS), "the look must see what the backups hold"

    dry = live.run(*COMMAND)
    assert dry.returncode == 0, dry.stdout + dry.stderr
    would = {step["site"]: step["to_remove"] for step in json.loads(dry.stdout)["steps"]}
    live.restart()
    assert Look.at(live) == before
    assert canaries_backups.Seen.of(live.backups) == kept

    done = live.run(*COMMAND, "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    live.restart()
    report = json.loads(done.stdout)
    assert (report["state"], report["until"]) == ("confirmed-deleted", None)
    assert_gone(live, before)
    assert_true(report)
    assert_out_of_backups(live, kept, holding)
    step = report["steps"][-1]
    assert (step["site"], step["state"], step["residue"]) == ("backups", "confirmed-deleted", [])
    assert step["evidence"]["control"].keys() >= {"id", "text", "metadata", "vector"}
    assert {name: count for name, count in would.items() if count} == COUNTS
    live.exports.compact()
    assert canaries_exports.in_volumes(live.exports) == []
    for said in (dry.stdout, dry.stderr, done.stdout, done.stderr):
        assert "7731" not in said
        assert "canary-row" not in said


def test_waiting_backups_have_the_date_that_restic_agrees_with(live: Everywhere) -> None:
    live.policy("wait")
    before = Look.at(live)
    held = {one["id"] for one in live.backups.snapshots() if one.get("tags") == ["a tag"]}
    held |= {one["id"] for one in live.backups.snapshots()[-1:]}
    assert len(held) == 2
    files = canaries_backups.files_of(live.backups.folder / "repository")
    done = live.run(*COMMAND, "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert canaries_backups.files_of(live.backups.folder / "repository") == files
    assert_gone(live, before)
    report = json.loads(done.stdout)
    assert_true(report)
    step = report["steps"][-1]
    assert report["state"] == step["state"] == "backup-retained-until"
    assert report["until"] == step["until"]
    assert step["problem"] is None
    assert step["not_checked"] == []
    assert {place["where"].split(" of ")[1].split(" ")[0] for place in step["residue"]} == set(
        canaries.COUNTS
    )
    night = canaries_backups.drop_night(live.backups, held, live.memory / "data")
    assert datetime.fromisoformat(step["until"]) == night


def test_without_the_clean_up_the_same_proof_fails_and_less_is_claimed(
    live: Everywhere, backed_up: BackedUp
) -> None:
    live.policy("rewrite")
    before = Look.at(live)
    kept, holding = backed_up
    done = live.run(*COMMAND, "--apply", program=WITHOUT_SANITIZE)
    assert done.returncode == 3, done.stdout + done.stderr
    with pytest.raises(AssertionError):
        assert_gone(live, before)
    with pytest.raises(AssertionError):
        assert_out_of_backups(live, kept, holding)
    assert canaries.canaries(live.cache.folder).keys() >= IN_FILES
    assert canaries_exports.held(canaries_exports.look(live.exports.url))
    states = {step["site"]: step["state"] for step in json.loads(done.stdout)["steps"]}
    places = ("cache", "chats", "exports", "memories", "vectors")
    assert {states[name] for name in places} == {"removed-from-reads"}
    # What is not rewritten goes by itself: that much is true.
    assert states["backups"] == "backup-retained-until"


def crash_points() -> list[Any]:
    """One that no other test passes; all of them, and those of each new site, take minutes."""
    few = ["sanitize.done@cache"]
    verbs = [point for point in POINTS if point.startswith(("remove.", "sanitize."))]
    every = [point for point in POINTS if point not in OF_A_SWEEP]
    every += [
        f"{point}@{site}"
        for point in verbs
        for site in OTHERS
        if (point.startswith("sanitize.") or site != "backups")
    ]
    return few + [pytest.param(one, marks=pytest.mark.long) for one in every if one not in few]


@pytest.mark.parametrize("point", crash_points())
def test_a_killed_run_among_killed_servers_is_finished_by_the_next(
    live: Everywhere, backed_up: BackedUp, point: str
) -> None:
    live.policy("rewrite")
    before = Look.at(live)
    kept, holding = backed_up
    killed = live.run(*COMMAND, "--apply", crash=point)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    live.restart()
    done = live.run(*COMMAND, "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_gone(live, before)
    assert_out_of_backups(live, kept, holding)
    report = json.loads(done.stdout)
    assert report["state"] == "confirmed-deleted"
    assert_true(report)
    checked = live.run("ledger", "verify")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.long
def test_a_run_killed_between_two_snapshots_leaves_none_twice(
    live: Everywhere, backed_up: BackedUp
) -> None:
    """The cleaned snapshot was made, the old one not dropped: the next run takes it for its own."""
    live.policy("rewrite")
    kept, holding = backed_up
    killed = live.run(*COMMAND, "--apply", program=DIES_BEFORE_FORGET)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert len(live.backups.snapshots()) == len(kept.about) + 1
    done = live.run(*COMMAND, "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert_out_of_backups(live, kept, holding)
    assert json.loads(done.stdout)["state"] == "confirmed-deleted"
