"""The sandbox of ``purge demo``: a small agent memory of invented people, on real stores.

It plants one wrong lesson everywhere, with near misses beside it, and can look for it afterwards
without any code of purge. It may not import the core, nor any adapter: it stands for the
application whose memory is purged. Nothing is ever written outside the folder that it is given.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path

from purge.errors import MissingDriver, Refused
from purge_adapters._sandbox import stores
from purge_adapters._sandbox.looking import look, look_at_bytes
from purge_adapters._sandbox.manifest import (
    MANIFEST,
    README,
    SERVICES,
    SERVICES_README,
    WITH_SERVICES,
)
from purge_adapters._sandbox.services import Services, check_programs, program_folders
from purge_adapters._sandbox.services_data import (
    last_night,
    look_at_services,
    write_answers,
    write_backups,
    write_exports,
)
from purge_adapters._sandbox.story import GUEST_ID, LESSON_ID, PHRASE, TODAY, ZONE

__all__ = [
    "Sandbox",
    "Services",
    "Suggestion",
    "build",
    "check_programs",
    "last_night",
    "look",
    "look_at_bytes",
    "look_at_services",
]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A command to try on the sandbox, run in its folder, and what it shows.

    ``{request}`` in the command stands for the id of the request that the demo made.
    """

    command: str
    shows: str


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox that was built, and what there is to ask of it."""

    folder: Path
    manifest: Path
    phrase: str
    """The wrong lesson in words: finds it at every site, the copy without lineage too."""
    record_id: str
    """The wrong lesson as ``SITE:ID``: shows closure, the kept source and possible copies."""
    guest_id: str
    """A guest's personal data as ``SITE:ID``: there is still something to ask afterwards."""
    suggestions: tuple[Suggestion, ...]


def build(
    folder: Path,
    say: Callable[[str], None],
    today: date = TODAY,
    services: Callable[[Path], Services] | None = None,
) -> Sandbox:
    """Make the sandbox.

    Args:
        folder: made if it is not there; must be empty.
        say: is called with one short sentence for each thing that was made.
        today: the days of the story lie in the week before; its backups end that morning.
        services: starts the servers of the sandbox, which are filled too; ``None``: it consists
            of files alone.

    Raises:
        Refused: the folder holds something already.
        MissingDriver: Chroma is not installed.
    """
    if importlib.util.find_spec("chromadb") is None:
        raise MissingDriver(
            "The sandbox needs Chroma. Install it with: pip install 'purge-orchestrator[all]'"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Refused("The sandbox goes into an empty folder, and this one is not empty.")
    data = folder / "data"
    records = stores.write_logs(data / "logs", today)
    say(f"Five days of chat logs: {records} records in English, Japanese and Thai")
    papers = stores.write_papers(data / "notes", data / "summaries", today)
    say(f"Notes and summaries: {papers} Markdown files")
    memories = stores.write_memories(data / "memories.db", today)
    say(f"Memories: {memories} rows in SQLite, with a full-text index")
    vectors = stores.write_embeddings(data / "chroma", today)
    say(f"Embeddings: {vectors} vectors in Chroma")
    manifest = folder / "purge.yaml"
    manifest.write_text(MANIFEST, encoding="utf-8")
    (folder / "README.md").write_text(README, encoding="utf-8")
    count = "five"
    if services is not None:
        _fill(folder, say, services(folder), today)
        count = "eight"
    say(f"A manifest that names these {count} sites: purge.yaml")
    run = "./with-services " if services is not None else ""
    return Sandbox(
        folder=folder,
        manifest=manifest,
        phrase=PHRASE,
        record_id=f"memories:{LESSON_ID}",
        guest_id=f"memories:{GUEST_ID}",
        suggestions=(
            Suggestion(
                f"{run}purge request --id memories:{GUEST_ID}",
                "a guest's data by its id: a dry run, with a source and a copy to decide",
            ),
            Suggestion(f"{run}purge verify {{request}}", "looks again now, at every site"),
            Suggestion(
                f"{run}purge report {{request}} --format markdown",
                "what was done, to file or to send",
            ),
        ),
    )


def _fill(folder: Path, say: Callable[[str], None], services: Services, today: date) -> None:
    environment = services.environment
    answers = write_answers(environment["REDIS_URL"])
    say(f"Cache: {answers} answers in Redis, with its append-only file and dump")
    exports = write_exports(environment)
    say(f"Exports: {exports} records in S3, and an older version of them")
    nights = write_backups(folder, environment, datetime.combine(today, time(3), ZONE))
    say(f"Backups: {nights} nightly snapshots in restic")
    with (folder / "purge.yaml").open("a", encoding="utf-8") as manifest:
        manifest.write(SERVICES)
    with (folder / "README.md").open("a", encoding="utf-8") as readme:
        readme.write(SERVICES_README)
    script = folder / "with-services"
    text = WITH_SERVICES.format(
        python=shlex.quote(sys.executable), programs=shlex.quote(program_folders())
    )
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
