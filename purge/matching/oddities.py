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

from purge.matching.anchors import FEW, Window
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
_COMMON_WHITE: Final = ("\u00a0", "\u3000")
_EMOJI: Final = b"ud83c"
_ENCLOSED: Final = (b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"a")
"""Letters in circles and squares, U+1F100 and on: what follows the first half, which emoji share
with them. Flags, from U+1F1E6 on, are no letters."""
_GAPS: Final = (b"\\", b"\\\\")
_DEEP: Final = b"\\\\\\"
"""Behind the first half of a character, this much or more: it was escaped three times at least."""
_ESCAPED_WHITE: Final = (b"\\r", b"\\t", b"\\f", b"\\\\", b"\\u00a0", b"\\u3000")
_BREAKS: Final = (b" ", b"\\n", b"\\n\\n")
"""White space that is not odd; behind it, more white space is."""
_FULL_WIDTH: Final = frozenset(map(chr, range(0xFF10, 0xFF5B)))
_UNEVEN: Final = (
    b"[^\\\\\\n]\\\\u[0-9a-f]{4}\\\\\\\\u",
    b"\\\\\\\\u[0-9a-f]{4}\\\\u",
)
"""Escapes side by side of which one was escaped once more than the other."""
_LIKE_A_SYMBOL: Final = re.compile("u[2d][0-9a-f]{3}")
_NO_SYMBOL: Final = (
    b"(?:(?:[^\\\\\\n][^\\n]{5}|\\\\[^u\\n][^\\n]{4}|\\\\u[^2d\\n][^\\n]{3})|(?:^|\\n)[^\\n]{0,5})"
)
_JAMO: Final = re.compile("[\u1100-\u11ff]")
_SYLLABLE: Final = re.compile("[\uac00-\ud7a3]")
_COMPATIBLE: Final = ("\u3131", "\u3163")
"""The first and the last jamo of a block that Koreans use by themselves, as laughter and tears."""
_FINAL: Final = "\u11a8"
"""From here on jamo end a syllable: they join with one that stands before them."""


@dataclass(frozen=True, slots=True)
class Oddities:
    """What odd writings hold: byte strings, and regular expressions.

    The expressions come in groups: Hyperscan is much slower with all of them at once, since some
    end alike and begin differently.
    """

    literals: frozenset[bytes] = field(repr=False)
    groups: tuple[tuple[bytes, ...], ...] = field(repr=False)


def oddities_of(windows: Sequence[Window]) -> Oddities:
    """Return the oddities for some windows on phrases."""
    if not windows:
        return Oddities(frozenset(), ())
    text = "".join(dict.fromkeys("".join(window.text for window in windows)))
    plain = [character for character in text if character.isascii() and character != " "]
    foreign = [character for character in text if not character.isascii()]
    is_joined = any(window.is_joined for window in windows)
    odd = tuple({character for letter in plain for character in sources().get(letter, ())})
    literals = {*_written(_lengthy(windows)), *_escaped_forms((*dropped(), *odd))}
    literals -= _common_escapes()
    patterns = [_before_symbols(windows)]
    apart: tuple[bytes, ...] = ()
    if is_joined:
        specific = len(windows) <= FEW
        patterns += _white_space(specific=specific)
        if specific:
            literals.update(gap for window in windows for gap in _odd_gaps(window))
        literals |= set(_escaped_forms((*_white(), *_ASCII_WHITE))) - _common_escapes()
    else:
        patterns.append(_WORDLIKE + _raw(dropped()))
    if odd:
        lone = any(_has_lone_letter(window) for window in windows)
        literals.update(utf8(letter) for letter in odd if lone or letter not in _FULL_WIDTH)
        full = [letter for letter in odd if letter in _FULL_WIDTH]
        if full and not lone:
            # Japanese text has them by themselves.
            patterns.append(_WORDLIKE + _raw(full))
            behind = b"(?:" + _WORDLIKE + b"|" + _raw((*full, *dropped())) + b")"
            patterns.append(_raw(full) + behind)
    if foreign:
        forms = {utf8(form) for character in foreign for form in variants(character)}
        apart = (_coarse(forms) + _raw(dropped()),)
        literals.update(literal for window in windows for literal in window.transitions)
        literals.add(b"\\\\\\u")
        literals.update(_written(_rare_forms(foreign)))
        if len(windows) > FEW:
            patterns += _odd_cases(foreign)
            patterns += _UNEVEN
        patterns += _hangul() if _SYLLABLE.search("".join(foreign)) else ()
    return Oddities(frozenset(literals), tuple(filter(None, (tuple(patterns), apart))))


