"""The four verbs for a folder that a persistent client of Chroma keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from purge.adapter import (
    Examined,
    Finding,
    Match,
    NotChecked,
    NotRemoved,
    Observation,
    ProblemCode,
    Removal,
    Residue,
    Statement,
)
from purge.errors import StoreError
from purge.targets import Hit, Targets
from purge_adapters._chroma_clean import clean
from purge_adapters._chroma_client import opened, take_out
from purge_adapters._chroma_folder import Folder
from purge_adapters._chroma_index import Index
from purge_adapters._chroma_items import Item
from purge_adapters._chroma_records import (
    OWN_ID,
    Fields,
    Handle,
    carries_marker,
    digest,
    mapped,
)
from purge_adapters._chroma_residue import Look
from purge_adapters._chroma_search import returned
from purge_adapters._chroma_state import numbers, waiting
from purge_adapters._chroma_store import Collection, Store


class Local:
    """A folder as a site.

    Args:
        folder: where, and which collections.
        fields: what their metadata keys mean.
    """

    def __init__(self, folder: Folder, fields: Fields) -> None:
        self.folder = folder
        self.fields = fields

    # Looking.

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the records that are named, from the tables, the log and the vector indexes."""
        with self.folder.reading() as store:
            self.folder.sound(store)
            collections, missing = self.folder.collections(store)
            yield from missing
            yield Examined(files=1, bytes=self.folder.file.stat().st_size)
            for collection in collections:
                look = _Reading(self.fields, store, collection, self.folder)
                yield from look.find(targets)
            yield from self._search(store, collections, targets)

    def _search(
        self, store: Store, collections: Sequence[Collection], targets: Targets
    ) -> Iterator[Finding]:
        """Look for ids that stand in no table: in the indexes, and with a client's own reads."""
        asked = set(targets.ids(self.fields.site.name))
        known = []
        ghosts: set[tuple[str, str]] = set()
        nowhere = asked
        for collection in collections:
            missing = asked - {item.id for item in store.items(collection, asked)}
            nowhere = nowhere & missing
            index = self.folder.index(collection) if missing else None
            known.append((collection, index))
            if isinstance(index, Index):
                gone = {row.id for row in store.log(collection, after=collection.vector_seq)}
                ghosts |= {(collection.id, id_) for id_ in missing & index.slots.keys() - gone}
        if nowhere:
            answer = returned(self.folder, store, collections, nowhere)
            if isinstance(answer, NotChecked):
                yield answer
            else:
                ghosts |= answer
                yield Examined(note="get and query in a private copy")
        for collection, index in known:
            for owner, id_ in sorted(ghosts):
                if owner != collection.id:
                    continue
                item = Item(id_, None, {})
                vector = index.vector(id_) if isinstance(index, Index) else None
                yield Match(
                    id=id_,
                    part=collection.id,
                    hits=self.fields.match(targets, item),
                    where=f"collection '{collection.name}', vector index only",
                    handle=Handle(collection.id, id_, None).as_json(),
                    trace=self.fields.trace(item, [vector] if vector else []),
                )

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield what is left in the files, and beside them."""
        yield from Look(self.folder, self.fields, targets).observe()

    def check(self) -> Iterator[Statement]:
        """Say what is there and what can be proved."""
        with self.folder.reading() as store:
            if not store.is_sound():
                yield Statement("SQLite finds the database damaged.", ok=False)
                return
            try:
                self.folder.must_be_writable(store)
            except StoreError as error:
                yield Statement(str(error), ok=False)
            collections, missing = self.folder.collections(store)
            names = [
                each.name for each in store.collections(self.folder.tenant, self.folder.database)
            ]
            for each in missing:
                yield Statement(f"There is no {each.where}.{_nearest(each.where, names)}", ok=False)
            for collection in collections:
                yield Statement(
                    f"Collection '{collection.name}' holds {store.count(collection)} records."
                )
                index = self.folder.index(collection)
                if isinstance(index, NotChecked):
                    yield Statement(f"The {index.where} cannot be read: {index.why}.", ok=False)
            if not collections and not missing:
                yield Statement("There is no collection yet.")
            yield from self._check_keys({key for each in collections for key in store.keys(each)})
        if (sentence := self.folder.held_by_others()) is not None:
            yield Statement(f"{sentence} While it runs, nothing is removed here.", ok=False)
        if self.folder.unseen():
            yield Statement(
                "Processes of other users cannot be seen, so that one of them may hold the folder."
            )
        yield Statement(
            "What is removed here can be proved gone from every file of the folder, "
            "vectors and trigram index included."
        )

    def _check_keys(self, keys: set[str]) -> Iterator[Statement]:
        for key, use in mapped(self.fields.site).items():
            if keys and key not in keys:
                yield Statement(
                    f"No record has the metadata key that '{use}' names.{_nearest(key, keys)}",
                    ok=False,
                )

    # Acting.

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Take records out through a client of our own, when nobody else has the folder open."""
        with self.folder.reading() as store:
            self.folder.sound(store)
            self.folder.must_be_writable(store)
        if (sentence := self.folder.holder()) is not None:
            for removal in removals:
                yield NotRemoved(removal.match, ProblemCode.HELD_OPEN, sentence)
            return
        with opened(self.folder.directory, self.folder.tenant, self.folder.database) as client:
            yield from take_out(client, removals, self.fields, overwrite=False)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Clean the files of what was deleted."""
        yield from clean(self.folder, residue)


class _Reading:
    """One look at one collection."""

    def __init__(
        self, fields: Fields, store: Store, collection: Collection, folder: Folder
    ) -> None:
        self.fields = fields
        self.store = store
        self.collection = collection
        self.folder = folder
        self._index: Index | NotChecked | None = None
        self._opened = False
        self._log: dict[str, list[bytes]] | None = None
        self._waiting: dict[str, bytes] = {}

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the matches in the collection and how much was read."""
        store, collection = self.store, self.collection
        if targets.needs_texts or store.is_behind(collection):
            count = unlinked = 0
            for item in store.items(collection):
                count, unlinked = count + 1, unlinked + self.fields.is_unlinked(item)
                yield from self._matches(item, targets)
        else:
            # Where no text is looked for, the fields that are say which records to read.
            count, unlinked = store.count(collection), self._unlinked()
            for item in store.items(collection, self._candidates(targets)):
                yield from self._matches(item, targets)
        yield Examined(records=count, unlinked=unlinked)
        if isinstance(self._index, NotChecked):
            yield self._index

    def _candidates(self, targets: Targets) -> set[str]:
        site = self.fields.site
        found = set(targets.ids(site.name))
        wanted = [(field, targets.lineage(source)) for source, field in site.derived_from.items()]
        wanted.append((site.subject, targets.subjects()))
        for field, values in wanted:
            if field == OWN_ID:
                found |= set(values)
            elif field is not None and values:
                found |= self.store.named(self.collection, field, values)
        return found

    def _unlinked(self) -> int:
        """Count the records that do not say what they derive from."""
        fields = [field for field in self.fields.site.derived_from.values() if field is not None]
        if not self.fields.site.derived_from or OWN_ID in fields:
            return 0
        some = self.store.having(self.collection, fields)
        linked = sum(
            not self.fields.is_unlinked(item) for item in self.store.items(self.collection, some)
        )
        return self.store.count(self.collection) - linked

    def _matches(self, item: Item, targets: Targets) -> Iterator[Match]:
        hits = self.fields.match(targets, item)
        if hits:
            yield self._match(item, hits)

    def _match(self, item: Item, hits: tuple[Hit, ...]) -> Match:
        vectors, newest = self._vectors(item.id)
        return Match(
            id=item.id,
            part=self.collection.id,
            hits=hits,
            where=f"collection '{self.collection.name}'",
            handle=Handle(self.collection.id, item.id, digest(item)).as_json(),
            trace=self.fields.trace(item, vectors),
            parents=self.fields.parents(item),
            readability=self.fields.readability(item, hits, newest),
            carries_marker=carries_marker(item),
            created=item.created,
            subjects=self.fields.subjects(item),
            scope=self.fields.scope(item),
        )

    def _vectors(self, id_: str) -> tuple[list[tuple[float, ...]], tuple[float, ...] | None]:
        """Return every vector that stands anywhere for a record, and the one that reads return."""
        if self._log is None:
            log = list(self.store.log(self.collection))
            self._log = {}
            for row in log:
                if row.vector:
                    self._log.setdefault(row.id, []).append(row.vector)
            self._waiting = waiting(self.collection, log)
            self._index = self.folder.index(self.collection)
        logged = [numbers(vector) for vector in self._log.get(id_, ())]
        indexed = self._index.vector(id_) if isinstance(self._index, Index) else None
        newest = numbers(self._waiting[id_]) if id_ in self._waiting else indexed
        return [*logged, *([indexed] if indexed else [])], newest


def _nearest(name: str, known: Sequence[str] | set[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name.removeprefix("collection ").strip("'"), sorted(known), 1)
    return f" Did you mean '{close[0]}'?" if close else ""
