"""The JSON Schema: for editors, and in step with what is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from purge.errors import ManifestFault
from purge.manifest import Manifest, manifest_schema
from purge.registry import Registry

Load = Callable[..., Manifest]
SITE = "sites: {a: {adapter: folder, path: x"


@pytest.fixture
def validator(registry: Registry) -> Draft202012Validator:
    schema = manifest_schema(registry)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


GOOD = [
    f"purge: 1\n{SITE}}}}}",
    f"purge: 1\n{SITE}, batch: '${{N}}', parts: [a, {{name: x}}], id: [a, b]}}}}",
    "purge: 1\nsites: {a: {adapter: reachable, url: u, action: report}}",
    f"purge: 1\nname: n\nroot: .\ntimezone: UTC\nsafety: {{max_records: 5}}\n{SITE}, "
    "scope: {p: q}, derived_from: {}, provider_retention: {period: 30d, source: s}}}\n"
    "markers: {from: [a, {site: a, where: {role: user}}]}\nledger: {path: l.db}",
]
BAD = [
    SITE + "}}",
    f"purge: 2\n{SITE}}}}}",
    "purge: 1",
    "purge: 1\nsites: {}",
    "purge: 1\nsites: {a: {path: x}}",
    "purge: 1\nsites: {a: {adapter: folder}}",
    "purge: 1\nsites: {a: {adapter: fldr, path: x}}",
    "purge: 1\nsites: {a: {adapter: reachable, url: u, path: x}}",
    f"purge: 1\n{SITE}, pth: y}}}}",
    f"purge: 1\n{SITE}, batch: many}}}}",
    f"purge: 1\n{SITE}, action: erase}}}}",
    f"purge: 1\n{SITE}, text: words}}}}",
    f"purge: 1\n{SITE}, parts: [{{nme: x}}]}}}}",
    f"purge: 1\n{SITE}, subject: ''}}}}",
    f"purge: 1\n{SITE}}}}}\nmarkers: {{from: []}}",
    f"purge: 1\n{SITE}}}}}\nsafety: {{max_records: 0}}",
    f"purge: 1\n{SITE}}}}}\nsaftey: {{}}",
    "purge: 1\nsites: {'a b': {adapter: folder, path: x}}",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_loads_is_valid(text: str, validator: Draft202012Validator, load: Load) -> None:
    load(text, {"N": "5"})
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []


@pytest.mark.parametrize("text", BAD)
def test_what_does_not_load_is_invalid(
    text: str, validator: Draft202012Validator, load: Load
) -> None:
    with pytest.raises(ManifestFault):
        load(text)
    assert not validator.is_valid(yaml.safe_load(text))


def test_every_key_is_described(registry: Registry) -> None:
    schema = manifest_schema(registry)

    def undescribed(part: Any, path: str) -> Iterator[str]:
        if isinstance(part, list):
            for index, inner in enumerate(part):
                yield from undescribed(inner, f"{path}[{index}]")
        elif isinstance(part, dict):
            for key, inner in part.get("properties", {}).items():
                if inner is not True and "description" not in inner and "const" not in inner:
                    yield f"{path}.{key}"
            for key, inner in part.items():
                yield from undescribed(inner, f"{path}.{key}")

    assert [found for found in undescribed(schema, "") if ".Part." not in found] == []


def test_the_adapters_keys_are_told_apart(registry: Registry) -> None:
    site = manifest_schema(registry)["properties"]["sites"]["additionalProperties"]
    keys = {
        branch["if"]["properties"]["adapter"]["const"]: set(branch["then"]["properties"])
        for branch in site["allOf"]
    }
    assert "path" in keys["folder"]
    assert "url" not in keys["folder"]
    assert "url" in keys["server"]
    assert keys["folder"] & keys["server"] == set(site["properties"])
