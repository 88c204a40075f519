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
from purge_adapters._s3_rows import told_apart

if TYPE_CHECKING:
    from purge_adapters._s3_records import Spot

__all__ = ["parquet_rows", "without_rows"]

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


def parquet_rows(
    stream: Readable, fields: Fields, key: str, said: list[str] | None = None
) -> Iterator[Spot]:
    """Yield every row as a record.

    Args:
        stream: the file.
        fields: what the columns mean.
        key: of the object.
        said: takes what the file says besides its rows, before the first of them.

    Raises:
        Permanent: it cannot be read.
    """
    from purge_adapters._s3_records import Spot, record_entry

    with _seekable(stream) as file, _reading() as parquet:
        source = parquet.ParquetFile(file)
        if said is not None:
            said += _words_besides_rows(source)
        number = 0
        names = told_apart(source.schema_arrow.names)
        for batch in source.iter_batches(batch_size=_ROWS):
            for values in zip(*map(_values, batch.columns), strict=True):
                value = dict(zip(names, values, strict=True))
                data = json.dumps(value, ensure_ascii=False, sort_keys=True).encode(
                    "utf-8", "surrogatepass"
                )
                entry = record_entry(value, data, fields, key)
                yield Spot(entry, number, number + 1, number, number + 1)
                number += 1


def _values(column: Any) -> list[Any]:
    """Return a column as JSON has it."""
    import pyarrow as arrow

    try:
        return [_plain(value) for value in column.to_pylist()]
    except (ValueError, OverflowError, LookupError, arrow.ArrowException):
        # Python has no nanoseconds, no year 20000, and perhaps not the time zone.
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    """Return one value of which Python may not be able to hold some part."""
    import pyarrow as arrow

    try:
        return _plain(scalar.as_py())
    except (ValueError, OverflowError, LookupError, arrow.ArrowException):
        if isinstance(scalar, arrow.StructScalar):
            names = told_apart(field.name for field in scalar.type)
            return {name: _value(scalar[at]) for at, name in enumerate(names)}
        if isinstance(scalar, arrow.ListScalar):
            return [_value(item) for item in scalar.values]
        if isinstance(scalar, arrow.StringScalar):
            return scalar.as_buffer().to_pybytes().decode("utf-8", "replace")
        return str(scalar.value)


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


def _words_besides_rows(source: Any) -> list[str]:
    """Return the names and values that a file keeps of itself and of its columns, as text."""
    kept = [source.metadata.metadata or {}]
    kept += [field.metadata or {} for field in source.schema_arrow]
    return [
        item.decode("utf-8", "replace")
        for pairs in kept
        for name, value in pairs.items()
        if not name.startswith(b"ARROW:")
        for item in (name, value)
    ]


def without_rows(file: IO[bytes], out: IO[bytes], gone: Collection[int]) -> None:
    """Write a Parquet file again without the rows of these numbers.

    Schema, the file's own metadata, row groups, format version, order, and for each column
    compression, encoding and dictionary stay as they are. Statistics and pages are made anew, so
    that none tells of a row that went; bloom filters are left out for the same reason. Page sizes
    are the driver's own (the file does not say them).

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
    manner: dict[str, Any] = {
        "version": _version_of(metadata.format_version),
        # Without it the driver leaves out all of the file's own metadata.
        "store_schema": bool(metadata.metadata),
        "use_deprecated_int96_timestamps": any(
            source.schema.column(at).physical_type == "INT96" for at in range(metadata.num_columns)
        ),
    }
    if not metadata.num_row_groups:
        return manner
    group = metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    if group.sorting_columns:
        manner["sorting_columns"] = group.sorting_columns
    manner["write_page_index"] = any(column.has_offset_index for column in columns)
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
