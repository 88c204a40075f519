"""Odd ways of writing: what a line holds where a window on a phrase is not written as expected.

For every window there are literals that the usual writings hold. Every other writing of the window
holds one of the oddities made here, within the window. They are few for all windows together, and
rare in real files; a line that has one is looked at in full. Together with the literals they must
miss nothing that :class:`purge.matching.phrases.PhraseMatcher` finds in the line.

Written here as byte strings and regular expressions that disregard the case of ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from purge.matching.anchors import Window
from purge.matching.bytesets import any_of, byte_class, utf8, utf16_escape
from purge.matching.sources import changed, dropped, marks_of, sources, variants

__all__ = ["ESCAPED_ALNUM", "NUMBER", "Oddities", "oddities_of"]

ESCAPED_ALNUM: Final = (
    *(b"\\u00%d" % tens for tens in (4, 5, 6, 7)),
    *(b"\\u003%d" % digit for digit in range(10)),
)
"""Letters and digits of ASCII, and the backslash, as escapes."""
NUMBER: Final = b"(?:^|[:,\\[ \\t\\r\\n])-?[0-9]+[.e]"
"""A number that may be written in several ways."""
_WORDLIKE: Final = b"[0-9a-z]"
_CONTROLS: Final = b"[\\x09\\x0b-\\x0d\\x1c-\\x1f]"
_ASCII_WHITE: Final = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f "
_AFTER_SYMBOL: Final = ("\u200d", "\ufe0f")
"""Emoji are full of these two, behind escapes that begin with 2 or d."""
_LIKE_A_SYMBOL: Final = re.compile("u[2d][0-9a-f]{3}")
_NO_SYMBOL: Final = (
    b"(?:(?:[^\\\\\\n][^\\n]{5}|\\\\[^u\\n][^\\n]{4}|\\\\u[^2d\\n][^\\n]{3})|(?:^|\\n)[^\\n]{0,5})"
)
_JAMO: Final = re.compile("[\u1100-\u11ff]")
_SYLLABLE: Final = re.compile("[\uac00-\ud7a3]")
_COMPATIBLE: Final = ("\u3131", "\u3163")
"""The first and the last jamo of a block that Koreans use by themselves, as laughter and tears."""


@dataclass(frozen=True, slots=True)
class Oddities:
    """What odd writings hold: byte strings, and regular expressions."""

    literals: frozenset[bytes] = field(repr=False)
    patterns: tuple[bytes, ...] = field(repr=False)


def oddities_of(windows: Sequence[Window]) -> Oddities:
    """Return the oddities for some windows on phrases."""
    if not windows:
        return Oddities(frozenset(), ())
    text = "".join(dict.fromkeys("".join(window.text for window in windows)))
    plain = [character for character in text if character.isascii() and character != " "]
    foreign = [character for character in text if not character.isascii()]
    literals = {*_written(_lengthy(windows))}
    patterns = [*_invisible(windows, foreign)]
    if plain:
        patterns += _odd_letters(plain, lone=any(_has_lone_letter(window) for window in windows))
    if any(window.is_joined for window in windows):
        patterns += _white_space()
    if foreign:
        literals.update(literal for window in windows for literal in window.transitions)
        literals.add(b"\\\\\\u")
        literals.update(_written(_rare_forms(foreign)))
        patterns += _hangul() if _SYLLABLE.search("".join(foreign)) else ()
    return Oddities(frozenset(literals), tuple(patterns))


def _written(characters: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of characters, raw and escaped."""
    for character in characters:
        yield utf8(character)
        for between in (b"\\", b"\\\\") if len(utf16_escape(character)) > 5 else (b"",):
            yield utf16_escape(character, between)


def _has_lone_letter(window: Window) -> bool:
    return any(len(part) == 1 for part in re.findall("[a-z0-9]+", window.text))


@cache
def _white() -> tuple[str, ...]:
    return tuple(character for character, folded in changed().items() if folded == " ")


def _raw(characters: Iterable[str]) -> bytes:
    return any_of(utf8(character) for character in characters)


@cache
def _invisible_escape() -> bytes:
    """Return a pattern for an escaped invisible character, the ones of emoji apart."""
    first = {character for character in dropped() if character <= "\uffff"}
    escapes = {utf16_escape(character) for character in first - set(_AFTER_SYMBOL)}
    escapes.update(b"udb4%d" % digit for digit in range(4))
    return any_of(escapes)


def _invisible(windows: Sequence[Window], foreign: Sequence[str]) -> Iterator[bytes]:
    raw = _raw(dropped())
    yield _WORDLIKE + raw
    yield b"\\\\" + _invisible_escape()
    symbol = any_of(utf16_escape(character) for character in _AFTER_SYMBOL)
    if any(_LIKE_A_SYMBOL.search(window.text) for window in windows):
        yield b"\\\\" + symbol
    else:
        yield _NO_SYMBOL + b"\\\\+" + symbol
    if foreign:
        forms = {utf8(form) for character in foreign for form in variants(character)}
        yield _coarse(forms) + raw


