"""Legal holds: what nothing may remove, kept in the ledger like requests are, sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from purge.engine.steps import listing, mapping
from purge.errors import UsageFault
from purge.ledger import JSON, Event, EventKind, Ledger, NewRequest, RequestView
from purge.ledger.views import HOLD
from purge.manifest import Manifest
from purge.plan.again import Hold
from purge.targets import Target, TargetKind


@dataclass(frozen=True, slots=True)
class HoldView:
    """What may be said of a hold in the clear.

    Args:
        on: how many ids, subjects and scope keys it is on.
    """

    id: str
    created: datetime
    reason: str
    asked_by: str
    on: Mapping[str, int]
    released: datetime | None = None


def check_hold(manifest: Manifest, hold: Hold) -> None:
    """Refuse a hold that the manifest cannot follow.

    Raises:
        UsageFault: it names a site that is not there, or what no site maps.
    """
    for site, _ in hold.ids:
        if site is not None and site not in manifest.sites:
            known = ", ".join(manifest.sites)
            raise UsageFault(f"There is no site '{site}'. The manifest has: {known}.")
    if hold.subjects and not any(entry.subject for entry in manifest.sites.values()):
        raise UsageFault("No site of the manifest maps a 'subject' field; hold ids instead.")
    for key in hold.scope:
        if not any(key in entry.scope for entry in manifest.sites.values()):
            raise UsageFault(f"No site of the manifest maps the scope '{key}'.")


def add_hold(ledger: Ledger, hold: Hold, reason: str, asked_by: str, zone: tzinfo) -> HoldView:
    """Record a hold.

    Raises:
        UsageFault: it is on nothing.
        Refused: the reason repeats what it is on.
    """
    if not (hold.ids or hold.subjects or hold.scope):
        raise UsageFault("A hold is on something: name it with --id, --subject or --scope.")
    ids = sorted(hold.ids, key=lambda one: (one[0] or "", one[1]))
    targets = [Target(n, TargetKind.ID, id, site) for n, (site, id) in enumerate(ids)]
    persons = sorted(hold.subjects)
    targets += [Target(len(ids) + n, TargetKind.SUBJECT, who) for n, who in enumerate(persons)]
    payload: dict[str, JSON] = {
        "ids": [[site, id] for site, id in ids],
        "subjects": persons,
        "scope": dict(hold.scope),
    }
    options: dict[str, JSON] = {"scope": len(hold.scope)}
    view = ledger.create_request(
        NewRequest(reason, asked_by, targets, {}, options=options, hold=payload)
    )
    return _view(view, zone)


def list_holds(ledger: Ledger, zone: tzinfo) -> list[HoldView]:
    """Return all holds, released ones too, newest first."""
    return [_view(view, zone) for view in ledger.requests() if view.is_hold]


def standing_holds(ledger: Ledger) -> list[Hold]:
    """Return what the holds are on that are not released.

    Raises:
        LedgerFault: it cannot be unsealed.
    """
    return [
        _read(ledger.unseal(view.id, HOLD) or {})
        for view in ledger.requests()
        if view.is_hold and view.closed is None
    ]


def release_hold(ledger: Ledger, id: str, zone: tzinfo) -> HoldView:
    """End a hold. What it was on is forgotten: its key is destroyed.

    Raises:
        UsageFault: there is no such hold, or it was released before.
    """
    found = ledger.resolve(id)
    view = ledger.request(found)
    if view is None or not view.is_hold:
        raise UsageFault("No hold has this id; 'purge hold list' lists them.")
    if view.closed is not None:
        raise UsageFault(f"Hold {found} was released before.")
    ledger.append([Event(EventKind.REQUEST_CLOSED, found)])
    ledger.destroy_key(found)
    after = ledger.request(found)
    assert after is not None
    return _view(after, zone)


def _read(payload: Mapping[str, JSON]) -> Hold:
    pairs: list[Sequence[JSON]] = [listing(pair) for pair in listing(payload.get("ids"))]
    return Hold(
        frozenset((None if site is None else str(site), str(id)) for site, id in pairs),
        frozenset(str(who) for who in listing(payload.get("subjects"))),
        {key: str(value) for key, value in mapping(payload.get("scope")).items()},
    )


def _view(view: RequestView, zone: tzinfo) -> HoldView:
    on = dict(view.targets)
    scope = view.options.get("scope")
    if isinstance(scope, int) and scope:
        on["scope"] = scope
    released = view.closed.astimezone(zone) if view.closed else None
    return HoldView(
        view.id, view.created.astimezone(zone), view.reason, view.asked_by, on, released
    )
