"""What a run writes to the ledger and reads back from it.

The only module that knows how plans, steps and decisions are laid down as events and sealed
payloads. Everything that could hold a text or an identifier goes into the sealed payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, cast

from purge.adapter import ControlKind, EvidenceKind, Examined, NotChecked, Residue
from purge.errors import LedgerFault, UsageFault
from purge.ledger import JSON, Event, EventKind, Ledger, NewRequest, Remains, StepRecord, StepView
from purge.plan.outcome import Completeness, Evidence, Role, Step, Tally
from purge.plan.reach import Owed
from purge.plan.request import Decisions, Request, Wanted
from purge.state import ProblemCode
from purge.targets import NeedleKind, Target, Trace

PLAN: Final = "plan"
STRUCTURE: Final = "structure"


@dataclass(slots=True)
class Kept:
    """What is kept of a request between runs: its plan, and what was seen before removal."""

    owed: list[Owed] = field(default_factory=list)
    controls: dict[str, dict[ControlKind, bool]] = field(default_factory=dict)
    """By site: whether the look could see the records while they were readable."""
    removed_at: dict[str, datetime] = field(default_factory=dict)
    """By site: when reads were first found to return none of them."""

    def take_controls(self, site: str, seen: Mapping[ControlKind, bool]) -> None:
        """Keep what a look before removal could see. One that passed once stays passed: a run
        that was killed looks again at what its predecessor already removed."""
        mine = self.controls.setdefault(site, {}) if seen else {}
        for kind, passed in seen.items():
            mine[kind] = passed or mine.get(kind, False)


class Journal:
    """The ledger, as a run uses it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def find_same(self, request: Request) -> str | None:
        """Return the id of the open request that names the same, if there is one."""
        found = self.ledger.find_by_idempotency(self.ledger.idempotency_key(request.identity()))
        if found is None:
            return None
        view = self.ledger.request(found)
        return found if view is not None and view.open else None

    def create(self, request: Request, sites: Mapping[str, str]) -> Request:
        """Record a new request and return it with its id.

        Args:
            request: what is asked; its own id is ignored.
            sites: every site with the name of its adapter.
        """
        targets = [
            Target(number, wanted.kind, wanted.value, wanted.site, dict(request.scope))
            for number, wanted in enumerate(request.wanted)
        ]
        view = self.ledger.create_request(
            NewRequest(
                reason=request.reason,
                asked_by=request.asked_by,
                targets=targets,
                sites=sites,
                options={"expect": request.expect, "decisions": request.decisions.to_json()},
                idempotency=self.ledger.idempotency_key(request.identity()),
            )
        )
        return Request(
            view.id,
            view.created,
            request.wanted,
            request.scope,
            request.reason,
            request.asked_by,
            request.decisions,
            request.expect,
        )

    def load(self, id: str) -> Request:
        """Return a recorded request, with the decisions made since.

        Raises:
            UsageFault: there is none of this id.
            LedgerFault: what it looked for can no longer be read.
        """
        view = self.ledger.request(id)
        if view is None:
            raise UsageFault(f"There is no request {id} in this ledger. 'purge status' lists them.")
        targets = self.ledger.targets(id)
        if targets is None:
            raise LedgerFault(
                f"The key of request {id} was destroyed: what it looked for can no longer be read."
            )
        decisions = Decisions.from_json(_mapping(view.options.get("decisions")))
        for event in self.ledger.events(id, [EventKind.DECISION]):
            decisions = Decisions.from_json(_mapping(event.body.get("decisions"))).or_else(
                decisions
            )
        expect = view.options.get("expect")
        return Request(
            id,
            view.created,
            tuple(Wanted(target.kind, target.value, target.site) for target in targets),
            dict(targets[0].scope),
            view.reason,
            view.asked_by,
            decisions,
            expect if isinstance(expect, int) else None,
        )

    def decide(self, id: str, decisions: Decisions) -> None:
        """Record what the caller decided."""
        body: dict[str, JSON] = {"decisions": dict(decisions.to_json())}
        for question, answer in decisions.to_json().items():
            if answer is not None:
                body["question"], body["answer"] = question, "remove" if answer else "keep"
        self.ledger.append([Event(EventKind.DECISION, id, None, body)])

    def withdraw(self, id: str) -> None:
        """Record that a request should not have been made."""
        self.ledger.append([Event(EventKind.REQUEST_WITHDRAWN, id)])

    def note(
        self, kind: EventKind, requests: Iterable[str], site: str | None, body: Mapping[str, JSON]
    ) -> None:
        """Record the same event for several requests, in one transaction."""
        events = [Event(kind, request, site, body) for request in requests]
        if events:
            self.ledger.append(events)

    def keep(self, id: str, kept: Kept) -> None:
        """Seal the plan of a request, with everything needed to look again."""
        payload: dict[str, JSON] = {
            "records": [_owed_to_json(entry) for entry in kept.owed],
            "controls": {
                site: {(kind.value if kind else STRUCTURE): seen for kind, seen in kinds.items()}
                for site, kinds in kept.controls.items()
            },
            "removed_at": {site: at.isoformat() for site, at in kept.removed_at.items()},
        }
        self.ledger.seal(id, PLAN, payload)

    def kept(self, id: str) -> Kept:
        """Return what :meth:`keep` sealed last; empty before the first plan."""
        payload = self.ledger.unseal(id, PLAN)
        if payload is None:
            return Kept()
        return Kept(
            owed=[_owed_from_json(_mapping(entry)) for entry in _list(payload.get("records"))],
            controls={
                site: {
                    (None if kind == STRUCTURE else NeedleKind(kind)): bool(seen)
                    for kind, seen in _mapping(kinds).items()
                }
                for site, kinds in _mapping(payload.get("controls")).items()
            },
            removed_at={
                site: datetime.fromisoformat(str(at))
                for site, at in _mapping(payload.get("removed_at")).items()
            },
        )

    def record(self, id: str, steps: Sequence[Step]) -> None:
        """Record the state of every step, in one transaction."""
        self.ledger.append([_record_of(step).event(id, step.site) for step in steps])

    def steps(self, id: str) -> tuple[Step, ...]:
        """Return the steps of a request as they stand."""
        return tuple(step_of(view) for view in self.ledger.steps(id))


