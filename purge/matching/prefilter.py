"""Finding the few lines of a log that may hold what is looked for, at the speed of the disk.

A prefilter for lines of JSON or text, before they are taken apart: it may name lines that hold
nothing, and never misses one in which :class:`purge.matching.phrases.PhraseMatcher` would find a
phrase in some string, or in which an id is written. It works in two stages: a search of whole
blocks for literals and oddities (with Hyperscan, of the extra ``fast``; without it every line
passes), and a closer look at the lines that passed, with every encoding taken off.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from purge.matching.anchors import Sample, Window, id_literals, windows_of
from purge.matching.decode import unescape
from purge.matching.fold import fold
from purge.matching.markers import MARKER
from purge.matching.needles import Needles
from purge.matching.oddities import ESCAPED_ALNUM, NUMBER, oddities_of
from purge.matching.scan import Scanner, make_scanner

__all__ = ["Prefilter"]

Block = bytes | bytearray | memoryview

_LEVELS: Final = 8
"""How many times escapes are taken off a line; more than a reader of records does."""
_HITS_PER_MIB: Final = 40
"""So many lines may be looked at closely before that takes longer than the search."""
_CHUNK: Final = 32 * 1024
_NUMERIC: Final = re.compile(r"[-+.0-9eE]+")
_ODD_IDS: Final = frozenset({"inf", "-inf", "nan"})
_MARK: Final = MARKER.removesuffix(":").encode("ascii")


class Prefilter:
    """Finds the lines that may hold some phrases or ids.

    Args:
        phrases: texts, looked for as ``PhraseMatcher.search`` does.
        ids: compared whole with strings and numbers of a record, without folding.
        sample: some of the bytes that are going to be searched, a MiB or so: decides about speed
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
        self._scanner = self._make_scanner(sorted(folded))

    def __reduce__(self) -> tuple[type[Prefilter], tuple[tuple[str, ...], tuple[str, ...], bytes]]:
        return type(self), self._made_of

    @property
    def is_fast(self) -> bool:
        """Whether whole blocks are searched; otherwise each line is looked at."""
        return self._scanner is not None

    def lines(self, block: Block) -> Iterator[tuple[int, int]]:
        """Yield where lines begin and end that may hold something, in order.

        Lines that are no UTF-8 or hold a NUL are always among them.

        Args:
            block: whole lines; the last one need not have a line break.
        """
        data = block if isinstance(block, bytes | bytearray) else bytes(block)
        for start, end in self._suspects(data):
            if self.may_hold(bytes(memoryview(data)[start:end])):
                yield start, end

    def _suspects(self, data: bytes | bytearray) -> Iterator[tuple[int, int]]:
        if self._scanner is None:
            yield from _all_lines(data)
            return
        places = self._scanner(data)
        places += _undecodable(data)
        at = data.find(b"\0")
        while at >= 0:
            places.append(at)
            end = data.find(b"\n", at)
            at = data.find(b"\0", end) if end >= 0 else -1
        places.sort()
        end = -1
        for place in places:
            if place >= end:
                start = data.rfind(b"\n", 0, place) + 1
                end = data.find(b"\n", place)
                end = len(data) if end < 0 else end
                yield start, end

    def may_hold(self, line: bytes) -> bool:
        """Whether a line may hold something: it is decoded in full, but not taken apart."""
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            return True
        if "\0" in text or (self._numbers and _A_NUMBER.search(line)):
            return True
        for _ in range(_LEVELS):
            if MARKER in text or self._ids.any_in(text) or self._phrases.any_in(fold(text)):
                return True
            if "\\" not in text:
                return False
            before, text = text, unescape(text)
            if text == before:
                return False
        return True

    def _make_scanner(self, folded: Sequence[str]) -> Scanner | None:
        _, ids, data = self._made_of
        sample = Sample(data)
        wanted = max(1, len(folded))
        most = _HITS_PER_MIB * max(len(data), 1) / (1 << 20) / wanted
        windows: list[Window] = []
        for phrase in folded:
            window = windows_of(phrase, sample, most)
            if window is None:
                return None
            windows.append(window)
        odd = oddities_of(windows)
        literals = {*ESCAPED_ALNUM, _MARK, *odd.literals}
        literals.update(literal for window in windows for literal in window.literals)
        for id in ids:
            written = id_literals(id)
            if not written or id in _ODD_IDS or (_NUMERIC.fullmatch(id) and not id.isdecimal()):
                return None
            literals.update(written)
        literals.update(_escaped_signs(ids))
        patterns = [*odd.patterns, *([NUMBER] if self._numbers else [])]
        return make_scanner(literals, patterns)


_A_NUMBER: Final = re.compile(NUMBER, re.IGNORECASE)


def _escaped_signs(ids: Iterable[str]) -> Iterator[bytes]:
    signs = {sign for id in ids for sign in id if sign.isascii() and not sign.isalnum()}
    yield from (b"\\u%04x" % ord(sign) for sign in signs)


def _all_lines(data: bytes | bytearray) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        if end > start:
            yield start, end
        start = end + 1
    if start < len(data):
        yield start, len(data)


def _undecodable(data: bytes | bytearray) -> list[int]:
    """Return a place in each line that is no UTF-8."""
    found: list[int] = []
    if data.isascii():
        return found
    view = memoryview(data)
    at, end = 0, len(data)
    while at < end:
        stop = min(at + _CHUNK, end)
        try:
            _, taken = _decode(view[at:stop], "strict", stop == end)
            at += taken
        except UnicodeDecodeError as error:
            found.append(at + error.start)
            following = data.find(b"\n", at + error.start)
            at = following + 1 if following >= 0 else end
    return found


_decode: Final[Callable[[memoryview, str, bool], tuple[str, int]]] = codecs.utf_8_decode
