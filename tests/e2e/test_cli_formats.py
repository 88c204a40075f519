"""Formats in a manifest, through the command line: presets, and one that somebody describes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SAID = "the night ferry code is heron-4471"
MANIFEST = r"""
purge: 1
name: formats
timezone: Europe/Lisbon
sites:
  desk:
    adapter: lines
    path: desk/*.rec
    id: number
    time: at
    subject: caller
    kinds:
      call:
        begins: '#(?P<number>\d+) (?P<at>\S+) (?P<caller>\w+) \|'
        goes_on: ' +\|'
      operator: {each: 'op> ?', placeholder: 'op> --'}
  bank: {adapter: files, path: bank, format: memory-bank, derived_from: {desk: call}}
  coder: {adapter: markdown, path: repo, format: aider}
  bots:
    adapter: files
    path: bots
    derived_from: {desk: source}
    format:
      members:
        - {adapter: jsonl, path: '**/*.jsonl', id: id}
        - {adapter: lines, path: '**/*.out', id: $key}
      others: '**/*.cfg'
"""
DESK = (
    "op> desk opens\n"
    "#17 2026-02-03T09:00:00 ines | good day\n"
    "#18 2026-02-03T09:05:00 rui | please note: the night ferry\n"
    "                            | code is heron-4471\n"
    "op> noted\n"
    "#19 2026-02-03T09:06:00 ines | thanks\n"
)


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def memory(root: Path) -> None:
    write(
        root,
        {
            "purge.yaml": MANIFEST,
            "desk/2026.rec": DESK,
            "bank/MEMORY.md": "# Index\n\n- [ferry](ferry.md)\n- [tides](tides.md)\n",
            "bank/ferry.md": "---\nname: ferry\ncall: '18'\n---\nHow to board at night.\n",
            "bank/tides.md": "---\nname: tides\n---\nHigh at noon.\n",
            "repo/.aider.chat.history.md": f"\n#### {SAID}\n\nI see.\n",
            "bots/a/log.jsonl": json.dumps({"id": "b1", "source": "18", "text": "board late"})
            + '\n{"id":"b2","text":"idle"}\n',
            "bots/a/run.out": f"start\n{SAID}\nend\n",
            "bots/a/bot.cfg": "mode=day\n",
        },
    )


def ask(folder: Path, *arguments: str, code: int = 0) -> Any:
    ended = subprocess.run(
        [sys.executable, "-m", "purge", *arguments, "--json"],
        cwd=folder,
        input="",
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PURGE_MANIFEST"},
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def test_formats_are_purged_through_the_command_line(tmp_path: Path) -> None:
    memory(tmp_path)
    assert ask(tmp_path, "check")["ok"] is True
    dry = ask(tmp_path, "request", "--phrase", SAID)
    assert {step["site"]: step["found"] for step in dry["steps"]} == {
        "desk": 1,
        "bank": 2,
        "coder": 1,
        "bots": 2,
    }
    assert dry["to_remove"] == 6
    done = ask(tmp_path, "request", "--phrase", SAID, "--apply")
    assert done["state"] == "confirmed-deleted"
    assert {step["site"]: step["removed"] for step in done["steps"]} == {
        "desk": 1,
        "bank": 2,
        "coder": 1,
        "bots": 2,
    }
    assert (tmp_path / "desk/2026.rec").read_text() == (
        "op> desk opens\n"
        "#17 2026-02-03T09:00:00 ines | good day\n"
        "op> noted\n"
        "#19 2026-02-03T09:06:00 ines | thanks\n"
    )
    assert (tmp_path / "bank/MEMORY.md").read_text() == "# Index\n\n- [tides](tides.md)\n"
    assert (tmp_path / "repo/.aider.chat.history.md").read_text() == "\nI see.\n"
    assert (tmp_path / "bots/a/log.jsonl").read_text() == '{"id":"b2","text":"idle"}\n'
    assert not (tmp_path / "bots/a/run.out").exists()
    assert ask(tmp_path, "verify", done["request"]["id"])["state"] == "confirmed-deleted"


def test_what_no_member_knows_keeps_a_step_from_being_done(tmp_path: Path) -> None:
    memory(tmp_path)
    (tmp_path / "bots/a/bot.cfg").write_text(f"hint={SAID}\n")
    done = ask(tmp_path, "request", "--phrase", SAID, "--apply", code=3)
    steps = {step["site"]: step for step in done["steps"]}
    assert steps["desk"]["state"] == "confirmed-deleted"
    assert steps["bots"]["state"] not in ("confirmed-deleted", "removed-from-reads")
    assert steps["bots"]["problem"]["code"] == "unsupported"
    assert "bots/a/bot.cfg" in steps["bots"]["problem"]["sentence"]
    assert SAID not in json.dumps(done)


def test_a_subject_is_a_named_group(tmp_path: Path) -> None:
    memory(tmp_path)
    done = ask(tmp_path, "request", "--subject", "ines", "--apply", "--keep-sources", code=0)
    assert {step["site"]: step["removed"] for step in done["steps"]}["desk"] == 2
    left = (tmp_path / "desk/2026.rec").read_text()
    assert "ines" not in left
    assert "rui" in left


def test_faults_of_a_format_are_said_with_their_place(tmp_path: Path) -> None:
    memory(tmp_path)
    text = MANIFEST.replace("'#(?P<number>", "'#(?P<numer>").replace(
        "format: aider", "format: adier"
    )
    (tmp_path / "purge.yaml").write_text(text)
    ended = subprocess.run(
        [sys.executable, "-m", "purge", "check"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 2
    said = " ".join((ended.stdout + ended.stderr).split())
    assert "id: no group and none of 'fields' is called 'number'" in said
    assert "there is no format 'adier'. Did you mean 'aider'?" in said
