"""Compressed files, streaming: recognised by their first bytes, read as they are, written alike.

A compressed file is a row of members (gzip) or frames (zstd). Reading says which member each block
comes from, so that a rewrite can keep the row. Nothing that cannot be decoded is passed over in
silence. This module opens no file.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, BinaryIO, Final, Protocol

from purge.adapter import ProblemCode
from purge.errors import Permanent

__all__ = [
    "HEAD_BYTES",
    "Codec",
    "Encoder",
    "Member",
    "Readable",
    "detect",
    "read_members",
    "reader",
]

HEAD_BYTES: Final = 32
"""How much of a file :func:`detect` wants to see."""
_INPUT: Final = 64 * 1024
_OUTPUT: Final = 1024 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_DEFAULT_LEVEL: Final = 3
_GZIP_LEVELS: Final = {2: 9, 4: 1}
"""The two levels that a gzip header tells (RFC 1952, XFL); every other one is written as 0."""
_GZIP_DEFAULT_LEVEL: Final = 6
_FAST_LEVEL: Final = 3
"""The highest level of ISA-L: a tenth larger than level 6 of zlib, ten times as fast. It stands in
for levels that no header tells; the two others are kept."""
_HAS_CRC, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16


class Readable(Protocol):
    """Something that gives at most so many bytes at a time, and none at its end."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""


class Codec(Enum):
    """How the bytes of a file are to be taken."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"
    BZIP2 = "bzip2"
    XZ = "xz"
    CLOSED = "closed"
    """An archive or a format of which only the name is known."""


_MAGICS: Final = (
    (_GZIP_MAGIC, Codec.GZIP),
    (_ZSTD_MAGIC, Codec.ZSTD),
    (b"BZh", Codec.BZIP2),
    (b"\xfd7zXZ\x00", Codec.XZ),
    (b"PK\x03\x04", Codec.CLOSED),
    (b"7z\xbc\xaf\x27\x1c", Codec.CLOSED),
    (b"Rar!\x1a\x07", Codec.CLOSED),
    (b"\x04\x22\x4d\x18", Codec.CLOSED),  # lz4
    (b"age-encryption.org/", Codec.CLOSED),
)


@dataclass(slots=True)
class Member:
    """One gzip member or zstd frame: what a new one like it needs. Filled while it is read."""

    number: int = 0
    level: int = 0
    name: bytes | None = field(default=None, repr=False)
    mtime: int = 0
    system: int = 255
    checksum: bool = False


def detect(head: bytes) -> Codec:
    """Return the codec of a file that begins with ``head`` (:data:`HEAD_BYTES` of it)."""
    for magic, codec in _MAGICS:
        if head.startswith(magic):
            return codec
    if len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:
        return Codec.ZSTD  # a skippable frame comes first
    return Codec.PLAIN


def reader(stream: Readable, *, lenient: bool = False) -> Iterator[bytes]:
    """Yield the plain content of a stream, whatever its codec.

    Args:
        stream: at its beginning.
        lenient: give what can be decoded, or the bytes of an archive as they stand, instead of an
            error: for content that nothing says is a copy of what is looked for.

    Raises:
        Permanent: it is damaged, cut off, or in a format that cannot be read here.
    """
    head = stream.read(HEAD_BYTES)
    codec = detect(head)
    if lenient and codec is Codec.CLOSED:
        codec = Codec.PLAIN
    try:
        for _, block in read_members(_Rest(head, stream), codec):
            yield block
    except Permanent:
        if not lenient:
            raise


def read_members(stream: Readable, codec: Codec) -> Iterator[tuple[Member, bytes]]:
    """Yield the plain content block by block, each with the member it comes from.

    An empty member yields one empty block.

    Raises:
        Permanent: as :func:`reader`; what could be decoded was yielded before.
    """
    if codec is Codec.PLAIN:
        member = Member()
        while block := stream.read(_OUTPUT):
            yield member, block
    elif codec is Codec.GZIP:
        yield from _read_gzip(stream)
    elif codec is Codec.ZSTD:
        yield from _read_zstd(stream)
    elif codec is Codec.BZIP2:
        yield from _read_other(stream, bz2.BZ2Decompressor)
    elif codec is Codec.XZ:
        yield from _read_other(stream, lzma.LZMADecompressor)
    else:
        raise Permanent(
            "It is an archive or encrypted; its content cannot be read here.",
            problem=ProblemCode.UNSUPPORTED,
        )


class _Rest:
    """A stream whose beginning was read already."""

    def __init__(self, head: bytes, stream: Readable) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._stream.read(size)


def _damaged(why: str) -> Permanent:
    return Permanent(f"The compressed data is damaged: {why}.", problem=ProblemCode.CORRUPT)


def _read_gzip(stream: Readable) -> Iterator[tuple[Member, bytes]]:
    data = stream.read(_INPUT)
    number = 0
    while data:
        while len(data) < 3 and (more := stream.read(_INPUT)):
            data += more
        if not data.startswith(_GZIP_MAGIC):
            raise _damaged("something else stands behind the last member")
        member = Member(number)
        data = _gzip_header(stream, data, member)
        decoder = _deflate().decompressobj(wbits=31)
        empty = True
        while not decoder.eof:
            if not data and not (data := stream.read(_INPUT)):
                raise _damaged("it is cut off")
            try:
                block = decoder.decompress(data, _OUTPUT)
            except (zlib.error, _deflate().error):
                raise _damaged("it cannot be decoded") from None
            data = decoder.unconsumed_tail
            if block:
                empty = False
                yield member, block
        if empty:
            yield member, b""
        number += 1
        data = decoder.unused_data
        # Zero bytes behind a member are padding, of a tape or a block device.
        while not (data := data.lstrip(b"\0")):
            if not (data := stream.read(_INPUT)):
                return


def _deflate() -> Any:
    """Return what reads and writes gzip: ISA-L of the extra ``fast`` where it is, or zlib."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


