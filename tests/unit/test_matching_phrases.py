"""Whether a text holds a phrase."""

from __future__ import annotations

import json
import unicodedata

import pytest

from purge.errors import EmptySelector
from purge.matching import Flavor, How, PhraseMatcher, is_marker_line, without_markers

PHRASE = "café Žofie keeps the\nspare key"
COMPOSED = unicodedata.normalize("NFC", PHRASE)


def found(text: str, phrase: str = PHRASE, flavor: Flavor = Flavor.PLAIN) -> How | None:
    return PhraseMatcher({7: phrase}).search(text, flavor).get(7)


WRITTEN = {
    "plain": COMPOSED,
    "decomposed": unicodedata.normalize("NFD", PHRASE),
    "upper case": COMPOSED.upper(),
    "full-width space": COMPOSED.replace(" ", "\u3000"),
    "JSON escapes": json.dumps({"a": COMPOSED}),
    "JSON with upper-case hex": json.dumps({"a": COMPOSED}).replace("\\u00e9", "\\u00E9"),
    "JSON in JSON": json.dumps({"a": json.dumps([COMPOSED])}),
    "JSON in JSON in JSON": json.dumps(json.dumps(json.dumps({"k": COMPOSED}))),
    "JSON key": json.dumps({COMPOSED: 1}),
    "torn JSON": json.dumps({"a": COMPOSED})[:-2],
    "escapes within prose": f"he said {json.dumps(COMPOSED)} twice",
    "non-breaking space": COMPOSED.replace(" ", "\u00a0"),
    "soft hyphen": COMPOSED.replace("spare", "spa\u00adre"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_written_form_is_found(name: str) -> None:
    text = WRITTEN[name]
    assert found(text) is not None
    assert found(f"before. {text}!") is not None


def test_exact_and_folded_are_told_apart() -> None:
    assert found("the spare key", "spare key") is How.EXACT
    assert found("the Spare  Key", "spare key") is How.FOLDED


def test_exact_wins_where_both_stand() -> None:
    hits = PhraseMatcher({1: "spare key"}).search_all(
        [("SPARE KEY", Flavor.PLAIN), ("spare key", Flavor.PLAIN)]
    )
    assert hits == {1: How.EXACT}


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("crab potting bench", "crab pot"),
        ("scrab pot", "crab pot"),
        ("slip 141", "slip 14"),
        ("2slip 14", "slip 14"),
        ("краб", "кра"),
        ("λόγος", "λόγο"),
        ("cafe\u0323\u0302s", "cafe"),
        ("x\u0302", "x"),
    ],
)
def test_a_phrase_does_not_match_inside_a_word(text: str, phrase: str) -> None:
    assert found(text, phrase) is None


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("crab pots? crab pot.", "crab pot"),
        ("鍵は予備の鍵です", "予備の鍵"),
        ("กุญแจสำรองอยู่", "สำรอง"),
        ("여분열쇠를", "여분열쇠"),
        ("x鍵y", "鍵"),
        ("鍵crab pot鍵", "crab pot"),
        ("(crab pot)", "crab pot"),
        ("crab_pot crab pot_", "crab pot"),
    ],
)
def test_a_phrase_matches_at_the_edges_of_words_and_anywhere_in_other_scripts(
    text: str, phrase: str
) -> None:
    assert found(text, phrase) is not None


def test_a_similar_text_is_not_the_phrase() -> None:
    assert found("slip 2 door code", "slip 14 door code") is None


@pytest.mark.parametrize(
    "text",
    [
        "> Tilda keeps the\n> spare key here",
        "- Tilda keeps the\n  spare key",
        "#### Tilda keeps the  \n#### spare key",
        "1. Tilda keeps\n   the spare\n   key",
        "> - Tilda keeps the\n>   spare key",
    ],
)
def test_line_breaks_of_markdown_are_white_space(text: str) -> None:
    assert found(text, "Tilda keeps the spare key", Flavor.MARKDOWN) is not None


def test_html_entities_are_read_where_the_format_has_them() -> None:
    assert found("caf&eacute; &amp; bar", "café & bar", Flavor.HTML) is How.EXACT
    assert found("caf&eacute; &amp; bar", "café & bar") is None


def test_a_lone_surrogate_does_not_stop_the_search() -> None:
    assert found("\ud800 spare key \udfff", "spare key") is How.EXACT


def test_marker_lines_are_no_text() -> None:
    assert found("RETRACTS: the spare key\nother", "spare key") is None
    assert found("\ufeffRETRACTS: the spare key", "spare key") is None
    assert found(" RETRACTS: the spare key", "spare key") is not None
    assert found("see RETRACTS: the spare key", "spare key") is not None
    assert is_marker_line("RETRACTS:x")
    assert without_markers("a\nRETRACTS: b\u2028c\nd") == "a\nd"


@pytest.mark.parametrize("phrase", ["", "  ", "\u200b", "\n\t"])
def test_an_empty_phrase_is_stopped(phrase: str) -> None:
    with pytest.raises(EmptySelector):
        PhraseMatcher({1: phrase})


def test_many_phrases_at_once() -> None:
    matcher = PhraseMatcher({1: "spare key", 2: "crab pot", 3: "nowhere"})
    assert matcher.search("The crab pot and the SPARE key") == {1: How.FOLDED, 2: How.EXACT}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", WRITTEN)
def test_left_over_bytes_are_read_in_every_form_and_encoding(name: str, encoding: str) -> None:
    matcher = PhraseMatcher({1: PHRASE})
    content = b"\x07\x00\xff" + f"gone{WRITTEN[name]}next".encode(encoding) + b"\0\0"
    assert matcher.mentions(content)
    assert not matcher.mentions(content[: len(content) // 2])
    assert not matcher.mentions(b"\0" * 400)
    assert not PhraseMatcher({}).mentions(content)
