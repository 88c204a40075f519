"""Memories kept as JSON: the memory server of MCP, LlamaIndex, Langfuse, mem0."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action
from tests.real.json_sites import FERN, JsonSite, ids, phrases

CAFE = "Café Zoé"

# --- the memory server of MCP ---------------------------------------------------------------------


def _entity(name: str, *observations: str) -> str:
    value = {"type": "entity", "name": name, "entityType": "x", "observations": list(observations)}
    return json.dumps(value, ensure_ascii=name != "Orla", separators=(",", ":"))


def _relation(source: str, target: str) -> str:
    value = {"type": "relation", "from": source, "to": target, "relationType": "knows"}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture
def memory(tmp_path: Path) -> JsonSite:
    site = JsonSite(tmp_path, "mcp-memory", "memory.jsonl")
    lines = [
        _entity("Orla", FERN, "Prefers tea"),
        _entity(f"note: {FERN}", "made in spring"),
        _entity("Only this", FERN),
        _entity("Near", f"{FERN}work"),
        _entity(CAFE, "Open daily"),
        # A line break was lost when something was added from outside.
        _relation("Orla", "Near") + _relation("Orla", f"note: {FERN}"),
        _relation("Orla", unicodedata.normalize("NFD", CAFE)),
        _relation("Ghost", "Orla"),
    ]
    site.write("memory.jsonl", "\n".join(lines))  # and no line break at the end
    return site


def test_an_observation_goes_alone(memory: JsonSite) -> None:
    memory.purge(phrases(FERN))
    found = {it["name"]: it["observations"] for it in memory.lines("memory.jsonl") if "name" in it}
    assert found == {
        "Orla": ["Prefers tea"],
        "Only this": [],
        "Near": [f"{FERN}work"],
        CAFE: ["Open daily"],
    }


def test_the_relations_of_an_entity_go_with_it(memory: JsonSite) -> None:
    (match,) = memory.purge(ids(f"note: {FERN}"))
    assert match.pieces == 2
    ends = [(it["from"], it["to"]) for it in memory.lines("memory.jsonl") if "from" in it]
    assert ("Orla", "Near") in ends
    assert ("Ghost", "Orla") in ends  # it led nowhere before
    assert len(ends) == 3


def test_relations_that_name_an_entity_in_another_form_go_too(memory: JsonSite) -> None:
    (match,) = memory.purge(ids(CAFE))
    assert match.pieces == 2
    left = unicodedata.normalize("NFC", (memory.folder / "memory.jsonl").read_text("utf-8"))
    assert CAFE not in left


def test_a_lost_line_break_hides_nothing_and_one_object_a_line_is_left(memory: JsonSite) -> None:
    memory.purge(phrases(FERN))
    text = (memory.folder / "memory.jsonl").read_text("utf-8")
    assert "}{" not in text
    assert not text.endswith("\n")
    assert all(isinstance(json.loads(line), dict) for line in text.split("\n"))


def test_both_objects_of_a_line_gone_leave_no_empty_line(memory: JsonSite) -> None:
    memory.purge(phrases(FERN, "knows"))
    assert b"\n\n" not in (memory.folder / "memory.jsonl").read_bytes()


# --- LlamaIndex -----------------------------------------------------------------------------------


def _related(name: str, **metadata: str) -> dict[str, Any]:
    return {"node_id": name, "node_type": "1", "metadata": metadata, "hash": f"hash of {name}"}


def _chain(names: list[str], texts: list[str], document: str) -> dict[str, Any]:
    found = {}
    for at, name in enumerate(names):
        ways: dict[str, Any] = {"1": _related(document, file_name="plants.md")}
        if at > 0:
            ways["2"] = _related(names[at - 1], file_name=texts[at - 1][:4])
        if at + 1 < len(names):
            ways["3"] = _related(names[at + 1])
        data = {"id_": name, "text": texts[at], "metadata": {}, "relationships": ways}
        found[name] = {"__data__": data, "__type__": "1"}
    return found


@pytest.fixture
def index(tmp_path: Path) -> JsonSite:
    site = JsonSite(tmp_path, "llamaindex", "storage")
    nodes = {
        **_chain(["node-a", "node-b", "node-c"], ["Rain.", f"So {FERN}.", "Sun."], "doc/1 one"),
        **_chain(["node-d"], [f"Again: {FERN}."], "doc%2F2\n"),
    }
    documents = {"doc/1 one": ["node-a", "node-b", "node-c"], "doc%2F2\n": ["node-d"]}
    hashes = {name: {"doc_hash": f"of {name}"} for name in [*nodes, *documents]}
    store = {
        "docstore/metadata": hashes,
        "docstore/data": nodes,
        "docstore/ref_doc_info": {
            name: {"node_ids": those, "metadata": {}} for name, those in documents.items()
        },
    }
    site.write("storage/docstore.json", store)
    vectors = {
        "embedding_dict": {name: [0.5, 0.25] for name in nodes},
        "text_id_to_ref_doc_id": dict.fromkeys(nodes, "doc/1 one"),
        "metadata_dict": {name: {"file_name": "plants.md"} for name in nodes},
    }
    site.write("storage/default__vector_store.json", vectors)
    inner = json.dumps({"index_id": "main", "nodes_dict": {name: name for name in nodes}})
    data = {"index_store/data": {"main": {"__type__": "vector_store", "__data__": inner}}}
    site.write("storage/index_store.json", data)
    site.write("storage/graph_store.json", {"graph_dict": {}})
    return site


def test_a_node_goes_from_every_map(index: JsonSite) -> None:
    index.purge(phrases(FERN))
    store = index.load("storage/docstore.json")
    vectors = index.load("storage/default__vector_store.json")
    inner = json.loads(
        index.load("storage/index_store.json")["index_store/data"]["main"]["__data__"]
    )
    for those in (store["docstore/data"], *vectors.values(), inner["nodes_dict"]):
        assert list(those) == ["node-a", "node-c"]
    assert inner["index_id"] == "main"


def test_a_document_lists_its_living_nodes_and_goes_without_any(index: JsonSite) -> None:
    index.purge(phrases(FERN))
    store = index.load("storage/docstore.json")
    documents = store["docstore/ref_doc_info"]
    assert {name: it["node_ids"] for name, it in documents.items()} == {
        "doc/1 one": ["node-a", "node-c"]
    }
    assert list(store["docstore/metadata"]) == ["node-a", "node-c", "doc/1 one"]


def test_neighbours_point_past_a_node_that_went(index: JsonSite) -> None:
    index.purge(phrases(FERN))
    nodes = index.load("storage/docstore.json")["docstore/data"]
    ways = {name: node["__data__"]["relationships"] for name, node in nodes.items()}
    assert ways["node-a"]["3"] == _related("node-c")
    assert ways["node-c"]["2"] == _related("node-a", file_name="Rain")
    assert "node-b" not in (index.folder / "storage/docstore.json").read_text("utf-8")


def test_the_first_node_of_a_chain_leaves_no_pointer(index: JsonSite) -> None:
    index.purge(ids("node-a"))
    nodes = index.load("storage/docstore.json")["docstore/data"]
    assert sorted(nodes["node-b"]["__data__"]["relationships"]) == ["1", "3"]


def test_what_a_neighbour_repeats_of_a_node_goes_without_the_neighbour(index: JsonSite) -> None:
    store = index.load("storage/docstore.json")
    way = store["docstore/data"]["node-c"]["__data__"]["relationships"]["2"]
    way["metadata"] = {"file_name": FERN}
    index.write("storage/docstore.json", store)
    index.purge(phrases(FERN))
    assert list(index.load("storage/docstore.json")["docstore/data"]) == ["node-a", "node-c"]


# --- Langfuse -------------------------------------------------------------------------------------


@pytest.fixture
def traces(tmp_path: Path) -> JsonSite:
    site = JsonSite(tmp_path, "langfuse")
    said = json.dumps([{"role": "user", "content": FERN}])
    deeper = json.dumps({"tool": "save", "args": json.dumps({"text": FERN})})

    def observation(name: str, parent: str | None, **more: Any) -> dict[str, Any]:
        return {"id": name, "trace_id": "trace-1", "parent_observation_id": parent, **more}

    usage = {"usage_details": {"input": 12, "total": 15}, "cost_details": {"total": 0.00010}}
    middle = observation("obs-2", "obs-1", input=said, output=deeper, metadata={}, **usage)
    folders: dict[str, list[dict[str, Any]]] = {
        "traces": [
            {"id": "trace-1", "name": "chat", "metadata": {"topic": "x"}, "input": said},
            {"id": "trace-2", "name": "chat", "metadata": {}, "input": f"{FERN}work"},
        ],
        "observations": [
            observation("obs-1", None, input=None),
            middle,
            observation("obs-3", "obs-2", metadata={"note": FERN, "kept": 1}, status_message=FERN),
        ],
        "observations_v2": [{**middle, "output": "Saved."}],
        "scores": [
            {"id": "s-1", "trace_id": "trace-1", "observation_id": "obs-2", "comment": FERN},
            {"id": "s-2", "trace_id": "trace-2", "observation_id": None, "comment": "good"},
        ],
    }
    for folder, records in folders.items():
        site.write(f"{folder}/one.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    return site


def test_texts_are_taken_out_and_usage_and_links_stay(traces: JsonSite) -> None:
    traces.purge(phrases(FERN))
    one, two, three = traces.lines("observations/one.jsonl")
    assert (two["input"], two["output"]) == (None, None)
    assert (two["usage_details"], two["parent_observation_id"]) == (
        {"input": 12, "total": 15},
        "obs-1",
    )
    assert (three["metadata"], three["status_message"]) == ({"kept": 1}, None)
    assert one["id"] == "obs-1"
    assert [it["input"] for it in traces.lines("observations_v2/one.jsonl")] == [None]
    assert [it["comment"] for it in traces.lines("scores/one.jsonl")] == [None, "good"]
    assert [it["input"] for it in traces.lines("traces/one.jsonl")] == [None, f"{FERN}work"]
    assert b"0.0001" in (traces.folder / "observations/one.jsonl").read_bytes()


def test_a_trace_that_is_named_goes_with_its_observations_and_scores(traces: JsonSite) -> None:
    (match,) = traces.purge(ids("trace-1"))
    assert match.pieces == 1 + 4 + 1
    assert traces.lines("observations/one.jsonl") == []
    assert [it["id"] for it in traces.lines("scores/one.jsonl")] == ["s-2"]


def test_below_an_observation_that_goes_the_tree_closes(traces: JsonSite) -> None:
    (match,) = traces.purge(ids("obs-2"))
    assert match.pieces == 3  # in two folders, and its score
    left = traces.lines("observations/one.jsonl")
    assert [(it["id"], it["parent_observation_id"]) for it in left] == [
        ("obs-1", None),
        ("obs-3", "obs-1"),
    ]


# --- mem0 -----------------------------------------------------------------------------------------


def _payload(name: str, text: str) -> dict[str, Any]:
    digest = hashlib.md5(text.encode()).hexdigest()
    payload = {"data": text, "hash": digest, "text_lemmatized": text.lower(), "user_id": "orla"}
    return {"id": name, "payload": payload}


def _mem0(folder: Path, action: Action = Action.DELETE) -> JsonSite:
    site = JsonSite(folder, "mem0", action=action)
    site.write("vectors.json", [_payload("m-1", f"So {FERN}."), _payload("m-2", "Likes rain")])
    site.write(
        "entities.json",
        [
            {"id": "e-1", "payload": {"data": "clock", "linked_memory_ids": ["m-1", "m-2"]}},
            {"id": "e-2", "payload": {"data": "pot", "linked_memory_ids": ["m-1"]}},
            {"id": "e-3", "payload": {"data": "sea", "linked_memory_ids": ["m-gone-before"]}},
        ],
    )
    return site


def test_a_memory_goes_whole_and_entities_lose_it(tmp_path: Path) -> None:
    site = _mem0(tmp_path)
    (match,) = site.purge(phrases(FERN))
    assert match.pieces == 2
    assert site.load("vectors.json") == [_payload("m-2", "Likes rain")]
    links = {it["id"]: it["payload"]["linked_memory_ids"] for it in site.load("entities.json")}
    assert links == {"e-1": ["m-2"], "e-3": ["m-gone-before"]}


def test_a_blanked_memory_keeps_its_links_and_its_digest_stays_right(tmp_path: Path) -> None:
    site = _mem0(tmp_path, Action.BLANK)
    matches, _ = site.find(phrases(FERN))
    assert site.remove(matches) == []
    payload = site.load("vectors.json")[0]["payload"]
    assert (payload["data"], payload["text_lemmatized"]) == ("", "")
    assert payload["hash"] == hashlib.md5(b"").hexdigest()
    assert site.load("entities.json")[1]["payload"]["linked_memory_ids"] == ["m-1"]
    assert site.find(phrases(FERN)) == ([], [])
