"""Many strings in one pass: the same answer as looking for each alone, in both ways of doing it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purge.matching import PhraseMatcher, needles
from purge.matching.needles import Needles

LETTERS = "abé語\ud800\U0010ffff "
STRINGS = st.text(alphabet=LETTERS, min_size=1, max_size=14)


@pytest.fixture(params=["library", "without"], scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "without":
            patch.setitem(sys.modules, "ahocorasick_rs", None)
        else:
            import ahocorasick_rs  # noqa: F401  (missing, it fails the test)
        yield str(request.param)


@settings(max_examples=300)
@given(st.lists(STRINGS, min_size=7, max_size=30), st.text(alphabet=LETTERS, max_size=200))
def test_it_finds_what_looking_for_each_finds(way: str, wanted: list[str], text: str) -> None:
    del way
    known = dict(enumerate(wanted))
    found = Needles(known)
    assert found.found_in(text) == [key for key, one in known.items() if one in text]
    assert found.any_in(text) is any(one in text for one in wanted)


def test_nothing_is_lost_at_the_border_of_two_pieces(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del way
    monkeypatch.setattr(needles, "_PIECE", 10)
    wanted = {n: f"needle number {n:03d}" for n in range(20)}
    for shift in range(25):
        text = "x" * shift + "needle number 007" + "y" * 9
        assert Needles(wanted).found_in(text) == [7]


def test_a_thousand_phrases_are_what_a_thousand_matchers_are(way: str) -> None:
    del way
    phrases = {n: f"the lesson of berth {n:04d} was wrong" for n in range(1000)}
    many = PhraseMatcher(phrases)
    text = "They said THE  lesson of berth 0042\nwas wrong; the lesson of berth 0043 was wronger."
    assert many.search(text) == PhraseMatcher({42: phrases[42]}).search(text)
    assert many.mentioned(text.encode()) == frozenset({42, 43})
