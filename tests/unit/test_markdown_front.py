"""Front matter and inline fields: what is said about a record, and how it is cut or kept."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from purge_adapters._markdown_fields import (
    FieldReader,
    block_id,
    clean,
    front_list,
    is_blanked,
    list_of,
    one_of,
    tombstone,
)
from purge_adapters._markdown_front import (
    look_up,
    only_keys,
    quoted,
    read_front,
    strings,
    without_entries,
)
from purge_adapters._markdown_text import split_lines

ANY_TEXT = st.text(min_size=1).filter(lambda text: text.strip() == text and text.isprintable())


def front_of(text: str):  # type: ignore[no-untyped-def]  # a short name for the tests below
    return read_front(split_lines(text))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("---\nid: a\n---\nbody\n", 3),
        ("---\r\nid: a\r\n---\r\n", 3),
        ("---  \nid: a\n--- \n", 3),
        ("---\nid: a\n...\nbody\n", 3),
        ("---\n---\n", 2),
        ("---\n# only a comment\n---\n", 3),
        ("\n---\nid: a\n---\n", 0),
        ("---\nid: a\n", 0),
        ("----\nid: a\n----\n", 0),
        ("---\nSome prose between two rules\n---\n", 0),
        ("---\n- a\n- list\n---\n", 0),
        ("---\n> quoted: [prose\n---\n", 0),
        ("---\nid: [a\n---\n", 3),
    ],
)
def test_front_matter_stands_at_the_very_top_and_is_a_mapping(text: str, size: int) -> None:
    assert front_of(text).size == size


def test_values_are_the_strings_that_are_written() -> None:
    values = front_of(
        "---\nid: 007\nday: 2026-03-01\nok: yes\nnone: null\nlist: [1, 2.0]\n"
        'text: "caf\\u00e9"\nlong: >\n  folded\n  line\n---\n'
    ).values
    assert values == {
        "id": "007",
        "day": "2026-03-01",
        "ok": "yes",
        "none": "null",
        "list": ["1", "2.0"],
        "text": "café",
        "long": "folded line\n",
    }


def test_broken_front_matter_is_told_from_none() -> None:
    assert front_of("---\nid: [a\n---\n").broken
    assert not front_of("no front\n").broken
    assert not front_of("---\n---\n").broken


def test_anchors_that_stand_for_endlessly_many_values_are_not_followed() -> None:
    lines = ["---\n", "a0: &a0 [x, x]\n"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)]
    assert read_front([*lines, "---\n"]).broken
    assert front_of("---\na: &a [*a]\n---\n").broken
    few = front_of("---\na: &a [x, y]\nb: *a\n---\n")
    assert list(strings(few.values)) == ["a", "x", "y", "b"]


def test_a_field_is_a_key_or_a_dotted_path() -> None:
    values = {"a": {"b": "deep"}, "a.c": "flat"}
    assert look_up(values, "a.b") == "deep"
    assert look_up(values, "a.c") == "flat"
    assert look_up(values, "a.b.c") is None
    assert look_up(None, "a") is None


ENTRIES = """\
---
# first comment
id: a
aliases:
  - one
  - two

# about the text
text: |
  # no comment
  more
