"""Adapters that do nothing, and a way to load a manifest from a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    Control,
    EvidenceKind,
    Examined,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Statement,
)
from purge.manifest import Manifest, load_manifest
from purge.registry import Registry
from purge.targets import Targets


class Idle(Adapter[Any]):
    """All four verbs, none of which does anything."""

    def check(self) -> Iterator[Statement]:
        yield Statement("idle")

    def find(self, targets: Targets) -> Iterator[Finding]:
        yield Examined()

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        yield from ()

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        yield from ()

    def residue(self, targets: Targets) -> Iterator[Observation]:
        yield Control(None, passed=True, on_target=False)


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping within the settings."""

    name: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class FolderSettings:
    path: str = field(metadata={"description": "The folder."})
    text: list[str] = field(default_factory=list, metadata={"description": "Text fields."})
    record: Literal["file", "section"] = field(
        default="file", metadata={"description": "The unit of removal."}
    )
    batch: int = field(default=10, metadata={"description": "How many at a time."})
    follow: bool = field(default=False, metadata={"description": "Whether to follow."})
    parts: list[Part | str] = field(default_factory=list, metadata={"description": "Parts."})
    id: str | list[str] = field(default="id", metadata={"description": "The id."})
    other_place: str | None = field(
        default=None, metadata={"description": "A second folder.", "path": True}
    )


class Folder(Idle):
    info: ClassVar = AdapterInfo(
        "folder", "A folder.", EvidenceKind.BYTES, frozenset({Action.DELETE, Action.BLANK})
    )
    Settings: ClassVar[type] = FolderSettings


@dataclass(frozen=True, slots=True)
class ServerSettings:
    url: str = field(metadata={"description": "Where it is."})
    password: str | None = field(default=None, metadata={"description": "The password."})


class Server(Idle):
    info: ClassVar = AdapterInfo(
        "server",
        "A server.",
        EvidenceKind.API,
        frozenset({Action.DELETE}),
        extra="server",
        modules=("no_such_driver_anywhere",),
    )
    Settings: ClassVar[type] = ServerSettings


class Reachable(Server):
    info: ClassVar = AdapterInfo(
        "reachable",
        "A server whose driver is there.",
        EvidenceKind.API,
        frozenset({Action.DELETE}),
        extra="server",
        modules=("json",),
    )


@dataclass(frozen=True, slots=True)
class GreedySettings:
    scope: str = "mine"


class Greedy(Idle):
    """It wants a key that every site has."""

    info: ClassVar = AdapterInfo("greedy", "Greedy.", EvidenceKind.API, frozenset({Action.DELETE}))
    Settings: ClassVar[type] = GreedySettings


Load = Callable[..., Manifest]


@pytest.fixture
def toys() -> str:
    """The module that the adapters of this file are registered from."""
    return __name__


@pytest.fixture
def registry() -> Registry:
    return Registry(
        {
            "folder": f"{__name__}:Folder",
            "server": f"{__name__}:Server",
            "reachable": f"{__name__}:Reachable",
        }
    )


@pytest.fixture
def load(tmp_path: Path, registry: Registry) -> Load:
    def load_text(text: str, environ: Mapping[str, str] | None = None) -> Manifest:
        path = tmp_path / "purge.yaml"
        path.write_text(text, encoding="utf-8")
        return load_manifest(path, environ or {}, registry)

    return load_text


@pytest.fixture
def faults(load: Load, tmp_path: Path) -> Callable[..., list[str]]:
    """Load a manifest that must be refused, and return its faults without the folder."""
    from purge.errors import ManifestFault

    def refused(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ManifestFault) as caught:
            load(text, environ)
        return [fault.removeprefix(f"{tmp_path}/") for fault in caught.value.faults]

    return refused
