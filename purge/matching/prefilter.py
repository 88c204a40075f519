"""Finding the few lines of a log that may hold what is looked for, at the speed of the disk.

A prefilter for lines of JSON or text, before they are taken apart: it may name lines that hold
nothing, and never misses one in which :class:`purge.matching.phrases.PhraseMatcher` would find a
phrase in some string, or in which an id is written.

It works in three stages. Whole blocks are searched for a literal of each phrase and for oddities
(with Hyperscan, of the extra ``fast``; without it every line passes). Then a line must be odd, or
have literals of all the windows on some phrase. At last, with every encoding taken off, it must
hold a phrase or an id. A line passes a stage for certain if it holds a phrase: each window on it
either is written in one of its literals or makes the line odd.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from purge.matching.anchors import FEW, Sample, Window, id_literals, window_on
from purge.matching.decode import readings, strings_in, unescape
from purge.matching.fold import fold
from purge.matching.fragments import SIGNS, runs
from purge.matching.markers import MARKER
from purge.matching.needles import Needles
from purge.matching.oddities import ESCAPED_ALNUM, NUMBER, oddities_of
from purge.matching.scan import Scanner, make_scanner

__all__ = ["Prefilter"]

_LEVELS: Final = 8
"""How many times escapes are taken off a line; more than a reader of records does."""
_HITS_PER_MIB: Final = 40
"""So many lines may be looked at closely before that takes longer than the search."""
_CHUNK: Final = 32 * 1024
_NUMERIC: Final = re.compile(r"[-+.0-9eE]+")
_ODD_IDS: Final = frozenset({"inf", "-inf", "nan"})
_WINDOWS: Final = 3
_WINDOWS_OF_MANY: Final = 2
"""So many windows are put on a phrase, where they find room."""
_LONG: Final = 1 << 20
"""Longer lines pass once something was found in them: looking closer takes several copies."""
_TAIL: Final = 10
"""Of many ids only the ends are searched for: compiling takes long, the longer they are."""
_ODD: Final = -1
_MARK: Final = MARKER.removesuffix(":").encode("ascii")


class Prefilter:
    """Finds the lines that may hold some phrases or ids.

    Args:
        phrases: texts, looked for as ``PhraseMatcher.search`` does.
        ids: compared whole with strings and numbers of a record, without folding.
        sample: some of the bytes that are going to be searched, up to a MiB: decides about speed
            only.
    """

    def __init__(
        self, phrases: Iterable[str], ids: Iterable[str] = (), sample: bytes = b""
    ) -> None:
        self._made_of = (tuple(dict.fromkeys(phrases)), tuple(dict.fromkeys(ids)), bytes(sample))
        folded = {text for phrase in self._made_of[0] if (text := fold(phrase))}
        self._phrases = Needles(dict(enumerate(sorted(folded))))
        self._ids = Needles(dict(enumerate(self._made_of[1])))
        self._numbers = any(_NUMERIC.fullmatch(phrase.strip()) for phrase in self._made_of[0])
        self._open = any(map(_is_written_in_many_ways, self._made_of[1]))
        self._others: dict[int, tuple[tuple[frozenset[bytes], ...], ...]] = {}
        """For a literal of a window the other windows, of which a line must have literals too."""
        self._scanner = None if self._open else self._make_scanner(sorted(folded))

    def __reduce__(self) -> tuple[type[Prefilter], tuple[tuple[str, ...], tuple[str, ...], bytes]]:
        return type(self), self._made_of

    @property
    def is_fast(self) -> bool:
        """Whether whole blocks are searched; otherwise each line is looked at."""
        return self._scanner is not None

    def lines(self, data: bytes, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield where lines begin and end that may hold something, in order.

        Lines that are no UTF-8 or hold a NUL are always among them, very long ones as a rule.

        Args:
            data: lines, from the beginning of the first one.
            stop: where the lines end that are asked for, at the end of one; without it, at the
                end of the data.
        """
        for start, end in self._suspects(data, len(data) if stop is None else stop):
            if end - start > _LONG or self.may_hold(data[start:end]):
                yield start, end

    def _suspects(self, data: bytes, stop: int) -> Iterator[tuple[int, int]]:
        if self._scanner is None:
            yield from _all_lines(data, stop)
            return
        hits = self._scanner(data)
        hits += [(place, _ODD) for place in _undecodable(data, stop)]
        at = data.find(b"\0", 0, stop)
        while at >= 0:
            hits.append((at, _ODD))
            end = data.find(b"\n", at, stop)
            at = data.find(b"\0", end, stop) if end >= 0 else -1
        hits.sort()
        end = start = -1
        numbers: set[int] = set()
        for place, number in hits:
            if place > end:
                if numbers and self._is_suspect(data, start, end, numbers):
                    yield start, end
                if place >= stop:
                    return
                numbers = set()
                start = data.rfind(b"\n", 0, place) + 1
                end = data.find(b"\n", place, stop)
                end = stop if end < 0 else end
            numbers.add(number)
        if numbers and self._is_suspect(data, start, end, numbers):
            yield start, end

    def _is_suspect(self, data: bytes, start: int, end: int, numbers: set[int]) -> bool:
        """Whether a line is odd, or for some phrase has literals of all its windows."""
        others = self._others
        if end - start > _LONG or not others.keys() >= numbers:
            return True
        small = data[start:end].lower()
        for number in numbers:
            for windows in others[number]:
                for window in windows:
                    for literal in window:
                        if literal in small:
                            break
                    else:
                        break
                else:
                    return True
        return False

    def may_hold(self, line: bytes) -> bool:
        """Whether a line may hold something: it is decoded in full, but not taken apart."""
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            return True
        if self._open or "\0" in text or (self._numbers and _A_NUMBER.search(line)):
            return True
        if MARKER in text or self._ids.any_in(text):
            return True
        if self._phrases and _is_in_pieces(line) and self._holds_in_pieces(text):
            return True
        if "\\" in text and _is_json(text):
            # Only what stands in its strings is text; they are read without their escapes.
            text = unescape(text)
        for _ in range(_LEVELS):
            if MARKER in text or self._ids.any_in(text) or self._phrases.any_in(fold(text)):
                return True
            if "\\" not in text:
                return False
            before, text = text, unescape(text)
            if text == before:
                return False
        return True

    def _holds_in_pieces(self, text: str) -> bool:
        """Whether a line with a sign of texts in pieces may hold a phrase in one of them."""
        try:
            value = json.loads(text, strict=False, object_pairs_hook=_without_repetition)
        except (ValueError, RecursionError):
            return True
        # What stands in one string as it is, is seen without taking the line apart.
        strings = (said for said in strings_in(value) if _MAY_SAY_MORE.search(said))
        joined = (run.text for run in runs(value))
        return any(
            # A marker may be in pieces as well, and a phrase stand around it.
            MARKER in reading or self._phrases.any_in(fold(reading))
            for said in chain(strings, joined)
            for reading in readings(said)
        )

    def _make_scanner(self, folded: Sequence[str]) -> Scanner | None:
        _, ids, data = self._made_of
        sample = Sample(data)
        wanted = max(1, len(folded))
        most = _HITS_PER_MIB * max(len(data), 1) / (1 << 20) / wanted
        few = len(folded) <= FEW
        most_windows = _WINDOWS if few else _WINDOWS_OF_MANY
        windows: list[Window] = []
        alone: set[bytes] = set()
        others: dict[bytes, set[tuple[frozenset[bytes], ...]]] = {}
        for phrase in folded:
            own: list[Window] = []
            while len(own) < most_windows and (
                window := window_on(phrase, sample, most, few=few, beside=own)
            ):
                own.append(window)
            if not own:
                return None
            windows += own
            first, *more = own
            if not more:
                alone |= first.literals
            for literal in first.literals:
                others.setdefault(literal, set()).add(tuple(it.literals for it in more))
        odd = oddities_of(windows)
        alone.update((*ESCAPED_ALNUM, _MARK), odd.literals, _escaped_signs(ids))
        if folded:
            alone.update(SIGNS)
        for id in ids:
            written = id_literals(id)
            if not written:
                return None
            if len(ids) <= FEW:
                alone |= written
                continue
            for literal in written:
                rest = frozenset((literal.lower(),))
                others.setdefault(literal[-_TAIL:], set()).add((rest,))
        literals = sorted(alone | others.keys())
        self._others = {
            number: tuple(others[literal])
            for number, literal in enumerate(literals)
            if literal not in alone
        }
        groups = [*odd.groups, *([(NUMBER,)] if self._numbers else [])]
        return make_scanner(literals, groups)


