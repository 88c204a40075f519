"""Matches whose record stands in several places of a site's files. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from purge.adapter import Match, Readability
from purge.targets import Trace

__all__ = ["places_of", "together"]


def places_of(match: Match) -> Iterable[Mapping[str, object]]:
    """Return the places of a record, from its handle."""
    places = match.handle.get("places", ())
    assert isinstance(places, (list, tuple))
    return places


def together(first: Match, second: Match) -> Match:
    """Return one match for two places of one record."""
    readable = Readability.READABLE in (first.readability, second.readability)
    parents = dict(first.parents)
    for site, ids in second.parents.items():
        parents[site] = tuple(dict.fromkeys((*parents.get(site, ()), *ids)))
    return Match(
        first.id,
        tuple(dict.fromkeys((*first.hits, *second.hits))),
        f"{first.where}; {second.where}",
        {"places": [*places_of(first), *places_of(second)]},
        Trace(
            first.id,
            tuple(dict.fromkeys((*first.trace.texts, *second.trace.texts))),
            tuple(dict.fromkeys((*first.trace.metadata, *second.trace.metadata))),
        ),
        parents,
        Readability.READABLE if readable else Readability.BLANKED,
        first.carries_marker or second.carries_marker,
        created=first.created or second.created,
        pieces=first.pieces + second.pieces,
        subjects=tuple(dict.fromkeys((*first.subjects, *second.subjects))),
        scope={key: said for key, said in first.scope.items() if second.scope.get(key) == said},
    )
