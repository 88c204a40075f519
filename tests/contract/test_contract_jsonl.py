"""The ``jsonl`` adapter keeps the contract, over plain and compressed files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import zstandard

from purge.adapter import Action
from purge.testing import AdapterContract
from purge.testing.breakages import read_quietly
from purge.testing.harness import METADATA, OTHER, SCOPE, SOURCE, Breakage, Harness, Planted
from purge.testing.suite_breaking import BreakingSuite
from purge.testing.suite_removing import RemovingSuite
from purge_adapters.jsonl import JsonlAdapter


class JsonlHarness(Harness):
    """Two files in a folder, written and read with nothing but ``json``."""

    adapter = JsonlAdapter
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.TORN: "a log that is cut off is a shorter log: its torn line is read as text",
    }
    names: ClassVar[Sequence[str]] = ("first.jsonl", "below/second.ndjson")

    def make(self) -> None:
        for path in self._paths():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(path, b"")

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "path": "logs",
            "id": "uuid",
            "text": ["message.content"],
            "time": "at",
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "message.user",
            "derived_from": {SOURCE: "links.source", OTHER: "links.other"},
        }

    def plant(self, records: Sequence[Planted]) -> None:
        paths = self._paths()
        for at, record in enumerate(records):
            path = paths[at % len(paths)]
            escaped = at % 3 == 0
            line = json.dumps(_as_line(record), ensure_ascii=escaped).encode() + b"\n"
            self._append(path, line)

    def change(self, record: Planted) -> None:
        for path in self._paths():
            lines = self._plain(path).splitlines(keepends=True)
            changed = [
                json.dumps(_as_line(record)).encode() + b"\n"
                if json.loads(line)["uuid"] == record.id
                else line
                for line in lines
            ]
            if changed != lines:
                self._write(path, b"".join(changed))

    def read(self) -> Mapping[str, Planted]:
        found: dict[str, Planted] = {}
        for path in self._paths():
            for line in self._plain(path).split(b"\n"):
                if line and (record := _as_record(line)) is not None:
                    assert record.id not in found
                    found[record.id] = record
        return found

    def contents(self) -> Mapping[str, bytes]:
        return {
            str(path.relative_to(self.folder)): self._decode(read_quietly(path))
            for path in self.files()
        }

    def leave_copy(self) -> bool:
        return self.copy_beside()

    def raw(self) -> Mapping[str, bytes] | None:
        return {
            json.loads(line)["uuid"]: line
            for path in self._paths()
            for line in self._plain(path).split(b"\n")
            if line
        }

    def _paths(self) -> list[Path]:
        return [self.folder / "logs" / name for name in self.names]

    def _plain(self, path: Path) -> bytes:
        return self._decode(read_quietly(path))

    def _write(self, path: Path, data: bytes) -> None:
        path.write_bytes(self._encode(data))

    def _append(self, path: Path, data: bytes) -> None:
        with path.open("ab") as stream:
            stream.write(self._encode(data))

    def _encode(self, data: bytes) -> bytes:
        return data

    def _decode(self, data: bytes) -> bytes:
        return data


class GzipHarness(JsonlHarness):
    """A gzip member for each record."""

    unbreakable: ClassVar[Mapping[Breakage, str]] = {}
    names: ClassVar[Sequence[str]] = ("first.jsonl.gz",)
    kill_points = 4

    def _encode(self, data: bytes) -> bytes:
        return gzip.compress(data)

    def _decode(self, data: bytes) -> bytes:
        return gzip.decompress(data)


class ZstdHarness(JsonlHarness):
    """A zstd frame for each record."""

    unbreakable: ClassVar[Mapping[Breakage, str]] = {}
    names: ClassVar[Sequence[str]] = ("first.jsonl.zst",)
    kill_points = 4

    def _encode(self, data: bytes) -> bytes:
        return zstandard.ZstdCompressor(write_checksum=True).compress(data)

    def _decode(self, data: bytes) -> bytes:
        decoded = b""
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            decoded += frame.decompress(data)
            if not frame.eof:
                raise ValueError("cut off")
            data = frame.unused_data
        return decoded


class TestJsonl(AdapterContract):
    harness = JsonlHarness


@pytest.mark.long
class TestJsonlGzip(AdapterContract):
    harness = GzipHarness


class TestJsonlZstd(RemovingSuite, BreakingSuite):
    """What depends on how the file is read and written."""

    harness = ZstdHarness


def _as_line(record: Planted) -> dict[str, object]:
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


def _as_record(data: bytes) -> Planted | None:
    """Read a line as most programs do: one that is no JSON is passed over."""
    try:
        line = json.loads(data)
    except ValueError:
        return None
    links = line["links"]
    return Planted(
        id=line["uuid"],
        text=line["message"]["content"],
        scope={SCOPE: line["project"]} if "project" in line else {},
        subject=line["message"].get("user"),
        parents={
            site: tuple(links[name])
            for name, site in (("source", SOURCE), ("other", OTHER))
            if name in links
        },
        metadata={METADATA: line["about"]} if "about" in line else {},
    )
