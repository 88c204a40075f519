"""``purge hold``: legal holds. What a hold is on, nothing removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from purge.cli.common import (
    EPILOG,
    JsonOption,
    ManifestOption,
    console,
    ledger_place,
    open_engine,
    print_json,
)

if TYPE_CHECKING:
    from purge.engine.holds import HoldView

app = typer.Typer(no_args_is_help=True, help="Legal holds: what nothing may remove.", epilog=EPILOG)


@app.command("add", epilog=EPILOG)
def add(
    id: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="[SITE:]ID", show_default=False, help="A record. Repeatable."),
    ] = None,
    subject: Annotated[
        list[str] | None,
        typer.Option(
            "--subject",
            metavar="ID",
            show_default=False,
            help="Every record of a person. '-' reads it from standard input. Repeatable.",
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="KEY=VALUE",
            show_default=False,
            help="Every record whose fields all say so. Repeatable.",
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")
    ] = "",
    asked_by: Annotated[
        str, typer.Option("--asked-by", metavar="NAME", help="Who asked, for the record.")
    ] = "",
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a hold on records, persons or a scope. Requests for them wait and say 'held'."""
    from purge.cli.request import pair, typed, wanted_of
    from purge.plan.again import Hold

    subjects = subject or []
    given = typed(subjects.count("-"))
    subjects = [next(given) if text == "-" else text for text in subjects]
    with open_engine(manifest, quiet=as_json) as engine:
        ids = wanted_of(id or (), (), (), engine.manifest.sites)
        hold = Hold(
            frozenset((one.site, one.value) for one in ids),
            frozenset(subjects),
            dict(pair(text) for text in scope or ()),
        )
        view = engine.add_hold(hold, reason, asked_by)
    if as_json:
        print_json({"schema": "purge/hold/1", **_document(view)})
    else:
        typer.echo(f"Hold {view.id}: {_on(view)}. Nothing removes it until it is released.")


@app.command("list", epilog=EPILOG)
def list_(
    everything: Annotated[bool, typer.Option("--all", help="Released ones too.")] = False,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the holds. What they are on stays sealed; how much it is, is said."""
    from purge.engine.holds import list_holds
    from purge.ledger import Ledger

    place = ledger_place(manifest)
    views: list[HoldView] = []
    if place.ledger.exists():
        with Ledger.open_read_only(place.ledger) as ledger:
            views = list_holds(ledger, place.timezone)
    shown = [view for view in views if everything or view.released is None]
    if as_json:
        print_json({"schema": "purge/holds/1", "holds": [_document(view) for view in shown]})
        return
    if not shown:
        typer.echo("No holds.")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("hold", "since", "on", "released", "reason"):
        table.add_column(name, no_wrap=name in ("hold", "since"))
    for view in shown:
        released = f"{view.released:%Y-%m-%d}" if view.released else ""
        table.add_row(view.id, f"{view.created:%Y-%m-%d}", _on(view), released, view.reason)
    console().print(table)


@app.command("release", epilog=EPILOG)
def release(
    hold: Annotated[
        str,
        typer.Argument(metavar="HOLD", show_default=False, help="Its id, or six characters of it."),
    ],
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a hold. What it kept goes with the next sweep, where a request says so."""
    with open_engine(manifest, quiet=as_json) as engine:
        view = engine.release_hold(hold)
    if as_json:
        print_json({"schema": "purge/hold/1", **_document(view)})
    else:
        typer.echo(f"Hold {view.id} is released.")


def _on(view: HoldView) -> str:
    names = {"id": "record", "subject": "person", "scope": "scope field"}
    parts = []
    for kind, count in view.on.items():
        noun = names.get(kind, kind)
        parts.append(f"1 {noun}" if count == 1 else f"{count} {noun}s")
    return ", ".join(parts)


def _document(view: HoldView) -> dict[str, Any]:
    return {
        "id": view.id,
        "created": view.created.isoformat(timespec="seconds"),
        "reason": view.reason,
        "asked_by": view.asked_by,
        "on": dict(view.on),
        "released": view.released.isoformat(timespec="seconds") if view.released else None,
    }
