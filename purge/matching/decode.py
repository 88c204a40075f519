"""The readings of a text: every way in which the same characters can be meant.

A string in a store may be JSON itself, may carry JSON escapes without being JSON as a whole, or
may be Markdown or HTML, or a list of the pieces of one text. A phrase is looked for in each
reading. A reading only ever takes an encoding off; nothing is guessed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

from purge.matching.fragments import runs, without_tags
from purge.matching.markers import MARKER, read_markers, without_markers

DEPTH: Final = 6
"""How many encodings inside one another are taken off. Real exports reach three."""

_ESCAPES: Final = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    '"': '"',
    "\\": "\\",
    "/": "/",
}
_ESCAPE: Final = re.compile(r"((?:\\u[0-9a-fA-F]{4})+)|\\([bfnrt\"\\/])")
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LINE_PREFIX: Final = re.compile(
    r"^[ \t]*(?:(?:>|#{1,6}(?=[ \t])|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*)+", re.MULTILINE
)


class Flavor(Enum):
    """What the characters of a text mean where they stand."""

    PLAIN = "plain"
    MARKDOWN = "markdown"
    HTML = "html"


def readings(text: str, flavor: Flavor = Flavor.PLAIN) -> Iterator[str]:
    """Yield ``text`` as it stands, then every other reading of it."""
    yield from _readings(text, flavor, DEPTH)


def _readings(text: str, flavor: Flavor, depth: int) -> Iterator[str]:
    yield text
    if depth == 0:
        return
    if flavor is Flavor.MARKDOWN:
        unwrapped = _LINE_PREFIX.sub("", text)
        if unwrapped != text:
            yield unwrapped
    if flavor is not Flavor.PLAIN and "&" in text:
        unescaped = html.unescape(text)
        if unescaped != text:
            yield from _readings(unescaped, flavor, depth - 1)
    if text.lstrip()[:1] in ("{", "[", '"'):
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            pass
        else:
            for inner in strings_in(value):
                yield from _readings(inner, flavor, depth - 1)
            for run in runs(value):
                yield from _readings(run.text, flavor, depth - 1)
            return
    if (untagged := without_tags(text)) is not text:
        yield from _readings(untagged, flavor, depth - 1)
    if "\\" in text:
        unescaped = unescape(text)
        if unescaped != text:
            yield from _readings(unescaped, flavor, depth - 1)


def unmarked(text: str, depth: int = DEPTH) -> str:
    """Return ``text`` without its marker lines, and without those of texts within it as JSON.

    The same object when it has none. Everything else stays as it is written.
    """
    if MARKER not in text:
        return text
    left = without_markers(text)
    if left is not text or depth == 0 or not _is_json(text):
        return left
    return _STRING.sub(lambda found: _unmarked_string(found.group(), depth - 1), text)


def _unmarked_string(written: str, depth: int) -> str:
    said = json.loads(written, strict=False)
    left = unmarked(said, depth)
    return written if left == said else json.dumps(left)


def carries_marker(text: str, depth: int = DEPTH) -> bool:
    """Whether some line of ``text``, or of a text encoded in it, is a marker."""
    if MARKER not in text:
        return False
    if any(line.counts for line in read_markers(text)):
        return True
    if depth == 0:
        return False
    if _is_json(text):
        inner = strings_in(json.loads(text, strict=False))
        return any(carries_marker(said, depth - 1) for said in inner)
    unescaped = unescape(text) if "\\" in text else text
    return unescaped != text and carries_marker(unescaped, depth - 1)


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def strings_in(value: object) -> Iterator[str]:
    """Yield every string of a decoded JSON value, keys included."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            for key, inner in item.items():
                stack.append(inner)
                stack.append(key)
        elif isinstance(item, list):
            stack.extend(item)


def unescape(text: str) -> str:
    """Take one level of JSON escapes off a text that is not JSON as a whole."""
    decoded = _ESCAPE.sub(_escaped, text)
    # Two escaped surrogates are one character; a lone one stays as it is.
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escaped(match: re.Match[str]) -> str:
    codes, short = match.groups()
    if short:
        return _ESCAPES[short]
    units = bytes.fromhex(codes.replace("\\u", ""))
    return units.decode("utf-16-be", "surrogatepass")
