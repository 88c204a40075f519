"""Who else holds a file open."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purge_adapters._files import Holder, holders, unseen_processes
from purge_adapters._processes import Openers, lease_openers, leases_work, release_lease

HOLD = """
import os, sys
os.open(sys.argv[1], getattr(os, sys.argv[2]))
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(path: Path, flag: str) -> Iterator[int]:
    """Hold a file open in another process; give its id."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", HOLD, str(path), flag],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert int(process.stdout.readline()) == process.pid
        yield process.pid
        process.stdin.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "below" / "a.log"
    made.parent.mkdir()
    made.write_text("x")
    return made


@pytest.mark.parametrize(
    ("flag", "writes"), [("O_RDONLY", False), ("O_WRONLY", True), ("O_RDWR", True)]
)
def test_a_holder_is_seen_with_what_it_may_do(path: Path, flag: str, writes: bool) -> None:
    with another_process(path, flag) as pid:
        assert holders([path]) == (Holder(pid, writes, deleted=False),)
    assert holders([path]) == ()


def test_a_holder_is_seen_under_another_name_of_the_file(path: Path) -> None:
    other = path.with_name("other.log")
    os.link(path, other)
    with another_process(other, "O_RDONLY") as pid:
        assert [holder.pid for holder in holders([path])] == [pid]


def test_a_folder_stands_for_all_below_it_also_what_is_deleted(path: Path) -> None:
    folder = path.parent.parent
    beside = folder.with_name(folder.name + "-beside")
    beside.mkdir()
    with another_process(path, "O_WRONLY") as pid:
        assert holders([folder]) == (Holder(pid, writes=True, deleted=False),)
        assert holders([beside]) == ()
        path.unlink()
        assert holders([folder]) == (Holder(pid, writes=True, deleted=True),)
        assert holders([path]) == ()


def test_this_process_is_no_other(path: Path) -> None:
    with path.open("a"):
        assert holders([path, path.parent]) == ()


def test_a_missing_file_has_no_holder(tmp_path: Path) -> None:
    assert holders([tmp_path / "nothing"]) == ()


def test_the_kernel_tells_who_has_a_file_open(path: Path) -> None:
    assert leases_work(path)
    with path.open("rb") as stream:
        descriptor = stream.fileno()
        assert lease_openers(descriptor) is Openers.NONE
        release_lease(descriptor)
        with another_process(path, "O_RDONLY"):
            assert lease_openers(descriptor) is Openers.READERS
            release_lease(descriptor)
        with another_process(path, "O_WRONLY"):
            assert lease_openers(descriptor) is Openers.WRITERS


def test_a_writer_waits_for_the_lease_and_this_process_lives_on(path: Path) -> None:
    with path.open("rb") as stream:
        assert lease_openers(stream.fileno()) is Openers.NONE
        with subprocess.Popen(
            [sys.executable, "-I", "-c", "import sys; open(sys.argv[1], 'a')", str(path)]
        ) as writer:
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(timeout=0.5)
            release_lease(stream.fileno())
            assert writer.wait(timeout=10) == 0
        # A second lease: giving up the first one must not have brought the deadly signal back.
        assert lease_openers(stream.fileno()) is Openers.NONE
        with subprocess.Popen(
            [sys.executable, "-I", "-c", "import sys; open(sys.argv[1], 'a')", str(path)]
        ) as writer:
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(timeout=0.5)
            release_lease(stream.fileno())
            assert writer.wait(timeout=10) == 0


def test_where_all_processes_can_be_seen_it_says_so() -> None:
    seen = all(
        os.access(f"/proc/{name}/fd", os.R_OK) for name in os.listdir("/proc") if name.isdigit()
    )
    assert unseen_processes() is not seen
