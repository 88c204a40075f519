"""Adapters by name: what is found, what is refused, and what is not imported meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
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
    Site,
    Statement,
)
from purge.errors import ExitCode, MissingDriver
from purge.registry import BadAdapter, Registry, UnknownAdapter
from purge.shapes import ShapeFault
from purge.targets import Targets


def info(name: str, **more: Any) -> AdapterInfo:
    return AdapterInfo(name, name, EvidenceKind.API, frozenset({Action.DELETE}), **more)


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    size: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    path: str
    mode: Literal["file", "line"] = "file"
    inner: Inner | None = None
    from_: tuple[str, ...] = ()
    limit: int = field(default=5, metadata={"description": "How many."})

    def __post_init__(self) -> None:
        if self.limit > 100:
            raise ValueError("more than a hundred is not possible")


class Complete(Adapter[Settings]):
    info: ClassVar = info("complete")
    Settings: ClassVar[type] = Settings

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


class WithDriver(Complete):
    info: ClassVar = info("driven", extra="special", modules=("json", "no_such_module_anywhere"))


class WithNestedDriver(Complete):
    info: ClassVar = info("nested", modules=("no_such_module_anywhere.inner",))


class WithInstalledDriver(Complete):
    info: ClassVar = info("installed", extra="special", modules=("json",))


class HalfDone(Adapter[Settings]):
    info: ClassVar = info("half")
    Settings: ClassVar[type] = Settings


class NoInfo(Complete):
    info: ClassVar[Any] = "not an AdapterInfo"


class NoSettings(Complete):
    info: ClassVar = info("no-settings")
    Settings: ClassVar[type] = dict


class NotAnAdapter:
    pass


def registry(*names: str, **more: str) -> Registry:
    found = {
        "complete": "Complete",
        "driven": "WithDriver",
        "nested": "WithNestedDriver",
        "installed": "WithInstalledDriver",
    }
    return Registry({name: f"{__name__}:{target}" for name, target in {**found, **more}.items()})


def distribution(folder: Path, name: str, points: str) -> None:
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[purge.adapters]\n{points}\n")


def test_a_built_in_adapter_is_found() -> None:
    assert registry().load("complete") is Complete
    assert registry().names() == ("complete", "driven", "installed", "nested")


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownAdapter, match=r"no adapter 'Compleet'. Did you mean 'complete'\?"):
        registry().load("Compleet")
    with pytest.raises(
        UnknownAdapter, match="Known: complete, driven, installed, nested"
    ) as caught:
        registry().load("xyz")
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module_anywhere:X", "cannot be imported: ModuleNotFoundError"),
        (f"{__name__}:Nothing", "cannot be imported: AttributeError"),
        (__name__, "cannot be imported"),
        (":X", "cannot be imported: ValueError"),
        (f"{__name__}:NotAnAdapter", "is not a subclass of purge.adapter.Adapter"),
        (f"{__name__}:info", "is not a subclass of purge.adapter.Adapter"),
        (f"{__name__}:HalfDone", "it lacks: check, find, remove, residue, sanitize"),
        (f"{__name__}:NoInfo", "has no 'info'"),
        (f"{__name__}:NoSettings", "calls itself 'no-settings'"),
        (f"{__name__}:WithDriver", "calls itself 'driven'"),
    ],
)
def test_what_is_no_adapter_is_refused(target: str, words: str) -> None:
    with pytest.raises(BadAdapter, match=words):
        Registry({"x": target}).load("x")


def test_settings_have_to_be_a_dataclass() -> None:
    with pytest.raises(BadAdapter, match="no 'Settings' that is a dataclass"):
        Registry({"no-settings": f"{__name__}:NoSettings"}).load("no-settings")


def test_a_missing_driver_names_the_extra_to_install() -> None:
    assert registry().load("driven") is WithDriver
    with pytest.raises(MissingDriver) as caught:
        registry().require("driven")
    assert "(no_such_module_anywhere)" in str(caught.value)
    assert "pip install 'purge-orchestrator[special]'" in str(caught.value)
    with pytest.raises(MissingDriver, match=r"pip install 'no_such_module_anywhere\.inner'"):
        registry().require("nested")
    assert registry().require("installed") is WithInstalledDriver


def test_a_folder_that_happens_to_have_the_drivers_name_is_no_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_such_module_anywhere").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingDriver):
        registry().require("driven")


def test_an_adapter_of_another_distribution_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "other-adapters", f"driven = {__name__}:WithDriver")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Registry({})
    assert found.load("driven") is WithDriver
    assert found.names() == ("driven",)
    with pytest.raises(MissingDriver, match=r"pip install 'other-adapters\[special\]'"):
        found.require("driven")


def test_a_name_that_is_taken_twice_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "first", f"driven = {__name__}:WithDriver")
    distribution(tmp_path, "second", f"driven = {__name__}:Complete")
    monkeypatch.syspath_prepend(str(tmp_path))
    for look in (Registry({}).names, lambda: Registry({}).load("driven")):
        with pytest.raises(BadAdapter, match=r"'driven' is .* more than once \(first, second\)"):
            look()


def test_a_name_that_is_built_in_cannot_be_taken_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "first", "complete = x:Y")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadAdapter, match=r"'complete' is .* more than once \(first, purge-orch"):
        Registry({"complete": f"{__name__}:Complete"}).names()
    assert Registry({"complete": f"{__name__}:Complete"}).load("complete") is Complete


def test_one_distribution_that_is_seen_twice_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "two"):
        distribution(tmp_path / folder, "other", f"complete = {__name__}:Complete")
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert Registry({}).load("complete") is Complete


def test_settings_are_checked_and_all_faults_are_said() -> None:
    made = registry().settings("complete", {"path": "x", "inner": {"name": "n"}, "from": ["a"]})
    assert made == Settings("x", inner=Inner("n"), from_=("a",))
    with pytest.raises(ShapeFault) as caught:
        registry().settings(
            "complete",
            {
                "pth": "x",
                "mode": "fle",
                "inner": {"nme": "n", "size": "5"},
                "limit": True,
                "actn": 1,
            },
            also=("action",),
        )
    assert {(fault.path, fault.sentence) for fault in caught.value.faults} == {
        (("path",), "is missing."),
        (("pth",), "unknown key. Did you mean 'path'?"),
        (("mode",), "must be one of: file, line. Did you mean 'file'?"),
        (("inner", "name"), "is missing."),
        (("inner", "nme"), "unknown key. Did you mean 'name'?"),
        (("inner", "size"), "must be a whole number."),
        (("limit",), "must be a whole number."),
        (("actn",), "unknown key. Did you mean 'action'?"),
    }


def test_what_settings_say_of_themselves_is_a_fault() -> None:
    with pytest.raises(ShapeFault, match=r"more than a hundred is not possible\."):
        registry().settings("complete", {"path": "x", "limit": 101})


def test_an_adapter_is_made_for_one_site(tmp_path: Path) -> None:
    site = Site("a", tmp_path)
    made = registry().make("complete", site, Settings("x"))
    assert isinstance(made, Complete)
    assert (made.site, made.settings) == (site, Settings("x"))
    with pytest.raises(MissingDriver):
        registry().make("driven", site, Settings("x"))


def test_looking_up_a_built_in_adapter_reads_no_metadata_and_no_driver() -> None:
    code = """
import sys
from purge.registry import Registry
Registry({"x": "purge.adapter:Adapter"})
heavy = {"importlib.metadata", "pydantic", "yaml", "difflib"} & set(sys.modules)
sys.exit(repr(heavy) if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
