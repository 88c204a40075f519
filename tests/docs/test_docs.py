"""The documentation says what the program does: commands, keys, adapters, exit codes, output."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from purge.cli.app import app
from purge.cli.wiring import BUILTIN
from purge.errors import ExitCode
from purge.state import State
from tests.docs import generate

README = generate.README.read_text(encoding="utf-8")
ADAPTERS = generate.ADAPTERS.read_text(encoding="utf-8")
CHANGELOG = (generate.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    names = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]  # a group has commands
        inner = getattr(command, "commands", None)
        names += [f"{name} {sub}" for sub in inner] if inner else [name]
    return names


@pytest.mark.parametrize("name", commands())
def test_every_command_stands_in_the_readme(name: str) -> None:
    assert f"`purge {name}" in README


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_stands_in_the_readme_and_in_every_help(code: ExitCode) -> None:
    assert re.search(rf"^\| {code.value} \| ", README, re.M)
    from purge.cli.common import EPILOG

    assert f"{code.value} " in EPILOG


@pytest.mark.parametrize("state", State)
def test_every_state_is_explained(state: State) -> None:
    name = f"{state.value} DATE" if state is State.BACKUP_RETAINED else state.value
    assert f"| `{name}` |" in README


def test_the_table_of_adapters_agrees_with_the_folder() -> None:
    folder = generate.ROOT / "adapters" / "purge_adapters"
    assert sorted(BUILTIN) == sorted(path.stem for path in folder.glob("[!_]*.py"))


@pytest.mark.parametrize("name", BUILTIN)
def test_every_adapter_has_a_page(name: str) -> None:
    assert f"\n## {name}\n" in ADAPTERS
    page = ADAPTERS.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    for topic in ("Finds", "Removes", "Proves", "Cannot", "Rights"):
        assert f"**{topic}" in page, topic


def generated() -> list[Any]:
    """The demo's report takes most of a minute, and its own tests run the demo."""
    return [
        pytest.param(path, name, marks=pytest.mark.long if name == "demo-report" else [])
        for path, parts in generate.blocks().items()
        for name in parts
    ]


@pytest.mark.parametrize(("path", "name"), generated(), ids=lambda part: str(part).split("/")[-1])
def test_what_is_made_from_the_program_is_up_to_date(path: Path, name: str) -> None:
    """Mend it with ``make docs``."""
    text = path.read_text(encoding="utf-8")
    made = generate.replace(text, name, generate.blocks()[path][name]())
    assert generate.steady(made) == generate.steady(text)


def test_links_lead_somewhere() -> None:
    for path in (generate.README, generate.ADAPTERS, *generate.ROOT.glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_file_says_what_it_is_for() -> None:
    for folder in ("purge", "adapters", "tests"):
        for path in (generate.ROOT / folder).rglob("*.py"):
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_no_file_is_too_long() -> None:
    for folder in ("purge", "adapters"):
        for path in (generate.ROOT / folder).rglob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path


@pytest.mark.parametrize("name", BUILTIN)
def test_the_changelog_knows_the_adapters(name: str) -> None:
    words = {"jsonl": "JSON lines", "markdown": "Markdown", "sql": "SQLite", "chroma": "Chroma"}
    assert words.get(name, name) in CHANGELOG