def _record_of(step: Step) -> StepRecord:
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
            "control": {(k.value if k else STRUCTURE): v for k, v in proof.control.items()},
        }
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
                files=_int(said.get("files")),
                bytes=_int(said.get("bytes")),
                records=_int(said.get("records")),
                unlinked=_int(said.get("unlinked")),
                note=str(said.get("note") or ""),
            ),
            at=datetime.fromisoformat(str(said["at"])),
            control={
                (None if kind == STRUCTURE else NeedleKind(kind)): bool(seen)
                for kind, seen in _mapping(said.get("control")).items()
            },
        )
    return Step(
        site=view.site,
        adapter=view.adapter,
        state=view.state,
        until=view.until,
        tally=_tally_from_json(_mapping(said.get("tally"))),
        residue=tuple(Residue(copy.where, copy.why, copy.until) for copy in view.residue),
        not_checked=tuple(
            NotChecked(
                str(_mapping(gap)["where"]),
                str(_mapping(gap)["why"]),
                ProblemCode(str(_mapping(gap)["problem"])),
            )
            for gap in _list(said.get("not_checked"))
        ),
        evidence=evidence,
        completeness=Completeness(view.completeness or Completeness.INCOMPLETE),
        problem=view.problem,
        at=view.at,
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
        "late": tally.late,
        "by_how": dict(tally.by_how),
    }


def _tally_from_json(body: Mapping[str, JSON]) -> Tally:
    numbers = {name: _int(value) for name, value in body.items() if name != "by_how"}
    how = {name: _int(value) for name, value in _mapping(body.get("by_how")).items()}
    return Tally(**numbers, by_how=how)


def _owed_to_json(entry: Owed) -> dict[str, JSON]:
    trace = entry.trace
    return {
        "site": entry.site,
        "id": trace.id,
        "texts": list(trace.texts),
        "metadata": list(trace.metadata),
        "vectors": [[value.hex() for value in vector] for vector in trace.vectors],
        "role": entry.role.value,
        "how": entry.how,
        "parents": {site: list(ids) for site, ids in entry.parents.items()},
    }


def _owed_from_json(body: Mapping[str, JSON]) -> Owed:
    return Owed(
        site=str(body["site"]),
        trace=Trace(
            id=str(body["id"]),
            texts=tuple(map(str, _list(body["texts"]))),
            metadata=tuple(map(str, _list(body["metadata"]))),
            vectors=tuple(
                tuple(float.fromhex(str(value)) for value in _list(vector))
                for vector in _list(body["vectors"])
            ),
        ),
        role=Role(str(body["role"])),
        how=str(body["how"]),
        parents={
            site: tuple(map(str, _list(ids))) for site, ids in _mapping(body["parents"]).items()
        },
    )


def _mapping(value: object) -> Mapping[str, JSON]:
    return cast("Mapping[str, JSON]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[JSON]:
    return cast("Sequence[JSON]", value) if isinstance(value, (list, tuple)) else ()


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
