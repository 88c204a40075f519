"""Formats of applications that keep their records in tables. For ``format`` of a ``sql`` site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SQL: Final[Mapping[str, Mapping[str, Any]]] = {
    # mem0 (mem0/memory/storage.py of mem0ai 2.2): history.db beside a vector store. An event of
    # the history quotes the memory before and after it, so that only the half with the words has
    # to go; the event that 'delete' writes has no times. Older versions have no 'messages'.
    "mem0": {
        "tables": {
            "history": {
                "id": "id",
                "text": ["old_memory", "new_memory"],
                "time": "created_at",
                "action": "blank",
                "when_blank": "delete",
            },
            "messages": {
                "id": "id",
                "text": ["content"],
                "time": "created_at",
                "optional": True,
            },
        }
    },
    # opencode 1.x (packages/opencode/src/session/session.sql.ts): a session has messages, and a
    # message has parts that hold the words. A session that a tool call opened names its parent,
    # and is a conversation of its own: it stays, at the top.
    "opencode": {
        "tables": {
            "session": {
                "id": "id",
                "text": ["title"],
                "time": "time_created",
                "belongs_to": {"session": {"column": "parent_id", "when_gone": "unlink"}},
            },
            "message": {
                "id": "id",
                "text": ["data.summary", "data.system", "data.error"],
                "time": "data.time.created",
                "belongs_to": {"session": "session_id"},
            },
            "part": {
                "id": "id",
                "text": [
                    "data.text",
                    "data.prompt",
                    "data.description",
                    "data.state.input",
                    "data.state.raw",
                    "data.state.output",
                    "data.state.title",
                    "data.state.error",
                    "data.state.metadata",
                    "data.state.attachments",
                    "data.source",
                    "data.url",
                    "data.filename",
                ],
                "time": "time_created",
                "belongs_to": {"message": "message_id", "session": "session_id"},
            },
        }
    },
}
