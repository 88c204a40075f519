"""Formats that are known by name: plain mappings, in the language that users write as well.

``TABLE`` says in which module of this package a preset lies, for each adapter that reads it; the
module has a mapping of the adapter's name in capitals, from the preset's name to its description.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final

__all__ = ["TABLE", "named", "preset", "preset_names"]

TABLE: Final[dict[str, dict[str, str]]] = {
    "json": {
        "chatgpt": "chatgpt",
        "claude-code": "claude_code",
        "langfuse": "langfuse",
        "llamaindex": "llamaindex",
        "mcp-memory": "mcp_memory",
        "mem0": "mem0",
    },
    "sql": {
        "mem0": "tables",
        "opencode": "tables",
    },
    "redis": {
        "langchain": "redis",
    },
    "files": {
        "aider": "aider",
        "claude-code": "claude_code_folder",
        "memory-bank": "memory_bank",
        "obsidian": "obsidian",
    },
}


def preset_names(adapter: str) -> tuple[str, ...]:
    """Return the names of the presets that an adapter reads."""
    return tuple(sorted(TABLE.get(adapter, {})))


def named(adapter: str, name: str) -> Mapping[str, Any]:
    """Return the description of a preset that a manifest names.

    Raises:
        ValueError: the adapter has none of that name; the message gives the nearest one.
    """
    found = preset(adapter, name)
    if found is None:
        known = preset_names(adapter)
        close = get_close_matches(name, known, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise ValueError(f"the format is not known here; known are {', '.join(known)}.{hint}")
    return found


def preset(adapter: str, name: str) -> Mapping[str, Any] | None:
    """Return the description of a preset; ``None`` where the adapter has none of that name."""
    module = TABLE.get(adapter, {}).get(name)
    if module is None:
        return None
    found: Mapping[str, Mapping[str, Any]] = getattr(
        import_module(f"purge_adapters._presets.{module}"), adapter.upper()
    )
    return found[name]
