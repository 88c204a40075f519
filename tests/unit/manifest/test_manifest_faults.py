"""A manifest that is wrong: all of it is said at once, each fault with its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from purge.errors import ExitCode, ManifestFault
from purge.manifest import load_manifest
from purge.registry import Registry

Faults = Callable[..., list[str]]
HEAD = "purge: 1\nsites:\n"


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_file(faults: Faults) -> None:
    text = """\
purge: 1
nme: x
timezone: Asia/Tokio
safety:
  max_records: many
  snapshot: {site: backup, max_age: 26x}
sites:
  logs: {adapter: foldr, path: x}
  notes:
    adapter: folder
    pth: data
    text: words
    parts: [a, {name: x, wieght: 2}, 7]
  server:
    adapter: server
    url: ${NOT_SET}
    action: blank
  summaries: {adapter: folder, path: s, derived_from: {nots: x}, action: delte}
markers: {from: [nots], when_done: strik}
"""
    assert faults(text) == [
        "purge.yaml:2:1: nme: unknown key. Did you mean 'name'?",
        "purge.yaml:3:11: timezone: is not the IANA name of a time zone. "
        "Did you mean 'Asia/Tokyo'?",
        "purge.yaml:5:16: safety.max_records: must be a whole number.",
        "purge.yaml:6:20: safety.snapshot.site: There is no such site.",
        "purge.yaml:6:37: safety.snapshot.max_age: must be a length of time such as 26h or 2d.",
        "purge.yaml:8:19: sites.logs.adapter: There is no adapter 'foldr'. Did you mean 'folder'?",
        "purge.yaml:9:3: sites.notes.path: is missing.",
        "purge.yaml:11:5: sites.notes.pth: unknown key. Did you mean 'path'?",
        "purge.yaml:12:11: sites.notes.text: must be a list.",
        "purge.yaml:13:26: sites.notes.parts[1].wieght: unknown key. Did you mean 'weight'?",
        "purge.yaml:13:38: sites.notes.parts[2]: must be a mapping (key: value) or text.",
        "purge.yaml:15:14: sites.server.adapter: The driver of the adapter 'server' is not "
        "installed (no_such_driver_anywhere). Install it: pip install "
        "'purge-orchestrator[server]'",
        "purge.yaml:16:10: sites.server.url: The environment variable NOT_SET is not set.",
        "purge.yaml:17:13: sites.server.action: The adapter 'server' cannot 'blank'. "
        "It can: delete, report.",
        "purge.yaml:18:56: sites.summaries.derived_from.nots: There is no such site. "
        "Did you mean 'notes'?",
        "purge.yaml:18:74: sites.summaries.action: must be one of: delete, blank, report. "
        "Did you mean 'delete'?",
        "purge.yaml:19:18: markers.from[0]: There is no such site. Did you mean 'notes'?",
        "purge.yaml:19:36: markers.when_done: must be one of: keep, strike. Did you mean 'strike'?",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("sites: {a: {adapter: folder, path: x}}", "1:1: 'purge: 1' is missing"),
        ("purge: 2\nsites: {a: {adapter: folder, path: x}}", "1:8: purge: This program under"),
        ("purge: '1'\nsites: {a: {adapter: folder, path: x}}", "1:8: purge: must be a whole"),
        ("purge: true\nsites: {a: {adapter: folder, path: x}}", "1:8: purge: must be a whole"),
        ("purge: 1", "1:1: sites: There are no sites"),
        ("purge: 1\nsites:", "2:7: sites: There are no sites"),
        ("purge: 1\nsites: {}", "2:1: sites: There are no sites"),
        ("purge: 1\nsites: [a]", "2:1: sites: must be a mapping (name:"),
        ("purge: 1\nsites: text", "2:8: sites: must be a mapping (name:"),
        (HEAD + "  a:", "3:5: sites.a: must be a mapping"),
        (HEAD + "  a: [x]", "3:3: sites.a: must be a mapping"),
        (HEAD + "  a: {path: x}", "3:3: sites.a.adapter: is missing."),
        (HEAD + "  a: {adapter: , path: x}", "3:16: sites.a.adapter: is empty; it must be text."),
        (HEAD + "  a: {adapter: folder, path: }", "3:30: sites.a.path: is empty; it must be text"),
        (HEAD + "  a: {adapter: folder, path: 5}", "3:30: sites.a.path: must be text. Put it in q"),
        (HEAD + "  a: {adapter: folder, path: x, batch: '5'}", "must be a whole number."),
        (HEAD + "  a: {adapter: folder, path: x, batch: 1.5}", "must be a whole number."),
        (HEAD + "  a: {adapter: folder, path: x, follow: yes}", "must be true or false."),
        (HEAD + "  a: {adapter: folder, path: x, follow: 1}", "must be true or false."),
        (HEAD + "  a: {adapter: folder, path: x, id: 5}", "sites.a.id: must be text or a list."),
        (HEAD + "  a: {adapter: folder, path: x, id: [5]}", "sites.a.id[0]: must be text. Put"),
        (HEAD + "  a: {adapter: folder, path: x, record: fle}", "Did you mean 'file'?"),
        (HEAD + "  a: {adapter: folder, path: x, parts: [{}]}", "sites.a.parts[0].name: is missi"),
        (HEAD + "  a: {adapter: folder, path: x, subject: ''}", "subject: may not be empty."),
        (HEAD + "  a: {adapter: folder, path: x, scope: {p: 5}}", "scope.p: must be text. Put"),
        (HEAD + "  a: {adapter: folder, path: x, scope: p}", "scope: must be a mapping"),
        (HEAD + "  a: {adapter: folder, path: x, scpe: {}}", "Did you mean 'scope'?"),
        (HEAD + "  a: {adapter: folder, path: x, derived_from: b}", "must be a mapping"),
        (HEAD + "  a: {adapter: folder, path: x, derived_from: {a: i}}", "derive from itself"),
        (HEAD + "  'a b': {adapter: folder, path: x}", "3:3: sites.a b: A site's name"),
        (HEAD + "  'a:b': {adapter: folder, path: x}", "3:3: sites.a:b: A site's name"),
        (HEAD + "  a: {adapter: folder, path: x, provider_retention: 30d}", "Say where the provid"),
        (
            HEAD + "  a: {adapter: folder, path: x, provider_retention: {period: 30d}}",
            "provider_retention.source: is missing.",
        ),
        (
            HEAD + "  a: {adapter: folder, path: x, "
            "provider_retention: {period: 30, source: contract}}",
            "provider_retention.period: must be text.",
        ),
        (HEAD + "  a: {adapter: folder, path: x}\nmarkers:", "4:9: markers: is empty."),
        (HEAD + "  a: {adapter: folder, path: x}\nmarkers: {}", "markers.from: is missing."),
        (HEAD + "  a: {adapter: folder, path: x}\nmarkers: {from: []}", "may not be empty."),
        (HEAD + "  a: {adapter: folder, path: x}\nmarkers: {from: a}", "from: must be a list."),
        (
            HEAD + "  a: {adapter: folder, path: x}\nmarkers: {from: [{site: b}]}",
            "markers.from[0].site: There is no such site.",
        ),
        (HEAD + "  a: {adapter: folder, path: x}\nsafety: {max_records: 0}", "must be at least 1."),
        (
            HEAD + "  a: {adapter: folder, path: x}\nsafety: {min_phrase_width: -1}",
            "must be at least 1.",
        ),
        (HEAD + "  a: {adapter: folder, path: x}\nsafety: 5", "safety: must be a mapping"),
        (HEAD + "  a: {adapter: folder, path: x}\nledger: {pth: x}", "Did you mean 'path'?"),
        (HEAD + "  a: {adapter: folder, path: x}\ntimezone: ../../etc", "time zone"),
        (HEAD + "  a: {adapter: folder, path: x}\ntimezone: Europe", "time zone"),
        (HEAD + "  a: {adapter: folder, path: x}\ntimezone: ''", "timezone: may not be empty."),
        (HEAD + "  a: {adapter: folder, path: x}\n  a: {adapter: folder, path: y}", "twice"),
        (HEAD + "  a: {adapter: folder, path: x, path: y}", "3:33: sites.a.path: This key stands"),
        (HEAD + "  a: {adapter: !x folder, path: x}", "Tags"),
    ],
)
def test_one_fault_is_one_sentence_with_its_place(faults: Faults, text: str, fault: str) -> None:
    found = faults(text + "\n")
    assert len(found) == 1, found
    assert fault in found[0]
    assert found[0].startswith("purge.yaml:")


@pytest.mark.parametrize("span", ["26", "h", "0h", "-1h", "1.5h", "1h1h", "26 h", "9999999d", "1y"])
def test_a_bad_length_of_time_is_refused(faults: Faults, span: str) -> None:
    text = (
        HEAD
        + f"  a: {{adapter: folder, path: x}}\nsafety: {{snapshot: {{site: a, max_age: '{span}'}}}}"
    )
    (fault,) = faults(text)
    assert "max_age: must be a length of time" in fault


def test_a_circle_of_sources_is_named(faults: Faults) -> None:
    text = HEAD + (
        "  start: {adapter: folder, path: s, derived_from: {a: x}}\n"
        "  a: {adapter: folder, path: a, derived_from: {b: x}}\n"
        "  b: {adapter: folder, path: b, derived_from: {c: x}}\n"
        "  c: {adapter: folder, path: c, derived_from: {a: x, start-of-nothing: y}}\n"
    )
    circle, missing = faults(text)
    assert circle.startswith("purge.yaml:4:48: sites.a.derived_from.b: ")
    assert "a from b from c from a." in circle
    assert "start-of-nothing: There is no such site." in missing


@pytest.mark.parametrize("path", ["../out", "/etc", "data/../../out", "link/below", "link/*.jsonl"])
def test_a_path_that_leaves_the_root_is_refused_unless_the_site_says_so(
    faults: Faults, load: Callable[..., object], tmp_path: Path, path: str
) -> None:
    (tmp_path / "link").symlink_to("/usr")
    text = HEAD + f"  a: {{adapter: folder, path: {path}OPTION}}\n"
    (fault,) = faults(text.replace("OPTION", ""))
    assert "sites.a.path: This path leaves the root." in fault
    assert path not in fault
    load(text.replace("OPTION", ", outside_root: true"))


def test_paths_in_keys_that_the_adapter_marks_may_not_leave_the_root_either(faults: Faults) -> None:
    (fault,) = faults(HEAD + "  a: {adapter: folder, path: x, other_place: ../y}\n")
    assert "sites.a.other_place: This path leaves the root." in fault


def test_a_path_inside_another_root_is_inside(load: Callable[..., object], tmp_path: Path) -> None:
    load(f"purge: 1\nroot: {tmp_path.parent}\nsites: {{a: {{adapter: folder, path: x/y}}}}\n")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "There is no manifest at"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (lambda path: os.mkfifo(path), "is not a regular file"),
        (lambda path: path.write_bytes(b"#" * 2_000_000), "is larger than 1024 KiB"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, registry: Registry, make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "purge.yaml"
    make(path)
    with pytest.raises(ManifestFault, match=words) as caught:
        load_manifest(path, {}, registry)
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_file_that_is_not_utf8_is_refused_with_the_place(
    tmp_path: Path, registry: Registry
) -> None:
    path = tmp_path / "purge.yaml"
    path.write_bytes(b"purge: 1\nname: caf\xe9\n")
    with pytest.raises(ManifestFault) as caught:
        load_manifest(path, {}, registry)
    assert caught.value.faults == (f"{path}:2:10: The file is not UTF-8 text.",)
    path.write_text("purge: 1\n", encoding="utf-16")
    with pytest.raises(ManifestFault, match="1 fault"):
        load_manifest(path, {}, registry)


def test_no_permission_is_said(
    tmp_path: Path, registry: Registry, load: Callable[..., object]
) -> None:
    load(HEAD + "  a: {adapter: folder, path: x}\n")
    path = tmp_path / "purge.yaml"
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        # Root may read everything, so somebody else has to try.
        os.seteuid(65534)
    try:
        with pytest.raises(ManifestFault, match="permission denied"):
            load_manifest(path, {}, registry)
    finally:
        os.seteuid(user)


def test_an_adapter_that_claims_the_manifests_keys_is_refused(tmp_path: Path, toys: str) -> None:
    path = tmp_path / "purge.yaml"
    path.write_text("purge: 1\nsites: {a: {adapter: greedy}}\n")
    with pytest.raises(ManifestFault) as caught:
        load_manifest(path, {}, Registry({"greedy": f"{toys}:Greedy"}))
    assert "claims keys that are the manifest's: scope" in caught.value.faults[0]


def test_two_distributions_with_one_adapter_name_are_a_fault_of_the_site(
    tmp_path: Path, toys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        metadata = tmp_path / "site" / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(
            f"[purge.adapters]\nshared = {toys}:Folder{name.title()}\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    path = tmp_path / "purge.yaml"
    path.write_text("purge: 1\nsites: {a: {adapter: shared}, b: {adapter: nowhere}}\n")
    with pytest.raises(ManifestFault) as caught:
        load_manifest(path, {}, Registry({}))
    first, second = caught.value.faults
    assert "registered more than once (first, second)" in first
    assert "There is no adapter 'nowhere'." in second
