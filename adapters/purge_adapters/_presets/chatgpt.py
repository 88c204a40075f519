"""The data export of ChatGPT: conversations, their copy in a page, feedback, shared links."""

from __future__ import annotations

from typing import Any, Final

_CONVERSATIONS: Final[list[dict[str, Any]]] = [
    {
        # First, since its nodes lie within it.
        "name": "conversation",
        "at": "[]",
        "where": {"mapping": "*"},
        "id": ["conversation_id", "id"],
        "unique": "site",
        "text": ["title"],
        "time": "create_time",
        "removal": "blank",
        "links": [
            {"field": "current_node", "to": "node", "when_gone": "relink", "via": "parent"},
        ],
    },
    {
        "name": "node",
        "at": "[].mapping.*",
        "id": "$key",
        "unique": "site",
        "text": [
            "message.content.parts",
            "message.content.text",
            "message.content.result",
            "message.metadata.user_context_message_data",
        ],
        "time": "message.create_time",
        "parts": [
            "message.content.parts[]",
            {"at": "message.metadata.user_context_message_data.*", "last": "keep"},
        ],
        "links": [
            {"field": "parent", "to": "node", "when_gone": "relink"},
            {"field": "children[]", "to": "node", "when_gone": "relink", "otherwise": "drop"},
        ],
    },
]
_OF_A_CONVERSATION: Final = {
    "field": "conversation_id",
    "to": "conversation",
    "when_gone": "remove",
}

JSON: Final[dict[str, Any]] = {
    "chatgpt": {
        "files": [
            {"path": "conversations*.json", "records": _CONVERSATIONS},
            {"path": "chat.html", "begins": "var jsonData = ", "records": _CONVERSATIONS},
            {
                "path": "message_feedback.json",
                "records": [
                    {
                        "name": "feedback",
                        "at": "[]",
                        "id": "id",
                        "text": ["content"],
                        "time": "create_time",
                        "links": [_OF_A_CONVERSATION],
                    }
                ],
            },
            {
                "path": "shared_conversations.json",
                "records": [
                    {
                        "name": "shared",
                        "at": "[]",
                        "id": "id",
                        "text": ["title"],
                        "removal": "blank",
                        "links": [_OF_A_CONVERSATION],
                    }
                ],
            },
            {
                "path": "user.json",
                "records": [{"name": "user", "id": "id", "removal": "blank"}],
            },
        ]
    }
}
