"""The harness of the fault-injecting adapter: the shortest example of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from purge.adapter import Action, Adapter
from purge.targets import NeedleKind
from purge.testing import breakages
from purge.testing.faulty import FaultyAdapter
from purge.testing.faulty_store import FaultyStore
from purge.testing.harness import METADATA, OTHER, SCOPE, SOURCE, Breakage, Harness, Planted


class FaultyHarness(Harness):
    """Plants in, reads and breaks a :class:`~purge.testing.faulty_store.FaultyStore`."""

    adapter: ClassVar[type[Adapter[Any]]] = FaultyAdapter
    has_vectors = True
    visible = frozenset(NeedleKind)

    @property
    def store(self) -> FaultyStore:
        """The store, opened anew."""
        return FaultyStore(self.folder / "memory")

    def make(self) -> None:
        """Make an empty store."""
        self.store.make()

    def settings(self, action: Action) -> Mapping[str, Any]:
        """Return what the manifest says of the site."""
        return {
            "path": "memory",
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "user",
            "derived_from": {SOURCE: "from_logs", OTHER: "from.notes"},
        }

    def plant(self, records: Sequence[Planted]) -> None:
        """Add records."""
        self.store.plant([_written(record) for record in records])

    def change(self, record: Planted) -> None:
        """Edit a record."""
        content = self.store.load()
        places = [at for at, fields in enumerate(content.records) if fields["id"] == record.id]
        content.records[places[0]] = _written(record)
        self.store.save(content)

    def read(self) -> Mapping[str, Planted]:
        """Read all records."""
        return {fields["id"]: _read(fields) for fields in self.store.records()}

    def raw(self) -> Mapping[str, bytes]:
        """Return each record as it stands in the file."""
        return {
            fields["id"]: json.dumps(fields, ensure_ascii=False).encode()
            for fields in self.store.records()
        }

    def vector_forms(self, vector: Sequence[float]) -> tuple[bytes, ...]:
        """Return the first numbers as JSON has them."""
        return tuple(json.dumps(number).encode() for number in vector)

    def leave_copy(self) -> bool:
        """Make a backup that nothing will remove."""
        return self.store.back_up(None).exists()

    def break_it(self, kind: Breakage) -> AbstractContextManager[None]:
        """Break the store; its lock is that of the folder."""
        if kind is Breakage.LOCKED:
            return breakages.folder_locked(self.store.folder)
        return super().break_it(kind)


def _written(record: Planted) -> dict[str, Any]:
    fields: dict[str, Any] = {"id": record.id, "text": record.text}
    if SCOPE in record.scope:
        fields["project"] = record.scope[SCOPE]
    if record.subject is not None:
        fields["user"] = record.subject
    if SOURCE in record.parents:
        fields["from_logs"] = list(record.parents[SOURCE])
    if OTHER in record.parents:
        fields["from"] = {"notes": list(record.parents[OTHER])}
    if METADATA in record.metadata:
        fields["topic"] = record.metadata[METADATA]
    if record.vector is not None:
        fields["vector"] = list(record.vector)
    return fields


def _read(fields: Mapping[str, Any]) -> Planted:
    parents = {SOURCE: fields.get("from_logs"), OTHER: fields.get("from", {}).get("notes")}
    vector = fields.get("vector")
    return Planted(
        id=fields["id"],
        text=fields["text"],
        scope={SCOPE: fields["project"]} if "project" in fields else {},
        subject=fields.get("user"),
        parents={site: tuple(ids) for site, ids in parents.items() if ids},
        metadata={METADATA: fields["topic"]} if "topic" in fields else {},
        vector=tuple(vector) if vector else None,
    )
