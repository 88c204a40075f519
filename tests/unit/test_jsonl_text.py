"""JSON as text: what is complete in a torn line, and edits that leave the rest as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge_adapters._json_text import NOT_JSON, Repeated, leaves, parse, replace_scalars, salvage

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=5)


def written(value: object, escaped: bool, wide: bool) -> str:
    return json.dumps(value, ensure_ascii=escaped, indent=1 if wide else None)


def put_in(value: object, path: tuple[str | int, ...], new: object) -> Any:
    """Return a copy of a value with something else at a path."""
    if not path:
        return new
    if isinstance(value, dict):
        return {
            key: put_in(inner, path[1:], new) if key == path[0] else inner
            for key, inner in value.items()
        }
    assert isinstance(value, list)
    return [
        put_in(inner, path[1:], new) if at == path[0] else inner for at, inner in enumerate(value)
    ]


@given(OBJECTS, st.booleans(), st.booleans())
def test_replacing_nothing_leaves_a_text_as_it_was(
    value: object, escaped: bool, wide: bool
) -> None:
    text = written(value, escaped, wide)
    assert replace_scalars(text, lambda path, is_key: None) == text


@given(OBJECTS, st.booleans(), st.booleans(), st.data())
def test_replacing_one_value_changes_that_value_alone(
    value: object, escaped: bool, wide: bool, data: st.DataObject
) -> None:
    paths = [path for path, _, is_key in leaves(value) if not is_key]
    if not paths:
        return
    chosen = data.draw(st.sampled_from(paths))
    text = replace_scalars(
        written(value, escaped, wide),
        lambda path, is_key: "new" if path == chosen and not is_key else None,
    )
    assert json.loads(text) == put_in(value, chosen, "new")


@given(OBJECTS, st.booleans())
def test_every_string_and_key_has_a_place(value: object, escaped: bool) -> None:
    met: list[tuple[tuple[str | int, ...], bool]] = []

    def note(path: tuple[str | int, ...], is_key: bool) -> None:
        met.append((path, is_key))

    replace_scalars(written(value, escaped, False), note)
    assert sorted(met, key=repr) == sorted(
        ((path, is_key) for path, _, is_key in leaves(value)), key=repr
    )


@given(OBJECTS, st.booleans(), st.data())
def test_what_is_salvaged_of_a_torn_line_stood_in_it(
    value: dict[str, object], escaped: bool, data: st.DataObject
) -> None:
    text = written(value, escaped, False)
    torn = text[: data.draw(st.integers(0, len(text)))]
    found = salvage(torn)
    if found is NOT_JSON:
        assert torn == ""
        return
    # Only complete values: each stands in the whole record with the same path.
    whole = {(path, is_key): leaf for path, leaf, is_key in leaves(value)}
    for path, leaf, is_key in leaves(found):
        assert whole[path, is_key] == leaf


@given(st.text(alphabet='{}[]:," \\\\nu01ae-"', max_size=40))
def test_anything_can_be_looked_at(text: str) -> None:
    parse(text)
    salvage(text)


@pytest.mark.parametrize(
    ("torn", "expected"),
    [
        ('{"id":"mem-3', {}),
        ('{"id":"mem-3"', {"id": "mem-3"}),
        ('{"id":12', {}),
        ('{"id":12,', {"id": 12}),
        ('{"a":{"id":"x"},"te', {"a": {"id": "x"}}),
        ('{"id":"1","te{"id":"2","text":"keep"}', {"id": "1"}),
        ('{"id":"1" "2"}', {"id": "1"}),
        ('{"id":"1",}', {"id": "1"}),
        ("no JSON at all", NOT_JSON),
        ("", NOT_JSON),
    ],
)
def test_a_value_that_is_cut_off_is_left_out(torn: str, expected: object) -> None:
    assert salvage(torn) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1}', [{"a": 1}]),
        ("  ", []),
        ('{"a":1} {"b":2}[3]', [{"a": 1}, {"b": 2}, [3]]),
        ('{"a":1}{"b":', [{"a": 1}, NOT_JSON]),
        ('{"a":1}garbage', [{"a": 1}, NOT_JSON]),
        ("2026-05-01 nothing", [NOT_JSON]),
        ('"one string"', ["one string"]),
        ('{"a":"tab\tand\0zero"}', [{"a": "tab\tand\0zero"}]),
        ('{"a":NaN}garbage', [NOT_JSON]),
    ],
)
def test_a_line_is_one_value_or_several_objects_or_text(text: str, expected: list[object]) -> None:
    found = [value for _, _, value in parse(text)]
    if "NaN" in text:
        assert found[-1] is NOT_JSON
    else:
        assert found == expected


def test_deep_nesting_is_text() -> None:
    assert [value for _, _, value in parse("[" * 100_000)] == [NOT_JSON]


def test_repeated_keys_are_all_there() -> None:
    ((_, _, value),) = parse('{"a":"x","b":{"c":"y","c":"z"},"a":"w"}')
    assert isinstance(value, Repeated)
    assert [leaf for _, leaf, is_key in leaves(value) if not is_key] == ["x", "y", "z", "w"]
    emptied = replace_scalars(
        '{"a":"x","b":{"c":"y","c":"z"},"a":"w"}',
        lambda path, is_key: "" if path == ("b", "c") and not is_key else None,
    )
    assert emptied == '{"a":"x","b":{"c":"","c":""},"a":"w"}'
