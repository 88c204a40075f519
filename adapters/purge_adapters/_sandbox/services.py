"""The servers of the sandbox: a Redis and an S3 server of its own, and where its backups lie.

They listen on this machine alone, keep their files below the sandbox's folder, and end with the
process that started them, however it ends. Also a program of its own:

    python -m purge_adapters._sandbox FOLDER COMMAND [ARGUMENT ...]

starts them on the files of a sandbox that was built, runs the command in its folder and stops
them again. It may not import the core, nor any adapter.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn, Self

from purge.errors import MissingDriver, Permanent, Refused
from purge_adapters._sandbox.looking import CACHE

PROGRAMS: Final = ("redis-server", "weed", "restic")
BUCKET: Final = "kettle-exports"
REGION: Final = "us-east-1"
_PATIENCE_S: Final = 60.0
_DIE_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def check_programs() -> None:
    """Say which programs are missing.

    Raises:
        MissingDriver: one is.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise MissingDriver(
            f"The sandbox runs real servers and needs {', '.join(missing)} on the PATH. "
            "'make demo' fetches what is missing (weed is SeaweedFS); or install it yourself."
        )


def program_folders() -> str:
    """Return where the programs and this Python's own lie, as a part of PATH."""
    found = [shutil.which(name) for name in PROGRAMS]
    places = [str(Path(sys.executable).parent), *(str(Path(one).parent) for one in found if one)]
    return os.pathsep.join(dict.fromkeys(places))


