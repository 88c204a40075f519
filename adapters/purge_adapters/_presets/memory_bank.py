"""Memory banks in Markdown: MEMORY.md with its topic files, memory-bank/, rules files.

A topic file begins with front matter that says what it is, and is one memory. All other files are
made of blocks. Lines of an index go with the topic file that they link to.
"""

from __future__ import annotations

from typing import Any, Final

FILES: Final[dict[str, Any]] = {
    "memory-bank": {
        "members": [
            {
                "adapter": "markdown",
                "path": ["**/*.md", "**/*.mdc"],
                "record": "file-or-block",
                "id": "$key",
                "index": [
                    "MEMORY.md",
                    "INDEX.md",
                    "index.md",
                    "README.md",
                    "CLAUDE.md",
                    "AGENTS.md",
                ],
                "sources": "derived_from",
            }
        ]
    }
}
