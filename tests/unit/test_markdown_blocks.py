"""The block scanner: every byte once, blocks as CommonMark has them, and the known differences."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from purge_adapters._markdown_blocks import scan
from purge_adapters._markdown_kinds import Block, Kind, walk
from purge_adapters._markdown_records import Grain, own_spans, parts_of, read_note
from purge_adapters._markdown_text import read_lines, split_lines

PIECES = [
    "one word\n",
    "more text\n",
    "\n",
    "\n",
    "- item\n",
    "  goes on\n",
    "    deep\n",
    "- \n",
    "* star\n",
    "1. one\n",
    "2. two\n",
    "10) ten\n",
    "# Head\n",
    "## Sub ##\n",
    "===\n",
    "---\n",
    "```\nfenced\n```\n",
    "~~~\n\n# x\n~~~\n",
    "> quote\n",
    ">\n",
    "> - in quote\n",
    "lazy\n",
    "  - nested\n",
    "\tcode\n",
    "<div>\n",
    "</div>\n",
    "<!-- c -->\n",
    "<b>x</b>\n",
    "***\n",
    "+ plus\n",
    "-   wide\n",
    "      far in\n",
    "| a | b |\n|---|---|\n",
    "| 1 | 2 |\n",
]
SPECIAL = [
    "RETRACTS: something\n",
    "```\n",
    "~~~~\n",
    "<!--\n",
    "-->\n",
    "%% hidden %%\n",
    "%%\n",
    "^anchor\n",
    "<!-- derived_from: m1 -->\n",
    "<!-- purged: 01JX 2026-11-30 -->\n",
    "[ref]: /x\n",
    "---\nid: x\n---\n",
    "\ufeff",
    "\r",
    "\u2028",
    "\0",
    "no end",
]


def notes(*more: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from([*PIECES, *more]), max_size=12).map("".join)


def spans_of(blocks: tuple[Block, ...]) -> list[tuple[int, int]]:
    return [(block.start, block.end) for block in blocks]


@given(st.binary(max_size=200) | notes(*SPECIAL).map(str.encode))
@settings(max_examples=400)
def test_every_byte_is_in_exactly_one_line_of_exactly_one_block(data: bytes) -> None:
    note = read_note("n.md", data)
    lines = note.lines
    assert lines.joined(lines.lines) == data
    spans = spans_of(note.blocks)
    assert [a for a, _ in spans] == [0, *(b for _, b in spans)][: len(spans)]
    assert (spans[-1][1] if spans else 0) == len(lines.lines)
    pieces = sorted(span for block in walk(note.blocks) for span in own_spans(block))
    assert all(one[1] == two[0] for one, two in pairwise(pieces))
    parts = b"".join(lines.encode("".join(lines.lines[a:b])) for a, b in pieces)
    assert lines.encode(lines.bom) + parts == data


@given(notes(*SPECIAL), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_sixteen_bit_text_is_read_where_its_mark_says_so(text: str, encoding: str) -> None:
    data = ("\ufeff" + text).encode(encoding)
    note = read_note("n.md", data)
    assert note.lines.encoding == encoding
    assert note.lines.joined(note.lines.lines) == data
    assert note.text([(0, len(note.lines.lines))]) == text.replace("\r\n", "\n").replace("\r", "\n")


def test_lines_end_as_commonmark_has_it_and_not_at_other_separators() -> None:
    assert split_lines("a\r\nb\rc\n\u2028d\x0be\x85f") == (
        "a\r\n",
        "b\r",
        "c\n",
        "\u2028d\x0be\x85f",
    )


def leaves_of_commonmark(text: str) -> set[tuple[str, int, int]]:
    kinds = {
        "paragraph_open": "paragraph",
        "heading_open": "heading",
        "fence": "fence",
        "code_block": "code",
        "html_block": "html",
        "hr": "rule",
        "tr_open": "row",
    }
    found: set[tuple[str, int, int]] = set()
    items = 0
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        items += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        kind = "item" if token.type == "list_item_open" else kinds.get(token.type)
        if kind and token.map and (kind == "item" or not items):
            found.add((kind, token.map[0], token.map[1]))
    return found


def leaves_of_ours(text: str) -> set[tuple[str, int, int]]:
    kinds = {
        Kind.PARAGRAPH: "paragraph",
        Kind.HEADING: "heading",
        Kind.FENCE: "fence",
        Kind.CODE: "code",
        Kind.HTML: "html",
        Kind.COMMENT: "html",
        Kind.RULE: "rule",
        Kind.TABLE_HEAD: "row",
        Kind.ROW: "row",
        Kind.ITEM: "item",
    }
    blocks = walk(scan(split_lines(text)))
    return {(kinds[b.kind], b.start, b.end) for b in blocks if b.kind in kinds}


def trimmed(text: str, leaves: set[tuple[str, int, int]]) -> set[tuple[str, int, int]]:
    """Leave out blank lines at the end of a block: who owns them makes no difference."""
    lines = split_lines(text)
    found = set()
    for kind, start, end in leaves:
        while end > start and not lines[end - 1].replace(">", "").strip():
            end -= 1
        found.add((kind, start, end))
    return found


@given(notes())
@settings(max_examples=1500)
def test_blocks_are_those_of_an_independent_commonmark_parser(text: str) -> None:
    # Not compared: what an unclosed fence swallows, where we differ on purpose.
    assume(all(block.kind is not Kind.OPEN_FENCE for block in scan(split_lines(text))))
    assert trimmed(text, leaves_of_ours(text)) == trimmed(text, leaves_of_commonmark(text))


def kinds(text: str) -> list[tuple[Kind, int]]:
    return [
        (block.kind, block.end - block.start)
        for block in scan(split_lines(text))
        if block.kind is not Kind.BLANK
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\na\n\nb\nc\n", [(Kind.OPEN_FENCE, 1), (Kind.CODE, 1), (Kind.CODE, 2)]),
        ("<!-- a\n\nb\n", [(Kind.OPEN_FENCE, 1), (Kind.CODE, 1)]),
        ("%% a\n\nb\n", [(Kind.PARAGRAPH, 1), (Kind.PARAGRAPH, 1)]),
        ("%%\na\n\nb\n%%\nc\n", [(Kind.COMMENT, 5), (Kind.PARAGRAPH, 1)]),
        ("a\nRETRACTS: x\nb\n", [(Kind.PARAGRAPH, 1), (Kind.MARKER, 1), (Kind.PARAGRAPH, 1)]),
        ("- a\nRETRACTS: x\n", [(Kind.ITEM, 1), (Kind.MARKER, 1)]),
        ("> a\nRETRACTS: x\n", [(Kind.PARAGRAPH, 1), (Kind.MARKER, 1)]),
        ("<div>\nRETRACTS: x\n", [(Kind.HTML, 1), (Kind.MARKER, 1)]),
        ("```\nRETRACTS: x\n```\n", [(Kind.FENCE, 3)]),
        ("<!--\nRETRACTS: x\n-->\n", [(Kind.COMMENT, 3)]),
        (" RETRACTS: x\n", [(Kind.PARAGRAPH, 1)]),
        ("a\n<!-- derived_from: m -->\nb\n", [(Kind.PARAGRAPH, 3)]),
        ("<!-- a: 1 -->\n<!-- b: 2 -->\nc\n", [(Kind.PARAGRAPH, 3)]),
        (
            "a\n<!-- only words -->\nb\n",
            [(Kind.PARAGRAPH, 1), (Kind.COMMENT, 1), (Kind.PARAGRAPH, 1)],
        ),
        ("```\na\n```\n<!-- derived_from: m -->\nb\n", [(Kind.FENCE, 4), (Kind.PARAGRAPH, 1)]),
        ("[a]: x\n[b]: y\n", [(Kind.PARAGRAPH, 1), (Kind.PARAGRAPH, 1)]),
        (
            "a\n<!-- purged: R 2026-11-30 -->\nb\n",
            [(Kind.PARAGRAPH, 1), (Kind.TOMBSTONE, 1), (Kind.PARAGRAPH, 1)],
        ),
        (
            "| a \\| b |\n|---|\n| 1 |\n",
            [(Kind.TABLE_HEAD, 1), (Kind.TABLE_RULE, 1), (Kind.ROW, 1)],
        ),
        ("a | b\n---\n", [(Kind.HEADING, 2)]),
    ],
)
def test_where_it_differs_from_commonmark_it_takes_the_smaller_block(
    text: str, expected: list[tuple[Kind, int]]
) -> None:
    assert kinds(text) == expected


def test_nesting_without_end_is_followed_only_so_far() -> None:
    for text in (">" * 5000 + " a\n", "- " * 5000 + "a\n", "> - " * 3000 + "a\n"):
        assert len(text) > sys.getrecursionlimit()
        assert scan([text])[0].end == 1


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    text = "top\n\n# A\na\n## B\nb\n### C\nc\n## D\nd\n\nE\n=\ne\n"
    note = read_note("n.md", text.encode())
    spans = [part.spans[0] for part in parts_of(note, Grain.SECTION)]
    assert spans == [(0, 1), (2, 10), (4, 8), (6, 8), (8, 10), (11, 14)]


def test_a_heading_in_a_quote_or_a_list_begins_no_section() -> None:
    note = read_note("n.md", b"> # A\n\n- # B\n\n```\n# C\n```\n")
    assert [part.spans for part in parts_of(note, Grain.SECTION)] == [((0, 7),)]


def test_text_in_an_unknown_encoding_is_kept_and_said_to_be_unclear() -> None:
    lines = read_lines("café\n".encode("latin-1"))
    assert not lines.faithful
    assert not lines.damaged
    assert read_lines("plain\n".encode("utf-16-le")).damaged
    assert read_lines(b"a\xff\x00b").damaged
    assert not read_lines(b"a\x00b and some more").damaged
