"""The manifest's own keys, section by section, as they are written: what may stand there, and what
each is for. The JSON Schema is made from this, and so are the faults. Adapters bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from annotated_types import Ge, MinLen

from purge.adapter import Action

VERSION: Final = 1
"""The version of the format that this program understands."""

Word = Annotated[str, MinLen(1)]


def _describe(text: str) -> dict[str, str]:
    return {"description": text}


@dataclass(frozen=True, slots=True)
class HeadKeys:
    """The keys at the top that are no sections."""

    purge: int = field(default=0, metadata=_describe(f"Version of this format. Must be {VERSION}."))
    name: Word | None = field(
        default=None,
        metadata=_describe("What reports call this manifest. Default: the name of its folder."),
    )
    root: Word = field(
        default=".",
        metadata=_describe(
            "The folder that the sites' paths are relative to and may not leave. Relative to the "
            "manifest. Default: the manifest's own folder."
        ),
    )
    timezone: Word = field(
        default="UTC",
        metadata=_describe("Time zone of dates in reports and schedules (IANA name). Default UTC."),
    )


@dataclass(frozen=True, slots=True)
class SnapshotKeys:
    """``safety.snapshot``."""

    site: Word = field(metadata=_describe("The site that holds the snapshots."))
    max_age: Word = field(
        metadata=_describe(
            "How old its newest snapshot may be, or a sweep deletes nothing (26h, 2d)."
        )
    )


@dataclass(frozen=True, slots=True)
class SafetyKeys:
    """``safety``."""

    min_phrase_width: Annotated[int, Ge(1)] = field(
        default=12,
        metadata=_describe(
            "A phrase narrower than this many display columns (after folding) is refused, unless "
            "--expect gives the number of records. Default 12."
        ),
    )
    max_records: Annotated[int, Ge(1)] = field(
        default=25,
        metadata=_describe(
            "A request that would remove more records than this, over all sites, is refused, "
            "unless --expect gives their number. Default 25."
        ),
    )
    snapshot: SnapshotKeys | None = field(
        default=None,
        metadata=_describe("No sweep without a snapshot that is young enough."),
    )
    settle: Word = field(
        default="24h",
        metadata=_describe(
            "How long after a removal a derived record that turns up counts as made from what was "
            "removed, and goes by itself. Default 24h."
        ),
    )
    deadline: Word = field(
        default="30d",
        metadata=_describe(
            "By when a request has to be confirmed or dated, where it does not say otherwise; "
            "later it is overdue. Default 30d."
        ),
    )


@dataclass(frozen=True, slots=True)
class MarkerSourceKeys:
    """One entry of ``markers.from`` in its long form."""

    site: Word = field(metadata=_describe("The site whose records may carry markers."))
    where: Mapping[str, Word] = field(
        default_factory=dict,
        metadata=_describe(
            "Fields and the values they must have, such as {role: user}, so that a tool's output "
            "cannot plant a marker."
        ),
    )


@dataclass(frozen=True, slots=True)
class MarkersKeys:
    """``markers``."""

    from_: Annotated[list[Word | MarkerSourceKeys], MinLen(1)] = field(
        metadata=_describe("The sites where a line 'RETRACTS: phrase' is obeyed; nowhere else.")
    )
    when_done: Literal["keep", "strike"] = field(
        default="keep",
        metadata=_describe(
            "What becomes of a marker whose request is confirmed: 'keep' leaves it, 'strike' "
            "replaces the phrase by the request's id. Default keep."
        ),
    )


@dataclass(frozen=True, slots=True)
class LedgerKeys:
    """``ledger``."""

    path: Word | None = field(
        default=None,
        metadata=_describe(
            "The ledger's database, relative to the manifest. Default: .purge/ledger.db beside "
            "the manifest. Keep it out of every folder that is backed up."
        ),
    )
    key_file: Word | None = field(
        default=None,
        metadata=_describe(
            "The key that seals what requests look for. Default: ledger.key beside the ledger."
        ),
    )


@dataclass(frozen=True, slots=True)
class RetentionKeys:
    """``provider_retention`` of a site."""

    period: Word = field(metadata=_describe("How long the provider keeps what was deleted (30d)."))
    source: Word = field(metadata=_describe("Where the provider says so; shown in reports."))


@dataclass(frozen=True, slots=True)
class SiteKeys:
    """The keys that every site may have, whatever its adapter."""

    adapter: Word = field(metadata=_describe("The kind of store."))
    action: Action = field(
        default=Action.DELETE,
        metadata=_describe(
            "What removal does: 'delete' the record, 'blank' its text and keep its id and links, "
            "or 'report': touch nothing and tell a person. Default delete."
        ),
    )
    derived_from: Mapping[str, Word | None] = field(
        default_factory=dict,
        metadata=_describe(
            "Which sites these records are made from: site to the field that holds the id (or "
            "ids) of its record; $id for the record's own id; empty where the link was never "
            "recorded."
        ),
    )
    when_source_purged: Literal["delete", "flag"] = field(
        default="flag",
        metadata=_describe(
            "What becomes of a record that has other, living sources beside the purged one: "
            "'flag' leaves it to a person, 'delete' removes it (right for caches). Default flag."
        ),
    )
    scope: Mapping[str, Word] = field(
        default_factory=dict,
        metadata=_describe(
            "Scope key to field: which field says to which project, user or tenant a record "
            "belongs."
        ),
    )
    subject: Word | None = field(
        default=None,
        metadata=_describe("The field that holds the id of the person a record is about."),
    )
    may_be_empty: bool = field(
        default=False,
        metadata=_describe(
            "It is right that there is sometimes nothing at all here, as in a cache. Without it, "
            "a site where there is nothing to look at is doubted: its path may be mistaken. "
            "Default false."
        ),
    )
    outside_root: bool = field(
        default=False,
        metadata=_describe("Allow this site's paths to lie outside the root. Default false."),
    )
    covers: list[Word] = field(
        default_factory=list,
        metadata=_describe("For backups: the sites of which this one keeps copies."),
    )
    provider_retention: RetentionKeys | None = field(
        default=None,
        metadata=_describe(
            "What the provider declares of copies that cannot be seen from here. With it such "
            "copies have an end date, and the report says that it is declared."
        ),
    )


SECTIONS: Final[Mapping[str, str]] = {
    "safety": "The limits that no run may pass without being told to.",
    "sites": "The places where a memory may be: a name, an adapter, its settings.",
    "markers": "Where retraction markers are obeyed.",
    "ledger": "Where the record of all requests is kept.",
}
"""The sections of a manifest and what they are for."""
