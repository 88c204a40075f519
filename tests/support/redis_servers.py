"""Real Redis servers for tests, each a process of its own in a private folder.

A program that is missing fails the test with one sentence. A server ends with the process that
started it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import redis

PASSWORD: Final = "p w#1:/@%é?"
"""It breaks whatever does not quote it."""
PATIENCE_S: Final = 20.0
SOCKETS: Final = tempfile.gettempdir()
"""Where sockets lie: their paths must be short, and tests change the folder for temporary files."""
PROGRAM: Final = "redis-server"
TOOLS: Final = Path(__file__).resolve().parents[2] / ".tools" / "bin"


def program() -> str:
    """Return the path of redis-server.

    Raises:
        FileNotFoundError: there is none.
    """
    path = os.pathsep.join([str(TOOLS), os.environ.get("PATH", os.defpath)])
    found = shutil.which(PROGRAM, path=path)
    if found is None:
        raise FileNotFoundError("redis-server is missing: run 'make tools' to fetch it.")
    return found


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """One redis-server, on a socket unless a port is given.

    Args:
        folder: its own folder, which must exist.
        options: further options, as on its command line.
        port: a TCP port; 0: none.
        password: of the default user.
    """

    folder: Path
    options: Sequence[str] = ()
    port: int = 0
    password: str | None = PASSWORD
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _sockets: str = ""

    @property
    def socket_path(self) -> str:
        """Where its socket lies."""
        return f"{self._sockets}/r.sock"

    @property
    def url(self) -> str:
        """How it is named in a manifest."""
        return self.url_of("", self.password)

    def url_of(self, user: str, password: str | None) -> str:
        """Return the url for a user."""
        secret = "" if password is None else f"{quote(user, '')}:{quote(password, '')}@"
        if self.port:
            return f"redis://{secret}127.0.0.1:{self.port}/0"
        return f"unix://{secret}{self.socket_path}"

    def start(self) -> Server:
        """Start it and wait until it answers."""
        if not self._sockets:
            self._sockets = tempfile.mkdtemp(prefix="rs", dir=SOCKETS)
        secret = [] if self.password is None else ["--requirepass", self.password]
        self._process = subprocess.Popen(
            [
                *(program(), "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--unixsocket", self.socket_path, "--dir", str(self.folder)),
                *("--logfile", f"{self._sockets}/log", "--save", "", *secret, *self.options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return self
            except redis.RedisError:
                if self._process.poll() is not None or time.monotonic() > give_up:
                    said = Path(self._sockets, "log")
                    text = said.read_text() if said.exists() else ""
                    raise RuntimeError(f"redis-server did not start: {text[-500:]}") from None
                time.sleep(0.01)

    def client(self, database: int = 0) -> redis.Redis:
        """Return a new client, whose answers are bytes."""
        return redis.Redis(
            unix_socket_path=self.socket_path, password=self.password, db=database, protocol=2
        )

    def kill(self) -> None:
        """End it without a chance to save anything."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it and take its socket away."""
        self.kill()
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = ""


def saved(client: Any) -> None:
    """Make a dump, once the server has time for it."""
    client.execute_command("SAVE")
