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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, product
from typing import Final

from purge.matching.bytesets import utf8, utf16_escape
from purge.matching.sources import marks_of, variants

__all__ = ["FEW", "Sample", "Window", "id_literals", "window_on"]

_WORD: Final = re.compile(r"[a-z0-9]+")
_LONGEST: Final = 8
_LONGEST_ESCAPED: Final = 6
_LONGEST_SPELLED_OUT: Final = 3
_DEPTHS: Final = (b"\\", b"\\\\")
"""The backslashes of an escape, in JSON and in JSON within JSON; more of them are odd."""
_UNSEEN: Final = 0.5
"""How often a word is taken to stand in a sample where it does not."""
FEW: Final = 500
"""For so few windows all writings are spelled out that are regular; for more of them, those that
occur in real text, and the others are oddities."""
_MOST_FORMS: Final = 16
_GAPS: Final = (b" ", b"\\n", b"\\n\\n")
_FULL_SIZE: Final = 8
"""A pair of words shorter than this takes in a third one, if it can."""
_AM: Final = ("\u0e4d\u0e32", "\u0ecd\u0eb2")
"""Thai and Lao write these two characters as one (U+0E33, U+0EB3), as a rule."""
_SIGMA: Final = "\u03c3"
"""Greek writes it in another way at the end of a word."""
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
        self._words = Counter(re.findall(rb"[a-z0-9]+", data.lower()))
        text = data.decode("utf-8", "ignore").casefold()
        self._singles = Counter(text)
        self._pairs = Counter(pairwise(text))
        self._all_words = max(1, self._words.total())
        self._is_empty = not data

    def cost(self, text: str) -> float:
        """Return how often a part of a phrase may stand in the sample: an estimate.

        What does not stand in it costs the less, the longer it is. Without a sample only the
        length counts: a single letter beyond ASCII would seem rare.
        """
        if self._is_empty:
            return 12.0 ** -len(text)
        if text.isascii():
            return self._cost_of_words([word.encode("ascii") for word in text.split(" ")])
        hits = float(self._singles[text[0]] or 0.1)
        for before, after in pairwise(text):
            hits *= (self._pairs[before, after] or 0.1) / max(1, self._singles[before])
        return hits

    def _cost_of_words(self, words: list[bytes]) -> float:
        hits = 1.0
        for word in words:
            # A word may also stand within longer ones, above all a short one.
            seen = self._words[word] or _UNSEEN
            hits *= seen + self._all_words / 12.0 ** len(word)
        return float(hits / self._all_words ** (len(words) - 1))


def window_on(
    phrase: str, sample: Sample, most_hits: float, *, few: bool, beside: Sequence[Window] = ()
) -> Window | None:
    """Return the window on a folded phrase that makes the least work; ``None`` if it has none.

    Args:
        phrase: as :func:`purge.matching.fold.fold` returns it.
        sample: of what is going to be searched.
        most_hits: more hits in the sample than this are worth a window over several words.
        few: there are at most :data:`FEW` windows.
        beside: windows on it that there are: another one is wanted.
    """
    words = [(found.start(), found.end()) for found in _WORD.finditer(phrase)]
    words = [(start, end) for start, end in words if not _is_taken(start, end, beside)]
    parts = list(_foreign_parts(phrase, beside, few=few))
    choices = [
        Window(phrase, start, end, frozenset((phrase[start:end].encode("ascii"),)))
        for start, end in words
    ]
    if parts:
        start, end = min(parts, key=lambda part: sample.cost(phrase[part[0] : part[1]]))
        choices.append(_foreign(phrase, start, end, few=few))
    best = _cheapest(choices, sample)
    if beside:
        return best
    if best is None or _cost(best, sample) > most_hits or len(best.text) == 1:
        joined = list(_joined(phrase, words))
        if best is not None:
            joined.append(best)
        best = _cheapest(joined, sample)
    return best


def _is_taken(start: int, end: int, windows: Sequence[Window]) -> bool:
    return any(start < window.end and window.start < end for window in windows)


def _cost(window: Window, sample: Sample) -> float:
    return sample.cost(window.text)


def _cheapest(windows: list[Window], sample: Sample) -> Window | None:
    if len(windows) <= 1:
        return windows[0] if windows else None
    return min(windows, key=lambda window: _cost(window, sample))


