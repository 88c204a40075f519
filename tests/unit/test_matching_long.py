"""A long text is folded piece by piece, to the same result."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from purge.matching import PhraseMatcher, fold

module = importlib.import_module("purge.matching.fold")
LETTERS = "aB9 \t\n`\u3000\u00e9\u0301\u03a3\u03c2\ufb01\u200b\u201c\u6f22\U0001f469-"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(LETTERS, max_size=60), st.integers(0, 8))
def test_pieces_fold_to_what_the_whole_folds_to(
    monkeypatch: pytest.MonkeyPatch, text: str, length: int
) -> None:
    monkeypatch.setattr(module, "_LONG", 1000)
    whole = fold(text)
    monkeypatch.setattr(module, "_LONG", length)
    assert fold(text) == whole


def test_a_phrase_is_found_over_the_border_of_two_pieces() -> None:
    matcher = PhraseMatcher({0: "the crab pot licence"})
    for shift in range(-24, 4):
        text = "x" * (module._LONG + shift) + " The  crab pot\nlicence " + "y" * 10
        assert matcher.search(text)
        assert not matcher.search(text.replace("pot\n", "potting "))
