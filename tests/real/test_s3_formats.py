"""Records in objects of every form and compression: the target goes, all else stays as it was."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow  # type: ignore[import-untyped]  # no types in it
import pyarrow.parquet  # type: ignore[import-untyped]  # no types in it
import pytest
import zstandard

from purge.state import ProblemCode
from tests.support import s3_servers
from tests.support.s3_buckets import OTHER, PHRASE, WORDS, Bucket, gaps, residue

ROWS = [("a", OTHER), ("b", WORDS), ("c", 'a cup, with "quotes"\nand a second line'), ("d", "é")]


@pytest.fixture
def bucket() -> Bucket:
    server = s3_servers.moto()
    return Bucket(server, server.bucket(versioned=True))


def as_lines(rows: list[tuple[str, str]]) -> bytes:
    return b"".join(json.dumps({"id": id, "text": text}).encode() + b"\r\n" for id, text in rows)


def as_array(rows: list[tuple[str, str]]) -> bytes:
    inner = ",".join(f'\n  {{"id": "{id}",  "text":{json.dumps(text)}}}' for id, text in rows)
    return f"[{inner}\n]\n".encode()


def as_table(rows: list[tuple[str, str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows([("id", "text"), *rows])
    return out.getvalue().encode()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def same(data: bytes) -> bytes:
    return data


@pytest.mark.parametrize(
    ("pack", "unpack"), [(same, same), (gzip.compress, gzip.decompress), (zstd, unzstd)]
)
@pytest.mark.parametrize(
    ("form", "write"), [("jsonl", as_lines), ("json", as_array), ("csv", as_table)]
)
def test_the_record_goes_and_every_other_byte_stays(
    bucket: Bucket,
    form: str,
    write: Callable[[list[tuple[str, str]]], bytes],
    pack: Callable[[bytes], bytes],
    unpack: Callable[[bytes], bytes],
) -> None:
    bucket.put("x", pack(write(ROWS)))
    matches, left, seen = bucket.run(format=form)
    assert [match.id for match in matches] == ["b"]
    assert left == []
    assert residue(seen) == []
    assert gaps(seen) == []
    after = bucket.get("x")
    assert pack is same or after != unpack(after)
    assert unpack(after) == write([row for row in ROWS if row[0] != "b"])
    assert all(
        WORDS.encode() not in unpack(bucket.get(k, VersionId=v)) for k, v, _ in bucket.versions()
    )


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "parquet"])
def test_an_object_of_no_bytes_holds_no_records(bucket: Bucket, form: str) -> None:
    bucket.put("folder/", b"")
    seen = list(bucket.adapter(format=form).find(PHRASE))
    assert gaps(seen) == []


def test_a_column_does_not_hide_another_of_the_same_name(bucket: Bucket) -> None:
    bucket.put("x", f"id,text,text\r\na,{WORDS},{OTHER}\r\nb,{OTHER},{OTHER}\r\n".encode())
    matches, left, _ = bucket.run(format="csv")
    assert [match.id for match in matches] == ["a"]
    assert left == []
    assert WORDS.encode() not in bucket.bytes()


def parquet_of(table: Any, **manner: Any) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, **manner)
    return out.getvalue()


def parquet_in(data: bytes) -> Any:
    return pyarrow.parquet.ParquetFile(io.BytesIO(data))


def table(**more: Any) -> Any:
    ids, texts = zip(*ROWS, strict=True)
    return pyarrow.table({"id": list(ids), "text": list(texts), **more})


def test_a_parquet_file_keeps_the_manner_in_which_it_was_written(bucket: Bucket) -> None:
    numbers = pyarrow.array([1, 2, 3, 4], pyarrow.int64())
    times = pyarrow.array([datetime(2026, 1, 1)] * 4, pyarrow.timestamp("us"))
    source = table(number=numbers, at=times).replace_schema_metadata({"made-by": "nightly"})
    before = parquet_of(
        source,
        compression={"id": "zstd", "text": "gzip", "number": "none", "at": "snappy"},
        use_dictionary=["text"],
        column_encoding={"id": "DELTA_BYTE_ARRAY", "number": "DELTA_BINARY_PACKED"},
        row_group_size=2,
        use_deprecated_int96_timestamps=True,
        sorting_columns=[pyarrow.parquet.SortingColumn(0)],
    )
    bucket.put("x.parquet", before)
    _, left, seen = bucket.run(format="parquet")
    assert left == []
    assert residue(seen) == []
    old, new = parquet_in(before), parquet_in(bucket.get("x.parquet"))
    kept = pyarrow.array([True, False, True, True])
    assert new.read().equals(old.read().filter(kept), check_metadata=True)
    assert new.metadata.metadata[b"made-by"] == b"nightly"
    assert new.num_row_groups == old.num_row_groups == 2
    for at in range(4):
        was, now = (file.metadata.row_group(1).column(at) for file in (old, new))
        assert (now.physical_type, now.compression) == (was.physical_type, was.compression)
        assert set(now.encodings) == set(was.encodings)
    assert new.metadata.row_group(0).sorting_columns == old.metadata.row_group(0).sorting_columns
    # The smallest and the largest value of a column stand beside it, in the clear.
    assert WORDS.encode() not in bucket.get("x.parquet")


@pytest.mark.parametrize(
    "values",
    [
        pyarrow.array([1, 2, 3, 4], pyarrow.timestamp("ns")),
        pyarrow.array([2**62] * 4, pyarrow.timestamp("us")),
        pyarrow.array([1] * 4, pyarrow.timestamp("us", "Nowhere/Land")),
        pyarrow.array([1] * 4, pyarrow.duration("ns")),
        pyarrow.array([[1]] * 4, pyarrow.list_(pyarrow.time64("ns"))),
        pyarrow.array([{"t": 2**62}] * 4, pyarrow.struct([("t", pyarrow.timestamp("us"))])),
    ],
    ids=lambda values: str(values.type),
)
def test_values_that_python_cannot_hold_stop_nothing(bucket: Bucket, values: Any) -> None:
    source = table(odd=values)
    bucket.put("x.parquet", parquet_of(source))
    matches, left, seen = bucket.run(format="parquet")
    assert [match.id for match in matches] == ["b"]
    assert left == []
    assert gaps(seen) == []
    after = parquet_in(bucket.get("x.parquet")).read()
    assert after.equals(source.filter(pyarrow.array([True, False, True, True])))


def test_a_parquet_column_does_not_hide_another_of_the_same_name(bucket: Bucket) -> None:
    columns = [pyarrow.array(["a"]), pyarrow.array([WORDS]), pyarrow.array([OTHER])]
    bucket.put("x", parquet_of(pyarrow.table(columns, names=["id", "text", "text"])))
    assert [match.id for match in bucket.matches(format="parquet")] == ["a"]


def test_words_in_the_metadata_of_a_parquet_file_are_for_a_person(bucket: Bucket) -> None:
    said = table().slice(0, 1).replace_schema_metadata({"note": WORDS})
    bucket.put("x.parquet", parquet_of(said))
    found = list(bucket.adapter(format="parquet").find(PHRASE))
    (gap,) = gaps(found)
    assert gap.problem is ProblemCode.UNSUPPORTED
    assert WORDS not in gap.why


def test_what_is_no_parquet_is_not_checked(bucket: Bucket) -> None:
    bucket.put("x.parquet", b"PAR1 and nothing else")
    (gap,) = gaps(list(bucket.adapter(format="parquet").find(PHRASE)))
    assert gap.problem is ProblemCode.CORRUPT


def test_neighbours_that_cannot_be_read_are_not_deleted_with_a_version(bucket: Bucket) -> None:
    whole = gzip.compress(as_lines([("b", WORDS), *ROWS[2:]]))
    bucket.put("x.gz", gzip.compress(as_lines(ROWS[:2])) + whole[: len(whole) // 2])
    bucket.put("x.gz", gzip.compress(as_lines([ROWS[0]])))
    (copy,) = residue(bucket.run()[2])
    assert not copy.fixable
    assert "cannot be read" in copy.why
    assert len(bucket.versions()) == 2
    assert residue(bucket.run(versions="delete")[2]) == []
