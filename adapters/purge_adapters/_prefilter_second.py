"""Looking a second time, so that no fault of the sieve makes a record look deleted.

What ``find`` does not see is not removed, and a ``residue`` that looked through the same sieve
would not see it either: one fault would blind both, and the answer would be a false "deleted".
Reading every line in full again is no way out: that is fifty times slower, and a look which takes
hours is not taken. So the second look differs in three ways.

- It takes apart what the sieve gives and, besides, every line in which a phrase, an id or a text of
  a record stands in one of its written forms. These are looked for as bytes, with another library,
  and with none of the tables from which the sieve is made. It is what one would do by hand with
  ``grep``, and it finds fewer forms than the sieve, but it owes nothing to it.
- What it finds and the sieve does not give is residue: somebody has to be told.
- Before anything is believed, the sieve itself is put to the test, the very one that is used: each
  phrase is written down in the usual ways, and it must give every one of these lines. (That every
  byte of a file went through the sieve is seen to where files are read for it.)

Where the libraries for searching fast are not installed, every line is read in full, both times.
Nothing here opens a file.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from purge.matching import fold
from purge.matching.prefilter import Prefilter

__all__ = ["SecondLook", "second_look", "sees"]

_TRIED: Final = 2000
"""So many phrases are written down at the most."""


class SecondLook:
    """Gives what a prefilter gives, and the lines that hold some bytes.

    Args:
        prefilter: that of the first look.
        needles: the bytes, none of them empty. Those with a line break stand in no line.

    Raises:
        ImportError: there is no library for looking for many byte strings.
    """

    def __init__(self, prefilter: Prefilter, needles: Iterable[bytes]) -> None:
        self._made_of = (
            prefilter,
            tuple(dict.fromkeys(needle for needle in needles if b"\n" not in needle)),
        )
        self._first = prefilter
        self._search = _search(self._made_of[1])

    def __reduce__(self) -> tuple[type[SecondLook], tuple[Prefilter, tuple[bytes, ...]]]:
        return type(self), self._made_of

    def lines(self, data: bytes, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield where lines begin and end, as :meth:`Prefilter.lines` does."""
        limit = len(data) if stop is None else stop
        found = set(self._first.lines(data, limit))
        if self._search is not None:
            end = -1
            for _, place, _ in self._search.find_matches_as_indexes(data):
                if end < place < limit:
                    end = data.find(b"\n", place, limit)
                    end = limit if end < 0 else end
                    found.add((data.rfind(b"\n", 0, place) + 1, end))
        yield from sorted(found)


def _search(needles: Sequence[bytes]) -> Any:
    import ahocorasick_rs

    return ahocorasick_rs.BytesAhoCorasick(needles) if needles else None


def second_look(prefilter: Prefilter, needles: Iterable[bytes]) -> SecondLook | None:
    """Return the filter of a second look; ``None`` if every line has to be read for it."""
    if not prefilter.is_fast:
        return None
    try:
        return SecondLook(prefilter, needles)
    except ImportError:
        return None


def sees(prefilter: Prefilter, phrases: Sequence[str]) -> bool:
    """Whether a prefilter gives every usual writing of the phrases that it was made for."""
    step = len(phrases) // _TRIED + 1
    lines = [line for phrase in phrases[::step] for line in _writings(phrase)]
    return len(list(prefilter.lines(b"\n".join(lines)))) == len(lines)


def _writings(phrase: str) -> Iterator[bytes]:
    """Yield lines of JSON that say a phrase, in ways in which logs are really written."""
    decomposed = unicodedata.normalize("NFD", phrase)
    for text in {phrase, decomposed, phrase.upper(), phrase.replace(" ", "\n")}:
        if fold(text) != fold(phrase):
            continue  # Some letters have no capitals of their own.
        raw, escaped = json.dumps([text], ensure_ascii=False), json.dumps([text])
        yield raw.encode("utf-8", "surrogatepass")
        yield escaped.encode("ascii")
        yield json.dumps([raw], ensure_ascii=False).encode("utf-8", "surrogatepass")
        yield json.dumps([escaped]).encode("ascii")
