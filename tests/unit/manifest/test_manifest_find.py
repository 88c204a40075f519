"""Which manifest is used, and where its ledger is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from purge.errors import ManifestFault, UsageFault
from purge.manifest import find_manifest, load_manifest, locate_ledger
from purge.registry import Registry

TEXT = "purge: 1\nsites: {a: {adapter: folder, path: x}}\n"


def test_the_nearest_one_upwards_is_used(tmp_path: Path) -> None:
    below = tmp_path / "one/two/three"
    below.mkdir(parents=True)
    (tmp_path / "purge.yaml").write_text(TEXT)
    assert find_manifest(below, {}) == tmp_path / "purge.yaml"
    (tmp_path / "one/purge.yaml").write_text(TEXT)
    assert find_manifest(below, {}) == tmp_path / "one/purge.yaml"
    assert find_manifest(tmp_path / "one", {}) == tmp_path / "one/purge.yaml"


def test_the_environment_comes_first_and_empty_is_unset(tmp_path: Path) -> None:
    (tmp_path / "purge.yaml").write_text(TEXT)
    named = {"PURGE_MANIFEST": "/elsewhere/team.yaml"}
    assert find_manifest(tmp_path, named) == Path("/elsewhere/team.yaml")
    assert find_manifest(tmp_path, {"PURGE_MANIFEST": "t.yaml"}) == tmp_path / "t.yaml"
    assert find_manifest(tmp_path, {"PURGE_MANIFEST": ""}) == tmp_path / "purge.yaml"


def test_none_is_a_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="--manifest FILE"):
        find_manifest(tmp_path, {})


def test_one_that_someone_else_put_above_is_not_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "purge.yaml"
    planted.write_text(TEXT)
    (tmp_path / "below").mkdir()
    if os.geteuid() == 0:
        os.chown(planted, 65534, 65534)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 65533)
    with pytest.raises(UsageFault, match="belongs to another user"):
        find_manifest(tmp_path / "below", {})
    assert find_manifest(tmp_path, {}) == planted


@pytest.mark.parametrize(
    "more",
    [
        "",
        "name: mine\ntimezone: Asia/Bangkok\n",
        "ledger: {path: l/x.db}\n",
        "ledger: {key_file: ../key}\nroot: data\n",
        "ledger: {path: '${PLACE}/x.db'}\nname: '${PLACE}'\n",
        "root: below\n",
    ],
)
@pytest.mark.parametrize("file", ["purge.yaml", "team.yaml"])
def test_the_quick_look_and_the_full_one_agree(
    tmp_path: Path, registry: Registry, more: str, file: str
) -> None:
    path = tmp_path / file
    path.write_text(TEXT + more)
    environ = {"PLACE": "somewhere"}
    full = load_manifest(path, environ, registry)
    quick = locate_ledger(path, environ)
    for name in ("name", "timezone", "ledger", "key_file", "keys"):
        assert getattr(quick, name) == getattr(full, name), name
    assert quick.manifest == full.path


def test_faults_of_sites_do_not_keep_the_ledger_from_being_read(tmp_path: Path) -> None:
    path = tmp_path / "purge.yaml"
    path.write_text("purge: 1\nsites: {a: {adapter: nowhere, url: '${NOT_SET}'}}\n")
    assert locate_ledger(path, {}).ledger == tmp_path / ".purge/ledger.db"


@pytest.mark.parametrize(
    "more", ["ledger: 5", "ledger: {path: 5}", "ledger: {path: '${NOT_SET}'}", "timezone: Nowhere"]
)
def test_a_ledger_whose_place_is_wrong_is_not_guessed(tmp_path: Path, more: str) -> None:
    path = tmp_path / "purge.yaml"
    path.write_text(TEXT + more + "\n")
    with pytest.raises(ManifestFault, match="purge check"):
        locate_ledger(path, {})


def test_the_quick_look_needs_neither_pydantic_nor_entry_points(tmp_path: Path) -> None:
    path = tmp_path / "purge.yaml"
    path.write_text(TEXT)
    code = f"""
import sys
import purge.registry, purge.manifest
from purge.manifest import locate_ledger
early = {{"yaml"}} & set(sys.modules)
locate_ledger(__import__("pathlib").Path({str(path)!r}), {{}})
heavy = {{"pydantic", "importlib.metadata", "difflib", "chromadb", "sqlalchemy"}} & set(sys.modules)
sys.exit(repr((early, heavy)) if early or heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
