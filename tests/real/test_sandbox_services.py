"""The servers of the sandbox end with the process that started them, however it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from purge.errors import MissingDriver
from purge_adapters._sandbox import services
from purge_adapters._sandbox.services import Services

TOOLS = Path(__file__).parents[2] / ".tools" / "bin"
HOLD = """
import sys, time
from pathlib import Path
from purge_adapters._sandbox.services import Services
with Services(Path(sys.argv[1])) as services:
    print("up", flush=True)
    time.sleep(120)
"""


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{TOOLS}{os.pathsep}{os.environ['PATH']}")


def servers(folder: Path) -> list[int]:
    """The processes that were told of the folder or work in it, this test's own apart."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            works_in = (place / "cwd").readlink()
        except OSError:
            continue
        told = any(str(folder).encode() in word for word in words[1:])
        if (told and b"-c" not in words) or works_in.is_relative_to(folder):
            found.append(int(place.name))
    return found


def wait_until_none(folder: Path) -> list[int]:
    left = servers(folder)
    for _ in range(100):
        if not left:
            break
        time.sleep(0.1)
        left = servers(folder)
    return left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_outlives_the_process(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert len(servers(tmp_path)) >= 2, "the look must see the servers while they run"
    process.send_signal(number)
    process.wait(30)
    process.stdout.close()
    assert wait_until_none(tmp_path) == []


def test_it_leaves_no_socket_behind(tmp_path: Path) -> None:
    before = set(Path("/tmp").glob("seaweedfs-*.sock"))
    with Services(tmp_path) as services:
        mine = {path for port in services._ports for path in sockets_of(port)}
        assert mine, "the look must see the sockets while the server runs"
    assert not any(path.exists() for path in mine - before)


def sockets_of(port: int) -> list[Path]:
    return list(Path("/tmp").glob(f"seaweedfs-*-{port}.sock"))


def test_what_was_written_is_there_again_after_a_restart(tmp_path: Path) -> None:
    import redis

    with Services(tmp_path) as first:
        client = redis.Redis.from_url(first.environment["REDIS_URL"])
        client.set("kept", "yes")
        client.close()
    with Services(tmp_path) as second:
        client = redis.Redis.from_url(second.environment["REDIS_URL"])
        assert client.get("kept") == b"yes"
        client.close()
        keys = json.loads((tmp_path / "s3.json").read_text())
    assert (tmp_path / "s3.json").stat().st_mode & 0o077 == 0
    assert keys["identities"][0]["credentials"]
    assert wait_until_none(tmp_path) == []


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDriver, match="redis-server, weed, restic"):
        Services(tmp_path)


def test_a_command_runs_beside_them_and_its_exit_code_is_kept(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit(7 if os.environ['REDIS_URL'].startswith('unix:') else 1)"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "purge_adapters._sandbox", str(tmp_path)),
            *(sys.executable, "-c", script),
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (7, "")
    assert wait_until_none(tmp_path) == []


def test_a_port_that_is_taken_meanwhile_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        real, tried = services._free_ports, []

        def ports(count: int) -> list[int]:
            found = real(count)
            tried.append(found)
            return [taken.getsockname()[1]] * (len(tried) == 1) + found[(len(tried) == 1) :]

        monkeypatch.setattr(services, "_free_ports", ports)
        with Services(tmp_path) as running:
            assert running.environment["S3_ENDPOINT_URL"].endswith(str(tried[-1][3]))
    assert len(tried) == 2
