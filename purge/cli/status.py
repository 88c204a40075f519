"""``purge status``: where everything stands."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from purge.cli.common import (
    EPILOG,
    JsonOption,
    ManifestOption,
    console,
    ledger_place,
    print_json,
    print_outcome,
)
from purge.errors import LedgerFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from purge.ledger import RequestView
    from purge.state import State


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", epilog=EPILOG)(status)


def status(
    request: Annotated[
        str | None,
        typer.Argument(
            metavar="[REQUEST]",
            help="One request, by its id or its first characters; otherwise all open ones.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Withdrawn and closed requests too.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="How many to list, newest first.")
    ] = 20,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where requests stand, from the ledger alone."""
    from purge.ledger import Ledger

    place = ledger_place(manifest)
    try:
        missing = not place.ledger.exists()
    except OSError as error:
        raise LedgerFault(
            f"The ledger's folder {place.ledger.parent} may not be read by this user."
        ) from error
    if request is None and missing:
        _print([], {}, 0, place.timezone, as_json=as_json)
        return
    with Ledger.open_read_only(place.ledger) as ledger:
        if request is not None:
            from purge.engine.recorded import recorded

            outcome = recorded(ledger, ledger.resolve(request), place.timezone)
            print_outcome(outcome, as_json=as_json)
            return
        views = [
            view
            for view in ledger.requests(open_only=not everything, limit=limit)
            if not view.is_hold
        ]
        _print(views, ledger.counts(), limit, place.timezone, as_json=as_json)


def _print(
    views: Sequence[RequestView],
    counts: Mapping[State, int],
    limit: int,
    zone: tzinfo,
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json(
            {
                "schema": "purge/status/1",
                "open": {state.value: count for state, count in counts.items()},
                "requests": [_request(view, zone) for view in views],
            }
        )
        return
    if not views:
        typer.echo("No requests yet." if not counts else "No open requests.")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("request", no_wrap=True, min_width=26)
    table.add_column("state", no_wrap=True, min_width=max(map(len, map(_state, views))))
    rows = [
        (
            f"{view.created.astimezone(zone):%Y-%m-%d}",
            f"{view.until.astimezone(zone):%Y-%m-%d}" if view.until else "",
            ", ".join(code.value for code in view.waits_for),
            view.reason,
        )
        for view in views
    ]
    # A column that says nothing of any request would only take room from the others.
    said = [any(row[at] for row in rows) for at in range(4)]
    for heading, wanted in zip(("asked", "until", "waits for", "reason"), said, strict=True):
        if wanted:
            width = 10 if heading in ("asked", "until") else None
            table.add_column(heading, no_wrap=True, overflow="ellipsis", min_width=width)
    for view, row in zip(views, rows, strict=True):
        shown = [cell for cell, wanted in zip(row, said, strict=True) if wanted]
        table.add_row(view.id, _state(view), *shown)
    out = console()
    out.print(table)
    total = sum(counts.values())
    if total > len(views) and len(views) == limit:
        out.print(f"{limit} of {total} open requests; --limit shows more.", style="dim")


def _state(view: RequestView) -> str:
    return "withdrawn" if view.withdrawn else view.state.value


def _request(view: RequestView, zone: tzinfo) -> dict[str, Any]:
    return {
        "id": view.id,
        "created": view.created.astimezone(zone).isoformat(timespec="seconds"),
        "reason": view.reason,
        "asked_by": view.asked_by,
        "state": view.state.value,
        "until": view.until.astimezone(zone).isoformat(timespec="seconds") if view.until else None,
        "waits_for": [code.value for code in view.waits_for],
        "problems": view.problems,
        "withdrawn": view.withdrawn is not None,
        "closed": view.closed is not None,
    }
