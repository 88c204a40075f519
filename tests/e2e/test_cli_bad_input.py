"""Bad input at the command line: one clear sentence, the right exit code, nothing changed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from purge.cli.app import main
from purge.errors import ExitCode

LESSON = "the staging database may be wiped at any time"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def said(self) -> str:
        return " ".join((self.out + self.err).split())


Purge = Callable[..., Ended]


@pytest.fixture
def purge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Purge:
    """Runs the command line in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PURGE_MANIFEST", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["purge", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0 if code is None else 1, *said)

    return run


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A manifest with logs and notes, and the lesson in both."""
    logs, notes = tmp_path / "logs", tmp_path / "notes"
    logs.mkdir()
    notes.mkdir()
    lines = [{"uuid": "l1", "text": LESSON}, {"uuid": "l2", "text": "hello"}]
    (logs / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (notes / "n.md").write_text(f"# One\n\n{LESSON}\n\n# Two\n\nkept\n")
    (tmp_path / "purge.yaml").write_text(
        "purge: 1\nname: t\nsites:\n"
        "  logs: {adapter: jsonl, path: logs, id: uuid}\n"
        "  notes: {adapter: markdown, path: notes, record: section}\n"
    )
    return tmp_path


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".lock" not in path.name
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], ExitCode.USAGE, "Usage"),
        (["forget"], ExitCode.USAGE, "No such command"),
        (["request"], ExitCode.USAGE, "Nothing is named"),
        (["request", "--phrase", ""], ExitCode.USAGE, "The phrase is empty"),
        (["request", "--phrase", " \u200b "], ExitCode.USAGE, "The phrase is empty"),
        (["request", "--id", ""], ExitCode.USAGE, "The id is empty"),
        (["request", "--id", "logs:"], ExitCode.USAGE, "The id is empty"),
        (["request", "--phrase", LESSON, "--scope", "x"], ExitCode.USAGE, "KEY=VALUE"),
        (["request", "--phrase", LESSON, "--scope", "a=b"], ExitCode.USAGE, "maps the scope 'a'"),
        (["request", "--subject", "user-1"], ExitCode.USAGE, "maps a 'subject' field"),
        (["request", "--phrase", LESSON, "--show", "--apply"], ExitCode.USAGE, "dry run"),
        (["request", "--phrase", LESSON, "--show"], ExitCode.USAGE, "terminal"),
        (["request", "--phrase", LESSON, "--expect", "-1"], ExitCode.USAGE, "expect"),
        (["request", "--phrase", "hello"], ExitCode.REFUSED, "5 columns wide"),
        (["request", "--phrase", "hello", "--apply"], ExitCode.REFUSED, "--expect 1"),
        (["request", "--phrase", LESSON, "--expect", "7", "--apply"], ExitCode.REFUSED, "logs 1"),
        (["request", "--phrase", "it stands nowhere"], ExitCode.INCOMPLETE, "not a deletion"),
        (["status", "01ABCDEF"], ExitCode.ERROR, "ledger"),
        (["verify", "01ABCDEF"], ExitCode.ERROR, "ledger"),
        (["resume", "01ABCDEF"], ExitCode.ERROR, "ledger"),
        (["withdraw", "01ABCDEF"], ExitCode.ERROR, "ledger"),
        (["report", "01ABCDEF"], ExitCode.ERROR, "ledger"),
        (["ledger", "verify"], ExitCode.ERROR, "ledger"),
        (["ledger", "verify", "--noted", "x"], ExitCode.USAGE, "EVENTS:HEAD"),
        (["report", "01ABCDEF", "--format", "pdf"], ExitCode.USAGE, "pdf"),
        (["check", "--manifest", "nowhere.yaml"], ExitCode.USAGE, "nowhere.yaml"),
    ],
)
def test_each_is_one_sentence_and_changes_nothing(
    memory: Path, purge: Purge, arguments: list[str], code: ExitCode, said: str
) -> None:
    before = state_of(memory)
    ended = purge(*arguments)
    assert ended.code == code, ended
    assert said in ended.said
    assert "Traceback" not in ended.said
    assert state_of(memory) == before


@pytest.mark.parametrize(
    "arguments",
    [["status", "01ABCDEF"], ["verify", "01ABCDEF"], ["resume", "01ABCDEF"], ["report", "zzzzzz"]],
)
def test_an_unknown_request_is_named(memory: Path, purge: Purge, arguments: list[str]) -> None:
    assert purge("request", "--phrase", LESSON, "--apply").code == ExitCode.DONE
    ended = purge(*arguments)
    assert ended.code == ExitCode.USAGE
    assert "No request has this id" in ended.said


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("purge: [1", "purge.yaml:"),
        ("purge: 1\nname: t\nsites: {}\n", "sites"),
        ("purge: 9\nname: t\nsites: {a: {adapter: jsonl, path: logs}}\n", "version 1"),
        ("purge: 1\nname: t\nsites: {a: {adapter: jsnol, path: x}}\n", "jsonl"),
        ("purge: 1\nname: t\nsites: {a: {adapter: jsonl, path: '${LOG_DIR}'}}\n", "LOG_DIR"),
        ("purge: 1\nname: t\nsites: {a: {adapter: jsonl, path: ../x}}\n", "root"),
        ("purge: 1\nname: t\nsites: {a: {adapter: jsonl, pth: x}}\n", "pth"),
        (
            "purge: 1\nname: t\nsites: {a: {adapter: jsonl, path: x, derived_from: {b: c}}}\n",
            "no such site",
        ),
    ],
)
def test_a_wrong_manifest_says_where(memory: Path, purge: Purge, manifest: str, said: str) -> None:
    (memory / "purge.yaml").write_text(manifest)
    for arguments in (["check"], ["request", "--phrase", LESSON, "--apply"]):
        ended = purge(*arguments)
        assert ended.code == ExitCode.USAGE, ended
        assert said in ended.said
        assert "purge.yaml" in ended.said


def test_all_faults_of_a_manifest_are_told_at_once(memory: Path, purge: Purge) -> None:
    (memory / "purge.yaml").write_text(
        "purge: 1\nname: t\nsites:\n"
        "  a: {adapter: jsnol, path: x}\n"
        "  b: {adapter: jsonl, path: ../x}\n"
        "  c: {adapter: jsonl, path: '${UNSET_VARIABLE}'}\n"
    )
    ended = purge("check", "--json")
    assert ended.code == ExitCode.USAGE
    error = json.loads(ended.err)
    assert error["schema"] == "purge/error/1"
    faults = error["error"]["faults"]
    for line, word in ((4, "jsnol"), (5, "root"), (6, "UNSET_VARIABLE")):
        assert any(f":{line}:" in fault and word in fault for fault in faults), (line, faults)


def test_no_manifest_at_all(purge: Purge) -> None:
    ended = purge("check")
    assert ended.code == ExitCode.USAGE
    assert "purge.yaml" in ended.said


def test_a_store_that_is_not_there(memory: Path, purge: Purge) -> None:
    (memory / "logs").rename(memory / "elsewhere")
    ended = purge("check")
    assert ended.code == ExitCode.ERROR
    assert "✗" in ended.out
    done = purge("request", "--phrase", LESSON, "--apply", "--json")
    assert done.code == ExitCode.INCOMPLETE
    steps = {step["site"]: step for step in done.json["steps"]}
    assert steps["logs"]["state"] == "accepted"
    assert steps["logs"]["problem"]["code"] == "unreachable"
    assert steps["notes"]["state"] == "confirmed-deleted"


def test_a_store_that_may_not_be_read(memory: Path) -> None:
    (memory / "logs" / "a.jsonl").chmod(0)
    for path in (memory, *memory.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    # Root may read everything, so it becomes somebody else, once all that is imported is there.
    code = (
        "import os\n"
        "from purge.cli.app import main\n"
        "if os.geteuid() == 0:\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit:\n"
        "        os.setgroups([]); os.setegid(65534); os.seteuid(65534)\n"
        "print('=====', flush=True)\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "request", "--phrase", LESSON, "--json"],
        cwd=memory,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in ended.stderr
    steps = json.loads(ended.stdout.split("=====")[1])["steps"]
    logs = next(step for step in steps if step["site"] == "logs")
    assert logs["problem"]["code"] in ("no-permission", "not-checked")
    assert logs["found"] == 0


def test_json_errors_are_one_object_on_standard_error(memory: Path, purge: Purge) -> None:
    ended = purge("request", "--phrase", "", "--json")
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert json.loads(ended.err)["error"]["code"] == "usage"


def test_a_reason_that_holds_the_words_is_refused(memory: Path, purge: Purge) -> None:
    ended = purge("request", "--phrase", LESSON, "--reason", f"since {LESSON}", "--apply")
    assert ended.code == ExitCode.REFUSED
    assert LESSON not in ended.said
    assert LESSON in (memory / "logs" / "a.jsonl").read_text()
