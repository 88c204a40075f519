"""Running restic: arguments as lists, the environment passed on, every output read to its end.

The password and the repository (whose address may hold another password) go by the environment,
never by an argument. What restic prints is not passed on in messages: it holds names of files.
Exit codes: restic 0.14 ends with 1 whatever happened; since 0.17 there are 10 (no repository), 11
(locked) and 12 (wrong password). Both are understood (measured with 0.14.0 and 0.18.0).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from purge.adapter import ProblemCode, Site
from purge.errors import Permanent, StoreError, Transient
from purge_adapters import _restic_inside
from purge_adapters._restic_settings import ResticSettings

__all__ = ["Done", "Restic", "repository_folder"]

Version = tuple[int, int]
RETRY_LOCK: Final[Version] = (0, 16)
"""Since when restic itself waits for a lock (``--retry-lock``)."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9]*:")
_VERSION: Final = re.compile(r"restic (\d+)\.(\d+)")
_PAUSE_S: Final = 1.0
_NO_REPOSITORY: Final = 10
_LOCKED: Final = 11
_WRONG_PASSWORD: Final = 12
_BLOCK: Final = 1024 * 1024

_SIGNS: Final[tuple[tuple[str, type[StoreError], ProblemCode, str], ...]] = (
    (
        r"already locked|unable to create lock|lock was not",
        Transient,
        ProblemCode.BUSY,
        "The repository is locked: a backup or a clean-up is running, or one that was killed left "
        "its lock. Locks are not forced here; 'restic unlock' removes those that nobody holds.",
    ),
    (
        r"wrong password or no key found|empty password|Resolving password failed",
        Permanent,
        ProblemCode.NO_PERMISSION,
        "restic has no password that opens the repository.",
    ),
    (
        r"[Pp]ermission denied|[Aa]ccess ?[Dd]enied|403 Forbidden|401 Unauthorized|"
        r"unexpected HTTP response \(40[13]\)|operation not permitted|read-only file system",
        Permanent,
        ProblemCode.NO_PERMISSION,
        "The repository does not allow it.",
    ),
    (
        r"connection refused|no such host|[Tt]imeout|timed out|dial tcp|connection reset|"
        r"unexpected HTTP response \(5\d\d\)",
        Transient,
        ProblemCode.UNREACHABLE,
        "The repository cannot be reached.",
    ),
    (
        r"[Rr]epository does not exist|unable to open config file|Is there a repository|"
        r"repository master key and config",
        Permanent,
        ProblemCode.UNREACHABLE,
        "There is no restic repository at the address given.",
    ),
    (
        r"blob not found|not found in (?:index|repository)|no such file or directory|"
        r"does not exist|no matching ID",
        Transient,
        ProblemCode.CHANGED_UNDERNEATH,
        "Something that the repository lists is not there: it changed meanwhile, or is damaged.",
    ),
    (
        r"ciphertext verification failed|invalid data returned|wrong hash|hash does not match|"
        r"incomplete|corrupt|invalid character|decrypt",
        Permanent,
        ProblemCode.CORRUPT,
        "The repository is damaged; it was left as it is.",
    ),
    (
        r"no space left|disk quota",
        Permanent,
        ProblemCode.UNSUPPORTED,
        "There is no room left on a disk that restic needs.",
    ),
)


def repository_folder(site: Site, settings: ResticSettings) -> Path | None:
    """Return the folder of a repository on this machine; ``None`` for one that is elsewhere."""
    address = settings.repository.strip()
    if address.startswith("local:"):
        address = address.removeprefix("local:")
    elif _SCHEME.match(address):
        return None
    return site.root / address


@dataclass(frozen=True, slots=True)
class Done:
    """How one call of restic ended."""

    code: int
    out: bytes
    said: str
    """Its error output. For telling what went wrong, never for showing."""

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.code == 0

    def problem(self) -> StoreError:
        """Return what its failure means."""
        sign = {_LOCKED: 0, _WRONG_PASSWORD: 1, _NO_REPOSITORY: 4}.get(self.code)
        if sign is not None:
            _, kind, code, sentence = _SIGNS[sign]
            return kind(sentence, problem=code)
        for pattern, kind, code, sentence in _SIGNS:
            if re.search(pattern, self.said):
                return kind(sentence, problem=code)
        return Permanent(
            f"restic failed for a reason that is not known here (exit code {self.code}).",
            problem=ProblemCode.UNREACHABLE,
        )

    @property
    def locked_out(self) -> bool:
        """Whether a lock was in the way."""
        return not self.ok and self.problem().problem == ProblemCode.BUSY

    def must(self) -> Done:
        """Return itself.

        Raises:
            Transient, Permanent: it failed.
        """
        if not self.ok:
            raise self.problem()
        return self


