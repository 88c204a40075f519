"""Log files of a ``jsonl`` site for tests, and an adapter over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from purge.adapter import Action
from purge.testing.case import Case
from purge.testing.harness import Harness, Planted
from purge_adapters.jsonl import JsonlAdapter

TEXT = "the crab pot licence"
"""What is looked for in most tests."""


class Logs(Harness):
    """Some files below a folder. Records are written and read by the tests themselves."""

    adapter = JsonlAdapter

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder)
        self._settings = {"path": "logs", "id": "id", "text": ["text"], **settings}

    def settings(self, action: Action) -> Mapping[str, Any]:
        return self._settings

    def make(self) -> None:
        """Nothing is made before a file is written."""

    def plant(self, records: Sequence[Planted]) -> None:
        raise NotImplementedError

    def change(self, record: Planted) -> None:
        raise NotImplementedError

    def read(self) -> Mapping[str, Planted]:
        raise NotImplementedError

    def case(self, action: Action = Action.DELETE) -> Case:
        """Return an adapter over the files."""
        return Case(self, action)

    def path(self, name: str = "logs/a.jsonl") -> Path:
        """Return the path of a file."""
        return self.folder / name

    def write(self, *lines: object, name: str = "logs/a.jsonl") -> list[bytes]:
        """Write a file; what is not bytes is written as JSON. Returns the lines, with breaks."""
        written = [as_line(line) for line in lines]
        self.write_bytes(b"".join(written), name)
        return written

    def write_bytes(self, data: bytes, name: str = "logs/a.jsonl") -> Path:
        """Write a file as it stands."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def bytes_of(self, name: str = "logs/a.jsonl") -> bytes:
        """Return the bytes of a file."""
        return self.path(name).read_bytes()


def as_line(record: object) -> bytes:
    """Return a line with its break; bytes are taken as they are."""
    if isinstance(record, bytes):
        return record
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def said(name: str, text: str, **more: object) -> dict[str, object]:
    """Return a record."""
    return {"id": name, "text": text, **more}
