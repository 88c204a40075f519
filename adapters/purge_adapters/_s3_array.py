"""A JSON array as its elements, streaming: where each begins and ends, and its bytes.

Parsing the elements is left to :mod:`json`; this only finds their borders, so that one can be cut
out and every other byte stays. This module opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Permanent

__all__ = ["Element", "elements_of"]

_LARGEST: Final = 64 * 1024 * 1024
"""A longer element (or a document that is no array) is not held in memory."""
_SPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_NEXT: Final = re.compile(rb'["\[\]{},]')
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array.

    Args:
        number: its place, from 1.
        raw_start, raw_end: from behind the separator before it up to the one after it.
        start: where its bytes begin, without the white space around.
        data: its bytes.
        last: no comma follows.
        whole: it is no element but the whole document, which is no array.
    """

    number: int
    raw_start: int
    raw_end: int
    start: int
    data: bytes = field(repr=False)
    last: bool
    whole: bool = False


def _damaged(why: str) -> Permanent:
    return Permanent(f"The JSON is damaged: {why}.", problem=ProblemCode.CORRUPT)


def elements_of(blocks: Iterator[bytes]) -> Iterator[Element]:
    """Yield the elements of the array that a document is, or the document itself.

    Raises:
        Permanent: it is cut off, or too large to look at; what stands before was yielded.
    """
    head = b""
    base = 0
    """Where ``head`` begins in the document."""
    for block in blocks:
        head += block
        if base == 0 and head.startswith(_BOM[: len(head)]):
            if len(head) < len(_BOM):
                continue
            head, base = head[len(_BOM) :], len(_BOM)
        stripped = head.lstrip(_SPACE)
        if stripped:
            base += len(head) - len(stripped)
            if stripped.startswith(b"["):
                yield from _elements(stripped, base, blocks)
            else:
                data = _all(stripped, blocks)
                yield Element(1, 0, base + len(data), base, data.rstrip(_SPACE), True, whole=True)
            return


def _all(head: bytes, blocks: Iterator[bytes]) -> bytes:
    pieces, size = [head], len(head)
    for block in blocks:
        pieces.append(block)
        size += len(block)
        _demand_small(size)
    return b"".join(pieces)


def _demand_small(size: int) -> None:
    if size > _LARGEST:
        raise Permanent(
            "A record, or a document that is no array, is larger than 64 MiB.",
            problem=ProblemCode.LIMIT,
        )


def _elements(data: bytes, base: int, blocks: Iterator[bytes]) -> Iterator[Element]:
    """Yield the elements; ``data`` begins with the bracket, at ``base`` of the document."""
    at = begin = 1
    depth, number = 1, 0
    while True:
        match = _NEXT.search(data, at)
        if match is not None and match[0] == b'"':
            string = _STRING.match(data, match.start())
            at = string.end() if string is not None else match.start()
            if string is not None:
                continue
        elif match is not None:
            at = match.end()
            mark = match[0]
            if mark in b"[{":
                depth += 1
            elif mark in b"]}":
                depth -= 1
            if (mark == b"," and depth == 1) or depth == 0:
                raw = data[begin : match.start()]
                element = raw.strip(_SPACE)
                if element or number:
                    number += 1
                    start = base + begin + len(raw) - len(raw.lstrip(_SPACE))
                    yield Element(
                        number, base + begin, base + match.start(), start, element, depth == 0
                    )
                begin = at
            if depth == 0:
                if data[at:].strip(_SPACE) or any(block.strip(_SPACE) for block in blocks):
                    raise _damaged("something stands behind its end")
                return
            continue
        else:
            at = len(data)
        # The rest holds no whole token: more is needed, and what is done with is let go.
        data, base, at, begin = data[begin:], base + begin, at - begin, 0
        block = next(blocks, None)
        if block is None:
            raise _damaged("it is cut off")
        data += block
        _demand_small(len(data))
