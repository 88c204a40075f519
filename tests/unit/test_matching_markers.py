"""Which lines are markers, which nearly are, and what is left of a text without them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from purge.matching import (
    Flavor,
    How,
    PhraseMatcher,
    carries_marker,
    is_marker_line,
    read_markers,
    strike,
    unmarked,
    without_markers,
)

COUNTS = ""


def reasons(text: str, *, front_matter: bool = False) -> list[tuple[int, str]]:
    return [(line.number, line.why) for line in read_markers(text, front_matter=front_matter)]


def counted(text: str, *, front_matter: bool = False) -> list[tuple[int, str]]:
    return [
        (line.number, line.phrase)
        for line in read_markers(text, front_matter=front_matter)
        if line.counts
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RETRACTS: the crab pot licence", [(1, "the crab pot licence")]),
        ("RETRACTS:the crab pot", [(1, "the crab pot")]),
        ("\ufeffRETRACTS: a", [(1, "a")]),
        ("a\n\ufeffRETRACTS: b", [(2, "b")]),
        ("RETRACTS:  \t a b \u3000\r\nc", [(1, "a b")]),
        ("a\r\nRETRACTS: b\r\nc", [(2, "b")]),
        ("a\rRETRACTS: b\rc", [(2, "b")]),
        ("RETRACTS: a\u2028RETRACTS: b\u0085c", [(1, "a\u2028RETRACTS: b\u0085c")]),
        ("a\u2028RETRACTS: b", []),
        ("RETRACTS:", [(1, "")]),
        ("RETRACTS:   \n", [(1, "")]),
        ("RETRACTS: RETRACTS: a", [(1, "RETRACTS: a")]),
        ("RETRACTS: a\nRETRACTS: a\n", [(1, "a"), (2, "a")]),
        ("We write RETRACTS: to take a lesson back.", []),
        ("See RETRACTS: a\nRETRACTS", []),
        ("<div>\nRETRACTS: a\n</div>", [(2, "a")]),
        ("> quoted\nRETRACTS: a", [(2, "a")]),
        ("- listed\nRETRACTS: a", [(2, "a")]),
        ("Heading\n===\nRETRACTS: a", [(3, "a")]),
        ("```\ncode\n```\nRETRACTS: a", [(4, "a")]),
        ("   ```\ncode\n  ```\nRETRACTS: a", [(4, "a")]),
        ("- ```\n  code\n  ```\nRETRACTS: a", [(4, "a")]),
        ("- one\n\n  ```sh\n  code\n  ```\n\nRETRACTS: a", [(7, "a")]),
        ("> ```\n> code\n> ```\nRETRACTS: a", [(4, "a")]),
        ("`` ``` ``\nRETRACTS: a", [(2, "a")]),
        ("``` not `a` fence\nRETRACTS: a", [(2, "a")]),
        ("    ```\nRETRACTS: a", [(2, "a")]),
        ("\t```\nRETRACTS: a", [(2, "a")]),
        ("<!-- a -->\nRETRACTS: a", [(2, "a")]),
        ("<!-->\nRETRACTS: a", [(2, "a")]),
        ("Write `<!--` to begin one.\nRETRACTS: a\n\nAnd `-->` to end it.", [(2, "a")]),
        ("Write `<!--` to begin one.\nRETRACTS: a", [(2, "a")]),
        ("<pre>code</pre>\nRETRACTS: a", [(2, "a")]),
        ("100 %% sure\nRETRACTS: a", [(2, "a")]),
        ("%% hidden %%\nRETRACTS: a", [(2, "a")]),
        ("%% never closed\nRETRACTS: a", [(2, "a")]),
        ("---\nRETRACTS: a\n---\n", [(2, "a")]),
        ("a\n---\nRETRACTS: a\n---\n", [(3, "a")]),
    ],
)
def test_a_marker_starts_a_line(text: str, expected: list[tuple[int, str]]) -> None:
    assert reasons(text) == [(number, COUNTS) for number, _ in expected]
    assert counted(text) == expected
    assert carries_marker(text) is bool(expected)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("retracts: a", "it is not written in capital letters"),
        ("Retracts: a", "it is not written in capital letters"),
        ("RETRACTS : a", "white space stands before its colon"),
        ("RETRACTS\u00a0: a", "white space stands before its colon"),
        ("RETRACTS\uff1a a", "its colon is another character"),
        ("RETRACTS\ufe55 a", "its colon is another character"),
        ("\uff32\uff25\uff34\uff32\uff21\uff23\uff34\uff33: a", "it is written with other"),
        ("\u200bRETRACTS: a", "it is written with other or invisible characters"),
        ("RETRACT: a", "it says RETRACT, not RETRACTS"),
        ("**RETRACTS:** a", "it has formatting or other signs around it"),
        ("**RETRACTS**: a", "it has formatting or other signs around it"),
        ("__RETRACTS:__ a", "it has formatting or other signs around it"),
        ("`RETRACTS: a`", "it has formatting or other signs around it"),
        ("'RETRACTS: a'", "it has formatting or other signs around it"),
        (" RETRACTS: a", "it does not start at the beginning of its line"),
        ("\u3000RETRACTS: a", "it does not start at the beginning of its line"),
        ("\u2028RETRACTS: a", "it does not start at the beginning of its line"),
        ("    RETRACTS: a", "it is indented, as code is"),
        ("\tRETRACTS: a", "it is indented, as code is"),
        ("> RETRACTS: a", "it stands in a quote"),
        (">RETRACTS: a", "it stands in a quote"),
        ("- > RETRACTS: a", "it stands in a quote"),
        ("- RETRACTS: a", "it stands in a list item"),
        ("* RETRACTS: a", "it stands in a list item"),
        ("+ retracts: a", "it stands in a list item"),
        ("12. RETRACTS: a", "it stands in a list item"),
        ("3) RETRACTS: a", "it stands in a list item"),
        ("## RETRACTS: a", "it stands in a heading"),
        ("| RETRACTS: a |", "it stands in a table"),
        ("<!-- RETRACTS: a -->", "it stands in an HTML comment"),
        ("%% RETRACTS: a %%", "it stands in a comment"),
        ("RETRACTS: a\0", "it holds NUL characters, as a damaged line does"),
        ("RETRACTS:\0\0", "it holds NUL characters, as a damaged line does"),
        ("\0RETRACTS: a", "it is written with other or invisible characters"),
    ],
)
def test_a_line_that_nearly_is_a_marker_is_named_with_the_reason(line: str, why: str) -> None:
    (found,) = read_markers(f"Some words.\n\n{line}\n")
    assert (found.number, found.phrase, found.counts) == (3, "", False)
    assert found.why.startswith(why)
    assert not carries_marker(line)
    assert without_markers(line) is line


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("```\nRETRACTS: a\n```", [2]),
        ("```python title=x\nRETRACTS: a\n```", [2]),
        ("~~~ `info`\nRETRACTS: a\n~~~", [2]),
        ("~~~\n```\nRETRACTS: a\n```\n~~~", [3]),
        ("````\n```\nRETRACTS: a\n```\nRETRACTS: b\n````", [3, 5]),
        ("```\nRETRACTS: a\n``` not its end\nRETRACTS: b", [2, 4]),
        ("```\nRETRACTS: a\n    ```\nRETRACTS: b", [2, 4]),
        ("```\nRETRACTS: a", [2]),
        ("a\n```\n\n\n\nRETRACTS: a", [6]),
        ("\ufeff```\nRETRACTS: a", [2]),
        ("- ```\nRETRACTS: a\n  ```\nRETRACTS: b", [2, 4]),
        ("- a\n  ```\n  code\n```\nRETRACTS: a", [5]),
        ("- a\n  ```\nRETRACTS: a\n  ```\nRETRACTS: b", [3, 5]),
        ("```\nRETRACTS: a\n- b\n\nRETRACTS: c", [2, 5]),
    ],
)
def test_nothing_in_a_code_fence_counts(text: str, numbers: list[int]) -> None:
    assert reasons(text) == [(number, "it stands in a code fence") for number in numbers]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("<!--\nRETRACTS: a\n-->", [2]),
        ("<!--\n\n```\n\nRETRACTS: a\n\n-->", [5]),
        ("<!--\nRETRACTS: a", [2]),
        ("<!-- never closed\n\n\nRETRACTS: a", [4]),
        ("<!-- a --> <!--\n\nRETRACTS: a\n-->", [3]),
        ("<!--\na\n--> b <!--\nRETRACTS: a\n-->", [4]),
        ("Text <!-- begins\nRETRACTS: a\nends --> here", [2]),
        ("- <!--\nRETRACTS: a\n-->", [2]),
        ("<div><!--\n\nRETRACTS: a\n--></div>", [3]),
        ("<!-- > -- RETRACTS\nRETRACTS: a -->", [2]),
    ],
)
def test_nothing_in_a_comment_counts(text: str, numbers: list[int]) -> None:
    assert reasons(text)[-1:] == [(numbers[-1], "it stands in an HTML comment")]
    assert counted(text) == []


def test_what_is_opened_within_something_open_opens_nothing() -> None:
    comment_in_fence = "```\n<!--\nRETRACTS: a\n```\nRETRACTS: b\n-->\n"
    assert counted(comment_in_fence) == [(5, "b")]
    fence_in_comment = "<!--\n```\nRETRACTS: a\n-->\nRETRACTS: b\n"
    assert counted(fence_in_comment) == [(5, "b")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<pre>\n\nRETRACTS: a\n</pre>", "it stands in raw HTML"),
        ("<script type=x>\nRETRACTS: a\n", "it stands in raw HTML"),
        ("<?php\nRETRACTS: a\n?>", "it stands in raw HTML"),
        ("<![CDATA[\nRETRACTS: a\n]]>", "it stands in raw HTML"),
        ("%%\nRETRACTS: a\n%%", "it stands in a comment"),
    ],
)
def test_nothing_in_raw_html_or_a_hidden_part_counts(text: str, why: str) -> None:
    assert [reason for _, reason in reasons(text)] == [why]


def test_front_matter_is_known_where_there_may_be_some() -> None:
    text = "---\ntitle: a\nRETRACTS: b\n---\nRETRACTS: c\n"
    assert counted(text) == [(3, "b"), (5, "c")]
    assert counted(text, front_matter=True) == [(5, "c")]
    assert reasons(text, front_matter=True)[0] == (3, "it stands in front matter")
    assert counted(f"\ufeff{text}", front_matter=True) == [(5, "c")]
    assert counted("---\nRETRACTS: b\n...\nRETRACTS: c\n", front_matter=True) == [(4, "c")]
    assert counted("---\nRETRACTS: never closed\n", front_matter=True) == [(2, "never closed")]
    assert counted("a\n---\nRETRACTS: b\n---\n", front_matter=True) == [(3, "b")]


def test_a_phrase_does_not_show() -> None:
    (line,) = read_markers("RETRACTS: the crab pot licence")
    assert "crab" not in repr(line)


def test_striking_changes_one_line_and_nothing_else() -> None:
    text = "\ufeffRETRACTS: a \r\nb\rRETRACTS:\tc\u2028\n\nRETRACTS: d"
    assert strike(text, {3: "01J"}) == "\ufeffRETRACTS: a \r\nb\rSTRUCK: 01J\n\nRETRACTS: d"
    assert strike(text, {1: "x", 5: "y"}) == (
        "\ufeffSTRUCK: x\r\nb\rRETRACTS:\tc\u2028\n\nSTRUCK: y"
    )
    for number in (2, 4, 6):
        with pytest.raises(ValueError, match="no marker"):
            strike(text, {number: "x"})
    assert counted(strike(text, {1: "x", 3: "y", 5: "z"})) == []


def test_a_text_without_its_markers() -> None:
    assert without_markers("a\r\nRETRACTS: b\r\nc") == "a\r\nc"
    assert without_markers("RETRACTS: b") == ""
    fenced = "```\nRETRACTS: b\n```\n"
    assert without_markers(fenced) is fenced
    assert without_markers(f"{fenced}RETRACTS: c\n") == fenced


PHRASES = PhraseMatcher({1: "crab pot licence", 2: "55173"})


def test_a_marker_is_no_text_of_the_text_around_it() -> None:
    inner = json.dumps({"note": "a\nRETRACTS: the crab pot licence\nb", "n": 55173})
    for text in (inner, json.dumps([inner]), json.dumps({"x": json.dumps([inner])})):
        assert PHRASES.search(text) == {2: How.EXACT}
        assert carries_marker(text)
    more = json.dumps({"note": "RETRACTS: the crab pot licence\nThe crab pot licence."})
    assert set(PHRASES.search(more)) == {1}


def test_the_words_of_a_line_that_does_not_count_are_text() -> None:
    for text in (
        "```\nRETRACTS: the crab pot licence\n```",
        "<!--\nRETRACTS: the crab pot licence\n-->",
        " RETRACTS: the crab pot licence",
        "> RETRACTS: the crab pot licence",
        'She wrote "RETRACTS: the crab pot licence" once.',
        json.dumps({"note": "```\nRETRACTS: the crab pot licence\n```"}),
    ):
        assert set(PHRASES.search(text)) == {1}
        assert set(PHRASES.search(text, Flavor.MARKDOWN)) == {1}
        assert not carries_marker(text)


def test_a_repeated_key_is_not_lost_with_the_markers() -> None:
    text = '{"a": "crab pot licence", "a": "RETRACTS: x"}'
    assert unmarked(text) == '{"a": "crab pot licence", "a": ""}'
    assert set(PHRASES.search(text)) == {1}


def test_a_marker_in_a_text_that_was_cut_off_is_seen() -> None:
    assert carries_marker('{"note": "a\\nRETRACTS: the crab pot lic')


# --- properties ----------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        "RETRACTS: a",
        "RETRACTS: b",
        "RETRACTS:",
        "words",
        "",
        "```",
        "````",
        "~~~",
        "``` info",
        "  ```",
        "   ~~~",
        "    ```",
        "      ```",
        "> ```",
        "> words",
        "- ```",
        "- words",
        "  words",
        "1. words",
        "10. ~~~",
        "    words",
        "- - ```",
        "-",
        "<!--",
        "-->",
        "<!-- a -->",
        "words <!--",
        "  <!-- a --> <!--",
        "> <!--",
        "- <!--",
        "<pre>",
        "</pre>",
        "# words",
        "---",
        "%%",
        "retracts: a",
        " RETRACTS: a",
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(LINES, ENDS), max_size=14).map(
    lambda parts: "".join(map("".join, parts))
)
_COMMONMARK = MarkdownIt("commonmark")
_PLAIN_HTML = re.compile(r" {0,3}(?:</|<(?!pre|script|style|textarea))[a-z]", re.IGNORECASE)


def verbatim(text: str) -> set[int]:
    """Return the lines that a Markdown program takes for code, comments or raw HTML, from 1."""
    found: set[int] = set()
    for token in _COMMONMARK.parse(text):
        is_html = token.type == "html_block" and not _PLAIN_HTML.match(token.content)
        if token.map and (is_html or token.type in ("fence", "code_block")):
            found.update(range(token.map[0] + 1, token.map[1] + 1))
    return found


@settings(max_examples=500)
@given(TEXTS)
def test_no_line_counts_that_a_markdown_program_takes_for_code(text: str) -> None:
    assert {number for number, _ in counted(text)} & verbatim(text) == set()


@settings(max_examples=300)
@given(TEXTS)
def test_every_line_that_starts_like_a_marker_is_named(text: str) -> None:
    lines = re.split(r"\r\n|\r|\n", text)
    starts = {number for number, line in enumerate(lines, 1) if is_marker_line(line)}
    named = reasons(text)
    assert {number for number, _ in counted(text)} <= starts <= {number for number, _ in named}
    assert [number for number, _ in named] == sorted({number for number, _ in named})


@settings(max_examples=300)
@given(TEXTS, st.data())
def test_striking_one_marker_leaves_the_others(text: str, data: st.DataObject) -> None:
    before = counted(text)
    if not before:
        return
    number, _ = data.draw(st.sampled_from(before))
    after = strike(text, {number: "01J"})
    old, new = (re.split(r"(\r\n|\r|\n)", each) for each in (text, after))
    assert [at for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]] == [
        2 * (number - 1)
    ]
    assert counted(after) == [line for line in before if line[0] != number]


@settings(max_examples=200)
@given(st.text(alphabet="RETACS: \n\r\0\ufeff`~<!->%a\u2028", max_size=60), st.booleans())
def test_any_text_can_be_read(text: str, front_matter: bool) -> None:
    text = text.replace("AC", MARK)
    for line in read_markers(text, front_matter=front_matter):
        assert line.counts or not line.phrase
    assert len(without_markers(text)) <= len(text)


MARK = "RETRACTS:"


def test_a_long_hostile_text_is_read_in_time() -> None:
    text = "a <!-- \n" * 50_000 + "RETRACTS: a\n\n" + "> " * 5_000 + "RETRACTS: b\n"
    text += "- " * 20_000 + "\n" + "RETRACTS" + " *" * 20_000 + "\n" + "<!-- -->" * 20_000
    assert counted(text) == [(50_001, "a")]
