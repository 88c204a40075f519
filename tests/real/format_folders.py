"""A folder of files in some format with its adapter on it, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from purge.adapter import (
    Action,
    Adapter,
    Control,
    Match,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Site,
)
from purge.shapes import validate
from purge.targets import Target, TargetKind, Targets
from purge_adapters.files import FilesAdapter
from purge_adapters.jsonl import JsonlAdapter
from purge_adapters.lines import LinesAdapter
from purge_adapters.markdown import MarkdownAdapter

PHRASE = "Ilse hides the sluice key behind the third barrel"
AT = datetime(2026, 11, 30, 3, 12, tzinfo=UTC)
ADAPTERS: Mapping[str, type[Adapter[Any]]] = {
    "files": FilesAdapter,
    "jsonl": JsonlAdapter,
    "lines": LinesAdapter,
    "markdown": MarkdownAdapter,
}


class Folder:
    """Files, and a site on them as a manifest would describe it."""

    def __init__(
        self,
        root: Path,
        files: Mapping[str, str | bytes],
        settings: Mapping[str, Any],
        adapter: str = "files",
        **site: Any,
    ) -> None:
        self.root = root
        self.settings = settings
        self.adapter = ADAPTERS[adapter]
        self.site = Site("memory", root, **site)
        for name, content in files.items():
            self.write(name, content)

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def open(self) -> Adapter[Any]:
        return self.adapter(self.site, validate(self.adapter.Settings, self.settings))

    def look(self, targets: Targets) -> tuple[list[Match], list[NotChecked]]:
        found = list(self.open().find(targets))
        return (
            [item for item in found if isinstance(item, Match)],
            [item for item in found if isinstance(item, NotChecked)],
        )

    def find(self, targets: Targets) -> list[Match]:
        return self.look(targets)[0]

    def remove(self, matches: list[Match]) -> list[NotRemoved]:
        removals = [Removal(match, "01JREQUEST", AT) for match in matches]
        return list(self.open().remove(removals))

    def purge(self, targets: Targets) -> list[Match]:
        """Remove what is found, and see that the look before could see it and nothing is left."""
        matches = self.find(targets)
        assert matches
        before = self.controls(targets, matches)
        assert all(control.passed for control in before)
        assert any(control.on_target or control.kind is None for control in before)
        assert self.remove(matches) == []
        if self.site.action is Action.DELETE:
            left = [match for match in self.find(targets) if match.id not in self.kept]
            assert left == []
        return matches

    kept: frozenset[str] = frozenset()
    """The ids of records that stay as a line that says so."""

    def observe(self, targets: Targets, matches: list[Match]) -> list[Observation]:
        traces = {"memory": [match.trace for match in matches]}
        return list(self.open().residue(Targets(targets.all, traces)))

    def residue(self, targets: Targets, matches: list[Match]) -> list[Residue]:
        return [item for item in self.observe(targets, matches) if isinstance(item, Residue)]

    def controls(self, targets: Targets, matches: list[Match]) -> list[Control]:
        return [item for item in self.observe(targets, matches) if isinstance(item, Control)]

    def text(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def said(self, ok: bool) -> list[str]:
        """Return what ``check`` says that is true, or wrong."""
        return [line.sentence for line in self.open().check() if line.ok is ok]


def phrase(text: str = PHRASE) -> Targets:
    return Targets([Target(1, TargetKind.PHRASE, text)])


def named(*ids: str) -> Targets:
    return Targets(Target(key, TargetKind.ID, id, "memory") for key, id in enumerate(ids))
