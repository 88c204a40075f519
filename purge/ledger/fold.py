"""From events to the state of every request: a pure fold, and the rules of what may follow what.

No input or output. An event that may not follow is refused here, so the same rules hold when it
is written and when the chain is checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, cast

from purge.errors import LedgerFault
from purge.ledger.events import JSON, EventKind, StoredEvent
from purge.ledger.views import Decision, KeyState, Remains, RequestView, StepView
from purge.state import Problem, ProblemCode, State, latest, may_follow, weakest

NEEDS_DECISION: Final = frozenset({ProblemCode.SOURCE_KEPT, ProblemCode.POSSIBLE_COPY})
"""The problems that only a person can settle, and that ``purge resume`` can answer."""
OF_A_REQUEST: Final = frozenset(
    {
        EventKind.REQUEST_CREATED,
        EventKind.REQUEST_SEALED,
        EventKind.REQUEST_WITHDRAWN,
        EventKind.REQUEST_CLOSED,
        EventKind.STEP_RECORDED,
        EventKind.DECISION,
        EventKind.KEY_DESTROYING,
        EventKind.KEY_DESTROYED,
    }
)
_AFTER_CLOSING: Final = frozenset({EventKind.KEY_DESTROYING, EventKind.KEY_DESTROYED})
_ENDS: Final = _AFTER_CLOSING | {EventKind.REQUEST_WITHDRAWN, EventKind.REQUEST_CLOSED}


@dataclass(frozen=True, slots=True)
class Sealed:
    """Which version of a sealed thing is the last, and the digest of its ciphertext."""

    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Everything that the events say of one request."""

    request: RequestView
    steps: Mapping[str, StepView]
    """By site, in the order in which they were first recorded."""
    sealed: Mapping[str, Sealed]


def fold(events: Iterable[StoredEvent]) -> dict[str, Folded]:
    """Return the state of every request.

    Raises:
        LedgerFault: an event does not follow from those before it.
    """
    requests: dict[str, Folded] = {}
    for event in events:
        check_place(event)
        if event.request is not None:
            requests[event.request] = apply(requests.get(event.request), event)
    return requests


def check_place(event: StoredEvent) -> None:
    """Check what needs no state: where in the ledger an event stands, and what it is about.

    Raises:
        LedgerFault: it may not stand there.
    """
    if (event.kind is EventKind.LEDGER_CREATED) != (event.seq == 1):
        raise _refusal(event, "a ledger begins with its creation, once")
    if event.request is None and event.kind in OF_A_REQUEST:
        raise _refusal(event, "it names no request")


def apply(before: Folded | None, event: StoredEvent) -> Folded:
    """Return the state of a request after ``event``, which is about it.

    Raises:
        LedgerFault: the event may not follow.
    """
    if event.kind is EventKind.REQUEST_CREATED:
        if before is not None:
            raise _refusal(event, "the request exists already")
        return _created(event)
    if before is None:
        raise _refusal(event, "there is no such request")
    if before.request.closed is not None and event.kind not in _AFTER_CLOSING:
        raise _refusal(event, "the request is closed")
    steps, sealed = before.steps, before.sealed
    changes: dict[str, Any] = {"changed": event.at}
    if event.kind is EventKind.STEP_RECORDED:
        steps = {**steps, event.site or "": _recorded(steps, event)}
        changes |= _summary(steps.values(), withdrawn=before.request.withdrawn is not None)
    elif event.kind is EventKind.REQUEST_SEALED:
        sealed = {**sealed, _text(event, "name"): _sealed(before, event)}
    elif event.kind is EventKind.DECISION:
        if "question" in event.body:
            decision = Decision(_text(event, "question"), _text(event, "answer"), event.at)
            changes["decisions"] = (*before.request.decisions, decision)
    elif event.kind in _ENDS:
        changes |= _ended(before.request, event)
    return Folded(replace(before.request, **changes), steps, sealed)


def _ended(request: RequestView, event: StoredEvent) -> dict[str, Any]:
    """Return what is new when a request, or its key, comes to its end."""
    if event.kind is EventKind.REQUEST_WITHDRAWN:
        if request.withdrawn is not None:
            raise _refusal(event, "the request was withdrawn before")
        return {"withdrawn": event.at, "waits_for": ()}
    if event.kind is EventKind.REQUEST_CLOSED:
        return {"closed": event.at, "waits_for": ()}
    if event.kind is EventKind.KEY_DESTROYING:
        if request.key is not KeyState.HELD:
            raise _refusal(event, "the key was destroyed before")
        return {"key": KeyState.DESTROYING}
    if request.key is not KeyState.DESTROYING:
        raise _refusal(event, "it was not announced")
    return {"key": KeyState.DESTROYED}


