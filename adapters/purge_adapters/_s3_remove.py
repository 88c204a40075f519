"""Taking records away: whole objects, or records out of objects that are written again.

A simple delete is used for a whole object: where the bucket has versions it puts a delete marker
on top, so that no older version becomes readable; the versions below are ``sanitize``'s. Every
write is conditional on the ETag of what was read, and an object with nothing to change is not
written.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any, Final

from purge.adapter import NotRemoved, ProblemCode, Removal, Site
from purge.errors import Permanent
from purge_adapters._codecs import Codec, Encoder, read_members
from purge_adapters._jsonl_lines import is_wide
from purge_adapters._s3_attributes import attributes_of
from purge_adapters._s3_errors import Changed, Missing
from purge_adapters._s3_look import fields_of
from purge_adapters._s3_parquet import without_rows
from purge_adapters._s3_records import Spot, begun, plain, spots_of
from purge_adapters._s3_settings import Format
from purge_adapters._s3_store import Content, Store
from purge_adapters._s3_tables import TABLE, Tables

__all__ = ["remove"]

_LARGEST: Final = 5 * 1024**3
"""What PutObject takes (Amazon S3 user guide, object size limits)."""
_CHANGED: Final = "a record changed after it was found; look again."


@dataclass(frozen=True, slots=True)
class _Part:
    """One place of a record, as a handle says it."""

    removal: Removal
    at: int
    digest: str = field(repr=False)

    @property
    def name(self) -> tuple[str, str]:
        """What the record is known by."""
        return self.removal.match.id, self.removal.match.part


def remove(site: Site, store: Store, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
    """Yield what ``remove`` of the adapter yields.

    Raises:
        StoreError: the bucket is gone or cannot be reached.
    """
    told: set[tuple[str, str]] = set()
    remover = _Remover(site, store)
    for key, parts in _by_key(removals).items():
        for item in remover.remove(key, parts):
            record = (item.match.id, item.match.part)
            if record not in told:
                told.add(record)
                yield item


def _by_key(removals: Sequence[Removal]) -> dict[str, list[_Part]]:
    found: dict[str, list[_Part]] = {}
    for removal in removals:
        handle: Mapping[str, Any] = removal.match.handle
        try:
            for part in handle["parts"]:
                made = _Part(removal, int(part["at"]), str(part["digest"]))
                found.setdefault(str(part["key"]), []).append(made)
        except (KeyError, TypeError, ValueError):
            raise Permanent(
                "A plan was made for another adapter or by another version; make it again.",
                problem=ProblemCode.UNSUPPORTED,
            ) from None
    return found


def _leave(parts: Sequence[_Part], problem: str, sentence: str) -> Iterator[NotRemoved]:
    for part in parts:
        yield NotRemoved(part.removal.match, ProblemCode(problem), sentence)


@dataclass(slots=True)
class _Plan:
    """What is to be done to one object."""

    chosen: set[int] = field(default_factory=set)
    """Where the records stand that go."""
    left: list[NotRemoved] = field(default_factory=list)
    document: bool = False
    """The record is the whole document, so the object goes."""


class _Remover:
    """Removes from one bucket."""

    def __init__(self, site: Site, store: Store) -> None:
        self.store = store
        self.form = Format(store.settings.format)
        self.fields = fields_of(site, store.settings)
        self.tables = Tables(store)

    def remove(self, key: str, parts: Sequence[_Part]) -> Iterator[NotRemoved]:
        """Take some records away that stand in one object."""
        secrets = tuple(part.removal.match.id for part in parts)
        where = self.store.places.shown(key, secrets)
        try:
            if not self.store.places.belongs(key):
                raise Permanent("it is no part of the site", problem=ProblemCode.UNSUPPORTED)
            if self.tables.have(key):
                raise Permanent(TABLE, problem=ProblemCode.UNSUPPORTED)
            if self.form is Format.OBJECT:
                self._delete(key, {part.digest for part in parts})
            else:
                yield from self._rewrite(key, where, parts)
        except Missing:
            # Not there any more, which is as it should be, if only the bucket is.
            self.store.demand_bucket()
        except Changed:
            yield from _leave(parts, ProblemCode.CHANGED_UNDERNEATH, f"{where}: {_CHANGED}")
        except Permanent as error:
            if error.problem == ProblemCode.UNREACHABLE:
                raise
            yield from _leave(parts, error.problem, f"{where}: {error}")

    def _delete(self, key: str, etags: Collection[str]) -> None:
        """Delete an object as it was found. Nothing is deleted that is not there: no marker."""
        etag = str(self.store.head(key).get("ETag", ""))
        if etag not in etags:
            raise Changed("", problem=ProblemCode.CHANGED_UNDERNEATH)
        self.store.delete_current(key, etag)

    def _rewrite(self, key: str, where: str, parts: Sequence[_Part]) -> Iterator[NotRemoved]:
        with closing(self.store.open(key)) as content, content.kept() as file:
            codec, _ = begun(file)
            file.seek(0)
            plan = self._plan(file, key, where, parts)
            if plan.document:
                self.store.delete_current(key, content.etag)
            elif plan.chosen:
                self._demand_writable(content, file)
                with tempfile.TemporaryFile() as out:
                    self._write(file, out, codec, key, plan.chosen)
                    self._put(key, content, out)
        yield from plan.left

    def _spots(self, file: IO[bytes], key: str) -> Iterator[Spot]:
        file.seek(0)
        return spots_of(file, self.form, self.fields, key)

    def _plan(self, file: IO[bytes], key: str, where: str, parts: Sequence[_Part]) -> _Plan:
        """Find the records in the object as it is now, by their digests."""
        spots: dict[str, list[Spot]] = {part.digest: [] for part in parts}
        namesakes = dict.fromkeys((part.name for part in parts), False)
        for spot in self._spots(file, key):
            name = (spot.entry.name, spot.entry.part)
            if spot.entry.digest in spots:
                spots[spot.entry.digest].append(spot)
            elif name in namesakes:
                namesakes[name] = True
        plan = _Plan()
        for part in parts:
            same = spots[part.digest]
            if not same:
                if namesakes[part.name]:
                    plan.left += _leave(
                        [part], ProblemCode.CHANGED_UNDERNEATH, f"{where}: {_CHANGED}"
                    )
                continue
            spot = next((it for it in same if it.at == part.at), same[0])
            same.remove(spot)
            if spot.entry.holds_several or not self._is_one(spot, file):
                plan.left += _leave(
                    [part],
                    ProblemCode.UNSUPPORTED,
                    f"{where}: what stands there holds several records, or is a piece of a JSON "
                    "document over several lines; taking it out would take or break others.",
                )
            else:
                plan.chosen.add(spot.at)
                plan.document = plan.document or spot.document
        return plan

    def _is_one(self, spot: Spot, file: IO[bytes]) -> bool:
        """Whether a line that is no JSON is no piece of a document over several lines."""
        if spot.entry.parsed or self.form is not Format.JSONL:
            return True
        file.seek(0)
        try:
            json.loads(b"".join(plain(file)))
        except (ValueError, RecursionError):
            return True
        return False

    def _demand_writable(self, content: Content, file: IO[bytes]) -> None:
        if content.size > _LARGEST:
            raise Permanent(
                "it is larger than 5 GiB and cannot be written in one condition",
                problem=ProblemCode.LIMIT,
            )
        if self.form is Format.JSONL:
            file.seek(0)
            if is_wide(next(plain(file), b"")[:4]):
                raise Permanent(
                    "it is in UTF-16, which is only read; convert it to UTF-8",
                    problem=ProblemCode.UNSUPPORTED,
                )

    def _write(
        self, file: IO[bytes], out: IO[bytes], codec: Codec, key: str, chosen: Collection[int]
    ) -> None:
        if self.form is Format.PARQUET:
            file.seek(0)
            without_rows(file, out, chosen)
            return
        cuts = list(_cuts(self._spots(file, key), chosen, array=self.form is Format.JSON))
        file.seek(0)
        _copy(file, out, codec, cuts)

    def _put(self, key: str, content: Content, out: IO[bytes]) -> None:
        attributes = attributes_of(self.store, key, content)
        out.seek(0)
        try:
            self.store.put(key, out, content.etag, attributes)
        except Missing:
            raise Changed("", problem=ProblemCode.CHANGED_UNDERNEATH) from None


def _cuts(
    spots: Iterator[Spot], chosen: Collection[int], *, array: bool
) -> Iterator[tuple[int, int]]:
    """Yield the stretches of the plain content that go: records, each with one separator."""
    some_left = False
    for spot in spots:
        if spot.at not in chosen:
            some_left = True
        elif not array:
            yield spot.start, spot.end
        elif some_left:
            # The comma before it goes with it.
            yield spot.start - 1, spot.end
        else:
            yield spot.start, spot.end if spot.last else spot.end + 1


def _copy(file: IO[bytes], out: IO[bytes], codec: Codec, cuts: Sequence[tuple[int, int]]) -> None:
    """Write a content again without some stretches, its compressed members as they were."""
    encoder = Encoder(out, codec)  # type: ignore[arg-type]  # IO[bytes] is what it writes to
    pending = list(reversed(cuts))
    start = 0
    for member, block in read_members(file, codec):
        end = at = start
        end += len(block)
        while pending and pending[-1][0] < end:
            cut_start, cut_end = pending[-1]
            encoder.write(member, block[at - start : max(at, cut_start) - start])
            at = min(max(at, cut_end), end)
            if cut_end > end:
                break
            pending.pop()
        encoder.write(member, block[at - start :])
        start = end
    encoder.finish()
