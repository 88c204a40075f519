"""The adapter for lines keeps the whole contract: a transcript, a history, one text a record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from purge.adapter import Action
from purge.testing import (
    METADATA,
    OTHER,
    SCOPE,
    SOURCE,
    AdapterContract,
    Breakage,
    Harness,
    Planted,
)
from purge_adapters.lines import LinesAdapter

HEADER = ("id", "project", "user", "source_ids", "other_ids", "topic")


def values_of(record: Planted) -> dict[str, str]:
    """Return the fields of a record as a line can hold them."""
    values = {"id": record.id}
    if record.scope:
        values["project"] = record.scope[SCOPE]
    if record.subject is not None:
        values["user"] = record.subject
    for name, site in (("source_ids", SOURCE), ("other_ids", OTHER)):
        if site in record.parents:
            values[name] = ", ".join(record.parents[site])
    if record.metadata:
        values["topic"] = record.metadata[METADATA]
    return values


def planted(values: Mapping[str, str], text: str) -> Planted:
    return Planted(
        values["id"],
        text,
        {SCOPE: values["project"]} if "project" in values else {},
        values.get("user"),
        {
            site: tuple(values[name].split(", "))
            for name, site in (("source_ids", SOURCE), ("other_ids", OTHER))
            if name in values
        },
        {METADATA: values["topic"]} if "topic" in values else {},
    )


class Texts(Harness):
    adapter = LinesAdapter
    kill_points = 5
    path: ClassVar[str]
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.TORN: "a text that ends half way is a text: nothing in it tells"
    }

    def cannot_hold(self, record_id: str) -> str | None:
        if record_id != record_id.strip() or re.search(r"[\r\n|]", record_id):
            return "a line holds it between bars, without the white space around it"
        return None

    def described(self) -> dict[str, Any]:
        raise NotImplementedError

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "path": self.path,
            "id": "id",
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "user",
            "derived_from": {SOURCE: "source_ids", OTHER: "other_ids"},
            **self.described(),
        }

    def leave_copy(self) -> bool:
        return self.copy_beside()


class Transcripts(Texts):
    """Records that begin with a line of fields; every line of the text is indented by a bar."""

    path = "talk.log"

    def described(self) -> dict[str, Any]:
        group = "".join(rf"(?:{name}=(?P<{name}>[^|]*)\|)?" for name in HEADER)
        return {"kinds": {"turn": {"begins": rf"== {group} ==$", "goes_on": r"\| "}}}

    @property
    def file(self) -> Path:
        return self.folder / self.path

    def make(self) -> None:
        self.file.write_bytes(b"\n")

    def written(self, record: Planted) -> str:
        fields = "".join(f"{name}={value}|" for name, value in values_of(record).items())
        return f"== {fields} ==\n| {record.text}\n"

    def plant(self, records: Sequence[Planted]) -> None:
        with self.file.open("a", encoding="utf-8", newline="") as stream:
            stream.writelines(f"{self.written(record)}\n" for record in records)

    def pieces(self) -> dict[str, str]:
        content = self.file.read_bytes().decode("utf-8")
        found: dict[str, str] = {}
        for piece in re.findall(r"^== .*? ==\n(?:.+\n?)*", content, re.MULTILINE):
            found[self.parse(piece).id] = piece
        return found

    def parse(self, piece: str) -> Planted:
        head, *rest = piece.rstrip("\n").split("\n")
        values = dict(part.split("=", 1) for part in head[3:-3].split("|") if "=" in part)
        tail = head.rpartition(" ==")[2]
        said = [tail, *(line.removeprefix("| ") for line in rest)]
        return planted(values, "\n".join(said).strip("\n"))

    def change(self, record: Planted) -> None:
        content = self.file.read_bytes().decode("utf-8")
        old = self.pieces()[record.id]
        self.file.write_bytes(content.replace(old, self.written(record)).encode())

    def read(self) -> Mapping[str, Planted]:
        return {id: self.parse(piece) for id, piece in self.pieces().items()}

    def raw(self) -> Mapping[str, bytes]:
        return {id: piece.encode() for id, piece in self.pieces().items()}


class Wholes(Texts):
    """One text a record, with its fields in lines at its beginning."""

    path = "texts"

    def described(self) -> dict[str, Any]:
        return {"fields": {name: rf"^{name}: (.*)$" for name in HEADER}}

    def make(self) -> None:
        (self.folder / "texts").mkdir()

    def written(self, record: Planted) -> bytes:
        fields = "".join(f"{name}: {value}\n" for name, value in values_of(record).items())
        return f"{fields}\n{record.text}\n".encode()

    def plant(self, records: Sequence[Planted]) -> None:
        count = len(list((self.folder / "texts").rglob("*.txt")))
        for place, record in enumerate(records, count):
            path = self.folder / "texts" / f"{place % 5}" / f"text-{place}-{len(records)}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(self.written(record))

    def files_by_id(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in (self.folder / "texts").rglob("*.txt"):
            with suppress(UnicodeDecodeError, KeyError):
                found[self.parse(path).id] = path
        return found

    def parse(self, path: Path) -> Planted:
        values: dict[str, str] = {}
        said: list[str] = []
        for line in path.read_bytes().decode("utf-8").split("\n"):
            name, colon, value = line.partition(": ")
            if colon and name in HEADER:
                values[name] = value
            elif line:
                said.append(line)
        return planted(values, "\n".join(said))

    def change(self, record: Planted) -> None:
        self.files_by_id()[record.id].write_bytes(self.written(record))

    def read(self) -> Mapping[str, Planted]:
        return {id: self.parse(path) for id, path in self.files_by_id().items()}

    def raw(self) -> Mapping[str, bytes]:
        return {id: path.read_bytes() for id, path in self.files_by_id().items()}


class TestTranscripts(AdapterContract):
    harness = Transcripts


@pytest.mark.long
class TestWholes(AdapterContract):
    harness = Wholes
