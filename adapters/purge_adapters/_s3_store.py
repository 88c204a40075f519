"""One bucket through boto3: listings to their end, contents as streams, errors in one place.

Retries are botocore's own few ("standard" mode) for one request; whatever is left is raised. No
message holds a key, a credential or what the server said in words. Imports the driver when a
store is opened and not before.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from purge.adapter import ProblemCode
from purge.errors import Permanent, StoreError
from purge_adapters._s3_errors import Missing, answered, mapped
from purge_adapters._s3_settings import Places, S3Settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["Content", "Listed", "Store", "Upload", "Version"]

BATCH: Final = 1000
"""How many keys DeleteObjects takes (Amazon S3 API reference)."""
_BLOCK: Final = 1024 * 1024
_ATTEMPTS: Final = 3
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot carry, so that DeleteObjects cannot name such a key."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A current object, as a listing shows it."""

    key: str = field(repr=False)
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an object, or a delete marker."""

    key: str = field(repr=False)
    id: str
    latest: bool
    marker: bool
    modified: datetime
    size: int = 0
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that was not finished."""

    key: str = field(repr=False)
    id: str
    begun: datetime


@dataclass(slots=True)
class Content:
    """An object that is being read: a stream, and what the server says of it."""

    key: str = field(repr=False)
    head: Mapping[str, Any] = field(repr=False)
    _body: Any = field(repr=False)

    @property
    def etag(self) -> str:
        """The entity tag, with its quotes."""
        return str(self.head.get("ETag", ""))

    @property
    def version(self) -> str | None:
        """The version that is read, where the bucket has versions."""
        return self.head.get("VersionId")

    @property
    def size(self) -> int:
        """Its length in bytes as it is kept."""
        return int(self.head.get("ContentLength", 0))

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end. Raises ``StoreError``."""
        with mapped():
            return bytes(self._body.read(size))

    def close(self) -> None:
        """Let go of the connection."""
        self._body.close()

    def kept(self) -> IO[bytes]:
        """Return all of it in a temporary file that has no name, so that none is ever left."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  (whoever asked for it closes it)
        while block := self.read(_BLOCK):
            file.write(block)
        file.seek(0)
        return file


