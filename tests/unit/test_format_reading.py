"""Descriptions of formats: what they say, and what is said of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from purge_adapters._format_model import Gone, Last, Layout, Leave
from purge_adapters._format_reading import FormatFault, read_format
from purge_adapters._format_routes import Route, RouteFault
from purge_adapters._presets import preset, preset_names


@pytest.mark.parametrize("name", preset_names("json"))
def test_presets_are_read_in_the_language_of_users(name: str) -> None:
    found = preset("json", name)
    assert found is not None
    assert read_format(found, name).files


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        ("", 1, [()]),
        ("a.b", {"a": {"b": 1}}, [("a", "b")]),
        ('"a.b".c', {"a.b": {"c": 1}, "a": {"b": {"c": 1}}}, [("a.b", "c")]),
        ("a[]", {"a": [1, 2]}, [("a", 0), ("a", 1)]),
        ("a[-1]", {"a": [1, 2]}, [("a", 1)]),
        ("[0].x", [{"x": 1}, {"x": 2}], [(0, "x")]),
        ("*.x", {"a": {"x": 1}, "b": {}}, [("a", "x")]),
        ("a.x", {"a": [{"x": 1}, 2, {"x": 3}]}, [("a", 0, "x"), ("a", 2, "x")]),
        ("**.x", {"x": 1, "y": [{"x": 2}]}, [("x",), ("y", 0, "x")]),
        ("s.$json.x[]", {"s": '{"x": [5]}'}, [("s", -1, "x", 0)]),
        ("s.$json.x", {"s": "no JSON"}, []),
    ],
)
def test_routes_lead_where_they_say(written: str, value: Any, expected: list[Any]) -> None:
    assert [path for path, _ in Route.read(written).places(value)] == expected


@pytest.mark.parametrize("written", ["a..b", ".a", "a.", "a[x]", 'a"b"', "a.$key"])
def test_what_is_no_route_is_refused(written: str) -> None:
    with pytest.raises(RouteFault):
        Route.read(written)


def test_defaults_are_those_that_lose_least() -> None:
    record = {
        "parts": ["list[]", "field"],
        "links": [{"field": "p", "to": "record", "when_gone": "relink"}],
    }
    found = read_format({"files": [{"path": "*.jsonl", "records": [record]}]})
    (file,) = found.files
    first, second = file.records[0].parts
    assert (file.layout, first.last, second.last) == (Layout.LINES, Last.REMOVE, Last.KEEP)
    assert first.leave is Leave.NOTHING
    assert file.records[0].links[0].otherwise is Gone.NULL
    assert file.records[0].links[0].via == file.records[0].links[0].field


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"files": []}, "format.files: must be a list with at least one entry."),
        ({"file": []}, "unknown key 'file'"),
        ({"files": [{"path": "a"}]}, "'records' is missing"),
        ({"records": [{"at": "a..b"}]}, "records[0].at: 'a..b' is no route"),
        ({"records": [{"idd": "a"}]}, "unknown key 'idd'. Did you mean 'id'?"),
        ({"records": [{"removal": "drop"}]}, "removal: is one of: delete, blank."),
        ({"records": [{"links": [{"field": "p", "to": "x", "when_gone": "null"}]}]}, "called 'x'"),
        ({"records": [{"links": [{"field": "p", "to": "record"}]}]}, "'when_gone' is missing"),
        ({"records": [{"counts": [{"field": "n"}]}]}, "say what is counted"),
        (
            {"records": [{"hashes": [{"field": "h", "of": "t", "algorithm": "crc"}]}]},
            "algorithm: is none that is known",
        ),
        ({"files": [{"path": "a", "layout": "embedded", "records": [{}]}]}, "'begins' goes with"),
    ],
)
def test_what_is_wrong_is_named(raw: dict[str, Any], said: str) -> None:
    with pytest.raises(FormatFault) as caught:
        read_format(raw)
    assert said in str(caught.value)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(FormatFault) as caught:
        read_format({"records": [{"at": 1, "unique": "world", "parts": [{}]}]})
    assert all(word in str(caught.value) for word in (".at:", ".unique:", "parts[0].at:"))
