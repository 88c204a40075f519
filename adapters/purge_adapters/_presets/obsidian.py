"""Obsidian vaults: notes, canvases, the settings with what was searched last, and the trash.

``path`` is the vault. A block id that other notes name stays when its block goes.
"""

from __future__ import annotations

from typing import Any, Final

_CANVAS: Final[dict[str, Any]] = {
    "files": [
        {
            "path": "*.canvas",
            "records": [
                {"name": "node", "at": "nodes[]", "id": "id", "unique": "file"},
                {
                    "name": "edge",
                    "at": "edges[]",
                    "id": "id",
                    "unique": "file",
                    "links": [
                        {"field": "fromNode", "to": "node", "when_gone": "remove"},
                        {"field": "toNode", "to": "node", "when_gone": "remove"},
                    ],
                },
            ],
        }
    ]
}
_SETTINGS: Final[dict[str, Any]] = {
    "files": [{"path": "*.json", "records": [{"name": "settings", "removal": "blank"}]}]
}
_NOTES: Final[dict[str, Any]] = {
    "adapter": "markdown",
    "record": "block",
    "id": "$key",
    "block_ids": "stay",
}

FILES: Final[dict[str, Any]] = {
    "obsidian": {
        "members": [
            {**_NOTES, "path": "**/*.md"},
            {**_NOTES, "path": ".trash/**/*.md", "archived": True},
            {"adapter": "json", "path": "**/*.canvas", "format": _CANVAS},
            {"adapter": "json", "path": ".trash/**/*.canvas", "format": _CANVAS, "archived": True},
            {"adapter": "json", "path": ".obsidian/**/*.json", "format": _SETTINGS},
        ]
    }
}
