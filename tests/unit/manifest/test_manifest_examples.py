"""The manifests that people start from load, follow the schema, and say what they should."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from purge.adapter import Action
from purge.cli.wiring import registry as built_in
from purge.errors import ManifestFault
from purge.manifest import Manifest, load_manifest, manifest_schema

FOLDER = Path(__file__).parents[3] / "manifests"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.yaml"))


ENVIRONMENT = {
    "REDIS_URL": "redis://localhost/0",
    "RESTIC_REPOSITORY": "backups",
    "RESTIC_PASSWORD_FILE": "backups.password",
}


def load(name: str, folder: Path) -> Manifest:
    shutil.copy(FOLDER / name, folder / name)
    return load_manifest(folder / name, ENVIRONMENT, built_in())


def test_there_are_examples_and_the_readme_names_each() -> None:
    assert len(EXAMPLES) >= 3
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in EXAMPLES if f"({name})" not in readme] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_loads_without_its_stores(name: str, tmp_path: Path) -> None:
    manifest = load(name, tmp_path)
    assert manifest.sites
    assert manifest.root == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_follows_the_schema(name: str) -> None:
    validator = Draft202012Validator(manifest_schema(built_in()))
    document: Any = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    assert [error.message for error in validator.iter_errors(document)] == []
    site = next(iter(document["sites"]))
    for broken in ({"pth": "x"}, {"path": 5}, {"adapter": "jsnl"}, {"action": "erase"}):
        changed = {**document, "sites": {site: {**document["sites"][site], **broken}}}
        assert not validator.is_valid(changed), broken


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_slip_in_an_example_is_found(name: str, tmp_path: Path) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    path = tmp_path / name
    path.write_text(
        text.replace("adapter: jsonl", "adapter: jsnol").replace("    id: ", "    di: ")
    )
    with pytest.raises(ManifestFault) as caught:
        load_manifest(path, {}, built_in())
    assert any("Did you mean 'jsonl'?" in fault for fault in caught.value.faults)


def test_every_key_of_the_built_in_adapters_is_described() -> None:
    site = manifest_schema(built_in())["properties"]["sites"]["additionalProperties"]
    undescribed = [
        f"{branch['if']['properties']['adapter']['const']}.{key}"
        for branch in site["allOf"]
        for key, schema in branch["then"]["properties"].items()
        if schema is not True and not schema.get("description")
    ]
    assert undescribed == []


def test_the_personal_memory_derives_as_it_says(tmp_path: Path) -> None:
    manifest = load("personal-rag.yaml", tmp_path)
    assert manifest.sources_first() == (
        "raw-logs",
        "notes",
        "memories",
        "embeddings",
        "summaries",
        "cache",
        "exports",
        "backups",
    )
    files = ("raw-logs", "notes", "memories", "embeddings", "summaries")
    assert manifest.sites["backups"].covers == files
    assert manifest.safety.snapshot is not None
    assert manifest.markers is not None
    assert manifest.ancestors("summaries") == {"memories", "raw-logs"}
    assert manifest.sites["summaries"].action is Action.BLANK


def test_the_erasure_of_a_person_reaches_sites_by_subject_or_lineage(tmp_path: Path) -> None:
    manifest = load("person-erasure.yaml", tmp_path)
    for entry in manifest.sites.values():
        assert entry.subject or entry.derived_from
    assert manifest.sites["weekly-reports"].derived_from == {"facts": None}
    assert manifest.sites["weekly-reports"].action is Action.REPORT
    assert manifest.ledger == tmp_path / "private/requests.db"
