"""A folder in which LlamaIndex persists an index (``storage_context.persist``).

A node is one record wherever it stands: its text, its vector, its metadata, its entry in the
index. Tried with llama-index-core 0.14.25.
"""

from __future__ import annotations

from typing import Any, Final


def _node(at: str, **more: Any) -> dict[str, Any]:
    return {"name": "node", "at": at, "id": "$key", "unique": "site", **more}


JSON: Final[dict[str, Any]] = {
    "llamaindex": {
        "files": [
            {
                "path": "docstore.json",
                "records": [
                    _node(
                        '"docstore/data".*',
                        text=["__data__.text", "__data__.metadata"],
                        # What a neighbour says of a node repeats that node's metadata.
                        parts=[{"at": "__data__.relationships.*", "last": "keep"}],
                        links=[
                            {
                                "field": f"__data__.relationships.{way}.node_id",
                                "entry": f"__data__.relationships.{way}",
                                "to": "node",
                                "when_gone": "relink",
                                "otherwise": "drop",
                            }
                            for way in ("2", "3", "4")
                        ]
                        + [
                            {
                                "field": "__data__.relationships.5[].node_id",
                                "entry": "__data__.relationships.5[]",
                                "to": "node",
                                "when_gone": "drop",
                            }
                        ],
                    ),
                    {
                        "name": "document",
                        "at": '"docstore/ref_doc_info".*',
                        "id": "$key",
                        "unique": "site",
                        "text": ["metadata"],
                        "links": [
                            {
                                "field": "node_ids[]",
                                "to": "node",
                                "when_gone": "drop",
                                "last": "remove",
                            }
                        ],
                    },
                    {
                        "name": "hash",
                        "at": '"docstore/metadata".*',
                        "links": [
                            {"field": "$key", "to": ["node", "document"], "when_gone": "remove"}
                        ],
                    },
                ],
            },
            {
                "path": "*vector_store.json",
                "records": [
                    _node("embedding_dict.*"),
                    _node("text_id_to_ref_doc_id.*"),
                    _node("metadata_dict.*"),
                ],
            },
            {
                "path": "index_store.json",
                "records": [
                    _node('"index_store/data".*.__data__.$json.nodes_dict.*'),
                    _node('"index_store/data".*.__data__.$json.embeddings_dict.*'),
                ],
            },
            {
                "path": "*graph_store.json",
                "records": [{"name": "triple", "at": "graph_dict.*[]"}],
            },
        ]
    }
}
