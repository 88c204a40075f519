"""A file is replaced whole or not at all, and loses nothing of what others do to it meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from purge_adapters import _replace
from purge_adapters._files import (
    Changed,
    Held,
    fingerprint,
    is_abandoned,
    new_digest,
    replace_file,
    sweep,
)

OLD = b"one\ntwo\nthree\n"
NEW = b"one\nthree\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "a.log"
    made.write_bytes(OLD)
    return made


def writer(data: bytes = NEW) -> Callable[[BinaryIO], None]:
    def write(stream: BinaryIO) -> None:
        stream.write(data)

    return write


def seen(data: bytes = OLD) -> Callable[[], bytes]:
    digest = new_digest()
    digest.update(data)
    return digest.digest


@contextmanager
def held(path: Path, mode: str) -> Iterator[subprocess.Popen[bytes]]:
    """Hold a file open in another process, which appends what it is sent."""
    source = (
        "import sys\n"
        f"held = open(sys.argv[1], {mode!r}, buffering=0)\n"
        "print(flush=True)\n"
        "for line in sys.stdin.buffer: held.write(line); print(flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-I", "-c", source, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        yield process
        process.stdin.close()


def send(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdout.readline()


# --- what a replaced file is like -----------------------------------------------------------------


def test_the_content_is_new_and_nothing_else_is_left(path: Path) -> None:
    replace_file(path, fingerprint(path), writer())
    assert path.read_bytes() == NEW
    assert list(path.parent.iterdir()) == [path]


def test_mode_owner_and_attributes_are_kept(path: Path) -> None:
    # Only root may give files away.
    owner, group = (1234, 2345) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(path, owner, group)
    path.chmod(0o2640)
    os.setxattr(path, "user.origin", b"elsewhere")
    replace_file(path, fingerprint(path), writer())
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (owner, group)
    assert found.st_mode & 0o7777 == 0o2640
    assert os.getxattr(path, "user.origin") == b"elsewhere"


def test_the_new_file_is_nobody_elses_before_it_is_complete(path: Path) -> None:
    path.chmod(0o644)
    modes: list[int] = []

    def write(stream: BinaryIO) -> None:
        (made,) = path.parent.glob(".purge-new-*")
        modes.append(made.stat().st_mode & 0o777)
        stream.write(NEW)

    replace_file(path, fingerprint(path), write)
    assert modes == [0o600]


def test_a_reader_never_sees_a_part(path: Path) -> None:
    states: list[bytes] = []

    def write(stream: BinaryIO) -> None:
        for byte in NEW:
            stream.write(bytes((byte,)))
            states.append(path.read_bytes())

    replace_file(path, fingerprint(path), write)
    assert set(states) == {OLD}


def test_an_error_while_writing_leaves_all_as_it_was(path: Path) -> None:
    def write(stream: BinaryIO) -> None:
        stream.write(b"half")
        raise OSError("the disk is full")

    before = fingerprint(path)
    with pytest.raises(OSError, match="full"):
        replace_file(path, before, write)
    assert fingerprint(path) == before
    assert list(path.parent.iterdir()) == [path]


# --- a file that changes --------------------------------------------------------------------------


def rewritten(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nTHREE\n")


def cut(path: Path) -> None:
    os.truncate(path, 4)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(OLD)
    other.replace(path)


def grown_and_rewritten(path: Path) -> None:
    path.write_bytes(b"ONE\ntwo\nthree\nfour\n")


CHANGES = [rewritten, cut, replaced, grown_and_rewritten]


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed_before_is_not_replaced(
    path: Path, change: Callable[[Path], None]
) -> None:
    before = fingerprint(path)
    change(path)
    content = path.read_bytes()
    with pytest.raises(Changed):
        replace_file(path, before, writer(), seen=seen())
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_it_is_written_is_not_replaced(
    path: Path, change: Callable[[Path], None]
) -> None:
    def write(stream: BinaryIO) -> None:
        stream.write(NEW)
        change(path)

    with pytest.raises(Changed):
        replace_file(path, fingerprint(path), write, seen=seen())
    assert path.read_bytes() != NEW
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_is_gone_is_not_made_again(path: Path) -> None:
    def write(stream: BinaryIO) -> None:
        path.unlink()

    with pytest.raises(FileNotFoundError):
        replace_file(path, fingerprint(path), write)
    assert list(path.parent.iterdir()) == []


def test_what_was_appended_before_is_carried_over(path: Path) -> None:
    before = fingerprint(path)
    with path.open("ab") as stream:
        stream.write(b"four\n")
    replace_file(path, before, writer(), seen=seen())
    assert path.read_bytes() == NEW + b"four\n"


def test_what_is_appended_while_it_is_written_is_carried_over(path: Path) -> None:
    def write(stream: BinaryIO) -> None:
        stream.write(NEW)
        with path.open("ab") as other:
            other.write(b"four\n")

    replace_file(path, fingerprint(path), write, seen=seen())
    assert path.read_bytes() == NEW + b"four\n"


def test_a_file_that_grew_has_changed_when_the_caller_cannot_vouch_for_its_beginning(
    path: Path,
) -> None:
    before = fingerprint(path)
    with path.open("ab") as stream:
        stream.write(b"four\n")
    with pytest.raises(Changed):
        replace_file(path, before, writer())
    assert path.read_bytes() == OLD + b"four\n"


# --- others that have it open ---------------------------------------------------------------------


def test_a_writer_forbids_it(path: Path) -> None:
    with held(path, "ab"), pytest.raises(Held):
        replace_file(path, fingerprint(path), writer(), seen=seen(), patience_s=0.05)
    assert path.read_bytes() == OLD
    assert list(path.parent.iterdir()) == [path]


def test_a_writer_that_leaves_in_time_is_waited_for(path: Path) -> None:
    with held(path, "ab") as process:
        assert process.stdin is not None
        threading.Timer(0.3, process.stdin.close).start()
        replace_file(path, fingerprint(path), writer(), seen=seen(), patience_s=10)
    assert path.read_bytes() == NEW


def test_a_reader_keeps_what_it_has_and_forbids_nothing(path: Path) -> None:
    with held(path, "rb") as process:
        replace_file(path, fingerprint(path), writer())
        assert path.read_bytes() == NEW
        old = [
            link
            for link in Path(f"/proc/{process.pid}/fd").iterdir()
            if os.readlink(link) == f"{path} (deleted)"
        ]
        assert [link.read_bytes() for link in old] == [OLD]


def test_a_reader_that_cannot_be_seen_forbids_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its old bytes would live on, and no later look could tell.
    with held(path, "rb"):
        monkeypatch.setattr(_replace, "holders", lambda _: ())
        with pytest.raises(Held):
            replace_file(path, fingerprint(path), writer(), patience_s=0.05)
    assert path.read_bytes() == OLD


class LateWriter:
    """Opens the old file at the very moment at which the new one takes its name."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._link = os.link
        self.stream: BinaryIO | None = None
        monkeypatch.setattr(os, "replace", self._replace_after_opening)

    def _replace_after_opening(self, source: Path, target: Path) -> None:
        if self.stream is None:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-c",
                    "import sys\n"
                    "held = open(sys.argv[1], 'ab', buffering=0)\n"  # waits for the lease
                    "held.write(b'late\\n')\n"
                    "sys.stdin.read()\n"
                    "held.write(b'later\\n')\n",
                    str(self._path),
                ],
                stdin=subprocess.PIPE,
            )
            self.stream = self.process.stdin  # type: ignore[assignment]  # a pipe of bytes
            waits = Path(f"/proc/{self.process.pid}/wchan")
            end = time.monotonic() + 10
            while "break_lease" not in waits.read_text() and time.monotonic() < end:
                time.sleep(0.01)
        os.rename(source, target)

    def leave(self) -> None:
        assert self.stream is not None
        self.stream.close()
        self.process.wait(timeout=10)


