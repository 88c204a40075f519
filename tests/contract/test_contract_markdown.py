"""The Markdown adapter keeps the whole contract: records as files, as sections, as blocks."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

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
from purge_adapters.markdown import MarkdownAdapter

FIELDS = {"project": SCOPE, "source_ids": SOURCE, "other_ids": OTHER}


def load(text: str) -> Any:
    """Return a YAML value with every scalar as the string that is written."""
    return yaml.load(text, Loader=yaml.BaseLoader)


def listed(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def record_of(fields: Mapping[str, Any], text: str) -> Planted:
    parents = {
        site: listed(fields[name])
        for name, site in (("source_ids", SOURCE), ("other_ids", OTHER))
        if name in fields
    }
    return Planted(
        fields["id"],
        text,
        {SCOPE: fields["project"]} if "project" in fields else {},
        fields.get("user"),
        parents,
        {METADATA: fields["topic"]} if "topic" in fields else {},
    )


def fields_of(record: Planted) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": record.id}
    if record.scope:
        fields["project"] = record.scope[SCOPE]
    if record.subject is not None:
        fields["user"] = record.subject
    for site, name in ((SOURCE, "source_ids"), (OTHER, "other_ids")):
        if site in record.parents:
            fields[name] = list(record.parents[site])
    if record.metadata:
        fields["topic"] = record.metadata[METADATA]
    return fields


class Notes(Harness):
    adapter = MarkdownAdapter
    kill_points = 5
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.TORN: "a note that ends half way is a note: nothing in it tells"
    }
    record: ClassVar[str]
    path: ClassVar[str]

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "path": self.path,
            "record": self.record,
            "id": "id",
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "user",
            "derived_from": {SOURCE: "source_ids", OTHER: "other_ids"},
        }

    def leave_copy(self) -> bool:
        return self.copy_beside()


class FileNotes(Notes):
    """One note a record, its fields in front matter."""

    record = "file"
    path = "notes"

    def make(self) -> None:
        (self.folder / "notes").mkdir()

    def files_by_id(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in (self.folder / "notes").rglob("*.md"):
            # A damaged note does not keep a program from reading the others.
            with suppress(UnicodeDecodeError, ValueError):
                found[self.parse(path)[0]["id"]] = path
        return found

    def parse(self, path: Path) -> tuple[dict[str, Any], str]:
        _, front, text = path.read_bytes().decode("utf-8").split("---\n", 2)
        return load(front), text.strip("\n")

    def plant(self, records: Sequence[Planted]) -> None:
        count = len(list((self.folder / "notes").rglob("*.md")))
        for place, record in enumerate(records, count):
            path = self.folder / "notes" / f"{place % 7}" / f"note-{place}-{len(records)}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(self.written(record))

    def written(self, record: Planted) -> bytes:
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields_of(record).items())
        return f"---\n{plain(front)}---\n\n{record.text}\n".encode()

    def change(self, record: Planted) -> None:
        self.files_by_id()[record.id].write_bytes(self.written(record))

    def read(self) -> Mapping[str, Planted]:
        return {id: record_of(*self.parse(path)) for id, path in self.files_by_id().items()}

    def raw(self) -> Mapping[str, bytes]:
        return {id: path.read_bytes() for id, path in self.files_by_id().items()}


def plain(text: str) -> str:
    """Write the characters that JSON escapes as two surrogates, as YAML wants them."""
    return re.sub(
        r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}",
        lambda match: json.loads(f'"{match[0]}"'),
        text,
    )


class OneFile(Notes):
    """All records in one note, each with its fields in comments."""

    path = "notes.md"
    has_metadata = False
    eol: ClassVar[str] = "\n"

    @property
    def file(self) -> Path:
        return self.folder / "notes.md"

    def make(self) -> None:
        self.file.write_bytes(b"")

    @abstractmethod
    def pieces(self, text: str) -> Iterator[str]:
        """Yield the text of each record."""

    @abstractmethod
    def written(self, record: Planted) -> str: ...

    def content(self) -> str:
        return self.file.read_bytes().decode("utf-8")

    def parse(self, piece: str) -> Planted:
        fields = {name: load(value) for name, value in re.findall(r"<!-- (\w+): (.*?) -->", piece)}
        text = re.sub(r"<!-- (?!purged)\w+: .*? -->", "", piece)
        return record_of(fields, " ".join(self.bare(text).split(" ")).strip())

    @abstractmethod
    def bare(self, text: str) -> str: ...

    def comments(self, record: Planted) -> list[str]:
        return [
            f"<!-- {name}: {plain(json.dumps(value))} -->"
            for name, value in fields_of(record).items()
        ]

    def plant(self, records: Sequence[Planted]) -> None:
        text = self.content() + "".join(self.written(record) for record in records)
        self.file.write_bytes(text.encode())

    def change(self, record: Planted) -> None:
        content = self.content()
        for piece in self.pieces(content):
            if self.parse(piece).id == record.id:
                content = content.replace(piece, self.written(record))
        self.file.write_bytes(content.encode())

    def read(self) -> Mapping[str, Planted]:
        records = [self.parse(piece) for piece in self.pieces(self.content())]
        return {record.id: record for record in records}

    def raw(self) -> Mapping[str, bytes]:
        return {
            self.parse(piece).id: piece.strip().encode() for piece in self.pieces(self.content())
        }


class Sections(OneFile):
    """Sections of one note, with Windows line ends."""

    record = "section"
    eol = "\r\n"

    def pieces(self, text: str) -> Iterator[str]:
        yield from re.findall(r"## .*?(?=## |\Z)", text, re.DOTALL)

    def written(self, record: Planted) -> str:
        lines = ["## Remembered", "", *self.comments(record), "", record.text, "", ""]
        return self.eol.join(lines)

    def bare(self, text: str) -> str:
        return re.sub(r"\A## (Remembered)?", "", text).strip()


class Blocks(OneFile):
    """List items of one note."""

    record = "block"

    def pieces(self, text: str) -> Iterator[str]:
        yield from re.findall(r"^- .*\n", text, re.MULTILINE)

    def written(self, record: Planted) -> str:
        return f"- {record.text} {' '.join(self.comments(record))}\n"

    def bare(self, text: str) -> str:
        return text.removeprefix("- ").strip()


class TestFiles(AdapterContract):
    harness = FileNotes


@pytest.mark.long
class TestSections(AdapterContract):
    harness = Sections


class TestBlocks(AdapterContract):
    harness = Blocks
