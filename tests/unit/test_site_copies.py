"""A site looked at in a copy: every absolute path of it lies below the copy's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Adapter, Match, Removal, Site
from purge.errors import Permanent, Refused
from purge.targets import Target, TargetKind, Targets
from purge_adapters._sql_settings import SqlSettings
from purge_adapters.jsonl import JsonlAdapter, JsonlSettings
from purge_adapters.markdown import MarkdownAdapter, MarkdownSettings
from purge_adapters.sql import SqlAdapter

WORDS = "the harbour lights are never switched off"


def test_relative_and_absolute_paths_move_into_the_copy(tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    site = Site("logs", original).copied_to(copy)
    inside = copy / str(original).lstrip("/")
    assert site.path("data/a.jsonl") == inside / "data/a.jsonl"
    assert site.path(str(original / "data")) == inside / "data"


def test_no_path_of_a_copy_reaches_the_original(tmp_path: Path) -> None:
    site = Site("logs", tmp_path / "original").copied_to(tmp_path / "copy")
    with pytest.raises(Refused):
        site.path("../elsewhere")
    outside = Site("logs", tmp_path / "original", outside_root=True).copied_to(tmp_path / "copy")
    assert outside.path("/etc/hosts") == tmp_path / "copy/etc/hosts"


@pytest.mark.parametrize("written", ["relative", "absolute", "pattern"])
def test_jsonl_and_markdown_look_into_a_copy_and_clean_it(tmp_path: Path, written: str) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    inside = copy / str(original).lstrip("/")
    for root in (original, inside):
        (root / "logs").mkdir(parents=True)
        (root / "notes").mkdir()
    (inside / "logs/a.jsonl").write_text(f'{{"id": "1", "text": "{WORDS}"}}\n{{"id": "2"}}\n')
    (inside / "notes/a.md").write_text(f"# One\n\n{WORDS}\n")
    paths = {
        "relative": ("logs", "notes"),
        "absolute": (str(original / "logs"), str(original / "notes")),
        "pattern": (str(original / "logs/*.jsonl"), str(original / "notes/*.md")),
    }[written]
    site = Site("site", original)
    targets = Targets([Target(1, TargetKind.PHRASE, WORDS)])
    there = site.copied_to(copy)
    adapters: list[Adapter[Any]] = [
        JsonlAdapter(there, JsonlSettings(path=paths[0], id="id")),
        MarkdownAdapter(there, MarkdownSettings(path=paths[1])),
    ]
    for adapter in adapters:
        found = [item for item in adapter.find(targets) if isinstance(item, Match)]
        assert len(found) == 1
        removals = [Removal(match, "request", site.clock()) for match in found]
        assert list(adapter.remove(removals)) == []
    assert (inside / "logs/a.jsonl").read_text() == '{"id": "2"}\n'
    assert WORDS not in (inside / "notes/a.md").read_text()


def test_footprints_name_what_a_backup_has_to_hold(tmp_path: Path) -> None:
    site = Site("site", tmp_path)
    assert JsonlAdapter(site, JsonlSettings(path=["logs", "old/*.jsonl"], id="id")).footprint() == (
        tmp_path / "logs",
        tmp_path / "old",
    )
    assert MarkdownAdapter(site, MarkdownSettings(path="notes")).footprint() == (
        tmp_path / "notes",
    )
    assert SqlAdapter(
        site, SqlSettings(url="sqlite:///m.db", table="memories", id="id")
    ).footprint() == tuple(tmp_path / name for name in ("m.db", "m.db-wal", "m.db-journal"))


def test_a_site_that_keeps_no_backups_vouches_for_nothing(tmp_path: Path) -> None:
    adapter = JsonlAdapter(Site("logs", tmp_path), JsonlSettings(path="logs", id="id"))
    with pytest.raises(Permanent, match="keeps no backups"):
        list(adapter.snapshots())
