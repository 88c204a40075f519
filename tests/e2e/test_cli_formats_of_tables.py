"""A database that nobody has seen, described in a manifest and purged by the command line."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

SAID = "Juhani pays the ferryman in smoked herring"
MANIFEST = """
purge: 1
name: voyage
timezone: Europe/Helsinki
sites:
  journal:
    adapter: sql
    url: sqlite:///voyage.db
    format:
      tables:
        voyages:
          id: code
          text: [name]
        days:
          text: [log.weather, log.remarks]
          time: noted_at
          belongs_to: {voyages: voyage}
        sightings:
          text: [words]
          belongs_to: {days: {column: day, to: nr}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "purge.yaml").write_text(MANIFEST)
    with closing(sqlite3.connect(tmp_path / "voyage.db", isolation_level=None)) as database:
        database.execute("PRAGMA secure_delete = OFF")
        database.executescript(
            """
            CREATE TABLE voyages (code TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE days (nr INTEGER PRIMARY KEY, voyage TEXT, noted_at TEXT, log TEXT);
            CREATE TABLE sightings (key TEXT PRIMARY KEY, day INTEGER, words TEXT);
            """
        )
        log = {"weather": "fog until noon", "remarks": [SAID, "sails mended"]}
        database.executemany(
            "INSERT INTO voyages VALUES (?, ?)",
            [("voyage-east", f"East ({SAID})"), ("voyage-west", "West, by night")],
        )
        database.executemany(
            "INSERT INTO days VALUES (?, ?, ?, ?)",
            [
                (1, "voyage-east", "2026-05-01", json.dumps(log)),
                (2, "voyage-west", "2026-05-02", json.dumps({"weather": "clear and cold"})),
            ],
        )
        database.executemany(
            "INSERT INTO sightings VALUES (?, ?, ?)",
            [("seal-0001", 1, SAID), ("tern-0002", 1, "two terns"), ("seal-0003", 2, "one seal")],
        )
    return tmp_path


def ask(folder: Path, *arguments: str, code: int = 0) -> Any:
    ended = subprocess.run(
        [sys.executable, "-m", "purge", *arguments, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PURGE_MANIFEST"},
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def rows(folder: Path, table: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "voyage.db")) as database:
        return database.execute(f"SELECT * FROM {table}").fetchall()


def test_words_are_taken_out_of_all_tables(folder: Path) -> None:
    assert ask(folder, "check")["ok"] is True
    assert ask(folder, "request", "--phrase", SAID)["to_remove"] == 3
    done = ask(folder, "request", "--phrase", SAID, "--apply")
    assert done["state"] == "confirmed-deleted"
    assert [(step["found"], step["removed"]) for step in done["steps"]] == [(3, 3)]
    assert rows(folder, "voyages") == [("voyage-east", ""), ("voyage-west", "West, by night")]
    assert json.loads(rows(folder, "days")[0][3]) == {
        "weather": "fog until noon",
        "remarks": ["", "sails mended"],
    }
    assert [row[0] for row in rows(folder, "sightings")] == ["tern-0002", "seal-0003"]
    assert SAID.encode() not in (folder / "voyage.db").read_bytes()
    assert ask(folder, "verify", done["request"]["id"])["state"] == "confirmed-deleted"


def test_a_voyage_goes_with_its_days_and_sightings(folder: Path) -> None:
    done = ask(folder, "request", "--id", "journal:voyage-east", "--apply")
    assert done["state"] == "confirmed-deleted"
    assert [row[0] for row in rows(folder, "voyages")] == ["voyage-west"]
    assert [row[0] for row in rows(folder, "days")] == [2]
    assert [row[0] for row in rows(folder, "sightings")] == ["seal-0003"]
    assert b"fog until noon" not in (folder / "voyage.db").read_bytes()


def test_what_goes_with_a_record_counts_for_the_limits(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "voyage.db")) as database, database:
        database.executemany(
            "INSERT INTO sightings VALUES (?, 1, 'gull')", [(f"gull-{at}",) for at in range(40)]
        )
    ask(folder, "request", "--id", "journal:voyage-east", "--apply", code=4)
    assert len(rows(folder, "sightings")) == 43


def test_a_mistake_in_the_description_is_one_sentence(folder: Path) -> None:
    text = MANIFEST.replace("voyages: voyage}", "voyage: voyage}")
    (folder / "purge.yaml").write_text(text)
    checked = ask(folder, "check", code=1)
    assert "days.belongs_to.voyage: the site has no table 'voyage'." in json.dumps(checked)
    (folder / "purge.yaml").write_text(MANIFEST.replace("time: noted_at", "tiem: noted_at"))
    ended = subprocess.run(
        [sys.executable, "-m", "purge", "check"], cwd=folder, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "Did you mean 'time'?" in ended.stdout + ended.stderr
