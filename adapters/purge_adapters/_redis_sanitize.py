"""Making removal physical: files that the server keeps anyway are written anew.

Only what residue calls for. No setting is changed, and nothing is saved that was not saved before.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from purge.adapter import NotChecked, NotRemoved, ProblemCode, Residue, Site
from purge.errors import Permanent
from purge_adapters._redis_errors import is_denied, is_refusal
from purge_adapters._redis_files import Role, files_of, kept_by
from purge_adapters._redis_node_look import DUMP, LOG, REBUILD, SLOW_LOG
from purge_adapters._redis_nodes import REFUSED, Command, Node, connected
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._redis_stream import rebuild

_PAUSE_S: Final = 0.05
_GONE_S: Final = 3.0
"""How long the server may take to unlink the files that it no longer needs."""
Key = tuple[int, bytes]


@dataclass(slots=True)
class _Work:
    """What is to be done on one node."""

    acts: set[str] = field(default_factory=set)
    streams: dict[Key, None] = field(default_factory=dict, repr=False)


def sanitize(
    site: Site, settings: RedisSettings, residue: Sequence[Residue]
) -> Iterator[NotRemoved | NotChecked]:
    """Yield what ``sanitize`` of the adapter yields."""
    by_node: dict[str, _Work] = {}
    for item in residue:
        handle: Mapping[str, Any] = item.handle
        try:
            work = by_node.setdefault(str(handle["node"]), _Work())
            work.acts.update(map(str, handle["do"]))
            if REBUILD in handle["do"]:
                work.streams[int(handle["database"]), b64decode(handle["key"])] = None
        except (KeyError, TypeError, ValueError):
            raise Permanent(
                "A residue is of another adapter, or of another version; look again.",
                problem=ProblemCode.UNSUPPORTED,
            ) from None
    with connected(site, settings) as nodes:
        for name, work in by_node.items():
            node = nodes.named(name)
            if node is None:
                yield NotChecked(name, "it is no longer a node of the site")
                continue
            yield from _clean(node, site, settings, work)


def _clean(node: Node, site: Site, settings: RedisSettings, work: _Work) -> Iterator[NotChecked]:
    for database, key in work.streams:
        setback = rebuild(node, database, key, lambda entry: entry)
        if setback is not None:
            yield NotChecked(f"{node.name}, a stream", setback.sentence, setback.problem)
    kept = kept_by(node, site, settings)
    give_up = time.monotonic() + settings.rewrite_timeout
    if LOG in work.acts and kept.logs:
        yield from _LOG_REWRITE.run(node, give_up)
        _wait_for_old_logs(node, site, settings)
    has_dump = bool(kept.config.get("save")) or kept.has_unsaved_dump
    if kept.folder is not None:
        has_dump = any(found.role is Role.DUMP for found in files_of(kept, kept.folder))
    if DUMP in work.acts and has_dump:
        yield from _DUMP_SAVE.run(node, give_up)
    session = node.session(node.any_database)
    if SLOW_LOG in work.acts and session.ask("SLOWLOG", "RESET") is REFUSED:
        yield NotChecked(
            f"slow log of {node.name}", "it may not be emptied", ProblemCode.NO_PERMISSION
        )


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """A command that works in the background, and what INFO says of it."""

    command: Command
    what: str
    is_running: Callable[[Mapping[str, str]], bool]
    status: str
    count: str

    def run(self, node: Node, give_up: float) -> Iterator[NotChecked]:
        """Start it, wait for its end, and say what came of it if that is not what it should."""
        where = f"{self.what} of {node.name}"
        before = self._settled(node, give_up)
        if before is None:
            yield NotChecked(where, "another rewrite of it does not end", ProblemCode.BUSY)
            return
        (answer,) = node.session(node.any_database).outcomes([self.command])
        while isinstance(answer, Exception) and _is_passing(answer):
            if time.monotonic() > give_up:
                yield NotChecked(where, "another rewrite of it does not end", ProblemCode.BUSY)
                return
            time.sleep(_PAUSE_S)
            (answer,) = node.session(node.any_database).outcomes([self.command])
        if isinstance(answer, Exception):
            if not is_refusal(answer):
                raise answer
            if is_denied(answer):
                yield NotChecked(where, "it may not be written anew", ProblemCode.NO_PERMISSION)
            else:
                yield NotChecked(where, "the server could not write it anew")
            return
        after = self._settled(node, give_up)
        if after is None:
            yield NotChecked(where, "writing it anew takes longer than allowed", ProblemCode.BUSY)
        elif after.get(self.status) != "ok" or (
            self.count in after and after[self.count] == before.get(self.count)
        ):
            yield NotChecked(where, "the server could not write it anew")

    def _settled(self, node: Node, give_up: float) -> Mapping[str, str] | None:
        """Wait until nothing runs; return what INFO says then."""
        while True:
            told = node.info("persistence") or {}
            if not self.is_running(told):
                return told
            if time.monotonic() > give_up:
                return None
            time.sleep(_PAUSE_S)


def _is_passing(error: Exception) -> bool:
    """Whether the server only says that something else has to end first."""
    said = str(error)
    return "in progress" in said or "is active" in said or "can't BGSAVE" in said


_LOG_REWRITE: Final = _Rewrite(
    ("BGREWRITEAOF",),
    "append-only file",
    lambda told: (
        told.get("aof_rewrite_in_progress") == "1" or told.get("aof_rewrite_scheduled") == "1"
    ),
    "aof_last_bgrewrite_status",
    "aof_rewrites",
)
_DUMP_SAVE: Final = _Rewrite(
    ("BGSAVE",),
    "dump",
    lambda told: told.get("rdb_bgsave_in_progress") == "1",
    "rdb_last_bgsave_status",
    "rdb_saves",
)


def _wait_for_old_logs(node: Node, site: Site, settings: RedisSettings) -> None:
    """Give the server time to unlink the files that a rewrite made superfluous."""
    kept = kept_by(node, site, settings)
    give_up = time.monotonic() + _GONE_S
    while kept.folder is not None and time.monotonic() < give_up:
        if all(found.role is not Role.OLD_LOG for found in files_of(kept, kept.folder)):
            return
        time.sleep(_PAUSE_S)
