"""``purge withdraw``: stop a request that should not have been made."""

from __future__ import annotations

import typer

from purge.cli.common import (
    EPILOG,
    JsonOption,
    ManifestOption,
    RequestArgument,
    open_engine,
    print_json,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("withdraw", epilog=EPILOG)(withdraw)


def withdraw(
    request: RequestArgument, manifest: ManifestOption = None, as_json: JsonOption = False
) -> None:
    """Stop a request: no later run acts on it. What it removed stays removed."""
    with open_engine(manifest, quiet=as_json) as engine:
        view = engine.withdraw(request)
    at = view.withdrawn.isoformat(timespec="seconds") if view.withdrawn else ""
    if as_json:
        document = {"schema": "purge/withdraw/1", "request": {"id": view.id, "withdrawn": at}}
        print_json(document)
    else:
        typer.echo(f"Request {view.id} is withdrawn. What it had removed stays removed.")
