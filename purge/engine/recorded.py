"""Where a request stands, from the ledger alone. Asks no site; needs no manifest and no key."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo

from purge.engine.steps import step_of
from purge.errors import UsageFault
from purge.ledger import Ledger
from purge.plan.outcome import Outcome, Step
from purge.plan.request import Asked


def recorded(ledger: Ledger, id: str, zone: tzinfo) -> Outcome:
    """Return a request's outcome as the ledger holds it, with times in ``zone``.

    Raises:
        UsageFault: there is no request of this id.
    """
    view = ledger.request(id)
    if view is None:
        raise UsageFault(f"There is no request {id} in this ledger. 'purge status' lists them.")
    created = view.created.astimezone(zone)
    asked = Asked(view.id, created, view.reason, view.asked_by, view.scope, view.targets)
    steps = tuple(_in_zone(step_of(step), zone) for step in ledger.steps(id))
    return Outcome(asked, True, steps)


def _in_zone(step: Step, zone: tzinfo) -> Step:
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
        residue=tuple(replace(copy, until=local(copy.until)) for copy in step.residue),
    )
