"""Marker lines: they name what must go, so they are never themselves what was named.

This module only tells a marker line from other text. Who may write a marker, and what it can
reach, is decided elsewhere.
"""

from __future__ import annotations

from typing import Final

MARKER: Final = "RETRACTS:"


def is_marker_line(line: str) -> bool:
    """Whether ``line`` starts with the marker at column 0, a byte order mark apart."""
    return line.removeprefix("\ufeff").startswith(MARKER)


def without_markers(text: str) -> str:
    """Return ``text`` without its marker lines; the same object when it has none."""
    if MARKER not in text:
        return text
    # Only \n ends a line here: U+2028 and its like stand inside strings of real logs.
    return "\n".join(line for line in text.split("\n") if not is_marker_line(line))
