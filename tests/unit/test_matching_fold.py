"""Folding: what counts as the same text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.matching import fold, width


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_composed_and_decomposed_forms_fold_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_quick_way_for_plain_text_agrees_with_the_full_one(text: str) -> None:
    assert fold(text) == fold(text + "\u00ad")


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        # Dashes of vertical text become plain in two steps.
        ("a\ufe31b", "a-b"),
        ("a\ufe32b", "a-b"),
        ("Crab  Pot\n\tunder", "crab pot under"),
        ("caf\u00e9", "café"),
        ("cafe\u0301", "café"),
        ("\uff23\uff32\uff21\uff22\u3000\uff30\uff2f\uff34", "crab pot"),
        ("c\u200bra\u00adb\ufeff", "crab"),
        ("\u2018a\u2019 \u201cb\u201d \u00abc\u00bb", '\'a\' "b" "c"'),
        ("1\u20132\u20143\u22124\u20115", "1-2-3-4-5"),
        ("STRASSE straße", "strasse strasse"),
        ("\u2028line\u0085end", "line end"),
        ("e\u200b\u0301", "é"),
        ("ﬁsh", "fish"),
        ("   ", ""),
    ],
)
def test_written_forms(written: str, folded: str) -> None:
    assert fold(written) == folded


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("crab pot", 8),
        ("予備の鍵", 8),
        ("กุญแจ", 4),
        ("ＡＢ", 2),
        ("e\u0301", 1),
        ("", 0),
        ("👪", 2),
    ],
)
def test_width_counts_display_columns(text: str, columns: int) -> None:
    assert width(text) == columns
