"""What a run writes to the ledger and reads back from it.

The only module that knows how plans, steps and decisions are laid down as events and sealed
payloads. Everything that could hold a text or an identifier goes into the sealed payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Final

from purge.adapter import ControlKind
from purge.engine.steps import (
    control_kind,
    control_name,
    in_zone,
    listing,
    mapping,
    record_of,
    step_of,
)
from purge.errors import LedgerFault, UsageFault
from purge.ledger import JSON, Event, EventKind, Ledger, NewRequest, StepRecord
from purge.plan.outcome import Role, Step
from purge.plan.reach import Owed
from purge.plan.request import Decisions, Request, Wanted
from purge.targets import Target, Trace

PLAN: Final = "plan"


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
    """The ledger, as a run uses it.

    Args:
        ledger: open to write.
        zone: the time zone of the manifest, in which times are told.
    """

    def __init__(self, ledger: Ledger, zone: tzinfo) -> None:
        self.ledger = ledger
        self.zone = zone

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
            view.created.astimezone(self.zone),
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
        decisions = Decisions.from_json(mapping(view.options.get("decisions")))
        for event in self.ledger.events(id, [EventKind.DECISION]):
            decisions = Decisions.from_json(mapping(event.body.get("decisions"))).or_else(decisions)
        expect = view.options.get("expect")
        return Request(
            id,
            view.created.astimezone(self.zone),
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
        self.ledger.append([Event(kind, request, site, body) for request in requests])

    def begin_steps(self, id: str, known: Iterable[str], sites: Mapping[str, str]) -> None:
        """Record a step for every site that came into the manifest after the request was made.

        Args:
            id: the request.
            known: the sites that it has steps for.
            sites: the manifest's sites, each with the name of its adapter.
        """
        new = {site: adapter for site, adapter in sites.items() if site not in set(known)}
        self.ledger.append([StepRecord(adapter).event(id, site) for site, adapter in new.items()])

    def keep(self, id: str, kept: Kept, events: Sequence[Event] = ()) -> None:
        """Seal the plan of a request, with everything needed to look again.

        Args:
            id: the request.
            kept: what to keep; it replaces what was kept before.
            events: what to record in the same transaction.
        """
        payload: dict[str, JSON] = {
            "records": [_owed_to_json(entry) for entry in kept.owed],
            "controls": {
                site: {control_name(kind): seen for kind, seen in kinds.items()}
                for site, kinds in kept.controls.items()
            },
            "removed_at": {site: at.isoformat() for site, at in kept.removed_at.items()},
        }
        self.ledger.append(events, {(id, PLAN): payload})

    def kept(self, id: str) -> Kept:
        """Return what :meth:`keep` sealed last; empty before the first plan."""
        payload = self.ledger.unseal(id, PLAN)
        if payload is None:
            return Kept()
        return Kept(
            owed=[_owed_from_json(mapping(entry)) for entry in listing(payload.get("records"))],
            controls={
                site: {control_kind(kind): bool(seen) for kind, seen in mapping(kinds).items()}
                for site, kinds in mapping(payload.get("controls")).items()
            },
            removed_at={
                site: datetime.fromisoformat(str(at)).astimezone(self.zone)
                for site, at in mapping(payload.get("removed_at")).items()
            },
        )

    def record(self, id: str, steps: Sequence[Step], kept: Kept) -> None:
        """Record the state of every step and the end of the run, in one transaction."""
        recorded = [record_of(step).event(id, step.site) for step in steps]
        self.keep(id, kept, [*recorded, Event(EventKind.RUN_FINISHED, id)])

    def steps(self, id: str) -> tuple[Step, ...]:
        """Return the steps of a request as they stand."""
        return tuple(in_zone(step_of(view), self.zone) for view in self.ledger.steps(id))


def _owed_to_json(entry: Owed) -> dict[str, JSON]:
    trace = entry.trace
    return {
        "site": entry.site,
        "part": entry.part,
        "pieces": entry.pieces,
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
        part=str(body.get("part", "")),
        pieces=int(str(body.get("pieces", 1))),
        trace=Trace(
            id=str(body["id"]),
            texts=tuple(map(str, listing(body["texts"]))),
            metadata=tuple(map(str, listing(body["metadata"]))),
            vectors=tuple(
                tuple(float.fromhex(str(value)) for value in listing(vector))
                for vector in listing(body["vectors"])
            ),
        ),
        role=Role(str(body["role"])),
        how=str(body["how"]),
        parents={
            site: tuple(map(str, listing(ids))) for site, ids in mapping(body["parents"]).items()
        },
    )
