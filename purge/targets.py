"""What is looked for: targets, the records they meet, and the traces that records leave.

Everything that all requests of a run look for is one :class:`Targets`. Adapters hand it the
records they read and get back the hits, so that one definition of a hit serves every store.
This module does no input or output. Values that may be personal never show in a ``repr``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from enum import StrEnum
from typing import Final

from purge.errors import EmptySelector
from purge.matching import Flavor, How, PhraseMatcher

NEEDLE_BYTES: Final = 8
"""Bytes shorter than this prove nothing: they stand in files by chance."""
WINDOW: Final = 48
"""How many characters of a long text are looked for at a time. A page border may cut a text, so
several windows are looked for instead of the whole."""
WINDOWS: Final = 8


class TargetKind(StrEnum):
    """What a target names."""

    ID = "id"
    """A record by its id; of one site, or bare: of whichever site has it."""
    PHRASE = "phrase"
    """Every record whose text holds a phrase."""
    SUBJECT = "subject"
    """Every record of a subject, by the field that the manifest maps."""
    LINEAGE = "lineage"
    """Every record that derives from one that was found. ``site`` is the site of that one."""
    COPY = "copy"
    """Every record that holds the text of one that was named by its id."""


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to look for.

    ``key`` is opaque and unique in a :class:`Targets`; hits carry it. ``scope`` limits the target
    to records whose scope fields say the same; lineage targets have none.
    """

    key: int
    kind: TargetKind
    value: str = _field(repr=False)
    site: str | None = None
    scope: Mapping[str, str] = _field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.value.strip():
            raise EmptySelector(f"An empty {self.kind} was stopped: it names nothing.")


@dataclass(frozen=True, slots=True)
class Text:
    """One string of a record: the field it stands in (a dotted path) and what it says."""

    field: str
    value: str = _field(repr=False)
    flavor: Flavor = Flavor.PLAIN


@dataclass(frozen=True, slots=True)
class Record:
    """What an adapter reads of one record, as far as looking needs it.

    ``texts`` holds every string of the record, names of free-form keys included, whatever the
    field. ``scope`` holds the mapped scope fields that the record has. ``parents`` maps a source
    site to the ids the record says it derives from. ``parents`` of a site that the manifest maps
    but the record leaves empty are absent.
    """

    id: str = _field(repr=False)
    texts: Sequence[Text] = _field(repr=False)
    subjects: Sequence[str] = _field(default=(), repr=False)
    scope: Mapping[str, str] = _field(default_factory=dict, repr=False)
    parents: Mapping[str, Sequence[str]] = _field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """That one record is named by one target, how that was found, and in which field.

    ``scope_unknown``: the target has a scope and the record does not say to which it belongs.
    """

    key: int
    how: How
    field: str
    scope_unknown: bool = False


class NeedleKind(StrEnum):
    """The four things a record leaves behind. They vanish at different times."""

    ID = "id"
    TEXT = "text"
    METADATA = "metadata"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Trace:
    """What a record that has to go looks like in bytes, as it was seen before removal."""

    id: str = _field(repr=False)
    texts: tuple[str, ...] = _field(default=(), repr=False)
    metadata: tuple[str, ...] = _field(default=(), repr=False)
    vectors: tuple[tuple[float, ...], ...] = _field(default=(), repr=False)

    def needles(self, kind: NeedleKind) -> tuple[str, ...]:
        """Return the strings to look for in bytes; none that is shorter than a needle may be.

        Vectors are not strings: they are decoded and compared within a tolerance.
        """
        values = {
            NeedleKind.ID: (self.id,),
            NeedleKind.TEXT: self.texts,
            NeedleKind.METADATA: self.metadata,
            NeedleKind.VECTOR: (),
        }[kind]
        found = dict.fromkeys(piece for value in values for piece in windows(value))
        return tuple(piece for piece in found if _encoded_length(piece) >= NEEDLE_BYTES)