def _odd_cases(foreign: Sequence[str]) -> Iterator[bytes]:
    """Yield patterns for capitals where no word has them: inside, or two in front."""
    cased = [character for character in foreign if len(variants(character)) > 1]
    if not cased:
        return
    for form, gap in ((utf8, b""), (utf16_escape, b"\\\\+")):
        small = any_of(form(character) for character in cased)
        capital = any_of(form(variants(character)[1]) for character in cased)
        yield small + gap + capital
        yield capital + gap + capital + gap + small


@cache
def _common_escapes() -> frozenset[bytes]:
    """Return the escapes that are too common to be odd wherever they stand."""
    return frozenset(map(utf16_escape, (*_AFTER_SYMBOL, *_COMMON_WHITE)))


def _escaped_forms(characters: Iterable[str]) -> Iterator[bytes]:
    """Yield escapes; of characters beyond the first plane what many of them begin with."""
    for character in characters:
        if character <= "\uffff":
            yield utf16_escape(character)
        elif (first := utf16_escape(character)[:5]) != _EMOJI:
            yield first
        else:
            yield from (_EMOJI + gap + b"udd" + digit for gap in _GAPS for digit in _ENCLOSED)
            yield _EMOJI + _DEEP


def _written(characters: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of characters, raw and escaped."""
    for character in characters:
        yield utf8(character)
        escape = utf16_escape(character)
        if character <= "\uffff":
            yield escape
        else:
            yield from (utf16_escape(character, gap) for gap in _GAPS)
            yield escape[:5] + _DEEP


def _has_lone_letter(window: Window) -> bool:
    return any(len(part) == 1 for part in re.findall("[a-z0-9]+", window.text))


@cache
def _white() -> tuple[str, ...]:
    return tuple(character for character, folded in changed().items() if folded == " ")


def _raw(characters: Iterable[str]) -> bytes:
    return any_of(utf8(character) for character in characters)


def _before_symbols(windows: Sequence[Window]) -> bytes:
    """Return a pattern for an escaped invisible character that does not stand in an emoji."""
    symbol = any_of(utf16_escape(character) for character in _AFTER_SYMBOL)
    if any(_LIKE_A_SYMBOL.search(window.text) for window in windows):
        return b"\\\\" + symbol
    return _NO_SYMBOL + b"\\\\+" + symbol


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


def _white_space(*, specific: bool) -> Iterator[bytes]:
    """Yield patterns for white space that is neither one space nor one escaped line break."""
    raw = _raw((*_white(), *dropped()))
    yield _WORDLIKE + b"(?: |\\\\n(?:\\\\n)?)?(?:" + raw + b"|" + _CONTROLS + b")"
    if specific:
        return
    common = any_of(utf16_escape(character) for character in _COMMON_WHITE)
    more = b"(?: |\\\\[rtf]|\\\\\\\\|\\\\" + common + b")"
    yield _WORDLIKE + b" (?:" + more + b"|\\\\n)"
    yield _WORDLIKE + b"\\\\n" + more
    yield _WORDLIKE + b"\\\\n\\\\n(?:" + more + b"|\\\\n)"
    yield _WORDLIKE + b"\\\\\\\\+[nrtf]"
    yield _WORDLIKE + b"\\\\[rtf]"
    yield _WORDLIKE + b"\\\\+" + common


def _odd_gaps(window: Window) -> Iterator[bytes]:
    """Yield how white space in ASCII begins behind the words of a window, if it is odd."""
    for word in window.text.split(" ")[:-1]:
        tail = word[-8:].encode("ascii")
        yield from (tail + white for white in _ESCAPED_WHITE)
        for gap in _BREAKS:
            yield from (tail + gap + white for white in (b" ", *_ESCAPED_WHITE))
        yield tail + b" \\n"
        yield tail + b"\\n\\n\\n"


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
        if _JAMO.search(folded) and not (first <= character <= last and folded < _FINAL)
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
