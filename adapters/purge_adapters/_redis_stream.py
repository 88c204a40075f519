"""Streams made again without some entries: only that takes their payload out of memory and files.

``XDEL`` flags an entry and leaves its bytes in the node that it shares with others (measured on
7.0.15). So the entries that stay are written to a new key under their own ids, the groups with
their pending entries are made again there, and the new key takes the old one's name in a
transaction that does nothing if anybody wrote meanwhile.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from purge.adapter import ProblemCode
from purge_adapters._redis_errors import is_refusal
from purge_adapters._redis_nodes import BUNCH, Command, Node, Session, slot_of
from purge_adapters._redis_values import STREAM, Element, Value, read

_LOOKS: Final = 3
_LIFE_MS: Final = 600_000
"""How long the new key lives if this process is killed before it takes the old one's place."""


@dataclass(frozen=True, slots=True)
class Setback:
    """Why a stream could not be made again."""

    problem: ProblemCode
    sentence: str


@dataclass(frozen=True, slots=True)
class _Group:
    """One consumer group."""

    name: bytes = field(repr=False)
    last: bytes
    entries_read: int | None
    consumers: tuple[bytes, ...] = field(repr=False)
    pending: tuple[tuple[bytes, bytes, int], ...] = field(repr=False)
    """Id, consumer and number of deliveries."""
    idle: tuple[int, ...] = field(compare=False, repr=False)
    """Milliseconds since each was delivered last."""


@dataclass(frozen=True, slots=True)
class _State:
    """A stream apart from its entries."""

    last: bytes
    added: int | None
    deleted: bytes | None
    groups: tuple[_Group, ...]


def rebuild(
    node: Node, database: int, key: bytes, change: Callable[[Element], Element | None]
) -> Setback | None:
    """Make a stream again, with its ids, groups and pending entries.

    Pending entries that are no longer in the stream are dropped. How long a consumer has been
    idle is not kept; how long an entry has been pending is.

    Args:
        node: where the key is.
        database: in which of its databases.
        key: the stream.
        change: returns what an entry is to be; ``None``: it goes.

    Raises:
        redis.exceptions.RedisError: anything but a refusal.
    """
    from redis.exceptions import RedisError

    session, builder = node.session(database), node.connect(database)
    fresh = _beside(key, in_cluster=bool(node.slots))
    try:
        for _ in range(_LOOKS):
            session.call("WATCH", key)
            values = [v for v in read(session, [key], watched=True) if isinstance(v, Value)]
            if not values or values[0].kind != STREAM:
                session.call("UNWATCH")
                return None
            kept = [(old, change(old)) for old in values[0].elements]
            try:
                state = _state(session, key)
                _build(builder, fresh, state, kept)
                if _state(session, key) == state and _swap(session, key, fresh, state):
                    return None
            except RedisError as error:
                if not is_refusal(error):
                    raise
                return Setback(
                    ProblemCode.UNSUPPORTED,
                    "The server refuses what it takes to make a stream again, so the payload of "
                    "deleted entries stays in it.",
                )
            finally:
                builder.outcomes([("UNLINK", fresh)])
            session.call("UNWATCH")
    finally:
        builder.close()
    return Setback(
        ProblemCode.CHANGED_UNDERNEATH, "A stream changes faster than it can be made again."
    )


def _beside(key: bytes, *, in_cluster: bool) -> bytes:
    """Return the name of a key that does not exist, in the same slot of a cluster.

    It begins as the key does, since a user may be confined to such names.
    """
    fresh = key + b":purge-" + secrets.token_hex(8).encode()
    if in_cluster and slot_of(fresh) != slot_of(key):
        return b"{" + key + b"}:purge-" + secrets.token_hex(8).encode()
    return fresh


def _pairs(flat: Sequence[Any]) -> dict[bytes, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _state(session: Session, key: bytes) -> _State:
    told = _pairs(session.call("XINFO", "STREAM", key))
    groups = []
    for flat in session.call("XINFO", "GROUPS", key):
        group = _pairs(flat)
        name = group[b"name"]
        pending = list(_pending(session, key, name))
        consumers = [_pairs(one)[b"name"] for one in session.call("XINFO", "CONSUMERS", key, name)]
        groups.append(
            _Group(
                name,
                group[b"last-delivered-id"],
                group.get(b"entries-read"),
                tuple(consumers),
                tuple((id_, consumer, count) for id_, consumer, _, count in pending),
                tuple(idle for _, _, idle, _ in pending),
            )
        )
    return _State(
        told[b"last-generated-id"],
        told.get(b"entries-added"),
        told.get(b"max-deleted-entry-id"),
        tuple(groups),
    )


def _pending(session: Session, key: bytes, group: bytes) -> Iterator[Any]:
    after = "-"
    while page := session.call("XPENDING", key, group, after, "+", BUNCH):
        yield from page
        after = "(" + bytes(page[-1][0]).decode()


def _number(id_: bytes) -> tuple[int, int]:
    high, _, low = id_.partition(b"-")
    return int(high), int(low or 0)


def _build(
    builder: Session, fresh: bytes, state: _State, kept: Sequence[tuple[Element, Element | None]]
) -> None:
    entries = [new for _, new in kept if new is not None]
    first: Command = ("XADD", fresh, "0-1", "a", "b")
    if entries:
        first = ("XADD", fresh, entries[0].name, *entries[0].parts)
    builder.transact([first, ("PEXPIRE", fresh, _LIFE_MS)])
    if not entries:
        builder.call("XDEL", fresh, "0-1")
    builder.answers([("XADD", fresh, each.name, *each.parts) for each in entries[1:]])
    if state.deleted is None or state.added is None:
        builder.call("XSETID", fresh, state.last)
    else:
        gone = [old.name for old, new in kept if new is None]
        deleted = max((state.deleted, *gone), key=_number)
        more: Command = ("ENTRIESADDED", state.added, "MAXDELETEDID", deleted)
        builder.call("XSETID", fresh, state.last, *more)
    here = {each.name for each in entries}
    for group in state.groups:
        read_until: Command = ()
        if group.entries_read is not None:
            read_until = ("ENTRIESREAD", group.entries_read)
        commands: list[Command] = [
            ("XGROUP", "CREATE", fresh, group.name, group.last, *read_until),
            *(("XGROUP", "CREATECONSUMER", fresh, group.name, name) for name in group.consumers),
        ]
        for (id_, consumer, count), idle in zip(group.pending, group.idle, strict=True):
            if id_ in here:
                how: Command = ("IDLE", idle, "RETRYCOUNT", count, "FORCE", "JUSTID")
                commands.append(("XCLAIM", fresh, group.name, consumer, 0, id_, *how))
        builder.answers(commands)


def _swap(session: Session, key: bytes, fresh: bytes, state: _State) -> bool:
    """Give the new key the old one's name and remaining life; false where the old one changed."""
    life = int(session.call("PTTL", key))
    if life == -2:
        return True
    keep: Command = ("PEXPIRE", key, max(life, 1)) if life >= 0 else ("PERSIST", key)
    length = len(state.groups)
    done = session.transact([("XINFO", "GROUPS", key), ("RENAME", fresh, key), keep])
    return done is not None and len(done[0]) == length
