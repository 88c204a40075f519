"""Sets of byte strings as patterns, for the regular expressions of the prefilter.

The patterns use only what both Hyperscan and :mod:`re` understand, and no pattern made here
matches a line break.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["any_of", "byte_class", "utf8", "utf16_escape"]


def utf8(text: str) -> bytes:
    """Return the bytes of a text; lone surrogates are written like other characters."""
    return text.encode("utf-8", "surrogatepass")


def utf16_escape(character: str, between: bytes = b"\\") -> bytes:
    """Return a character as JSON escapes it, without the first backslash.

    Args:
        character: one character; beyond the first plane it takes two escapes.
        between: the backslashes before the second of them.
    """
    units = character.encode("utf-16-be", "surrogatepass")
    codes = (b"u" + units[at : at + 2].hex().encode("ascii") for at in range(0, len(units), 2))
    return between.join(codes)


def byte_class(values: Iterable[int]) -> bytes:
    """Return a pattern for one byte out of some."""
    codes = sorted(set(values))
    if len(codes) == 1:
        return b"\\x%02x" % codes[0]
    parts: list[bytes] = []
    at = 0
    while at < len(codes):
        end = at
        while end + 1 < len(codes) and codes[end + 1] == codes[end] + 1:
            end += 1
        parts.append(b"\\x%02x" % codes[at] + (b"-\\x%02x" % codes[end] if end > at else b""))
        at = end + 1
    return b"[" + b"".join(parts) + b"]"


def any_of(strings: Iterable[bytes]) -> bytes:
    """Return a pattern for any of some byte strings, none of them empty."""
    return _alternatives(frozenset(strings))


def _alternatives(strings: frozenset[bytes]) -> bytes:
    tails: dict[int, set[bytes]] = {}
    for string in strings:
        tails.setdefault(string[0], set()).add(string[1:])
    by_tails: dict[frozenset[bytes], set[int]] = {}
    for first, rest in tails.items():
        by_tails.setdefault(frozenset(rest), set()).add(first)
    parts = []
    for rest_of, firsts in sorted(by_tails.items(), key=lambda item: min(item[1])):
        longer = rest_of - {b""}
        part = byte_class(firsts)
        if longer:
            tail = _alternatives(frozenset(longer))
            part += b"(?:" + tail + b")?" if b"" in rest_of else tail
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
