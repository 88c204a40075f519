"""An adapter that keeps the contract, and breaks it in every way that a test asks for.

The engine's own tests run on it, from a manifest, under the dotted name
``purge.testing.faulty:FaultyAdapter``. Without ``faults`` it passes the whole contract suite. Its
store is :class:`purge.testing.faulty_store.FaultyStore`; nobody's real data belongs in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    Control,
    EvidenceKind,
    Examined,
    Finding,
    Match,
    NotChecked,
    NotRemoved,
    Observation,
    ProblemCode,
    Readability,
    Removal,
    Residue,
    Site,
    Statement,
    guard,
)
from purge.matching import How, carries_marker
from purge.targets import Hit, NeedleKind, Record, Targets, Text, Trace
from purge.testing.breakages import read_quietly
from purge.testing.faults import Faults, Journal, Mischief
from purge.testing.faulty_errors import mapped
from purge.testing.faulty_record import (
    bytes_in_file,
    digest,
    field_at,
    readability,
    strings,
    values_at,
)
from purge.testing.faulty_store import (
    FILE,
    Backup,
    Content,
    FaultyStore,
    Fields,
)

_GRAVES: Final = f"{FILE}, deleted part"
_UNFINISHED: Final = "an unfinished copy of the store"


@dataclass(frozen=True, slots=True)
class FaultySettings:
    """The keys of a ``faulty`` site."""

    path: str
    """The folder of the store."""
    id: str = "id"
    text: tuple[str, ...] = ("text",)
    created: str | None = None
    vector: str = "vector"
    journal: str | None = None
    """The file in which all calls are noted. With ``faults`` the default is the folder's path
    with ``.journal`` added; without, nothing is noted."""
    faults: Faults = field(default_factory=Faults)


class FaultyAdapter(Adapter[FaultySettings]):
    """Serves a :class:`~purge.testing.faulty_store.FaultyStore`, with faults on demand.

    A record is *archived* when its field ``archived`` is true, and *blanked* when ``blanked`` is.
    """

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="faulty",
        summary="One JSON file, with faults on demand. For tests only.",
        evidence=EvidenceKind.BYTES,
        actions=frozenset(Action),
    )
    Settings: ClassVar[type] = FaultySettings

    def __init__(self, site: Site, settings: FaultySettings) -> None:
        super().__init__(site, settings)
        folder = site.path(settings.path)
        self.store = FaultyStore(folder)
        self.faults = settings.faults
        self.mischief = Mischief(self.faults, Journal(journal_of(site, settings)))

    def check(self) -> Iterator[Statement]:
        """Say whether the store can be read."""
        self.mischief.begin("check")
        with mapped():
            content = self.store.load()
        yield Statement(f"{len(content.records)} records can be read.")
        yield Statement("Every byte of the store can be looked at.")

    # --- find -------------------------------------------------------------------------------

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the live records that hold a target."""
        self.mischief.begin("find")
        with mapped():
            content = self.store.load()
            size = self.store.file.stat().st_size
        found = 0
        for fields in content.records:
            match = self._match(targets, fields)
            if match is not None:
                yield match
                found += 1
                self.mischief.crash("find", found)
        if "find" in self.faults.not_checked:
            yield NotChecked("a part of the store", "a test asked for it")
        yield Examined(
            files=1,
            bytes=size,
            records=len(content.records),
            unlinked=sum(not self._linked(fields) for fields in content.records),
        )

    def record(self, fields: Fields) -> Record:
        """Return what is looked at of a record."""
        subject = self.site.subject
        scope = {
            key: str(field_at(fields, name))
            for key, name in self.site.scope.items()
            if field_at(fields, name) is not None
        }
        return Record(
            id=fields[self.settings.id],
            texts=tuple(Text(name, value) for name, value in strings(fields)),
            subjects=values_at(fields, subject) if subject else (),
            scope=scope,
            parents=self._parents(fields),
        )

    def _parents(self, fields: Fields) -> dict[str, tuple[str, ...]]:
        found = {}
        for source, name in self.site.derived_from.items():
            if name is None:
                continue
            own = (fields[self.settings.id],)
            values = own if name == "$id" else values_at(fields, name)
            if values:
                found[source] = values
        return found

    def _linked(self, fields: Fields) -> bool:
        return not self.site.derived_from or bool(self._parents(fields))

    def _match(self, targets: Targets, fields: Fields) -> Match | None:
        record = self.record(fields)
        hits = targets.match(self.site.name, record)
        if not hits:
            return None
        created = fields.get(self.settings.created or "")
        return Match(
            id=record.id,
            hits=hits,
            where=FILE,
            handle={
                "id": record.id,
                "digest": digest(fields),
                "fields": sorted(_fields_of(hits)),
            },
            trace=self.trace(fields),
            parents=self._parents(fields),
            readability=readability(fields),
            carries_marker=any(carries_marker(text.value) for text in record.texts),
            created=datetime.fromisoformat(created) if created else None,
            subjects=tuple(record.subjects),
            scope=record.scope,
        )

    def trace(self, fields: Fields) -> Trace:
        """Return what a record looks like in bytes."""
        site, settings = self.site, self.settings
        structure = {settings.id, site.subject, *site.scope.values(), *site.derived_from.values()}
        vector = fields.get(settings.vector)
        texts, metadata = [], []
        for name, value in strings(fields, keys=False):
            if name in settings.text:
                texts.append(value)
            elif name not in structure:
                metadata.append(value)
        return Trace(
            id=fields[settings.id],
            texts=tuple(filter(None, texts)),
            metadata=tuple(metadata),
            vectors=(tuple(vector),) if vector else (),
        )

    # --- remove and sanitize ----------------------------------------------------------------

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Bury the records, or empty them."""
        guard(removals)
        self.mischief.begin("remove", tuple(removal.match.id for removal in removals))
        if self.faults.leaves is not None:
            for removal in removals:
                yield NotRemoved(removal.match, self.faults.leaves, "A test asked for it.")
            return
        if self.faults.lies:
            return
        taken: list[Fields] = []
        with mapped(), self.store.locked():
            content = self.store.load()
            left = tuple(self._take_all(content, removals, taken))
            if taken:
                self.store.save(content)
        yield from left
        if taken:
            self._meddle(taken)

    def _take_all(
        self, content: Content, removals: Sequence[Removal], taken: list[Fields]
    ) -> Iterator[NotRemoved]:
        for count, removal in enumerate(removals, 1):
            place = _place(content, removal.match, self.settings.id)
            if place is None or self._is_done(content.records[place]):
                continue
            if not self._agrees(content.records[place], removal.match):
                sentence = "The record changed after it was found."
                yield NotRemoved(removal.match, ProblemCode.CHANGED_UNDERNEATH, sentence)
                continue
            taken.append(self._take(content, place, removal.match))
            if "remove" in self.faults.crash:
                self.store.save(content)
                self.mischief.crash("remove", count)

    def _is_done(self, fields: Fields) -> bool:
        return self.site.action is Action.BLANK and readability(fields) is Readability.BLANKED

    def _agrees(self, fields: Fields, match: Match) -> bool:
        return digest(fields) == match.handle["digest"]

    def _take(self, content: Content, place: int, match: Match) -> Fields:
        fields = content.records[place]
        if self.site.action is Action.DELETE:
            del content.records[place]
        else:
            names = {*self.settings.text, *_strings_in(match.handle["fields"])}
            blanked = {name: value for name, value in fields.items() if name not in names}
            blanked.pop(self.settings.vector, None)
            blanked |= dict.fromkeys(self.settings.text, "")
            content.records[place] = {**blanked, "blanked": True}
        content.graves.append(fields)
        return fields

    def _meddle(self, taken: Sequence[Fields]) -> None:
        back: list[Fields] = []
        resurrects = self.faults.resurrects
        if resurrects == "always" or (resurrects == "once" and self.mischief.once("resurrected")):
            back.extend(taken)
        if self.faults.arrives and (self.faults.arrives_always or self.mischief.once("arrived")):
            round_ = len(self.mischief.journal.calls("remove"))
            name = self.settings.id
            back.extend(
                {**taken[at % len(taken)], name: f"arrived-{round_}-{at}"}
                for at in range(self.faults.arrives)
            )
        if back:
            self.store.plant(back)

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Clear the graves and what killed writers left."""
        self.mischief.begin("sanitize")
        with mapped(), self.store.locked():
            if any(item.where == _GRAVES for item in residue):
                content = self.store.load()
                self.store.save(Content(content.records))
                self.mischief.crash("sanitize", 1)
            if any(item.where == _UNFINISHED for item in residue):
                for path in self.store.unfinished():
                    path.unlink(missing_ok=True)
        self.mischief.once("sanitized")
        if "sanitize" in self.faults.not_checked:
            yield NotChecked("a part of the store", "a test asked for it")

    # --- residue ----------------------------------------------------------------------------

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Look at the graves, the backups, unfinished copies, and the bytes of the file."""
        self.mischief.begin("residue")
        with mapped():
            content = self.store.load()
            data = {path: read_quietly(path) for path in self._quiet_files()}
            backups = tuple(self.store.backups())
        live = [fields for fields in content.records if self._readable(targets, fields)]
        controls = self._controls(content, live, data.get(self.store.file, b""))
        found = list(self._copies(targets, content, backups, data))
        if live or targets.traces(self.site.name):
            found.extend(self._asked_for())
        seen: list[Observation] = [*controls, *found]
        for count, item in enumerate(seen, 1):
            yield item
            self.mischief.crash("residue", count)
        if "residue" in self.faults.not_checked:
            yield NotChecked("a part of the store", "a test asked for it")
        yield Examined(files=len(data), bytes=sum(map(len, data.values())))

    def _quiet_files(self) -> Iterator[Path]:
        yield self.store.file
        yield from self.store.unfinished()

    def _readable(self, targets: Targets, fields: Fields) -> bool:
        hits = targets.match(self.site.name, self.record(fields))
        return bool(hits) and readability(fields) is not Readability.BLANKED

    def _copies(
        self,
        targets: Targets,
        content: Content,
        backups: Sequence[Backup],
        data: Mapping[Path, bytes],
    ) -> Iterator[Residue]:
        if any(self._is_wanted(targets, fields) for fields in content.graves):
            keys = self._keys(targets, content.graves)
            why = "deleted records stay until the file is cleared"
            yield Residue(_GRAVES, why, fixable=True, keys=keys)
        for backup in backups:
            if any(self._is_wanted(targets, fields) for fields in backup.records):
                why = "a backup keeps the records that it was made of"
                keys = self._keys(targets, backup.records)
                yield Residue(backup.path.name, why, backup.until, keys=keys)
        needles = {
            bytes_in_file(needle)
            for trace in targets.traces(self.site.name)
            for needle in trace.needles(NeedleKind.TEXT)
        }
        for path in self.store.unfinished():
            if not needles or any(needle in data[path] for needle in needles):
                yield Residue(_UNFINISHED, "a writer was killed", fixable=True)

    def _is_wanted(self, targets: Targets, fields: Fields) -> bool:
        traces = targets.traces(self.site.name)
        texts = {value for _, value in strings(fields, keys=False)}
        return bool(targets.match(self.site.name, self.record(fields))) or any(
            texts.intersection(trace.texts) for trace in traces
        )

    def _keys(self, targets: Targets, records: Sequence[Fields]) -> frozenset[int]:
        """Return which targets some records are of; nothing where that cannot be told."""
        found: set[int] = set()
        for fields in records:
            found.update(hit.key for hit in targets.match(self.site.name, self.record(fields)))
            texts = {value for _, value in strings(fields, keys=False)}
            for trace in targets.traces(self.site.name):
                if texts.intersection(trace.texts):
                    named = targets.keys_of(self.site.name, trace.id)
                    if not named:
                        return frozenset()
                    found |= named
        return frozenset(found)

    def _asked_for(self) -> Iterator[Residue]:
        for item in self.faults.residue:
            if item.fixable and self.mischief.journal.happened("sanitized"):
                continue
            yield Residue(
                "a place that a test asked for", item.why, item.until, item.fixable, item.problem
            )

    def _controls(self, content: Content, live: Sequence[Fields], data: bytes) -> Iterator[Control]:
        tried = live or content.records[:1]
        for kind in (NeedleKind.ID, NeedleKind.TEXT, NeedleKind.METADATA):
            needles = [
                needle
                for fields in tried
                for needle in self.trace(fields).needles(kind)
                if readability(fields) is not Readability.BLANKED
            ]
            if needles:
                passed = all(bytes_in_file(needle) in data for needle in needles)
                yield Control(kind, passed and not self.faults.control_fails, bool(live))
        # The file is one JSON value, all of it read: nothing can hide between the records.
        yield Control(None, not self.faults.control_fails, on_target=False)


def journal_of(site: Site, settings: FaultySettings) -> Path | None:
    """Return where the calls of a site are noted, for :class:`~purge.testing.faults.Journal`."""
    if settings.journal is not None:
        return site.path(settings.journal)
    return site.path(f"{settings.path}.journal") if settings.faults != Faults() else None


def _place(content: Content, match: Match, name: str) -> int | None:
    """Return where the record is; the unchanged one where several have its id."""
    places = [at for at, fields in enumerate(content.records) if fields[name] == match.handle["id"]]
    same = [at for at in places if digest(content.records[at]) == match.handle["digest"]]
    return next(iter(same or places), None)


def _fields_of(hits: Sequence[Hit]) -> set[str]:
    """Return the top-level fields in which a phrase stands."""
    return {hit.field.split(".")[0] for hit in hits if hit.how in (How.EXACT, How.FOLDED)}


def _strings_in(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, str))
