"""What is left of records in a folder of Chroma's, apart from what its reads return.

Reads the files themselves: the pages of the database, the log of writes, the trigram index, the
files of the vector indexes, and what lies beside them. Nothing is opened with a client.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from purge.adapter import (
    Control,
    Examined,
    NotChecked,
    Observation,
    ProblemCode,
    Readability,
    Residue,
    Site,
)
from purge.targets import NeedleKind, Record, Targets, Text, Trace
from purge_adapters import _chroma_trigrams as trigrams
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_index import DATA, FILES, Index
from purge_adapters._chroma_needles import (
    Database,
    Finder,
    Needles,
    mapped,
    needles_of,
    vector_pieces,
)
from purge_adapters._chroma_records import Fields, is_neutral
from purge_adapters._chroma_store import DATABASE, DELETE, Collection, Item, LogRow, Store
from purge_adapters._files import os_problem
from purge_adapters._shadows import Shadow, is_variant, look_through, shadows
from purge_adapters._sqlite import JOURNAL, WAL, beside, moment
from purge_adapters._sqlite_pages import FREE, Malformed

LOG: Final = "log"
INDEX: Final = "index"
PAGES: Final = "pages"
FULLTEXT: Final = "fulltext"
SCHEMA: Final = "schema"
ORPHANS: Final = "orphans"
ROWS: Final = "rows"
_NEIGHBOURS: Final = 40


@dataclass(slots=True)
class _State:
    """One collection of the site, as far as looking for residue needs it."""

    collection: Collection
    index: Index | None
    live: set[str]
    log: list[LogRow]
    touched: dict[str, Item] = field(default_factory=dict)
    """The live records that the log or a trace names."""

    @property
    def where(self) -> str:
        return f"collection '{self.collection.name}'"

    def newest(self) -> dict[str, bytes]:
        """Return the vectors that wait in the log, by id."""
        return waiting(self.collection, self.log)

    def replaced(self) -> set[int]:
        """Return the elements of the index whose record has another vector by now."""
        if self.index is None:
            return set()
        found = set()
        for id_, vector in self.newest().items():
            slot = self.index.slots.get(id_)
            if slot is not None and slot not in self.index.alike(numbers(vector)):
                found.add(slot)
        return found

    def vector(self, id_: str) -> tuple[float, ...] | None:
        """Return the vector that a read returns for a record."""
        newest = self.newest().get(id_)
        if newest is not None:
            return numbers(newest)
        return None if self.index is None else self.index.vector(id_)


class Look:
    """One look for what is left in a folder.

    Args:
        folder: the store.
        fields: what its metadata keys mean.
        targets: what is looked for.
    """

    def __init__(self, folder: Folder, fields: Fields, targets: Targets) -> None:
        self.folder = folder
        self.fields = fields
        self.site: Site = fields.site
        self.targets = targets
        self.traces = targets.traces(self.site.name)
        self.sound = True

    def observe(self) -> Iterator[Observation]:
        """Yield everything that ``residue`` yields."""
        with self.folder.reading() as store:
            self.folder.sound(store)
            collections, missing = self.folder.collections(store)
            yield from missing
            states = []
            for collection in collections:
                index = self.folder.index(collection)
                if isinstance(index, NotChecked):
                    self.sound = False
                    yield index
                    index = None
                states.append(self._state(store, collection, index))
            gone: list[Trace] = []
            readable: list[Trace] = []
            for trace in self.traces:
                (readable if self._is_readable(trace, states) else gone).append(trace)
            needles = needles_of(gone, self._unread(states), self.site.name)
            if self.targets:
                yield from self._in_tables(store, states, gone)
                yield from self._in_indexes(states, gone, needles)
            yield from self._in_files(store, needles)
            with self._database(store) as database:
                if isinstance(database, Database):
                    yield from self._in_database(store, database, needles)
                    yield from self._controls(store, database, states, readable)
                else:
                    yield database
        yield from self._beside(needles)
        if (sentence := self.folder.holder()) is not None:
            yield NotChecked(
                self.folder.name,
                f"{sentence} What it keeps in memory, and may return, cannot be seen.",
                ProblemCode.HELD_OPEN,
            )

    # What there is.

    def _state(self, store: Store, collection: Collection, index: Index | None) -> _State:
        log = list(store.log(collection))
        state = _State(collection, index, store.ids(collection), log)
        named = {row.id for row in log} | {trace.id for trace in self.traces}
        state.touched = {item.id: item for item in store.items(collection, named & state.live)}
        return state

    def _is_readable(self, trace: Trace, states: Iterable[_State]) -> bool:
        """Whether a record that was found is still there and has its text.

        Another record of the same id, in another collection, says something else.
        """
        for state in states:
            item = state.touched.get(trace.id)
            if item is None or self.fields.texts(item) != trace.texts:
                continue
            hits = self.fields.match(self.targets, item)
            vector = state.vector(item.id)
            if self.fields.readability(item, hits, vector) is Readability.READABLE:
                return True
        return False

    def _unread(self, states: Sequence[_State]) -> Targets:
        """Return the targets whose own words can only be left-overs: all but live ids."""
        live = {id_ for state in states for id_ in state.live}
        site = self.site.name
        gone = {id_ for id_ in self.targets.ids(site) if id_ not in live}
        return Targets(
            target
            for target in self.targets
            if target.value in gone or target.value in self.targets.phrases()
        )

    # Rows of the database.

    def _in_tables(
        self, store: Store, states: Sequence[_State], gone: Sequence[Trace]
    ) -> Iterator[Residue]:
        for state in states:
            if self._is_in_log(state, gone):
                yield _residue(
                    f"log of {state.where}",
                    "writes of removed or replaced records stand there until the vector index "
                    "is written out",
                    LOG,
                    state.collection,
                )
            if self._is_in_schema(store.spare_keys(state.collection), gone):
                yield _residue(
                    f"schema of {state.where}",
                    "it lists a metadata key that no record has any more",
                    SCHEMA,
                    state.collection,
                )
        if store.stray_rows() or store.stray_log_rows():
            yield _residue(DATABASE, "rows of collections that are no more", ROWS)
        texts = [text for trace in gone for text in trace.texts] + list(self.targets.phrases())
        lost = not self.traces and store.has_churn() and trigrams.has_markers(store.connection)
        if lost or trigrams.still_holds(store.connection, texts):
            yield _residue(
                "trigram index", "it keeps the words of deleted rows until it is merged", FULLTEXT
            )

    def _is_in_log(self, state: _State, gone: Sequence[Trace]) -> bool:
        wanted = {trace.id for trace in gone} | set(self.targets.ids(self.site.name))
        texts = [text for trace in gone for text in trace.needles(NeedleKind.TEXT)]
        vectors = {
            struct.pack(f"<{len(vector)}f", *vector)
            for trace in gone
            for vector in trace.vectors
            if not is_neutral(vector)
        }
        last = {row.id: row.seq for row in state.log if row.vector}
        for row in state.log:
            item = state.touched.get(row.id)
            said = row.item()
            if item is None:
                if row.id in wanted:
                    return True
                if row.operation == DELETE:
                    continue
                if self.fields.match(self.targets, said):
                    return True
            own = set(_strings(item)) if item is not None else set()
            old = [text for text in (*_strings(said), *row.removed_keys()) if text not in own]
            if any(text in each for each in old for text in texts):
                return True
            if (item is None or row.seq < last.get(row.id, 0)) and row.vector in vectors:
                return True
            if item is not None and old and self._names(old):
                return True
        return False

    def _names(self, texts: Sequence[str]) -> bool:
        """Whether a phrase stands in texts that a live record no longer has."""
        record = Record("", [Text("", text) for text in texts])
        return bool(self.targets.match(self.site.name, record))

    def _is_in_schema(self, spare: set[str], gone: Sequence[Trace]) -> bool:
        known = {text for trace in gone for text in trace.metadata}
        return bool(spare & known) or any(self._names([key]) for key in spare)

    # Vector indexes.

    def _in_indexes(
        self, states: Sequence[_State], gone: Sequence[Trace], needles: Needles
    ) -> Iterator[Residue]:
        vectors = [vector for trace in gone for vector in trace.vectors if not is_neutral(vector)]
        for state in states:
            index = state.index
            if index is None:
                continue
            left = index.uncleaned(index.dead(state.live))
            replaced = state.replaced()
            stale = any(
                slot in replaced for vector in vectors for slot in index.alike(vector).tolist()
            )
            if len(left) or stale:
                count = max(1, len(left))
                yield _residue(
                    f"vector index of {state.where}",
                    f"{DATA} keeps the vectors of {count} deleted or replaced records for good"
                    if count > 1
                    else f"{DATA} keeps the vector of a deleted or replaced record for good",
                    INDEX,
                    state.collection,
                )
            elif index.named - state.live:
                yield _residue(
                    f"vector index of {state.where}",
                    "it still lists deleted records",
                    INDEX,
                    state.collection,
                )
            elif Finder(needles).stands_in(bytes(index.tail)):
                # Chroma writes a new index out with whatever stood in that memory before.
                yield _residue(
                    f"vector index of {state.where}",
                    "memory that was written out with it holds it",
                    INDEX,
                    state.collection,
                )

    # Bytes.

    @contextmanager
    def _database(self, store: Store) -> Iterator[Database | NotChecked]:
        path = self.folder.file
        if moment(path).hot:
            yield NotChecked(path.name, "a change is under way", ProblemCode.BUSY)
            return
        with mapped(path) as content:
            try:
                database = Database(content, store.connection)
            except Malformed:
                yield NotChecked(path.name, "its pages do not fit together", ProblemCode.CORRUPT)
                return
            yield database

    def _in_database(
        self, store: Store, database: Database, needles: Needles
    ) -> Iterator[Observation]:
        kinds: dict[str, None] = {}
        tables: dict[str, None] = {}
        for place in database.places(needles):
            if place.kind is not None:
                kinds[place.kind] = None
            elif place.table not in (None, "embeddings_queue", "collections") and not (
                place.needle.text and store.holds(place.needle.text)
            ):
                tables[str(place.table)] = None
        if not self.traces and self.targets and store.has_churn():
            kinds |= {FREE: None} if database.has_full_free_pages() else {}
        # Somebody may have deleted the words earlier, under an id that nobody knows any more.
        if self.targets.needs_texts:
            for kind, content in database.unused_bytes().items():
                if self.targets.mentioned_in(content):
                    kinds[kind] = None
        for kind in kinds:
            yield _residue(DATABASE, f"unused space ({kind}) still holds some of it", PAGES)
        for table in tables:
            yield _residue(f"{DATABASE}, table {table}", "a row holds it", PAGES)
        yield Examined(files=1, bytes=database.size)

    def _in_files(self, store: Store, needles: Needles) -> Iterator[Observation]:
        orphans = self.folder.orphans(store)
        if orphans and self.targets:
            for orphan in orphans:
                if self.folder.is_only_a_segment(orphan):
                    yield _residue(
                        orphan.name, "the index of a collection that is no more", ORPHANS
                    )
                else:
                    yield Residue(orphan.name, "a folder of a collection that is no more")
        count = size = 0
        finder = Finder(needles)
        segments = store.segment_ids()
        sides = [beside(self.folder.file, suffix) for suffix in (WAL, JOURNAL)]
        for path in self.folder.files():
            if isinstance(path, NotChecked):
                yield path
                continue
            name = str(path.relative_to(self.folder.directory))
            if path == self.folder.file or path.parent in orphans:
                continue
            count, size = count + 1, size + path.stat().st_size
            if path in sides:
                with mapped(path) as content:
                    if finder.stands_in(content):
                        yield _residue(name, "pages from before the last change", PAGES)
                continue
            if path.parent.name in segments and path.name in FILES:
                continue  # Understood to the last byte by the index.
            try:
                with mapped(path) as content:
                    if finder.stands_in(content):
                        yield Residue(name, "a file that is not Chroma's holds it")
            except OSError as error:
                problem = os_problem(error, name)
                yield NotChecked(name, str(problem), ProblemCode(problem.problem))
        yield Examined(files=count, bytes=size)

    def _beside(self, needles: Needles) -> Iterator[Observation]:
        """Look through copies of the folder and of its files."""
        files = [path for path in self.folder.files() if isinstance(path, Path)]
        own = [*files, *(beside(self.folder.file, suffix) for suffix in (WAL, JOURNAL, "-shm"))]
        if not needles:
            return
        finder = Finder(needles)
        longest = max(map(len, needles))

        def holds(shadow: Shadow) -> bool:
            rest = b""
            for block in shadow.blocks():
                content = rest + block
                if finder.stands_in(content):
                    return True
                rest = content[-longest:]
            return False

        yield from look_through(shadows(own, self.site), holds)
        for path in sorted(self.folder.directory.parent.iterdir()):
            if path.is_dir() and is_variant(path.name, self.folder.directory.name):
                yield from self._in_copy(path, finder)

    def _in_copy(self, copy: Path, finder: Finder) -> Iterator[Observation]:
        """Look through a folder beside the store that is named after it."""
        count = 0
        for path in sorted(copy.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            try:
                with mapped(path) as content:
                    if finder.stands_in(content):
                        yield Residue(copy.name, "a copy beside the folder, which nothing removes")
                        break
            except OSError as error:
                problem = os_problem(error, copy.name)
                yield NotChecked(copy.name, str(problem), ProblemCode(problem.problem))
        yield Examined(files=count)

    # Controls.

    def _controls(
        self,
        store: Store,
        database: Database,
        states: Sequence[_State],
        readable: Sequence[Trace],
    ) -> Iterator[Control]:
        """Try the look on what it must be able to see."""
        yield Control(None, passed=self.sound, on_target=False)
        tried = list(readable)
        if not tried:
            tried = list(self._neighbours(store, states))
        by_kind = {kind: [t for t in tried if _has(t, kind)] for kind in NeedleKind}
        for kind, traces in by_kind.items():
            seen = (self._sees(database, states, trace, kind) for trace in traces)
            if traces:
                passed = all(seen) if readable else any(seen)
                yield Control(kind, passed=passed, on_target=bool(readable))

    def _sees(
        self, database: Database, states: Sequence[_State], trace: Trace, kind: NeedleKind
    ) -> bool:
        if kind is NeedleKind.VECTOR:
            return any(self._sees_vector(states, vector) for vector in trace.vectors)
        only = Trace(
            trace.id if kind is NeedleKind.ID else "",
            trace.texts if kind is NeedleKind.TEXT else (),
            trace.metadata if kind is NeedleKind.METADATA else (),
        )
        needles = needles_of([only], Targets(()), self.site.name)
        return any(place.kind is None for place in database.places(needles))

    @staticmethod
    def _sees_vector(states: Sequence[_State], vector: Sequence[float]) -> bool:
        pieces = vector_pieces(vector)
        return any(
            (state.index is not None and len(state.index.alike(vector)))
            or any(row.vector and any(p in row.vector for p in pieces) for row in state.log)
            for state in states
        )

    def _neighbours(self, store: Store, states: Sequence[_State]) -> Iterator[Trace]:
        """Yield what a few live records look like."""
        for state in states:
            some = sorted(state.live)[: _NEIGHBOURS // len(states) + 1]
            for item in store.items(state.collection, some):
                vector = state.vector(item.id)
                yield self.fields.trace(item, [vector] if vector else [])


def _has(trace: Trace, kind: NeedleKind) -> bool:
    if kind is NeedleKind.VECTOR:
        return any(vector_pieces(vector) for vector in trace.vectors)
    return bool(trace.needles(kind))


def _residue(where: str, why: str, part: str, collection: Collection | None = None) -> Residue:
    handle: dict[str, object] = {"part": part}
    if collection is not None:
        handle["collection"] = collection.id
    return Residue(where, why, fixable=True, handle=handle)


def _strings(item: Item) -> list[str]:
    texts = [] if item.document is None else [item.document]
    for key, value in item.metadata.items():
        texts.append(key)
        parts = value if isinstance(value, list) else [value]
        texts += [part for part in parts if isinstance(part, str)]
    return texts


def waiting(collection: Collection, log: Iterable[LogRow]) -> dict[str, bytes]:
    """Return the vectors that stand in the log and not yet in the index, by id."""
    return {row.id: row.vector for row in log if row.vector and row.seq > collection.vector_seq}


def numbers(vector: bytes) -> tuple[float, ...]:
    """Return the numbers of a vector as the log keeps it."""
    return struct.unpack(f"<{len(vector) // 4}f", vector)
