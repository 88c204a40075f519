"""Values of SQL columns: what they say as an id, which strings are in them, how they are kept.

An id is compared whole, here and in no statement: databases compare by affinity, collation and
trailing spaces. This module does no input or output.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

from purge.matching.fragments import Run, runs
from purge.targets import Text
from purge_adapters._json_fields import scalars, shown, values_at
from purge_adapters._json_text import Path, leaves, parse

Field = tuple[str, Path]
"""A column, and the path in its JSON (empty: the column itself)."""

_JSON_STARTS: Final = ("{", "[", '"')
_MOST_INFLATED: Final = 64 * 1024 * 1024
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_LARGEST: Final = 2**63


def id_text(value: object) -> str | None:
    """Return the id that a value says; ``None`` where it says none.

    A blob says its text where it is text, and its hexadecimal digits elsewhere.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        text = _printable(value)
        return value.hex() if text is None else text
    return str(value)


def spellings(wanted: str) -> tuple[object, ...]:
    """Return the values whose :func:`id_text` may be ``wanted``, for a statement to look for."""
    found: list[object] = [wanted]
    try:
        found.append(wanted.encode())
    except UnicodeEncodeError:
        return ()
    number = wanted.removeprefix("-")
    if number.isascii() and number.isdecimal():
        if -_LARGEST <= (whole := int(wanted)) < _LARGEST:
            found.append(whole)
        if len(wanted) % 2 == 0 and wanted == number:
            found.append(bytes.fromhex(wanted))
    else:
        try:
            real = float(wanted)
        except ValueError:
            pass
        else:
            if math.isfinite(real):
                found.append(real)
        if wanted == wanted.lower() and " " not in wanted:
            with suppress(ValueError):
                found.append(bytes.fromhex(wanted))
    return tuple(found)


