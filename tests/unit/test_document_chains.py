"""Trees of records in drawn shapes: whatever goes, no link of what stays is broken by it."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from purge.adapter import Match, Removal, Site
from purge.targets import Target, TargetKind, Targets
from purge_adapters.json import JsonAdapter, JsonSettings

WORDS = "the otter counts the lamps at dusk"
FORMAT: dict[str, Any] = {
    "files": [
        {
            "path": "*.json",
            "records": [
                {
                    "name": "node",
                    "at": "tree.nodes.*",
                    "id": "$key",
                    "text": ["said"],
                    "links": [
                        {"field": "parent", "to": "node", "when_gone": "relink"},
                        {
                            "field": "children[]",
                            "to": "node",
                            "when_gone": "relink",
                            "otherwise": "drop",
                        },
                        {"field": "before", "to": "node", "when_gone": "relink"},
                        {"field": "after", "to": "node", "when_gone": "relink"},
                        {"field": "answers", "to": "node", "when_gone": "remove"},
                    ],
                }
            ],
            "links": [
                {"field": "head", "to": "node", "when_gone": "relink", "via": "parent"},
                {"field": "order[]", "to": "node", "when_gone": "drop"},
            ],
            "counts": [{"field": "count", "of": "tree.nodes.*"}],
        }
    ]
}


@st.composite
def _trees(draw: st.DrawFn) -> tuple[dict[str, Any], set[str]]:
    """Draw a tree in which each node has a parent among the earlier ones, and what is named."""
    size = draw(st.integers(1, 9))
    names = [f"n{at}" for at in range(size)]
    nodes: dict[str, dict[str, Any]] = {}
    for at, name in enumerate(names):
        parent = f"n{draw(st.integers(0, at - 1))}" if at else None
        nodes[name] = {
            "parent": parent,
            "children": [],
            "before": names[at - 1] if at else None,
            "after": names[at + 1] if at + 1 < size else None,
            "answers": draw(st.sampled_from([None, None, *names[:at], "n-never"])),
            "said": "Good evening.",
        }
        if parent:
            nodes[parent]["children"].append(name)
    named = set(draw(st.lists(st.sampled_from(names), max_size=size)))
    for name in named:
        nodes[name]["said"] = f"So {WORDS}."
    head = draw(st.sampled_from(names))
    tree = {"count": size, "head": head, "order": names, "tree": {"nodes": nodes}}
    return tree, named


def _purge(folder: Path) -> list[Match]:
    site = Site("trees", folder)
    targets = Targets([Target(0, TargetKind.PHRASE, WORDS)])

    def adapter() -> JsonAdapter:
        return JsonAdapter(site, JsonSettings(".", FORMAT))

    matches = [item for item in adapter().find(targets) if isinstance(item, Match)]
    if matches:
        at = datetime(2026, 6, 1, tzinfo=UTC)
        assert not list(adapter().remove([Removal(match, "request", at) for match in matches]))
    assert not [item for item in adapter().find(targets) if isinstance(item, Match)]
    return matches


def _with_answers(nodes: dict[str, Any], named: set[str]) -> set[str]:
    """Return what is named and what answers to it, said in another way than the adapter does."""
    gone = set(named)
    for name, node in nodes.items():  # Answers come after what they answer.
        if node["answers"] in gone:
            gone.add(name)
    return gone


def _up(nodes: dict[str, Any], name: str | None, gone: set[str], field: str) -> str | None:
    while name in gone:
        assert name is not None
        name = nodes[name][field]
    return name


@given(_trees())
@settings(max_examples=60, deadline=None)
def test_what_stays_points_to_what_stays(drawn: tuple[dict[str, Any], set[str]]) -> None:
    tree, named = drawn
    nodes = tree["tree"]["nodes"]
    gone = _with_answers(nodes, named)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "tree.json"
        path.write_text(json.dumps(tree, indent=2), "utf-8")
        matches = _purge(Path(name))
        left = json.loads(path.read_text("utf-8"))
    assert sum(match.pieces for match in matches) == len(gone)
    stay = left["tree"]["nodes"]
    assert list(stay) == [name for name in nodes if name not in gone]
    assert left["count"] == len(stay)
    assert left["order"] == list(stay)
    assert left["head"] == _up(nodes, tree["head"], gone, "parent")
    for name, node in stay.items():
        assert node["parent"] == _up(nodes, nodes[name]["parent"], gone, "parent")
        assert node["before"] == _up(nodes, nodes[name]["before"], gone, "before")
        assert node["after"] == _up(nodes, nodes[name]["after"], gone, "after")
        assert node["answers"] == nodes[name]["answers"]
        assert sorted(node["children"]) == sorted(
            other for other, it in stay.items() if it["parent"] == name
        )
