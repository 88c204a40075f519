"""Runs the contract suite on the fault-injecting adapter with one mistake in it.

A mistake is the body of a class, as text, that changes the adapter (``adapter``) or its harness
(``harness``), or ``faults`` for its settings; ``caught_by`` names the tests that have to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import dedent, indent

import pytest

FILE = """
import fnmatch, json, os, tempfile, unicodedata
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from purge.adapter import *
from purge.errors import *
from purge.targets import *
from purge.testing import AdapterContract, Breakage
from purge.testing.breakages import read_quietly
from purge.testing.faulty import FaultyAdapter
from purge.testing.faulty_harness import FaultyHarness
from purge.testing.faulty_store import Content

class Mistaken(FaultyAdapter):
    mistaken = True
{adapter}

class MistakenHarness(FaultyHarness):
    adapter = Mistaken
    kill_points = 4
    def settings(self, action):
        return {{**super().settings(action), "faults": {faults}}}
{harness}

class TestMistaken(AdapterContract):
    harness = MistakenHarness
"""


Run = Callable[..., dict[str, bool]]
"""``run(mistake, names)``: whether each test passed, by its node id."""


@pytest.fixture
def outcomes(pytester: pytest.Pytester) -> Run:
    """Run the named tests of the suite, or all of them; say which passed."""

    def run(mistake: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, bool]:
        parts = {name: indent(dedent(mistake.get(name, "")), "    ") for name in _CHANGED}
        source = FILE.format(**parts, faults=mistake.get("faults", "{}"))
        path = pytester.makepyfile(test_mistaken=source)
        nodes = [f"{path}::TestMistaken::{name}" for name in names] or [str(path)]
        options = ("-p", "no:cacheprovider", "--import-mode=importlib")
        record = pytester.inline_run(*options, *nodes)
        passed, skipped, failed = record.listoutcomes()
        assert not skipped
        # A slip in the mistake itself would be caught as well, and prove nothing.
        slips = [it.nodeid for it in failed if any(slip in str(it.longrepr) for slip in _SLIPS)]
        assert slips == []
        return {it.nodeid: True for it in passed} | {it.nodeid: False for it in failed}

    return run


@pytest.fixture
def not_caught(outcomes: Run) -> Callable[[Mapping[str, object]], list[str]]:
    """Return the tests that should have failed and did not."""

    def look(mistake: Mapping[str, object]) -> list[str]:
        named = mistake["caught_by"]
        assert isinstance(named, tuple)
        changed = {name: str(value) for name, value in mistake.items() if name != "caught_by"}
        seen = outcomes(changed, named)
        failed = [nodeid for nodeid, passed in seen.items() if not passed]
        return [name for name in named if not any(name in nodeid for nodeid in failed)]

    return look


_SLIPS = ("NameError", "AttributeError", "SyntaxError", "ImportError", "UnboundLocalError")
_CHANGED = ("adapter", "harness")