def _encoded_length(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def windows(text: str, size: int = WINDOW, most: int = WINDOWS) -> tuple[str, ...]:
    """Return up to ``most`` pieces of ``text``, ``size`` characters each, spread over it."""
    if len(text) <= size:
        return (text,)
    last = len(text) - size
    count = min(most, -(-len(text) // size))
    return tuple(
        text[at : at + size] for at in sorted({last * i // (count - 1) for i in range(count)})
    )


class Targets:
    """Everything a run looks for, and the traces of the records that have to go.

    Args:
        targets: what is looked for, of all the requests of the run.
        traces: by site, what is known of the records that were found there.

    Raises:
        EmptySelector: a value is empty. An empty *collection* is allowed, and finds nothing.
    """

    def __init__(
        self, targets: Iterable[Target], traces: Mapping[str, Sequence[Trace]] | None = None
    ) -> None:
        self.all: tuple[Target, ...] = tuple(targets)
        self._by_key: dict[int, Target] = {target.key: target for target in self.all}
        if len(self._by_key) != len(self.all):
            raise ValueError("two targets have the same key")
        self._traces = {site: tuple(found) for site, found in (traces or {}).items()}
        self._ids: dict[str, list[Target]] = {}
        self._subjects: dict[str, list[Target]] = {}
        self._lineage: dict[str, dict[str, list[Target]]] = {}
        phrases: dict[int, str] = {}
        for target in self.all:
            if target.kind is TargetKind.ID:
                self._ids.setdefault(target.value, []).append(target)
            elif target.kind is TargetKind.SUBJECT:
                self._subjects.setdefault(target.value, []).append(target)
            elif target.kind is TargetKind.LINEAGE:
                by_id = self._lineage.setdefault(target.site or "", {})
                by_id.setdefault(target.value, []).append(target)
            else:
                phrases[target.key] = target.value
        self._phrases = PhraseMatcher(phrases)

    def __bool__(self) -> bool:
        return bool(self.all)

    def __getitem__(self, key: int) -> Target:
        return self._by_key[key]

    def ids(self, site: str) -> tuple[str, ...]:
        """The record ids to look up at ``site``: its own and the bare ones."""
        return tuple(
            value
            for value, targets in self._ids.items()
            if any(target.site in (None, site) for target in targets)
        )

    def subjects(self) -> tuple[str, ...]:
        """The subject ids to look up."""
        return tuple(self._subjects)

    def lineage(self, source: str) -> tuple[str, ...]:
        """The ids of records of ``source`` whose derived records are looked for."""
        return tuple(self._lineage.get(source, ()))

    @property
    def needs_texts(self) -> bool:
        """Whether every text has to be read: some target is a phrase or a copy."""
        return bool(self._phrases)

    def phrases(self) -> tuple[str, ...]:
        """The phrases as they were given, for a look at bytes beside the decoded one."""
        return tuple(t.value for t in self.all if t.kind in (TargetKind.PHRASE, TargetKind.COPY))

    def mentioned_in(self, content: bytes) -> bool:
        """Whether bytes in which no record lives hold a phrase, in any written form."""
        return self._phrases.mentions(content)

    def keys_mentioned_in(self, content: bytes) -> frozenset[int]:
        """Return the phrases, by the keys of their targets, that such bytes hold."""
        return self._phrases.mentioned(content)

    def keys_of(self, site: str, id: str) -> frozenset[int]:
        """Return the keys of the id targets that name the record ``id`` of ``site``."""
        return frozenset(
            target.key for target in self._ids.get(id, ()) if target.site in (None, site)
        )

    def traces(self, site: str) -> tuple[Trace, ...]:
        """What is known of the records found at ``site`` that have to go."""
        return self._traces.get(site, ())

    def match(self, site: str, record: Record) -> tuple[Hit, ...]:
        """Return every way in which ``record`` of ``site`` is named.

        A record whose scope field says something else than the target's is not named by it.
        """
        hits: list[Hit] = []
        for target in self._ids.get(record.id, ()):
            if target.site in (None, site):
                self._add(hits, target, record, How.ID, "$id")
        for source, ids in record.parents.items():
            by_id = self._lineage.get(source)
            if by_id:
                for value in dict.fromkeys(ids):
                    for target in by_id.get(value, ()):
                        hits.append(Hit(target.key, How.LINEAGE, source))
        if self._subjects:
            for value in dict.fromkeys(record.subjects):
                for target in self._subjects.get(value, ()):
                    self._add(hits, target, record, How.ID, "$subject")
        if self._phrases:
            best: dict[int, tuple[How, str]] = {}
            for text in record.texts:
                for key, how in self._phrases.search(text.value, text.flavor).items():
                    if key not in best or (how is How.EXACT and best[key][0] is not How.EXACT):
                        best[key] = (how, text.field)
            for key, (how, where) in best.items():
                self._add(hits, self._by_key[key], record, how, where)
        return tuple(hits)

    @staticmethod
    def _add(hits: list[Hit], target: Target, record: Record, how: How, where: str) -> None:
        unknown = False
        for name, value in target.scope.items():
            said = record.scope.get(name)
            if said is None:
                unknown = True
            elif said != value:
                return
        hits.append(Hit(target.key, how, where, unknown))

    def __iter__(self) -> Iterator[Target]:
        return iter(self.all)


NOTHING: Final = Targets(())
"""A look for nothing: what a site is read with when only its neighbours matter."""
