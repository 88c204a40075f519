"""Targets and traces as JSON values, for the handle that ``sanitize`` is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from purge.targets import Spared, Target, TargetKind, Targets, Trace

__all__ = ["read", "written"]


def written(targets: Targets, sites: Iterable[str]) -> dict[str, object]:
    """Return targets, and the traces and spared records of some sites, as JSON values."""
    return {
        "all": [
            [one.key, one.kind.value, one.value, one.site, dict(one.scope), one.from_marker]
            for one in targets
        ],
        "traces": {
            site: [
                [one.id, list(one.texts), list(one.metadata), [list(v) for v in one.vectors]]
                for one in targets.traces(site)
            ]
            for site in sites
        },
        "spared": {
            site: [
                [one.id, one.part, sorted(one.texts), sorted(one.keys)]
                for one in targets.spared(site)
            ]
            for site in sites
        },
    }


def read(values: Mapping[str, object]) -> Targets:
    """Return what :func:`written` wrote."""
    every = cast(Sequence[Sequence[Any]], values["all"])
    traces = cast(Mapping[str, Sequence[Sequence[Any]]], values["traces"])
    spared = cast(Mapping[str, Sequence[Sequence[Any]]], values["spared"])
    return Targets(
        [
            Target(key, TargetKind(kind), value, site, dict(scope), from_marker)
            for key, kind, value, site, scope, from_marker in every
        ],
        {
            site: [
                Trace(id, tuple(texts), tuple(metadata), tuple(tuple(v) for v in vectors))
                for id, texts, metadata, vectors in some
            ]
            for site, some in traces.items()
        },
        {
            site: [
                Spared(id, part, frozenset(texts), frozenset(keys))
                for id, part, texts, keys in some
            ]
            for site, some in spared.items()
        },
    )