class Services:
    """The servers of one sandbox, running while the context lasts.

    Args:
        folder: of the sandbox.

    Raises:
        MissingDriver: a program is missing.
        Permanent: a server does not start.
        Refused: they run already, for somebody else.
    """

    def __init__(self, folder: Path) -> None:
        check_programs()
        self.folder = folder.resolve()
        self._processes: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
        self._short: Path | None = None
        self._lock: int | None = None
        self._ports: list[int] = []
        self._handlers: dict[int, Any] = {}
        self.environment: Mapping[str, str] = {}
        """What the manifest and plain clients need to reach them."""

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError):  # Only a main thread may catch signals.
                self._handlers[number] = signal.signal(number, _end_by_signal)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self) -> None:
        # A socket's path has room for about a hundred characters.
        self._short = Path(tempfile.mkdtemp(prefix="purge-"))
        keys = self._keys()
        self._alone()
        at = self._short / "redis.sock"
        redis = self._start_redis(at)
        self.environment = {
            "REDIS_URL": f"unix://{at}?db=0",
            "AWS_ACCESS_KEY_ID": keys["access"],
            "AWS_SECRET_ACCESS_KEY": keys["secret"],
            "AWS_DEFAULT_REGION": REGION,
            "RESTIC_REPOSITORY": str(self.folder / "backups"),
            "RESTIC_PASSWORD_FILE": str(self.folder / "backups.password"),
            "RESTIC_CACHE_DIR": str(self.folder / "cache"),
        }
        for last in (False, False, True):
            url, s3 = self._start_s3()
            environment = {**self.environment, "S3_ENDPOINT_URL": url}
            try:
                self._wait(
                    "the S3 server",
                    s3,
                    lambda url=url, all_=environment: _is_healthy(url) and _serves(all_),  # type: ignore[misc]  # bound at once
                )
                self.environment = environment
                break
            except Permanent:
                # A port that was free may be taken a moment later; then the server ends at once.
                if last or s3.poll() is None:
                    raise
        self._wait("Redis", redis, lambda: _answers(at))

    def _alone(self) -> None:
        """Hold the sandbox for this process: two servers on the same files would spoil them."""
        self._lock = os.open(self.folder / "s3.json", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                "The servers of this sandbox run already, for another command. Wait for its end."
            ) from None

    def _keys(self) -> dict[str, str]:
        """Return the keys of the S3 server, made once for a sandbox."""
        path = self.folder / "s3.json"
        if not path.exists():
            made = {"access": secrets.token_hex(10), "secret": secrets.token_hex(20)}
            identity = {
                "name": "kettle",
                "credentials": [{"accessKey": made["access"], "secretKey": made["secret"]}],
                "actions": ["Admin", "Read", "List", "Tagging", "Write"],
            }
            path.touch(0o600)
            path.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
        pair = json.loads(path.read_text(encoding="utf-8"))["identities"][0]["credentials"][0]
        return {"access": pair["accessKey"], "secret": pair["secretKey"]}

    def _start_redis(self, at: Path) -> subprocess.Popen[bytes]:
        folder = self.folder / CACHE
        folder.mkdir(exist_ok=True)
        return self._run(
            [
                *("redis-server", "--port", "0", "--unixsocket", str(at), "--dir", str(folder)),
                *("--appendonly", "yes", "--save", "3600 1", "--daemonize", "no"),
            ],
            folder,
            ends_by=signal.SIGTERM,
        )

    def _start_s3(self) -> tuple[str, subprocess.Popen[bytes]]:
        folder = self.folder / "s3"
        folder.mkdir(exist_ok=True)
        ports = self._ports = _free_ports(10)
        names = ("master", "volume", "filer", "s3")
        options = [f"-{name}.port={ports[n]}" for n, name in enumerate(names)]
        options += [f"-{name}.port.grpc={ports[n + 4]}" for n, name in enumerate(names)]
        process = self._run(
            [
                *("weed", "-logtostderr=true", "server", "-s3", f"-dir={folder}"),
                *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", *options),
                *(f"-s3.port.iceberg={ports[8]}", f"-s3.port.lance={ports[9]}"),
                f"-s3.config={self.folder / 's3.json'}",
                # With fewer, larger volumes the third bucket finds no room (tried with 4.48).
                *("-volume.max=300", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"),
                # One server alone. Without it the parts miss each other every other time, and the
                # first object can be read five seconds later.
                "-master.peers=none",
            ],
            folder,
            # Asked to end it takes more than two seconds (4.48). What it has answered is in its
            # files either way.
            ends_by=signal.SIGKILL,
        )
        return f"http://127.0.0.1:{ports[3]}", process

    def _run(
        self, command: Sequence[str], folder: Path, ends_by: signal.Signals
    ) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{folder.name}.log").open("ab")
        with log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for this program, which stops the servers itself.
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        self._processes.append((process, ends_by))
        return process

    def _wait(self, name: str, process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
        give_up = time.monotonic() + _PATIENCE_S
        while not ready():
            if process.poll() is not None or time.monotonic() > give_up:
                raise Permanent(
                    f"{name} of the sandbox does not start. Its log is in {self.folder}."
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End the servers. Ending them twice is harmless."""
        for process, ends_by in self._processes:
            process.send_signal(ends_by)
        for process, _ in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        for port in self._ports:
            # SeaweedFS 4.48 makes sockets there, whatever folder it is given, and leaves them.
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)
        if self._short is not None:
            shutil.rmtree(self._short, ignore_errors=True)
            self._short = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()


def _end_by_signal(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise SystemExit(128 + number)


_LIBRARY: Final = ctypes.CDLL(None)
"""Opened here: between fork and exec is no time to."""


def _die_with_parent() -> None:
    """Let a server end when this process is killed without a chance to stop it (Linux)."""
    _LIBRARY.prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _answers(at: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(at))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=1):
            return True
    except OSError:
        return False


def s3_client(environment: Mapping[str, str]) -> Any:
    """Return a plain client of the sandbox's S3 server."""
    import boto3  # type: ignore[import-untyped]  # no types in it
    from botocore.config import Config  # type: ignore[import-untyped]  # no types in it

    return boto3.session.Session().client(
        "s3",
        endpoint_url=environment["S3_ENDPOINT_URL"],
        region_name=environment["AWS_DEFAULT_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


def _serves(environment: Mapping[str, str]) -> bool:
    """Whether the bucket takes and gives objects.

    SeaweedFS calls itself healthy some seconds before it does (4.48): until then it answers
    InternalError.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # no types in it

    client = s3_client(environment)
    try:
        names = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
        if BUCKET not in names:
            client.create_bucket(Bucket=BUCKET)
        held = client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
        for item in held:
            client.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
        if not held:
            client.put_object(Bucket=BUCKET, Key="is-it-there", Body=b"yes")
            client.delete_object(Bucket=BUCKET, Key="is-it-there")
    except (BotoCoreError, ClientError):
        return False
    finally:
        client.close()
    return True


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def main(arguments: Sequence[str]) -> int:
    """Run a command while the servers of a sandbox run, and return how it ended."""
    if len(arguments) < 2:
        sys.stderr.write("Usage: ./with-services COMMAND [ARGUMENT ...]\n")
        return 2
    folder = Path(arguments[0])
    try:
        with Services(folder) as services:
            return subprocess.call(
                list(arguments[1:]), cwd=folder, env={**os.environ, **services.environment}
            )
    except (MissingDriver, Permanent, Refused) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
