"""Logs that others write while a record is taken out of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purge.adapter import Action, ProblemCode
from purge.testing.breakages import held_open
from purge.testing.case import Case, ids, phrase
from tests.support.jsonl_logs import TEXT, Logs, as_line, said

APPENDER = """
import json, os, sys, time
# Opens, appends one line and closes, as most loggers do, until it is told to stop.
path, name = sys.argv[1:]
number = 0
print(flush=True)
while not os.path.exists(path + ".stop"):
    with open(path, "a") as stream:
        stream.write(json.dumps({"id": f"{name}-{number}", "text": "A line " + "x" * 200}) + "\\n")
    number += 1
    time.sleep(0.001)
print(number, flush=True)
"""


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


@contextmanager
def appenders(path: Path, *names: str) -> Iterator[dict[str, int]]:
    """Let other processes append all the time; at the end, give how many lines each wrote."""
    written: dict[str, int] = {}
    running = {
        name: subprocess.Popen(
            [sys.executable, "-I", "-c", APPENDER, str(path), name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    }
    for process in running.values():
        assert process.stdout is not None
        process.stdout.readline()
    try:
        yield written
    finally:
        stop = path.with_name(path.name + ".stop")
        stop.touch()
        for name, process in running.items():
            written[name] = int(process.communicate(timeout=30)[0])
        stop.unlink()


def purge_all(case: Case, names: list[str]) -> None:
    """Remove records one by one, as often as it takes for each."""
    for name in names:
        end = time.monotonic() + 60
        while matches := case.find(ids(name)).matches:
            left = case.remove(matches)
            assert {item.problem for item in left} <= {
                ProblemCode.HELD_OPEN,
                ProblemCode.CHANGED_UNDERNEATH,
            }
            assert time.monotonic() < end


@pytest.mark.parametrize("count", [1, 2])
def test_no_line_is_lost_while_others_append(logs: Logs, count: int) -> None:
    targets = [f"gone-{number}" for number in range(12)]
    logs.write(*(said(name, TEXT) for name in targets), said("kept", "a"))
    with appenders(logs.path(), *"ab"[:count]) as written:
        purge_all(logs.case(), targets)
        time.sleep(0.2)
    lines = [json.loads(line) for line in logs.bytes_of().splitlines()]
    expected = {f"{name}-{number}" for name, total in written.items() for number in range(total)}
    assert min(written.values()) > 20
    assert {line["id"] for line in lines} == expected | {"kept"}
    assert len(lines) == len(expected) + 1
    assert os.listdir(logs.path().parent) == ["a.jsonl"]


def test_purges_of_several_processes_do_not_undo_each_other(logs: Logs) -> None:
    targets = [f"gone-{number}" for number in range(24)]
    gone = [said(name, TEXT) for name in targets]
    kept = [said(f"kept-{number}", "a") for number in range(24)]
    logs.write(*(line for pair in zip(gone, kept, strict=True) for line in pair))
    children = []
    for part in range(3):
        if (pid := os.fork()) == 0:
            status = 1
            try:
                purge_all(logs.case(), targets[part::3])
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert logs.bytes_of() == b"".join(map(as_line, kept))
    assert os.listdir(logs.path().parent) == ["a.jsonl"]


def test_a_file_that_a_writer_holds_open_is_left_alone(logs: Logs) -> None:
    written = logs.write(said("x", TEXT), said("kept", "a"))
    logs.write(said("y", TEXT), name="logs/b.jsonl")
    found = logs.case().find(phrase(TEXT))
    with held_open([logs.path()]):
        before = logs.path().stat()
        left = logs.case().remove(found.matches)
        assert [(item.match.id, item.problem) for item in left] == [("x", ProblemCode.HELD_OPEN)]
        assert logs.path().stat() == before
        assert TEXT not in left[0].sentence
    assert logs.bytes_of() == b"".join(written)
    assert logs.bytes_of("logs/b.jsonl") == b""
    assert logs.case().remove(logs.case().find(phrase(TEXT)).matches) == ()
    assert logs.bytes_of() == written[1]


def test_what_a_reader_still_has_is_residue_until_it_lets_go(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("kept", "a"))
    case = logs.case()
    found = case.find(phrase(TEXT))
    with held_open([logs.path()], writing=False):
        assert case.remove(found.matches) == ()
        looked = case.residue(phrase(TEXT), found.matches)
        (item,) = looked.residue
        assert item.why == "deleted inode still held open"
        assert item.where.startswith("logs/a.jsonl (process ")
        assert (item.until, item.fixable) == (None, False)
    assert case.residue(phrase(TEXT), found.matches).residue == ()


def test_a_reader_that_waits_for_more_is_no_residue_if_it_never_saw_the_record(logs: Logs) -> None:
    logs.write(said("x", TEXT))
    logs.write(said("kept", "a"), said("y", "other"), name="logs/b.jsonl")
    case = logs.case()
    with held_open([logs.path("logs/b.jsonl")], writing=False):
        case.purge(ids("y"))
        assert case.purge(ids("x")).after.residue == ()


# --- what changed between the look and the removal ------------------------------------------------


def test_a_file_that_grew_or_was_shifted_is_no_obstacle(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("kept", "a"))
    found = logs.case().find(ids("x"))
    logs.write(said("new", "n"), said("kept", "a"), said("x", TEXT), said("newer", "m"))
    assert logs.case().remove(found.matches) == ()
    assert logs.bytes_of() == b"".join(
        map(as_line, (said("new", "n"), said("kept", "a"), said("newer", "m")))
    )


@pytest.mark.parametrize("action", [Action.DELETE, Action.BLANK])
def test_a_record_that_changed_is_left_and_the_others_go(logs: Logs, action: Action) -> None:
    logs.write(said("x", TEXT), said("y", TEXT))
    found = logs.case(action).find(phrase(TEXT))
    changed = as_line(said("x", "something else"))
    logs.write(changed, said("y", TEXT))
    left = logs.case(action).remove(found.matches)
    assert [(item.match.id, item.problem) for item in left] == [
        ("x", ProblemCode.CHANGED_UNDERNEATH)
    ]
    rest = as_line(said("y", "")) if action is Action.BLANK else b""
    assert logs.bytes_of() == changed + rest


def test_another_record_of_the_same_length_in_its_place_is_not_taken_for_it(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("y", "a"))
    found = logs.case().find(ids("x"))
    others = [as_line(said("z", TEXT)), as_line(said("y", "a"))]
    logs.write(*others)
    assert logs.case().remove(found.matches) == ()
    assert logs.bytes_of() == b"".join(others)
    logs.write(*others, said("x", TEXT))
    assert logs.case().remove(found.matches) == ()
    assert logs.bytes_of() == b"".join(others)


def test_only_as_many_lines_go_as_were_found(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("kept", "a"))
    found = logs.case().find(ids("x"))
    logs.write(said("kept", "a"), said("x", TEXT), said("x", TEXT))
    assert logs.case().remove(found.matches) == ()
    assert logs.bytes_of() == b"".join(map(as_line, (said("kept", "a"), said("x", TEXT))))


def test_the_end_of_a_line_that_was_being_written_is_not_left_over(logs: Logs) -> None:
    whole = as_line(said("x", f"{TEXT} and the rest of the words"))
    logs.write(said("kept", "a"), whole[:50])
    found = logs.case().find(phrase(TEXT))
    assert len(found.matches) == 1
    logs.write(said("kept", "a"), whole)
    left = logs.case().remove(found.matches)
    assert [item.problem for item in left] in ([], [ProblemCode.CHANGED_UNDERNEATH])
    assert logs.bytes_of() == as_line(said("kept", "a")) + whole
    assert logs.case().purge(phrase(TEXT)).read_back.matches == ()
    assert logs.bytes_of() == as_line(said("kept", "a"))


def test_the_end_of_a_line_that_comes_while_its_beginning_is_cut_is_not_left_over(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = as_line(said("x", f"{TEXT} and the rest of the words"))
    logs.write(said("kept", "a"), whole[:50])
    found = logs.case().find(phrase(TEXT))
    fsync = os.fsync

    def append_first(descriptor: int) -> None:
        monkeypatch.undo()
        with logs.path().open("ab") as stream:
            stream.write(whole[50:])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", append_first)
    logs.case().remove(found.matches)
    assert logs.bytes_of() == as_line(said("kept", "a")) + whole


def test_a_file_that_went_away_is_said(logs: Logs) -> None:
    logs.write(said("x", TEXT))
    logs.write(said("kept", "a"), name="logs/b.jsonl")
    found = logs.case().find(ids("x"))
    logs.path().rename(logs.folder / "elsewhere.jsonl")
    left = logs.case().remove(found.matches)
    assert [item.problem for item in left] == [ProblemCode.UNREACHABLE]


def test_a_file_that_became_a_link_is_not_written_through_it(logs: Logs) -> None:
    logs.write(said("x", TEXT))
    logs.write(said("kept", "a"), name="logs/b.jsonl")
    found = logs.case().find(ids("x"))
    moved = logs.folder / "moved.jsonl"
    logs.path().rename(moved)
    logs.path().symlink_to(moved)
    left = logs.case().remove(found.matches)
    assert [item.problem for item in left] == [ProblemCode.UNREACHABLE]
    assert moved.read_bytes() == as_line(said("x", TEXT))


def test_a_file_that_changes_while_it_is_looked_at_is_said(logs: Logs) -> None:
    logs.write(*(said(f"kept-{number}", "x" * 1000) for number in range(4000)))
    with logs.case().open() as adapter:
        looking = adapter.find(phrase(TEXT))
        original = os.stat(logs.path())
        stop = threading.Event()

        def overwrite() -> None:
            while not stop.is_set():
                with logs.path().open("r+b") as stream:
                    stream.write(b"{")

        thread = threading.Thread(target=overwrite)
        thread.start()
        try:
            time.sleep(0.05)
            gaps = [item for item in looking if getattr(item, "problem", None)]
        finally:
            stop.set()
            thread.join()
    assert logs.path().stat().st_ino == original.st_ino
    assert [gap.problem for gap in gaps] == [  # type: ignore[union-attr]  # those with a problem
        ProblemCode.CHANGED_UNDERNEATH
    ]
