"""What every writing of a phrase must contain: the windows on it that a fast search looks for.

A window is a part of a folded phrase, and its literals are the byte strings in which that part
stands in a line, one of them at least, unless the line is written oddly there. What counts as odd
is said by :mod:`purge.matching.oddities`, for the same windows; lines that are odd are looked at
in full. So the choice of windows decides about speed and never about what is found.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Final

from purge.matching.bytesets import utf8, utf16_escape
from purge.matching.sources import marks_of, variants

__all__ = ["Kind", "Sample", "Window", "id_literals", "windows_of"]

_WORD: Final = re.compile(r"[a-z0-9]+")
_LONGEST: Final = 6
_LONGEST_ESCAPED: Final = 3
_MOST_LITERALS: Final = 16
_FULL_SIZE: Final = 8
"""A pair of words shorter than this takes in a third one, if it can."""
_AM: Final = ("\u0e4d\u0e32", "\u0ecd\u0eb2")
"""Thai and Lao write these two characters as one (U+0E33, U+0EB3), as a rule."""
_ID_RUN: Final = re.compile(r"[A-Za-z0-9_.:@#=+~,;!?%^*()\[\]{}|$ -]+")
"""Characters of an id that nobody escapes, or only oddly."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a folded phrase.

    Args:
        phrase: the phrase, folded.
        start: where the window begins in it.
        end: where it ends.
        literals: the bytes in which it stands, compared without regard to the case of ASCII.
        transitions: what a writing holds that changes between raw and escaped within the window.
    """

    phrase: str = field(repr=False)
    start: int
    end: int
    literals: frozenset[bytes] = field(repr=False)
    transitions: frozenset[bytes] = field(default=frozenset(), repr=False)

    @property
    def text(self) -> str:
        """The part itself."""
        return self.phrase[self.start : self.end]

    @property
    def is_joined(self) -> bool:
        """Whether it goes over white space."""
        return " " in self.text


class Sample:
    """Some of the bytes that are going to be searched: tells common words from rare ones.

    Args:
        data: the bytes; none are needed.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data.lower()
        self._words = Counter(re.findall(rb"[a-z0-9]+", self._data))

    def cost(self, literal: bytes) -> float:
        """Return how much work a literal would make: its hits, or a guess where there are none."""
        hits = self._words.get(literal)
        if hits is None:
            hits = self._data.count(literal.lower())
        return hits + 1 / (1 + _bits(literal))


def _bits(literal: bytes) -> float:
    return sum(3.5 if byte < 0x80 else 2.5 for byte in literal)


def windows_of(phrase: str, sample: Sample, most_hits: float) -> Window | None:
    """Return the window on a folded phrase that makes the least work; ``None`` if it has none.

    Args:
        phrase: as :func:`purge.matching.fold.fold` returns it.
        sample: of what is going to be searched.
        most_hits: more hits in the sample than this are worth a window over several words.
    """
    words = [(found.start(), found.end()) for found in _WORD.finditer(phrase)]
    choices = [
        Window(phrase, start, end, frozenset((phrase[start:end].encode("ascii"),)))
        for start, end in words
    ]
    choices += [_foreign(phrase, start, end) for start, end in _foreign_parts(phrase)]
    best = _cheapest(choices, sample)
    if best is None or _cost(best, sample) > most_hits or len(best.text) == 1:
        joined = list(_joined(phrase, words))
        if best is not None:
            joined.append(best)
        best = _cheapest(joined, sample)
    return best


def _cost(window: Window, sample: Sample) -> float:
    return sum(sample.cost(literal) for literal in window.literals if b"\\" not in literal)


def _cheapest(windows: list[Window], sample: Sample) -> Window | None:
    if len(windows) <= 1:
        return windows[0] if windows else None
    return min(windows, key=lambda window: _cost(window, sample))


