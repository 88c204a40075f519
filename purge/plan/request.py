"""What somebody asked to be forgotten, as a value.

This module reads no store and writes no ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from purge.errors import UsageFault
from purge.matching import fold
from purge.targets import TargetKind

DIRECT = (TargetKind.ID, TargetKind.PHRASE, TargetKind.SUBJECT)
"""What a person can ask for. The other kinds of target follow from what is found."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing that a request names."""

    kind: TargetKind
    value: str = field(repr=False)
    site: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in DIRECT:
            raise UsageFault(f"A request names ids, phrases or subjects, not a {self.kind}.")
        shown = fold(self.value) if self.kind is TargetKind.PHRASE else self.value.strip()
        if not shown:
            raise UsageFault(f"The {self.kind} is empty. Name what is to be forgotten.")


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the caller decided about records that a request reaches without naming them.

    ``None`` means undecided: they are shown, and wait.
    """

    sources: bool | None = None
    """Remove (``True``) or keep (``False``) the records that a named one derives from."""
    copies: bool | None = None
    """Remove or keep records without lineage that hold the text of one named by its id."""
    suppress: bool | None = None
    """Remove also what is new and holds what was named: seen again, or stated anew."""

    def or_else(self, earlier: Decisions) -> Decisions:
        """Return these decisions, with what they leave open taken from ``earlier``."""
        return Decisions(
            sources=earlier.sources if self.sources is None else self.sources,
            copies=earlier.copies if self.copies is None else self.copies,
            suppress=earlier.suppress if self.suppress is None else self.suppress,
        )

    def to_json(self) -> dict[str, bool | None]:
        """Return the decisions as JSON values."""
        return {"sources": self.sources, "copies": self.copies, "suppress": self.suppress}

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Decisions:
        """Read what :meth:`to_json` wrote."""

        def read(name: str) -> bool | None:
            value = body.get(name)
            return value if isinstance(value, bool) else None

        return cls(read("sources"), read("copies"), read("suppress"))


@dataclass(frozen=True, slots=True)
class Asked:
    """What may be said of a request in the clear: nothing that it looks for.

    Args:
        id: empty while it is only shown.
        scope: the keys that limit it; the values are sealed, since one may be a person's id.
        targets: how many of each kind it names.
    """

    id: str
    created: datetime
    reason: str = ""
    asked_by: str = ""
    scope: tuple[str, ...] = ()
    targets: Mapping[str, int] = field(default_factory=dict)
    withdrawn: datetime | None = None
    closed: datetime | None = None
    deadline: datetime | None = None
    origin: str | None = None
    """The site of the marker that it comes from."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The marker that a request comes from: its site, and the record that carries it."""

    site: str
    record: str = field(repr=False)
    part: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to forget. Immutable; what is decided and done later stands beside it.

    Args:
        id: a ULID; empty while it is only shown.
        expect: how many records the caller expects to go, over all sites.
        scope: field values that limit it.
    """

    id: str
    created: datetime
    wanted: tuple[Wanted, ...]
    scope: Mapping[str, str] = field(default_factory=dict, repr=False)
    reason: str = ""
    asked_by: str = ""
    decisions: Decisions = Decisions()
    expect: int | None = None
    deadline: datetime | None = None
    """By when it has to be confirmed or dated."""
    origin: Origin | None = None
    """The marker that it comes from."""

    def __post_init__(self) -> None:
        if not self.wanted:
            raise UsageFault("Nothing is named. Name at least one id, phrase or subject to forget.")
        if not all(isinstance(wanted, Wanted) for wanted in self.wanted):
            raise UsageFault(
                "What is to be forgotten is named with purge.phrase(...), purge.id(...) or "
                "purge.subject(...), not by bare strings."
            )

    @property
    def phrases(self) -> Sequence[str]:
        """The phrases that it names."""
        return [wanted.value for wanted in self.wanted if wanted.kind is TargetKind.PHRASE]

    def asked(self) -> Asked:
        """Return what may be said of it in the clear."""
        kinds = Counter(wanted.kind.value for wanted in self.wanted)
        return Asked(
            self.id,
            self.created,
            self.reason,
            self.asked_by,
            tuple(sorted(self.scope)),
            kinds,
            deadline=self.deadline,
            origin=self.origin.site if self.origin else None,
        )

    def identity(self) -> tuple[str, ...]:
        """What makes two requests the same one: what is named, and the scope."""
        if self.origin is not None:
            # One marker is one request, however often it is read.
            phrases = [fold(phrase) for phrase in self.phrases]
            return ("marker", self.origin.site, self.origin.part, self.origin.record, *phrases)
        named = sorted({(w.kind.value, w.site or "", w.value) for w in self.wanted})
        scope = sorted(self.scope.items())
        flat = [part for triple in named for part in triple]
        return (*flat, "scope", *(part for pair in scope for part in pair))
