"""What the configuration of a bucket says of the copies that it keeps. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from purge.adapter import NotChecked, ProblemCode
from purge.errors import Permanent, StoreError
from purge_adapters._s3_errors import Missing
from purge_adapters._s3_lifecycle import Rules
from purge_adapters._s3_store import Store

__all__ = ["Bucket", "Lock", "lock_of"]


@dataclass(frozen=True, slots=True)
class Lock:
    """What forbids to delete a version."""

    hold: bool = False
    mode: str = ""
    until: datetime | None = None

    def stops(self, *, bypass: bool) -> bool:
        """Whether it forbids us to."""
        return self.hold or (self.until is not None and not (bypass and self.mode == "GOVERNANCE"))


NO_LOCK: Final = Lock()


def lock_of(store: Store, key: str, version: str) -> Lock | None:
    """Return what locks a version; ``None`` where the version is gone.

    From ``head_object``, which shows it to those who may read retentions and holds.

    Raises:
        StoreError: it cannot be asked for.
    """
    try:
        head = store.head(key, version)
    except Missing:
        return None
    until = head.get("ObjectLockRetainUntilDate")
    if until is not None and until <= store.now():
        until = None
    return Lock(
        head.get("ObjectLockLegalHoldStatus") == "ON",
        str(head.get("ObjectLockMode", "")) if until is not None else "",
        until,
    )


@dataclass(slots=True)
class Bucket:
    """The configuration of one bucket, each part asked for once."""

    store: Store
    gaps: list[NotChecked] = field(default_factory=list)
    """What may not be asked for."""
    rules: Rules = field(default_factory=Rules)
    versioning: str = ""
    """``Enabled``, ``Suspended`` or nothing."""
    mfa_delete: bool = False
    destinations: tuple[str, ...] = ()
    """The buckets to which some of the site is replicated."""

    @classmethod
    def of(cls, store: Store) -> Bucket:
        """Ask for what decides about copies.

        Raises:
            Transient: the server cannot be reached now.
            Permanent: there is no such bucket.
        """
        made = cls(store)
        versioning = made._ask("get_bucket_versioning", "its versioning") or {}
        made.versioning = versioning.get("Status", "")
        made.mfa_delete = versioning.get("MFADelete") == "Enabled"
        made.rules = Rules.of(made._ask("get_bucket_lifecycle_configuration", None))
        replication = made._ask("get_bucket_replication", "whether it is replicated") or {}
        made.destinations = tuple(dict.fromkeys(_destinations(replication, store.places.listed)))
        return made

    def _ask(self, operation: str, what: str | None) -> Mapping[str, Any] | None:
        try:
            return self.store.configuration(operation)
        except Permanent as error:
            if error.problem == ProblemCode.UNREACHABLE:
                raise
            if what is not None:
                self.gaps.append(
                    NotChecked(
                        self.store.places.bucket,
                        f"{what} may not be asked for: {error}",
                        ProblemCode(error.problem),
                    )
                )
            return None

    def replicas(self) -> Iterator[NotChecked]:
        """Yield the destinations that nobody here looks at."""
        for name in self.destinations:
            if name not in self.store.settings.replicas_are_sites:
                yield NotChecked(
                    self.store.places.bucket,
                    f"it replicates to the bucket {name}, where deletions by version id never "
                    "arrive; make that bucket a site of its own and name it in "
                    "'replicas_are_sites'",
                )

    def tags_of(self, key: str, version: str) -> Mapping[str, str]:
        """Return the tags of a version where a rule depends on them."""
        if not self.rules.ask_for_tags:
            return {}
        try:
            return self.store.tags(key, version)
        except StoreError:
            # Without its tags no rule with tags is known to take it: no date.
            return {}


def _destinations(replication: Mapping[str, Any], prefix: str) -> Iterator[str]:
    configuration = replication.get("ReplicationConfiguration") or {}
    for rule in configuration.get("Rules", ()):
        given = rule.get("Filter") or {}
        named = given.get("Prefix") or (given.get("And") or {}).get("Prefix")
        named = named or rule.get("Prefix") or ""
        touches = named.startswith(prefix) or prefix.startswith(named)
        if rule.get("Status") == "Enabled" and touches:
            yield str(rule.get("Destination", {}).get("Bucket", "")).rpartition(":")[2]
