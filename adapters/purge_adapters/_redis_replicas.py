"""Replicas: whether one has caught up, and whether there are some that nobody named. Only reads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from purge.adapter import NotChecked, ProblemCode
from purge_adapters._redis_errors import translate
from purge_adapters._redis_nodes import Node, Nodes

_PAUSE_S: Final = 0.05
_OFFSETS: Final = ("slave_repl_offset", "master_repl_offset")


def follow(replica: Node, masters: Sequence[Node], patience_s: float) -> NotChecked | None:
    """Wait until a replica has what its master has now; return why it cannot be looked at."""
    from redis.exceptions import RedisError

    try:
        told = replica.info("replication")
        if told is None:
            return NotChecked(
                replica.name, "it does not say how far it has come", ProblemCode.NO_PERMISSION
            )
        if told.get("role") != "slave":
            return NotChecked(replica.name, "it is no replica", ProblemCode.UNSUPPORTED)
        master = _master_of(told, masters)
        if master is None:
            return NotChecked(
                replica.name, "it follows none of the site's servers", ProblemCode.UNSUPPORTED
            )
        wanted = int((master.info("replication") or {}).get("master_repl_offset", 0))
        give_up = time.monotonic() + patience_s
        while told.get("master_link_status") != "up" or _offset(told) < wanted:
            if time.monotonic() > give_up:
                return NotChecked(replica.name, "it lags behind its master", ProblemCode.BUSY)
            time.sleep(_PAUSE_S)
            told = replica.info("replication") or {}
    except (RedisError, OSError) as error:
        problem = translate(error)
        return NotChecked(replica.name, str(problem), ProblemCode(problem.problem))
    return None


def _offset(told: dict[str, str]) -> int:
    return int(next((told[name] for name in _OFFSETS if name in told), 0))


def _master_of(told: dict[str, str], masters: Sequence[Node]) -> Node | None:
    for master in masters:
        own = master.info("replication") or {}
        if own.get("master_replid") == told.get("master_replid"):
            return master
    return None


def unknown_replicas(nodes: Nodes) -> Iterator[NotChecked]:
    """Yield that there are more replicas than the manifest names, or a master that it does not.

    Names and addresses are not compared, since a replica has several: the history that it follows
    is.
    """
    from redis.exceptions import RedisError

    histories: list[str] = []
    for replica in nodes.replicas:
        try:
            own = replica.info("replication") or {}
        except (RedisError, OSError):
            continue
        histories.append(own.get("master_replid", ""))
    for master in nodes.masters:
        told = master.info("replication")
        if told is None:
            # A server that hides this is a managed one; its bytes are reported as out of sight.
            continue
        if told.get("role") == "slave":
            yield NotChecked(
                master.name,
                "it is a replica; its master was not looked at",
                ProblemCode.NOT_CHECKED,
            )
        known = histories.count(told.get("master_replid", ""))
        if (more := int(told.get("connected_slaves", 0)) - known) > 0:
            yield NotChecked(
                f"replicas of {master.name}",
                f"{more} that 'replicas' does not name; what they keep was not looked at",
            )
