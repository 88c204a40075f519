"""JSON as text: where its strings stand, emptying some of them, and making sense of a torn one.

For edits that leave everything else of a line as it was written. Parsing proper is left to
:mod:`json`. This module does no input or output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = [
    "NOT_JSON",
    "Path",
    "Repeated",
    "Span",
    "items",
    "leaves",
    "parse",
    "replace_scalars",
    "salvage",
    "spans",
]

Path = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_STRING: Final = r'"(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_TOKEN: Final = re.compile(
    rf'[ \t\r\n]*(?:(?P<mark>[{{}}\[\]:,])|(?P<string>{_STRING})|(?P<scalar>[^\s{{}}\[\]:,"]+))'
)
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_CLOSER: Final = {"{": "}", "[": "]"}


class Repeated(dict[str, object]):
    """An object in which a key stands more than once. As a mapping, the last value counts."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Repeated(pairs)


_DECODER: Final = json.JSONDecoder(strict=False, object_pairs_hook=_object)


class NotJson(Enum):
    """Stands for the value of what cannot be parsed."""

    NOT_JSON = "not JSON"


NOT_JSON: Final = NotJson.NOT_JSON


def parse(text: str) -> list[tuple[int, int, object]]:
    """Return the values that a text consists of, each with where it begins and ends.

    That is one for a line as it should be, several objects where a line break was lost, and none
    for white space. What cannot be parsed is one part with the value ``NOT_JSON``: the whole text,
    or what stands behind whole objects. Control characters in strings are accepted.
    """
    found: list[tuple[int, int, object]] = []
    at = start = _after_space(text, 0)
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = NOT_JSON, len(text)
        found.append((at, end, value))
        at = _after_space(text, end)
    if len(found) > 1 and not all(isinstance(value, dict | list) for _, _, value in found[:-1]):
        return [(start, len(text), NOT_JSON)]
    return found


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def items(value: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the members of an object, repeated ones included."""
    yield from value.pairs if isinstance(value, Repeated) else value.items()


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object, bool]]:
    """Yield every scalar below a value with its path, and every key (then the last is true)."""
    stack: list[tuple[Path, object]] = [(path, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, dict):
            inner = [((*place, key), below) for key, below in items(item)]
            for below_path, _ in inner:
                yield below_path, below_path[-1], True
            stack.extend(reversed(inner))
        elif isinstance(item, list):
            stack.extend(((*place, at), item[at]) for at in range(len(item) - 1, -1, -1))
        else:
            yield place, item, False


@dataclass(frozen=True, slots=True)
class Span:
    """A scalar of a JSON text: its path, where it stands (with the quotes of a string), and
    whether it is a key."""

    path: Path
    start: int
    end: int
    is_key: bool


class _Scan:
    """A walk over the tokens of a text, up to its end or to what is no JSON."""

    def __init__(self, text: str) -> None:
        self.good_end = 0
        """Where the last value ends that is complete for certain."""
        self.good_open = ""
        """What was open there."""
        self._text = text
        self._open: list[str] = []
        self._steps: list[str | int] = []
        """For each open container the key or index of the value that is read or comes next."""
        self._wanted = "value"
        self._is_empty = False
        """A container was opened just now."""

    def spans(self) -> Iterator[Span]:
        """Yield the scalars and keys in their order."""
        at = 0
        while (match := _TOKEN.match(self._text, at)) is not None:
            at = match.end()
            mark, string = match["mark"], match["string"]
            if string is not None and self._wanted == "key":
                self._steps[-1] = json.loads(string, strict=False)
                yield Span(tuple(self._steps), match.start("string"), at, True)
                self._wanted = ":"
            elif mark is None and self._wanted == "value":
                if string is None and at == len(self._text) and self._open:
                    return  # A number may be cut off and look whole.
                start = match.start("string" if string is not None else "scalar")
                yield Span(tuple(self._steps), start, at, False)
                self._complete(at)
            elif mark is None or not self._take(mark, at):
                return
            self._is_empty = mark is not None and mark in _CLOSER

    def _take(self, mark: str, at: int) -> bool:
        """Go on over a mark; return whether it may stand here."""
        if mark in _CLOSER and self._wanted == "value":
            self._open.append(mark)
            self._steps.append("" if mark == "{" else 0)
            self._wanted = "key" if mark == "{" else "value"
            self.good_end, self.good_open = at, "".join(self._open)
        elif mark in "}]" and self._open and self._may_close(mark):
            self._open.pop()
            self._steps.pop()
            self._complete(at)
        elif mark == ":" == self._wanted:
            self._wanted = "value"
        elif mark == "," == self._wanted:
            last = self._steps[-1]
            if isinstance(last, int):
                self._steps[-1] = last + 1
            self._wanted = "value" if isinstance(last, int) else "key"
        else:
            return False
        return True

    def _may_close(self, mark: str) -> bool:
        return _CLOSER[self._open[-1]] == mark and (self._wanted == "," or self._is_empty)

    def _complete(self, at: int) -> None:
        self.good_end, self.good_open = at, "".join(self._open)
        self._wanted = "," if self._open else ""


def spans(text: str) -> Iterator[Span]:
    """Yield the scalars and keys of a JSON text in their order."""
    return _Scan(text).spans()


def replace_scalars(text: str, choose: Callable[[Path, bool], str | None]) -> str:
    """Return a JSON text with some scalars replaced and everything else as it was written.

    Args:
        text: valid JSON.
        choose: gets the path of a scalar and whether it is a key; returns the string that is to
            stand in its place, or ``None`` to leave it.
    """
    pieces: list[str] = []
    done = 0
    for span in _Scan(text).spans():
        new = choose(span.path, span.is_key)
        if new is not None:
            pieces += [text[done : span.start], json.dumps(new)]
            done = span.end
    return "".join((*pieces, text[done:]))


def salvage(text: str) -> object:
    """Return what is complete in a text that is cut off or spoilt, up to that place.

    A value that is cut off is left out, since it may look like another: the id ``mem-31`` like
    ``mem-3``. ``NOT_JSON`` when nothing is complete.
    """
    scan = _Scan(text)
    try:
        for _ in scan.spans():
            pass
    except ValueError:
        return NOT_JSON
    closers = "".join(_CLOSER[mark] for mark in reversed(scan.good_open))
    parts = parse(text[: scan.good_end] + closers)
    return parts[0][2] if parts else NOT_JSON