class Store:
    """A bucket and the part of it that a site consists of."""

    def __init__(self, settings: S3Settings, now: Callable[[], datetime]) -> None:
        self.settings = settings
        self.now = now
        self.places = Places(settings)
        self._made: S3Client | None = None

    @property
    def client(self) -> S3Client:
        """The driver's client, made when it is first needed."""
        if self._made is None:
            self._made = _connect(self.settings)
        return self._made

    @property
    def named(self) -> dict[str, Any]:
        """The arguments that every request has."""
        named = {"Bucket": self.settings.bucket}
        if self.settings.expected_bucket_owner is not None:
            named["ExpectedBucketOwner"] = self.settings.expected_bucket_owner
        return named

    def close(self) -> None:
        """Let go of the connections."""
        if self._made is not None:
            self._made.close()
            self._made = None

    # --- listings -------------------------------------------------------------------------

    def _pages(self, operation: Any, prefix: str) -> Iterator[Mapping[str, Any]]:
        with mapped():
            pages = iter(self.client.get_paginator(operation).paginate(**self.named, Prefix=prefix))
        while True:
            with mapped():
                page = next(pages, None)
            if page is None:
                return
            yield page

    def objects(self) -> Iterator[Listed]:
        """Yield the current objects of the site: what reads return."""
        for page in self._pages("list_objects_v2", self.places.listed):
            for item in page.get("Contents", ()):
                if self.places.belongs(item["Key"]):
                    yield Listed(item["Key"], item["Size"], item["ETag"])

    def has_any(self, prefix: str, ending: str) -> bool:
        """Whether any object's key begins and ends so."""
        pages = self._pages("list_objects_v2", prefix)
        return any(
            item["Key"].endswith(ending) for page in pages for item in page.get("Contents", ())
        )

    def histories(self, key: str | None = None) -> Iterator[list[Version]]:
        """Yield for each key all of its versions and delete markers, the newest first.

        Args:
            key: only this one, whole.
        """
        waiting: dict[str, list[Version]] = {}
        prefix = self.places.listed if key is None else key
        for page in self._pages("list_object_versions", prefix):
            found = [_version(it, marker=False) for it in page.get("Versions", ())]
            found += [_version(it, marker=True) for it in page.get("DeleteMarkers", ())]
            here = {version.key for version in found}
            # A page goes on where the one before it ended: whoever is not in it is complete.
            for name in [name for name in waiting if name not in here]:
                yield _ordered(waiting.pop(name))
            for version in found:
                if version.key == key if key is not None else self.places.belongs(version.key):
                    waiting.setdefault(version.key, []).append(version)
        for versions in waiting.values():
            yield _ordered(versions)

    def uploads(self) -> Iterator[Upload]:
        """Yield the unfinished multipart uploads under the site's keys."""
        more: dict[str, Any] = {}
        while True:
            with mapped():
                page = self.client.list_multipart_uploads(
                    **self.named, Prefix=self.places.listed, EncodingType="url", **more
                )
            plain = unquote if page.get("EncodingType") == "url" else str
            for item in page.get("Uploads", ()):
                key = plain(item["Key"])
                if self.places.belongs(key):
                    yield Upload(key, item["UploadId"], _aware(item["Initiated"]))
            following = page.get("NextKeyMarker"), page.get("NextUploadIdMarker")
            if not page.get("IsTruncated") or not all(following):
                return
            more = {"KeyMarker": plain(str(following[0])), "UploadIdMarker": str(following[1])}

    # --- reading --------------------------------------------------------------------------

    def open(self, key: str, version: str | None = None, etag: str | None = None) -> Content:
        """Begin to read an object. Raises ``StoreError``."""
        named = {**self.named, "Key": key}
        if version is not None:
            named["VersionId"] = version
        if etag is not None:
            named["IfMatch"] = etag
        with mapped():
            answer = self.client.get_object(**named)
        return Content(key, answer, answer["Body"])

    def head(self, key: str, version: str | None = None) -> Mapping[str, Any]:
        """Return what the server says of an object. Raises ``StoreError``."""
        named = {**self.named, "Key": key}
        if version is not None:
            named["VersionId"] = version
        with mapped():
            return self.client.head_object(**named)

    def tags(self, key: str, version: str | None = None) -> dict[str, str]:
        """Return the tags of an object. Raises ``StoreError``."""
        named = {**self.named, "Key": key}
        if version is not None:
            named["VersionId"] = version
        with mapped():
            answer = self.client.get_object_tagging(**named)
        return {tag["Key"]: tag["Value"] for tag in answer.get("TagSet", ())}

    def access_list(self, key: str, version: str | None = None) -> Mapping[str, Any]:
        """Return who may do what with an object. Raises ``StoreError``."""
        named = {**self.named, "Key": key}
        if version is not None:
            named["VersionId"] = version
        with mapped():
            return self.client.get_object_acl(**named)

    def demand_bucket(self) -> None:
        """Make sure that a "not found" was about the object and not about the bucket.

        Raises:
            Permanent: there is no such bucket.
        """
        try:
            with mapped():
                self.client.head_bucket(**self.named)
        except Missing:
            raise Permanent("There is no such bucket.", problem=ProblemCode.UNREACHABLE) from None

    def configuration(self, operation: str) -> Mapping[str, Any] | None:
        """Return a configuration of the bucket; ``None`` where it has none.

        A server that does not know the question does not have the feature either (HTTP 405, 501).

        Raises:
            StoreError: it may not be asked for, or not now.
        """
        try:
            with mapped():
                answer: Mapping[str, Any] = getattr(self.client, operation)(**self.named)
                return answer
        except Missing:
            return None
        except Permanent as error:
            if error.problem == ProblemCode.UNSUPPORTED:
                return None
            raise

    # --- writing and deleting -------------------------------------------------------------

    def put(self, key: str, body: IO[bytes], etag: str, attributes: Mapping[str, Any]) -> None:
        """Write an object again if it still is the one with this ETag. Raises ``StoreError``."""
        with mapped():
            self.client.put_object(**self.named, Key=key, Body=body, IfMatch=etag, **attributes)

    def delete_current(self, key: str, etag: str) -> None:
        """Take an object out of reads if it still is the one with this ETag.

        Without versions it is gone; with versions a delete marker hides it. Raises ``StoreError``.
        """
        with mapped():
            self.client.delete_object(**self.named, Key=key, IfMatch=etag)

    def abort(self, key: str, upload: str) -> None:
        """Give up an unfinished upload, and the parts that it left. Raises ``StoreError``."""
        with mapped():
            self.client.abort_multipart_upload(**self.named, Key=key, UploadId=upload)

    def delete_versions(
        self, versions: Iterable[tuple[str, str]], *, bypass: bool = False
    ) -> dict[tuple[str, str], StoreError]:
        """Delete versions by their ids, and return why some were not.

        One that cannot be deleted does not stop the others. A version that is not there any more
        is no error.
        """
        errors: dict[tuple[str, str], StoreError] = {}
        batch: list[tuple[str, str]] = []
        more: dict[str, Any] = {"BypassGovernanceRetention": True} if bypass else {}
        for key, version in versions:
            if _NOT_XML.search(key):
                try:
                    with mapped():
                        self.client.delete_object(**self.named, Key=key, VersionId=version, **more)
                except Missing:
                    pass
                except Permanent as error:
                    errors[key, version] = error
            else:
                batch.append((key, version))
        for at in range(0, len(batch), BATCH):
            errors.update(self._delete(batch[at : at + BATCH], more))
        return errors

    def _delete(
        self, batch: Sequence[tuple[str, str]], more: Mapping[str, Any]
    ) -> Iterator[tuple[tuple[str, str], StoreError]]:
        with mapped():
            answer = self.client.delete_objects(
                **self.named,
                Delete={"Objects": [{"Key": key, "VersionId": id} for key, id in batch]},
                **more,
            )
        # HTTP 200 says nothing: what went wrong stands in a list of its own.
        for item in answer.get("Errors", ()):
            code = re.sub("[^A-Za-z0-9]", "", item.get("Code", ""))
            error = answered(code, 500 if code == "InternalError" else 0)
            if not isinstance(error, Missing):
                key = item.get("Key", "")
                same = [pair for pair in batch if pair[0] == key]
                exact = (key, item.get("VersionId", ""))
                # Some servers leave the version out of the error (moto 5.2.5 does).
                for pair in [exact] if exact in same else same or batch:
                    yield pair, error


