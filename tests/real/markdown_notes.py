"""A folder of notes with the Markdown adapter on it, for the tests beside this file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from purge.adapter import Finding, Match, NotRemoved, Readability, Removal, Residue, Site
from purge.targets import Target, TargetKind, Targets
from purge_adapters.markdown import MarkdownAdapter, MarkdownSettings

T = TypeVar("T")
PHRASE = "the lighthouse door opens with 5512"
AT = datetime(2026, 11, 30, 3, 12, tzinfo=UTC)


class Notes:
    """A folder of notes, and the adapter on it."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes]) -> None:
        self.root = root
        self.path: str | tuple[str, ...] = "."
        self.record = "block"
        self.id: str | None = None
        self.site: dict[str, object] = {}
        for name, content in files.items():
            self.write(name, content)

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def open(self) -> MarkdownAdapter:
        site = Site("notes", self.root, **self.site)  # type: ignore[arg-type]  # what a test sets
        settings = MarkdownSettings(self.path, self.record, self.id)  # type: ignore[arg-type]  # as above
        return MarkdownAdapter(site, settings)

    def look(self, targets: Targets) -> list[Finding]:
        return list(self.open().find(targets))

    def find(self, targets: Targets) -> list[Match]:
        return [item for item in self.look(targets) if isinstance(item, Match)]

    def remove(self, matches: list[Match]) -> list[NotRemoved]:
        removals = [Removal(match, "01JREQUEST", AT) for match in matches]
        return list(self.open().remove(removals))

    def purge(self, targets: Targets) -> list[Match]:
        matches = self.find(targets)
        assert matches
        assert self.remove(matches) == []
        left = self.find(targets)
        assert [match for match in left if match.readability is Readability.READABLE] == []
        return matches

    def residue(self, targets: Targets, matches: list[Match] | None = None) -> list[Residue]:
        return [item for item in self.observe(targets, matches) if isinstance(item, Residue)]

    def observe(self, targets: Targets, matches: list[Match] | None = None) -> list[object]:
        traces = {"notes": [match.trace for match in matches or []]}
        return list(self.open().residue(Targets(targets.all, traces)))

    def text(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def exists(self, name: str) -> bool:
        return (self.root / name).exists()


def phrase(text: str = PHRASE, **scope: str) -> Targets:
    return Targets([Target(1, TargetKind.PHRASE, text, None, scope)])


def named(*ids: str) -> Targets:
    return Targets(Target(key, TargetKind.ID, id, "notes") for key, id in enumerate(ids))


def of(kind: type[T], items: list[Finding]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]


@contextmanager
def held(path: Path, mode: str) -> Iterator[None]:
    """Hold a file open from another process."""
    source = "import sys; f = open(sys.argv[1], sys.argv[2]); print('held', flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", source, str(path), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    try:
        yield
    finally:
        process.communicate(b"\n")
