"""Small restic repositories of both generations, whose key costs nothing to open.

restic spends half a second of every start on deriving its key. A test makes a hundred starts, so
the repositories here get a second key, of the same master key, with cheap parameters, written in
the format of restic's design documents. All the rest is made by restic itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.poly1305 import Poly1305

from purge.adapter import (
    Action,
    Adapter,
    Control,
    Covered,
    Examined,
    NotChecked,
    NotRemoved,
    Observation,
    Residue,
    Site,
)
from purge.shapes import validate
from purge.targets import Target, TargetKind, Targets, Trace
from purge_adapters.jsonl import JsonlAdapter
from purge_adapters.markdown import MarkdownAdapter
from purge_adapters.restic import ResticAdapter
from purge_adapters.sql import SqlAdapter

VERSIONS = ("0.14", "0.18")
PASSWORD = 'a pass\'word with "quotes" & $spaces'
SECRET = "the spare brasskeyling lies under the third flowerpot"
OTHER = "the winch on the east quay needs two hands and a glove"
TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "bin"
ADAPTERS: Mapping[str, type[Adapter[Any]]] = {
    "jsonl": JsonlAdapter,
    "markdown": MarkdownAdapter,
    "sql": SqlAdapter,
}


@cache
def program(version: str) -> Path:
    """Return the program of one generation; 'make tools' fetches it."""
    name = f"restic-{version}"
    found = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    assert found, f"The program {name} is missing: run 'make tools'."
    return Path(found)


def restic(version: str, repository: Path, *words: str, **options: Any) -> str:
    """Run restic as anybody would, and return what it prints.

    Options are those of ``subprocess.run``, and ``zone`` for the time zone that it believes in.
    """
    zone, code = options.pop("zone", "UTC"), options.pop("code", 0)
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        [str(program(version)), *words],
        env=environment(repository, zone),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        **options,
    )
    assert code is None or done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


def environment(repository: Path, zone: str = "UTC") -> dict[str, str]:
    """Return the environment for restic's own command line."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(repository.parent),
        "TZ": zone,
        "RESTIC_REPOSITORY": str(repository),
        "RESTIC_PASSWORD": PASSWORD,
        "RESTIC_CACHE_DIR": str(repository.with_name("cache")),
    }


@cache
def _template(version: str, folder: Path) -> Path:
    repository = folder / version / "repository"
    repository.parent.mkdir()
    restic(version, repository, "init")
    master = json.loads(restic(version, repository, "cat", "masterkey"))
    costly = list((repository / "keys").iterdir())
    key = _cheap_key(master)
    (repository / "keys" / hashlib.sha256(key).hexdigest()).write_bytes(key)
    for path in costly:
        path.chmod(0o600)
        path.unlink()
    return repository


def _cheap_key(master: Mapping[str, Any]) -> bytes:
    salt, iv = os.urandom(64), os.urandom(16)
    made = hashlib.scrypt(PASSWORD.encode(), salt=salt, n=16, r=8, p=1, dklen=64)
    content = json.dumps({"mac": master["mac"], "encrypt": master["encrypt"]}).encode()
    stream = Cipher(algorithms.AES(made[:32]), modes.CTR(iv)).encryptor()
    hidden = stream.update(content) + stream.finalize()
    block = Cipher(algorithms.AES(made[32:48]), modes.ECB()).encryptor()
    once = block.update(iv) + block.finalize()
    tag = Poly1305.generate_tag(made[48:] + once, hidden)
    return json.dumps(
        {
            "created": "2026-01-01T00:00:00Z",
            "username": "keeper",
            "hostname": "quay.example.org",
            "kdf": "scrypt",
            "N": 16,
            "r": 8,
            "p": 1,
            "salt": base64.b64encode(salt).decode(),
            "data": base64.b64encode(iv + hidden + tag).decode(),
        }
    ).encode()