def _coarse(forms: Iterable[bytes]) -> bytes:
    """Return a pattern for characters that begin as some do."""
    heads: dict[int, set[bytes]] = {}
    for form in forms:
        heads.setdefault(len(form), set()).add(form[: max(1, len(form) - 1)])
    parts = []
    for length, beginnings in sorted(heads.items()):
        if length == 3 and len(beginnings) > 8:
            firsts = byte_class(head[0] for head in beginnings)
            parts.append(firsts + b"[\\x80-\\xbf]{2}")
        else:
            parts.append(any_of(beginnings) + b"[\\x80-\\xbf]" * (length > 1))
    return b"(?:" + b"|".join(parts) + b")"


def _odd_letters(plain: Sequence[str], *, lone: bool) -> Iterator[bytes]:
    """Yield patterns for characters beyond ASCII that fold to a single letter or digit."""
    odd = {character for letter in plain for character in sources().get(letter, ())}
    if not odd:
        return
    escapes = {
        utf16_escape(character) if character <= "\uffff" else utf16_escape(character)[:5]
        for character in odd
    }
    # Full-width forms and the like beyond the first plane share their first half with emoji.
    enclosed = b"ud83c"
    yield b"\\\\" + any_of(escapes - {enclosed})
    if enclosed in escapes:
        yield b"\\\\ud83c\\\\+udd[0-9a]"
    raw = _raw(odd)
    if lone:
        yield raw
        return
    yield b"(?:" + _WORDLIKE + b"|" + raw + b")" + raw
    yield raw + b"(?:" + _WORDLIKE + b"|" + _raw(dropped()) + b")"


def _white_space() -> Iterator[bytes]:
    """Yield patterns for white space that is neither one space nor one escaped line break."""
    escaped = any_of(
        utf16_escape(character)
        for character in (*_white(), *dropped(), *_ASCII_WHITE)
        if character <= "\uffff"
    )
    raw = b"(?:" + _raw((*_white(), *dropped())) + b"|" + _CONTROLS + b")"
    break_or_escape = b"(?:[nrtf]|" + escaped + b"|udb4[0-3])"
    yield _WORDLIKE + b"(?: |\\\\n)?" + raw
    yield _WORDLIKE + b"(?: |\\\\n)(?: |\\\\+" + break_or_escape + b")"
    yield _WORDLIKE + b"(?:\\\\{2,}[nrtf]|\\\\[rtf]|\\\\+" + escaped + b")"


def _lengthy(windows: Sequence[Window]) -> Iterator[str]:
    """Yield the characters that fold to several, where those may overlap a window."""
    lengthy = {character: folded for character, folded in changed().items() if len(folded) > 1}
    for length in sorted({len(folded) for folded in lengthy.values()}):
        around = "\n".join(
            dict.fromkeys(
                window.phrase[max(0, window.start - length + 1) : window.end + length - 1]
                for window in windows
            )
        )
        starts = {
            window.phrase[:size] for window in windows for size in range(window.start + 1, length)
        }
        ends = {
            window.phrase[-size:]
            for window in windows
            for size in range(len(window.phrase) - window.end + 1, length)
        }
        short = [window.phrase for window in windows if len(window.phrase) < length]
        for character, folded in lengthy.items():
            if len(folded) == length and (
                folded in around
                or _stands_at_an_edge(folded, starts, ends)
                or any(phrase in folded for phrase in short)
            ):
                yield character


def _stands_at_an_edge(folded: str, starts: set[str], ends: set[str]) -> bool:
    """Whether a phrase can begin or end within what a character folds to."""
    return any(
        (folded[at:] in starts or folded[:at] in ends)
        and not _in_one_word(folded[at - 1], folded[at])
        for at in range(1, len(folded))
    )


def _in_one_word(before: str, after: str) -> bool:
    """Whether two characters are ASCII letters or digits, between which no phrase ends."""
    return before.isascii() and after.isascii() and before.isalnum() and after.isalnum()


def _rare_forms(foreign: Sequence[str]) -> Iterator[str]:
    """Yield what else than the usual forms can become one of some characters."""
    marks: set[str] = set()
    for character in foreign:
        usual = variants(character)
        yield from (other for other in sources().get(character, ()) if other not in usual)
        if not _SYLLABLE.match(character):
            marks.update(marks_of(character))
            # A mark may hang on another form of the same letter.
    yield from marks
    for character, folded in changed().items():
        if folded and folded[0] in marks and unicodedata.combining(folded[0]):
            yield character


def _hangul() -> Iterator[bytes]:
    """Yield patterns for syllables that are written as jamo."""
    first, last = _COMPATIBLE
    jamo = [chr(code) for code in range(0x1100, 0x1200)]
    jamo += [
        character
        for character, folded in changed().items()
        if _JAMO.search(folded) and not first <= character <= last
    ]
    yield _raw(jamo)
    yield b"\\\\" + any_of({b"u11", *(utf16_escape(character) for character in jamo)})
    alone = [chr(code) for code in range(ord(first), ord(last) + 1)]
    consonants = [letter for letter in alone if letter <= "\u314e"]
    vowels = [letter for letter in alone if letter > "\u314e"]
    raw = _raw((*vowels, *dropped()))
    yield _raw(consonants) + raw
    escaped = any_of(map(utf16_escape, vowels))
    yield any_of(map(utf16_escape, consonants)) + b"(?:\\\\+" + escaped + b"|" + raw + b")"
    yield _raw(consonants) + b"\\\\+" + escaped
