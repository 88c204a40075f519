"""The safety limits on a request: how much it may remove without being told how much.

Pure. A refusal is a sentence; whoever gets one deletes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from purge.matching import width
from purge.plan.reach import Reach
from purge.plan.request import Request


@dataclass(frozen=True, slots=True)
class Limits:
    """What the manifest allows.

    Args:
        min_phrase_width: display columns, after folding, below which a phrase needs ``expect``.
        max_records: records that one request may remove, over all sites, without ``expect``.
    """

    min_phrase_width: int = 12
    max_records: int = 25


def refusal(
    request: Request,
    by_site: Mapping[str, int],
    limits: Limits,
    *,
    planned: int = 0,
    marker: bool = False,
) -> str | None:
    """Return why the request may not be carried out, or ``None`` if it may.

    Args:
        request: what is asked.
        by_site: how many records would go at each site.
        limits: what is allowed.
        planned: how many records the request has to remove in all, with those that earlier runs
            of it took out. A run that was killed is finished with the same ``expect``.
        marker: it comes from a marker, where nobody can name a number.
    """
    total = sum(by_site.values())
    counts = ", ".join(f"{site} {count}" for site, count in by_site.items() if count) or "none"
    if request.expect is not None:
        if request.expect in (total, planned):
            return None
        return (
            f"--expect {request.expect} does not agree with what was found: {total} "
            f"({counts}). Look at what would go, and name that number if it is right."
        )
    if marker:
        return _refusal_of_marker(request, total, counts, limits)
    widths = [width(phrase) for phrase in request.phrases]
    narrow = [columns for columns in widths if columns < limits.min_phrase_width]
    if narrow:
        return (
            f"The phrase is {min(narrow)} columns wide and the manifest asks for at least "
            f"{limits.min_phrase_width} (safety.min_phrase_width), since short words stand "
            f"everywhere. It would remove {total} records ({counts}). Give a longer phrase, or "
            f"name that number with --expect {total} if it is right."
        )
    if total > limits.max_records:
        return (
            f"It would remove {total} records ({counts}), more than the manifest allows at once "
            f"(safety.max_records: {limits.max_records}). Narrow it, or name that "
            f"number with --expect {total} if it is right."
        )
    return None


def _refusal_of_marker(request: Request, total: int, counts: str, limits: Limits) -> str | None:
    narrowest = min((width(phrase) for phrase in request.phrases), default=0)
    if narrowest < limits.min_phrase_width:
        return (
            f"The marker's phrase is {narrowest} columns wide and the manifest asks for at least "
            f"{limits.min_phrase_width} (safety.min_phrase_width). Write a longer one."
        )
    if total > limits.max_records:
        return (
            f"The marker would remove {total} records ({counts}), more than the manifest allows "
            f"at once (safety.max_records: {limits.max_records}). Write a longer phrase, or ask "
            f"for it with 'purge request --expect {total}'."
        )
    return None


def refusal_of_more(request: Request, new: int, limits: Limits) -> str | None:
    """Return why a request that was carried out may not take so many records more, or ``None``.

    Args:
        request: what was asked.
        new: how many records would go that no plan of it holds yet.
        limits: what is allowed.
    """
    allowed = max(limits.max_records, request.expect or 0)
    if new <= allowed:
        return None
    return (
        f"{new} records came back that no plan of this request holds, more than may go at once "
        f"({allowed}). Look at what they are, and let them go with 'purge resume ... "
        f"--expect {new}' if that is right."
    )


def ambiguity(reach: Reach, number: int) -> str | None:
    """Return why a bare id of the request is ambiguous, or ``None`` if none is.

    A bare id may be found at several sites only if lineage connects them: then it is the same
    memory, seen at each.
    """
    graph = reach.graph
    for target in reach.direct:
        sites = sorted(reach.bare.get(target.key, ()))
        if reach.owner[target.key] != number or len(sites) < 2:
            continue
        for site in sites:
            connected = graph.ancestors(site) | graph.descendants(site) | {site}
            if not connected.issuperset(sites):
                named = " and ".join(sites)
                return (
                    f"A bare id is found at {named}, and nothing in the manifest says that these "
                    f"are the same memory. Name the one you mean: --id {sites[0]}:ID."
                )
    return None