def _gzip_header(stream: Readable, data: bytes, member: Member) -> bytes:
    """Read what a header says into ``member``; return the data, with all of the header in it."""
    while True:
        try:
            flags = data[3]
            member.mtime = int.from_bytes(data[4:8], "little")
            member.level = _GZIP_LEVELS.get(data[8], _GZIP_DEFAULT_LEVEL)
            member.system = data[9]
            at = 10
            if flags & _HAS_EXTRA:
                at += 2 + data[at] + 256 * data[at + 1]
            if flags & _HAS_NAME:
                member.name = data[at : data.index(b"\0", at)]
        except (IndexError, ValueError):
            more = stream.read(_INPUT)
            if not more:
                raise _damaged("it is cut off") from None
            data += more
        else:
            return data


def _read_zstd(stream: Readable) -> Iterator[tuple[Member, bytes]]:
    driver = _zstandard()
    data = stream.read(_INPUT)
    number = 0
    while data:
        while len(data) < 18 and (more := stream.read(_INPUT)):
            data += more
        member = Member(number, level=_ZSTD_DEFAULT_LEVEL)
        if data.startswith(_ZSTD_MAGIC):
            try:
                frame = driver.get_frame_parameters(data)
            except driver.ZstdError:
                raise _damaged("it cannot be decoded") from None
            if frame.dict_id:
                raise Permanent(
                    "It was compressed with a dictionary that is not in the file.",
                    problem=ProblemCode.UNSUPPORTED,
                )
            member.checksum = frame.has_checksum
        elif detect(data) is not Codec.ZSTD:
            raise _damaged("something else stands behind the last frame")
        decoder = driver.ZstdDecompressor().decompressobj()
        empty = True
        while not decoder.eof:
            if not data and not (data := stream.read(_INPUT)):
                raise _damaged("it is cut off")
            try:
                block = decoder.decompress(data)
            except driver.ZstdError:
                raise _damaged("it cannot be decoded") from None
            data = b""
            if block:
                empty = False
                yield member, block
        if empty:
            yield member, b""
        number += 1
        data = decoder.unused_data or stream.read(_INPUT)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise Permanent(
            "It is compressed with zstd, for which the extra 'jsonl' is not installed.",
            problem=ProblemCode.UNSUPPORTED,
        ) from None
    return zstandard


