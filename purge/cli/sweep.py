"""``purge sweep`` and ``purge replay``: every open request and every marker, in one run."""

from __future__ import annotations

import os
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from purge.cli.common import (
    EPILOG,
    JsonOption,
    ManifestOption,
    console,
    open_engine,
    print_json,
)
from purge.errors import ExitCode, UsageFault

if TYPE_CHECKING:
    from purge.plan.sweep import Sweep

ApplyOption = Annotated[bool, typer.Option("--apply", help="Do it. Otherwise only shown.")]
MetricsOption = Annotated[
    Path | None,
    typer.Option(
        "--metrics",
        metavar="FILE",
        show_default=False,
        help="Also write the figures of an applied sweep to FILE, for Prometheus' textfile "
        "collector.",
    ),
]


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


LogOption = Annotated[
    LogFormat | None,
    typer.Option(
        "--log",
        show_default=False,
        help="Write a log line to standard error for each phase and each request.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("sweep", epilog=EPILOG)(sweep)
    app.command("replay", epilog=EPILOG)(replay)


def sweep(
    apply: ApplyOption = False,
    without_snapshot: Annotated[
        bool,
        typer.Option(
            "--without-snapshot",
            help="Act although the manifest names no snapshot to go back to.",
        ),
    ] = False,
    metrics: MetricsOption = None,
    log: LogOption = None,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Obey the markers and keep every open request's promise. Shows; --apply does it.

    Meant to run every night after the snapshot. Without a fresh one it deletes nothing.
    """
    from purge.cli.logging import Log

    with open_engine(manifest, quiet=as_json or log is not None) as engine:
        lines = Log(log.value if log else None, engine.clock)
        engine.watch_with(lines.phase)
        done = engine.sweep(apply=apply, without_snapshot=without_snapshot)
    lines.sweep(done)
    _end(done, metrics, as_json=as_json)


def replay(
    site: Annotated[
        list[str] | None,
        typer.Option("--site", metavar="SITE", help="A site that was restored. Repeatable."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sites.")] = False,
    apply: ApplyOption = False,
    log: LogOption = None,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """After a restore: take out again everything that was purged. Shows; --apply does it."""
    from purge.cli.logging import Log

    if bool(site) == everything:
        raise UsageFault("Name the sites that were restored with --site, or say --all.")
    with open_engine(manifest, quiet=as_json or log is not None) as engine:
        lines = Log(log.value if log else None, engine.clock)
        engine.watch_with(lines.phase)
        done = engine.replay(site if not everything else None, apply=apply)
    lines.sweep(done)
    _end(done, None, as_json=as_json)


def _end(done: Sweep, metrics: Path | None, *, as_json: bool) -> None:
    from purge.report.sweep import metrics_text, sweep_document, sweep_text

    if as_json:
        print_json(sweep_document(done))
    else:
        console().print(sweep_text(done))
    if metrics is not None and done.applied:
        _write(metrics, metrics_text(done))
    if not done.applied:
        if done.overdue or done.failures:
            raise typer.Exit(ExitCode.INCOMPLETE)
        return
    if not done.settled:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _write(path: Path, text: str) -> None:
    """Write a file in one step, so that whoever collects it never reads half of it.

    Raises:
        UsageFault: it cannot be written there.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise UsageFault(
            f"The metrics cannot be written to {path}: {error.strerror}. The sweep itself was done."
        ) from None