def test_what_a_late_writer_appends_to_the_old_file_is_carried_over(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = LateWriter(path, monkeypatch)
    timer = threading.Timer(1.5, late.leave)
    timer.start()
    replace_file(path, fingerprint(path), writer(), seen=seen(), patience_s=20)
    timer.join()
    assert path.read_bytes() == NEW + b"late\nlater\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_late_writer_that_stays_gets_its_file_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = LateWriter(path, monkeypatch)
    with pytest.raises(Held):
        replace_file(path, fingerprint(path), writer(), seen=seen(), patience_s=1)
    assert path.read_bytes() == OLD + b"late\n"
    late.leave()
    assert path.read_bytes() == OLD + b"late\nlater\n"
    assert list(path.parent.iterdir()) == [path]


# --- interrupted ----------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from purge_adapters import _replace
path = Path(sys.argv[1])
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(_replace, sys.argv[2], die)
before = _replace.fingerprint(path)
_replace.replace_file(path, before, lambda stream: stream.write(b"one\\nthree\\n"))
"""


def kill_at(path: Path, function: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), function],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


def left_in(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[1][:3] for path in folder.glob(".purge-*"))


@pytest.mark.parametrize(
    ("function", "content", "left"),
    [
        ("_copy_attributes", OLD, ["new"]),
        ("_swap", OLD, ["new"]),
        ("_sync_folder", NEW, ["old"]),
        ("_settle", NEW, ["old"]),
        ("carry_over", NEW, ["old"]),
    ],
)
def test_a_killed_replacement_is_whole_and_cleaned_up_by_the_next(
    path: Path, function: str, content: bytes, left: list[str]
) -> None:
    kill_at(path, function)
    assert path.read_bytes() == content
    assert left_in(path.parent) == left
    assert all(is_abandoned(item) for item in path.parent.glob(".purge-*"))
    replace_file(path, fingerprint(path), writer())
    assert path.read_bytes() == NEW
    assert list(path.parent.iterdir()) == [path]


def test_lines_that_a_late_writer_left_in_the_old_file_are_not_lost_by_a_kill(path: Path) -> None:
    kill_at(path, "_settle")
    (old,) = path.parent.glob(".purge-old*")
    with old.open("ab") as late:
        late.write(b"late\n")
    sweep(path.parent)
    assert path.read_bytes() == NEW + b"late\n"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_living_process_works_on_is_not_swept(path: Path) -> None:
    other = path.with_name("b.log")
    other.write_bytes(OLD)
    done: list[bool] = []

    def write(stream: BinaryIO) -> None:
        (mine,) = path.parent.glob(".purge-new-*")
        assert not is_abandoned(mine)
        sweep(path.parent)
        done.append(mine.exists())
        stream.write(NEW)

    replace_file(path, fingerprint(path), write)
    assert done == [True]


@pytest.mark.parametrize("name", [".purge-mine", ".purge-new-1-2-3-4", "purge-new-1-1-1-1", ".x"])
def test_files_of_others_are_never_taken_for_left_ones(path: Path, name: str) -> None:
    mine = path.with_name(name)
    mine.write_text("x")
    assert not is_abandoned(mine)
    sweep(path.parent)
    assert mine.exists()


def test_two_that_replace_at_once_do_not_tear_the_file(path: Path) -> None:
    lines = [f"line {number}\n".encode() for number in range(200)]
    path.write_bytes(b"".join(lines))

    def drop(which: int) -> None:
        for number in range(which, 200, 4):
            while True:
                before = fingerprint(path)
                data = path.read_bytes()
                kept = b"".join(line for line in data.splitlines(True) if line != lines[number])
                try:
                    replace_file(path, before, writer(kept), seen=seen(data))
                except (Changed, Held, FileNotFoundError):
                    continue
                break

    pids = []
    for which in (0, 2):
        if (pid := os.fork()) == 0:
            try:
                drop(which)
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    assert path.read_bytes() == b"".join(lines[1::2])
    assert list(path.parent.iterdir()) == [path]