def _joined(phrase: str, words: list[tuple[int, int]]) -> Iterator[Window]:
    """Yield windows over neighbouring words, written with one space or one escaped line break."""
    for at, ((start, middle), (after, end)) in enumerate(pairwise(words)):
        if phrase[middle:after] != " ":
            continue
        following = words[at + 2] if at + 2 < len(words) else None
        if end - start < _FULL_SIZE and following and phrase[end : following[0]] == " ":
            end = following[1]
        parts = [part.encode("ascii") for part in phrase[start:end].split(" ")]
        literals = {parts[0]}
        for part in parts[1:]:
            literals = {done + gap + part for done in literals for gap in (b" ", b"\\n")}
        yield Window(phrase, start, end, frozenset(literals))


def _foreign_parts(phrase: str) -> Iterator[tuple[int, int]]:
    """Yield where windows beyond ASCII may begin and end."""
    start = 0
    for at in range(len(phrase) + 1):
        if at == len(phrase) or not _is_usable(phrase, at):
            if at > start:
                yield from _pieces(phrase, start, at)
            start = at + 1


def _pieces(phrase: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    size = _size(phrase[start:end], _LONGEST, _MOST_LITERALS)
    last = end - size
    for at in sorted({start, (start + last) // 2, last}):
        stop = at + _size(phrase[at:end], _LONGEST, _MOST_LITERALS)
        yield at, stop


def _size(text: str, longest: int, most: int) -> int:
    """Return how many characters of a text can be written out in all their forms."""
    forms = size = 1
    while size <= min(longest, len(text)):
        forms *= len(variants(text[size - 1]))
        if forms > most:
            break
        size += 1
    return max(1, size - 1)


def _is_usable(phrase: str, at: int) -> bool:
    """Whether a character beyond ASCII is always written in one of a few ways, or oddly."""
    character = phrase[at]
    code = ord(character)
    if code < 0x80 or 0x2000 <= code < 0x3000 or 0xD800 <= code < 0xF900 or code > 0xFFFF:
        return False
    if unicodedata.category(character)[0] not in "LMN":
        return False
    if any(pair in phrase[max(0, at - 1) : at + 2] for pair in _AM):
        return False
    if unicodedata.combining(character):
        # Two marks on one letter may be written in either order.
        around = phrase[max(0, at - 1) : at] + phrase[at + 1 : at + 2]
        return not any(map(unicodedata.combining, around))
    return all(_is_plain_mark(mark) for mark in marks_of(character))


def _is_plain_mark(mark: str) -> bool:
    return "\u0300" <= mark <= "\u036f" or mark in "\u3099\u309a" or "\u1100" <= mark <= "\u11ff"


def _foreign(phrase: str, start: int, end: int) -> Window:
    forms = [variants(character) for character in phrase[start:end]]
    literals = {utf8("".join(form)) for form in product(*forms)}
    size = _size(phrase[start:end], _LONGEST_ESCAPED, 4)
    for form in product(*forms[:size]):
        escapes = [utf16_escape(character) for character in form]
        for gaps in product((b"\\", b"\\\\"), repeat=size - 1):
            gap_by_place = (*gaps, b"")
            literals.add(b"".join(map(bytes.__add__, escapes, gap_by_place)))
    transitions: set[bytes] = set()
    for before, after in pairwise(forms):
        for character in before:
            transitions.update(utf8(character) + gap for gap in (b"\\u", b"\\\\u"))
            escape = utf16_escape(character)
            transitions.update(escape + utf8(other)[:1] for other in after)
    return Window(phrase, start, end, frozenset(literals), frozenset(transitions))


def id_literals(id: str) -> frozenset[bytes]:
    """Return the bytes one of which a line must hold that has an id; none if that is unknown.

    Escaped characters apart, which are odd.
    """
    runs = _ID_RUN.findall(id)
    if not runs:
        return frozenset()
    run = max(runs, key=len).encode("ascii")
    if run.decode("ascii") != id or id.isdecimal():
        return frozenset((run,))
    # An id is a whole string: a quote stands behind it, which may be escaped.
    return frozenset((run + b'"', run + b"\\"))
