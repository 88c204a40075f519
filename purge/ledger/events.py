"""What the ledger is made of: events, their canonical JSON and the hash that chains them.

Pure values: this module does no input or output. The form is documented here so that anyone can
check a ledger without this program:

- The canonical JSON of a value has its keys sorted, no white space, no floats, and nothing but
  ASCII (every other character as ``\\uXXXX``).
- The hash of an event is ``sha256:`` and the hexadecimal SHA-256 of the canonical JSON of the
  object with the keys ``at``, ``body``, ``kind``, ``prev_hash``, ``request``, ``seq``, ``site``.
- The ``prev_hash`` of the first event is ``sha256:`` and 64 zeros.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from json.encoder import encode_basestring_ascii
from typing import Final, TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

GENESIS: Final = "sha256:" + "0" * 64
"""What the first event names as its predecessor."""

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class EventKind(StrEnum):
    """What happened."""

    LEDGER_CREATED = "ledger.created"
    REQUEST_CREATED = "request.created"
    REQUEST_SEALED = "request.sealed"
    """Something of the request was encrypted; the body says which key and the digest."""
    RUN_STARTED = "run.started"
    PLAN_MADE = "plan.made"
    INTENT = "intent"
    """What is about to be done; written before the act."""
    FACT = "fact"
    """What was done; written after the act."""
    STEP_RECORDED = "step.recorded"
    """The state of one step, as it was proved."""
    DECISION = "decision"
    REQUEST_WITHDRAWN = "request.withdrawn"
    RUN_FINISHED = "run.finished"
    KEY_DESTROYING = "key.destroying"
    """The request's key is about to be destroyed: from here on nothing is unsealed."""
    KEY_DESTROYED = "key.destroyed"
    REQUEST_CLOSED = "request.closed"


@dataclass(frozen=True, slots=True)
class Event:
    """Something to be written to the ledger.

    The body holds JSON values without floats, and never a text that is to be forgotten, a record
    id or a subject id: those are sealed, or given as a keyed digest.
    """

    kind: EventKind
    request: str | None = None
    site: str | None = None
    body: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it stands in the ledger."""

    seq: int
    at: datetime
    kind: EventKind
    request: str | None
    site: str | None
    body: Mapping[str, JSON]
    hash: str


def canonical(value: JSON) -> str:
    """Return the canonical JSON of ``value``.

    Raises:
        TypeError: it holds a float, a key that is no string, or something that is not JSON.
    """
    return _ENCODER.encode(_plain(value))


def _plain(value: object) -> JSON:
    """Return ``value`` with the lists and dictionaries that the encoder knows, without floats."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        raise TypeError("an event holds no floats: they are not written alike everywhere")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a key in an event is not a string")
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_plain(inner) for inner in value]
    raise TypeError(f"an event holds no {type(value).__name__}")


def digest_of_event(
    seq: int,
    at: str,
    kind: str,
    request: str | None,
    site: str | None,
    body: str,
    prev_hash: str,
) -> str:
    """Return the hash of an event, from its columns as they are stored.

    ``body`` is canonical JSON already and is put in as it stands, so that checking a chain needs
    no parsing.
    """
    text = (
        f'{{"at":{_quoted(at)},"body":{body},"kind":{_quoted(kind)},'
        f'"prev_hash":{_quoted(prev_hash)},"request":{_quoted(request)},"seq":{seq},'
        f'"site":{_quoted(site)}}}'
    )
    return "sha256:" + hashlib.sha256(text.encode("ascii", "surrogatepass")).hexdigest()


def _quoted(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def timestamp(moment: datetime) -> str:
    """Return ``moment`` as the ledger writes it: ISO 8601 in UTC, with offset and microseconds.

    Raises:
        ValueError: it has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone cannot be recorded")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
