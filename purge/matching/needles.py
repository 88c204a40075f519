"""Looking for many strings in a text at once.

Plain strings, compared as they are; what they mean is decided elsewhere. With ``ahocorasick_rs``
(the extra ``fast``) one pass finds any number of them; without it, their beginnings are looked up
in a table. This module does no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

__all__ = ["Needles"]

_FEW: Final = 6
"""So few are looked for one by one."""
_PIECE: Final = 1 << 18
"""How many characters are looked at in one go: the hits of a piece are gathered in memory."""
_GRAM: Final = 8
_SHORT: Final = 3
"""Shorter strings have no beginning worth looking up."""
_NOBODY: Final = "\U0010ffff"
_UNFIT: Final = re.compile(f"[\ud800-\udfff{_NOBODY}]")


class Needles:
    """A set of strings, of which it is asked which ones a text holds.

    Args:
        needles: the strings by an opaque key; none may be empty.
    """

    def __init__(self, needles: Mapping[int, str]) -> None:
        self._keys: dict[str, list[int]] = {}
        for key, needle in needles.items():
            self._keys.setdefault(needle, []).append(key)
        self._order = {key: at for at, key in enumerate(needles)}
        self._texts = tuple(self._keys)
        self._longest = max(map(len, self._texts), default=0)
        self._search = _search(self._texts) if len(self._texts) > _FEW else None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def found_in(self, text: str) -> list[int]:
        """Return the keys of the strings that ``text`` holds, in the order they were given."""
        if self._search is None:
            found: Iterable[str] = [needle for needle in self._texts if needle in text]
        else:
            search = self._search
            found = {needle for piece in self._pieces(text) for needle in search(piece)}
        keys = [key for needle in found for key in self._keys[needle]]
        if len(keys) > 1:
            keys.sort(key=self._order.__getitem__)
        return keys

    def any_in(self, text: str) -> bool:
        """Whether ``text`` holds any of them."""
        if self._search is None:
            return any(needle in text for needle in self._texts)
        search = self._search
        return any(True for piece in self._pieces(text) for _ in search(piece))

    def _pieces(self, text: str) -> Iterator[str]:
        if len(text) <= _PIECE:
            yield text
            return
        for start, end in pairwise([*range(0, len(text), _PIECE), len(text)]):
            yield text[start : end + self._longest - 1]


def _search(texts: tuple[str, ...]) -> Callable[[str], Iterator[str]]:
    """Return what finds the strings in a piece of text, with repetitions."""
    try:
        import ahocorasick_rs
    except ImportError:
        return _Grams(texts).found_in
    # The library takes no lone surrogates. In a text they become a character that no string has.
    encodable = tuple(text for text in texts if not _UNFIT.search(text))
    unfit = tuple(text for text in texts if _UNFIT.search(text))
    automaton = ahocorasick_rs.AhoCorasick(encodable, store_patterns=False)

    def found_in(piece: str) -> Iterator[str]:
        yield from (text for text in unfit if text in piece)
        try:
            found = automaton.find_matches_as_indexes(piece, overlapping=True)
        except UnicodeEncodeError:
            fit = _UNFIT.sub(_NOBODY, piece)
            found = automaton.find_matches_as_indexes(fit, overlapping=True)
        yield from (encodable[match[0]] for match in found)

    return found_in


class _Grams:
    """The beginnings of strings, all of one length, and the strings that begin so."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._short = tuple(text for text in texts if len(text) <= _SHORT)
        longer = [text for text in texts if len(text) > _SHORT]
        self._length = min((_GRAM, *map(len, longer)))
        self._begin: dict[str, list[str]] = {}
        for text in longer:
            self._begin.setdefault(text[: self._length], []).append(text)

    def found_in(self, piece: str) -> Iterator[str]:
        """Yield the strings that a piece of text holds."""
        yield from (text for text in self._short if text in piece)
        length = self._length
        grams = {piece[at : at + length] for at in range(len(piece) - length + 1)}
        for gram in self._begin.keys() & grams:
            yield from (text for text in self._begin[gram] if text in piece)
