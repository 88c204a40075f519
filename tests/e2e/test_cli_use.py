"""The commands as somebody uses them, on real files."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

LESSON = "the staging database may be wiped at any time"


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    logs, notes = tmp_path / "logs", tmp_path / "notes"
    logs.mkdir()
    notes.mkdir()
    lines = [{"uuid": "l1", "text": LESSON}, {"uuid": "l2", "text": "hello"}]
    (logs / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (notes / "n.md").write_text(f"# One\n\n{LESSON}\n\n# Two\n\nkept\n")
    (tmp_path / "purge.yaml").write_text(
        "purge: 1\nname: t\ntimezone: Asia/Tokyo\nsites:\n"
        "  logs: {adapter: jsonl, path: logs, id: uuid}\n"
        "  notes: {adapter: markdown, path: notes, record: section}\n"
    )
    return tmp_path


def purge(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "purge", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PURGE_MANIFEST"},
    )


def ask(folder: Path, *arguments: str, stdin: str = "", code: int = 0) -> Any:
    ended = purge(folder, *arguments, "--json", stdin=stdin)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def test_the_life_of_a_request(memory: Path) -> None:
    assert ask(memory, "status")["requests"] == []
    checked = ask(memory, "check")
    assert checked["ok"] is True
    dry = ask(memory, "request", "--phrase", LESSON)
    assert (dry["applied"], dry["to_remove"]) == (False, 2)
    assert "id" not in dry["request"]
    assert all("state" not in step for step in dry["steps"])
    assert not (memory / ".purge").exists()
    done = ask(memory, "request", "--phrase", LESSON, "--apply", "--reason", "wrong")
    id = done["request"]["id"]
    assert done["state"] == "confirmed-deleted"
    assert done["request"]["created"].endswith("+09:00")
    listed = ask(memory, "status")
    assert [(one["id"], one["state"]) for one in listed["requests"]] == [(id, "confirmed-deleted")]
    assert ask(memory, "report", id) == {**done, "asked_before": False}
    assert ask(memory, "status", id[:8]) == ask(memory, "report", id)
    assert ask(memory, "verify", id)["state"] == "confirmed-deleted"
    assert ask(memory, "resume", id)["state"] == "confirmed-deleted"
    assert ask(memory, "ledger", "verify")["ok"] is True
    assert ask(memory, "ledger", "rebuild")["ok"] is True
    assert ask(memory, "report", id)["state"] == "confirmed-deleted"
    assert ask(memory, "withdraw", id)["request"]["id"] == id
    assert purge(memory, "resume", id).returncode == 2
    markdown = purge(memory, "report", id, "--format", "markdown").stdout
    assert f"# Request {id}" in markdown
    assert "| notes | markdown | confirmed-deleted | 1 | 1 | 0 |" in markdown


def test_the_schema_of_manifests_is_json(memory: Path) -> None:
    schema = json.loads(purge(memory, "manifest", "schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "sites" in schema["properties"]


def test_words_can_come_from_standard_input(memory: Path) -> None:
    done = ask(memory, "request", "--phrase", "-", "--apply", stdin=f"{LESSON}\n")
    assert done["state"] == "confirmed-deleted"
    assert done["request"]["targets"] == {"phrase": 1}


def test_two_values_from_standard_input_are_one_a_line(memory: Path) -> None:
    dry = ask(memory, "request", "--phrase", "-", "--phrase", "-", stdin=f"{LESSON}\nkept words ok")
    assert dry["request"]["targets"] == {"phrase": 2}
    few = purge(memory, "request", "--phrase", "-", "--phrase", "-", stdin=LESSON)
    assert few.returncode == 2


def test_nothing_is_drawn_without_a_terminal(memory: Path) -> None:
    ended = purge(memory, "request", "--phrase", LESSON)
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "2 records would be removed" in ended.stdout


def test_on_a_terminal_the_words_are_asked_for_without_echo(memory: Path) -> None:
    said = on_terminal(memory, f"{LESSON}\n", "request", "--phrase", "-", "--show")
    prompt, _, rest = said.partition("What is to be forgotten")
    assert prompt.strip() == ""
    shown = rest.split("Dry run", 1)[0]
    # It stands there as an excerpt of what was found, since --show was given; the first line,
    # where it was typed, does not have it.
    assert LESSON not in shown.split("\n", 1)[0]
    assert LESSON in shown
    assert "would be removed" in rest


def test_without_show_the_words_are_not_printed(memory: Path) -> None:
    said = on_terminal(memory, f"{LESSON}\n", "request", "--phrase", "-")
    assert LESSON not in said
    assert "would be removed" in said


TAKE_TERMINAL = (
    "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "from purge.cli.app import main; main()"
)


def on_terminal(folder: Path, typed: str, *arguments: str) -> str:
    """Run a command on a terminal of its own, type, and return what it showed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *arguments],
        cwd=folder,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "COLUMNS": "160", "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(follower)
    seen = bytearray()
    sent = False
    while select.select([leader], [], [], 120)[0]:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # Linux ends a terminal with EIO when its last user is gone.
            break
        seen += chunk
        if not sent and b"forgotten" in seen:
            while termios.tcgetattr(leader)[3] & termios.ECHO:
                time.sleep(0.01)  # A person types after the prompt has settled.
            os.write(leader, typed.encode())
            sent = True
    process.kill()
    process.wait()
    os.close(leader)
    return seen.decode()
