"""What stands in ``chroma.sqlite3``: collections, records, and the log of writes.

Reads through a connection that changes nothing; knows the tables that Chroma 1.5 keeps (by
experiment with 1.5.9) and nothing of targets. Metadata and documents are in tables of their own,
vectors are in the files of a segment, and every write stands in ``embeddings_queue`` until the
segment that holds the vectors has been written out.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection as AnyOf
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge_adapters._chroma_items import (
    DELETE,
    UPDATE,
    UPSERT,
    Item,
    LogRow,
    Value,
    applied,
    grouped,
    value_of,
)
from purge_adapters._chroma_schema import hnsw_of, spare_keys_of

DATABASE: Final = "chroma.sqlite3"
FULLTEXT: Final = "embedding_fulltext_search"
HNSW: Final = "urn:chroma:segment/vector/hnsw-local-persisted"
KNOWN: Final[Mapping[str, int]] = {"sysdb": 10, "metadb": 6, "embeddings_queue": 2}
"""The last migration of each part that Chroma 1.5.9 makes."""
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection, with the segments that hold it and how far each has come in the log."""

    id: str
    name: str
    dimension: int | None
    hnsw: Mapping[str, object]
    """How the vector index is configured."""
    metadata_segment: str | None
    metadata_seq: int
    vector_segment: str | None
    vector_type: str
    vector_seq: int


