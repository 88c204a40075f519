"""The parts of the documentation that are made from the program: ``make docs`` writes them.

A block stands between ``<!-- name -->`` and ``<!-- /name -->``. The tests beside this file compare
what stands there with what the program says now.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from purge.cli.wiring import registry

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = ROOT / "README.md"
ADAPTERS: Final = ROOT / "adapters" / "README.md"


def blocks() -> Mapping[Path, Mapping[str, Callable[[], str]]]:
    """What is generated, by file and name of the block."""
    names = sorted(path.stem for path in (ROOT / "adapters" / "purge_adapters").glob("[!_]*.py"))
    keys = {f"keys-{name}": (lambda name=name: key_table(name)) for name in names}
    return {README: {"demo-report": demo_report}, ADAPTERS: keys}


def key_table(name: str) -> str:
    """The keys of an adapter in a manifest, as a table."""
    settings: Any = registry().load(name).Settings
    lines = ["| key | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(settings):
        meaning = str(field.metadata.get("description", "")).replace("|", "\\|")
        lines.append(f"| `{field.name}` | {_default(field)} | {meaning} |")
    return "\n".join(lines)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return "none" if field.default in (None, ()) else f"`{str(field.default).lower()}`"
    return "required" if field.default_factory is dataclasses.MISSING else "none"


def demo_report() -> str:
    """The last report of ``purge demo``."""
    ended = subprocess.run(
        [sys.executable, "-m", "purge", "demo"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "140"},
    )
    report = ended.stdout.split("--apply\n", 1)[1].split("Looked for", 1)[0]
    lines = [line.rstrip().removeprefix("  ") for line in report.strip("\n").splitlines()]
    return "```text\n" + "\n".join(lines).strip("\n") + "\n```"


def steady(text: str) -> str:
    """Take out of a shown report what differs between runs: id, time, sizes."""
    text = re.sub(r"[0-9A-HJKMNP-TV-Z]{26}", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", text)
    return re.sub(r"\d+ files?, [\d.]+ [kM]?B", "SIZE", text)


def replace(text: str, name: str, content: str) -> str:
    """Put ``content`` between the marks of a block.

    Raises:
        ValueError: the block is missing.
    """
    pattern = re.compile(
        rf"(<!-- {re.escape(name)} -->\n).*?(\n?<!-- /{re.escape(name)} -->)", re.S
    )
    replaced, count = pattern.subn(lambda found: f"{found[1]}{content}\n{found[2].lstrip()}", text)
    if count != 1:
        raise ValueError(f"there is no block '{name}', or more than one")
    return replaced


def main() -> None:
    """Write all blocks."""
    for path, parts in blocks().items():
        text = path.read_text(encoding="utf-8")
        for name, make in parts.items():
            text = replace(text, name, make())
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