class Restic:
    """One restic program and one repository."""

    def __init__(self, site: Site, settings: ResticSettings) -> None:
        from plumbum import CommandNotFound, local

        program = settings.program
        if "/" in program:
            program = str(site.root / program)
        try:
            self._command: Any = local[program]
        except CommandNotFound as error:
            raise Permanent(
                f"The program '{settings.program}' is not there. Install restic, or name it with "
                "'program'.",
                problem=ProblemCode.UNREACHABLE,
            ) from error
        self.site = site
        self.settings = settings
        self.environment = _environment(site, settings)

    @property
    def path(self) -> Path:
        """Where the program lies."""
        return Path(str(self._command.executable)).resolve()

    def version(self) -> Version:
        """Return the program's version, major and minor.

        Raises:
            Permanent: what it prints is no version.
        """
        found = _VERSION.search(self.run("version").must().out.decode(errors="replace"))
        if not found:
            raise Permanent(
                "The program does not say which version of restic it is.",
                problem=ProblemCode.UNSUPPORTED,
            )
        return int(found[1]), int(found[2])

    def read(self, *arguments: str) -> Done:
        """Run a command that only reads, without a lock in the repository."""
        return self.run(*arguments, "--no-lock")

    def run(
        self, *arguments: str, cwd: Path | None = None, extra: Mapping[str, str] | None = None
    ) -> Done:
        """Run restic to its end.

        Its outputs go to files without a name, not to pipes: should this process be killed, restic
        goes on, ends as it should and leaves no lock behind.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            code = self.start(arguments, out, error, cwd=cwd, extra=extra).wait()
            return Done(code, _content(out), _content(error).decode(errors="replace"))

    def start(
        self,
        arguments: Sequence[str],
        out: IO[bytes],
        error: IO[bytes],
        *,
        cwd: Path | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start restic. The arguments may not hold a password."""
        process: subprocess.Popen[bytes] = self._command.popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=error,
            env={**self.environment, **(extra or {})},
            cwd=str(cwd or self.site.root),
            # An interrupt from the keyboard may end a look, and must not end a clean-up half way.
            new_session=True,
        )
        return process

    def bring(self, *arguments: str) -> Done:
        """Run a command that writes files for this process alone: it ends when this process does.

        It takes no lock, so that it leaves none.
        """
        from plumbum import local

        wanted = {
            "ends_with": os.getpid(),
            "program": str(self.path),
            "arguments": [*arguments, "--no-lock"],
        }
        script = str(Path(_restic_inside.__file__))
        with tempfile.TemporaryFile() as error:
            process = local[sys.executable]["-I", "-S", script, json.dumps(wanted)].popen(
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=error,
                env=self.environment,
                cwd=str(self.site.root),
            )
            return Done(process.wait(), b"", _content(error).decode(errors="replace"))

    def change(self, *arguments: str, version: Version) -> Done:
        """Run a command that writes, and wait for a lock that someone else holds, in bounds."""
        patience = self.settings.lock_timeout
        if version >= RETRY_LOCK:
            return self.run(*arguments, "--retry-lock", f"{max(patience, 0):.0f}s")
        end = time.monotonic() + patience
        done = self.run(*arguments)
        while done.locked_out and time.monotonic() < end:
            time.sleep(_PAUSE_S)
            done = self.run(*arguments)
        return done

    @contextmanager
    def output(self, *arguments: str) -> Iterator[IO[bytes]]:
        """Give what a reading command prints, as a file, once it has ended well.

        Raises:
            Transient, Permanent: it failed.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            code = self.start((*arguments, "--no-lock"), out, error).wait()
            if code:
                raise Done(code, b"", _content(error).decode(errors="replace")).problem()
            out.seek(0)
            yield out


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _environment(site: Site, settings: ResticSettings) -> dict[str, str]:
    folder = repository_folder(site, settings)
    made = dict(os.environ)
    made["RESTIC_REPOSITORY"] = settings.repository.strip() if folder is None else str(folder)
    # An empty variable counts as none; these would change what is looked at.
    made.update(dict.fromkeys(("RESTIC_REPOSITORY_FILE", "RESTIC_HOST"), ""))
    if settings.password_file is not None or settings.password_command is not None:
        names = ("RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND")
        made.update(dict.fromkeys(names, ""))
    if settings.password_file is not None:
        made["RESTIC_PASSWORD_FILE"] = str(site.root / settings.password_file)
    if settings.password_command is not None:
        made["RESTIC_PASSWORD_COMMAND"] = settings.password_command
    if settings.cache_dir is not None:
        made["RESTIC_CACHE_DIR"] = str(site.root / settings.cache_dir)
    made["LC_ALL"] = "C"
    return made
