"""``purge manifest schema``: the JSON Schema of manifests, for editors."""

from __future__ import annotations

import typer

from purge.cli.common import EPILOG, JsonOption, print_json

app = typer.Typer(help="About manifests.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep this a group, though it has one command."""


@app.command("schema", epilog=EPILOG)
def schema(as_json: JsonOption = False) -> None:
    """Print the JSON Schema of a manifest, with the keys of every adapter that is installed.

    It is JSON with and without --json.
    """
    from purge.cli.wiring import registry
    from purge.manifest import manifest_schema

    del as_json
    print_json(manifest_schema(registry()))
