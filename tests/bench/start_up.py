"""How long ``purge --help`` and ``purge status`` take, against a two-command Typer program.

``status`` runs on a ledger of 10,000 requests.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from purge.ledger import Ledger, NewRequest
from purge.targets import Target, TargetKind
from tests.bench._measure import best, command, show

TWO_COMMANDS = """
import typer
app = typer.Typer()

@app.command()
def one(count: int = 1) -> None:
    "The first."

@app.command()
def two(name: str = "x") -> None:
    "The second."

app()
"""
REQUESTS = 10_000


def main() -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "two.py").write_text(TWO_COMMANDS)
        (place / "logs").mkdir()
        manifest = place / "purge.yaml"
        manifest.write_text("purge: 1\nname: bench\nsites: {logs: {adapter: jsonl, path: logs}}\n")
        fill(place / ".purge" / "ledger.db", place / ".purge" / "key")
        times = best(
            {
                "two-command typer --help": command(str(place / "two.py"), "--help"),
                "purge --help": command("-m", "purge", "--help"),
                "purge status, 10,000 requests": command(
                    "-m", "purge", "status", "--manifest", str(manifest)
                ),
            },
            turns=9,
        )
    goals = {"purge --help": 1.3, "purge status, 10,000 requests": 4.0}
    show(times, "two-command typer --help", goals)


def fill(path: Path, key_file: Path) -> None:
    """Make a ledger of many requests."""
    with Ledger.create_or_open(path, key_file, clock=lambda: datetime.now(UTC)) as ledger:
        for number in range(REQUESTS):
            target = Target(0, TargetKind.ID, f"record-{number}", "logs")
            ledger.create_request(
                NewRequest(reason="bench", asked_by="", targets=[target], sites={"logs": "jsonl"})
            )
