"""``purge check``: validate the manifest and reach every site."""

from __future__ import annotations

import typer

from purge.cli.common import EPILOG, JsonOption, ManifestOption, console, open_engine, print_json
from purge.errors import ExitCode


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", epilog=EPILOG)(check)


def check(manifest: ManifestOption = None, as_json: JsonOption = False) -> None:
    """Validate the manifest, reach every site, and say what could be proved at each. Reads only."""
    with open_engine(manifest, quiet=as_json) as engine:
        checked = engine.check()
        path = engine.manifest.path
    ok = all(site.ok for site in checked)
    if as_json:
        print_json(
            {
                "schema": "purge/check/1",
                "manifest": str(path),
                "ok": ok,
                "sites": [
                    {
                        "site": site.site,
                        "adapter": site.adapter,
                        "ok": site.ok,
                        "statements": [
                            {"ok": line.ok, "sentence": line.sentence} for line in site.statements
                        ],
                    }
                    for site in checked
                ],
            }
        )
    else:
        from rich.table import Table
        from rich.text import Text

        out = console()
        out.print(f"{path}: the manifest is valid; sites: {len(checked)}.")
        for site in checked:
            out.print()
            out.print(Text(f"{site.site}", style="bold") + Text(f"  {site.adapter}", style="dim"))
            lines = Table.grid(padding=(0, 1, 0, 0))
            for line in site.statements:
                mark = Text("  ✓", style="green") if line.ok else Text("  ✗", style="bold red")
                lines.add_row(mark, Text(line.sentence))
            out.print(lines)
    if not ok:
        raise typer.Exit(ExitCode.ERROR)
