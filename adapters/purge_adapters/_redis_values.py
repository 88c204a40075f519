"""Values of keys, read as they are: the elements of every type, each as bytes.

Reads by the commands of each type. A list that is read in several pieces is watched meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from purge.adapter import NotChecked, ProblemCode
from purge_adapters._redis_nodes import BUNCH, Session

STRING, LIST, SET, SORTED, HASH, STREAM = "string", "list", "set", "zset", "hash", "stream"
NONE: Final = "none"
PAGE: Final = 10_000
"""Elements that are read with one command."""
LARGE: Final = 50
"""How many values are read at a time: they may be large."""
_LOOKS: Final = 3
_SIZES: Final = {LIST: "LLEN", SET: "SCARD", SORTED: "ZCARD", HASH: "HLEN", STREAM: "XLEN"}
KINDS: Final = (STRING, *_SIZES)


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a value.

    Args:
        name: of a hash the field, of a stream the id of the entry, of a sorted set the score.
        parts: the bytes of a string, item, member or field; of an entry its fields and values.
    """

    name: bytes = field(repr=False)
    parts: tuple[bytes, ...] = field(repr=False)

    def digest(self, kind: str) -> str:
        """Return what tells it from all others of a value. A score does not count: it says how
        often or when, and not what."""
        said = self.parts if kind == SORTED else (self.name, *self.parts)
        found = hashlib.blake2b(kind.encode(), digest_size=24)
        for part in said:
            found.update(len(part).to_bytes(8, "big"))
            found.update(part)
        return found.hexdigest()

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the fields of a stream's entry with their values."""
        yield from zip(self.parts[::2], self.parts[1::2], strict=True)


@dataclass(frozen=True, slots=True)
class Value:
    """What one key holds."""

    key: bytes = field(repr=False)
    kind: str
    elements: tuple[Element, ...] = field(repr=False)

    def digest(self) -> str:
        """Return what tells it from another value of the same key."""
        each = [element.digest(self.kind) for element in self.elements]
        ordered = sorted(each) if self.kind in (SET, SORTED, HASH) else each
        return hashlib.blake2b("".join([self.kind, *ordered]).encode(), digest_size=24).hexdigest()


def scan(session: Session, glob: bytes) -> Iterator[list[bytes]]:
    """Yield the keys that fit a pattern, page by page, to the end; some may come twice."""
    cursor: bytes = b"0"
    while True:
        cursor, keys = session.call("SCAN", cursor, "MATCH", glob, "COUNT", BUNCH)
        if keys:
            yield keys
        if cursor == b"0":
            return


def read(
    session: Session, keys: Sequence[bytes], *, watched: bool = False
) -> Iterator[Value | NotChecked]:
    """Yield the values of keys that are still there, and what could not be read of them.

    Args:
        session: to their database.
        keys: each once.
        watched: the caller watches them, and learns of changes by that.
    """
    for at in range(0, len(keys), BUNCH):
        some = keys[at : at + BUNCH]
        kinds = [bytes(kind).decode() for kind in session.answers([("TYPE", k) for k in some])]
        by_kind: dict[str, list[bytes]] = {}
        for key, kind in zip(some, kinds, strict=True):
            by_kind.setdefault(kind, []).append(key)
        for kind, same in by_kind.items():
            if kind in KINDS:
                for start in range(0, len(same), LARGE):
                    yield from _read(session, kind, same[start : start + LARGE], watched)
            elif kind != NONE:
                yield NotChecked(
                    f"{len(same)} keys of the type of a module",
                    "what such keys hold can only be read through their module",
                    ProblemCode.UNSUPPORTED,
                )


def _read(
    session: Session, kind: str, keys: Sequence[bytes], watched: bool
) -> Iterator[Value | NotChecked]:
    sizes = dict.fromkeys(keys, 0)
    if kind in _SIZES:
        answers = session.outcomes([(_SIZES[kind], key) for key in keys])
        sizes = {k: n if isinstance(n, int) else 0 for k, n in zip(keys, answers, strict=True)}
    small = [key for key in keys if sizes[key] <= PAGE]
    answers = session.outcomes([_whole(kind, key) for key in small])
    for key, answer in zip(small, answers, strict=True):
        if isinstance(answer, Exception):
            # It changed its type; such a key is looked at as what it is now.
            if not str(answer).startswith("WRONGTYPE"):
                raise answer
            yield from read(session, [key], watched=watched)
        elif answer is not None and (value := Value(key, kind, _elements(kind, answer))).elements:
            yield value
        elif kind == STREAM:
            yield Value(key, kind, ())
    for key in keys:
        if sizes[key] > PAGE:
            yield _read_in_pages(session, kind, key, watched)


def _whole(kind: str, key: bytes) -> tuple[bytes | str | int, ...]:
    return {
        STRING: ("GET", key),
        LIST: ("LRANGE", key, 0, -1),
        SET: ("SMEMBERS", key),
        SORTED: ("ZRANGE", key, 0, -1, "WITHSCORES"),
        HASH: ("HGETALL", key),
        STREAM: ("XRANGE", key, "-", "+"),
    }[kind]


def _elements(kind: str, answer: Any) -> tuple[Element, ...]:
    if kind == STRING:
        return (Element(b"", (answer,)),)
    if kind in (LIST, SET):
        return tuple(Element(b"", (part,)) for part in answer)
    if kind == HASH:
        return tuple(Element(n, (v,)) for n, v in zip(answer[::2], answer[1::2], strict=True))
    if kind == SORTED:
        return tuple(Element(s, (m,)) for m, s in zip(answer[::2], answer[1::2], strict=True))
    return tuple(Element(id_, tuple(said)) for id_, said in answer if said is not None)


def _read_in_pages(session: Session, kind: str, key: bytes, watched: bool) -> Value | NotChecked:
    found: dict[tuple[bytes, tuple[bytes, ...]], Element] = {}
    if kind == LIST:
        return _read_list(session, key, watched)
    if kind == STREAM:
        return Value(key, kind, tuple(_entries(session, key)))
    command = {SET: "SSCAN", SORTED: "ZSCAN", HASH: "HSCAN"}[kind]
    cursor = b"0"
    while True:
        cursor, answer = session.call(command, key, cursor, "COUNT", BUNCH)
        for element in _elements(kind, answer):
            # A member is what stands in parts; a hash field may have changed between two pages.
            found[(element.name if kind == HASH else b"", element.parts)] = element
        if cursor == b"0":
            return Value(key, kind, tuple(found.values()))


def _read_list(session: Session, key: bytes, watched: bool) -> Value | NotChecked:
    for _ in range(_LOOKS):
        if not watched:
            session.call("WATCH", key)
        items: list[bytes] = []
        while page := session.call("LRANGE", key, len(items), len(items) + PAGE - 1):
            items += page
        if watched or session.transact([("EXISTS", key)]) is not None:
            return Value(key, LIST, tuple(Element(b"", (item,)) for item in items))
    return NotChecked(
        "a long list", "it changes faster than it can be read", ProblemCode.CHANGED_UNDERNEATH
    )


def _entries(session: Session, key: bytes) -> Iterator[Element]:
    after = "-"
    while page := session.call("XRANGE", key, after, "+", "COUNT", PAGE):
        yield from _elements(STREAM, page)
        after = "(" + bytes(page[-1][0]).decode()


def remaining_life(session: Session, key: bytes) -> int:
    """Return how many milliseconds a key has yet; -1: it stays."""
    return int(session.call("PTTL", key))
