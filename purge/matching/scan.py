"""Searching blocks of bytes for many literals and some patterns at once, with Hyperscan.

Hyperscan is a library for matching, no driver of a store; it belongs to the extra ``fast``, and
nothing depends on it but speed. It lets go of Python's lock, so that threads search side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["Scanner", "make_scanner"]

Scanner = Callable[[bytes], list[tuple[int, int]]]
"""Returns for each hit in a block the place of its last byte and the number of the byte string, in
any order. The number of every pattern is -1."""


def make_scanner(literals: Sequence[bytes], groups: Iterable[Sequence[bytes]]) -> Scanner | None:
    """Return a search for byte strings and patterns, without regard to the case of ASCII.

    Each group of patterns is searched for by itself.

    ``None`` where Hyperscan is not installed or does not run on this machine.
    """
    try:
        import hyperscan
    except ImportError:
        return None
    flags = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_DOTALL
    try:
        databases = [_database(hyperscan, literals, hyperscan.HS_FLAG_CASELESS, True)]
        databases += [_database(hyperscan, group, flags, False) for group in groups]
    except hyperscan.HyperscanError:
        return None
    local = threading.local()

    def scan(data: bytes) -> list[tuple[int, int]]:
        scratches = getattr(local, "scratches", None)
        if scratches is None:
            scratches = local.scratches = [hyperscan.Scratch(database) for database in databases]
        found: list[tuple[int, int]] = []

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end - 1, number))

        def note_pattern(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end - 1, -1))

        for database, scratch in zip(databases, scratches, strict=True):
            noting = note if database is databases[0] else note_pattern
            database.scan(data, match_event_handler=noting, scratch=scratch)
        return found

    return scan


def _database(hyperscan: Any, expressions: Sequence[bytes], flags: int, literal: bool) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    count = len(expressions)
    database.compile(
        expressions=list(expressions),
        ids=list(range(count)),
        elements=count,
        flags=[flags] * count,
        literal=literal,
    )
    return database
