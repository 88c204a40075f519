"""The composition root: the commands, the built-in adapters, and how a command ends.

The only module that names the built-in adapters; it names them as strings, so that none is
imported before its name is asked for.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from purge import __version__
from purge.cli import (
    check,
    demo,
    hold,
    ledger,
    manifest,
    report,
    request,
    resume,
    schedule,
    status,
    sweep,
    verify,
    withdraw,
)
from purge.cli.common import EPILOG, fail
from purge.errors import PurgeError

app = typer.Typer(
    name="purge",
    help=(
        "Forget one thing everywhere an AI agent remembers it, and prove it site by site. "
        "Nothing is changed unless you say --apply."
    ),
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for _module in (
    *(request, resume, withdraw, sweep, status, verify, report, check, schedule),
    demo,
):
    _module.register(app)
app.add_typer(hold.app, name="hold")
app.add_typer(manifest.app, name="manifest")
app.add_typer(ledger.app, name="ledger")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"purge {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


def main() -> None:
    """Run the command line and end the process with a documented exit code."""
    try:
        app()
    except PurgeError as error:
        sys.exit(fail(error, as_json="--json" in sys.argv))
    except KeyboardInterrupt:
        typer.echo("Stopped. Run it again to go on; nothing is lost.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever reads our output left. Python would complain again when it closes the stream.
        sys.stderr.close()
        sys.exit(1)
