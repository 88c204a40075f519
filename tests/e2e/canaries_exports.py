"""An S3 server with canaries planted in it, and a look at it without ``purge``.

SeaweedFS on a folder of its own, so that it can be killed, restarted and copied. Planted and read
by boto3 over all versions. Nothing here imports purge.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.e2e.canaries import ID, NEAR, PHRASE, PLAIN, needles, places
from tests.support.s3_servers import ACCESS_KEY, REGION, SECRET_KEY, client_of, program

BUCKET: Final = "canary-exports"
PATIENCE_S: Final = 60.0
COUNTS: Final = {"exports": 4}
"""How many records hold a canary or derive from one; those of old versions are no records."""
SITES: Final = f"""
  exports:
    adapter: s3
    bucket: {BUCKET}
    prefix: memories/
    format: jsonl
    id: id
    text: [content]
    endpoint_url: "${{S3_URL}}"
    region_name: {REGION}
    aws_access_key_id: "${{S3_ACCESS_KEY}}"
    aws_secret_access_key: "${{S3_SECRET_KEY}}"
    addressing_style: path
    versions: delete
    derived_from: {{memories: $id}}
"""
MADE: Final = {"made-by": "night job", "week": "48"}


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@dataclass
class Seaweed:
    """One SeaweedFS server.

    Args:
        folder: its own folder; made where it is missing.
    """

    folder: Path
    ports: list[int] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """How it is named in a manifest."""
        return f"http://127.0.0.1:{self.ports[3]}"

    def start(self) -> Seaweed:
        """Start it and wait until it takes and gives objects."""
        # On ports of one that was killed it waits for what that one had locked (up to 12 s, 4.48).
        self.ports = _free_ports(10)
        data = self.volumes()
        data.mkdir(parents=True, exist_ok=True)
        identity = {
            "name": "proof",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }
        config = self.folder / "identities.json"
        config.write_text(json.dumps({"identities": [identity]}))
        names = ("master", "volume", "filer", "s3")
        options = [f"-{name}.port={self.ports[n]}" for n, name in enumerate(names)]
        options += [f"-{name}.port.grpc={self.ports[n + 4]}" for n, name in enumerate(names)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(str(program("weed")), "-logtostderr=true", "server", "-s3", f"-dir={data}"),
                    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", *options, f"-s3.config={config}"),
                    f"-s3.port.iceberg={self.ports[8]}",
                    f"-s3.port.lance={self.ports[9]}",
                    # With fewer, larger volumes the third bucket finds no room (tried with 4.48).
                    *("-volume.max=300", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        give_up = time.monotonic() + PATIENCE_S
        while True:
            if self._process.poll() is not None or time.monotonic() > give_up:
                self.stop()
                raise RuntimeError("SeaweedFS did not start.")
            with contextlib.suppress(Exception):
                self._try_it()
                return self
            time.sleep(0.1)

    def _try_it(self) -> None:
        """Write and read in another bucket: it answers before it can keep anything."""
        urllib.request.urlopen(f"{self.url}/healthz", timeout=1).close()
        with contextlib.closing(client_of(self.url)) as client:
            known = (
                client.exceptions.BucketAlreadyExists,
                client.exceptions.BucketAlreadyOwnedByYou,
            )
            with contextlib.suppress(*known):
                client.create_bucket(Bucket="is-it-there")
            client.put_object(Bucket="is-it-there", Key="yes", Body=b"yes")
            client.get_object(Bucket="is-it-there", Key="yes")["Body"].read()

    def kill(self) -> None:
        """End it without a chance to save anything, and take away its sockets outside."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            for port in self.ports:
                for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    left.unlink(missing_ok=True)

    def stop(self) -> None:
        """End it."""
        self.kill()

    def compact(self) -> None:
        """Let it drop what no object needs any more, as it does by itself every quarter hour."""
        url = f"http://127.0.0.1:{self.ports[0]}/vol/vacuum?garbageThreshold=0.000001"
        urllib.request.urlopen(url, timeout=60).close()

    def volumes(self) -> Path:
        """Where the bytes of its objects lie."""
        return self.folder / "data"


def _lines(*records: tuple[str, str], ascii: bool = False) -> bytes:
    return "".join(
        json.dumps({"id": id, "content": text}, ensure_ascii=ascii) + "\n" for id, text in records
    ).encode()


NEIGHBOURS: Final = tuple((f"{ID}{number}", text) for number, text in enumerate(NEAR))
HIT: Final = (ID, f"Remember: {PLAIN}.")
KEPT: Final = {
    "memories/2026-11.jsonl": _lines(*NEIGHBOURS),
    "memories/week 48 %3C&.jsonl.gz": _lines(*NEIGHBOURS[1:], ascii=True),
    "memories/clean-now.jsonl": _lines(NEIGHBOURS[0]),
    "memories/near.jsonl": _lines(*NEIGHBOURS, ("odd ", "one\u2028record")),
    "memories-of-others/all.jsonl": _lines(*NEIGHBOURS),
}
"""What a plain read gives afterwards, unpacked; all neighbours stand in the first versions too."""


