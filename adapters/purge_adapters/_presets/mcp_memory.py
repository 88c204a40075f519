"""The memory server of the Model Context Protocol: entities and relations, one a line.

Names are compared exactly by the server and after Unicode normalisation here, so that no relation
is left that names an entity in another form. An entity that loses its last observation stays,
empty, as the server itself leaves it after ``delete_observations``.
"""

from __future__ import annotations

from typing import Any, Final

_END: Final = {"to": "entity", "when_gone": "remove", "normalized": True}

JSON: Final[dict[str, Any]] = {
    "mcp-memory": {
        "files": [
            {
                "path": "memory*.json*",
                "layout": "lines",
                "records": [
                    {
                        "name": "entity",
                        "where": {"type": "entity"},
                        "id": "name",
                        "unique": "file",
                        "text": ["observations"],
                        "parts": [{"at": "observations[]", "last": "keep"}],
                    },
                    {
                        "name": "relation",
                        "where": {"type": "relation"},
                        "links": [{**_END, "field": "from"}, {**_END, "field": "to"}],
                    },
                ],
            }
        ]
    }
}
