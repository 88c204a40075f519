"""What the manifest can say of an ``s3`` site, and which objects that means.

This module does no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, Literal

__all__ = ["Format", "Places", "S3Settings"]

_HOLE: Final = "{id}"


class Format(StrEnum):
    """How records stand in objects."""

    OBJECT = "object"
    """An object is a record."""
    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def _described(sentence: str) -> dict[str, str]:
    return {"description": sentence}


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The keys of an ``s3`` site besides those that every site has."""

    bucket: str = field(metadata=_described("The name of the bucket."))
    prefix: str = field(
        default="",
        metadata=_described(
            "Which objects: a folder (memories/ or memories), or one whole key. user/1 does not "
            "mean user/10; a * at the end makes it the mere beginning of keys (exports/2026-*). "
            "Default: all of the bucket."
        ),
    )
    key: str | None = field(
        default=None,
        metadata=_described(
            "For 'format: object', the whole key of a record's object, with {id} for the record's "
            "id (memories/{id}.json). Where the site derives from another by $id, that is the "
            "source's id. Without it, the id is the key."
        ),
    )
    format: Literal["object", "jsonl", "json", "csv", "parquet"] = field(
        default="object",
        metadata=_described(
            "object: each object is one record. jsonl, json (one array), csv (with a header line) "
            "and parquet hold many. Compression (gzip, zstd) is told from the content."
        ),
    )
    id: str | None = field(
        default=None,
        metadata=_described(
            "The field or column with the record's id, a dotted path. Records with one id are one "
            "record and go together. Without it, a record is named after its content, or for "
            "'format: object' after its key."
        ),
    )
    text: tuple[str, ...] = field(
        default=(),
        metadata=_described(
            "The fields that hold the words; the others count as metadata. Every string is looked "
            "at in any case."
        ),
    )
    time: str | None = field(
        default=None, metadata=_described("The field that says when the record was made.")
    )
    versions: Literal["keep", "delete"] = field(
        default="keep",
        metadata=_described(
            "What to do with an old version that holds the target and also other records that "
            "stand nowhere else: keep it and say so, or delete it with them."
        ),
    )
    bypass_governance: bool = field(
        default=False,
        metadata=_described(
            "Remove versions under a retention in GOVERNANCE mode; needs a permission of its own."
        ),
    )
    replicas_are_sites: tuple[str, ...] = field(
        default=(),
        metadata=_described(
            "Buckets to which this one replicates and which are sites of their own here. Other "
            "destinations are reported as not checked."
        ),
    )
    region_name: str | None = field(default=None, metadata=_described("The region."))
    endpoint_url: str | None = field(
        default=None, metadata=_described("The server, where it is not AWS.")
    )
    profile_name: str | None = field(
        default=None, metadata=_described("The profile in the AWS configuration.")
    )
    aws_access_key_id: str | None = field(
        default=None, repr=False, metadata=_described("The access key, as ${NAME}.")
    )
    aws_secret_access_key: str | None = field(
        default=None, repr=False, metadata=_described("The secret key, as ${NAME}.")
    )
    aws_session_token: str | None = field(
        default=None, repr=False, metadata=_described("The session token, as ${NAME}.")
    )
    expected_bucket_owner: str | None = field(
        default=None,
        metadata=_described("The account that must own the bucket; any other is refused."),
    )
    addressing_style: Literal["auto", "path", "virtual"] = field(
        default="auto",
        metadata=_described("Whether the bucket stands in the path or in the host name."),
    )
    verify: bool | str = field(
        default=True,
        metadata=_described("Whether TLS certificates are checked, or a file of authorities."),
    )
    connect_timeout: float = field(
        default=10.0, metadata=_described("Seconds to wait for a connection.")
    )
    read_timeout: float = field(default=60.0, metadata=_described("Seconds to wait for data."))

    def __post_init__(self) -> None:
        if not self.bucket.strip():
            raise ValueError("'bucket' is empty")
        if self.key is not None and self.format != "object":
            raise ValueError(
                "'key' is for 'format: object'; other formats name objects by 'prefix'"
            )
        if self.key is not None and _HOLE not in self.key:
            raise ValueError("'key' has no {id} in it, so every record would be the same object")
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            raise ValueError("'aws_access_key_id' and 'aws_secret_access_key' belong together")


@dataclass(frozen=True)
class Places:
    """Which keys belong to a site, and how they are shown to people.

    A prefix is a string to S3: ``user/1`` is the beginning of ``user/10/a`` too. Here it is a
    folder or a whole key, unless it ends in ``*``.
    """

    settings: S3Settings

    @cached_property
    def listed(self) -> str:
        """The beginning of keys that the server is asked for; never narrower than the site."""
        prefix = self.settings.prefix.removesuffix("*")
        template = self.settings.key
        fixed = template.split(_HOLE, 1)[0] if template is not None else ""
        return fixed if fixed.startswith(prefix) else prefix

    @cached_property
    def _template(self) -> re.Pattern[str] | None:
        template = self.settings.key
        if template is None:
            return None
        first, *others = (re.escape(piece) for piece in template.split(_HOLE))
        again = "(?P=id)".join(others)
        return re.compile(f"{first}(?P<id>.+){again}", re.DOTALL)

    def belongs(self, key: str) -> bool:
        """Whether an object of this key is part of the site."""
        prefix = self.settings.prefix
        if prefix.endswith("*"):
            inside = key.startswith(prefix[:-1])
        elif not prefix or prefix.endswith("/"):
            inside = key.startswith(prefix)
        else:
            inside = key == prefix or key.startswith(f"{prefix}/")
        return inside and (self._template is None or self.id_of(key) is not None)

    def id_of(self, key: str) -> str | None:
        """Return the id of the record whose object has this key: all of it, never a part."""
        if self._template is None:
            return key
        match = self._template.fullmatch(key)
        return match["id"] if match is not None else None

    @property
    def bucket(self) -> str:
        """The bucket, for people."""
        return f"s3://{self.settings.bucket}"

    def shown(self, key: str, secrets: Iterator[str] | tuple[str, ...] = ()) -> str:
        """Return a place for people: the key where it names a file, never one that names a record.

        Args:
            key: of the object.
            secrets: what may not be shown; a key that holds some of it is not shown.
        """
        settings = self.settings
        some = f"{settings.prefix.removesuffix('*')}*"
        if settings.format == "object":
            return f"{self.bucket}/{settings.key or some}"
        if "@" in key or not key.isprintable() or any(secret in key for secret in secrets):
            return f"{self.bucket}/{some}"
        return f"{self.bucket}/{key}"