@dataclass(slots=True)
class Harbour:
    """A folder of live sites, and the repository that backs them up.

    Args:
        version: of restic.
        root: the manifest's root.
        repository: the folder of the repository.
    """

    version: str
    root: Path
    repository: Path
    clock: datetime = datetime(2025, 6, 20, 12, tzinfo=UTC)
    zone: tzinfo = UTC
    sites: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def make(cls, version: str, folder: Path, templates: Path) -> Harbour:
        """Make an empty one."""
        (folder / "place").mkdir()
        shutil.copytree(_template(version, templates), folder / "repository")
        return cls(version, folder / "place", folder / "repository")

    def run(self, *words: str, **options: Any) -> str:
        """Run restic's own command line on the repository."""
        return restic(self.version, self.repository, *words, **options)

    def backup(self, time: str, *words: str, host: str = "quay", **options: Any) -> None:
        """Take a snapshot at a made-up time, ``2025-06-01 03:00:00``."""
        paths = words or (str(self.root),)
        self.run("backup", "-q", "--host", host, "--time", time, *paths, **options)

    def snapshots(self) -> list[dict[str, Any]]:
        """List the snapshots."""
        listed: list[dict[str, Any]] = json.loads(self.run("snapshots", "--json"))
        return listed

    def cover(self, name: str, adapter: str, settings: dict[str, Any], **site: Any) -> None:
        """Take a site into ``covers``."""
        self.sites[name] = (adapter, settings, site)

    def covered(self, name: str) -> Covered:
        """Return a covered site, as the engine hands it over."""
        adapter, raw, keys = self.sites[name]
        kind = ADAPTERS[adapter]
        settings: object = validate(kind.Settings, raw)
        site = Site(name, self.root, **keys)
        with kind(site, settings) as opened:
            paths = opened.footprint()
        return Covered(site, paths, lambda there: kind(there, settings))

    def adapter(self, **settings: Any) -> ResticAdapter:
        """Return a new adapter for the repository, as in a new phase of a run."""
        password = self.repository.with_name("password")
        password.write_text(PASSWORD + "\n")
        raw = {
            "repository": str(self.repository),
            "password_file": str(password),
            "program": str(program(self.version)),
            "cache_dir": str(self.repository.with_name("cache")),
            "lock_timeout": 0.0,
            **settings,
        }
        site = Site(
            "backups",
            self.root,
            action=Action.DELETE,
            covers={name: self.covered(name) for name in self.sites},
            timezone=self.zone,
            clock=lambda: self.clock,
        )
        return ResticAdapter(site, validate(ResticAdapter.Settings, raw))

    def look(self, targets: Targets, **settings: Any) -> Look:
        """Look for residue."""
        with self.adapter(**settings) as adapter:
            return Look(tuple(adapter.residue(targets)))

    def clean(self, look: Look, **settings: Any) -> list[NotRemoved | NotChecked]:
        """Remove what a look called fixable."""
        with self.adapter(policy="rewrite", **settings) as adapter:
            return list(adapter.sanitize([copy for copy in look.residue if copy.fixable]))


@dataclass(frozen=True, slots=True)
class Look:
    """What one look yielded."""

    seen: tuple[Observation, ...]

    @property
    def residue(self) -> list[Residue]:
        return [item for item in self.seen if isinstance(item, Residue)]

    @property
    def gaps(self) -> list[NotChecked]:
        return [item for item in self.seen if isinstance(item, NotChecked)]

    @property
    def controls(self) -> list[Control]:
        return [item for item in self.seen if isinstance(item, Control)]

    @property
    def bytes_read(self) -> int:
        return sum(item.bytes for item in self.seen if isinstance(item, Examined))

    @property
    def is_clean(self) -> bool:
        """Whether it proves that nothing is there."""
        return (
            not self.residue
            and not self.gaps
            and bool(self.controls)
            and all(control.passed for control in self.controls)
        )


def wrapper(version: str, folder: Path, before: str = "") -> tuple[Path, Path]:
    """Return a program that notes its arguments, does something, and becomes restic; and the notes.

    Args:
        version: of restic.
        folder: for both files.
        before: lines of shell; ``$1`` is the command.
    """
    made, notes = folder / "restic-noted", folder / "notes-of-calls"
    lines = ["#!/bin/sh", f"echo \"$@\" >> '{notes}'", before, f"exec '{program(version)}' \"$@\""]
    made.write_text("\n".join(lines) + "\n")
    made.chmod(0o755)
    return made, notes


def phrase(text: str = SECRET, *, key: int = 1) -> Targets:
    """Return a phrase to look for."""
    return Targets([Target(key, TargetKind.PHRASE, text)])


def record(site: str, id: str, text: str = SECRET) -> Targets:
    """Return a record by its id, with the trace of its text."""
    return Targets([Target(1, TargetKind.ID, id, site)], {site: [Trace(id, (text,))]})


def write_log(path: Path, *texts: str, start: int = 0) -> None:
    """Write a log of one record a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps({"id": f"{path.stem}-{number}", "text": text})
        for number, text in enumerate(texts, start)
    )
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def keep_only(targets: Targets, keys: Sequence[int]) -> Targets:
    """Return some of the targets."""
    return Targets([replace(one) for one in targets if one.key in keys])
