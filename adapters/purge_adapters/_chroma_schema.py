"""How a collection is configured, and the metadata keys that its schema has met.

Does no input or output.
"""

from __future__ import annotations

import json
from collections.abc import Collection as AnyOf


def hnsw_of(schema_text: str | None, configuration: str | None) -> dict[str, object]:
    """Return how the vector index of a collection is configured."""
    try:
        schema = json.loads(schema_text or "{}")
        said = schema["keys"]["#embedding"]["float_list"]["vector_index"]["config"]
        return {**said["hnsw"], "space": said["space"]}
    except (ValueError, KeyError, TypeError):
        pass
    try:
        return dict(json.loads(configuration or "{}")["hnsw"])
    except (ValueError, KeyError, TypeError):
        return {}


def spare_keys_of(text: str | None) -> set[str]:
    """Return the keys of a schema that say nothing but that a key was met."""
    schema = json.loads(text) if text else {}
    keys = schema.get("keys", {}) if isinstance(schema, dict) else {}
    defaults = schema.get("defaults", {}) if isinstance(schema, dict) else {}
    return {
        key
        for key, said in keys.items()
        if not key.startswith("#") and all(defaults.get(kind) == how for kind, how in said.items())
    }


def without_keys(text: str, keys: AnyOf[str]) -> str:
    """Return a schema without some of its metadata keys."""
    schema = json.loads(text)
    schema["keys"] = {key: said for key, said in schema["keys"].items() if key not in keys}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
