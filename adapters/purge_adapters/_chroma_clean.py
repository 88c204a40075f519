"""Making removal physical in a folder of Chroma's, without its client.

Chroma has no call for it: it keeps the vectors of deleted records for good, its log until a
thousand further writes, and its own vacuum leaves both. So the files are rewritten here, by the
formats that the other modules know, and only when nobody has the folder open.

Everything that belongs together happens in one transaction of SQLite: a vector index is written
anew into a folder of its own, and the commit that makes the new folder the segment's also takes
the dead writes out of the log. Killed before it, the new folder belongs to nothing, and the next
call removes it; killed after it, the same is true of the old one. Collections keep their ids.
"""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from purge.adapter import NotChecked, ProblemCode, Residue
from purge.errors import Permanent
from purge_adapters._chroma_client import opened
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_index import Index, Malformed, clear_tail, sync_folder, take_over
from purge_adapters._chroma_items import DELETE, Item, LogRow, content_of
from purge_adapters._chroma_rebuild import build_index
from purge_adapters._chroma_schema import without_keys
from purge_adapters._chroma_state import (
    INDEX,
    LOG,
    MEMORY,
    ORPHANS,
    ROWS,
    SCHEMA,
    numbers,
    waiting,
)
from purge_adapters._chroma_store import FULLTEXT as FULLTEXT_TABLE
from purge_adapters._chroma_store import Collection, Store
from purge_adapters._sqlite import checkpoint, optimize_fulltext, vacuum, writing

PATIENCE_S: Final = 5.0


def clean(folder: Folder, residue: Sequence[Residue]) -> Iterator[NotChecked]:
    """Remove what is left of deleted records, as far as ``residue`` calls for it.

    Raises:
        Transient, Permanent: the store cannot be written to.
    """
    parts = {str(each.handle.get("part")) for each in residue}
    collections = {str(each.handle.get("collection")) for each in residue}
    with folder.reading() as store:
        folder.sound(store)
        folder.must_be_writable(store)
        behind = _behind(folder, store)
    if (sentence := folder.holder()) is not None:
        yield NotChecked(folder.name, sentence, ProblemCode.HELD_OPEN)
        return
    if behind:
        _catch_up(folder, behind)
    with writing(folder.file, PATIENCE_S) as connection:
        # Chroma's own schema names a table that does not exist as the parent of another.
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN IMMEDIATE")
        store = Store(connection)
        if (sentence := folder.held_by_others()) is not None or _behind(folder, store):
            yield NotChecked(
                folder.name, sentence or "the store changed meanwhile", ProblemCode.HELD_OPEN
            )
            return
        yield from _rewrite(folder, store, parts, collections)
        connection.execute("COMMIT")
        for orphan in folder.orphans(store):
            if folder.is_only_a_segment(orphan):
                shutil.rmtree(orphan)
        sync_folder(folder.directory)
        if MEMORY in parts:
            yield from _clear_memory(folder, store)
        if parts <= {ORPHANS, MEMORY}:
            return
        optimize_fulltext(connection, FULLTEXT_TABLE)
        if not checkpoint(connection):
            yield NotChecked(folder.file.name, "a reader kept the log", ProblemCode.BUSY)
            return
        vacuum(connection)
        checkpoint(connection)
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            yield NotChecked(
                folder.file.name, "SQLite finds it damaged after the rewrite", ProblemCode.CORRUPT
            )


def _behind(folder: Folder, store: Store) -> list[str]:
    """Return the names of collections with writes that their metadata has not taken in."""
    found, _ = folder.collections(store)
    return [
        each.name for each in found if any(True for _ in store.log(each, after=each.metadata_seq))
    ]


def _catch_up(folder: Folder, names: Sequence[str]) -> None:
    """Let Chroma take in what an interrupted write left in its log, as any next client would."""
    with opened(folder.directory, folder.tenant, folder.database) as client:
        for name in names:
            client.get_collection(name, embedding_function=None).get(limit=1, include=[])


def _rewrite(
    folder: Folder, store: Store, parts: set[str], collections: set[str]
) -> Iterator[NotChecked]:
    last = store.last_seq()
    for collection in folder.collections(store)[0]:
        if collection.id not in collections:
            continue
        if parts & {LOG, INDEX}:
            # The two go together: a delete may leave the log only once the index knows of it.
            index = folder.index(collection)
            if isinstance(index, NotChecked):
                yield index
                continue
            try:
                _clean_collection(folder, store, collection, index)
            except Malformed:
                raise Permanent(
                    "Chroma built another vector index than it was asked for.",
                    problem=ProblemCode.CORRUPT,
                ) from None
        if SCHEMA in parts:
            _clean_schema(store, collection)
    if ROWS in parts:
        _clean_rows(store.connection)
    _keep_counting(store, last, collections)


def _clean_collection(
    folder: Folder, store: Store, collection: Collection, index: Index | None
) -> None:
    live = store.ids(collection)
    log = list(store.log(collection))
    by_id: dict[str, list[LogRow]] = {}
    for row in log:
        by_id.setdefault(row.id, []).append(row)
    if index is None or not index.count:
        if _write_out(folder.directory, store, collection, by_id, live) and store.purges_log:
            _drop(store.connection, log)
            return
    else:
        newer = {id_: numbers(vector) for id_, vector in waiting(collection, log).items()}
        if (
            len(index.uncleaned(index.dead(live)))
            or index.named - live
            or any(index.tail)
            or newer.keys() & index.slots.keys()
        ):
            with _new_segment(folder.directory, store, collection) as new:
                index.write_clean(new, live, newer)
    items = {item.id: item for item in store.items(collection, by_id.keys() & live)}
    for id_, rows in by_id.items():
        _settle(store.connection, rows, items.get(id_))


