"""Formats of applications that keep their records in Redis. For ``format`` of a ``redis`` site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

REDIS: Final[Mapping[str, Mapping[str, Any]]] = {
    # RedisChatMessageHistory (langchain_community 0.4, chat_message_histories/redis.py): a list
    # for each session, the newest message first, each the JSON of message_to_dict. A model is
    # refused a history in which a tool call has no tool message, or the other way round.
    "langchain": {
        "keys": "message_store:*",
        "record": "element",
        "id": "data.id",
        "text": [
            "data.content",
            "data.additional_kwargs",
            "data.tool_calls.args",
            "data.invalid_tool_calls.args",
            "data.artifact",
        ],
        "pairs": {
            "calls": [
                "data.tool_calls.id",
                "data.invalid_tool_calls.id",
                "data.additional_kwargs.tool_calls.id",
            ],
            "result": "data.tool_call_id",
            "newest_first": True,
        },
    },
}
