"""What is left of records in a folder of Chroma's, apart from what its reads return.

Reads the files themselves: the pages of the database, the log of writes, the trigram index, the
files of the vector indexes, and what lies beside them. Nothing is opened with a client.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

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
from purge_adapters._chroma_around import Around
from purge_adapters._chroma_controls import Trial
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_index import DATA, Index
from purge_adapters._chroma_items import DELETE
from purge_adapters._chroma_needles import Database, Needles, mapped, needles_of
from purge_adapters._chroma_records import Fields, is_neutral
from purge_adapters._chroma_state import (
    FULLTEXT,
    INDEX,
    LOG,
    PAGES,
    ROWS,
    SCHEMA,
    State,
    fixable,
    strings_of,
)
from purge_adapters._chroma_store import DATABASE, Collection, Store
from purge_adapters._sqlite import moment
from purge_adapters._sqlite_pages import FREE, Malformed


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
                yield from self._in_indexes(states, gone)
            around = Around(self.folder, self.site, needles)
            yield from around.inside(store, orphans_count=bool(self.targets))
            with self._database(store) as database:
                if isinstance(database, Database):
                    yield from self._in_database(store, database, needles)
                    yield Control(None, passed=self.sound, on_target=False)
                    yield from Trial(store, database, states, self.fields).controls(readable)
                else:
                    yield database
                    yield Control(None, passed=False, on_target=False)
        yield from around.outside()
        if (sentence := self.folder.holder()) is not None:
            yield NotChecked(
                self.folder.name,
                f"{sentence} What it keeps in memory, and may return, cannot be seen.",
                ProblemCode.HELD_OPEN,
            )

    # What there is.

    def _state(self, store: Store, collection: Collection, index: Index | None) -> State:
        log = list(store.log(collection))
        state = State(collection, index, store.ids(collection), log)
        named = {row.id for row in log} | {trace.id for trace in self.traces}
        state.touched = {item.id: item for item in store.items(collection, named & state.live)}
        return state

    def _is_readable(self, trace: Trace, states: Iterable[State]) -> bool:
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

    def _unread(self, states: Sequence[State]) -> Targets:
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
        self, store: Store, states: Sequence[State], gone: Sequence[Trace]
    ) -> Iterator[Residue]:
        for state in states:
            if self._is_in_log(state, gone):
                yield fixable(
                    f"log of {state.where}",
                    "writes of removed or replaced records stand there until the vector index "
                    "is written out",
                    LOG,
                    state.collection,
                )
            if self._is_in_schema(store.spare_keys(state.collection), gone):
                yield fixable(
                    f"schema of {state.where}",
                    "it lists a metadata key that no record has any more",
                    SCHEMA,
                    state.collection,
                )
        if store.stray_rows() or store.stray_log_rows():
            yield fixable(DATABASE, "rows of collections that are no more", ROWS)
        texts = [text for trace in gone for text in trace.texts] + list(self.targets.phrases())
        lost = not self.traces and store.has_churn() and trigrams.has_markers(store.connection)
        if lost or trigrams.still_holds(store.connection, texts):
            yield fixable(
                "trigram index", "it keeps the words of deleted rows until it is merged", FULLTEXT
            )

    def _is_in_log(self, state: State, gone: Sequence[Trace]) -> bool:
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
            own = set(strings_of(item)) if item is not None else set()
            old = [text for text in (*strings_of(said), *row.removed_keys()) if text not in own]
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

    def _in_indexes(self, states: Sequence[State], gone: Sequence[Trace]) -> Iterator[Residue]:
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
                yield fixable(
                    f"vector index of {state.where}",
                    f"{DATA} keeps the vectors of {count} deleted or replaced records for good"
                    if count > 1
                    else f"{DATA} keeps the vector of a deleted or replaced record for good",
                    INDEX,
                    state.collection,
                )
            elif index.named - state.live:
                yield fixable(
                    f"vector index of {state.where}",
                    "it still lists deleted records",
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
            yield fixable(DATABASE, f"unused space ({kind}) still holds some of it", PAGES)
        for table in tables:
            yield fixable(f"{DATABASE}, table {table}", "a row holds it", PAGES)
        yield Examined(files=1, bytes=database.size)
