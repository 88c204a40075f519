"""The report as one JSON document, schema ``purge/report/1``.

Every other form is made from the same outcome, so that they cannot disagree. Fields are only
ever added within a schema version.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from purge.adapter import ControlKind, Examined
from purge.plan.outcome import Evidence, Outcome, Step

SCHEMA: Final = "purge/report/1"


def report_document(outcome: Outcome) -> dict[str, Any]:
    """Return the report as JSON values.

    A dry run has no request id and no states.
    """
    asked = outcome.request
    request: dict[str, Any] = {
        "created": _iso(asked.created),
        "reason": asked.reason,
        "asked_by": asked.asked_by,
        "scope": dict.fromkeys(asked.scope, "sealed"),
        "targets": dict(asked.targets),
    }
    if asked.id:
        request = {
            "id": asked.id,
            **request,
            "deadline": _iso(asked.deadline),
            "withdrawn": _iso(asked.withdrawn),
            "closed": _iso(asked.closed),
        }
    document: dict[str, Any] = {"schema": SCHEMA, "request": request, "applied": outcome.applied}
    if outcome.applied and outcome.state is not None:
        document["state"] = outcome.state.value
        document["until"] = _iso(outcome.until)
        document["settled"] = outcome.settled
        document["asked_before"] = outcome.asked_before
    else:
        document["to_remove"] = outcome.to_remove
    document["refused"] = outcome.refusal
    document["steps"] = [_step(step, applied=outcome.applied) for step in outcome.steps]
    return document


def _step(step: Step, *, applied: bool) -> dict[str, Any]:
    tally = step.tally
    said: dict[str, Any] = {"site": step.site, "adapter": step.adapter}
    if applied and step.state is not None:
        said["state"] = step.state.value
        said["until"] = _iso(step.until)
    said["found"] = tally.found
    if applied:
        said["removed"] = tally.removed
    else:
        said["to_remove"] = tally.to_remove - tally.removed
    said["left"] = tally.left
    said["shown"] = {
        "sources": tally.sources,
        "derived_from_purged": tally.flagged,
        "possible_copies": tally.copies,
        "kept_by_choice": tally.kept,
        "scope_unknown": tally.scope_unknown,
        "by_person": tally.by_person,
        "seen_again": tally.seen_again,
        "restated": tally.restated,
        "held": tally.held,
    }
    said["reappeared"] = [
        {"count": back.count, "removed": _iso(back.removed), "seen": _iso(back.seen)}
        for back in step.reappeared
    ]
    said["late"] = tally.late
    said["how"] = dict(tally.by_how)
    said["residue"] = [
        {"where": copy.where, "why": copy.why, "until": _iso(copy.until)}
        | ({} if applied else {"cleaned_by_apply": copy.fixable})
        for copy in step.residue
    ]
    said["not_checked"] = [{"where": gap.where, "why": gap.why} for gap in step.not_checked]
    said["evidence"] = _evidence(step.evidence)
    said["completeness"] = step.completeness.value
    said["problem"] = (
        {"code": step.problem.code.value, "sentence": step.problem.sentence}
        if step.problem
        else None
    )
    return said


def _evidence(evidence: Evidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {
        "kind": evidence.kind.value,
        "examined": describe(evidence.examined),
        "at": _iso(evidence.at),
        "control": {name_control(kind): passed for kind, passed in evidence.control.items()},
    }


def name_control(kind: ControlKind) -> str:
    """Return what a control vouches for, as reports call it."""
    return kind.value if kind else "structure"


def describe(examined: Examined, *, short: bool = False) -> str:
    """Return how much was read, in words: ``5 files, 48223113 bytes``."""
    parts = []
    if examined.files:
        parts.append(_count(examined.files, "file"))
    if examined.bytes:
        size = human_size(examined.bytes) if short else f"{examined.bytes} bytes"
        parts.append(size)
    if examined.records:
        parts.append(_count(examined.records, "record"))
    if examined.note and not short:
        parts.append(examined.note)
    return ", ".join(parts) or "nothing there"


def human_size(size: int) -> str:
    """Return a size in bytes as people say it: ``48.2 MB``."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
