"""What the commands share: options, opening the engine, printing, ending.

Imports nothing heavy at the top.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from purge.errors import ExitCode, ManifestFault, PurgeError

if TYPE_CHECKING:
    from rich.console import Console

    from purge.engine import Engine
    from purge.manifest.find import LedgerPlace
    from purge.plan.outcome import Outcome

EPILOG: Final = (
    "Exit codes: 0 as asked, 1 error, 2 usage, 3 ran but not everything is confirmed or dated, "
    "4 refused by a safety rule, 5 another run holds the lock."
)

ManifestOption = Annotated[
    Path | None,
    typer.Option(
        "--manifest",
        "-m",
        help="The manifest. Otherwise $PURGE_MANIFEST, or the nearest purge.yaml upwards.",
        metavar="FILE",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RequestArgument = Annotated[
    str,
    typer.Argument(
        metavar="REQUEST",
        help="The request's id, or its first characters (six or more).",
        show_default=False,
    ),
]
ExpectOption = Annotated[
    int | None,
    typer.Option(
        "--expect",
        min=0,
        metavar="N",
        show_default=False,
        help="How many records go, over all sites. Needed for short phrases and many records; "
        "any other number is refused.",
    ),
]


def manifest_path(named: Path | None) -> Path:
    """Return the manifest to use.

    Raises:
        UsageFault: none is named and none is found.
    """
    from purge.manifest.find import find_manifest

    return named if named is not None else find_manifest(Path.cwd(), os.environ)


@contextmanager
def open_engine(named: Path | None, *, quiet: bool) -> Iterator[Engine]:
    """Open the engine of a manifest; on a terminal, show what it is doing.

    Args:
        named: the manifest, if one was named.
        quiet: show nothing.
    """
    from purge.cli.wiring import registry
    from purge.engine import Engine

    path = manifest_path(named)
    if quiet or not sys.stderr.isatty():
        yield Engine.open(path, registry())
        return
    with console(stderr=True).status("reading the manifest") as status:

        def watch(phase: str, site: str) -> None:
            status.update(f"{PHASES.get(phase, phase)} [bold]{site}[/bold]")

        yield Engine.open(path, registry(), watch=watch)


PHASES: Final = {
    "check": "reaching",
    "find": "looking through",
    "remove": "removing from",
    "sanitize": "making removal physical in",
    "examine": "looking for left-over copies in",
    "snapshots": "looking for a fresh snapshot in",
    "markers": "reading the markers in",
    "strike": "striking markers in",
}


def ledger_place(named: Path | None) -> LedgerPlace:
    """Return where the ledger is, without checking the manifest's sites."""
    from purge.manifest.find import locate_ledger

    return locate_ledger(manifest_path(named), os.environ)


def console(*, stderr: bool = False) -> Console:
    """Return a console. Without a terminal it is wide enough not to break a line of the report."""
    from rich.console import Console

    found = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not found.is_terminal and "COLUMNS" not in os.environ:
        found = Console(stderr=stderr, highlight=False, width=140)
    return found


def print_json(document: Any) -> None:
    """Print one JSON document to standard output."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_outcome(outcome: Outcome, *, as_json: bool) -> None:
    """Print a report."""
    if as_json:
        from purge.report.document import report_document

        print_json(report_document(outcome))
    else:
        from purge.report.text import report_text

        console().print(report_text(outcome))


def end_with(outcome: Outcome) -> None:
    """End the command with the exit code that an outcome stands for.

    Raises:
        typer.Exit: with that code, unless it is 0.
    """
    code = exit_code(outcome)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def exit_code(outcome: Outcome) -> ExitCode:
    """Return the exit code that an outcome stands for."""
    from purge.plan.outcome import Completeness
    from purge.state import ProblemCode

    if outcome.refusal is not None:
        return ExitCode.REFUSED
    if outcome.applied:
        return ExitCode.DONE if outcome.settled else ExitCode.INCOMPLETE
    codes = [step.problem.code if step.problem else None for step in outcome.steps]
    nothing = bool(codes) and all(code is ProblemCode.NOTHING_FOUND for code in codes)
    unseen = any(step.completeness is Completeness.INCOMPLETE for step in outcome.steps)
    return ExitCode.INCOMPLETE if nothing or unseen else ExitCode.DONE


def fail(error: PurgeError, *, as_json: bool) -> int:
    """Print an error to standard error and return the exit code that it stands for."""
    faults = error.faults if isinstance(error, ManifestFault) else ()
    if as_json:
        body: dict[str, Any] = {"code": error.code, "sentence": str(error)}
        if faults:
            body["faults"] = list(faults)
        document = {"schema": "purge/error/1", "error": body}
        typer.echo(json.dumps(document, ensure_ascii=False), err=True)
    else:
        typer.echo(f"purge: {error}", err=True)
        for fault in faults:
            if fault not in str(error):
                typer.echo(f"  {fault}", err=True)
    return int(error.exit_code)