"quoted key": 1
---
"""


def test_entries_hold_every_line_between_the_rules() -> None:
    front = front_of(ENTRIES)
    assert [(entry.start, entry.end, entry.key) for entry in front.entries] == [
        (1, 2, None),
        (2, 3, "id"),
        (3, 6, "aliases"),
        (6, 7, None),
        (7, 8, None),
        (8, 11, "text"),
        (11, 12, "quoted key"),
    ]


def test_cutting_an_entry_leaves_the_others_as_they_were() -> None:
    lines = split_lines(ENTRIES)
    front = read_front(lines)
    for entry in front.entries:
        left = without_entries(lines, front, [entry])
        assert left is not None
        assert list(left) == [*lines[: entry.start], *lines[entry.end :]]
        loaded = yaml.load("".join(left[1:-1]), Loader=yaml.BaseLoader)
        assert entry.key not in loaded
        assert len(loaded) == len(front.values or ()) - (entry.key is not None)


@pytest.mark.parametrize(
    "text",
    [
        "---\n{a: 1, b: 2}\n---\n",
        "---\na: [b\n---\n",
        "---\na: &x words\nb: *x\n---\n",
    ],
)
def test_what_cannot_be_cut_is_not(text: str) -> None:
    lines = split_lines(text)
    front = read_front(lines)
    first = front.entries[:1]
    assert not first or without_entries(lines, front, first) is None


def test_keeping_some_keys_drops_all_else_comments_too() -> None:
    lines = split_lines(
        "---\ntitle: T\nid: a # of Tilda\nmeta: {s: 1, t: secret}\nk: [x, y]\n---\n"
    )
    kept = only_keys(lines, read_front(lines), ("id", "meta.s", "k"), "\n")
    assert "Tilda" not in "".join(kept)
    assert read_front(kept).values == {"id": "a", "meta": {"s": "1"}, "k": ["x", "y"]}
    assert only_keys(lines, read_front(lines), ("other",), "\n") == ()


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_what_is_quoted_is_yaml_and_ends_no_comment(value: object) -> None:
    text = quoted(value)
    assert "-->" not in text
    assert "\n" not in text
    loaded = yaml.load(text, Loader=yaml.BaseLoader)
    assert loaded == value or "\ud800" <= max("".join(strings(value)), default="") <= "\udfff"


READER = FieldReader(["derived_from", "id", "$key"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("derived_from: m1", ["m1"]),
        ("  derived_from: [m1, 'm 2']", ["m1", "m 2"]),
        ("words <!-- derived_from: m1, m2 --> words", ["m1", "m2"]),
        ("words <!--derived_from:m1--> words", ["m1"]),
        ("derived_from:: m1, m2", ["m1", "m2"]),
        ("words [derived_from:: m1] words", ["m1"]),
        ("words [derived_from::\n  m1] words", ["m1"]),
        ("words (derived_from:: m1) words", ["m1"]),
        ("derived_from:: [[Keys#^key|the key]]", ["Keys.md#^key"]),
        ("[derived_from:: [[Keys]]]", ["Keys.md"]),
        ("derived_from: [[Keys.canvas]]", ["Keys.canvas"]),
        ('derived_from: "a, b"', ["a, b"]),
        ("derived_from: m1 ^block", ["m1"]),
        ("derived_from: m1\nderived_from: m2\nderived_from: m1", ["m1", "m2"]),
        ("what is derived_from: m1", []),
        ("underived_from:: m1", []),
        ("derived_from:m1", []),
        ("derived_from:", []),
    ],
)
def test_inline_fields_in_each_form(text: str, expected: list[str]) -> None:
    assert list(list_of(READER.read(text).get("derived_from", []))) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("m1", ("m1",)),
        ("m1, m2", ("m1", "m2")),
        (["m1", "m, 2"], ("m1", "m, 2")),
        ([["Keys#^key"]], ("Keys.md#^key",)),
        (["[[Keys|x]]"], ("Keys.md",)),
        ({"id": "m1"}, ("m1",)),
        ("topics/spare-key.md", ("topics/spare-key.md",)),
    ],
)
def test_lineage_in_front_matter(value: object, expected: tuple[str, ...]) -> None:
    assert front_list(value) == expected


@given(ANY_TEXT, st.lists(ANY_TEXT.filter(lambda text: not text.startswith("[[")), min_size=1))
def test_a_tombstone_says_again_what_the_record_said(id: str, parents: list[str]) -> None:
    fields = [("id", [id]), ("derived_from", parents)]
    line = tombstone("01JREQUEST", "2026-11-30", fields, "key")
    assert len(split_lines(line)) == 1
    said = READER.read(line)
    assert one_of(said["id"]) == id
    assert list_of(said["derived_from"]) == tuple(dict.fromkeys(parents))
    assert block_id(line) == "key"
    row = f"| {tombstone('01JREQUEST', '2026-11-30', fields, '')} |  |"
    for form in (line, f"- {line}", f"> {line}", f"## {line}", row):
        assert is_blanked(form, READER)
        assert not is_blanked(f"{form} and a word", READER)


def test_a_request_id_cannot_end_the_comment_it_stands_in() -> None:
    line = tombstone("x --> <b>", "2026-11-30", (), "")
    assert line.count("-->") == 1
    assert is_blanked(line, READER)


def test_a_text_without_a_tombstone_is_not_blanked() -> None:
    for text in ("", "- ", "<!-- id: a -->", "<!-- purged: later -->"):
        assert not is_blanked(text, READER)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [x] buy rope [derived_from:: m1] ^b1", "buy rope"),
        ("> > quoted\n> > twice", "quoted\ntwice"),
        ("## Title <!-- id: a -->", "Title"),
        ("3. third %% not shown %%", "third"),
        ("a <!-- hidden --> b", "a  b"),
        ("a <!-- never closed", "a <!-- never closed"),
    ],
)
def test_what_a_record_says_is_without_its_signs(text: str, expected: str) -> None:
    assert clean(text, READER) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("words ^key", "key"),
        ("words ^key  \n", "key"),
        ("^key", "key"),
        ("words^key", None),
        ("^key words", None),
        ("words ^no_underscore", None),
    ],
)
def test_a_block_id_is_the_last_word(text: str, expected: str | None) -> None:
    assert block_id(text) == expected
