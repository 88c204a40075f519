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

    @property
    def is_words(self) -> bool:
        """Whether it names records by what they say, and not by an id or lineage."""
        return self in (TargetKind.PHRASE, TargetKind.COPY)


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to look for.

    ``key`` is opaque and unique in a :class:`Targets`; hits carry it. ``scope`` limits the target
    to records whose scope fields say the same; lineage targets have none. ``from_marker``: only
    markers ask for it, so that no record that carries one is taken for it. ``whose`` numbers the
    requests that ask for it: left-over copies of targets of one request need not be told apart.
    """

    key: int
    kind: TargetKind
    value: str = _field(repr=False)
    site: str | None = None
    scope: Mapping[str, str] = _field(default_factory=dict, repr=False)
    from_marker: bool = False
    whose: frozenset[int] = frozenset()

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


@dataclass(frozen=True, slots=True)
class Spared:
    """A record that some targets name and that stays: a new statement, made after the request.

    Args:
        id: its id.
        part: what tells it from others of that id.
        texts: what it says.
        keys: the targets from which it is spared.
    """

    id: str = _field(repr=False)
    part: str = _field(repr=False)
    texts: frozenset[str] = _field(repr=False)
    keys: frozenset[int]

    def covers(self, part: str, texts: Iterable[str]) -> bool:
        """Whether a record of its id is a copy of it. Ids are used again: what is said counts."""
        said = frozenset(texts)
        return part == self.part and bool(said) and said <= self.texts


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
        spared: by site, records that are named and stay, so that their copies stay as well.

    Raises:
        EmptySelector: a value is empty. An empty *collection* is allowed, and finds nothing.
    """

    def __init__(
        self,
        targets: Iterable[Target],
        traces: Mapping[str, Sequence[Trace]] | None = None,
        spared: Mapping[str, Sequence[Spared]] | None = None,
    ) -> None:
        self.all: tuple[Target, ...] = tuple(targets)
        self._by_key: dict[int, Target] = {target.key: target for target in self.all}
        if len(self._by_key) != len(self.all):
            raise ValueError("two targets have the same key")
        self._traces = {site: tuple(found) for site, found in (traces or {}).items()}
        self._spared = {site: tuple(found) for site, found in (spared or {}).items()}
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
        return tuple(target.value for target in self.all if target.kind.is_words)

    def unscoped_words(self) -> tuple[Target, ...]:
        """The phrases and copies that are looked for in every scope, so that bytes in which no
        scope can be read may be searched for them."""
        return tuple(target for target in self.all if target.kind.is_words and not target.scope)

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

    def spared(self, site: str) -> tuple[Spared, ...]:
        """The records of ``site`` that are named and stay."""
        return self._spared.get(site, ())

    def only(self, keys: frozenset[int]) -> Targets:
        """Return the targets of some keys, with the traces that belong to them alone."""
        some = [target for target in self.all if target.key in keys]
        mine = {
            site: [trace for trace in found if self.keys_of(site, trace.id) & keys]
            for site, found in self._traces.items()
        }
        return Targets(some, mine, self._spared)

    def counting(
        self,
        site: str,
        hits: Iterable[Hit],
        *,
        id: str,
        part: str,
        texts: Iterable[str],
        carries_marker: bool,
    ) -> frozenset[int]:
        """Return the targets for which a *copy* of a record counts as one of what has to go.

        In a copy (an old version, a snapshot) nothing can be shown and left to a person: a record
        that stays where it lives has to stay in its copies as well.

        Args:
            site: of which a copy was looked into.
            hits: what names the record, all of its doubts included.
            id: the record's id.
            part: what tells it from others of that id.
            texts: what it says.
            carries_marker: the record carries a marker line.
        """
        certain = {hit.key for hit in hits if not hit.scope_unknown}
        if certain and carries_marker:
            certain -= {key for key in certain if self._by_key[key].from_marker}
        if certain:
            said = tuple(texts)
            for one in self.spared(site):
                if one.id == id and one.covers(part, said):
                    certain -= one.keys
        return frozenset(certain)

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
