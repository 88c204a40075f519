"""Real S3 servers for tests: moto's in a thread of this process, and SeaweedFS as a process.

Both are started once for a test process, on free ports, and end with it. A test makes a bucket of
its own. A program that is missing fails the test with one sentence.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import itertools
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ACCESS_KEY: Final = "tests-own-access-key"
SECRET_KEY: Final = "not/a+real=secret"  # characters that break what does not quote them
REGION: Final = "us-east-1"
PATIENCE_S: Final = 60.0
_NUMBERS: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Server:
    """An S3 server that is running."""

    url: str

    def client(self) -> S3Client:
        """Return a new client of it."""
        return client_of(self.url)

    def bucket(self, *, versioned: bool = False, locked: bool = False) -> str:
        """Make a new bucket and return its name."""
        name = f"test-{os.getpid()}-{next(_NUMBERS)}"
        client = self.client()
        if locked:
            client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
        else:
            client.create_bucket(Bucket=name)
        if versioned and not locked:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        client.close()
        return name

    def settings(self, bucket: str) -> dict[str, Any]:
        """Return the connection as a manifest says it."""
        return {
            "bucket": bucket,
            "endpoint_url": self.url,
            "region_name": REGION,
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "addressing_style": "path",
        }


def client_of(url: str) -> S3Client:
    """Return a client that is not the adapter's."""
    from botocore.config import Config  # type: ignore[import-untyped]  # no types in it

    made: S3Client = _session().client(
        "s3",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(s3={"addressing_style": "path"}, max_pool_connections=4),
    )
    return made


@cache
def _session() -> Any:
    import boto3  # type: ignore[import-untyped]  # no types in it

    return boto3.session.Session()


@cache
def moto() -> Server:
    """Return moto's server, in a thread of this process."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    atexit.register(server.stop)
    return Server(f"http://{host}:{port}")


@cache
def seaweed() -> Server:
    """Return a SeaweedFS server.

    Raises:
        RuntimeError: it cannot be had, or does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="s3-server-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    identities = folder / "identities.json"
    identities.write_text(
        json.dumps(
            {
                "identities": [
                    {
                        "name": "tests",
                        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
                        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
                    }
                ]
            }
        )
    )
    data = folder / "data"
    data.mkdir()
    ports = [_free_port() for _ in range(10)]
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc, *more = ports
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(program("weed")),
                "-logtostderr=true",
                "server",
                "-s3",
                f"-dir={data}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                f"-master.port={master}",
                f"-master.port.grpc={master_grpc}",
                f"-volume.port={volume}",
                f"-volume.port.grpc={volume_grpc}",
                f"-filer.port={filer}",
                f"-filer.port.grpc={filer_grpc}",
                f"-s3.port={s3}",
                f"-s3.port.grpc={s3_grpc}",
                f"-s3.port.iceberg={more[0]}",
                f"-s3.port.lance={more[1]}",
                f"-s3.config={identities}",
                # One server alone: its parts need not look for others, which takes seconds.
                "-master.peers=none",
                # Each bucket takes seven volumes: with fewer the third finds no room (4.48).
                "-volume.max=5000",
                "-master.volumeSizeLimitMB=64",
                "-master.telemetry=false",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    atexit.register(_remove_sockets, ports)
    atexit.register(_end, process)
    url = f"http://127.0.0.1:{s3}"
    _wait(url, process, folder / "log")
    return Server(url)


def program(name: str) -> Path:
    """Return a program that tests need.

    Raises:
        RuntimeError: it is missing; the sentence says what to do.
    """
    place = Path(__file__).resolve().parents[1] / "setup" / "tools.py"
    spec = importlib.util.spec_from_file_location("purge_tests_tools", place)
    assert spec is not None
    assert spec.loader is not None
    tools = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tools
    spec.loader.exec_module(tools)
    try:
        found: Path = tools.ensure(name)
    except tools.CannotFetch as reason:
        raise RuntimeError(str(reason)) from None
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server takes a bucket: it answers before it can keep anything."""
    client = client_of(url)
    give_up = time.monotonic() + PATIENCE_S
    while True:
        if process.poll() is not None or time.monotonic() > give_up:
            _end(process)
            tail = log.read_text(errors="replace").splitlines()[-3:]
            raise RuntimeError(f"SeaweedFS did not start: {' | '.join(tail)}")
        with contextlib.suppress(Exception):
            urllib.request.urlopen(f"{url}/healthz", timeout=1).close()
            client.create_bucket(Bucket="is-it-there")
            client.put_object(Bucket="is-it-there", Key="yes", Body=b"yes")
            client.close()
            return
        time.sleep(0.2)


def _remove_sockets(ports: Sequence[int]) -> None:
    """Take away the sockets that it makes outside of its folder and leaves there."""
    for port in ports:
        for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            left.unlink(missing_ok=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)
