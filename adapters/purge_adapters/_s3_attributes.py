"""Everything of an object besides its content, so that it can be written again as it was.

Only reads. Where something cannot be read that a new object would lose, it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from purge.adapter import ProblemCode
from purge.errors import Permanent, StoreError
from purge_adapters._s3_store import Content, Store

__all__ = ["attributes_of"]

_SAME: Final = (
    *("Metadata", "ContentType", "ContentEncoding", "ContentLanguage", "ContentDisposition"),
    *("CacheControl", "Expires", "WebsiteRedirectLocation", "StorageClass"),
    *("ServerSideEncryption", "SSEKMSKeyId", "BucketKeyEnabled"),
    # What protects the records that stay protects them in the new version too.
    *("ObjectLockMode", "ObjectLockRetainUntilDate"),
)
_CHECKSUMS: Final = ("CRC64NVME", "CRC32C", "SHA256", "SHA1", "CRC32")
_GRANTS: Final = {
    "FULL_CONTROL": "GrantFullControl",
    "READ": "GrantRead",
    "READ_ACP": "GrantReadACP",
    "WRITE_ACP": "GrantWriteACP",
}


def attributes_of(store: Store, key: str, content: Content) -> dict[str, Any]:
    """Return the arguments with which PutObject makes an object like the one that was read.

    Raises:
        Permanent: some of it may not be read, so that it would be lost.
    """
    head = content.head
    kept = {name: head[name] for name in _SAME if head.get(name) not in (None, "")}
    if head.get("ObjectLockLegalHoldStatus") == "ON":
        kept["ObjectLockLegalHoldStatus"] = "ON"
    until = kept.get("ObjectLockRetainUntilDate")
    if until is None or until <= store.now():
        # A date in the past is refused; the bucket's own default then holds.
        kept.pop("ObjectLockMode", None)
        kept.pop("ObjectLockRetainUntilDate", None)
    encodings = [
        name.strip()
        for name in str(kept.pop("ContentEncoding", "")).split(",")
        if name.strip() not in ("", "aws-chunked")  # how it was sent, not what it is
    ]
    if encodings:
        kept["ContentEncoding"] = ",".join(encodings)
    if head.get("SSECustomerAlgorithm"):
        raise Permanent(
            "it is encrypted with a key of the client's own (SSE-C)",
            problem=ProblemCode.UNSUPPORTED,
        )
    checksum = next((name for name in _CHECKSUMS if head.get(f"Checksum{name}")), None)
    if checksum in ("SHA256", "SHA1", "CRC32"):
        # The others need a driver's extension; the server makes its own default then.
        kept["ChecksumAlgorithm"] = checksum
    try:
        # Asked for in any case: the count of tags is only told to who may read them.
        tags = store.tags(key, content.version)
        if tags:
            kept["Tagging"] = urlencode(tags)
        kept.update(_grants(store.access_list(key, content.version)))
    except StoreError as error:
        if error.problem == ProblemCode.NO_PERMISSION:
            raise Permanent(
                "its tags or its access list may not be read, so they would be lost",
                problem=ProblemCode.NO_PERMISSION,
            ) from None
        if error.problem != ProblemCode.UNSUPPORTED:
            raise
    return kept


def _grants(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return an access list as arguments; nothing where only the owner has a right."""
    owner = answer.get("Owner", {}).get("ID")
    grants: dict[str, list[str]] = {}
    others = False
    for grant in answer.get("Grants", ()):
        grantee = grant.get("Grantee", {})
        name = _GRANTS.get(grant.get("Permission", ""))
        if name is None:
            continue
        if grantee.get("ID"):
            others = others or grantee["ID"] != owner or name != "GrantFullControl"
            grants.setdefault(name, []).append(f'id="{grantee["ID"]}"')
        elif grantee.get("URI"):
            others = True
            grants.setdefault(name, []).append(f'uri="{grantee["URI"]}"')
    return {name: ", ".join(who) for name, who in grants.items()} if others else {}
