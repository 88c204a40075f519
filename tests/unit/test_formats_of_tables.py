"""Formats of databases and of Redis: presets speak the manifest's own language; faults are said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from purge.shapes import ShapeFault, validate
from purge_adapters._presets import preset, preset_names
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._sql_settings import SqlSettings

HERE: dict[str, Any] = {"url": "sqlite:///a.db"}
THERE: dict[str, Any] = {"host": "redis.example.org"}


@pytest.mark.parametrize("name", preset_names("sql"))
def test_a_preset_of_tables_is_what_a_manifest_could_say(name: str) -> None:
    written = json.loads(json.dumps(preset("sql", name)))
    described = validate(SqlSettings, {**HERE, "format": written})
    by_name = validate(SqlSettings, {**HERE, "format": name})
    assert by_name.each_table() == described.each_table()
    assert by_name.each_table()


@pytest.mark.parametrize("name", preset_names("redis"))
def test_a_preset_of_keys_is_what_a_manifest_could_say(name: str) -> None:
    written = json.loads(json.dumps(preset("redis", name)))
    described = validate(RedisSettings, {**THERE, "format": written})
    by_name = validate(RedisSettings, {**THERE, "format": name})
    for key in ("keys", "record", "id", "text", "time", "separator", "pairs"):
        assert getattr(by_name, key) == getattr(described, key)
    assert by_name.patterns


def test_what_a_site_says_itself_counts_before_its_format() -> None:
    settings = validate(
        RedisSettings, {**THERE, "format": "langchain", "keys": "chat:*", "time": "data.at"}
    )
    assert (settings.keys, settings.time, settings.record) == ("chat:*", "data.at", "element")
    more = {"history": {"id": "memory_id"}, "extra": {}}
    tables = validate(SqlSettings, {**HERE, "format": "mem0", "tables": more}).each_table()
    assert tables["history"].id == "memory_id"
    assert set(tables) == {"history", "messages", "extra"}


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({}, "name a 'table', several 'tables', or a 'format'"),
        ({"format": "opencoda"}, "known are mem0, opencode. Did you mean 'opencode'?"),
        ({"table": "a", "format": "mem0"}, "name either a 'table', or 'tables' or a 'format'"),
        ({"tables": {"a": {}}, "id": "x"}, "of each of the tables"),
        ({"tables": {"a": {"idd": "x"}}}, "tables.a.idd: unknown key. Did you mean 'id'?"),
        (
            {"format": {"tables": {"a": {"belongs_to": {"b": {"column": "x", "when_gone": "?"}}}}}},
            "must be one of: delete, unlink",
        ),
        ({"format": {"tables": {"a": {"action": "drop"}}}}, "must be one of: delete, blank"),
    ],
)
def test_faults_of_a_description_of_tables(raw: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ShapeFault) as raised:
        validate(SqlSettings, {**HERE, **raw})
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({}, "'keys' names no key"),
        ({"format": "langchian"}, "known are langchain. Did you mean 'langchain'?"),
        ({"format": {"kees": "a"}}, "format.kees: unknown key. Did you mean 'keys'?"),
        (
            {"keys": "a", "pairs": {"calls": ["c"], "result": "r"}},
            "'pairs' are of elements: say 'record: element'",
        ),
        ({"keys": "a", "record": "element", "pairs": {"calls": ["c"]}}, "pairs.result: is missing"),
    ],
)
def test_faults_of_a_description_of_keys(raw: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ShapeFault) as raised:
        validate(RedisSettings, {**THERE, **raw})
    assert sentence in str(raised.value)
