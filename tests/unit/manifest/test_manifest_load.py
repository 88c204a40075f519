"""What a manifest without faults becomes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.adapter import Action
from purge.manifest import (
    Manifest,
    MarkerSource,
    Retention,
    Snapshot,
    load_manifest,
)
from purge.manifest.model import Safety, SiteEntry
from purge.manifest.sites import find_cycle
from purge.registry import Registry

Load = Callable[..., Manifest]

FULL = """\
purge: 1
name: everything
root: data
timezone: Asia/Tokyo
safety:
  min_phrase_width: 8
  max_records: 100
  snapshot: {site: raw, max_age: 1d2h}
sites:
  summaries:
    adapter: folder
    path: summaries
    action: blank
    derived_from: {memories: $id, notes: }
    when_source_purged: delete
    scope: {project: meta.project}
    subject: meta.user
    parts: [plain, {name: n, weight: 2}]
    provider_retention: {period: 30d, source: "Contract, section 4"}
  raw: {adapter: folder, path: raw, outside_root: true}
  memories: {adapter: folder, path: m, derived_from: {raw: source.id}}
  notes: {adapter: folder, path: n}
markers:
  from: [notes, {site: raw, where: {role: user}}]
  when_done: strike
ledger: {path: private/requests.db, key_file: private/secret}
"""


def test_every_key_arrives(load: Load, tmp_path: Path) -> None:
    manifest = load(FULL)
    assert manifest.path == tmp_path / "purge.yaml"
    assert manifest.root == tmp_path / "data"
    assert manifest.name == "everything"
    assert manifest.timezone.key == "Asia/Tokyo"
    assert manifest.safety == Safety(8, 100, Snapshot("raw", timedelta(days=1, hours=2)))
    assert list(manifest.sites) == ["summaries", "raw", "memories", "notes"]
    entry = manifest.sites["summaries"]
    assert entry.adapter == "folder"
    assert entry.action is Action.BLANK
    assert entry.derived_from == {"memories": "$id", "notes": None}
    assert entry.when_source_purged == "delete"
    assert entry.scope == {"project": "meta.project"}
    assert entry.subject == "meta.user"
    assert entry.provider_retention == Retention(timedelta(days=30), "Contract, section 4")
    assert entry.settings == {
        "path": "summaries",
        "parts": ["plain", {"name": "n", "weight": 2}],
    }
    assert (entry.line, entry.lines["path"], entry.lines["parts"]) == (10, 12, 18)
    checked = entry.checked
    assert getattr(checked, "path", None) == "summaries"
    assert getattr(checked, "batch", None) == 10
    assert getattr(getattr(checked, "parts", [])[1], "weight", None) == 2.0
    assert manifest.sites["raw"].outside_root
    assert manifest.markers is not None
    assert manifest.markers.sources == (
        MarkerSource("notes"),
        MarkerSource("raw", {"role": "user"}),
    )
    assert manifest.markers.when_done == "strike"
    assert manifest.ledger == tmp_path / "private/requests.db"
    assert manifest.key_file == tmp_path / "private/secret"
    assert manifest.keys == tmp_path / "private/requests-keys.db"


def test_what_is_left_out_has_the_documented_default(load: Load, tmp_path: Path) -> None:
    manifest = load("purge: 1\nsites: {a: {adapter: folder, path: x}}\n")
    assert manifest.root == tmp_path
    assert manifest.name == tmp_path.name
    assert manifest.timezone.key == "UTC"
    assert manifest.safety == Safety(12, 25, None)
    assert manifest.markers is None
    assert manifest.ledger == tmp_path / ".purge/ledger.db"
    assert manifest.key_file == tmp_path / ".purge/ledger.key"
    assert manifest.keys == tmp_path / ".purge/ledger-keys.db"
    entry = manifest.sites["a"]
    assert (entry.action, entry.when_source_purged) == (Action.DELETE, "flag")
    assert not entry.outside_root
    assert (entry.derived_from, entry.scope, entry.subject) == ({}, {}, None)


def test_two_manifests_in_one_folder_have_two_ledgers(tmp_path: Path, registry: Registry) -> None:
    text = "purge: 1\nsites: {a: {adapter: folder, path: x}}\n"
    places = set()
    for name in ("purge.yaml", "team.yaml", "private.yaml"):
        (tmp_path / name).write_text(text)
        manifest = load_manifest(tmp_path / name, {}, registry)
        places |= {manifest.ledger, manifest.key_file, manifest.keys}
    assert len(places) == 9


def test_one_manifest_has_one_ledger_however_it_is_reached(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/purge.yaml").write_text("purge: 1\nsites: {a: {adapter: folder, path: x}}\n")
    (tmp_path / "link.yaml").symlink_to("real/purge.yaml")
    monkeypatch.chdir(tmp_path / "real")
    direct = load_manifest(Path("purge.yaml"), {}, registry)
    linked = load_manifest(tmp_path / "link.yaml", {}, registry)
    assert direct == linked
    assert direct.ledger == tmp_path / "real/.purge/ledger.db"


def test_the_adapter_is_told_what_the_manifest_says(load: Load) -> None:
    manifest = load(FULL)
    site = manifest.sites["summaries"].site(manifest.root)
    assert (site.name, site.root, site.action) == ("summaries", manifest.root, Action.BLANK)
    assert site.derived_from == {"memories": "$id", "notes": None}
    assert (site.scope, site.subject) == ({"project": "meta.project"}, "meta.user")
    assert not site.outside_root


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "purge.yaml"
    path.write_text("purge: 1\nsites: {a: {adapter: folder, path: x}}\n", encoding="utf-8-sig")
    assert load_manifest(path, {}, registry).sites


def test_report_is_possible_at_every_site(load: Load) -> None:
    manifest = load("purge: 1\nsites: {a: {adapter: reachable, url: u, action: report}}\n")
    assert manifest.sites["a"].action is Action.REPORT


def test_loading_touches_nothing(load: Load, tmp_path: Path) -> None:
    load(FULL)
    assert [path.name for path in tmp_path.iterdir()] == ["purge.yaml"]


def test_sources_come_first_and_otherwise_the_order_of_the_file(load: Load) -> None:
    assert load(FULL).sources_first() == ("raw", "memories", "notes", "summaries")


def test_lineage_is_followed_both_ways(load: Load) -> None:
    manifest = load(FULL)
    assert manifest.ancestors("summaries") == {"raw", "memories", "notes"}
    assert manifest.ancestors("raw") == set()
    assert manifest.descendants("raw") == {"memories", "summaries"}
    assert manifest.connected("raw", "summaries")
    assert manifest.connected("summaries", "raw")
    assert manifest.connected("notes", "notes")
    assert not manifest.connected("notes", "raw")


def test_a_deep_net_of_sources_is_looked_through_once() -> None:
    net = {f"{side}{n}": (f"a{n + 1}", f"b{n + 1}") for n in range(60) for side in "ab"}
    assert find_cycle({**net, "a60": (), "b60": ()}) == ()
    assert find_cycle({**net, "a60": (), "b60": ("a58",)}) != ()


def _manifest(sources: dict[str, list[str]], path: Path) -> Manifest:
    from zoneinfo import ZoneInfo

    sites = {
        name: SiteEntry(name, "folder", derived_from=dict.fromkeys(found, "x"))
        for name, found in sources.items()
    }
    return Manifest(path, path, "m", ZoneInfo("UTC"), Safety(), sites, None, path, path, path)


@given(
    st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_any_graph_is_either_a_circle_or_has_an_order(
    graph: list[set[int]], random: object
) -> None:
    names = [f"s{index}" for index in range(len(graph))]
    sources = {
        name: [f"s{source}" for source in sorted(found) if source < len(graph)]
        for name, found in zip(names, graph, strict=True)
    }
    cycle = find_cycle({name: tuple(found) for name, found in sources.items()})
    if cycle:
        around = [*cycle, cycle[0]]
        assert all(after in sources[name] for name, after in pairwise(around))
        return
    manifest = _manifest(sources, Path("/nowhere"))
    order = manifest.sources_first()
    assert sorted(order) == sorted(names)
    for name in names:
        assert all(order.index(source) < order.index(name) for source in sources[name])
        assert name not in manifest.ancestors(name)
        assert all(name in manifest.ancestors(below) for below in manifest.descendants(name))
