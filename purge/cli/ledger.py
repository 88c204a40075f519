"""``purge ledger``: check that nothing in the ledger was altered, and make its index anew."""

from __future__ import annotations

from typing import Annotated

import typer

from purge.cli.common import EPILOG, JsonOption, ManifestOption, ledger_place, print_json
from purge.errors import ExitCode, UsageFault

app = typer.Typer(help="About the ledger.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep this a group, though it has one command."""


@app.command("verify", epilog=EPILOG)
def verify(
    noted: Annotated[
        str | None,
        typer.Option(
            "--noted",
            metavar="EVENTS:HEAD",
            show_default=False,
            help="What an earlier run of this command printed and you noted elsewhere.",
        ),
    ] = None,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the chain of the ledger, and that what it says of every request follows from it."""
    from purge.ledger import Ledger

    known = None if noted is None else _noted(noted)
    place = ledger_place(manifest)
    with Ledger.open_read_only(place.ledger, place.key_file) as ledger:
        result = ledger.verify(noted=known)
    if as_json:
        print_json(
            {
                "schema": "purge/ledger-verify/1",
                "ok": result.ok,
                "events": result.events,
                "head": result.head,
                "first_fault": result.first_fault,
            }
        )
    elif result.ok:
        typer.echo(f"The ledger is whole: {result.events} events.")
        typer.echo(
            f"To check later that nothing was taken away, note: {result.events}:{result.head}"
        )
    else:
        typer.echo(f"The ledger was altered or is damaged: {result.first_fault}", err=True)
    if not result.ok:
        raise typer.Exit(ExitCode.ERROR)


@app.command("rebuild", epilog=EPILOG)
def rebuild(manifest: ManifestOption = None, as_json: JsonOption = False) -> None:
    """Make what the ledger says of every request anew from its events. The events stay."""
    from datetime import UTC, datetime

    from purge.ledger import Ledger, run_lock

    def clock() -> datetime:
        return datetime.now(UTC)

    place = ledger_place(manifest)
    with (
        run_lock(place.ledger, clock=clock),
        Ledger.open_existing(place.ledger, place.key_file, clock=clock) as ledger,
    ):
        ledger.rebuild()
        result = ledger.verify()
    if as_json:
        print_json({"schema": "purge/ledger-rebuild/1", "ok": result.ok, "events": result.events})
    else:
        typer.echo(f"Made anew from {result.events} events.")
    if not result.ok:
        raise typer.Exit(ExitCode.ERROR)


def _noted(text: str) -> tuple[int, str]:
    events, colon, head = text.partition(":")
    if not (colon and events.isdecimal() and head):
        raise UsageFault("--noted takes EVENTS:HEAD, as 'purge ledger verify' prints it.")
    return int(events), head
