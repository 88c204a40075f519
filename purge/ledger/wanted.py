"""What a request looks for: how it is laid down to be sealed, and kept out of the clear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from purge.errors import EmptySelector, Refused
from purge.ledger.events import JSON, timestamp
from purge.ledger.views import HOLD, NewRequest
from purge.matching import PhraseMatcher
from purge.targets import Target, TargetKind

SOMEONE_NAMED: Final = "someone whom the request names"


def refuse_repetition(reason: str, targets: Iterable[Target]) -> None:
    """Refuse a reason, which is kept in the clear, that holds what a request looks for.

    Raises:
        Refused: it holds a phrase, an id or a subject, however it is written.
    """
    if _repeats(reason, targets):
        raise Refused(
            "The reason repeats what is to be forgotten, and the ledger keeps it readable. Give a "
            "reason that does not; nothing was done."
        )


def created_body(new: NewRequest, key_id: str) -> dict[str, JSON]:
    """Return what stands in the clear of a new request."""
    kinds = [target.kind.value for target in new.targets]
    return {
        "reason": new.reason,
        "asked_by": _without_repetition(new.asked_by, new.targets),
        "scope": sorted({name for target in new.targets for name in target.scope}),
        "options": new.options if new.hold is None else {**new.options, "purpose": HOLD},
        "targets": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "deadline": None if new.deadline is None else timestamp(new.deadline),
        "key": key_id,
    }


def _without_repetition(asked_by: str, targets: Iterable[Target]) -> str:
    """Return who asked, as it may stand in the clear: not by name where the name is a target.

    Someone who erases their own data is often both, and a login name is not theirs to reword.
    """
    return SOMEONE_NAMED if _repeats(asked_by, targets) else asked_by


def _repeats(text: str, targets: Iterable[Target]) -> bool:
    return any(_holds(text, value) for value in {target.value for target in targets})


def _holds(text: str, value: str) -> bool:
    try:
        return bool(PhraseMatcher({0: value}).search(text))
    except EmptySelector:  # an id made of invisible characters alone
        return value in text


def targets_to_json(targets: Sequence[Target]) -> dict[str, JSON]:
    """Return the targets as a payload that can be sealed."""
    return {
        "targets": [
            {
                "key": target.key,
                "kind": target.kind.value,
                "value": target.value,
                "site": target.site,
                "scope": dict(target.scope),
            }
            for target in targets
        ]
    }


def targets_from_json(payload: Mapping[str, JSON]) -> tuple[Target, ...]:
    """Return the targets that a payload holds."""
    found = cast("list[dict[str, JSON]]", payload["targets"])
    return tuple(
        Target(
            key=cast("int", one["key"]),
            kind=TargetKind(cast("str", one["kind"])),
            value=cast("str", one["value"]),
            site=cast("str | None", one["site"]),
            scope=cast("dict[str, str]", one["scope"]),
        )
        for one in found
    )
