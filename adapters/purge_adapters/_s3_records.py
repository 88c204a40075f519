"""The records of an object, whatever its format, each with where it stands. Only reads.

Records are compared by the same code as those of JSON Lines files (``_jsonl_match``): one
definition of a hit, in a file or in a bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._codecs import HEAD_BYTES, Codec, Readable, detect, read_members
from purge_adapters._json_text import parse
from purge_adapters._jsonl_lines import is_wide, lines_of
from purge_adapters._jsonl_record import Entry, Fields, entries_of
from purge_adapters._s3_array import elements_of
from purge_adapters._s3_rows import Table, rows_of
from purge_adapters._s3_settings import Format
from purge_adapters._s3_store import Content

__all__ = ["METADATA", "TAGS", "Spot", "begun", "object_entry", "record_entry", "spots_of"]

KEY: Final = "$key"
ID: Final = "$id"
TEXT: Final = "$text"
METADATA: Final = "$metadata"
TAGS: Final = "$tags"
_LARGEST: Final = 64 * 1024 * 1024
"""A longer object is not compared as one record."""
_SNIFFED: Final = 8000


@dataclass(frozen=True, slots=True)
class Spot:
    """A record and where it stands.

    Args:
        entry: the record.
        start, end: what goes with it, in the plain content; row numbers in Parquet.
        at: where its own bytes begin.
        number: of the line, element or row, for people.
        last: no element of the array stands behind it.
        document: it is all that the object says, so that it goes with the object.
    """

    entry: Entry = field(repr=False)
    start: int
    end: int
    at: int
    number: int
    last: bool = False
    document: bool = False


class _Chained:
    """A stream whose beginning was read already."""

    def __init__(self, head: bytes, stream: Readable) -> None:
        self._head, self._stream = head, stream

    def read(self, size: int, /) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._stream.read(size)


def begun(stream: Readable) -> tuple[Codec, Readable]:
    """Return what a stream is compressed with, and the stream from its beginning."""
    head = b""
    while len(head) < HEAD_BYTES and (more := stream.read(HEAD_BYTES - len(head))):
        head += more
    return detect(head), _Chained(head, stream)


def plain(stream: Readable) -> Iterator[bytes]:
    """Yield the content of a stream without its compression. Raises ``Permanent``."""
    codec, whole = begun(stream)
    for _, block in read_members(whole, codec):
        yield block


def spots_of(
    stream: Readable, form: Format, fields: Fields, key: str, said: list[str] | None = None
) -> Iterator[Spot]:
    """Yield the records that stand in an object.

    Args:
        stream: the object.
        form: any but ``OBJECT``.
        fields: what the fields of a record mean.
        key: of the object.
        said: takes what a file says besides its records, where its format has a place for it.

    Raises:
        StoreError: it is damaged or cannot be read; what could be read was yielded.
    """
    if form is Format.PARQUET:
        from purge_adapters._s3_parquet import parquet_rows

        yield from parquet_rows(stream, fields, key, said)
        return
    blocks = plain(stream)
    if form is Format.JSONL:
        for line in lines_of(blocks):
            for entry in entries_of(line.data, fields, key):
                at = line.offset + entry.start
                end = at + len(entry.data)
                behind = line.ended and entry.whole
                yield Spot(entry, at, end + behind, at, line.number)
        return
    head = next(blocks, b"")
    if is_wide(head):
        raise Permanent(
            "it is in UTF-16, which is not read in this format", problem=ProblemCode.UNSUPPORTED
        )
    blocks = _after(head, blocks)
    if form is Format.JSON:
        yield from _in_array(blocks, fields, key)
    else:
        yield from _in_table(blocks, fields, key)


def _after(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from blocks


def _in_array(blocks: Iterator[bytes], fields: Fields, key: str) -> Iterator[Spot]:
    for element in elements_of(blocks):
        found = entries_of(element.data, fields, key)
        if len(found) != 1 or not found[0].parsed:
            raise Permanent(
                "The JSON is damaged: an element cannot be read.", problem=ProblemCode.CORRUPT
            )
        yield Spot(
            found[0],
            element.raw_start,
            element.raw_end,
            element.start,
            element.number,
            element.last,
            element.whole,
        )


def _in_table(blocks: Iterator[bytes], fields: Fields, key: str) -> Iterator[Spot]:
    rows = rows_of(blocks)
    header = next(rows, None)
    if header is None:
        return
    table = Table(header)
    for row in rows:
        if row.data.strip():
            entry = record_entry(table.value(row), row.data, fields, key)
            end = row.start + len(row.data) + row.ending
            yield Spot(entry, row.start, end, row.start, row.number)


def record_entry(value: object, data: bytes, fields: Fields, key: str) -> Entry:
    """Return a record that was read from something else than JSON."""
    text = data.decode("utf-8", "surrogateescape")
    mended = any("\udc80" <= character <= "\udcff" for character in text)
    return Entry(fields, data, 0, True, text, value, True, mended, key)


def object_entry(
    content: bytes | None, key: str, id: str | None, labels: Mapping[str, object], fields: Fields
) -> Entry:
    """Return an object as a record: its content, its key, its metadata and its tags.

    Args:
        content: without compression; ``None`` where only the key decides.
        key: of the object.
        id: the record's id where the key says it.
        labels: the object's own metadata and tags.
        fields: what the fields mean; a dotted path in JSON, or below ``$metadata`` and ``$tags``.
    """
    value: dict[str, object] = {}
    if content:
        text = content.decode("utf-8", "surrogateescape")
        parts = parse(text.removeprefix("\ufeff"))
        if len(parts) == 1 and isinstance(parts[0][2], dict | list):
            inner = parts[0][2]
            value = dict(inner) if isinstance(inner, dict) else {"$content": inner}
        else:
            value = {TEXT: text}
    value.update({name: item for name, item in labels.items() if item})
    value[KEY] = key
    if id is not None:
        value[ID] = id
    data = content or json.dumps(value, default=str).encode()
    return record_entry(value, data, fields, key)


def whole_text(content: Content) -> bytes:
    """Return what an object says, without its compression.

    Raises:
        Permanent: it is no text, or too large, so that words in it cannot be looked for.
    """
    pieces, size = [], 0
    for block in plain(content):
        pieces.append(block)
        size += len(block)
        if size > _LARGEST:
            raise Permanent(
                "it is larger than 64 MiB; words in it were not looked for",
                problem=ProblemCode.LIMIT,
            )
    data = b"".join(pieces)
    if is_wide(data[:4]):
        code = "utf-32" if data[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") else "utf-16"
        if data[:2] not in (b"\xff\xfe", b"\xfe\xff") and code == "utf-16":
            code = "utf-16-le" if data[1] == 0 else "utf-16-be"
        return data.decode(code, "replace").encode("utf-8", "surrogatepass")
    if b"\0" in data[:_SNIFFED]:
        raise Permanent(
            "it is no text (a picture, an archive, a program); words in it were not looked for",
            problem=ProblemCode.UNSUPPORTED,
        )
    return data
