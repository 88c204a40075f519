"""What came back: which records a request takes out again by itself, and which wait for a person.

A request that was carried out stays open until nothing can bring the item back. Each later run
meets records that it names. Some are the old ones returning (a restore, a stale process, a summary
that was being written); some are new. Only the first kind goes without being asked about. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from purge.adapter import Match
from purge.matching import fold, width

SETTLE = timedelta(hours=24)
"""How long after a removal a derived record counts as made from what was removed."""


class Coming(StrEnum):
    """What a record that a carried-out request names is."""

    GOES = "goes"
    """It was never in doubt: planned, or named by its id."""
    BACK = "reappeared"
    """What was removed, or something made from it, came back."""
    SEEN_AGAIN = "seen-again"
    """It holds what was named, and nothing says that it is what was removed."""
    RESTATED = "restated"
    """Somebody made a new statement, after the request, at a site that derives from nothing."""


@dataclass(frozen=True, slots=True)
class Again:
    """What is known of a request that was carried out before.

    Args:
        created: when it was made.
        now: the time of this run.
        removed: when something of it was last taken out; ``None``: nothing ever was.
        texts: what the removed records said (:func:`said`).
        derived: the sites that derive from others.
        looked: the sites that an earlier run of the request saw the whole of.
        settle: see :data:`SETTLE`.
        suppress: the caller wants everything that the request names gone, also what is new.
    """

    created: datetime
    now: datetime
    removed: datetime | None = None
    texts: frozenset[str] = field(default=frozenset(), repr=False)
    derived: frozenset[str] = frozenset()
    looked: frozenset[str] = frozenset()
    settle: timedelta = SETTLE
    suppress: bool = False

    def judge(self, site: str, match: Match, *, spared: bool = False) -> Coming:
        """Say what a record is that the request names and that no plan of it holds.

        Args:
            site: where it is.
            match: the record.
            spared: it stood there when the request was carried out, and was left.
        """
        if self.suppress:
            return Coming.GOES if self.removed is None else Coming.BACK
        if not spared and self.repeats(match):
            return Coming.BACK
        later = match.created is not None and match.created > self.created
        if later and site not in self.derived:
            return Coming.RESTATED
        if not later and (self.removed is None or site not in self.looked):
            return Coming.GOES  # It was there all along, and no run has got to it yet.
        if site in self.derived and not spared and self._in_time(match):
            return Coming.BACK
        return Coming.SEEN_AGAIN

    def repeats(self, match: Match) -> bool:
        """Whether the record says, as a whole, what a removed one said."""
        return bool(self.texts) and not self.texts.isdisjoint(said(match.trace.texts))

    def _in_time(self, match: Match) -> bool:
        """Whether it was first seen, or made, within the time in which things settle.

        A record that says it is older than the removal and was not there then is seen now.
        """
        since = self.removed or self.created
        made = match.created if match.created and match.created >= since else self.now
        return made <= since + self.settle


def said(texts: Iterable[str], least: int = 12) -> frozenset[str]:
    """Return what a record says, in the form in which two records are compared.

    Args:
        texts: its texts.
        least: display columns below which a text tells nothing ("yes", "ok").
    """
    folded = (fold(text) for text in texts)
    return frozenset(text for text in folded if width(text) >= least)


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: records that nothing may remove.

    Args:
        ids: records as (site, id); the site is ``None`` for whichever has the id.
        subjects: persons.
        scope: field values; a record is held if it says all of them.
    """

    ids: frozenset[tuple[str | None, str]] = field(default=frozenset(), repr=False)
    subjects: frozenset[str] = field(default=frozenset(), repr=False)
    scope: Mapping[str, str] = field(default_factory=dict, repr=False)

    def holds(self, site: str, match: Match, mapped: Iterable[str] = ()) -> bool:
        """Whether the record is held.

        Args:
            site: where it is.
            match: the record.
            mapped: the scope keys that the site maps. A record that leaves one open may be of
                that scope: in doubt it is held.
        """
        if (site, match.id) in self.ids or (None, match.id) in self.ids:
            return True
        if not self.subjects.isdisjoint(match.subjects):
            return True
        if not self.scope:
            return False
        knows = set(mapped)
        return all(
            match.scope.get(key, value) == value if key in knows else match.scope.get(key) == value
            for key, value in self.scope.items()
        )


def is_held(holds: Sequence[Hold], site: str, match: Match, mapped: Iterable[str] = ()) -> bool:
    """Whether any hold is on the record."""
    return any(hold.holds(site, match, mapped) for hold in holds)
