"""The JSON Schema of the manifest (draft 2020-12), for editors and for ``purge manifest schema``.

Made from the same dataclasses that the manifest is checked with, so the two cannot disagree on
keys and types. What hangs together across keys (lineage, paths, variables) is no schema's matter.
"""

from __future__ import annotations

from typing import Any, Final

from purge.manifest import keys
from purge.manifest.model import Catalogue
from purge.shapes import describe

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_FILLED_IN: Final = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
_NOT_TEXT: Final = ("integer", "number", "boolean")


def manifest_schema(registry: Catalogue) -> dict[str, Any]:
    """Return the JSON Schema of a manifest with every adapter's own keys.

    Raises:
        purge.errors.UsageFault: an adapter that is registered cannot be used.
    """
    definitions: dict[str, Any] = {}
    head = _section(keys.HeadKeys, definitions)
    head["properties"]["purge"] = {
        "const": keys.VERSION,
        "description": head["properties"]["purge"]["description"],
    }
    site = _site(registry, definitions)
    sections = {
        "safety": _section(keys.SafetyKeys, definitions),
        "sites": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": r"^[^\s:/.\-][^\s:/]{0,63}$"},
            "additionalProperties": site,
        },
        "markers": _section(keys.MarkersKeys, definitions),
        "ledger": _section(keys.LedgerKeys, definitions),
    }
    for name, section in sections.items():
        section["description"] = keys.SECTIONS[name]
    schema = {
        "$schema": DIALECT,
        "title": "purge manifest",
        "description": "The places where an agent's memory is kept, for purge.",
        "type": "object",
        "required": ["purge", "sites"],
        "properties": {**head["properties"], **sections},
        "additionalProperties": False,
    }
    if definitions:
        schema["$defs"] = definitions
    _allow_variables(schema)
    return schema


def _section(shape: type, definitions: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    schema, inner = describe(shape, prefix)
    definitions.update(inner)
    schema.pop("description", None)
    return schema


def _site(registry: Catalogue, definitions: dict[str, Any]) -> dict[str, Any]:
    common = _section(keys.SiteKeys, definitions)
    names = registry.names()
    summaries = {name: registry.load(name).info.summary for name in names}
    common["properties"]["adapter"] = {
        "description": "The kind of store.",
        "oneOf": [{"const": name, "description": summaries[name]} for name in names],
    }
    # Each branch repeats the names of the common keys, since editors know 'additionalProperties'
    # better than 'unevaluatedProperties'.
    branches = []
    for name in names:
        own = _section(registry.load(name).Settings, definitions, prefix=f"{name}.")
        branches.append(
            {
                "if": {"properties": {"adapter": {"const": name}}, "required": ["adapter"]},
                "then": {
                    "properties": {
                        **dict.fromkeys(common["properties"], True),
                        **own.get("properties", {}),
                    },
                    "required": own.get("required", []),
                    "additionalProperties": False,
                },
            }
        )
    return {
        "type": "object",
        "required": ["adapter"],
        "properties": common["properties"],
        "allOf": branches,
    }


def _allow_variables(schema: Any) -> None:
    """Let a number or a truth value be written as ``${NAME}``."""
    if isinstance(schema, list):
        for inner in schema:
            _allow_variables(inner)
    elif isinstance(schema, dict):
        for inner in schema.values():
            _allow_variables(inner)
        if schema.get("type") in _NOT_TEXT:
            kept = {name: schema.pop(name) for name in ("description", "default") if name in schema}
            plain = dict(schema)
            schema.clear()
            schema.update(kept, anyOf=[plain, dict(_FILLED_IN)])
