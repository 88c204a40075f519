"""Claude Code: sessions, subagents and the prompt history.

Sources: the published session schema of version 2.1.1 and the issues of the program named in
the documentation of the adapters. What was tried on examples is in the tests.
"""

from __future__ import annotations

from typing import Any, Final

_LOST: Final = {"to": "message", "when_gone": "relink", "via": "parentUuid", "otherwise": "null"}
_SESSION: Final[list[dict[str, Any]]] = [
    {
        "name": "message",
        "where": {"uuid": "*"},
        "id": "uuid",
        "unique": "site",
        "text": ["message.content", "content", "toolUseResult", "todos"],
        "time": "timestamp",
        "parts": [
            # The signature covers the text: the block goes whole.
            {"at": "message.content[]", "where": {"type": "thinking"}, "signed": True},
            {"at": "message.content[]", "where": {"type": "redacted_thinking"}, "signed": True},
            {"at": "message.content[]", "pair": ["id", "tool_use_id"]},
            {"at": "toolUseResult"},
        ],
        "links": [
            {**_LOST, "field": "parentUuid"},
            {**_LOST, "field": "logicalParentUuid"},
            {**_LOST, "field": "sourceToolAssistantUUID"},
        ],
    },
    {
        "name": "summary",
        "where": {"type": "summary"},
        "text": ["summary"],
        "links": [{**_LOST, "field": "leafUuid", "otherwise": "remove"}],
    },
    {
        # The state of the files before a message: without the message nobody can go back to it.
        "name": "file-history-snapshot",
        "where": {"type": "file-history-snapshot"},
        "time": "snapshot.timestamp",
        "links": [
            {"field": "messageId", "to": "message", "when_gone": "remove"},
            {"field": "snapshot.messageId", "to": "message", "when_gone": "remove"},
        ],
    },
    {"name": "entry", "text": ["content"], "time": "timestamp"},
]

JSON: Final[dict[str, Any]] = {
    "claude-code": {
        "files": [
            {
                "path": "history.jsonl",
                "records": [
                    {
                        "name": "prompt",
                        "text": ["display", "pastedContents"],
                        "time": "timestamp",
                    }
                ],
            },
            {"path": "*.jsonl", "records": _SESSION},
            {
                "path": "sessions-index.json",
                "records": [
                    {
                        "name": "session",
                        "at": "entries[]",
                        "text": ["firstPrompt", "summary"],
                        "time": "created",
                        "removal": "blank",
                    }
                ],
            },
            {"path": "todos/*.json", "records": [{"name": "todo", "at": "[]"}]},
        ]
    }
}
