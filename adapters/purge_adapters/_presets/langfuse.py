"""The export of Langfuse to a bucket: traces, observations and scores as JSON Lines.

What was found is taken out of the field in which it stands, so that usage and costs stay. A trace
or observation that is named by its id goes with all that belongs to it.
"""

from __future__ import annotations

from typing import Any, Final


def _fields(*names: str) -> list[dict[str, Any]]:
    return [{"at": name, "leave": "null", "last": "keep"} for name in names]


_METADATA: Final[list[dict[str, Any]]] = [
    {"at": "metadata.*", "last": "keep"},
    {"at": "tags[]", "last": "keep"},
]
_OF_A_TRACE: Final = {"field": "trace_id", "to": "trace", "when_gone": "remove"}
_OBSERVATION: Final[dict[str, Any]] = {
    "name": "observation",
    "id": "id",
    "unique": "site",
    "text": ["input", "output", "metadata", "status_message"],
    "time": "start_time",
    "parts": [*_fields("input", "output", "status_message", "name", "trace_name"), *_METADATA],
    "links": [
        _OF_A_TRACE,
        {"field": "parent_observation_id", "to": "observation", "when_gone": "relink"},
    ],
}

JSON: Final[dict[str, Any]] = {
    "langfuse": {
        "files": [
            {"path": f"observations{version}/*.jsonl", "records": [_OBSERVATION]}
            for version in ("", "_v2")
        ]
        + [
            {
                "path": "scores/*.jsonl",
                "records": [
                    {
                        "name": "score",
                        "id": "id",
                        "unique": "site",
                        "text": ["comment"],
                        "time": "timestamp",
                        "parts": _fields("comment", "string_value"),
                        "links": [
                            _OF_A_TRACE,
                            {
                                "field": "observation_id",
                                "to": "observation",
                                "when_gone": "remove",
                            },
                        ],
                    }
                ],
            },
            {
                "path": "traces/*.jsonl",
                "records": [
                    {
                        "name": "trace",
                        "id": "id",
                        "unique": "site",
                        "text": ["input", "output", "metadata"],
                        "time": "timestamp",
                        "parts": [*_fields("input", "output", "name"), *_METADATA],
                    }
                ],
            },
        ]
    }
}