_A_NUMBER: Final = re.compile(NUMBER, re.IGNORECASE)
_MAY_SAY_MORE: Final = re.compile(r"[<\\]|,\s*[{\[]")
_SECOND_ELEMENT: Final = re.compile(rb",[ \t\r\\nrtu0-9ad]*[{\[]", re.IGNORECASE)
_ESCAPED_SIGN: Final = re.compile(rb"u00[2-7]", re.IGNORECASE)
"""An escape for a sign, a letter or a digit: escaped often enough, these may write any sign."""


def _is_in_pieces(line: bytes) -> bool:
    """Whether a line may hold a text in pieces; true whenever it has a sign and does."""
    return bool(
        b"<" in line or _SECOND_ELEMENT.search(line) is not None or _ESCAPED_SIGN.search(line)
    )


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; one of which a reader may see another value is refused."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _is_written_in_many_ways(id: str) -> bool:
    """Whether an id is that of a number which need not stand in a record as it is."""
    return id in _ODD_IDS or (_NUMERIC.fullmatch(id) is not None and not id.isdecimal())


def _escaped_signs(ids: Iterable[str]) -> Iterator[bytes]:
    signs = {sign for id in ids for sign in id if sign.isascii() and not sign.isalnum()}
    yield from (b"\\u%04x" % ord(sign) for sign in signs)


def _all_lines(data: bytes, stop: int) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := data.find(b"\n", start, stop)) >= 0:
        if end > start:
            yield start, end
        start = end + 1
    if start < stop:
        yield start, stop


def _undecodable(data: bytes, limit: int) -> list[int]:
    """Return a place in each line that is no UTF-8."""
    found: list[int] = []
    if data.isascii():
        return found
    view = memoryview(data)
    at, end = 0, min(limit, len(data))
    while at < end:
        stop = min(at + _CHUNK, end)
        try:
            _, taken = _decode(view[at:stop], "strict", stop == end)
            at += taken
        except UnicodeDecodeError as error:
            found.append(at + error.start)
            following = data.find(b"\n", at + error.start, end)
            at = following + 1 if following >= 0 else end
    return found


_decode: Final[Callable[[memoryview, str, bool], tuple[str, int]]] = codecs.utf_8_decode
