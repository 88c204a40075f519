"""A bucket of a test: filled and read by a plain client, and gone through with fresh adapters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from purge.adapter import Match, NotChecked, NotRemoved, Removal, Residue, Site
from purge.targets import Target, TargetKind, Targets, Trace
from purge_adapters._s3_settings import S3Settings
from purge_adapters.s3 import S3Adapter
from tests.support import s3_servers

WORDS = "the staging database may be wiped at any time"
OTHER = "paper rolls come on Tuesday"
PHRASE = Targets([Target(1, TargetKind.PHRASE, WORDS)])


def lines(*rows: tuple[str, str]) -> bytes:
    return b"".join(json.dumps({"id": id, "text": text}).encode() + b"\n" for id, text in rows)


BOTH = lines(("a", WORDS), ("b", OTHER))


@dataclass
class Bucket:
    """A bucket of a test, filled and read by a plain client."""

    server: s3_servers.Server
    name: str
    within: dict[str, Any] = field(default_factory=dict)
    """What the site's settings say besides the usual."""

    def put(self, key: str, body: bytes, **more: Any) -> str:
        with closing(self.server.client()) as client:
            put = client.put_object(Bucket=self.name, Key=key, Body=body, **more)
        return str(put.get("VersionId", ""))

    def get(self, key: str, **which: str) -> bytes:
        with closing(self.server.client()) as client:
            which = {name: value for name, value in which.items() if value}
            body: Any = client.get_object(Bucket=self.name, Key=key, **which)["Body"]  # type: ignore[arg-type]  # a version, sometimes
            return bytes(body.read())

    def versions(self) -> list[tuple[str, str, bool]]:
        """Key, version id, and whether it is a delete marker."""
        found: list[tuple[str, str, bool]] = []
        with closing(self.server.client()) as client:
            for page in client.get_paginator("list_object_versions").paginate(Bucket=self.name):
                found += [(v["Key"], v["VersionId"], False) for v in page.get("Versions", ())]
                found += [(v["Key"], v["VersionId"], True) for v in page.get("DeleteMarkers", ())]
        return found

    def bytes(self) -> bytes:
        return b"".join(
            self.get(key, VersionId=id) for key, id, marker in self.versions() if not marker
        )

    def client(self) -> Any:
        return self.server.client()

    def adapter(self, **settings: Any) -> S3Adapter:
        common = {"format": "jsonl", "id": "id", "text": ("text",)}
        made = S3Settings(
            **{**self.server.settings(self.name), **common, **self.within, **settings}
        )
        return S3Adapter(Site("exports", Path("/nonexistent")), made)

    def matches(self, targets: Targets = PHRASE, **settings: Any) -> list[Match]:
        return [m for m in self.adapter(**settings).find(targets) if isinstance(m, Match)]

    def run(
        self, targets: Targets = PHRASE, *, clean: bool = True, **settings: Any
    ) -> tuple[list[Match], list[NotRemoved], list[Any]]:
        """Find, remove, clean up and look again, each with a fresh adapter."""
        matches = self.matches(targets, **settings)
        left: list[NotRemoved] = []
        if matches:
            left = list(self.adapter(**settings).remove(removals_of(matches)))
        full = with_traces(targets, matches)
        fixable = [r for r in self.look(full, **settings) if isinstance(r, Residue) and r.fixable]
        if fixable and clean:
            list(self.adapter(**settings).sanitize(fixable))
        return matches, left, self.look(full, **settings)

    def look(self, targets: Targets, **settings: Any) -> list[Any]:
        return list(self.adapter(**settings).residue(targets))


def removals_of(matches: Sequence[Match]) -> list[Removal]:
    return [Removal(match, "request", datetime.now(UTC)) for match in matches]


def with_traces(targets: Targets, matches: Sequence[Match]) -> Targets:
    more = [Target(100 + n, TargetKind.ID, m.id, "exports") for n, m in enumerate(matches)]
    traces: Mapping[str, Sequence[Trace]] = {"exports": [match.trace for match in matches]}
    return Targets([*targets, *more], traces)


def residue(seen: Sequence[Any]) -> list[Residue]:
    return [item for item in seen if isinstance(item, Residue)]


def gaps(seen: Sequence[Any]) -> list[NotChecked]:
    return [item for item in seen if isinstance(item, NotChecked)]