def _joined(phrase: str, words: list[tuple[int, int]]) -> Iterator[Window]:
    """Yield windows over neighbouring words, with a space or escaped line breaks between them."""
    for at, ((start, middle), (after, end)) in enumerate(pairwise(words)):
        if phrase[middle:after] != " ":
            continue
        following = words[at + 2] if at + 2 < len(words) else None
        if end - start < _FULL_SIZE and following and phrase[end : following[0]] == " ":
            end = following[1]
        parts = [part.encode("ascii") for part in phrase[start:end].split(" ")]
        literals = {parts[0]}
        for part in parts[1:]:
            literals = {done + gap + part for done in literals for gap in _GAPS}
        yield Window(phrase, start, end, frozenset(literals))


def _foreign_parts(
    phrase: str, beside: Sequence[Window], *, few: bool
) -> Iterator[tuple[int, int]]:
    """Yield where windows beyond ASCII may begin and end."""
    start = 0
    for at in range(len(phrase) + 1):
        if at == len(phrase) or _is_taken(at, at + 1, beside) or not _is_usable(phrase, at):
            if at > start:
                longest = _spelled_out(phrase[start:at], _MOST_FORMS) if few else _LONGEST
                size = min(longest, _LONGEST, at - start)
                yield from ((first, first + size) for first in range(start, at - size + 1))
            start = at + 1


def _spelled_out(text: str, most: int) -> int:
    """Return how many characters in a row have at most so many forms, wherever in a text."""
    return most.bit_length() - 1 if any(len(variants(it)) > 1 for it in text) else _LONGEST


def _is_usable(phrase: str, at: int) -> bool:
    """Whether a character beyond ASCII is always written in one of a few ways, or oddly."""
    character = phrase[at]
    if not _is_regular(character):
        return False
    if any(pair in phrase[max(0, at - 1) : at + 2] for pair in _AM):
        return False
    if unicodedata.combining(character):
        # Two marks on one letter may be written in either order.
        around = phrase[max(0, at - 1) : at] + phrase[at + 1 : at + 2]
        return not any(map(unicodedata.combining, around))
    return True


@cache
def _is_regular(character: str) -> bool:
    """The same for a character by itself, whatever stands beside it."""
    code = ord(character)
    if code < 0x80 or 0x2000 <= code < 0x3000 or 0xD800 <= code < 0xF900 or code > 0xFFFF:
        return False
    if unicodedata.category(character)[0] not in "LMN" or character == _SIGMA:
        return False
    return bool(unicodedata.combining(character)) or all(map(_is_plain_mark, marks_of(character)))


def _is_plain_mark(mark: str) -> bool:
    return "\u0300" <= mark <= "\u036f" or mark in "\u3099\u309a" or "\u1100" <= mark <= "\u11ff"


def _foreign(phrase: str, start: int, end: int, *, few: bool) -> Window:
    text = phrase[start:end]
    literals = {utf8("".join(form)) for form in _cases(text, few=few)}
    part = text[:_LONGEST_SPELLED_OUT] if few else text[:_LONGEST_ESCAPED]
    for form in _cases(part, few=few):
        escapes = [utf16_escape(character) for character in form]
        if few:
            gaps: Iterable[tuple[bytes, ...]] = product(_DEPTHS, repeat=len(part) - 1)
        else:
            gaps = ((gap,) * (len(part) - 1) for gap in _DEPTHS)
        for row in gaps:
            literals.add(b"".join(map(bytes.__add__, escapes, (*row, b""))))
    transitions: set[bytes] = set()
    for before, after in pairwise(map(variants, text)):
        for character in before:
            transitions.update(utf8(character) + gap for gap in (b"\\u", b"\\\\u"))
            escape = utf16_escape(character)
            transitions.update(escape + utf8(other)[:1] for other in after)
    return Window(phrase, start, end, frozenset(literals), frozenset(transitions))


def _cases(text: str, *, few: bool) -> Iterator[Sequence[str]]:
    """Yield a text in small letters, with a capital in front, and in capitals; or in all cases."""
    if few:
        yield from product(*map(variants, text))
        return
    small = [variants(character)[0] for character in text]
    capital = [variants(character)[-1] for character in text]
    yield small
    yield capital[:1] + small[1:]
    yield capital


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
