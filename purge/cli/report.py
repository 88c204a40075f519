"""``purge report``: what the ledger says of a request."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, assert_never

import typer

from purge.cli.common import (
    EPILOG,
    JsonOption,
    ManifestOption,
    RequestArgument,
    ledger_place,
    print_outcome,
)
from purge.errors import UsageFault


class Format(StrEnum):
    """The forms of a report."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", epilog=EPILOG)(report)


def report(
    request: RequestArgument,
    format: Annotated[Format, typer.Option("--format", "-f", help="The form.")] = Format.TEXT,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what was found and proved for a request, from the ledger alone; no site is touched."""
    from purge.engine.recorded import recorded
    from purge.ledger import Ledger

    if as_json and format is Format.MARKDOWN:
        raise UsageFault("--json and --format markdown contradict each other; give one.")
    place = ledger_place(manifest)
    with Ledger.open_read_only(place.ledger) as ledger:
        outcome = recorded(ledger, ledger.resolve(request), place.timezone)
    match format:
        case Format.MARKDOWN:
            from purge.report.markdown import report_markdown

            typer.echo(report_markdown(outcome), nl=False)
        case Format.TEXT | Format.JSON:
            print_outcome(outcome, as_json=as_json or format is Format.JSON)
        case _:
            assert_never(format)
