"""Folding: the form in which two texts are compared, and how wide a text is.

Folded text is NFKC, case folded, without zero-width characters, with plain quotes and dashes, and
with each run of white space as one space. Folding is idempotent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_ZERO_WIDTH: Final = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),
)
_SINGLE_QUOTES: Final = "\u2018\u2019\u201a\u201b\u2032\u02bc\u02b9\u0060\u00b4"
_DOUBLE_QUOTES: Final = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e"
_DASHES: Final = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"

_DROPPED: Final[dict[int, str | None]] = {
    code: None for first, last in _ZERO_WIDTH for code in range(first, last + 1)
}
_PLAIN: Final[dict[int, str | None]] = {
    **_DROPPED,
    **dict.fromkeys(map(ord, _SINGLE_QUOTES), "'"),
    **dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"'),
    **dict.fromkeys(map(ord, _DASHES), "-"),
}
_ASCII_PLAIN: Final = {ord("`"): "'"}


def _class_of(codes: Iterable[int]) -> str:
    """Return a pattern for one character out of some, as ranges."""
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]"


_CHANGED: Final = re.compile(_class_of(_PLAIN))
"""Looked for first: translating costs far more than looking, and most texts need none."""


_LONG: Final = 1 << 20
_CUT: Final = re.compile(r" (?=[A-Za-z0-9])")
"""Where a text may be cut and its parts folded one by one: nothing composes over a space before
an ASCII letter or digit."""


def fold(text: str) -> str:
    """Return ``text`` in the form in which phrases are compared."""
    if len(text) <= _LONG:
        return _fold(text)
    # Piece by piece: a text of 100 MB would be cut into words that take 20 times as much memory.
    pieces: list[str] = []
    at = 0
    while (cut := _CUT.search(text, at + _LONG)) is not None:
        pieces.append(_fold(text[at : cut.start()]))
        at = cut.end()
    pieces.append(_fold(text[at:]))
    return " ".join(piece for piece in pieces if piece)


def _fold(text: str) -> str:
    if text.isascii():
        return " ".join(text.translate(_ASCII_PLAIN).lower().split())
    # Quotes and dashes go first: NFKC turns U+00B4 and U+2033 into sequences with spaces or
    # doubled marks, after which they could no longer be told from what was typed.
    plain = unicodedata.normalize("NFD", _made_plain(text)).casefold()
    composed = unicodedata.normalize("NFKC", plain).casefold()
    folded = _made_plain(unicodedata.normalize("NFKC", composed))
    return " ".join(folded.split())


def _made_plain(text: str) -> str:
    return text.translate(_PLAIN) if _CHANGED.search(text) else text


def width(text: str) -> int:
    """Return how many display columns ``text`` takes once folded.

    Wide and full-width characters (East Asian Width W and F) take two columns, combining marks
    none.
    """
    return sum(_columns(character) for character in fold(text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
