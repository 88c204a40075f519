"""Claude Code as a folder: sessions and the prompt history, and the texts that lie beside them.

``path`` is ``~/.claude``, its ``projects``, or the folder of one project. A tool's long output, a
pasted text and a kept version of a file are each one record, the whole file.
"""

from __future__ import annotations

from typing import Any, Final

from purge_adapters._presets.claude_code import JSON

FILES: Final[dict[str, Any]] = {
    "claude-code": {
        "members": [
            {
                "adapter": "json",
                "path": ["**/*.jsonl", "**/sessions-index.json", "**/todos/*.json"],
                "format": JSON["claude-code"],
            },
            {
                "adapter": "lines",
                "path": [
                    "**/tool-results/**/*.txt",
                    "**/paste-cache/**/*.txt",
                    "**/file-history/**/*@v*",
                ],
                "id": "$key",
            },
            {
                "adapter": "markdown",
                "path": "**/memory/**/*.md",
                "record": "file-or-block",
                "id": "$key",
                "index": "MEMORY.md",
                "sources": "derived_from",
            },
            # What people wrote for the program: only the words that have to go.
            {"adapter": "markdown", "path": ["CLAUDE.md", "plans/**/*.md"], "record": "block"},
        ]
    }
}
