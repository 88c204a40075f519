"""Parquet files: their rows as records, and the same file without some of its rows.

Rows are read and written group by group. pyarrow is imported inside functions.
"""

from __future__ import annotations

import base64
import io
import json
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import IO, TYPE_CHECKING, Any, Final

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._codecs import Readable
from purge_adapters._jsonl_record import Fields

if TYPE_CHECKING:
    from purge_adapters._s3_records import Spot

__all__ = ["parquet_rows", "without_rows", "words_of_file"]

_ROWS: Final = 1024
_MAGIC: Final = b"PAR1"


@contextmanager
def _reading() -> Iterator[Any]:
    """Give the driver, and turn what it raises into the contract's error."""
    try:
        import pyarrow as arrow  # type: ignore[import-untyped]  # no types in it
        import pyarrow.parquet as parquet  # type: ignore[import-untyped]  # no types in it
    except ImportError:
        raise Permanent(
            "It is Parquet, for which pyarrow is not installed (extra 's3').",
            problem=ProblemCode.UNSUPPORTED,
        ) from None
    try:
        yield parquet
    except (arrow.ArrowException, OSError, EOFError):
        raise Permanent(
            "It is no Parquet file, or a damaged one.", problem=ProblemCode.CORRUPT
        ) from None


@contextmanager
def _seekable(stream: Readable) -> Iterator[IO[bytes]]:
    """Give a stream as a file: itself if it is one, else a temporary one without a name."""
    if isinstance(stream, io.BufferedRandom):
        yield stream
        return
    with tempfile.TemporaryFile() as file:
        while block := stream.read(1024 * 1024):
            file.write(block)
        file.seek(0)
        yield file


def parquet_rows(stream: Readable, fields: Fields, key: str) -> Iterator[Spot]:
    """Yield every row as a record. Raises ``Permanent`` where it cannot be read."""
    from purge_adapters._s3_records import Spot, record_entry

    with _seekable(stream) as file, _reading() as parquet:
        number = 0
        for batch in parquet.ParquetFile(file).iter_batches(batch_size=_ROWS):
            for row in batch.to_pylist():
                value = _plain(row)
                data = json.dumps(value, ensure_ascii=False, sort_keys=True).encode(
                    "utf-8", "surrogatepass"
                )
                entry = record_entry(value, data, fields, key)
                yield Spot(entry, number, number + 1, number, number + 1)
                number += 1


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, every text in it as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def words_of_file(file: IO[bytes]) -> list[str]:
    """Return what the file says besides its rows: its own metadata, as text."""
    with _reading() as parquet:
        found = parquet.ParquetFile(file).metadata.metadata or {}
    return [
        item.decode("utf-8", "replace")
        for name, value in found.items()
        if not name.startswith(b"ARROW:")
        for item in (name, value)
    ]


def without_rows(file: IO[bytes], out: IO[bytes], gone: Collection[int]) -> None:
    """Write a Parquet file again without the rows of these numbers.

    Schema, the file's own metadata, row groups, format version, and for each column compression
    and dictionary stay as they are. Statistics, pages and bloom filters are made anew, so that
    none tells of a row that went. Page sizes are the driver's own (the file does not say them).

    Raises:
        Permanent: it is damaged.
    """
    import pyarrow as arrow

    with _reading() as parquet:
        source = parquet.ParquetFile(file)
        schema = source.schema_arrow
        with parquet.ParquetWriter(out, schema, **_manner(source)) as writer:
            number = 0
            for at in range(source.num_row_groups):
                group = source.read_row_group(at)
                keep = [number + row not in gone for row in range(group.num_rows)]
                number += group.num_rows
                left = group if all(keep) else group.filter(arrow.array(keep, arrow.bool_()))
                if left.num_rows:
                    writer.write_table(left.cast(schema), row_group_size=left.num_rows)
        out.flush()


def _manner(source: Any) -> dict[str, Any]:
    """Return how a file was written, as far as it tells."""
    metadata = source.metadata
    manner: dict[str, Any] = {"version": _version_of(metadata.format_version)}
    if not metadata.num_row_groups:
        return manner
    group = metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    manner["compression"] = {
        column.path_in_schema: _compression_of(column.compression) for column in columns
    }
    dictionary = [
        column.path_in_schema
        for column in columns
        if any("DICTIONARY" in encoding for encoding in column.encodings)
    ]
    manner["use_dictionary"] = dictionary or False
    manner["write_statistics"] = [
        column.path_in_schema for column in columns if column.is_stats_set
    ] or False
    encodings = {
        column.path_in_schema: encoding
        for column in columns
        if column.path_in_schema not in dictionary
        for encoding in column.encodings
        if encoding.startswith("DELTA") or encoding == "BYTE_STREAM_SPLIT"
    }
    if encodings:
        manner["column_encoding"] = encodings
    return manner


def _version_of(written: str) -> str:
    return written if written in ("1.0", "2.4", "2.6") else "2.6"


def _compression_of(written: str) -> str:
    return {"UNCOMPRESSED": "NONE"}.get(written, written)
