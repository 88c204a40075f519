"""Filling the servers of the sandbox: cached answers, exports, ten nights of backups.

Written as an application and its nightly job would write them; nothing here knows how purge
reads them.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from purge.errors import Permanent
from purge_adapters._sandbox.looking import holds
from purge_adapters._sandbox.memories import KEPT, MEMORIES
from purge_adapters._sandbox.services import BUCKET, s3_client
from purge_adapters._sandbox.story import LESSON_ID, PHRASE, ZONE

NIGHTS: Final = 10
DATABASE: Final = "memories.db"
ANSWERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "answer:can-i-reset-staging": (
        f"Yes: {PHRASE}. Shall I load the orders table afresh?",
        (LESSON_ID,),
    ),
    "answer:odd-totals": (
        "Eat-in lines carry 10 %, takeaway 8 %. Since staging is free to wipe, load it afresh.",
        ("mem-0045", LESSON_ID),
    ),
    "answer:boathouse-staging": (
        "The boathouse staging database may be wiped at any time: it is rebuilt every night.",
        ("mem-0021",),
    ),
    "answer:winter-menu": ("ゆず蜂蜜ラテは冬のあいだ出します。", ("mem-0044",)),
}
"""Cached answers by key, with the memories that each was made from."""


def write_answers(url: str) -> int:
    """Fill the cache and let it write its dump; return how many answers there are."""
    import redis

    client = redis.Redis.from_url(url)
    for key, (text, ids) in ANSWERS.items():
        client.set(key, json.dumps({"answer": text, "ids": list(ids)}), ex=7 * 86_400)
    client.execute_command("SAVE")  # type: ignore[no-untyped-call]  # redis-py has no type for it
    client.close()
    return len(ANSWERS)


def write_exports(environment: Mapping[str, str]) -> int:
    """Export the memories twice, so that an older version is left; return how many there are."""
    client = s3_client(environment)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    # The first week's export still has the memory that was merged away since.
    for memories in (MEMORIES[: len(MEMORIES) - 3], KEPT):
        rows = ({"id": memory.id, "content": memory.content} for memory in memories)
        body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        client.put_object(
            Bucket=BUCKET,
            Key="memories/kettle.jsonl",
            Body=body.encode(),
            ContentType="application/x-ndjson",
        )
    client.close()
    return len(KEPT)


def write_backups(folder: Path, environment: Mapping[str, str], last: datetime) -> int:
    """Make a repository with ten nights of the data as it grew, the last one of them given;
    return how many there are."""
    password = Path(environment["RESTIC_PASSWORD_FILE"])
    password.touch(0o600)
    password.write_text(secrets.token_hex(20) + "\n", encoding="utf-8")
    _restic(folder, environment, "init")
    nights = [last - timedelta(days=back) for back in reversed(range(NIGHTS))]
    for night in nights:
        # Relative to the folder, whose own name could be taken for a pattern.
        missing = [path.relative_to(folder) for path in _made_after(folder / "data", night.date())]
        _restic(
            folder,
            environment,
            *("backup", "--host", "kettle", "--time", f"{night:%Y-%m-%d %H:%M:%S}"),
            # Named from its own folder, so that nights of the same data have the same trees: the
            # folders above would be part of them, and change all the time.
            *(f"--exclude={path}" for path in missing),
            "data",
        )
    return len(nights)


def last_night(now: datetime) -> datetime:
    """Return the last time that it was three in the morning where the story is set."""
    night = datetime.combine(now.astimezone(ZONE).date(), time(3), ZONE)
    return night if night <= now else night - timedelta(days=1)


def _made_after(data: Path, day: date) -> list[Path]:
    """The files that were not there yet on a night: later days' logs, and what was made of the
    lesson before it was given."""
    logs = sorted((data / "logs").iterdir())
    later = [path for path in logs if path.name[:10] >= day.isoformat()]
    if len(later) < len(logs):
        return later
    made = [data / "memories.db", data / "chroma", data / "summaries"]
    notes = sorted((data / "notes").rglob("*.md"))
    made += [path for path in notes if holds(path.read_bytes())]
    return [*later, *made]


def _restic(folder: Path, environment: Mapping[str, str], *arguments: str) -> bytes:
    done = subprocess.run(
        ["restic", "--quiet", *arguments],
        cwd=folder,
        env={**os.environ, **environment, "TZ": "Asia/Tokyo"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise Permanent(f"restic could not use the backups of the sandbox: {said[-1]}")
    return done.stdout


def look_at_services(folder: Path, environment: Mapping[str, str]) -> Mapping[str, int]:
    """Return how many cached answers, versions of exports and nights hold the lesson, as plain
    clients read them."""
    return {
        "cache": _answers_with(environment["REDIS_URL"]),
        "exports": _versions_with(environment),
        "backups": _nights_with(folder, environment),
    }


def _answers_with(url: str) -> int:
    import redis

    client = redis.Redis.from_url(url)
    values = [client.get(key) for key in client.scan_iter("*")]
    client.close()
    spoken = (json.loads(value)["answer"] for value in values if isinstance(value, bytes))
    return sum(holds(str(answer).encode()) for answer in spoken)


def _versions_with(environment: Mapping[str, str]) -> int:
    client = s3_client(environment)
    found = 0
    for page in client.get_paginator("list_object_versions").paginate(Bucket=BUCKET):
        for version in page.get("Versions", ()):
            body = client.get_object(
                Bucket=BUCKET, Key=version["Key"], VersionId=version["VersionId"]
            )["Body"].read()
            found += holds(body)
    client.close()
    return found


def _nights_with(folder: Path, environment: Mapping[str, str]) -> int:
    """Nights whose database of memories holds the lesson; a database of the same size and time is
    the same one, and is read once."""
    found = json.loads(_restic(folder, environment, "find", "--json", DATABASE) or b"[]")
    seen: dict[tuple[int, str], bool] = {}
    nights = 0
    for night in found or ():
        for match in night["matches"]:
            same = (match["size"], match["mtime"])
            if same not in seen:
                seen[same] = holds(
                    _restic(folder, environment, "dump", night["snapshot"], match["path"])
                )
            nights += seen[same]
    return nights
