"""Filling the servers of the sandbox: cached answers, exports, ten nights of backups.

Written as an application and its nightly job would write them; nothing here knows how purge
reads them.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import unicodedata
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from purge.errors import Permanent
from purge_adapters._sandbox.memories import KEPT
from purge_adapters._sandbox.services import BUCKET
from purge_adapters._sandbox.story import LESSON, LESSON_ID, PHRASE, ZONE

NIGHTS: Final = 10
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


def s3_client(environment: Mapping[str, str]) -> Any:
    """Return a plain client of the sandbox's S3 server."""
    import boto3  # type: ignore[import-untyped]  # no types in it
    from botocore.config import Config  # type: ignore[import-untyped]  # no types in it

    return boto3.session.Session().client(
        "s3",
        endpoint_url=environment["S3_ENDPOINT_URL"],
        region_name=environment["AWS_DEFAULT_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        config=Config(s3={"addressing_style": "path"}),
    )


def write_exports(environment: Mapping[str, str]) -> int:
    """Export the memories twice, so that an older version is left; return how many there are."""
    client = s3_client(environment)
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    rows = [{"id": memory.id, "content": memory.content} for memory in KEPT]
    for some in (rows[: len(rows) // 2 + 8], rows):
        body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some)
        client.put_object(
            Bucket=BUCKET,
            Key="memories/kettle.jsonl",
            Body=body.encode(),
            ContentType="application/x-ndjson",
        )
    client.close()
    return len(rows)


def write_backups(folder: Path, environment: Mapping[str, str], now: datetime) -> int:
    """Make a repository with ten nights of the data as it grew; return how many there are."""
    password = Path(environment["RESTIC_PASSWORD_FILE"])
    password.touch(0o600)
    password.write_text(secrets.token_hex(20) + "\n", encoding="utf-8")
    _restic(environment, "init")
    nights = _nights(now)
    for night in nights:
        later = [f"--exclude={path}" for path in _made_after(folder / "data", night.date())]
        _restic(
            environment,
            *("backup", "--host", "kettle", "--time", f"{night:%Y-%m-%d %H:%M:%S}"),
            *(*later, str(folder / "data")),
        )
    return len(nights)


def _nights(now: datetime) -> list[datetime]:
    """The last ten times that it was three in the morning."""
    last = datetime.combine(now.astimezone(ZONE).date(), time(3), ZONE)
    if last > now:
        last -= timedelta(days=1)
    return [last - timedelta(days=back) for back in reversed(range(NIGHTS))]


def _made_after(data: Path, day: date) -> list[Path]:
    """The files that were not there yet on a night: later days' logs, and what was made of the
    lesson before it was given."""
    logs = sorted((data / "logs").iterdir())
    later = [path for path in logs if path.name[:10] >= day.isoformat()]
    if len(later) < len(logs):
        return later
    made = [data / "memories.db", data / "chroma", data / "summaries"]
    lesson = unicodedata.normalize("NFC", LESSON).casefold()
    for path in sorted((data / "notes").rglob("*.md")):
        text = unicodedata.normalize("NFC", path.read_text(encoding="utf-8")).casefold()
        if lesson in " ".join(text.split()):
            made.append(path)
    return [*later, *made]


def _restic(environment: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["restic", "--quiet", *arguments],
        env={**os.environ, **environment, "TZ": "Asia/Tokyo"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stdout.strip().splitlines() or [""]
        raise Permanent(f"restic could not make the backups of the sandbox: {said[-1]}")
    return done.stdout


def look_at_services(folder: Path, environment: Mapping[str, str]) -> Mapping[str, int]:
    """Return how many cached answers, versions of exports and nights hold the lesson, as plain
    clients read them."""
    return {
        "cache": _answers_with(environment["REDIS_URL"]),
        "exports": _versions_with(environment),
        "backups": _nights_with(folder, environment),
    }


def _holds(content: bytes) -> bool:
    text = unicodedata.normalize("NFKC", content.decode("utf-8", "replace")).casefold()
    return PHRASE.casefold() in " ".join(text.split())


def _answers_with(url: str) -> int:
    import redis

    client = redis.Redis.from_url(url)
    values = [client.get(key) for key in client.scan_iter("*")]
    client.close()
    spoken = (json.loads(value)["answer"] for value in values if isinstance(value, bytes))
    return sum(_holds(str(answer).encode()) for answer in spoken)


def _versions_with(environment: Mapping[str, str]) -> int:
    client = s3_client(environment)
    found = 0
    for page in client.get_paginator("list_object_versions").paginate(Bucket=BUCKET):
        for version in page.get("Versions", ()):
            body = client.get_object(
                Bucket=BUCKET, Key=version["Key"], VersionId=version["VersionId"]
            )["Body"].read()
            found += _holds(body)
    client.close()
    return found


def _nights_with(folder: Path, environment: Mapping[str, str]) -> int:
    """Nights whose database holds the lesson. Most of restic's time goes into the key, so that
    several look at once."""
    database = str((folder / "data" / "memories.db").resolve())

    def holds(snapshot: str) -> bool:
        done = subprocess.run(
            ["restic", "--quiet", "dump", snapshot, database],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0 and _holds(done.stdout)

    ids = [str(one["id"]) for one in json.loads(_restic(environment, "snapshots", "--json"))]
    with ThreadPoolExecutor(max_workers=4) as pool:
        return sum(pool.map(holds, ids))
