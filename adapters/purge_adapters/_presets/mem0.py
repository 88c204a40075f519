"""Exports of mem0's vector store: the payloads of memories and of entities."""

from __future__ import annotations

from typing import Any, Final

JSON: Final[dict[str, Any]] = {
    "mem0": {
        "files": [
            {
                "path": "*.json",
                "records": [
                    {
                        "name": "entity",
                        "at": "[]",
                        "where": {"payload.linked_memory_ids": "*"},
                        "id": "id",
                        "unique": "site",
                        "text": ["payload.data"],
                        "links": [
                            {
                                "field": "payload.linked_memory_ids[]",
                                "to": "memory",
                                "when_gone": "drop",
                                "last": "remove",
                            }
                        ],
                    },
                    {
                        "name": "memory",
                        "at": "[]",
                        "id": "id",
                        "unique": "site",
                        "text": ["payload.data", "payload.text_lemmatized"],
                        "time": "payload.created_at",
                        "hashes": [
                            {"field": "payload.hash", "of": "payload.data", "algorithm": "md5"}
                        ],
                    },
                ],
            }
        ]
    }
}
