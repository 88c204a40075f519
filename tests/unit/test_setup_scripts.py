"""The scripts that set a machine up: what can be said of them without a network."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).parents[2]
SETUP = PROJECT / "tests/setup"


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SETUP))
    spec = importlib.util.spec_from_file_location(f"setup_{name}", SETUP / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["bootstrap.py", "tools.py"])
def test_an_old_python_can_read_it(name: str) -> None:
    text = (SETUP / name).read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 9))
    assert "from __future__ import annotations" in text


def test_an_old_python_says_so_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = script("bootstrap", monkeypatch)
    monkeypatch.setattr(bootstrap, "OLDEST", (99, 0))
    assert bootstrap.main([str(tmp_path / "venv")]) == 1
    said = capsys.readouterr()
    assert "Python 99.0 or newer is needed, and this is Python 3." in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "venv").exists()


def test_a_folder_that_is_no_environment_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/thesis.txt").write_text("years of work")
    assert script("bootstrap", monkeypatch).main([str(tmp_path / "venv")]) == 1
    assert "it exists and is no virtual environment" in capsys.readouterr().err
    assert (tmp_path / "venv/thesis.txt").read_text() == "years of work"


def test_a_half_made_environment_is_not_taken_for_a_sound_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bootstrap = script("bootstrap", monkeypatch)
    folder = tmp_path / "venv"
    assert not bootstrap.is_sound(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    assert not bootstrap.is_sound(folder)


def test_the_systems_own_program_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tools = script("tools", monkeypatch)
    assert tools.ensure("sh", tmp_path) == Path(
        str(subprocess.check_output(["/bin/sh", "-c", "command -v sh"], text=True)).strip()
    )
    assert list(tmp_path.iterdir()) == []


def test_a_missing_program_without_a_recipe_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = script("tools", monkeypatch)
    assert tools.main(["no-such-program"]) == 1
    assert "no-such-program is missing" in capsys.readouterr().err


def test_without_apt_the_sentence_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = script("tools", monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tools.CannotFetch, match="this is no Debian or Ubuntu"):
        tools.ensure("git", tmp_path / "tools")


def test_a_program_that_was_unpacked_is_started_with_its_surroundings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = script("tools", monkeypatch)
    folder = tmp_path / "it's here"
    root = folder / "packages" / "hello"
    (root / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (root / "bin").mkdir()
    program = root / "bin/hello"
    program.write_text('#!/bin/sh\nprintf "%s|" "$HELLO_HOME" "$LD_LIBRARY_PATH" "$@"\n')
    program.chmod(0o755)
    recipe = tools.Recipe(("hello",), "bin/hello", {"HELLO_HOME": "{root}/share"})
    monkeypatch.setitem(tools.RECIPES, "hello", recipe)
    tools._write_starter(folder / "bin/hello", root, recipe)
    # It is there, so nothing is fetched, and its own folder on the path does not count as the
    # system's.
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    found = tools.ensure("hello", folder)
    assert found == folder / "bin/hello"
    said = subprocess.check_output([str(found), "a b", "*"], text=True)
    # A starter whose program is gone is not taken for the program.
    program.unlink()
    monkeypatch.setenv("PATH", str(folder / "bin"))
    with pytest.raises(tools.CannotFetch):
        tools.ensure("hello", folder)
    assert said == f"{root}/share|{root}/usr/lib/x86_64-linux-gnu|a b|*|"


def test_the_run_for_ci_is_a_script_that_can_be_started() -> None:
    run = PROJECT / ".ci/run"
    assert os.access(run, os.X_OK)
    text = run.read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    assert text.index("make check") < text.index("make test")
    subprocess.run(["bash", "-n", str(run)], check=True)
