"""Which keys belong to a site, and which id a key says. Keys are bytes, patterns Redis' own globs.

This module does no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge_adapters._redis_settings import ID

_ESCAPED: Final = re.compile(rb"\\x([89a-f][0-9a-f])")
_SPECIAL: Final = frozenset(b"*?[]^-\\")


def named(key: bytes) -> str:
    """Return a key, field or member as an id is written.

    What is no UTF-8 is written as redis-cli prints it: ``\\xff``.
    """
    return key.decode("utf-8", "backslashreplace")


def unnamed(name: str) -> bytes:
    """Return the bytes that an id stands for, if it is the name of a key that is no UTF-8."""
    written = name.encode("utf-8", "surrogatepass")
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), written)


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def escaped(key: bytes) -> bytes:
    """Return a pattern that only this key fits."""
    return b"".join(bytes((92, byte)) if byte in _SPECIAL else bytes((byte,)) for byte in key)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern or template of a site's ``keys``."""

    glob: bytes
    """What a SCAN is given."""
    expression: re.Pattern[bytes] = field(repr=False)
    """What it means; the group ``id`` where it is a template."""
    is_template: bool

    @classmethod
    def of(cls, written: str) -> Pattern:
        """Read it as it stands in the manifest."""
        before, mark, after = written.partition(ID)
        pieces = [_expression(part.encode("utf-8", "surrogateescape")) for part in (before, after)]
        expression = b"(?P<id>.+)".join(pieces) if mark else pieces[0]
        glob = written.replace(ID, "*") if mark else written
        return cls(
            glob.encode("utf-8", "surrogateescape"), re.compile(expression, re.DOTALL), bool(mark)
        )

    def id_in(self, key: bytes) -> bytes | None:
        """Return the id that a key says: what stands for ``{id}``, or all of it; ``None`` where
        the key does not fit."""
        match = self.expression.fullmatch(key)
        if match is None:
            return None
        return match["id"] if self.is_template else key


@dataclass(frozen=True, slots=True)
class Keys:
    """All patterns of a site."""

    patterns: tuple[Pattern, ...]

    @classmethod
    def of(cls, written: Sequence[str]) -> Keys:
        """Read them as they stand in the manifest."""
        return cls(tuple(map(Pattern.of, written)))

    def id_of(self, key: bytes) -> bytes | None:
        """Return the id that a key says, by the first pattern that it fits."""
        found = (pattern.id_in(key) for pattern in self.patterns)
        return next((id_ for id_ in found if id_ is not None), None)

    def globs(self) -> Iterator[bytes]:
        """Yield what SCANs are given: each glob once, or one for everything."""
        globs = dict.fromkeys(pattern.glob for pattern in self.patterns)
        yield from [b"*"] if b"*" in globs else globs


def _expression(glob: bytes) -> bytes:
    """Return the regular expression for a glob of Redis 7 (util.c, stringmatchlen)."""
    found: list[bytes] = []
    at = 0
    while at < len(glob):
        letter = glob[at : at + 1]
        at += 1
        if letter == b"*":
            found.append(b".*")
        elif letter == b"?":
            found.append(b".")
        elif letter == b"[":
            piece, at = _class(glob, at)
            found.append(piece)
        else:
            if letter == b"\\" and at < len(glob):
                letter = glob[at : at + 1]
                at += 1
            found.append(re.escape(letter))
    return b"".join(found)


def _class(glob: bytes, at: int) -> tuple[bytes, int]:
    """Return the expression of a class whose bracket stands before ``at``, and where it ends.

    A class that is never closed ends with the pattern, as in Redis.
    """
    negated = glob[at : at + 1] == b"^"
    at += negated
    members: set[int] = set()
    while at < len(glob) and glob[at : at + 1] != b"]":
        if glob[at : at + 1] == b"\\" and at + 1 < len(glob):
            members.add(glob[at + 1])
            at += 2
        elif glob[at + 1 : at + 2] == b"-" and at + 2 < len(glob):
            low, high = sorted((glob[at], glob[at + 2]))
            members.update(range(low, high + 1))
            at += 3
        else:
            members.add(glob[at])
            at += 1
    chosen = [byte for byte in range(256) if (byte in members) is not negated]
    if not chosen:
        return b"(?!)", at + 1
    return b"[" + b"".join(b"\\x%02x" % byte for byte in chosen) + b"]", at + 1