def _read_other(
    stream: Readable, make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]
) -> Iterator[tuple[Member, bytes]]:
    data = stream.read(_INPUT)
    number = 0
    while data:
        decoder = make()
        while not decoder.eof:
            if decoder.needs_input and not data and not (data := stream.read(_INPUT)):
                raise _damaged("it is cut off")
            try:
                block = decoder.decompress(data, _OUTPUT)
            except (OSError, EOFError, lzma.LZMAError):
                raise _damaged("it cannot be decoded") from None
            data = b""
            yield Member(number), block
        number += 1
        data = decoder.unused_data or stream.read(_INPUT)
        if make is lzma.LZMADecompressor:
            # Streams of xz are padded with zero bytes to a multiple of four.
            while data and not (data := data.lstrip(b"\0")):
                data = stream.read(_INPUT)


class Encoder:
    """Writes members like those that were read, one for each of them that kept something.

    Args:
        stream: where the compressed file goes.
        codec: PLAIN, GZIP or ZSTD; the others are only read.

    Raises:
        Permanent: there is no way to write this codec.
    """

    def __init__(self, stream: BinaryIO, codec: Codec) -> None:
        if codec not in (Codec.PLAIN, Codec.GZIP, Codec.ZSTD):
            raise Permanent(
                f"Files of kind {codec.value} are only read, not rewritten.",
                problem=ProblemCode.UNSUPPORTED,
            )
        self._stream = stream
        self._codec = codec
        self._member: Member | None = None
        self._first: Member | None = None
        self._compressor: Any = None
        self._crc = 0
        self._size = 0

    def write(self, member: Member, data: bytes) -> None:
        """Add plain ``data`` that stood in ``member``. Members come in order."""
        if self._codec is Codec.PLAIN:
            self._stream.write(data)
            return
        self._first = self._first or member
        if not data:
            return
        if self._member is None or member.number != self._member.number:
            self._end()
            self._begin(member)
        if self._codec is Codec.GZIP:
            self._crc = _deflate().crc32(data, self._crc)
        self._size += len(data)
        self._stream.write(self._compressor.compress(data))

    def finish(self) -> None:
        """End the last member. A file of which nothing is left is one empty member."""
        if self._member is None and self._first is not None:
            self._begin(self._first)
        self._end()

    def _begin(self, member: Member) -> None:
        self._member, self._crc, self._size = member, 0, 0
        if self._codec is Codec.ZSTD:
            driver = _zstandard()
            made = driver.ZstdCompressor(level=member.level, write_checksum=member.checksum)
            self._compressor = made.compressobj()
            return
        flags = _HAS_NAME if member.name is not None else 0
        extra = {level: code for code, level in _GZIP_LEVELS.items()}.get(member.level, 0)
        self._stream.write(
            _GZIP_MAGIC
            + bytes((flags,))
            + member.mtime.to_bytes(4, "little")
            + bytes((extra, member.system))
            + (member.name + b"\0" if member.name is not None else b"")
        )
        deflate: Any = zlib if extra else _deflate()
        level = member.level if deflate is zlib else _FAST_LEVEL
        self._compressor = deflate.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)

    def _end(self) -> None:
        if self._member is None:
            return
        self._stream.write(self._compressor.flush())
        if self._codec is Codec.GZIP:
            self._stream.write(self._crc.to_bytes(4, "little"))
            self._stream.write((self._size & 0xFFFFFFFF).to_bytes(4, "little"))
        self._member = None
