"""Edits in a JSON text: what is named changes, and every other character stays."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purge_adapters._json_text import Path, leaves
from purge_adapters._json_tree import Ambiguous, JsonEditing, apply

_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
_KEYS = st.text(max_size=4)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


def _paths(value: Any) -> list[Path]:
    """Every path below a value, in strings that hold JSON too."""
    found: list[Path] = []
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if path:
            found.append(path)
        if isinstance(item, dict):
            stack += [((*path, key), inner) for key, inner in item.items()]
        elif isinstance(item, list):
            stack += [((*path, at), inner) for at, inner in enumerate(item)]
    return found


def _without(value: Any, paths: set[Path]) -> Any:
    def keep(item: Any, at: Path) -> Any:
        if isinstance(item, dict):
            return {k: keep(v, (*at, k)) for k, v in item.items() if (*at, k) not in paths}
        if isinstance(item, list):
            return [keep(v, (*at, n)) for n, v in enumerate(item) if (*at, n) not in paths]
        return item

    return keep(value, ())


@given(st.data(), _VALUES, st.sampled_from([None, 1, "\t"]), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_is_dropped_is_gone_and_nothing_else(
    data: st.DataObject, value: Any, indent: int | str | None, ascii: bool, nested: bool
) -> None:
    paths = _paths(value)
    chosen = set(data.draw(st.lists(st.sampled_from(paths), max_size=4))) if paths else set()
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    start: Path = ()
    if nested:
        text, start = json.dumps({"a": 1, "s": text}, ensure_ascii=not ascii), ("s", -1)
        if not isinstance(value, dict | list):
            return
    editing = JsonEditing(text)
    for path in chosen:
        editing.drop((*start, *path))
    made = apply(text, editing.changes())
    result = json.loads(made)
    if nested:
        assert list(result) == ["a", "s"]
        result = json.loads(result["s"])
    assert result == _without(value, chosen)
    if not chosen:
        assert made == text
    # What is left is a part of what was written, in its order.
    rest = iter(text)
    assert all(letter in rest for letter in made)


@given(_VALUES, st.text(max_size=5))
@settings(max_examples=200, deadline=None)
def test_what_is_put_in_a_place_stands_there(value: Any, new: str) -> None:
    places = [path for path, _, is_key in leaves(value) if path and not is_key]
    text = json.dumps(value, indent=2, ensure_ascii=False)
    for path in places[:3]:
        expected = copy.deepcopy(value)
        around = expected
        for step in path[:-1]:
            around = around[step]
        around[path[-1]] = new
        editing = JsonEditing(text)
        editing.put(path, [new])
        assert json.loads(apply(text, editing.changes())) == expected


def test_json_in_json_in_json_keeps_its_escapes() -> None:
    inner = r'{"k":["\u00e9","x"],"n":1.0}'
    text = json.dumps({"s": json.dumps({"t": inner})})
    editing = JsonEditing(text)
    editing.drop(("s", -1, "t", -1, "k", 1))
    made = json.loads(apply(text, editing.changes()))
    assert json.loads(made["s"])["t"] == r'{"k":["\u00e9"],"n":1.0}'


def test_several_values_take_the_place_of_one_in_a_list() -> None:
    editing = JsonEditing('["a", "b", "c"]')
    editing.put((1,), ["x", "y"])
    assert apply(editing.text, editing.changes()) == '["a", "x", "y", "c"]'


@pytest.mark.parametrize("path", [("a",), ("b", 0), ("c", -1, "x"), ("d",)])
def test_a_path_that_is_not_one_value_is_refused(path: Path) -> None:
    editing = JsonEditing('{"a": 1, "a": 2, "b": {}, "c": "no JSON"}')
    with pytest.raises(Ambiguous):
        editing.drop(path)
