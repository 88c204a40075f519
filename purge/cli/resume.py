"""``purge resume``: go on with a recorded request."""

from __future__ import annotations

import typer

from purge.cli.common import (
    EPILOG,
    ExpectOption,
    JsonOption,
    ManifestOption,
    RequestArgument,
    end_with,
    open_engine,
    print_outcome,
)
from purge.cli.request import CopiesOption, SourcesOption, SuppressOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume", epilog=EPILOG)(resume)


def resume(
    request: RequestArgument,
    sources: SourcesOption = None,
    copies: CopiesOption = None,
    suppress: SuppressOption = None,
    expect: ExpectOption = None,
    manifest: ManifestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a request that was stopped half way, or waits for a decision.

    This applies: the request was allowed when it was made.
    """
    from purge.plan.request import Decisions

    with open_engine(manifest, quiet=as_json) as engine:
        decisions = Decisions(sources=sources, copies=copies, suppress=suppress)
        outcome = engine.resume(request, decisions, expect=expect)
    print_outcome(outcome, as_json=as_json)
    end_with(outcome)
