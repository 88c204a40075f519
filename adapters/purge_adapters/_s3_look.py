"""Reading the objects of a site, current ones and versions alike, and comparing their records.

What cannot be read is noted, never raised and never passed over. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from purge.adapter import NotChecked, ProblemCode, Site
from purge.errors import Permanent, StoreError
from purge.targets import Targets, Trace
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_match import Matcher, is_certain
from purge_adapters._jsonl_record import Entry
from purge_adapters._s3_errors import Missing
from purge_adapters._s3_records import (
    ID,
    KEY,
    METADATA,
    TAGS,
    Spot,
    object_entry,
    spots_of,
    whole_text,
)
from purge_adapters._s3_settings import Format, Places, S3Settings
from purge_adapters._s3_store import Content, Store

__all__ = ["Look", "Reader", "fields_of"]


def fields_of(site: Site, settings: S3Settings) -> Fields:
    """Return which fields of a record mean what."""
    id = settings.id
    if id is None and settings.format == "object":
        id = ID if settings.key is not None else KEY
    return Fields.of(site, id, settings.text, settings.time)


@dataclass(slots=True)
class Look:
    """What reading one object, or one version of it, met besides its records."""

    key: str = field(repr=False)
    where: str
    version: str | None = None
    """The version that is asked for; ``None``: the current one."""
    etag: str = ""
    read_version: str | None = None
    """The version that was read."""
    size: int = 0
    records: int = 0
    gaps: list[NotChecked] = field(default_factory=list)
    gone: bool = False

    def miss(self, why: str, problem: str) -> None:
        """Note that it could not be looked at, or only in part."""
        self.gaps.append(NotChecked(self.where, why, ProblemCode(problem)))


class Reader:
    """Reads objects of one site for one run's targets."""

    def __init__(self, site: Site, store: Store, targets: Targets) -> None:
        self.site = site
        self.store = store
        self.places: Places = store.places
        self.targets = targets
        self.form = Format(store.settings.format)
        self.fields = fields_of(site, store.settings)
        self.matcher = Matcher(site.name, targets)
        self.secrets = _secrets(site, targets)
        self.key_decides = self.form is Format.OBJECT and self._is_decided_by_keys()
        """Whether a record is named by its object's key alone, so that nothing need be read."""

    def _is_decided_by_keys(self) -> bool:
        paths = {self.fields.id, *self.fields.parents.values(), *self.fields.scope.values()}
        if self.fields.subject is not None:
            paths.add(self.fields.subject)
        return not self.targets.needs_texts and paths <= {(ID,), (KEY,), None}

    def look(self, key: str, version: str | None = None, when: str = "") -> Look:
        """Begin to look at an object or a version of it."""
        return Look(key, self.places.shown(key, tuple(self.secrets)) + when, version)

    def spots(self, look: Look) -> Iterator[Spot]:
        """Yield the records of an object. What goes wrong is noted in ``look``.

        Raises:
            Transient: the server cannot be reached now.
            Permanent: it may not be asked at all, or the bucket is gone.
        """
        content: Content | None = None
        try:
            content = self.store.open(look.key, look.version)
            look.etag, look.read_version, look.size = content.etag, content.version, content.size
            with closing(content):
                labels = self._labels(look, content)
                if self.form is Format.OBJECT:
                    yield self._object(look, content, labels)
                elif look.size:
                    yield from self._records(look, content, labels)
                else:
                    # A folder's own object, or a sign that a job is done: no records in any form.
                    self._compare(look, labels, [])
        except Missing:
            look.gone = True
            if content is None:
                # Listed, and not there: deleted meanwhile, or a key that the server cannot give.
                # SeaweedFS 4.48 lists versions of keys with control characters under other keys.
                look.miss("it is listed, and cannot be read under its key", _CHANGED)
        except Permanent as error:
            if content is None and error.problem == ProblemCode.UNREACHABLE:
                raise
            look.miss(str(error), error.problem)
            if self.form is Format.OBJECT:
                yield self._unread(look)

    def _records(
        self, look: Look, content: Content, labels: Mapping[str, object]
    ) -> Iterator[Spot]:
        said: list[str] = []
        for spot in spots_of(content, self.form, self.fields, look.key, said):
            look.records += 1
            if spot.entry.is_damaged:
                look.miss("a record is damaged: neither JSON nor text", _CORRUPT)
            yield spot
        self._compare(look, labels, said)

    def _object(self, look: Look, content: Content, labels: Mapping[str, object]) -> Spot:
        look.records += 1
        data: bytes | None = None
        try:
            data = whole_text(content)
        except Permanent as error:
            if not self.key_decides:
                look.miss(str(error), error.problem)
        entry = object_entry(data, look.key, self._id(look.key), labels, self.fields)
        return Spot(entry, 0, 0, 0, 0, document=True)

    def unread(self, look: Look) -> Spot:
        """Return an object as a record of which only the key is known."""
        look.records += 1
        return self._unread(look)

    def _unread(self, look: Look) -> Spot:
        entry = object_entry(None, look.key, self._id(look.key), {}, self.fields)
        return Spot(entry, 0, 0, 0, 0, document=True)

    def _id(self, key: str) -> str | None:
        return self.places.id_of(key) if self.store.settings.key is not None else None

    def _labels(self, look: Look, content: Content) -> dict[str, object]:
        """Return the object's own metadata and tags: they stand outside its content."""
        labels: dict[str, object] = {METADATA: dict(content.head.get("Metadata", {}))}
        if content.head.get("TagCount"):
            try:
                labels[TAGS] = self.store.tags(look.key, look.version or content.version)
            except StoreError as error:
                look.miss(f"its tags cannot be read: {error}", error.problem)
        return labels

    def _compare(self, look: Look, labels: Mapping[str, object], said: list[str]) -> None:
        """Look for words in what an object says besides its records; they cannot be taken out.

        Args:
            look: at the object.
            labels: its metadata and tags.
            said: what its content says besides records.
        """
        if not self.targets.needs_texts:
            return
        pairs = [
            pair for item in labels.values() if isinstance(item, dict) for pair in item.items()
        ]
        texts = [look.key, *said, *(text for pair in pairs for text in pair)]
        if any(self.matcher.holds(str(text)) for text in texts):
            look.miss(
                "the object's own key, metadata or tags (of the object, or in the file) hold words "
                "that are looked for; they are no record of it, so a person has to change them",
                ProblemCode.UNSUPPORTED,
            )

    def keys_of(self, spot: Spot) -> frozenset[int]:
        """Return the targets that name a record without a doubt about its scope."""
        hits = self.matcher.hits(spot.entry)
        if not is_certain(hits):
            return frozenset()
        return frozenset(hit.key for hit in hits if not hit.scope_unknown)

    def trace_of(self, entry: Entry) -> Trace:
        """Return what a record looks like in bytes; the strings that matched are its texts."""
        matched = self.matcher.matched(entry)
        return entry.trace(path for path, is_key in matched if not is_key)

    def keys_in_copy(self, spot: Spot) -> frozenset[int]:
        """Return the targets for which a record of an older version has to go."""
        entry = spot.entry
        hits = self.matcher.hits(entry)
        if not is_certain(hits):
            return frozenset()
        return self.targets.counting(
            self.site.name,
            hits,
            id=entry.name,
            part=entry.part,
            texts=self.trace_of(entry).texts,
            carries_marker=entry.carries_marker,
        )


_CORRUPT = ProblemCode.CORRUPT
_CHANGED = ProblemCode.CHANGED_UNDERNEATH


def _secrets(site: Site, targets: Targets) -> list[str]:
    """Return what may stand in no place that is shown to people."""
    values = [target.value for target in targets]
    values += [trace.id for trace in targets.traces(site.name)]
    return [value for value in values if len(value) > 3]
