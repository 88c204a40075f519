"""Looking for many phrases in a text, with word edges."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from purge.errors import EmptySelector
from purge.matching.decode import Flavor, readings, unmarked
from purge.matching.fold import fold
from purge.matching.needles import Needles


class How(StrEnum):
    """How a hit was found."""

    ID = "id"
    LINEAGE = "lineage"
    EXACT = "exact"
    FOLDED = "folded"


_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


class PhraseMatcher:
    """Finds which of a set of phrases a text holds.

    A phrase is found in the folded form of any reading of the text. It may not begin or end
    inside a word of Latin, Greek or Cyrillic letters or digits; other scripts match anywhere.

    Args:
        phrases: the phrases by an opaque key, which the hits carry.

    Raises:
        EmptySelector: a phrase is empty once folded.
    """

    def __init__(self, phrases: Mapping[int, str]) -> None:
        self._raw = dict(phrases)
        self._folded = {key: fold(phrase) for key, phrase in phrases.items()}
        if not all(self._folded.values()):
            raise EmptySelector("A phrase is empty once white space and invisible characters go.")
        self._needles = Needles(self._folded)

    def __bool__(self) -> bool:
        return bool(self._folded)

    def search(self, text: str, flavor: Flavor = Flavor.PLAIN) -> dict[int, How]:
        """Return the phrases that ``text`` holds, each with how it was found.

        Marker lines are not part of the text.
        """
        hits: dict[int, How] = {}
        if not self._folded:
            return hits
        for reading in readings(unmarked(text), flavor):
            folded = fold(reading)
            for key in self._needles.found_in(folded):
                if hits.get(key) is How.EXACT or not contains(folded, self._folded[key]):
                    continue
                exact = contains(reading, self._raw[key])
                hits[key] = How.EXACT if exact else How.FOLDED
        return hits

    def mentions(self, content: bytes) -> bool:
        """Whether bytes in which nothing lives hold any of the phrases, in any written form.

        For left-over copies, where it is not known where a text begins: edges of words do not
        count, marker lines neither, and the bytes are read as UTF-8 and as UTF-16 of both orders.
        So it may see a phrase where :meth:`search` would not; it is for deciding what is left.
        """
        return any(True for _ in self._mentions(content))

    def mentioned(self, content: bytes) -> frozenset[int]:
        """Return the keys of the phrases that such bytes hold; as :meth:`mentions`."""
        return frozenset(self._mentions(content))

    def _mentions(self, content: bytes) -> Iterator[int]:
        if not self._folded or not content.strip(b"\0"):
            return
        for encoding in _ENCODINGS if b"\0" in content else _ENCODINGS[:1]:
            for shift in range(2 if encoding != "utf-8" else 1):
                text = content[shift:].decode(encoding, "replace")
                for reading in readings(text):
                    yield from self._needles.found_in(fold(reading))

    def search_all(self, texts: Iterable[tuple[str, Flavor]]) -> dict[int, How]:
        """Return what any of several texts holds; ``exact`` wins over ``folded``."""
        hits: dict[int, How] = {}
        for text, flavor in texts:
            for key, how in self.search(text, flavor).items():
                if hits.get(key) is not How.EXACT:
                    hits[key] = how
        return hits


def contains(text: str, phrase: str) -> bool:
    """Whether ``phrase`` stands in ``text`` with its edges at the edges of words."""
    return any(True for _ in occurrences(text, phrase))


def occurrences(text: str, phrase: str) -> Iterator[int]:
    """Yield where ``phrase`` begins in ``text``, with its edges at the edges of words."""
    at = text.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        if not (
            _joins(text[at - 1 : at] if at else "", phrase[0], "")
            or _joins(phrase[-1], text[end : end + 1], text[end : end + 1])
        ):
            yield at
        at = text.find(phrase, at + 1)


def _joins(before: str, after: str, following: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    if following and _is_mark(following):
        return True
    return bool(before) and bool(after) and _in_word(before) and _in_word(after)


@lru_cache(maxsize=4096)
def _in_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum()
    if character.isdecimal():
        return True
    if _is_mark(character):
        return True
    return character.isalpha() and unicodedata.name(character, "").startswith(
        ("LATIN", "GREEK", "CYRILLIC")
    )


def _is_mark(character: str) -> bool:
    """Whether it is an accent that stands alone because no composed letter exists.

    Thai and other scripts have marks of their own, which do not bind a phrase.
    """
    return unicodedata.name(character, "").startswith("COMBINING")
