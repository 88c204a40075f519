"""A ``json`` site in a folder, used as an engine does: find, remove, look again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from purge.adapter import (
    Action,
    Control,
    Match,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Site,
    Statement,
)
from purge.targets import Target, TargetKind, Targets
from purge_adapters.json import JsonAdapter, JsonSettings

AT = datetime(2026, 6, 1, tzinfo=UTC)
FERN = "Orla waters the fern behind the tide clock"
"""What is to be forgotten."""


NOTE: dict[str, Any] = {"name": "note", "id": "id", "text": ["text"]}
CHAIN: dict[str, Any] = {
    "records": [
        {**NOTE, "links": [{"field": "after", "to": "note", "when_gone": "relink"}]},
    ]
}


def in_a_list(**more: Any) -> dict[str, Any]:
    """Return a description of documents with a list of notes."""
    return {"files": [{"path": "*.json", "records": [{**NOTE, "at": "notes[]", **more}]}]}


@dataclass
class JsonSite:
    """One site."""

    folder: Path
    format: str | dict[str, Any]
    path: str | list[str] = "."
    action: Action = Action.DELETE
    more: Mapping[str, Any] = field(default_factory=dict)

    def adapter(self) -> JsonAdapter:
        site = Site("notes", self.folder, self.action, **self.more)
        return JsonAdapter(site, JsonSettings(self.path, self.format))

    def write(self, name: str, content: str | bytes | object) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, "utf-8", newline="")
        return path

    def load(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text("utf-8"))

    def lines(self, name: str) -> list[Any]:
        return [
            json.loads(line) for line in (self.folder / name).read_text("utf-8").split("\n") if line
        ]

    def find(self, targets: Targets) -> tuple[list[Match], list[NotChecked]]:
        found = list(self.adapter().find(targets))
        return (
            [item for item in found if isinstance(item, Match)],
            [item for item in found if isinstance(item, NotChecked)],
        )

    def remove(self, matches: Sequence[Match]) -> list[NotRemoved]:
        return list(self.adapter().remove([Removal(match, "request", AT) for match in matches]))

    def look_again(self, targets: Targets, matches: Sequence[Match]) -> list[Observation]:
        known = Targets(targets.all, {"notes": [match.trace for match in matches]})
        return list(self.adapter().residue(known))

    def check(self) -> list[Statement]:
        return list(self.adapter().check())

    def purge(self, targets: Targets) -> list[Match]:
        """Take everything out that is found, and demand that nothing of it is left."""
        matches, gaps = self.find(targets)
        assert gaps == []
        assert self.remove(matches) == []
        assert self.find(targets) == ([], [])
        seen = self.look_again(targets, matches)
        assert [item for item in seen if isinstance(item, Residue | NotChecked)] == []
        assert all(item.passed for item in seen if isinstance(item, Control))
        return matches


def phrases(*texts: str) -> Targets:
    return Targets(Target(at, TargetKind.PHRASE, text) for at, text in enumerate(texts))


def ids(*values: str) -> Targets:
    return Targets(Target(at, TargetKind.ID, value) for at, value in enumerate(values))
