"""What a run writes to the ledger and reads back from it.

The only module that knows how plans, steps and decisions are laid down as events and sealed
payloads. Everything that could hold a text or an identifier goes into the sealed payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Final

from purge.engine.steps import (
    control_kind,
    control_name,
    in_zone,
    listing,
    mapping,
    record_of,
    step_of,
)
from purge.engine.task import Kept
from purge.errors import LedgerFault, UsageFault
from purge.ledger import JSON, Event, EventKind, Ledger, NewRequest, RequestView, StepRecord
from purge.plan.outcome import Role, Step
from purge.plan.reach import Owed, RecordKey
from purge.plan.request import Decisions, Origin, Request, Wanted
from purge.targets import Target, Trace

PLAN: Final = "plan"
ORIGIN: Final = "origin"


class Journal:
    """The ledger, as a run uses it.

    Args:
        ledger: open to write.
        zone: the time zone of the manifest, in which times are told.
    """

    def __init__(self, ledger: Ledger, zone: tzinfo) -> None:
        self.ledger = ledger
        self.zone = zone
        self._written: dict[str, Mapping[str, JSON]] = {}

    def find_same(self, request: Request) -> str | None:
        """Return the id of the open request that names the same, if there is one."""
        found = self.ledger.find_by_idempotency(self.ledger.idempotency_key(request.identity()))
        if found is None:
            return None
        view = self.ledger.request(found)
        return found if view is not None and view.open else None

    def knows(self, request: Request) -> bool:
        """Whether the same was ever asked, also where it is closed or withdrawn by now."""
        key = self.ledger.idempotency_key(request.identity())
        return self.ledger.find_by_idempotency(key) is not None

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
                options={
                    "expect": request.expect,
                    "decisions": request.decisions.to_json(),
                    **({"marker": request.origin.site} if request.origin else {}),
                },
                deadline=request.deadline,
                idempotency=self.ledger.idempotency_key(request.identity()),
            )
        )
        if request.origin is not None:
            self.ledger.seal(view.id, ORIGIN, _origin_to_json(request.origin))
        return replace(request, id=view.id, created=view.created.astimezone(self.zone))

    def load(self, id: str) -> Request:
        """Return a recorded request, with the decisions made since.

        Raises:
            UsageFault: there is none of this id.
            LedgerFault: what it looked for can no longer be read.
        """
        view = self.ledger.request(id)
        if view is None or view.is_hold:
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
            None if view.deadline is None else view.deadline.astimezone(self.zone),
            self._origin(view),
        )

    def _origin(self, view: RequestView) -> Origin | None:
        site = view.options.get("marker")
        if not isinstance(site, str):
            return None
        sealed = self.ledger.unseal(view.id, ORIGIN) or {}
        return Origin(site, str(sealed.get("record", "")), str(sealed.get("part", "")))

    def decide(self, id: str, decisions: Decisions) -> None:
        """Record what the caller decided."""
        body: dict[str, JSON] = {"decisions": dict(decisions.to_json())}
        for question, answer in decisions.to_json().items():
            if answer is not None:
                body["question"], body["answer"] = question, "remove" if answer else "keep"
        self.ledger.append([Event(EventKind.DECISION, id, None, body)])

    def asked(self, identity: Sequence[str]) -> RequestView | None:
        """Return the request of an identity, however it stands."""
        found = self.ledger.find_by_idempotency(self.ledger.idempotency_key(identity))
        return None if found is None else self.ledger.request(found)

    def close(self, id: str) -> None:
        """Record that nothing is left to do for a request."""
        self.ledger.append([Event(EventKind.REQUEST_CLOSED, id)])

    def swept(self, mode: str, at: datetime, requests: int) -> None:
        """Record that a sweep or replay went through."""
        body: dict[str, JSON] = {"mode": mode, "requests": requests, "at": at.isoformat()}
        self.ledger.append([Event(EventKind.RUN_FINISHED, None, None, body)])

    def note_strike(self, kind: EventKind, site: str, markers: int) -> None:
        """Record that markers are about to be struck, or were."""
        body: dict[str, JSON] = {"act": "strike", "markers": markers}
        self.ledger.append([Event(kind, None, site, body)])

    def withdraw(self, id: str) -> None:
        """Record that a request should not have been made."""
        self.ledger.append([Event(EventKind.REQUEST_WITHDRAWN, id)])

    def note(
        self, kind: EventKind, requests: Iterable[str], site: str | None, body: Mapping[str, JSON]
    ) -> None:
        """Record the same event for several requests, in one transaction."""
        self.ledger.append([Event(kind, request, site, body) for request in requests])

    def begin_steps(self, known: Mapping[str, Iterable[str]], sites: Mapping[str, str]) -> None:
        """Record a step for every site that came into the manifest after a request was made.

        Args:
            known: by request, the sites that it has steps for.
            sites: the manifest's sites, each with the name of its adapter.
        """
        self.ledger.append(
            [
                StepRecord(adapter).event(id, site)
                for id, there in known.items()
                for site, adapter in sites.items()
                if site not in set(there)
            ]
        )

    def keep(self, kept: Mapping[str, Kept], events: Sequence[Event] = ()) -> None:
        """Seal the plans of requests, with everything needed to look again.

        Args:
            kept: by request, what to keep; it replaces what was kept before.
            events: what to record in the same transaction.
        """
        sealing: dict[tuple[str, str], Mapping[str, JSON]] = {}
        for id, mine in kept.items():
            payload = self._payload(mine)
            if self._written.get(id) != payload:
                sealing[id, PLAN] = payload
        self.ledger.append(events, sealing)
        self._written.update({id: payload for (id, _), payload in sealing.items()})

    @staticmethod
    def _payload(kept: Kept) -> Mapping[str, JSON]:
        payload: dict[str, JSON] = {
            "records": [_owed_to_json(entry) for entry in kept.owed],
            "controls": {
                site: {control_name(kind): seen for kind, seen in kinds.items()}
                for site, kinds in kept.controls.items()
            },
            "removed_at": {site: at.isoformat() for site, at in kept.removed_at.items()},
            "looked": {site: at.isoformat() for site, at in kept.looked.items()},
            "flagged": [_owed_to_json(entry) for entry in kept.flagged],
            "spared": [list(key) for key in sorted(kept.spared)],
            "waiting": [list(key) for key in sorted(kept.waiting)],
            "last_removed": kept.last_removed.isoformat() if kept.last_removed else None,
        }
        return payload

    def kept(self, id: str) -> Kept:
        """Return what :meth:`keep` sealed last; empty before the first plan."""
        payload = self.ledger.unseal(id, PLAN)
        if payload is None:
            return Kept()
        last = payload.get("last_removed")
        kept = Kept(
            owed=[_owed_from_json(mapping(entry)) for entry in listing(payload.get("records"))],
            controls={
                site: {control_kind(kind): bool(seen) for kind, seen in mapping(kinds).items()}
                for site, kinds in mapping(payload.get("controls")).items()
            },
            removed_at=self._times(payload.get("removed_at")),
            looked=self._times(payload.get("looked")),
            flagged=[_owed_from_json(mapping(it)) for it in listing(payload.get("flagged"))],
            spared=_keys(payload.get("spared")),
            waiting=_keys(payload.get("waiting")),
            last_removed=None if last is None else self._time(last),
        )
        self._written[id] = self._payload(kept)
        return kept

    def _time(self, text: JSON) -> datetime:
        return datetime.fromisoformat(str(text)).astimezone(self.zone)

    def _times(self, value: JSON) -> dict[str, datetime]:
        return {site: self._time(at) for site, at in mapping(value).items()}

    def record(self, done: Mapping[str, tuple[Sequence[Step], Kept]], *, mode: str) -> None:
        """Record the state of steps and the end of the run, in one transaction.

        Args:
            done: by request, the steps to record and what to keep of it.
            mode: what kind of run it was.
        """
        events = []
        for id, (steps, _) in done.items():
            events += [record_of(step).event(id, step.site) for step in steps]
            events.append(Event(EventKind.RUN_FINISHED, id, None, {"mode": mode}))
        self.keep({id: kept for id, (_, kept) in done.items()}, events)

    def steps(self, id: str) -> tuple[Step, ...]:
        """Return the steps of a request as they stand."""
        return tuple(in_zone(step_of(view), self.zone) for view in self.ledger.steps(id))


def _keys(value: JSON) -> set[RecordKey]:
    return {RecordKey(*(str(part) for part in listing(key))) for key in listing(value)}


def _origin_to_json(origin: Origin) -> dict[str, JSON]:
    return {"record": origin.record, "part": origin.part}


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
        "gone": entry.gone.isoformat() if entry.gone else None,
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
        gone=datetime.fromisoformat(str(body["gone"])) if body.get("gone") else None,
    )
