"""From which characters a folded character can come: folding, read backwards.

Made once, when first asked for, from the Unicode data of the running Python, so that it can never
disagree with :func:`purge.matching.fold.fold`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Final

from purge.matching.fold import fold

__all__ = ["changed", "dropped", "marks_of", "sources", "variants"]

_UNCHANGED: Final = (
    (0x3400, 0x9FFF),  # ideographs
    (0xAC00, 0xD7A3),  # Hangul syllables: composed, and so already as folding leaves them
    (0xD800, 0xF8FF),  # surrogates and private use
    (0x17000, 0x18FFF),  # Tangut and Khitan
)
"""Characters that fold to themselves, all of them; a test says so. Skipping them saves time."""
_RANGES: Final = ((0x80, 0x1FFFF), (0x2F800, 0x2FA1F), (0xE0000, 0xE0FFF))


@cache
def changed() -> dict[str, str]:
    """Return every character beyond ASCII that folding changes, with what it becomes."""
    found: dict[str, str] = {}
    for character in _candidates():
        # Between two bars: white space at an edge would go, and nothing composes with a bar.
        folded = fold(f"|{character}|")[1:-1]
        if folded != character:
            found[character] = folded
    return found


def _candidates() -> Iterator[str]:
    for first, last in _RANGES:
        code = first
        while code <= last:
            skipped = next((end for start, end in _UNCHANGED if start <= code <= end), None)
            if skipped is None:
                yield chr(code)
                code += 1
            else:
                code = skipped + 1


@cache
def sources() -> dict[str, tuple[str, ...]]:
    """Return what other characters fold to each single character."""
    found: dict[str, list[str]] = {}
    for character, folded in changed().items():
        if len(folded) == 1:
            found.setdefault(folded, []).append(character)
    return {folded: tuple(characters) for folded, characters in found.items()}


@cache
def dropped() -> tuple[str, ...]:
    """Return the characters that folding drops."""
    return tuple(character for character, folded in changed().items() if not folded)


@cache
def variants(character: str) -> tuple[str, ...]:
    """Return the forms in which a folded character is commonly written: itself, a capital."""
    capital = character.upper()
    return (character, capital) if changed().get(capital) == character else (character,)


@cache
def marks_of(character: str) -> tuple[str, ...]:
    """Return what is written behind the base of a character where it stands decomposed."""
    return tuple(unicodedata.normalize("NFD", character)[1:])