def _created(event: StoredEvent) -> Folded:
    targets = _mapping(event, "targets")
    scope = event.body.get("scope")
    if not isinstance(scope, list):
        raise _refusal(event, "its scope is missing")
    request = RequestView(
        id=event.request or "",
        created=event.at,
        reason=_text(event, "reason"),
        asked_by=_text(event, "asked_by"),
        scope=tuple(str(key) for key in scope),
        options=_mapping(event, "options"),
        targets={kind: _integer(event, count) for kind, count in targets.items()},
        deadline=_date(event, event.body.get("deadline")),
        state=State.ACCEPTED,
        until=None,
        waits_for=(),
        decisions=(),
        withdrawn=None,
        closed=None,
        key=KeyState.HELD,
        key_id=_text(event, "key"),
        sites=0,
        problems=0,
        changed=event.at,
    )
    return Folded(request, {}, {})


def _sealed(before: Folded, event: StoredEvent) -> Sealed:
    if before.request.key is not KeyState.HELD:
        raise _refusal(event, "the key was destroyed before")
    if _text(event, "key") != before.request.key_id:
        raise _refusal(event, "it names another key")
    known = before.sealed.get(_text(event, "name"))
    version = _integer(event, event.body.get("version"))
    if version != (1 if known is None else known.version + 1):
        raise _refusal(event, "its version does not follow")
    return Sealed(version, _text(event, "digest"))


def _recorded(steps: Mapping[str, StepView], event: StoredEvent) -> StepView:
    step = _step(event)
    known = steps.get(step.site)
    if not may_follow(None if known is None else known.state, step.state):
        raise _refusal(event, "a step begins as accepted")
    _check_claim(event, step)
    return step


def _summary(steps: Collection[StepView], *, withdrawn: bool) -> dict[str, Any]:
    """Return what a request's steps make of it."""
    state = weakest(step.state for step in steps)
    dates = [step.until for step in steps if step.until is not None and step.state is state]
    problems = [step.problem.code for step in steps if step.problem is not None]
    waits = () if withdrawn else (code for code in problems if code in NEEDS_DECISION)
    return {
        "state": state,
        "until": latest(dates) if dates else None,
        "waits_for": tuple(dict.fromkeys(waits)),
        "sites": len(steps),
        "problems": len(problems),
    }


def _check_claim(event: StoredEvent, step: StepView) -> None:
    """Refuse a state that the numbers beside it contradict."""
    if (step.until is not None) != (step.state is State.BACKUP_RETAINED):
        raise _refusal(event, "a date belongs to backup-retained-until and to nothing else")
    if step.state is State.CONFIRMED_DELETED and (step.left or step.residue):
        raise _refusal(event, "it says confirmed-deleted of what is still there")
    if step.until is not None and any(
        copy.until is None or copy.until > step.until for copy in step.residue
    ):
        raise _refusal(event, "a copy is left that does not go by the date given")


def _step(event: StoredEvent) -> StepView:
    body = event.body
    problem = body.get("problem")
    residue = body.get("residue", [])
    completeness = body.get("completeness")
    try:
        return StepView(
            request=event.request or "",
            site=_site(event),
            adapter=_text(event, "adapter"),
            state=State(_text(event, "state")),
            until=_date(event, body.get("until")),
            problem=None if problem is None else _problem(event, problem),
            found=_integer(event, body.get("found", 0)),
            removed=_integer(event, body.get("removed", 0)),
            left=_integer(event, body.get("left", 0)),
            residue=tuple(_remains(event, copy) for copy in cast("list[JSON]", residue)),
            evidence=_mapping(event, "evidence") if "evidence" in body else {},
            completeness=None if completeness is None else str(completeness),
            at=event.at,
        )
    except (ValueError, TypeError, KeyError) as error:
        raise _refusal(event, "it is not a step") from error


def _site(event: StoredEvent) -> str:
    if not event.site:
        raise _refusal(event, "it names no site")
    return event.site


def _problem(event: StoredEvent, value: JSON) -> Problem:
    if not isinstance(value, dict):
        raise _refusal(event, "its problem is not one")
    return Problem(ProblemCode(value["code"]), str(value["sentence"]))


def _remains(event: StoredEvent, value: JSON) -> Remains:
    if not isinstance(value, dict):
        raise _refusal(event, "a copy that is left is not described")
    return Remains(str(value["where"]), str(value["why"]), _date(event, value.get("until")))


def _date(event: StoredEvent, value: JSON) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _refusal(event, "a date is not one")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise _refusal(event, "a date has no time zone")
    return moment


def _text(event: StoredEvent, key: str) -> str:
    value = event.body.get(key)
    if not isinstance(value, str):
        raise _refusal(event, f"its {key} is missing")
    return value


def _mapping(event: StoredEvent, key: str) -> Mapping[str, JSON]:
    value = event.body.get(key)
    if not isinstance(value, dict):
        raise _refusal(event, f"its {key} is missing")
    return value


def _integer(event: StoredEvent, value: JSON) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _refusal(event, "a number is not one")
    return value


def _refusal(event: StoredEvent, why: str) -> LedgerFault:
    return LedgerFault(f"Event {event.seq} ({event.kind}) may not stand in the ledger: {why}.")
