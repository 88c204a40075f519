"""A format that nobody has seen, described in a manifest and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERON = "the heron sleeps on the third mooring"
MANIFEST = """\
purge: 1
name: lantern
timezone: UTC
sites:
  lantern:
    adapter: json
    path: lantern
    format:
      files:
        - path: threads/*.json
          records:
            - name: thread
              at: thread
              id: id
              text: [title]
              removal: blank
              links:
                - {field: head, to: turn, when_gone: relink, via: before}
                - {field: "order[]", to: turn, when_gone: drop}
                - {field: "by_author.*[]", to: turn, when_gone: drop}
              counts:
                - {field: turn_count, of: "turns[]"}
            - name: turn
              at: thread.turns[]
              id: n
              unique: file
              text: [body.text, notes]
              parts: ["notes[]"]
              links:
                - {field: before, to: turn, when_gone: relink}
                - {field: after, to: turn, when_gone: relink}
                - {field: call, to: turn, when_gone: remove}
              hashes:
                - {field: body.sha, of: body.text, algorithm: sha256}
        - path: index.json
          records:
            - name: thread
              at: state.$json.threads.*
              id: $key
              text: [preview]
              removal: blank
              counts: [{field: marks, records: mark, by: thread}]
          counts: [{field: all_marks, records: mark}]
        - path: marks.ndjson
          records:
            - name: mark
              id: [mark, uid]
              text: [says]
              links: [{field: thread, to: thread, when_gone: remove}]
"""


def _thread(name: str, *turns: dict[str, Any]) -> dict[str, Any]:
    numbers = [turn["n"] for turn in turns]
    return {
        "version": 3,
        "thread": {
            "id": name,
            "title": "Moorings",
            "turn_count": len(turns),
            "head": numbers[-1],
            "order": [str(number) for number in numbers],
            "by_author": {"ida": numbers[::2], "jon": numbers[1::2]},
            "turns": [
                {
                    **turn,
                    "before": numbers[at - 1] if at else None,
                    "after": numbers[at + 1] if at + 1 < len(numbers) else None,
                }
                for at, turn in enumerate(turns)
            ],
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "purge.yaml").write_text(MANIFEST, "utf-8")
    threads = tmp_path / "lantern" / "threads"
    threads.mkdir(parents=True)
    one = _thread(
        "t-one",
        {"n": 1, "body": {"text": "Good morning."}, "weight": 1.0},
        {"n": 2, "body": {"text": f"Look: {HERON}!"}},
        {"n": 3, "call": 2, "body": {"text": "An answer to that."}},
        {"n": 4, "body": {"text": "Rain again."}, "notes": ["dry", HERON]},
        {"n": 5, "body": {"text": HERON.upper()}},
    )
    two = _thread("t-two", {"n": 1, "body": {"text": "x"}}, {"n": 2, "body": {"text": "Calm."}})
    (threads / "one.json").write_text(json.dumps(one, indent=3), "utf-8")
    (threads / "two.json").write_text(json.dumps(two), "utf-8")
    state = {"threads": {"t-one": {"preview": f"... {HERON}", "marks": 2}, "t-two": {"marks": 1}}}
    index = {"all_marks": 3, "state": json.dumps(state)}
    (tmp_path / "lantern" / "index.json").write_text(json.dumps(index), "utf-8")
    marks = [
        {"mark": "m1", "thread": "t-one", "says": HERON},
        {"uid": "m2", "thread": "t-one", "says": "nice"},
        {"mark": "m3", "thread": "t-two", "says": "nice"},
    ]
    (tmp_path / "lantern" / "marks.ndjson").write_text(
        "".join(json.dumps(mark) + "\r\n" for mark in marks), "utf-8", newline=""
    )
    return tmp_path


def _ask(folder: Path, *arguments: str, code: int = 0) -> Any:
    ended = subprocess.run(
        [sys.executable, "-m", "purge", *arguments, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PURGE_MANIFEST"},
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def _load(folder: Path, name: str) -> Any:
    return json.loads((folder / "lantern" / name).read_text("utf-8"))


def test_a_described_format_is_checked_and_purged(folder: Path) -> None:
    untouched = (folder / "lantern/threads/two.json").read_bytes()
    checked = _ask(folder, "check")
    assert checked["ok"] is True
    dry = _ask(folder, "request", "--phrase", HERON)
    done = _ask(folder, "request", "--phrase", HERON, "--apply")
    assert done["state"] == "confirmed-deleted"
    (step,) = done["steps"]
    assert (step["removed"], step["left"]) == (dry["to_remove"], 0)
    thread = _load(folder, "threads/one.json")["thread"]
    assert [turn["n"] for turn in thread["turns"]] == [1, 4]
    assert [(turn["before"], turn["after"]) for turn in thread["turns"]] == [(None, 4), (1, None)]
    assert (thread["turn_count"], thread["head"], thread["order"]) == (2, 4, ["1", "4"])
    assert thread["by_author"] == {"ida": [1], "jon": [4]}
    assert thread["turns"][1]["notes"] == ["dry"]
    index = _load(folder, "index.json")
    threads = json.loads(index["state"])["threads"]
    assert threads == {"t-one": {"preview": "", "marks": 1}, "t-two": {"marks": 1}}
    assert index["all_marks"] == 2
    marks = (folder / "lantern/marks.ndjson").read_bytes()
    assert marks.count(b"\r\n") == marks.count(b"\n") == 2
    # Turns count from 1 in every thread: those of another one are other records.
    assert (folder / "lantern/threads/two.json").read_bytes() == untouched
    assert b'"weight": 1.0' in (folder / "lantern/threads/one.json").read_bytes()


def test_a_second_run_changes_nothing(folder: Path) -> None:
    id = _ask(folder, "request", "--phrase", HERON, "--apply")["request"]["id"]
    before = {path: path.read_bytes() for path in (folder / "lantern").rglob("*.*")}
    assert _ask(folder, "verify", id)["state"] == "confirmed-deleted"
    assert _ask(folder, "resume", id)["state"] == "confirmed-deleted"
    assert {path: path.read_bytes() for path in (folder / "lantern").rglob("*.*")} == before


def test_a_thread_that_is_named_goes_with_what_hangs_on_it(folder: Path) -> None:
    done = _ask(folder, "request", "--id", "lantern:t-one", "--apply")
    assert done["state"] == "confirmed-deleted"
    assert json.loads(_load(folder, "index.json")["state"])["threads"] == {"t-two": {"marks": 1}}
    assert _load(folder, "index.json")["all_marks"] == 1
    assert "thread" not in _load(folder, "threads/one.json")


def test_words_outside_of_all_records_are_told_and_never_passed_over(folder: Path) -> None:
    path = folder / "lantern/threads/two.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "motto": HERON}), "utf-8")
    done = _ask(folder, "request", "--phrase", HERON, "--apply", code=3)
    assert done["state"] == "accepted"
    assert "motto" in path.read_text()


def test_what_is_wrong_with_a_description_is_named(folder: Path) -> None:
    text = MANIFEST.replace("when_gone: drop", "when_gone: dropp", 1).replace(
        "counts:", "count:", 1
    )
    (folder / "purge.yaml").write_text(text, "utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "purge", "check"], cwd=folder, capture_output=True, text=True
    )
    assert ended.returncode == 2
    said = " ".join((ended.stdout + ended.stderr).split())
    assert "links[1].when_gone: is one of: relink, drop, null, remove, keep." in said
    assert "unknown key 'count'. Did you mean 'counts'?" in said


def test_a_route_that_leads_nowhere_is_named(folder: Path) -> None:
    (folder / "purge.yaml").write_text(MANIFEST.replace("thread.turns[]", "thread.turn[]"), "utf-8")
    checked = _ask(folder, "check", code=1)
    said = json.dumps(checked)
    assert "'thread.turn[]' lead anywhere" in said
