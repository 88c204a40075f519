"""CSV as rows of bytes, streaming, and a row as a record. This module opens nothing.

A quote opens only at the beginning of a field, as :mod:`csv` has it; a row may hold line breaks.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Permanent

__all__ = ["Row", "Table", "rows_of", "told_apart"]

_LARGEST: Final = 64 * 1024 * 1024
_DELIMITERS: Final = b",;\t|"
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its number (1 is the header), where it begins, its bytes without the line break,
    and how long the line break is."""

    number: int
    start: int
    data: bytes = field(repr=False)
    ending: int


def _pattern(delimiter: bytes) -> re.Pattern[bytes]:
    mark = re.escape(delimiter)
    quoted = rb'"(?:[^"]++|"")*+"[^' + mark + rb"\r\n]*+"
    plain = rb'(?!")[^' + mark + rb"\r\n]*+"
    one = rb"(?:" + quoted + rb"|" + plain + rb")"
    return re.compile(one + rb"(?:" + mark + one + rb")*+(?P<end>\r\n|\n|\r)")


def rows_of(blocks: Iterator[bytes]) -> Iterator[Row]:
    """Yield the rows of a table, the header first.

    Raises:
        Permanent: a quote is not closed, so that nobody can say where the row ends.
    """
    data = b""
    start = number = 0
    pattern: re.Pattern[bytes] | None = None
    for block in blocks:
        data += block
        if pattern is None:
            if b"\n" not in data and len(data) < _LARGEST:
                continue
            pattern = _pattern(delimiter_of(data))
        at = 0
        # A lone carriage return at the end may be half of a line break.
        while (match := pattern.match(data, at)) and not (
            match.end() == len(data) and match["end"] == b"\r"
        ):
            number += 1
            yield Row(number, start + at, data[at : match.start("end")], len(match["end"]))
            at = match.end()
        data, start = data[at:], start + at
        if len(data) > _LARGEST:
            raise Permanent("A row is larger than 64 MiB.", problem=ProblemCode.LIMIT)
    pattern = pattern or _pattern(delimiter_of(data))
    at = 0
    ended = data if data.endswith((b"\n", b"\r")) else data + b"\n"
    while at < len(data):
        match = pattern.match(ended, at)
        if match is None:
            raise Permanent(
                "The table is damaged: a quote is not closed.", problem=ProblemCode.CORRUPT
            )
        number += 1
        ending = min(match.end(), len(data)) - min(match.start("end"), len(data))
        yield Row(number, start + at, data[at : match.start("end")], ending)
        at = match.end()


def delimiter_of(data: bytes) -> bytes:
    """Return what separates the fields of the first line: the most frequent of the usual ones."""
    line = re.sub(rb'"[^"]*"', b"", data.split(b"\n", 1)[0])
    return max((bytes((mark,)) for mark in _DELIMITERS), key=line.count)


def told_apart(names: Iterable[str]) -> list[str]:
    """Return the names of columns, each once: a column must not hide one of the same name."""
    found: dict[str, None] = {}
    for name in names:
        told, number = name, 1
        while told in found:
            number += 1
            told = f"{name}*{number}"
        found[told] = None
    return list(found)


class Table:
    """What the header of a table says, to read its rows with."""

    def __init__(self, header: Row) -> None:
        self._delimiter = delimiter_of(header.data).decode("ascii")
        self.columns = told_apart(self._fields(header.data.removeprefix(_BOM)))

    def value(self, row: Row) -> dict[str, object]:
        """Return a row as a record. Fields beyond the header are named after their place."""
        fields = self._fields(row.data)
        names = [*self.columns, *(f"*{at}" for at in range(len(self.columns), len(fields)))]
        return dict(zip(names, fields, strict=False))

    def _fields(self, data: bytes) -> list[str]:
        text = data.decode("utf-8", "surrogateescape")
        limit = csv.field_size_limit(_LARGEST)
        try:
            lines = io.StringIO(text, newline="")
            rows = list(csv.reader(lines, delimiter=self._delimiter))
        finally:
            csv.field_size_limit(limit)
        return [field for row in rows for field in row]