def _write_out(
    directory: Path,
    store: Store,
    collection: Collection,
    by_id: Mapping[str, Sequence[LogRow]],
    live: set[str],
) -> bool:
    """Write an index out whose vectors stand in the log alone; say whether that could be done."""
    vectors = {}
    for id_ in live:
        known = [row.vector for row in by_id.get(id_, ()) if row.vector]
        if not known:
            return False  # Chroma has lost it; what is left is not made worse.
        vectors[id_] = numbers(known[-1])
    if collection.dimension is None or not by_id:
        return False
    with _new_segment(directory, store, collection) as new:
        build_index(new, vectors, collection.dimension, collection.hnsw)
    store.connection.execute(
        "INSERT OR REPLACE INTO max_seq_id (segment_id, seq_id) VALUES (?, ?)",
        (new.name, max(row.seq for rows in by_id.values() for row in rows)),
    )
    return True


@contextmanager
def _new_segment(directory: Path, store: Store, collection: Collection) -> Iterator[Path]:
    """Give an empty folder, and make it the one of the vector index once it is filled."""
    old = str(collection.vector_segment)
    new = directory / str(uuid.uuid4())
    new.mkdir()
    yield new
    model = directory / old
    if model.is_dir():
        take_over(model, new)
        for path in new.iterdir():
            if (model / path.name).exists():
                take_over(model / path.name, path)
    sync_folder(directory)
    for statement in (
        "UPDATE segments SET id = ? WHERE id = ?",
        "UPDATE segment_metadata SET segment_id = ? WHERE segment_id = ?",
        "UPDATE max_seq_id SET segment_id = ? WHERE segment_id = ?",
    ):
        store.connection.execute(statement, (new.name, old))


def _clear_memory(folder: Folder, store: Store) -> Iterator[NotChecked]:
    """Overwrite what Chroma wrote out behind the last element of its indexes."""
    for name in sorted(store.segment_ids()):
        segment = folder.directory / name
        if segment.is_dir():
            try:
                clear_tail(segment)
            except (Malformed, OSError):
                yield NotChecked(name, "its files do not fit together", ProblemCode.CORRUPT)


def _settle(connection: sqlite3.Connection, rows: Sequence[LogRow], item: Item | None) -> None:
    """Leave in the log only what its record is now; nothing where there is none."""
    if item is None:
        _drop(connection, rows)
        return
    deletes = [at for at, row in enumerate(rows) if row.operation == DELETE]
    start = deletes[-1] + 1 if deletes else 0
    _drop(connection, [row for row in rows[:start] if row.operation != DELETE])
    kept = rows[start:]
    vectors = [row.vector for row in kept if row.vector is not None]
    for row in kept:
        vector = vectors[-1] if row.vector is not None else None
        if vector != row.vector or not _is_current(row, item):
            connection.execute(
                "UPDATE embeddings_queue SET vector = ?, metadata = ? WHERE seq_id = ?",
                (vector, content_of(item), row.seq),
            )


def _is_current(row: LogRow, item: Item) -> bool:
    said = row.item()
    if row.removed_keys():
        return False
    if said.document is not None and said.document != item.document:
        return False
    return all(item.metadata.get(key) == value for key, value in said.metadata.items())


def _drop(connection: sqlite3.Connection, rows: Sequence[LogRow]) -> None:
    connection.executemany(
        "DELETE FROM embeddings_queue WHERE seq_id = ?", [(row.seq,) for row in rows]
    )


def _clean_schema(store: Store, collection: Collection) -> None:
    spare = store.spare_keys(collection)
    if not spare:
        return
    (text,) = store.connection.execute(
        "SELECT schema_str FROM collections WHERE id = ?", (collection.id,)
    ).fetchone()
    store.connection.execute(
        "UPDATE collections SET schema_str = ? WHERE id = ?",
        (without_keys(text, spare), collection.id),
    )


def _clean_rows(connection: sqlite3.Connection) -> None:
    """Take out the rows of collections that are no more."""
    stray = "SELECT id FROM embeddings WHERE segment_id NOT IN (SELECT id FROM segments)"
    for table, column in (
        (FULLTEXT_TABLE, "rowid"),
        ("embedding_metadata", "id"),
        ("embedding_metadata_array", "id"),
        ("embeddings", "id"),
    ):
        connection.execute(f"DELETE FROM {table} WHERE {column} IN ({stray})")  # noqa: S608
    connection.execute(
        "DELETE FROM embeddings_queue WHERE NOT EXISTS (SELECT 1 FROM collections c "
        "WHERE embeddings_queue.topic LIKE 'persistent://%/' || c.id)"
    )


def _keep_counting(store: Store, last: int, collections: set[str]) -> None:
    """See to it that the next write gets a number that no segment has passed already.

    Chroma numbers a write by what stands in its log, and a segment passes over numbers that it
    has seen. So the last number is kept, by the removal of a record that never was, from one of
    the collections that were cleaned.
    """
    if not last or store.last_logged() >= last:
        return
    known = sorted(each.id for each in store.collections())
    ours = [id_ for id_ in known if id_ in collections] or known
    if ours:
        store.connection.execute(
            "INSERT INTO embeddings_queue (seq_id, operation, topic, id, metadata) "
            "VALUES (?, ?, ?, ?, '{}')",
            (last, DELETE, f"persistent://default/default/{ours[0]}", uuid.uuid4().hex),
        )
