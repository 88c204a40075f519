"""One line of a log as a record: its fields, its texts, what it looks like in bytes.

A line is read as JSON where it is JSON, and as text always where it is not: what cannot be parsed
is searched all the same. This module opens no file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final

from purge.matching import carries_marker
from purge.matching.fragments import Run, may_be_in_pieces, runs
from purge.targets import NEEDLE_BYTES, Record, Text, Trace
from purge_adapters._json_fields import Fields, moment, part_of, scalar, scalars, values_at
from purge_adapters._json_text import NOT_JSON, Path, leaves, parse, salvage

__all__ = ["BOM", "Entry", "Fields", "digest_of", "encode", "entries_of", "is_content_name"]

BOM: Final = b"\xef\xbb\xbf"
LINE: Final = "$line"
"""The field name of a line that is searched as text."""
_CONTENT_NAME: Final = "content-"
_TAGS: Final = frozenset({"type", "role"})
_TAG_VALUE: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_FOREIGN: Final = re.compile("[\udc80-\udcff]{4}")
"""Bytes in a row that are no UTF-8: words in another encoding. Fewer are an accent, or what is
left of a character that was cut."""
_LONGEST_TEXT: Final = 64 * 1024
"""Longer texts are kept in pieces: a trace is kept for as long as a request is open."""


def _legacy(byte: int) -> str:
    try:
        return bytes((byte,)).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_ESCAPED: Final = {0xDC00 + byte: _legacy(byte) for byte in range(0x80, 0x100)}
"""What a byte that is no UTF-8 means to people: logs with such bytes were written by old
programs in a Western European encoding. Without this, "caf" would be a whole word in "caf\\xe9"."""


@dataclass(frozen=True)
class Entry:
    """One record as it stands in a line.

    Args:
        fields: what its fields mean.
        data: its bytes, without the line break.
        start: where they begin in the line. A byte order mark is no part of a record.
        whole: it is all that the line holds.
        text: the bytes, decoded.
        value: the JSON value; for a line that cannot be parsed what is complete in it.
        parsed: the line could be parsed.
        mended: some bytes are no UTF-8.
        key: the name of the file, for fields that say ``$key``.
    """

    fields: Fields = field(repr=False)
    data: bytes = field(repr=False)
    start: int
    whole: bool
    text: str = field(repr=False)
    value: object = field(repr=False)
    parsed: bool
    mended: bool
    key: str = field(repr=False)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The values of the id field; more than one only where its key is repeated."""
        if self.fields.id is None:
            return ()
        found = (scalar(value) for _, value in values_at(self.value, self.fields.id))
        return tuple(self.mend(text) for text in found if text)

    @cached_property
    def holds_several(self) -> bool:
        """Whether the line is a list of records, or holds the ids of several in a list."""
        if isinstance(self.value, list):
            return sum(isinstance(item, (dict, list)) for item in self.value) > 1
        if self.fields.id is None:
            return False
        places = {path for path, _ in values_at(self.value, self.fields.id)}
        return len(places) > 1 and any(isinstance(step, int) for path in places for step in path)

    @cached_property
    def name(self) -> str:
        """The record's id, or one made from its content."""
        if self.ids:
            return self.ids[-1]
        return _CONTENT_NAME + hashlib.sha256(self.data.strip()).hexdigest()[:40]

    @cached_property
    def digest(self) -> str:
        """Tells these bytes from all others."""
        return digest_of(self.data)

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Source site to the ids that the record says it derives from."""
        return self.fields.parents_of(self._field)

    @cached_property
    def scope(self) -> dict[str, str]:
        """Scope key to the one value that the record has; absent where it has none or several."""
        return self.fields.scope_of(self._field)

    @cached_property
    def part(self) -> str:
        """Tells records of one id apart that say different scopes; shows none of them."""
        return part_of(self.scope)

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """The ids of the people that the record is about."""
        return self.fields.subjects_of(self._field)

    @cached_property
    def created(self) -> datetime | None:
        """When the record says that it was made."""
        if self.fields.time is None:
            return None
        return next(
            (
                when
                for _, value in values_at(self.value, self.fields.time)
                if (when := moment(value)) is not None
            ),
            None,
        )

    def strings(self, *, numbers: bool = False) -> Iterator[tuple[Path, str, bool]]:
        """Yield every string with its path, keys included (then the last is true).

        Args:
            numbers: numbers as well, as they are commonly written.
        """
        if self.value is NOT_JSON:
            return
        for path, value, is_key in leaves(self.value):
            if isinstance(value, str):
                yield path, self.mend(value), is_key
            elif numbers and isinstance(value, int | float) and not isinstance(value, bool):
                yield path, str(value), False

    def in_pieces(self) -> Iterator[Run]:
        """Yield the texts that stand in several strings, as a reader sees them."""
        if self.value is NOT_JSON:
            return
        # What was read from something else than JSON has no text to judge by.
        if self.text.lstrip()[:1] not in ("{", "[") or may_be_in_pieces(self.text):
            for run in runs(self.value):
                yield Run(tuple((path, self.mend(said)) for path, said in run.pieces))

    def lines(self) -> Iterator[str]:
        """Yield the text of a line that cannot be parsed, in each way that it may be meant."""
        if self.parsed:
            return
        yield self.mend(self.text)
        if b"\0" in self.data:
            # Something appended in UTF-16, or a hole left by a crash in the middle of a text.
            yield self.mend(self.text.replace("\0", ""))
            for encoding in ("utf-16-le", "utf-16-be"):
                for skipped in (0, 1):
                    yield self.data[skipped:].decode(encoding, "replace")

    def record(self, texts: Sequence[Text] = (), name: str | None = None) -> Record:
        """Return the record in the form in which targets are compared with it."""
        return Record(name or self.name, texts, self.subjects, self.scope, self.parents)

    @property
    def is_damaged(self) -> bool:
        """Whether some of it is neither JSON nor text, so that nobody can say what it held."""
        if self.mended and _FOREIGN.search(self.text):
            return True
        return not self.parsed and (self.mended or b"\0" in self.data.strip(b"\0"))

    @property
    def carries_marker(self) -> bool:
        """Whether some text of it has a marker line."""
        return any(carries_marker(value) for _, value, _ in self.strings()) or any(
            carries_marker(text) for text in self.lines()
        )

    def text_strings(self) -> Iterator[tuple[Path, str]]:
        """Yield what ``blank`` empties of any record: the strings of the text fields.

        The words that tell what kind of block something is (``type``, ``role``) and the fields
        that identify a record or link it stay.
        """
        links = self.link_paths()
        for wanted in self.fields.text:
            for path, value in values_at(self.value, wanted):
                for below, text, is_key in leaves(value, path):
                    if is_key or not isinstance(text, str) or _is_tag(below, text):
                        continue
                    if not _is_below(below, links):
                        yield below, self.mend(text)

    def link_paths(self) -> tuple[Path, ...]:
        """Return where the fields stand that identify the record or link it."""
        return tuple(
            path for wanted in self.fields.links() for path, _ in values_at(self.value, wanted)
        )

    def is_link(self, path: Path) -> bool:
        """Whether a string stands in a field that identifies the record or links it."""
        return _is_below(path, self.link_paths())

    @property
    def is_blanked(self) -> bool:
        """Whether it has text fields and all of them are empty."""
        texts = [text for _, text in self.text_strings()]
        return bool(texts) and not any(texts)

    def trace(self, matched: Iterable[Path]) -> Trace:
        """Return what the record looks like in bytes.

        Args:
            matched: the paths of strings that hold what is looked for.
        """
        chosen = {path for path, _ in self.text_strings()} | set(matched)
        links = self.link_paths()
        texts: dict[str, None] = {}
        metadata: dict[str, None] = {}
        for path, value, is_key in self.strings():
            if is_key or len(value.encode("utf-8", "surrogatepass")) < NEEDLE_BYTES:
                continue
            prose = not self.fields.text and _is_prose(value) and not _is_below(path, links)
            target = texts if path in chosen or prose else metadata
            for piece in _pieces(value):
                target[piece] = None
        if not self.parsed:
            texts.update(dict.fromkeys(_pieces(self.mend(self.text).strip())))
        metadata = {value: None for value in metadata if value not in texts and value != self.name}
        return Trace(self.name, tuple(texts), tuple(metadata))

    def _field(self, path: Path | None) -> Iterator[str]:
        """Yield the ids that a field holds: a scalar, a list, a list written as a string."""
        if path == ("$id",):
            yield self.name
        elif path == ("$key",):
            yield self.key
        elif path is not None:
            for _, value in values_at(self.value, path):
                for text in scalars(value):
                    yield self.mend(text)

    def mend(self, text: str) -> str:
        """Return a string of the record as it is meant: bytes that are no UTF-8 become letters."""
        return text.translate(_ESCAPED) if self.mended else text


def entries_of(line: bytes, fields: Fields, key: str = "") -> list[Entry]:
    """Return the records of a line: one as a rule, none when it is empty.

    Where a line break was lost and whole objects stand side by side, each is a record. Zero bytes
    around a record count as white space: they are what a crash leaves of a line not yet written.

    Args:
        line: without its line break.
        fields: what the fields of a record mean.
        key: the name of the file.
    """
    mark = len(BOM) if line.startswith(BOM) else 0
    content = line[mark:]
    text, mended = _decode(content)
    parts = parse(text.strip("\0") if "\0" in text else text)
    if len(parts) <= 1:
        return [
            _entry(content, mark, True, text, value, mended, fields, key) for _, _, value in parts
        ]
    shift = len(text) - len(text.lstrip("\0"))
    found = []
    for start, end, value in parts:
        piece = text[shift + start : shift + end]
        at = mark + len(encode(text[: shift + start]))
        found.append(_entry(encode(piece), at, False, piece, value, mended, fields, key))
    return found


def _entry(
    data: bytes,
    start: int,
    whole: bool,
    text: str,
    value: object,
    mended: bool,
    fields: Fields,
    key: str,
) -> Entry:
    parsed = value is not NOT_JSON
    if not parsed:
        value = salvage(text)
    return Entry(fields, data, start, whole, text, value, parsed, mended, key)


def _decode(data: bytes) -> tuple[str, bool]:
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), True


def encode(text: str) -> bytes:
    """Return the bytes from which a text was decoded."""
    return text.encode("utf-8", "surrogateescape")


def digest_of(data: bytes) -> str:
    """Return a digest of the bytes of a record, for a handle."""
    return hashlib.blake2b(data, digest_size=24).hexdigest()


def is_content_name(name: str) -> bool:
    """Whether a record's name was made from its content, so that it stands nowhere in bytes."""
    return re.fullmatch(_CONTENT_NAME + "[0-9a-f]{40}", name) is not None


def _is_below(path: Path, places: Iterable[Path]) -> bool:
    return any(path[: len(place)] == place for place in places)


def _is_tag(path: Path, text: str) -> bool:
    return bool(path) and path[-1] in _TAGS and _TAG_VALUE.fullmatch(text) is not None


def _is_prose(text: str) -> bool:
    return not text.isascii() or any(character.isspace() for character in text.strip())


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _LONGEST_TEXT):
        yield text[start : start + _LONGEST_TEXT]
