"""What S3 and its client can answer, as the contract's errors. The only place that maps them.

No message holds a key, a credential or what the server said in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from purge.adapter import ProblemCode
from purge.errors import Permanent, StoreError, Transient

__all__ = ["Changed", "Missing", "answered", "mapped"]

_DENIED: Final = frozenset(
    (
        *("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"),
        *("InvalidToken", "AllAccessDisabled", "AccountProblem", "Forbidden"),
    )
)
_BUSY: Final = frozenset(
    (
        *("SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "OperationAborted"),
        *("RequestLimitExceeded", "ConditionalRequestConflict"),
    )
)


class Missing(Permanent):
    """There is no such object, version or configuration."""


class Changed(Permanent):
    """The object is no longer the one that was read (HTTP 412)."""


def _problem(error: Any) -> StoreError:
    """Map what the driver raised. This is the only place that does."""
    from botocore import exceptions as raised  # type: ignore[import-untyped]  # no types in it

    if isinstance(error, raised.ClientError):
        code = re.sub("[^A-Za-z0-9]", "", str(error.response.get("Error", {}).get("Code", "")))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return answered(code, status)
    if isinstance(
        error,
        raised.NoCredentialsError
        | raised.PartialCredentialsError
        | raised.ProfileNotFound
        | raised.CredentialRetrievalError
        | raised.TokenRetrievalError,
    ):
        return Permanent(
            "There are no credentials for S3, or they are incomplete.",
            problem=ProblemCode.NO_PERMISSION,
        )
    if isinstance(error, raised.ParamValidationError):
        return Permanent(
            "The S3 client cannot say this in a request (a name or a value that it does not take).",
            problem=ProblemCode.UNSUPPORTED,
        )
    if isinstance(error, raised.FlexibleChecksumError):
        return Permanent(
            "The content does not have the checksum that S3 keeps of it.",
            problem=ProblemCode.CORRUPT,
        )
    if isinstance(error, raised.HTTPClientError | raised.IncompleteReadError):
        return Transient(
            "The S3 server could not be reached, or the connection broke.",
            problem=ProblemCode.UNREACHABLE,
        )
    return Permanent(
        f"The S3 client failed ({type(error).__name__}).", problem=ProblemCode.UNREACHABLE
    )


def answered(code: str, status: int) -> StoreError:
    said = f"S3 answered {code or 'with an error'} (HTTP {status})."
    if code == "NoSuchBucket":
        return Permanent("There is no such bucket.", problem=ProblemCode.UNREACHABLE)
    if code in ("PreconditionFailed", "412"):
        return Changed(
            "The object changed after it was read.", problem=ProblemCode.CHANGED_UNDERNEATH
        )
    if code in _BUSY or (status >= 500 and status != 501):
        return Transient(said, problem=ProblemCode.BUSY)
    if code in _DENIED or (status in (401, 403) and code != "InvalidObjectState"):
        return Permanent(said, problem=ProblemCode.NO_PERMISSION)
    if code == "InvalidObjectState":
        return Permanent(
            "It is archived and has to be restored before it can be read.",
            problem=ProblemCode.UNSUPPORTED,
        )
    if status == 404 or code.startswith("NoSuch") or code.endswith("NotFoundError"):
        return Missing(said, problem=ProblemCode.UNREACHABLE)
    if status in (400, 405, 501):
        return Permanent(said, problem=ProblemCode.UNSUPPORTED)
    return Permanent(said, problem=ProblemCode.UNREACHABLE)


@contextmanager
def mapped() -> Iterator[None]:
    """Turn what the driver raises inside into the contract's errors."""
    from botocore.exceptions import (  # type: ignore[import-untyped]  # no types in it
        BotoCoreError,
        ClientError,
    )

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise _problem(error) from None
