"""What a value or an element means for a request: its id, its texts, its links, its bytes.

This module does no input or output.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from purge.adapter import Site
from purge.targets import NEEDLE_BYTES, Trace
from purge_adapters._json_fields import Fields
from purge_adapters._json_text import Path, Repeated, parse
from purge_adapters._jsonl_record import Entry
from purge_adapters._redis_keys import Keys, is_text, named
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._redis_values import HASH, LIST, SET, SORTED, STREAM, STRING, Element, Value

KEY: Final = "$key"
NAME: Final = "$field"
"""Stand for the name of the key, and for that of the hash field, in the path of a string."""
_PACKED: Final = ((b"\x1f\x8b\x08", 31), (b"\x78\x01", 15), (b"\x78\x9c", 15), (b"\x78\xda", 15))
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_MOST_UNPACKED: Final = 256 * 1024 * 1024
_CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\r\f\v") | {127}


@dataclass(frozen=True)
class Item(Entry):
    """One record as it stands in a key.

    Args:
        own_name: its id, where no field says it.
        own_part: what tells it from others with this id.
        may_say_id: its fields may say its id.
        names: the name of its key or hash field, under ``$key`` or ``$field``.
        loose: the paths of texts that stand in no field: they are the record's own text.
        separator: what stands between ids in plain text.
        opaque: the pieces that are neither text nor JSON.
        sealed: some piece is compressed in a way that cannot be undone here.
        value_of: the value that it stands in.
        element: the element of it that it is; ``None`` for a whole key.
    """

    own_name: str = field(default="", repr=False)
    own_part: str = ""
    may_say_id: bool = True
    names: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    loose: tuple[Path, ...] = field(default=(), repr=False)
    separator: str | None = None
    opaque: tuple[bytes, ...] = field(default=(), repr=False)
    sealed: bool = False
    value_of: Value | None = field(default=None, repr=False)
    element: Element | None = field(default=None, repr=False)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The values of the id field."""
        return super().ids if self.may_say_id else ()

    @cached_property
    def name(self) -> str:
        """The record's id."""
        return self.ids[-1] if self.ids else self.own_name

    @cached_property
    def part(self) -> str:
        """What tells it from others with this id; names said by a field are told by scope."""
        said = super().part
        own = "" if self.ids else self.own_part
        return " ".join(filter(None, (own, said)))

    def strings(self, *, numbers: bool = False) -> Iterator[tuple[Path, str, bool]]:
        """Yield every string with its path; that of the name of its key or field too."""
        for mark, text in self.names:
            yield (mark,), text, False
        yield from super().strings(numbers=numbers)

    def text_strings(self) -> Iterator[tuple[Path, str]]:
        """Yield what ``blank`` empties of any record."""
        if self.fields.text:
            yield from super().text_strings()
            return
        found = {path: text for path, text, is_key in super().strings() if not is_key}
        for path in self.loose:
            if path in found:
                yield path, found[path]

    def trace(self, matched: Iterable[Path]) -> Trace:
        """Return what the record looks like in bytes; the name of its key included."""
        found = super().trace(matched)
        known = {found.id, *found.texts, *found.metadata}
        more = [
            text
            for _, text in self.names
            if text not in known and len(text.encode("utf-8", "surrogatepass")) >= NEEDLE_BYTES
        ]
        return replace(found, metadata=(*found.metadata, *more))

    def _field(self, path: Path | None) -> Iterator[str]:
        for said in super()._field(path):
            if self.separator and path not in (("$id",), ("$key",)) and self.separator in said:
                yield from (piece.strip() for piece in said.split(self.separator) if piece.strip())
            else:
                yield said


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes records of values.

    Args:
        settings: what the manifest says.
        fields: what the fields of records mean.
        keys: the patterns of the site.
    """

    settings: RedisSettings
    fields: Fields
    keys: Keys

    @classmethod
    def of(cls, site: Site, settings: RedisSettings) -> Reader:
        """Make one for a site."""
        fields = Fields.of(site, settings.id, settings.text, settings.time)
        return cls(settings, fields, Keys.of(settings.patterns))

    def items(self, value: Value) -> Iterator[Item]:
        """Yield the records of a value: one, or one for each element."""
        if self.settings.record == "key":
            yield self._whole(value)
        else:
            for element in value.elements:
                yield self._single(value, element)

    def _whole(self, value: Value) -> Item:
        key = named(value.key)
        said = self.keys.id_of(value.key)
        said_here = _content(value)
        return Item(
            fields=self.fields,
            data=b"",
            start=0,
            whole=True,
            text="",
            value=said_here.value,
            parsed=True,
            mended=said_here.mended,
            key=key,
            own_name=named(said if said is not None else value.key),
            own_part="" if is_text(value.key) else _short(value.key),
            may_say_id=value.kind in (STRING, HASH),
            names=((KEY, key),),
            loose=said_here.loose,
            separator=self.settings.separator,
            opaque=tuple(said_here.opaque),
            sealed=said_here.sealed,
            value_of=value,
        )

    def _single(self, value: Value, element: Element) -> Item:
        said = _content(Value(value.key, value.kind, (element,)))
        content, loose = said.value, said.loose
        names: tuple[tuple[str, str], ...] = ()
        if value.kind == STRING:
            own_name = named(self.keys.id_of(value.key) or value.key)
            part = "" if is_text(value.key) else _short(value.key)
        elif value.kind in (HASH, STREAM):
            own_name, part = named(element.name), _short(value.key)
            if not is_text(element.name):
                part += _short(element.name)
        else:
            own_name, part = f"content-{_digest(element.parts[0], 20)}", _short(value.key)
        if value.kind == HASH:
            names = ((NAME, own_name),)
            content = content[own_name] if isinstance(content, dict) else content
            loose = ((),) if isinstance(content, str) else ()
        elif value.kind in (LIST, SET, SORTED, STREAM) and isinstance(content, list):
            content = content[0]
            loose = ((),) if isinstance(content, str) else ()
        return Item(
            fields=self.fields,
            data=b"",
            start=0,
            whole=True,
            text="",
            value=content,
            parsed=True,
            mended=said.mended,
            key=named(value.key),
            own_name=own_name,
            own_part=part,
            names=names,
            loose=loose,
            separator=self.settings.separator,
            opaque=tuple(said.opaque),
            sealed=said.sealed,
            value_of=value,
            element=element,
        )


def is_local(item: Item) -> bool:
    """Whether the record's name stands nowhere in bytes: it was made from its content, or is the
    number of a stream's entry."""
    if item.ids or item.element is None or item.value_of is None:
        return False
    return item.value_of.kind in (LIST, SET, SORTED, STREAM)


