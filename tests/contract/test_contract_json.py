"""The ``json`` adapter keeps the contract, over documents, lines, and JSON within strings."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from purge.adapter import Action
from purge.testing import AdapterContract
from purge.testing.breakages import read_quietly
from purge.testing.harness import METADATA, OTHER, SCOPE, SOURCE, Breakage, Harness, Planted
from purge.testing.suite_breaking import BreakingSuite
from purge.testing.suite_removing import RemovingSuite
from purge_adapters.json import JsonAdapter

_RECORD: dict[str, Any] = {
    "name": "note",
    "id": "uuid",
    "text": ["message.content"],
    "time": "at",
    "links": [{"field": "after", "to": "note", "when_gone": "relink"}],
}


class DocumentHarness(Harness):
    """A document with a list of notes that form a chain, and their number."""

    adapter = JsonAdapter
    names: ClassVar[Sequence[str]] = ("store.json",)
    kill_points = 4

    def make(self) -> None:
        for path in self._paths():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, [])

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "path": "notes",
            "format": self.description(),
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "message.user",
            "derived_from": {SOURCE: "links.source", OTHER: "links.other"},
        }

    def description(self) -> dict[str, Any]:
        counts = [{"field": "count", "of": "notes[]"}]
        record = {**_RECORD, "at": "notes[]"}
        return {"files": [{"path": "*.json", "records": [record], "counts": counts}]}

    def plant(self, records: Sequence[Planted]) -> None:
        paths = self._paths()
        notes = {path: self._notes(path) for path in paths}
        for at, record in enumerate(records):
            path = paths[at % len(paths)]
            last = notes[path][-1]["uuid"] if notes[path] else None
            notes[path].append({**_as_note(record), "after": last})
        for path in paths:
            self._write(path, notes[path])

    def change(self, record: Planted) -> None:
        for path in self._paths():
            notes = self._notes(path)
            if any(note["uuid"] == record.id for note in notes):
                self._write(
                    path,
                    [
                        {**_as_note(record), "after": note["after"]}
                        if note["uuid"] == record.id
                        else note
                        for note in notes
                    ],
                )

    def read(self) -> Mapping[str, Planted]:
        found: dict[str, Planted] = {}
        for path in self._paths():
            notes = self._notes(path)
            ids = [note["uuid"] for note in notes]
            if self._is_whole(path):  # The chain is, whatever was taken out of it.
                assert [note["after"] for note in notes] == [None, *ids[:-1]][: len(ids)]
            for note in notes:
                assert note["uuid"] not in found
                found[note["uuid"]] = _as_record(note)
        return found

    def leave_copy(self) -> bool:
        return self.copy_beside()

    def raw(self) -> Mapping[str, bytes] | None:
        return {
            note["uuid"]: json.dumps({**note, "after": None}).encode()
            for path in self._paths()
            for note in self._notes(path)
        }

    def _is_whole(self, path: Path) -> bool:
        return True

    def _paths(self) -> list[Path]:
        return [self.folder / "notes" / name for name in self.names]

    def _notes(self, path: Path) -> list[dict[str, Any]]:
        value = json.loads(read_quietly(path))
        assert value["count"] == len(value["notes"])
        return list(value["notes"])

    def _write(self, path: Path, notes: list[dict[str, Any]]) -> None:
        value = {"version": 1, "count": len(notes), "notes": notes}
        path.write_text(json.dumps(value, ensure_ascii=len(notes) % 2 == 0, indent=1), "utf-8")


class FolderHarness(DocumentHarness):
    """Two of them."""

    names: ClassVar[Sequence[str]] = ("first.json", "below/second.json")


class StringHarness(DocumentHarness):
    """Notes by their ids, in a JSON text that is a string of another one."""

    names: ClassVar[Sequence[str]] = ("store.json",)

    def description(self) -> dict[str, Any]:
        record = {**_RECORD, "at": "store.$json.notes.*", "id": "$key"}
        return {"files": [{"path": "*.json", "records": [record]}]}

    def _notes(self, path: Path) -> list[dict[str, Any]]:
        inner = json.loads(json.loads(read_quietly(path))["store"])
        return [{"uuid": name, **note} for name, note in inner["notes"].items()]

    def _write(self, path: Path, notes: list[dict[str, Any]]) -> None:
        by_id = {note["uuid"]: {k: v for k, v in note.items() if k != "uuid"} for note in notes}
        path.write_text(json.dumps({"store": json.dumps({"notes": by_id})}), "utf-8")


class LinesHarness(DocumentHarness):
    """One note a line."""

    names: ClassVar[Sequence[str]] = ("first.jsonl", "below/second.jsonl")
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.TORN: "a log that is cut off is a shorter log: its torn line is read as text",
    }

    def description(self) -> dict[str, Any]:
        return {"records": [_RECORD]}

    def raw(self) -> Mapping[str, bytes] | None:
        return None

    def _is_whole(self, path: Path) -> bool:
        return len(self._notes(path)) == self._plain(path).count(b"\n")

    def _notes(self, path: Path) -> list[dict[str, Any]]:
        found = []
        for line in self._plain(path).split(b"\n"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # As most programs do: what is no JSON is passed over.
        return found

    def _plain(self, path: Path) -> bytes:
        return read_quietly(path)

    def _write(self, path: Path, notes: list[dict[str, Any]]) -> None:
        path.write_bytes(
            b"".join(
                json.dumps(note, ensure_ascii=at % 3 == 0).encode() + b"\n"
                for at, note in enumerate(notes)
            )
        )


class GzipHarness(LinesHarness):
    """Lines in a compressed file."""

    unbreakable: ClassVar[Mapping[Breakage, str]] = {}
    names: ClassVar[Sequence[str]] = ("first.jsonl.gz",)

    def contents(self) -> Mapping[str, bytes]:
        return {
            str(path.relative_to(self.folder)): gzip.decompress(read_quietly(path))
            for path in self.files()
        }

    def _plain(self, path: Path) -> bytes:
        return gzip.decompress(read_quietly(path))

    def _write(self, path: Path, notes: list[dict[str, Any]]) -> None:
        super()._write(path, notes)
        path.write_bytes(gzip.compress(path.read_bytes()))


class TestJsonDocuments(AdapterContract):
    harness = DocumentHarness


@pytest.mark.long
class TestJsonFolder(RemovingSuite):
    """What depends on there being several files."""

    harness = FolderHarness


class TestJsonLines(AdapterContract):
    harness = LinesHarness


@pytest.mark.long
class TestJsonInAString(RemovingSuite, BreakingSuite):
    """What depends on how the file is read and written."""

    harness = StringHarness


@pytest.mark.long
class TestJsonGzip(RemovingSuite, BreakingSuite):
    """What depends on how the file is read and written."""

    harness = GzipHarness


def _as_note(record: Planted) -> dict[str, Any]:
    message = {"role": "user", "content": record.text}
    if record.subject is not None:
        message["user"] = record.subject
    return {
        "uuid": record.id,
        "at": "2026-05-01T12:00:00Z",
        **({"project": record.scope[SCOPE]} if record.scope else {}),
        "message": message,
        "links": {
            name: list(record.parents[site])
            for name, site in (("source", SOURCE), ("other", OTHER))
            if site in record.parents
        },
        **({"about": record.metadata[METADATA]} if record.metadata else {}),
    }


def _as_record(note: Mapping[str, Any]) -> Planted:
    links = note["links"]
    return Planted(
        id=note["uuid"],
        text=note["message"]["content"],
        scope={SCOPE: note["project"]} if "project" in note else {},
        subject=note["message"].get("user"),
        parents={
            site: tuple(links[name])
            for name, site in (("source", SOURCE), ("other", OTHER))
            if name in links
        },
        metadata={METADATA: note["about"]} if "about" in note else {},
    )
