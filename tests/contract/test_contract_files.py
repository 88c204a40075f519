"""A format of several kinds of files keeps the whole contract: a log, notes, a transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from purge.adapter import Action
from purge.testing import OTHER, SCOPE, SOURCE, AdapterContract, Breakage, Harness, Planted
from purge_adapters.files import FilesAdapter
from tests.contract.test_contract_jsonl import JsonlHarness
from tests.contract.test_contract_lines import Transcripts
from tests.contract.test_contract_markdown import FileNotes


class MixedHarness(Harness):
    """Each kind of files in a folder of its own; records go to them in turn."""

    adapter = FilesAdapter
    kill_points = 5
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.TORN: "a text that ends half way is a text: nothing in it tells"
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.parts: tuple[Harness, ...] = (
            JsonlHarness(folder / "memory" / "a"),
            FileNotes(folder / "memory" / "b"),
            Transcripts(folder / "memory" / "c"),
        )

    def make(self) -> None:
        for part in self.parts:
            part.folder.mkdir(parents=True)
            part.make()

    def cannot_hold(self, record_id: str) -> str | None:
        return next(filter(None, (part.cannot_hold(record_id) for part in self.parts)), None)

    def settings(self, action: Action) -> Mapping[str, Any]:
        described = dict(self.parts[2].settings(action))
        return {
            "path": "memory",
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "user",
            "derived_from": {SOURCE: "source_ids", OTHER: "other_ids"},
            "format": {
                "members": [
                    {
                        "adapter": "jsonl",
                        "path": ["a/**/*.jsonl", "a/**/*.ndjson"],
                        "id": "uuid",
                        "text": ["message.content"],
                        "subject": "message.user",
                        "derived_from": {SOURCE: "links.source", OTHER: "links.other"},
                    },
                    {"adapter": "markdown", "path": "b/**/*.md", "record": "file", "id": "id"},
                    {
                        "adapter": "lines",
                        "path": "c/talk.log",
                        "id": "id",
                        "kinds": described["kinds"],
                    },
                ]
            },
        }

    def plant(self, records: Sequence[Planted]) -> None:
        for at, part in enumerate(self.parts):
            if own := records[at::3]:
                part.plant(own)

    def change(self, record: Planted) -> None:
        for part in self.parts:
            if record.id in part.read():
                part.change(record)

    def read(self) -> Mapping[str, Planted]:
        return {id: record for part in self.parts for id, record in part.read().items()}

    def raw(self) -> Mapping[str, bytes]:
        return {id: data for part in self.parts for id, data in (part.raw() or {}).items()}

    def leave_copy(self) -> bool:
        return self.copy_beside()


class TestMixed(AdapterContract):
    harness = MixedHarness
