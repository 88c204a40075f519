"""Folders for private copies go, however the process that made one ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from purge_adapters._files import private_folder

WORKER = """
import sys, time
from purge_adapters._files import private_folder
with private_folder("copy") as folder:
    (folder / "secret.db").write_text("the crab pot licence")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def start() -> tuple[subprocess.Popen[str], Path]:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert worker.stdout is not None
    return worker, Path(worker.stdout.readline().strip())


def wait_until_gone(folder: Path) -> bool:
    end = time.monotonic() + 10
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not folder.exists()


def test_a_folder_is_private_and_goes_at_the_end(temporary: Path) -> None:
    with private_folder("copy") as folder:
        assert folder.parent == temporary
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "inner").mkdir()
        (folder / "inner" / "secret").write_text("x")
    assert list(temporary.iterdir()) == []


def test_a_folder_goes_after_an_error(temporary: Path) -> None:
    def fail() -> None:
        with private_folder("copy") as folder:
            (folder / "secret").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_folder_goes_when_its_process_is_killed(temporary: Path, how: signal.Signals) -> None:
    worker, folder = start()
    with worker:
        assert (folder / "secret.db").exists()
        # To the whole group, as an interrupt from the keyboard goes.
        os.killpg(worker.pid, how)
        worker.wait(timeout=10)
    assert wait_until_gone(folder)


def test_what_was_left_long_ago_is_swept_and_what_is_in_use_is_not(temporary: Path) -> None:
    worker, in_use = start()
    with worker:
        left = temporary / "purge-private-copy-left"
        left.mkdir(mode=0o700)
        (left / "secret.db").write_text("x")
        with private_folder("copy"):
            # A minute has to pass before a folder that nobody holds counts as left.
            assert left.exists()
        later = time.time() + 3600
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda: later)
            with private_folder("copy"):
                assert not left.exists()
                assert (in_use / "secret.db").exists()
        worker.kill()
    assert wait_until_gone(in_use)
