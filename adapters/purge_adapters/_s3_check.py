"""What ``purge check`` says of a bucket. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from purge.adapter import ProblemCode, Site, Statement
from purge.errors import Permanent
from purge.targets import NOTHING
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_record import Entry
from purge_adapters._s3_bucket import Bucket
from purge_adapters._s3_look import Reader
from purge_adapters._s3_settings import Format
from purge_adapters._s3_store import Store

__all__ = ["check"]

_SAMPLE: Final = 10
"""How many objects are read to compare the manifest's fields with."""


def check(site: Site, store: Store) -> Iterator[Statement]:
    """Yield what is true of a bucket, faults included.

    Raises:
        StoreError: it cannot be reached.
    """
    bucket = Bucket.of(store)
    yield from _configured(bucket)
    yield from _locked(store)
    yield from _ruled(bucket)
    for gap in (*bucket.gaps, *bucket.replicas()):
        yield Statement(f"{gap.where}: {gap.why}.", ok=False)
    yield from _counted(store)
    yield from _fitting(Reader(site, store, NOTHING))


def _configured(bucket: Bucket) -> Iterator[Statement]:
    settings = bucket.store.settings
    states = {
        "Enabled": "keeps versions: what is removed goes by version id",
        "Suspended": "has its versioning suspended: older versions are still there and looked at",
        "": "keeps no versions",
    }
    yield Statement(f"The bucket {states.get(bucket.versioning, 'has an unknown versioning')}.")
    if bucket.mfa_delete:
        yield Statement(
            "MFA Delete is on: only the root user can remove versions, so nothing here can be "
            "confirmed.",
            ok=False,
        )
    if bucket.versioning and settings.format != "object" and settings.versions == "keep":
        yield Statement(
            "'versions: keep': an old version in which other records stand that are nowhere else "
            "is kept, and said to be."
        )
    if settings.key is not None and not settings.key.startswith(settings.prefix.rstrip("*")):
        yield Statement("'key' does not begin with 'prefix', so no object is meant.", ok=False)


def _locked(store: Store) -> Iterator[Statement]:
    answer = _asked(store, "get_object_lock_configuration")
    lock: Mapping[str, Any] = (answer or {}).get("ObjectLockConfiguration", {})
    if lock.get("ObjectLockEnabled") != "Enabled":
        return
    default = lock.get("Rule", {}).get("DefaultRetention", {})
    length = (
        f"{default['Days']} days"
        if default.get("Days")
        else f"{default['Years']} years"
        if default.get("Years")
        else ""
    )
    said = f"{default.get('Mode', '')}, {length} by default" if length else "no default retention"
    bypassed = " Retentions in GOVERNANCE mode are bypassed." * store.settings.bypass_governance
    yield Statement(
        f"Object Lock is on ({said}): a locked version stays until its own date.{bypassed}"
    )


def _asked(store: Store, operation: str) -> Mapping[str, Any] | None:
    try:
        return store.configuration(operation)
    except Permanent as error:
        if error.problem == ProblemCode.UNREACHABLE:
            raise
        return None


def _ruled(bucket: Bucket) -> Iterator[Statement]:
    for rule in bucket.rules.all:
        said = []
        noncurrent = rule.get("NoncurrentVersionExpiration") or {}
        if noncurrent:
            newer = noncurrent.get("NewerNoncurrentVersions")
            but = f", but the newest {newer} stay" if newer else ""
            said.append(f"old versions go {noncurrent.get('NoncurrentDays', 0)} days later{but}")
        if rule.get("Expiration", {}).get("Days"):
            said.append(f"objects expire after {rule['Expiration']['Days']} days")
        days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation")
        if days:
            said.append(f"unfinished uploads go after {days} days")
        if said:
            yield Statement(f"Lifecycle rule: {'; '.join(said)}.")
    if bucket.versioning and not any(
        rule.get("NoncurrentVersionExpiration") for rule in bucket.rules.all
    ):
        yield Statement("No lifecycle rule removes old versions: what is kept has no end date.")


def _counted(store: Store) -> Iterator[Statement]:
    objects = size = old = 0
    for history in store.histories():
        for version in history:
            if version.marker:
                continue
            objects += version.latest
            size += version.size
            old += not version.latest
    yield Statement(
        f"Objects: {objects}, old versions: {old}, {size} bytes; all of it is read to tell what "
        "is left of a record."
    )
    if not objects and not old:
        yield Statement(
            "No object lies under 'prefix' (a folder or a whole key; a * at its end makes it the "
            "beginning of keys).",
        )


def _fitting(reader: Reader) -> Iterator[Statement]:
    """Compare the manifest's fields with what the first objects have."""
    records = nameless = 0
    present: set[str] = set()
    for listed in islice(reader.store.objects(), _SAMPLE):
        look = reader.look(listed.key)
        for spot in reader.spots(look):
            records += 1
            nameless += not spot.entry.ids
            present.update(_present(spot.entry))
        for gap in dict.fromkeys(look.gaps):
            yield Statement(f"{gap.where}: {gap.why}.", ok=False)
    if not records:
        return
    yield Statement(f"Records in the first {_SAMPLE} objects at most: {records}.")
    if reader.fields.id is not None and nameless:
        yield Statement(
            f"Without the id field, and named after their content: {nameless} of {records}.",
            ok=nameless < records,
        )
    for name in _mapped(reader.fields):
        if name not in present:
            yield Statement(
                f"No record in the first objects has the field that '{name}' names.",
                ok=reader.form is Format.OBJECT,
            )


def _mapped(fields: Fields) -> Iterator[str]:
    yield from (f"scope {key}" for key in fields.scope)
    yield from (f"derived_from {name}" for name, path in fields.parents.items() if path)
    if fields.subject:
        yield "subject"


def _present(entry: Entry) -> Iterator[str]:
    yield from (f"scope {key}" for key in entry.scope)
    yield from (f"derived_from {name}" for name in entry.parents)
    if entry.subjects:
        yield "subject"
