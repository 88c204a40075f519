"""The ``s3`` adapter keeps the contract: on moto's server and on SeaweedFS, in several formats."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

# A child process that is killed must not be killed while it imports boto3.
import boto3  # type: ignore[import-untyped]  # noqa: F401  # no types in it
import pyarrow  # type: ignore[import-untyped]  # no types in it
import pyarrow.parquet  # type: ignore[import-untyped]  # no types in it
import pytest
import zstandard

from purge.adapter import Action
from purge.testing import AdapterContract
from purge.testing.harness import METADATA, OTHER, SCOPE, SOURCE, Breakage, Harness, Planted
from purge.testing.suite_breaking import BreakingSuite
from purge.testing.suite_killing import KillingSuite
from purge.testing.suite_looking import LookingSuite
from purge.testing.suite_removing import RemovingSuite
from purge_adapters.s3 import S3Adapter
from tests.support.s3_servers import Server, moto, seaweed

NO_LOCKS = "a bucket has no lock that keeps others from writing"


class Imported(S3Adapter):
    """The adapter, from a module that imports the driver.

    A process that runs a verb to be killed in it has paid for the import before the moments are
    counted, so that they fall into the adapter's own work.
    """


class S3Harness(Harness):
    """A bucket with two objects of JSON Lines, read and written with boto3 alone."""

    adapter = Imported
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.LOCKED: NO_LOCKS,
        Breakage.CORRUPT: "plain lines have no redundancy: a changed byte is another line",
        Breakage.TORN: "a log that is cut off is a shorter log: its torn line is read as text",
    }
    kill_points = 2
    versioned: ClassVar[bool] = True
    format: ClassVar[str] = "jsonl"
    names: ClassVar[Sequence[str]] = ("memories/first.jsonl", "memories/below/second.jsonl")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bucket = ""
        self._client: Any = None
        super().__init__(folder)

    @property
    def folder(self) -> Path:  # what looks at the folder sees the bucket
        """The folder, in which one file says what the bucket holds: a write there shows here."""
        if self._bucket:
            state = self._folder / "bucket.json"
            now = json.dumps(self._state(), default=str, sort_keys=True)
            if not state.exists() or state.read_text() != now:
                state.write_text(now)
        return self._folder

    @folder.setter
    def folder(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def server(cls) -> Server:
        return moto()

    def make(self) -> None:
        self._bucket = self.server().bucket(versioned=self.versioned)
        self._client = self.server().client()
        self.make_objects()

    def make_objects(self) -> None:
        for name in self.names:
            self.put(name, self.encode([]))

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            **self.server().settings(self._bucket),
            "prefix": "memories/",
            "format": self.format,
            "id": "uuid",
            "text": ["content"],
            "time": "at",
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "user",
            "derived_from": {SOURCE: "source_ids", OTHER: "other_ids"},
        }

    # --- the bucket ---------------------------------------------------------------------------

    def put(self, key: str, body: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=key, Body=body)

    def get(self, key: str, **which: str) -> bytes:
        answer = self._client.get_object(Bucket=self._bucket, Key=key, **which)
        return bytes(answer["Body"].read())

    def keys(self) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def versions(self) -> Iterator[tuple[str, str, bool]]:
        pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._bucket)
        for page in pages:
            for item in page.get("Versions", ()):
                yield item["Key"], item["VersionId"], True
            for item in page.get("DeleteMarkers", ()):
                yield item["Key"], item["VersionId"], False

    def _state(self) -> object:
        try:
            return sorted(self.versions())
        except Exception as error:  # noqa: BLE001  (a broken bucket is a state as well)
            return type(error).__name__

    # --- records in objects --------------------------------------------------------------------

    def encode(self, records: Sequence[Mapping[str, object]]) -> bytes:
        return b"".join(
            json.dumps(record, ensure_ascii=at % 3 == 0).encode() + b"\n"
            for at, record in enumerate(records)
        )

    def decode(self, data: bytes) -> list[dict[str, Any]]:
        return [json.loads(line) for line in data.split(b"\n") if line]

    def plant(self, records: Sequence[Planted]) -> None:
        for at, name in enumerate(self.names):
            mine = [
                as_fields(it) for place, it in enumerate(records) if place % len(self.names) == at
            ]
            if mine:
                self.put(name, self.encode([*self.decode(self.get(name)), *mine]))

    def change(self, record: Planted) -> None:
        for name in self.names:
            before = self.decode(self.get(name))
            after = [as_fields(record) if it["uuid"] == record.id else it for it in before]
            if after != before:
                self.put(name, self.encode(after))

    def read(self) -> Mapping[str, Planted]:
        found: dict[str, Planted] = {}
        for name in self.keys():
            for fields in self.decode(self.get(name)):
                record = as_planted(fields)
                assert record.id not in found
                found[record.id] = record
        return found

    def plain(self, data: bytes) -> bytes:
        return data

    def contents(self) -> Mapping[str, bytes]:
        return {
            f"{key} {version}": self.plain(self.get(key, VersionId=version))
            if there
            else key.encode()
            for key, version, there in self.versions()
        }

    @contextmanager
    def break_it(self, kind: Breakage) -> Iterator[None]:
        if kind is Breakage.MISSING:
            bucket, self._bucket = self._bucket, ""
            kept = {
                key: self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
                for key in self._all(bucket)
            }
            self._empty(bucket)
            self._client.delete_bucket(Bucket=bucket)
            try:
                yield
            finally:
                self._client.create_bucket(Bucket=bucket)
                self._bucket = bucket
                for key, body in kept.items():
                    self.put(key, body)
        elif kind is Breakage.READ_ONLY:
            self._client.put_bucket_policy(
                Bucket=self._bucket,
                Policy=json.dumps(
                    {
                        "Version": "2012-10-17",
                        "Statement": [
                            {
                                "Effect": "Deny",
                                "Principal": "*",
                                "Action": [
                                    "s3:PutObject",
                                    "s3:DeleteObject",
                                    "s3:DeleteObjectVersion",
                                ],
                                "Resource": f"arn:aws:s3:::{self._bucket}/*",
                            }
                        ],
                    }
                ),
            )
            try:
                yield
            finally:
                self._client.delete_bucket_policy(Bucket=self._bucket)
        else:
            name = max(self.keys(), key=lambda key: len(self.get(key)))
            body = self.get(name)
            middle = len(body) // 2
            if kind is Breakage.TORN:
                self.put(name, body[:middle])
            else:
                self.put(name, body[: middle - 20] + b"\xff\x00" * 20 + body[middle + 20 :])
            yield

    def _all(self, bucket: str) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def _empty(self, bucket: str) -> None:
        pages = self._client.get_paginator("list_object_versions").paginate(Bucket=bucket)
        for page in pages:
            for item in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                self._client.delete_object(
                    Bucket=bucket, Key=item["Key"], VersionId=item["VersionId"]
                )


def as_fields(record: Planted) -> dict[str, object]:
    return {
        "uuid": record.id,
        "at": "2026-05-01T12:00:00Z",
        **({"project": record.scope[SCOPE]} if record.scope else {}),
        "content": record.text,
        **({"user": record.subject} if record.subject is not None else {}),
        **{
            name: list(record.parents[site])
            for name, site in (("source_ids", SOURCE), ("other_ids", OTHER))
            if site in record.parents
        },
        **({"about": record.metadata[METADATA]} if record.metadata else {}),
    }


def as_planted(fields: Mapping[str, Any]) -> Planted:
    return Planted(
        id=fields["uuid"],
        text=fields["content"],
        scope={SCOPE: fields["project"]} if fields.get("project") else {},
        subject=fields.get("user") or None,
        parents={
            site: tuple(fields[name])
            for name, site in (("source_ids", SOURCE), ("other_ids", OTHER))
            if fields.get(name)
        },
        metadata={METADATA: fields["about"]} if fields.get("about") else {},
    )


class GzipHarness(S3Harness):
    """A bucket without versions; lines in gzip."""

    unbreakable: ClassVar[Mapping[Breakage, str]] = {Breakage.LOCKED: NO_LOCKS}
    versioned = False
    names: ClassVar[Sequence[str]] = ("memories/first.jsonl.gz",)

    def encode(self, records: Sequence[Mapping[str, object]]) -> bytes:
        return gzip.compress(super().encode(records))

    def plain(self, data: bytes) -> bytes:
        return gzip.decompress(data)

    def decode(self, data: bytes) -> list[dict[str, Any]]:
        return super().decode(gzip.decompress(data))


class ArrayHarness(S3Harness):
    """An array in zstd."""

    unbreakable: ClassVar[Mapping[Breakage, str]] = {Breakage.LOCKED: NO_LOCKS}
    format = "json"
    names: ClassVar[Sequence[str]] = ("memories/all.json.zst",)

    def encode(self, records: Sequence[Mapping[str, object]]) -> bytes:
        text = json.dumps(records, ensure_ascii=False, indent=1)
        return zstandard.ZstdCompressor(write_checksum=True).compress(text.encode())

    def plain(self, data: bytes) -> bytes:
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)

    def decode(self, data: bytes) -> list[dict[str, Any]]:
        decoded: list[dict[str, Any]] = json.loads(self.plain(data))
        return decoded


COLUMNS = ("uuid", "at", "project", "content", "user", "source_ids", "other_ids", "about")


class TableHarness(S3Harness):
    """A table with a header."""

    format = "csv"
    names: ClassVar[Sequence[str]] = ("memories/all.csv",)

    def encode(self, records: Sequence[Mapping[str, object]]) -> bytes:
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        for record in records:
            lists = {
                name: json.dumps(record[name]) if record.get(name) else ""
                for name in ("source_ids", "other_ids")
            }
            writer.writerow({**record, **lists})
        return out.getvalue().encode()

    def decode(self, data: bytes) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
        for row in rows:
            for name in ("source_ids", "other_ids"):
                row[name] = json.loads(row[name]) if row[name] else []
        return rows


class ParquetHarness(S3Harness):
    """A Parquet file in several row groups."""

    unbreakable: ClassVar[Mapping[Breakage, str]] = {Breakage.LOCKED: NO_LOCKS}
    format = "parquet"
    names: ClassVar[Sequence[str]] = ("memories/all.parquet",)

    def encode(self, records: Sequence[Mapping[str, object]]) -> bytes:
        strings, lists = pyarrow.string(), pyarrow.list_(pyarrow.string())
        schema = pyarrow.schema(
            [(name, lists if name.endswith("_ids") else strings) for name in COLUMNS]
        )
        rows = [{name: record.get(name) for name in COLUMNS} for record in records]
        out = io.BytesIO()
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(rows, schema), out, row_group_size=5, compression="zstd"
        )
        return out.getvalue()

    def decode(self, data: bytes) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
        return rows

    def plain(self, data: bytes) -> bytes:
        """The values, and all that the file says of itself: nothing is compressed then."""
        table = pyarrow.parquet.read_table(io.BytesIO(data))
        out = io.BytesIO()
        pyarrow.parquet.write_table(table, out, compression="none", use_dictionary=False)
        return out.getvalue() + data


class ObjectHarness(S3Harness):
    """Each record is an object of its own, named after it."""

    format = "object"
    names: ClassVar[Sequence[str]] = ()

    def settings(self, action: Action) -> Mapping[str, Any]:
        told = {**super().settings(action), "key": "memories/{id}.json"}
        del told["id"]
        return told

    def cannot_hold(self, record_id: str) -> str | None:
        if len(record_id.encode()) > 900:
            return "a key has 1024 bytes at most"
        return None

    def key(self, record_id: str) -> str:
        return f"memories/{record_id}.json"

    def plant(self, records: Sequence[Planted]) -> None:
        for record in records:
            self.put(self.key(record.id), json.dumps(as_fields(record)).encode())

    def change(self, record: Planted) -> None:
        self.plant([record])

    def decode(self, data: bytes) -> list[dict[str, Any]]:
        return [json.loads(data)]


class MotoObjectHarness(ObjectHarness):
    """Without what moto itself cannot keep."""

    def cannot_hold(self, record_id: str) -> str | None:
        if "\n" in record_id or "\r" in record_id:
            return "moto's server takes no key with a line break (5.2.5: 404)"
        return super().cannot_hold(record_id)


class SeaweedHarness(S3Harness):
    """The same lines on a real server."""

    @classmethod
    def server(cls) -> Server:
        return seaweed()


class SeaweedObjectHarness(ObjectHarness):
    """The same objects on a real server."""

    @classmethod
    def server(cls) -> Server:
        return seaweed()

    def cannot_hold(self, record_id: str) -> str | None:
        if not record_id.isprintable() or "\\" in record_id or "//" in record_id:
            return "SeaweedFS keeps keys as paths of files (4.48)"
        if any(step in ("", ".", "..") for step in record_id.split("/")):
            return "SeaweedFS keeps keys as paths of files (4.48)"
        if len(record_id.encode()) > 240:
            return "SeaweedFS keeps keys as paths of files (4.48)"
        return super().cannot_hold(record_id)


class TestLinesWithVersions(AdapterContract):
    harness = S3Harness


@pytest.mark.long
class TestGzipWithoutVersions(RemovingSuite, BreakingSuite, KillingSuite):
    harness = GzipHarness


@pytest.mark.long
class TestArray(RemovingSuite, BreakingSuite):
    harness = ArrayHarness


@pytest.mark.long
class TestTable(RemovingSuite):
    harness = TableHarness


class TestParquet(RemovingSuite, BreakingSuite):
    harness = ParquetHarness


@pytest.mark.long
class TestObjects(LookingSuite, RemovingSuite, KillingSuite):
    harness = MotoObjectHarness
    # 1,500 objects are more than 5,000 requests; that a listing is read to its end has a test.
    test_every_record_of_a_crowd_is_found_and_goes = None  # type: ignore[assignment]  # left out


class TestLinesOnSeaweed(RemovingSuite, LookingSuite, KillingSuite):
    harness = SeaweedHarness


class TestObjectsOnSeaweed(RemovingSuite):
    harness = SeaweedObjectHarness
    # 1,500 objects are more than 5,000 requests; that a listing is read to its end has a test.
    test_every_record_of_a_crowd_is_found_and_goes = None  # type: ignore[assignment]  # left out
