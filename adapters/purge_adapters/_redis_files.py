"""The files that a node of Redis keeps, where they are on this machine. Only read.

That a folder of this machine is the server's own is believed where the manifest names it, or where
the process that the server says it is runs here, in that folder. A path alone proves nothing: in a
container it is another place.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from purge.adapter import Site
from purge_adapters._bytes import open_quietly
from purge_adapters._redis_nodes import REFUSED, Node
from purge_adapters._redis_rdb import Content
from purge_adapters._redis_settings import RedisSettings

_ASKED: Final = ("dir", "dbfilename", "appendonly", "appenddirname", "appendfilename", "save")
_PROGRAMS: Final = ("redis", "valkey", "keydb")
_ENDS: Final = (".rdb", ".aof", ".rdb.gz", ".aof.gz", ".rdb.bak", ".aof.bak")
_GZIP: Final = b"\x1f\x8b\x08"


class Role(Enum):
    """What a file is to the server."""

    DUMP = "the dump"
    LOG = "the append-only file"
    OLD_LOG = "an append-only file that the server no longer uses"
    TEMPORARY = "a temporary file that an interrupted rewrite left"
    COPY = "a copy beside the server's files"


@dataclass(frozen=True, slots=True)
class Kept:
    """What one node says that it keeps, and where.

    Args:
        info: the section "persistence" of INFO; ``None`` where it may not be asked.
        config: the settings that name files, as far as they may be asked.
        folder: the node's own folder on this machine; ``None`` where it is not known to be here.
    """

    info: Mapping[str, str] | None
    config: Mapping[str, str] = field(repr=False)
    folder: Path | None

    @property
    def logs(self) -> bool:
        """Whether an append-only file is kept."""
        return bool(self.info) and (self.info or {}).get("aof_enabled") == "1"

    @property
    def is_busy(self) -> bool:
        """Whether files are being written anew at this moment."""
        names = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
        return any((self.info or {}).get(name) == "1" for name in names)

    @property
    def has_unwritten_log(self) -> bool:
        """Whether the append-only file has grown since it was written anew."""
        info = self.info or {}
        return self.logs and info.get("aof_current_size") != info.get("aof_base_size")

    @property
    def has_unsaved_dump(self) -> bool:
        """Whether a dump is configured, or was made, and something changed since."""
        info = self.info or {}
        is_made = bool(self.config.get("save")) or info.get("rdb_saves", "0") != "0"
        return is_made and info.get("rdb_changes_since_last_save", "0") != "0"


@dataclass(frozen=True, slots=True)
class Found:
    """One file of a node."""

    path: Path
    role: Role


def kept_by(node: Node, site: Site, settings: RedisSettings) -> Kept:
    """Ask a node what it keeps and where."""
    session = node.session(node.any_database)
    config: dict[str, str] = {}
    for name in _ASKED:
        answer = session.ask("CONFIG", "GET", name)
        if answer is not REFUSED and len(answer) == 2:
            config[name] = os.fsdecode(answer[1])
    folder: Path | None = None
    if settings.files is not None and not node.is_replica and not node.slots:
        folder = site.path(settings.files)
    elif "dir" in config and runs_here(node.info("server") or {}, Path(config["dir"])):
        folder = Path(config["dir"])
    return Kept(node.info("persistence"), config, folder)


def runs_here(server: Mapping[str, str], folder: Path) -> bool:
    """Whether the server is a process of this machine that runs in this folder."""
    process = Path("/proc", server.get("process_id", "none"))
    try:
        program = (process / "comm").read_text()
        return program.startswith(_PROGRAMS) and os.path.samefile(process / "cwd", folder)
    except (OSError, ValueError):
        return False


def files_of(kept: Kept, folder: Path) -> list[Found]:
    """Return the files in a node's folder that hold, or may hold, its data.

    Raises:
        OSError: the folder cannot be listed.
    """
    dump = kept.config.get("dbfilename", "dump.rdb")
    log = kept.config.get("appendfilename", "appendonly.aof")
    inner = kept.config.get("appenddirname", "appendonlydir")
    found: list[Found] = []
    for path in sorted(folder.iterdir()):
        name = path.name
        if name == inner and path.is_dir():
            found += _logs_in(path, log, kept.is_busy)
        elif path.is_dir():
            continue
        elif name == dump:
            found.append(Found(path, Role.DUMP))
        elif name == log:
            role = Role.OLD_LOG if (folder / inner).is_dir() or not kept.logs else Role.LOG
            found.append(Found(path, role))
        elif name.startswith("temp-") and name.endswith((".rdb", ".aof")):
            # While a rewrite runs they are its work, and half done.
            found += [] if kept.is_busy else [Found(path, Role.TEMPORARY)]
        elif name.endswith(_ENDS) or name.startswith((f"{dump}.", f"{log}.", f"{dump}~")):
            found.append(Found(path, Role.COPY))
    return found


def _logs_in(folder: Path, log: str, is_busy: bool) -> Iterator[Found]:
    # After a replica's first copy the log goes on there until its rewrite is done.
    used: set[str] = {f"temp-{log}.incr"} if is_busy else set()
    manifest = folder / f"{log}.manifest"
    if manifest.exists():
        with open_quietly(manifest) as stream:
            for line in stream.read().decode("utf-8", "surrogateescape").splitlines():
                # file NAME seq NUMBER type b|i|h; a name with spaces is quoted.
                words = line.rsplit(" ", 4)
                if len(words) == 5 and words[4] in ("b", "i"):
                    used.add(words[0].removeprefix("file ").strip('"'))
    for path in sorted(folder.iterdir()):
        in_work = is_busy and path.name.startswith("temp-rewriteaof-")
        if path != manifest and not path.is_dir() and not in_work:
            yield Found(path, Role.LOG if path.name in used else Role.OLD_LOG)


@contextmanager
def content_of(found: Found) -> Iterator[Content]:
    """Give the bytes of a file, out of gzip where it is a copy, and leave its times alone.

    Raises:
        OSError: it cannot be read.
        zlib.error: it is no whole gzip file.
    """
    with open_quietly(found.path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            yield b""
        elif found.role in (Role.DUMP, Role.LOG):
            # The server replaces these, and never shortens them while it runs.
            with mmap.mmap(stream.fileno(), size, prot=mmap.PROT_READ) as mapped:
                yield mapped
        else:
            data = stream.read()
            yield zlib.decompress(data, 31) if data.startswith(_GZIP) else data