def _printable(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if text and all(sign.isprintable() or sign in "\t\n\r" for sign in text) else None


def decoded(value: object) -> object:
    """Return a column's value with its JSON taken apart; anything else as it is."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if isinstance(text, str) and text.lstrip()[:1] in _JSON_STARTS:
        parts = parse(text)
        if len(parts) == 1 and isinstance(parts[0][2], dict | list | str):
            return parts[0][2]
    return value


def ids_at(value: object, path: Path) -> tuple[str, ...]:
    """Return the ids that stand at a path of a column's value, each once, in order."""
    inner = decoded(value)
    if not path and not isinstance(inner, dict | list):
        said = id_text(value)
        return () if said is None else (said,)
    found = dict.fromkeys(each for _, below in values_at(inner, path) for each in scalars(below))
    return tuple(found)


def strings_at(value: object, path: Path) -> Iterator[str]:
    """Yield the strings that stand at a path of a column's value or below, names left out."""
    if not path:
        yield from (text.value for text in texts_in("", value, names=False))
        return
    for _, below in values_at(decoded(value), path):
        for _, leaf, is_key in leaves(below):
            if isinstance(leaf, str) and leaf and not is_key:
                yield leaf


def strings_below(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the strings that :func:`strings_at` yields, each with its own path."""
    if not path:
        yield from ((place, text) for place, text, is_key in strings_in(value) if not is_key)
        return
    for place, below in values_at(decoded(value), path):
        for inner, leaf, is_key in leaves(below):
            if isinstance(leaf, str) and leaf and not is_key:
                yield (*place, *inner), leaf


def strings_in(value: object, *, numbers: bool = False) -> Iterator[tuple[Path, str, bool]]:
    """Yield every string of a column's value: its path in the value's JSON, which is empty where
    there is none, and whether it is a key.

    ``numbers``: numbers too, as they are commonly written.
    """
    yield from _strings_of(_opened(value), numbers=numbers)


def _opened(value: object) -> object:
    """Return a column's value as it is searched: blobs as text, JSON taken apart."""
    return decoded(_text_of_bytes(value) if isinstance(value, bytes) else value)


def _strings_of(inner: object, *, numbers: bool) -> Iterator[tuple[Path, str, bool]]:
    if isinstance(inner, dict | list):
        for path, leaf, is_key in leaves(inner):
            if isinstance(leaf, str) and leaf:
                yield path, leaf, is_key
            elif numbers and isinstance(leaf, int | float) and not isinstance(leaf, bool):
                yield path, str(leaf), False
    elif isinstance(inner, str) and inner:
        yield (), inner, False
    elif numbers and isinstance(inner, int | float):
        yield (), str(inner), False


def in_pieces(value: object) -> Iterator[Run]:
    """Yield the texts of a column's value that stand in several strings of its JSON."""
    yield from _runs_of(_opened(value))


def _runs_of(inner: object) -> Iterator[Run]:
    if isinstance(inner, dict | list):
        yield from runs(inner)


def readable_in(column: str, value: object, *, numbers: bool = False) -> Iterator[Text]:
    """Yield all that a column's value says, whole and in pieces; it is taken apart once.

    Args:
        column: its name.
        value: as the driver returned it.
        numbers: numbers too, as they are commonly written.
    """
    inner = _opened(value)
    for path, text, is_key in _strings_of(inner, numbers=numbers):
        yield Text(_field(column, path, is_key=is_key), text)
    for run in _runs_of(inner):
        yield Text(_field(column, run.paths[0]), run.text)


def _field(column: str, path: Path, *, is_key: bool = False) -> str:
    return f"{column}.{shown(path, is_key=is_key)}" if path else column


def texts_in(
    column: str, value: object, *, names: bool = True, numbers: bool = False
) -> Iterator[Text]:
    """Yield every string of a column's value, each with the field that a hit names.

    Args:
        column: its name.
        value: as the driver returned it.
        names: the keys of JSON objects too, which may be content.
        numbers: numbers too, as they are commonly written.
    """
    for path, text, is_key in strings_in(value, numbers=numbers):
        if names or not is_key:
            yield Text(_field(column, path, is_key=is_key), text)


def is_closed(value: object) -> bool:
    """Whether a value is compressed in a way that is not looked into."""
    return isinstance(value, bytes) and value.startswith(_ZSTD)


def _text_of_bytes(value: bytes) -> str | None:
    """Return the text that a blob is, plain or compressed; ``None`` where it is none."""
    if value[:2] == b"\x1f\x8b" or (value[:1] == b"\x78" and len(value) > 8):
        with suppress(OSError, EOFError, zlib.error, ValueError):
            value = _inflate(value)
    if value[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return value.decode("utf-16")
        except UnicodeDecodeError:
            return None
    try:
        return value.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _inflate(value: bytes) -> bytes:
    if value[:2] == b"\x1f\x8b":
        return gzip.decompress(value)
    stream = zlib.decompressobj()
    return stream.decompress(value, _MOST_INFLATED)


def holding(values: Iterable[object], phrases: Iterable[bytes]) -> Iterator[str]:
    """Yield the blobs that are no text as a whole but hold one of some phrases, as text.

    Packed objects (msgpack, pickle) keep their strings as they are between other bytes.
    """
    wanted = tuple(phrases)
    for value in values:
        if (
            isinstance(value, bytes)
            and _text_of_bytes(value) is None
            and any(phrase in value for phrase in wanted)
        ):
            yield value.decode("utf-8", "replace")


def pack(value: object) -> object:
    """Return a key's value as JSON can hold it."""
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    if isinstance(value, float):
        return {"real": value.hex()}
    return value


def unpack(value: object) -> object:
    """Return what :func:`pack` was given.

    Raises:
        ValueError: it was not made by :func:`pack`.
    """
    if isinstance(value, dict):
        if isinstance(blob := value.get("blob"), str):
            return bytes.fromhex(blob)
        if isinstance(real := value.get("real"), str):
            return float.fromhex(real)
        raise ValueError("not a packed value")
    return value


def digest(rows: Iterable[Iterable[object]]) -> str:
    """Return what tells whether any value of some rows has changed."""
    made = sha256()
    for row in rows:
        made.update(b"\x00row")
        for value in row:
            if isinstance(value, bytes):
                kind, content = b"b", value
            elif isinstance(value, str):
                kind, content = b"t", value.encode("utf-8", "surrogateescape")
            else:
                kind, content = b"n", repr(value).encode()
            made.update(b"%s%d:" % (kind, len(content)))
            made.update(content)
    return made.hexdigest()


def is_json(value: object) -> bool:
    """Whether a column's value is a JSON object or list."""
    return isinstance(decoded(value), dict | list)
