"""The readings of a text: every way in which the same characters can be meant.

A string in a store may be JSON itself, may carry JSON escapes without being JSON as a whole, or
may be Markdown or HTML. A phrase is looked for in each reading. A reading only ever takes an
encoding off; nothing is guessed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

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
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt\"\\/]))")
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
            return
    if "\\" in text:
        unescaped = _unescape(text)
        if unescaped != text:
            yield from _readings(unescaped, flavor, depth - 1)


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


def _unescape(text: str) -> str:
    """Take one level of JSON escapes off a text that is not JSON as a whole."""
    decoded = _ESCAPE.sub(_escaped, text)
    # Two escaped surrogates are one character; a lone one stays as it is.
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escaped(match: re.Match[str]) -> str:
    code, short = match.groups()
    return chr(int(code, 16)) if code else _ESCAPES[short]
