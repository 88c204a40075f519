"""Where a request stands, from the ledger alone. Asks no site; needs no manifest and no key."""

from __future__ import annotations

from datetime import tzinfo

from purge.engine.steps import in_zone, step_of
from purge.errors import UsageFault
from purge.ledger import Ledger
from purge.plan.outcome import Outcome
from purge.plan.request import Asked


def recorded(ledger: Ledger, id: str, zone: tzinfo) -> Outcome:
    """Return a request's outcome as the ledger holds it, with times in ``zone``.

    Raises:
        UsageFault: there is no request of this id.
    """
    view = ledger.request(id)
    if view is None or view.is_hold:
        raise UsageFault(f"There is no request {id} in this ledger. 'purge status' lists them.")
    created = view.created.astimezone(zone)
    withdrawn = view.withdrawn.astimezone(zone) if view.withdrawn else None
    marker = view.options.get("marker")
    asked = Asked(
        view.id,
        created,
        view.reason,
        view.asked_by,
        view.scope,
        view.targets,
        withdrawn,
        view.closed.astimezone(zone) if view.closed else None,
        view.deadline.astimezone(zone) if view.deadline else None,
        marker if isinstance(marker, str) else None,
    )
    steps = tuple(in_zone(step_of(step), zone) for step in ledger.steps(id))
    return Outcome(asked, True, steps)
