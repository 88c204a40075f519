"""What is looked for in the bytes of files, slow logs and dumps, and in which spellings.

Does no input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from purge.matching import readings
from purge.targets import NEEDLE_BYTES, NeedleKind, Targets, Trace
from purge_adapters._bytes import written_forms
from purge_adapters._redis_keys import unnamed
from purge_adapters._redis_rdb import Stored
from purge_adapters._redis_records import unpacked
from purge_adapters._sql_needles import present

__all__ = ["Needles", "Seen", "forms_of", "spelled"]

_CHUNK: Final = 256 * 1024
KINDS: Final = (NeedleKind.ID, NeedleKind.TEXT, NeedleKind.METADATA)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one place holds of what is looked for: forms of needles, and phrases by their keys."""

    stored: Stored = field(repr=False)
    forms: frozenset[bytes] = field(repr=False)
    phrases: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.forms or self.phrases)


def forms_of(needle: str) -> tuple[bytes, ...]:
    """Return the bytes in which a needle may stand; none shorter than a needle may be."""
    found = dict.fromkeys((*written_forms(needle), _bytes(needle), unnamed(needle)))
    return tuple(form for form in found if len(form) >= NEEDLE_BYTES)


def spelled(pieces: Iterable[bytes]) -> bytes:
    """Return pieces in every way that they may be meant: as they are, unpacked, unescaped."""
    found: list[bytes] = []
    for piece in pieces:
        plain = unpacked(piece)
        found.append(piece)
        if plain is not None and plain is not piece:
            found.append(plain)
        if b"\\" in (plain or piece):
            text = (plain or piece).decode("utf-8", "surrogateescape")
            said = iter(readings(text))
            next(said)
            found += [_bytes(other) for other in said]
    return b"\n".join(found)


class Needles:
    """What is looked for.

    Args:
        site: the name of the site.
        targets: of the run; its phrases are looked for too, unless they are limited to a scope.
        traces: of the records that are gone.
    """

    def __init__(self, site: str, targets: Targets, traces: Sequence[Trace]) -> None:
        self.owners: dict[bytes, frozenset[int]] = {}
        self.weak: set[bytes] = set()
        for trace in traces:
            keys = targets.keys_of(site, trace.id)
            for kind in KINDS:
                for form in (f for needle in trace.needles(kind) for f in forms_of(needle)):
                    known = self.owners.get(form, keys)
                    self.owners[form] = known | keys if known and keys else frozenset()
                    if kind is NeedleKind.METADATA:
                        self.weak.add(form)
        self.weak -= {
            form
            for trace in traces
            for kind in (NeedleKind.ID, NeedleKind.TEXT)
            for needle in trace.needles(kind)
            for form in forms_of(needle)
        }
        self.words = Targets(targets.unscoped_words())

    def __bool__(self) -> bool:
        return bool(self.owners or self.words)

    def keys(self, seen: Iterable[Seen]) -> frozenset[int]:
        """Return the targets that were seen; empty where that cannot be told of all of it."""
        found: set[int] = set()
        for each in seen:
            for form in each.forms:
                if not self.owners[form]:
                    return frozenset()
                found |= self.owners[form]
            found |= each.phrases
        return frozenset(found)

    def look(self, stored: Iterable[Stored]) -> Iterator[Seen]:
        """Yield the places that hold something."""
        some: list[Stored] = []
        size = 0
        for each in stored:
            some.append(each)
            size += sum(map(len, each.pieces))
            if size >= _CHUNK:
                yield from self._look(some)
                some, size = [], 0
        yield from self._look(some)

    def _look(self, some: Sequence[Stored]) -> Iterator[Seen]:
        if not some or not any(self.held(spelled(p for each in some for p in each.pieces))):
            return
        for each in some:
            seen = Seen(each, *self.held(spelled(each.pieces)))
            if seen:
                yield seen

    def held(self, content: bytes) -> tuple[frozenset[bytes], frozenset[int]]:
        """Return the forms and phrases that stand in spelled bytes."""
        phrases: frozenset[int] = frozenset()
        if self.words:
            phrases = self.words.keys_mentioned_in(content.replace(b"\0", b""))
        return frozenset(present(content, self.owners)), phrases


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