def _version(item: Any, *, marker: bool) -> Version:
    return Version(
        item["Key"],
        item["VersionId"],
        bool(item["IsLatest"]),
        marker,
        _aware(item["LastModified"]),
        int(item.get("Size", 0)),
        item.get("ETag", ""),
    )


def _ordered(versions: list[Version]) -> list[Version]:
    """Order by age; within one second (all that a listing tells) the listing's own order holds."""
    return sorted(versions, key=lambda it: (it.latest, it.modified), reverse=True)


def _aware(moment: datetime) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


@cache
def _loader() -> Any:
    """The driver's descriptions of services: parsed once, not for each phase of a run."""
    from botocore.loaders import create_loader  # type: ignore[import-untyped]  # no types in it

    return create_loader()


def _connect(settings: S3Settings) -> S3Client:
    with mapped():
        import boto3  # type: ignore[import-untyped]  # no types in it
        from botocore.config import Config  # type: ignore[import-untyped]  # no types in it
        from botocore.session import get_session  # type: ignore[import-untyped]  # no types in it

        inner = get_session()
        inner.register_component("data_loader", _loader())
        session = boto3.session.Session(
            aws_access_key_id=settings.aws_access_key_id,
            aws_secret_access_key=settings.aws_secret_access_key,
            aws_session_token=settings.aws_session_token,
            region_name=settings.region_name,
            botocore_session=inner,
            profile_name=settings.profile_name,
        )
        made: S3Client = session.client(
            "s3",
            endpoint_url=settings.endpoint_url,
            verify=settings.verify,
            config=Config(
                retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
                connect_timeout=settings.connect_timeout,
                read_timeout=settings.read_timeout,
                s3={"addressing_style": settings.addressing_style},
            ),
        )
        return made
