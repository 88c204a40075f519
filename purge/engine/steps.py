"""Steps as events of the ledger, and back. Pure; holds nothing that is sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Final, cast

from purge.adapter import ControlKind, EvidenceKind, Examined, NotChecked, Residue
from purge.ledger import JSON, Remains, StepRecord, StepView
from purge.plan.outcome import Completeness, Evidence, Reappearance, Step, Tally
from purge.state import ProblemCode
from purge.targets import NeedleKind

_STRUCTURE: Final = "structure"


def control_name(kind: ControlKind) -> str:
    """Return what a control vouches for, as the ledger writes it."""
    return kind.value if kind else _STRUCTURE


def control_kind(name: str) -> ControlKind:
    """Read what :func:`control_name` wrote."""
    return None if name == _STRUCTURE else NeedleKind(name)


def record_of(step: Step) -> StepRecord:
    """Return a step in the form in which the ledger records it.

    Raises:
        ValueError: it has no state; a dry run records nothing.
    """
    if step.state is None:
        raise ValueError("a dry run has no states to record")
    evidence: dict[str, JSON] = {"tally": _tally_to_json(step.tally)}
    if step.evidence is not None:
        proof = step.evidence
        evidence |= {
            "kind": proof.kind.value,
            "files": proof.examined.files,
            "bytes": proof.examined.bytes,
            "records": proof.examined.records,
            "unlinked": proof.examined.unlinked,
            "note": proof.examined.note,
            "at": proof.at.isoformat(),
            "control": {control_name(kind): seen for kind, seen in proof.control.items()},
        }
    if step.reappeared:
        evidence["reappeared"] = [
            {
                "count": back.count,
                "removed": back.removed.isoformat(),
                "seen": back.seen.isoformat(),
            }
            for back in step.reappeared
        ]
    if step.not_checked:
        evidence["not_checked"] = [
            {"where": gap.where, "why": gap.why, "problem": gap.problem.value}
            for gap in step.not_checked
        ]
    return StepRecord(
        adapter=step.adapter,
        state=step.state,
        until=step.until,
        problem=step.problem,
        found=step.tally.found,
        removed=step.tally.removed,
        left=step.tally.left,
        residue=[Remains(copy.where, copy.why, copy.until) for copy in step.residue],
        evidence=evidence,
        completeness=step.completeness.value,
    )


def step_of(view: StepView) -> Step:
    """Return a step as the ledger holds it."""
    said = view.evidence
    evidence = None
    if "kind" in said:
        evidence = Evidence(
            kind=EvidenceKind(str(said["kind"])),
            examined=Examined(
                files=number(said.get("files")),
                bytes=number(said.get("bytes")),
                records=number(said.get("records")),
                unlinked=number(said.get("unlinked")),
                note=str(said.get("note") or ""),
            ),
            at=datetime.fromisoformat(str(said["at"])),
            control={
                control_kind(kind): bool(seen)
                for kind, seen in mapping(said.get("control")).items()
            },
        )
    return Step(
        site=view.site,
        adapter=view.adapter,
        state=view.state,
        until=view.until,
        tally=_tally_from_json(mapping(said.get("tally"))),
        residue=tuple(Residue(copy.where, copy.why, copy.until) for copy in view.residue),
        not_checked=tuple(
            NotChecked(
                str(mapping(gap)["where"]),
                str(mapping(gap)["why"]),
                ProblemCode(str(mapping(gap)["problem"])),
            )
            for gap in listing(said.get("not_checked"))
        ),
        evidence=evidence,
        completeness=Completeness(view.completeness or Completeness.INCOMPLETE),
        problem=view.problem,
        at=view.at,
        reappeared=tuple(
            Reappearance(
                number(mapping(back).get("count")),
                datetime.fromisoformat(str(mapping(back)["removed"])),
                datetime.fromisoformat(str(mapping(back)["seen"])),
            )
            for back in listing(said.get("reappeared"))
        ),
    )


def in_zone(step: Step, zone: tzinfo) -> Step:
    """Return a step with its times told in ``zone``."""

    def local(moment: datetime | None) -> datetime | None:
        return None if moment is None else moment.astimezone(zone)

    evidence = step.evidence
    if evidence is not None:
        evidence = replace(evidence, at=evidence.at.astimezone(zone))
    return replace(
        step,
        until=local(step.until),
        at=local(step.at),
        evidence=evidence,
        reappeared=tuple(
            replace(back, removed=back.removed.astimezone(zone), seen=back.seen.astimezone(zone))
            for back in step.reappeared
        ),
        residue=tuple(replace(copy, until=local(copy.until)) for copy in step.residue),
    )


def _tally_to_json(tally: Tally) -> dict[str, JSON]:
    return {
        "found": tally.found,
        "to_remove": tally.to_remove,
        "removed": tally.removed,
        "left": tally.left,
        "sources": tally.sources,
        "flagged": tally.flagged,
        "copies": tally.copies,
        "kept": tally.kept,
        "scope_unknown": tally.scope_unknown,
        "by_person": tally.by_person,
        "late": tally.late,
        "reappeared": tally.reappeared,
        "seen_again": tally.seen_again,
        "restated": tally.restated,
        "held": tally.held,
        "by_how": dict(tally.by_how),
    }


def _tally_from_json(body: Mapping[str, JSON]) -> Tally:
    numbers = {name: number(value) for name, value in body.items() if name != "by_how"}
    how = {name: number(value) for name, value in mapping(body.get("by_how")).items()}
    return Tally(**numbers, by_how=how)


def mapping(value: object) -> Mapping[str, JSON]:
    """Return a JSON object, or an empty one where something else stands."""
    return cast("Mapping[str, JSON]", value) if isinstance(value, Mapping) else {}


def listing(value: object) -> Sequence[JSON]:
    """Return a JSON array, or an empty one where something else stands."""
    return cast("Sequence[JSON]", value) if isinstance(value, (list, tuple)) else ()


def number(value: object) -> int:
    """Return a JSON number, or 0 where something else stands."""
    return value if isinstance(value, int) else 0