@dataclass(slots=True)
class _Content:
    """What a value says. ``mended``: some bytes of it are no UTF-8."""

    value: object = field(default=None, repr=False)
    loose: tuple[Path, ...] = field(default=(), repr=False)
    opaque: list[bytes] = field(default_factory=list, repr=False)
    sealed: bool = False
    mended: bool = False

    def read(self, data: bytes) -> object:
        """Return what one piece says: JSON where it is an object or a list, otherwise text."""
        plain = unpacked(data)
        if plain is None:
            self.sealed = True
            return ""
        is_utf8 = is_text(plain)
        self.mended = self.mended or not is_utf8
        if not is_utf8 or not _CONTROL.isdisjoint(plain):
            self.opaque.append(plain)
        text = plain.decode("utf-8", "surrogateescape")
        if text.lstrip()[:1] in ("{", "["):
            parts = parse(text)
            if len(parts) == 1 and isinstance(parts[0][2], dict | list):
                return parts[0][2]
        return text


def _content(value: Value) -> _Content:
    """Return what a value says."""
    said = _Content()
    if value.kind == STRING:
        said.value = said.read(value.elements[0].parts[0])
    elif value.kind == HASH:
        said.value = {named(each.name): said.read(each.parts[0]) for each in value.elements}
    elif value.kind == STREAM:
        said.value = [
            Repeated([(named(name), said.read(data)) for name, data in each.pairs()])
            for each in value.elements
        ]
    else:
        said.value = [said.read(each.parts[0]) for each in value.elements]
    if isinstance(said.value, str):
        said.loose = ((),)
    elif value.kind in (LIST, SET, SORTED) and isinstance(said.value, list):
        said.loose = tuple((at,) for at, each in enumerate(said.value) if isinstance(each, str))
    return said


def unpacked(data: bytes) -> bytes | None:
    """Return bytes out of their compression (gzip, zlib, zstd); ``None`` where that fails."""
    if data.startswith(_ZSTD):
        try:
            import zstandard
        except ImportError:
            return None
        try:
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
        except zstandard.ZstdError:
            return None
    for magic, bits in _PACKED:
        if data.startswith(magic):
            machine = zlib.decompressobj(bits)
            try:
                plain = machine.decompress(data, _MOST_UNPACKED)
            except zlib.error:
                # Two letters may begin like a header: then it is what it is.
                return None if bits == 31 else data
            return plain if machine.eof else None
    return data


def _digest(data: bytes, size: int) -> str:
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def _short(data: bytes) -> str:
    return _digest(data, 8)
