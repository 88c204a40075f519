"""The packed forms in which Redis keeps small values: what stands in them, read or not.

Listpacks (Redis 5 and later), ziplists and sets of integers (before), and LZF compression. Every
string is yielded, of streams also those of entries that are flagged as deleted. Does no input or
output.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Malformed", "intset", "listpack", "unlzf", "ziplist"]


class Malformed(Exception):
    """Bytes are not what they should be."""


def unlzf(data: bytes, length: int) -> bytes:
    """Return bytes out of LZF compression (liblzf's format).

    Raises:
        Malformed: it does not give ``length`` bytes.
    """
    out = bytearray()
    at, end = 0, len(data)
    try:
        while at < end:
            control = data[at]
            at += 1
            if control < 32:
                out += data[at : at + control + 1]
                at += control + 1
                continue
            size = control >> 5
            if size == 7:
                size += data[at]
                at += 1
            start = len(out) - ((control & 0x1F) << 8) - data[at] - 1
            at += 1
            size += 2
            if start < 0:
                raise Malformed
            if start + size <= len(out):
                out += out[start : start + size]
            else:
                period = bytes(out[start:])
                out += (period * (size // len(period) + 1))[:size]
    except IndexError:
        raise Malformed from None
    if len(out) != length:
        raise Malformed
    return bytes(out)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _written(number: int) -> bytes:
    return str(number).encode("ascii")


def listpack(data: bytes) -> Iterator[bytes]:
    """Yield all elements of a listpack (listpack.c of Redis 7).

    Raises:
        Malformed: it is none, or is cut off.
    """
    if len(data) < 7 or int.from_bytes(data[:4], "little") != len(data):
        raise Malformed
    at = 6
    while True:
        if at >= len(data):
            raise Malformed
        first = data[at]
        if first == 0xFF:
            if at != len(data) - 1:
                raise Malformed
            return
        start = at
        if first < 0x80:
            element, at = _written(first), at + 1
        elif first < 0xC0:
            element, at = _piece(data, at + 1, first & 0x3F)
        elif first < 0xE0:
            number = (first & 0x1F) << 8 | _byte(data, at + 1)
            element, at = _written(_signed(number, 13)), at + 2
        elif first < 0xF0:
            element, at = _piece(data, at + 2, (first & 0x0F) << 8 | _byte(data, at + 1))
        elif first == 0xF0:
            size = int.from_bytes(data[at + 1 : at + 5], "little")
            element, at = _piece(data, at + 5, size)
        elif first <= 0xF4:
            width = {0xF1: 2, 0xF2: 3, 0xF3: 4, 0xF4: 8}[first]
            raw, at = _piece(data, at + 1, width)
            element = _written(int.from_bytes(raw, "little", signed=True))
        else:
            raise Malformed
        yield element
        at += _back_length(at - start)


def _back_length(size: int) -> int:
    return 1 + (size > 127) + (size > 16382) + (size > 2097150) + (size > 268435454)


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise Malformed
    return data[at]


def _piece(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise Malformed
    return data[at : at + size], at + size


def ziplist(data: bytes) -> Iterator[bytes]:
    """Yield all elements of a ziplist (ziplist.c of Redis 6).

    Raises:
        Malformed: it is none, or is cut off.
    """
    if len(data) < 11 or int.from_bytes(data[:4], "little") != len(data):
        raise Malformed
    at = 10
    while _byte(data, at) != 0xFF:
        at += 5 if data[at] == 0xFE else 1
        first = _byte(data, at)
        if first >> 6 == 0:
            element, at = _piece(data, at + 1, first & 0x3F)
        elif first >> 6 == 1:
            element, at = _piece(data, at + 2, (first & 0x3F) << 8 | _byte(data, at + 1))
        elif first >> 6 == 2:
            size = int.from_bytes(data[at + 1 : at + 5], "big")
            element, at = _piece(data, at + 5, size)
        elif (width := {0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}.get(first)) is not None:
            raw, at = _piece(data, at + 1, width)
            element = _written(int.from_bytes(raw, "little", signed=True))
        elif 0xF1 <= first <= 0xFD:
            element, at = _written((first & 0x0F) - 1), at + 1
        else:
            raise Malformed
        yield element
    if at != len(data) - 1:
        raise Malformed


def intset(data: bytes) -> Iterator[bytes]:
    """Yield all members of a set of integers (intset.c).

    Raises:
        Malformed: it is none, or is cut off.
    """
    width, count = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:8], "little")
    if width not in (2, 4, 8) or len(data) != 8 + width * count:
        raise Malformed
    for at in range(8, len(data), width):
        yield _written(int.from_bytes(data[at : at + width], "little", signed=True))
