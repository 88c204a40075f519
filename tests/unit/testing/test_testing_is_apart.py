"""``purge.testing`` is shipped and stays apart: nothing imports it, and it needs pytest late."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import purge


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_nothing_else_of_purge_imports_it() -> None:
    root = Path(purge.__file__).parent
    others = [path for path in root.rglob("*.py") if "testing" not in path.relative_to(root).parts]
    assert len(others) > 10
    guilty = [
        str(path.relative_to(root))
        for path in others
        if any(name.startswith("purge.testing") for name in imported(path))
    ]
    assert guilty == []


def test_the_fault_injecting_adapter_is_used_without_pytest() -> None:
    source = "import sys, purge.testing.faulty, purge.testing.child; print('pytest' in sys.modules)"
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=path)
    assert done.stdout.strip() == "False"
