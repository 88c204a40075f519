"""``purge verify``: look again now."""

from __future__ import annotations

import typer

from purge.cli.common import (
    EPILOG,
    JsonOption,
    ManifestOption,
    RequestArgument,
    end_with,
    open_engine,
    print_outcome,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify", epilog=EPILOG)(verify)


def verify(
    request: RequestArgument, manifest: ManifestOption = None, as_json: JsonOption = False
) -> None:
    """Look again now at every site, and record what is seen. Removes nothing."""
    with open_engine(manifest, quiet=as_json) as engine:
        outcome = engine.verify(request)
    print_outcome(outcome, as_json=as_json)
    end_with(outcome)
