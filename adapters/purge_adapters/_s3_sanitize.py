"""Removing old versions by their ids, what markers then hide nothing, and unfinished uploads.

A version that has become current since it was looked at is left. A delete marker goes only when
no version remains under it, so that no read returns something older.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from purge.adapter import NotChecked, ProblemCode, Residue
from purge.errors import Permanent, StoreError
from purge_adapters._s3_errors import Missing
from purge_adapters._s3_store import Store, Version

__all__ = ["sanitize"]

_LOOKED_AT_TOGETHER: Final = 500
"""How many keys are looked at before their versions are deleted."""


def sanitize(store: Store, residue: Sequence[Residue]) -> Iterator[NotChecked]:
    """Yield what was left undone.

    Raises:
        StoreError: the server cannot be reached, or the bucket is gone.
    """
    # Uploads first: while a version tells that an object is affected, its uploads are found again.
    for item in _of(residue, "upload"):
        yield from _abort(store, item)
    by_key: dict[str, list[Residue]] = {}
    for item in (*_of(residue, "version"), *_of(residue, "marker")):
        by_key.setdefault(_told(item, "key"), []).append(item)
    keys = list(by_key)
    for at in range(0, len(keys), _LOOKED_AT_TOGETHER):
        some = keys[at : at + _LOOKED_AT_TOGETHER]
        yield from _remove(store, {key: by_key[key] for key in some})


def _of(residue: Sequence[Residue], kind: str) -> list[Residue]:
    return [item for item in residue if item.handle.get("kind") == kind]


def _told(item: Residue, name: str) -> str:
    value = item.handle.get(name)
    if not isinstance(value, str) or not value:
        raise Permanent(
            "A residue was described by another adapter or by another version; look again.",
            problem=ProblemCode.UNSUPPORTED,
        )
    return value


def _left(item: Residue, error: StoreError) -> NotChecked:
    return NotChecked(item.where, f"it was not removed: {error}", ProblemCode(error.problem))


def _abort(store: Store, item: Residue) -> Iterator[NotChecked]:
    try:
        store.abort(_told(item, "key"), _told(item, "upload"))
    except Missing:
        store.demand_bucket()
    except Permanent as error:
        if error.problem == ProblemCode.UNREACHABLE:
            raise
        yield _left(item, error)


def _remove(store: Store, by_key: dict[str, list[Residue]]) -> Iterator[NotChecked]:
    wanted: dict[tuple[str, str], Residue] = {}
    for key, items in by_key.items():
        there = {version.id: version for version in _history(store, key)}
        for item in _of(items, "version"):
            version = there.get(_told(item, "version"))
            if version is not None and version.latest:
                yield NotChecked(
                    item.where,
                    "the version has become the current one; look again",
                    ProblemCode.CHANGED_UNDERNEATH,
                )
            elif version is not None:
                wanted[key, version.id] = item
    yield from _delete(store, wanted)
    # Only now: what is under a marker may have been kept by a lock.
    hiding: dict[tuple[str, str], Residue] = {}
    for key, items in by_key.items():
        history = _history(store, key)
        if all(version.marker for version in history):
            hiding.update({(key, marker.id): items[0] for marker in history})
    yield from _delete(store, hiding)


def _history(store: Store, key: str) -> list[Version]:
    return next(iter(store.histories(key)), [])


def _delete(store: Store, wanted: dict[tuple[str, str], Residue]) -> Iterator[NotChecked]:
    if not wanted:
        return
    errors: dict[tuple[str, str], Any] = store.delete_versions(
        wanted, bypass=store.settings.bypass_governance
    )
    for pair, error in errors.items():
        if pair in wanted:
            yield _left(wanted[pair], error)
