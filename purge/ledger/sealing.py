"""Encryption of what a request looks for, and the digests that stand for it.

AES-256-GCM with a random nonce of 12 bytes, from ``cryptography``, which is imported only when
something is sealed or unsealed. What is encrypted is bound to its place: it cannot be moved to
another request, name or version and be read there.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Final, cast

from purge.errors import LedgerFault
from purge.ledger.events import JSON, canonical

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_BLOCK: Final = 256


def new_key() -> bytes:
    """Return a new random key."""
    return secrets.token_bytes(KEY_BYTES)


def subkey(key: bytes, purpose: str) -> bytes:
    """Return the key that is derived from ``key`` for one purpose only."""
    return hmac.digest(key, b"purge/1/" + purpose.encode(), "sha256")


def as_bytes(column: object) -> bytes:
    """Return a ciphertext as it was read; nothing, where damage gave it another type."""
    return column if isinstance(column, bytes) else b""


def encrypt(key: bytes, plain: bytes, place: Sequence[str]) -> bytes:
    """Return nonce and ciphertext of ``plain``, bound to ``place``."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, _bound(place))


def decrypt(key: bytes, content: bytes, place: Sequence[str]) -> bytes | None:
    """Return what was encrypted; ``None`` when key, place or content are not the same."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce, sealed = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
    if len(nonce) < _NONCE_BYTES:
        return None
    try:
        return AESGCM(key).decrypt(nonce, sealed, _bound(place))
    except InvalidTag:
        return None


def _bound(place: Sequence[str]) -> bytes:
    return canonical(["purge/sealed/1", *place]).encode("ascii")


def pack(payload: Mapping[str, JSON]) -> bytes:
    """Return ``payload`` as bytes whose length does not tell that of a short phrase."""
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    return text.ljust(-(-len(text) // _BLOCK) * _BLOCK)


def unpack(plain: bytes) -> dict[str, JSON]:
    """Return what was packed."""
    return cast("dict[str, JSON]", json.loads(plain))


def digest_of(content: bytes) -> str:
    """Return the digest of a ciphertext, as it stands in an event."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def keyed_digest(key: bytes, parts: Sequence[str]) -> str:
    """Return a digest of ``parts`` that cannot be tried out without ``key``.

    Raises:
        LedgerFault: there is nothing to digest.
    """
    if not parts:
        raise LedgerFault("A digest of nothing was asked for.")
    text = canonical(list(parts)).encode("ascii")
    return "hmac-sha256:" + hmac.digest(key, text, "sha256").hex()


def same(one: str, other: str) -> bool:
    """Whether two digests are the same, found out in a time that does not tell where not."""
    return hmac.compare_digest(one.encode("utf-8"), other.encode("utf-8"))
