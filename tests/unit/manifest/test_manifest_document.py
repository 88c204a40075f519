"""YAML as the manifest reads it: nothing silently different from what stands there."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.manifest.document import MAX_DEPTH, Place, YamlFault, read_document


def plain(text: str) -> Any:
    document = read_document(text)
    assert document.faults == []
    return document.root.plain()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12:30", "12:30"),
        ("03:00", "03:00"),
        ("no", "no"),
        ("off", "off"),
        ("2026-01-02", "2026-01-02"),
        ("007", "007"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("1e3", "1e3"),
        (".inf", ".inf"),
        ("'true'", "true"),
        ("!!str 12", "12"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ("99999999999999999999999", "99999999999999999999999"),
    ],
)
def test_a_scalar_means_what_a_person_reads(written: str, meant: object) -> None:
    found = plain(f"a: {written}")["a"]
    assert (found, type(found)) == (meant, type(meant))


def test_a_key_that_stands_twice_is_a_fault_and_the_first_is_kept() -> None:
    document = read_document("a: 1\nb: {c: 1, c: 2}\na: 2\n")
    assert document.root.plain() == {"a": 1, "b": {"c": 1}}
    assert [(place, path) for place, path, _ in document.faults] == [
        (Place(2, 11), ("b", "c")),
        (Place(3, 1), ("a",)),
    ]
    assert "first in line 1" in document.faults[1][2]


def test_anchors_and_merges_work_and_a_merge_does_not_count_as_twice() -> None:
    text = "a: &x {k: 1, l: [2]}\nb: {<<: *x, k: 3}\nc: {<<: [*x, {m: 4}]}\nd: *x\n"
    assert plain(text) == {
        "a": {"k": 1, "l": [2]},
        "b": {"k": 3, "l": [2]},
        "c": {"k": 1, "l": [2], "m": 4},
        "d": {"k": 1, "l": [2]},
    }


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", Place(1, 1), "empty"),
        ("# only a comment\n", Place(1, 1), "empty"),
        ("- a\n", Place(1, 1), "mapping"),
        ("a: 1\n---\nb: 2\n", Place(2, 1), "second document"),
        ("a: [1\n", Place(2, 1), "not valid YAML"),
        ("a: 'x\n", Place(2, 1), "not valid YAML"),
        ("\ta: 1\n", Place(1, 1), "no tabs"),
        ("a: {b: ${C}}\n", Place(1, 9), "in quotes"),
        ("a: 1\nb: \x07\n", Place(2, 4), "control characters"),
        ("a: *nowhere\n", Place(1, 4), "names no anchor"),
        ("a: &a [*a]\n", Place(1, 8), "names no anchor"),
        ("a: " + "[" * 60 + "]" * 60, Place(1, MAX_DEPTH + 4), "nested"),
        ("a: " + "[" * 100_000, Place(1, 1003), "nesting"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_with_its_place(
    text: str, place: Place, words: str
) -> None:
    with pytest.raises(YamlFault) as caught:
        read_document(text)
    assert caught.value.place == place
    assert words in caught.value.sentence


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.getcwd", "!ENV", "!!binary", "!!set"])
def test_tags_are_refused(tag: str) -> None:
    document = read_document(f"a: 1\nb: {tag} []\n")
    assert [(place, path) for place, path, _ in document.faults] == [(Place(2, 4), ("b",))]


def test_a_key_that_is_no_text_is_refused() -> None:
    document = read_document("? [a, b]\n: 1\nc: 2\n")
    assert document.root.plain() == {"c": 2}
    assert [place for place, _, _ in document.faults] == [Place(1, 3)]


def test_aliases_that_multiply_are_stopped_soon() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    started = time.process_time()
    with pytest.raises(YamlFault, match="more than 50000 values"):
        read_document("\n".join(lines))
    assert time.process_time() - started < 5


def test_aliases_that_nest_are_stopped() -> None:
    lines = ["a0: &a0 [1]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60)]
    with pytest.raises(YamlFault, match="nested more than"):
        read_document("\n".join(lines))


def test_places_point_to_the_value_and_to_the_key_of_what_is_longer_than_a_line() -> None:
    root = read_document("sites:\n  one: {path: x, text: [a, b]}\n  two:\n    path: y\n").root
    assert root.place_of(("sites", "one", "path")) == Place(2, 15)
    assert root.place_of(("sites", "one", "path"), at_key=True) == Place(2, 9)
    assert root.place_of(("sites", "one", "text", 1)) == Place(2, 28)
    assert root.place_of(("sites", "two")) == Place(3, 3)
    assert root.place_of(("sites", "two", "missing")) == Place(3, 3)
    assert root.place_of(("elsewhere",)) == Place(1, 1)


def test_crlf_and_other_scripts_are_read() -> None:
    assert plain("名前: 日記\r\nb: ก\r\n") == {"名前": "日記", "b": "ก"}


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        document = read_document(text)
    except YamlFault as fault:
        place = fault.place
    else:
        assert isinstance(document.root.plain(), dict)
        return
    assert 1 <= place.line <= len(text.splitlines()) + 1
    assert place.column >= 1