class Store:
    """The content of one ``chroma.sqlite3``.

    Raises:
        Permanent: it is not the database of a Chroma that is known here.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.versions = self._versions()
        newer = [part for part, known in KNOWN.items() if self.versions.get(part, 0) > known]
        if newer or set(self.versions) - set(KNOWN):
            raise Permanent(
                "This database was written by a newer Chroma than is known here; it was left "
                "as it is.",
                problem=ProblemCode.UNSUPPORTED,
            )

    def _versions(self) -> dict[str, int]:
        if "migrations" not in self._tables():
            raise Permanent(
                "The database is not Chroma's: it has no table of migrations.",
                problem=ProblemCode.UNSUPPORTED,
            )
        rows = self.connection.execute("SELECT dir, max(version) FROM migrations GROUP BY dir")
        return {str(part): int(version) for part, version in rows}

    def _tables(self) -> set[str]:
        rows = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {str(name) for (name,) in rows}

    @property
    def writable(self) -> bool:
        """Whether every migration is the one that is known here, so that it may be written to."""
        return self.versions == dict(KNOWN)

    def is_sound(self) -> bool:
        """Whether SQLite finds the database undamaged."""
        (said,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
        return str(said) == "ok"

    # Collections.

    def collections(self, tenant: str | None = None, database: str = "") -> list[Collection]:
        """Return the collections of a database of a tenant, or all (``tenant=None``)."""
        segments: dict[str, dict[str, tuple[str, str]]] = {}
        for id_, type_, scope, owner in self.connection.execute(
            "SELECT id, type, scope, collection FROM segments"
        ):
            segments.setdefault(owner, {})[scope] = (id_, type_)
        reached = dict(self.connection.execute("SELECT segment_id, seq_id FROM max_seq_id"))
        schema = "schema_str" if self.versions.get("sysdb", 0) >= 10 else "NULL"
        where = "" if tenant is None else "WHERE d.tenant_id = ? AND d.name = ?"
        rows = self.connection.execute(
            f"SELECT c.id, c.name, c.dimension, c.config_json_str, {schema} "  # noqa: S608
            f"FROM collections c JOIN databases d ON d.id = c.database_id {where} ORDER BY c.name",
            () if tenant is None else (tenant, database),
        ).fetchall()
        none = (None, "")
        found = []
        for id_, name, dimension, configuration, schema_text in rows:
            mine = segments.get(id_, {})
            metadata, _ = mine.get("METADATA", none)
            vector, vector_type = mine.get("VECTOR", none)
            found.append(
                Collection(
                    id=id_,
                    name=name,
                    dimension=dimension,
                    hnsw=hnsw_of(schema_text, configuration),
                    metadata_segment=metadata,
                    metadata_seq=_number(reached.get(metadata)),
                    vector_segment=vector,
                    vector_type=vector_type,
                    vector_seq=_number(reached.get(vector)),
                )
            )
        return found

    def segment_ids(self) -> set[str]:
        """Return the ids of all segments of all collections."""
        return {str(id_) for (id_,) in self.connection.execute("SELECT id FROM segments")}

    # Records.

    def count(self, collection: Collection) -> int:
        """Return how many records the metadata segment has."""
        (count,) = self.connection.execute(
            "SELECT count(*) FROM embeddings WHERE segment_id = ?", (collection.metadata_segment,)
        ).fetchone()
        return int(count)

    def items(self, collection: Collection, ids: AnyOf[str] | None = None) -> Iterator[Item]:
        """Yield the records, with the writes that the metadata segment has not taken in yet.

        Args:
            collection: whose records.
            ids: only these; ``None``: all.
        """
        pending = [
            row
            for row in self.log(collection, after=collection.metadata_seq)
            if ids is None or row.id in ids
        ]
        rows = self._rows(collection, ids)
        if not pending:
            yield from rows
            return
        items = {item.id: item for item in rows}
        for row in pending:
            known = items.get(row.id)
            if row.operation == DELETE:
                items.pop(row.id, None)
            elif row.operation == UPSERT or (row.operation == UPDATE) == (known is not None):
                items[row.id] = applied(known or Item(row.id, None, {}), row)
        yield from items.values()

    def is_behind(self, collection: Collection) -> bool:
        """Whether the log has writes that the metadata segment has not taken in."""
        return any(True for _ in self.log(collection, after=collection.metadata_seq))

    def named(self, collection: Collection, key: str, values: Iterable[str]) -> set[str]:
        """Return the ids of the records whose field may hold one of these values, and of no fewer.

        A value may stand in a JSON array within a string, with escapes; numbers are not told
        apart. Whoever reads the records decides.
        """
        found: set[str] = set()
        for value in values:
            found |= self._ids(
                "SELECT e.embedding_id FROM embedding_metadata m JOIN embeddings e ON e.id = m.id "
                "WHERE e.segment_id = ?1 AND m.key = ?2 AND (m.string_value IS NULL "
                "OR instr(m.string_value, ?3) OR instr(m.string_value, '\\'))",
                (collection.metadata_segment, key, value),
            )
        if self.versions.get("metadb", 0) >= 6:
            found |= self._ids(
                "SELECT DISTINCT e.embedding_id FROM embedding_metadata_array a "
                "JOIN embeddings e ON e.id = a.id WHERE e.segment_id = ?1 AND a.key = ?2",
                (collection.metadata_segment, key),
            )
        return found

    def having(self, collection: Collection, keys: Sequence[str]) -> set[str]:
        """Return the ids of the records that have one of these metadata keys."""
        found: set[str] = set()
        for table in self._metadata_tables():
            for key in keys:
                found |= self._ids(
                    f"SELECT e.embedding_id FROM {table} m JOIN embeddings e ON e.id = m.id "  # noqa: S608
                    "WHERE e.segment_id = ?1 AND m.key = ?2",
                    (collection.metadata_segment, key),
                )
        return found

    def _ids(self, statement: str, values: Sequence[object]) -> set[str]:
        return {str(id_) for (id_,) in self.connection.execute(statement, values)}

    def _metadata_tables(self) -> tuple[str, ...]:
        arrays = self.versions.get("metadb", 0) >= 6
        return ("embedding_metadata", *(["embedding_metadata_array"] if arrays else []))

    def ids(self, collection: Collection) -> set[str]:
        """Return the ids of all records."""
        if self.is_behind(collection):
            return {item.id for item in self.items(collection)}
        return self._ids(
            "SELECT embedding_id FROM embeddings WHERE segment_id = ?",
            (collection.metadata_segment,),
        )

    def _rows(self, collection: Collection, ids: AnyOf[str] | None) -> Iterator[Item]:
        arrays = self._arrays(collection)
        select = (
            "SELECT e.id, e.embedding_id, e.created_at, m.key, m.string_value, m.int_value, "
            "m.float_value, m.bool_value FROM embeddings e "
            "LEFT JOIN embedding_metadata m ON m.id = e.id WHERE e.segment_id = ?"
        )
        segment = collection.metadata_segment
        if ids is None:
            yield from grouped(
                self.connection.execute(f"{select} ORDER BY e.id", (segment,)), arrays
            )
            return
        wanted = list(ids)
        for at in range(0, len(wanted), _BATCH):
            part = wanted[at : at + _BATCH]
            marks = ", ".join("?" * len(part))
            yield from grouped(
                self.connection.execute(
                    f"{select} AND e.embedding_id IN ({marks}) ORDER BY e.id", (segment, *part)
                ),
                arrays,
            )

    def _arrays(self, collection: Collection) -> dict[int, dict[str, Value]]:
        if self.versions.get("metadb", 0) < 6:
            return {}
        found: dict[int, dict[str, Value]] = {}
        for row, key, *values in self.connection.execute(
            "SELECT a.id, a.key, a.string_value, a.int_value, a.float_value, a.bool_value "
            "FROM embedding_metadata_array a JOIN embeddings e ON e.id = a.id "
            "WHERE e.segment_id = ? ORDER BY a.rowid",
            (collection.metadata_segment,),
        ):
            held = found.setdefault(row, {}).setdefault(key, [])
            if isinstance(held, list):
                held.append(value_of(values))
        return found

    def holds(self, text: str) -> bool:
        """Whether a live record, or the name of a collection, holds this text."""
        for table in self._metadata_tables():
            if self._any(
                f"SELECT 1 FROM {table} m WHERE (instr(m.string_value, ?1) OR instr(m.key, ?1)) "  # noqa: S608
                "AND EXISTS (SELECT 1 FROM embeddings e JOIN segments s ON s.id = e.segment_id "
                "WHERE e.id = m.id) LIMIT 1",
                text,
            ):
                return True
        return self._any(
            "SELECT 1 FROM embeddings e JOIN segments s ON s.id = e.segment_id "
            "WHERE instr(e.embedding_id, ?1) LIMIT 1",
            text,
        ) or self._any(
            "SELECT 1 FROM collections WHERE instr(name, ?1) UNION ALL SELECT 1 "
            "FROM collection_metadata WHERE instr(str_value, ?1) OR instr(key, ?1) LIMIT 1",
            text,
        )

    def _any(self, statement: str, text: str) -> bool:
        return self.connection.execute(statement, (text,)).fetchone() is not None

    # The log.

    def log(self, collection: Collection, after: int = 0) -> Iterator[LogRow]:
        """Yield the writes that still stand in the log, oldest first."""
        for seq, operation, id_, vector, content in self.connection.execute(
            "SELECT seq_id, operation, id, vector, metadata FROM embeddings_queue "
            "WHERE topic LIKE ? AND seq_id > ? ORDER BY seq_id",
            (f"persistent://%/{collection.id}", after),
        ):
            said = json.loads(content) if content else {}
            yield LogRow(seq, operation, id_, vector, said if isinstance(said, dict) else {})

    @property
    def purges_log(self) -> bool:
        """Whether Chroma itself drops the writes that every segment has taken in."""
        row = self.connection.execute(
            "SELECT config_json_str FROM embeddings_queue_config LIMIT 1"
        ).fetchone()
        said = json.loads(row[0]) if row and row[0] else {}
        return bool(said.get("automatically_purge", False))

    def stray_log_rows(self) -> int:
        """Count the writes in the log of collections that are no more."""
        (count,) = self.connection.execute(
            "SELECT count(*) FROM embeddings_queue q WHERE NOT EXISTS "
            "(SELECT 1 FROM collections c WHERE q.topic LIKE 'persistent://%/' || c.id)"
        ).fetchone()
        return int(count)

    def stray_rows(self) -> int:
        """Count the records in the tables that belong to no segment any more."""
        (count,) = self.connection.execute(
            "SELECT count(*) FROM embeddings WHERE segment_id NOT IN (SELECT id FROM segments)"
        ).fetchone()
        return int(count)

    def last_logged(self) -> int:
        """Return the number of the last write in the log."""
        (last,) = self.connection.execute("SELECT max(seq_id) FROM embeddings_queue").fetchone()
        return _number(last)

    def last_seq(self) -> int:
        """Return the number of the last write there ever was."""
        (last,) = self.connection.execute("SELECT max(seq_id) FROM max_seq_id").fetchone()
        return max(_number(last), self.last_logged())

    def has_churn(self) -> bool:
        """Whether anything was ever deleted or updated: there were more writes than records."""
        (count,) = self.connection.execute("SELECT count(*) FROM embeddings").fetchone()
        return self.last_seq() > int(count)

    # The schema.

    def spare_keys(self, collection: Collection) -> set[str]:
        """Return the metadata keys that the collection's schema lists and no record has.

        Chroma adds a key to the schema with the first record that has it, and never takes it out.
        """
        if self.versions.get("sysdb", 0) < 10:
            return set()
        (text,) = self.connection.execute(
            "SELECT schema_str FROM collections WHERE id = ?", (collection.id,)
        ).fetchone()
        listed = spare_keys_of(text)
        return listed - self.keys(collection) if listed else listed

    def keys(self, collection: Collection) -> set[str]:
        """Return the metadata keys that some record has."""
        found: set[str] = set()
        for table in self._metadata_tables():
            found |= self._ids(
                f"SELECT DISTINCT m.key FROM {table} m JOIN embeddings e ON e.id = m.id "  # noqa: S608
                "WHERE e.segment_id = ?",
                (collection.metadata_segment,),
            )
        return found


def _number(value: object) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    return value if isinstance(value, int) else 0