def build(folder: Path) -> None:
    """Fill the files of a server in ``folder``, and leave it stopped."""
    server = Seaweed(folder).start()
    try:
        with contextlib.closing(client_of(server.url)) as client:
            client.create_bucket(Bucket=BUCKET)
            client.put_bucket_versioning(
                Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}
            )
            _plant(client)
    finally:
        server.stop()


def _plant(client: Any) -> None:
    def put(key: str, body: bytes, **options: Any) -> None:
        client.put_object(Bucket=BUCKET, Key=key, Body=body, **options)

    month, week, clean, near, others = KEPT
    put(month, _lines(NEIGHBOURS[0], HIT, *NEIGHBOURS[1:]))
    put(
        month,
        _lines(NEIGHBOURS[0], ("x1", PHRASE), HIT, *NEIGHBOURS[1:], ("x2", PLAIN.upper())),
        Metadata=MADE,
        ContentType="application/x-ndjson",
        Tagging="a=b%20c",
    )
    packed = gzip.compress(_lines(HIT, *NEIGHBOURS[1:], ascii=True), mtime=0)
    put(week, packed, ContentEncoding="gzip", CacheControl="no-store")
    put(clean, _lines(HIT, NEIGHBOURS[0]))
    put(clean, KEPT[clean])
    put(near, _lines(NEIGHBOURS[0]))
    put(near, KEPT[near])
    put(others, KEPT[others])
    put("memories/dropped.jsonl", _lines(HIT))
    client.delete_object(Bucket=BUCKET, Key="memories/dropped.jsonl")


def unpack(body: bytes) -> bytes:
    """Return content out of gzip, where it is in it."""
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def look(url: str) -> dict[str, Any]:
    """Read every version of every object, and what a plain read says of each key."""
    versions: list[tuple[str, str, bytes]] = []
    reads: dict[str, Any] = {}
    with contextlib.closing(client_of(url)) as client:
        markers: list[str] = []
        for page in client.get_paginator("list_object_versions").paginate(Bucket=BUCKET):
            for one in page.get("Versions", []):
                got = client.get_object(Bucket=BUCKET, Key=one["Key"], VersionId=one["VersionId"])
                versions.append((one["Key"], one["VersionId"], unpack(got["Body"].read())))
            markers += [one["Key"] for one in page.get("DeleteMarkers", [])]
        for listed in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for item in listed.get("Contents", []):
                answer = client.get_object(Bucket=BUCKET, Key=item["Key"])
                reads[item["Key"]] = {
                    "content": unpack(answer["Body"].read()),
                    "metadata": answer["Metadata"],
                    "type": answer["ContentType"],
                    "encoding": answer.get("ContentEncoding"),
                    "cache": answer.get("CacheControl"),
                    "tags": client.get_object_tagging(Bucket=BUCKET, Key=item["Key"])["TagSet"],
                }
    return {"versions": sorted(versions), "markers": markers, "reads": reads}


def held(seen: dict[str, Any]) -> list[tuple[str, str]]:
    """Return which versions of which objects hold a canary, or derive from one."""
    own = json.dumps(ID)[1:-1].encode(), json.dumps(ID, ensure_ascii=False)[1:-1].encode()
    return [
        (key, version)
        for key, version, content in seen["versions"]
        if has_needle(content) or any(id + b'"' in content for id in own)
    ]


def has_needle(content: bytes) -> bool:
    """Whether bytes hold a canary; near misses do not count."""
    forms = (form for some in needles().values() for form in some)
    return any(True for form in forms for _ in places(content, form))


def assert_gone(after: dict[str, Any], before: dict[str, Any]) -> None:
    """Two looks: no version holds a canary, and every neighbour reads as it did."""
    assert held(before)
    assert held(after) == []
    assert {key: read["content"] for key, read in after["reads"].items()} == KEPT
    for key, read in after["reads"].items():
        had = before["reads"][key]
        assert {**read, "content": b""} == {**had, "content": b""}, key
    clean = {one[:2] for one in before["versions"]} - set(held(before))
    assert clean <= {one[:2] for one in after["versions"]}


def in_volumes(server: Seaweed) -> list[str]:
    """Return in which of its files a canary stands as plain bytes."""
    return [
        path.name
        for path in sorted(server.volumes().rglob("*"))
        if path.is_file() and has_needle(path.read_bytes())
    ]
