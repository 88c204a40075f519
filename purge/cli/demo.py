"""``purge demo``: build a sandbox of real stores, purge an item from it, show the report."""

from __future__ import annotations

import os
import shlex
import tempfile
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from purge.cli.common import EPILOG, PHASES, JsonOption, console, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from purge.engine.sites import Watcher
    from purge.plan.outcome import Outcome

REASON = "the lesson was written before its cause was known"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog=EPILOG)(demo)


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FOLDER]",
            help="Where to build it: an empty or missing folder. Otherwise a temporary one.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build a sandbox of real stores, purge an item from it, and print the report.

    It touches nothing but the sandbox.
    """
    from rich.markup import escape

    from purge.cli.wiring import SANDBOX

    out = console(stderr=as_json)
    place = folder if folder is not None else Path(tempfile.mkdtemp(prefix="purge-demo-"))
    module: Any = import_module(SANDBOX)
    module.check_programs()
    _heading(out, "1", "An agent's memory, in eight places")
    with ExitStack() as stack:
        shown, outcome, suggestions = _run(out, module, place, stack)
    _heading(out, "4", "It is yours to try")
    out.print("  The servers are stopped; with-services starts them for one command.")
    out.print(f"  [bold]cd {escape(shlex.quote(str(place)))}[/bold]", soft_wrap=True)
    for suggestion in suggestions:
        command = suggestion.command.replace("{request}", outcome.request.id)
        out.print(f"  [bold]{escape(command)}[/bold]", soft_wrap=True)
        out.print(f"      {suggestion.shows}", style="dim", soft_wrap=True)
    if as_json:
        from purge.report.document import report_document

        print_json(
            {
                "schema": "purge/demo/1",
                "folder": str(place),
                "dry_run": report_document(shown),
                "report": report_document(outcome),
            }
        )


def _run(
    out: Console, module: Any, place: Path, stack: ExitStack
) -> tuple[Outcome, Outcome, Sequence[Any]]:
    """Build the sandbox, purge the lesson, and look; the servers run until the stack ends."""
    from purge.cli.wiring import registry
    from purge.engine import Engine
    from purge.plan.request import Wanted
    from purge.targets import TargetKind

    services: Any = None

    def start(folder: Path) -> Any:
        nonlocal services
        services = stack.enter_context(module.Services(folder))
        return services

    with out.status("building the sandbox"):
        today = module.last_night(datetime.now(UTC)).date()
        sandbox = module.build(
            place, lambda line: out.print(f"  {line}", markup=False), today, start
        )
    environ = {**os.environ, **services.environment}

    def look() -> dict[str, int]:
        return {**module.look(place), **module.look_at_services(place, services.environment)}

    _counts(out, "The wrong lesson stands in", look())

    wanted = [Wanted(TargetKind.PHRASE, sandbox.phrase)]
    _heading(out, "2", "What would go: a dry run, which is the default")
    _command(out, f'purge request --phrase "{sandbox.phrase}"')
    with _progress(out) as watch:
        engine = Engine.open(sandbox.manifest, registry(), environ=environ, watch=watch)
        shown = engine.show(wanted).outcome
    _print(out, shown)

    _heading(out, "3", "Doing it")
    _command(out, f'purge request --phrase "{sandbox.phrase}" --apply')
    with _progress(out) as watch:
        engine = Engine.open(sandbox.manifest, registry(), environ=environ, watch=watch)
        outcome = engine.request(wanted, reason=REASON, apply=True)
    _print(out, outcome)
    _counts(out, "Looked for without purge, by plain clients, it stands in", look())
    if outcome.until is not None:
        out.print(f"  The backups let go of the last of it by {outcome.until:%Y-%m-%d}.")
    return shown, outcome, sandbox.suggestions


def _heading(out: Console, number: str, text: str) -> None:
    out.print()
    out.print(f"[bold cyan]{number}[/bold cyan]  [bold]{text}[/bold]")


def _command(out: Console, line: str) -> None:
    out.print(f"  $ {line}", style="dim", markup=False, soft_wrap=True)
    out.print()


def _print(out: Console, outcome: Outcome) -> None:
    from rich.padding import Padding

    from purge.report.text import report_text

    out.print(Padding(report_text(outcome), (0, 0, 0, 2)))


def _counts(out: Console, sentence: str, counts: Mapping[str, int]) -> None:
    from rich.padding import Padding

    places = [f"{site} {count}" for site, count in counts.items() if count]
    text = f"{sentence}: {', '.join(places) or 'nothing any more'}"
    out.print(Padding(text, (0, 0, 0, 2)))


@contextmanager
def _progress(out: Console) -> Iterator[Watcher]:
    with out.status("reading the manifest") as status:

        def watch(phase: str, site: str) -> None:
            status.update(f"{PHASES.get(phase, phase)} [bold]{site}[/bold]")

        yield watch
