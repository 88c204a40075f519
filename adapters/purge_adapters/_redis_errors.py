"""What the driver raises, in the words of the contract. The only place where it is told apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from purge.adapter import ProblemCode
from purge.errors import Permanent, StoreError, Transient

_STOPPED = ("MISCONF", "NOREPLICAS")
"""The server takes no writes for the moment, and says so."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into the contract's. Their words are dropped: they may name keys.

    Raises:
        Transient, Permanent: something went wrong.
    """
    from redis.exceptions import RedisError

    try:
        yield
    except (RedisError, OSError) as error:
        raise translate(error) from None


def translate(error: Exception) -> StoreError:
    """Return the contract's error for one of the driver's (redis-py 5 to 8)."""
    from redis import exceptions as driver

    match error:
        case driver.AuthenticationError() | driver.NoPermissionError():
            return Permanent(
                "The Redis server refused the user, or a command that it needs.",
                problem=ProblemCode.NO_PERMISSION,
            )
        case driver.ReadOnlyError():
            return Permanent(
                "The Redis server is a replica and takes no writes. Name its master.",
                problem=ProblemCode.NO_PERMISSION,
            )
        case driver.BusyLoadingError() | driver.TryAgainError() | driver.ClusterDownError():
            return Transient("The Redis server is not ready yet.", problem=ProblemCode.BUSY)
        case driver.MovedError() | driver.AskError():
            return Transient(
                "Keys are moving between the nodes of the cluster.", problem=ProblemCode.BUSY
            )
        case driver.OutOfMemoryError():
            return Transient("The Redis server is out of memory.", problem=ProblemCode.BUSY)
        case driver.TimeoutError():
            return Transient("The Redis server did not answer in time.", problem=ProblemCode.BUSY)
        case driver.ConnectionError() | OSError():
            return Transient("The Redis server cannot be reached.", problem=ProblemCode.UNREACHABLE)
        case driver.ResponseError() if str(error).startswith("NOAUTH"):
            return Permanent(
                "The Redis server wants a password.", problem=ProblemCode.NO_PERMISSION
            )
        case driver.ResponseError() if str(error).startswith(_STOPPED):
            return Transient("The Redis server takes no writes now.", problem=ProblemCode.BUSY)
        case _:
            return Permanent(
                "The Redis server does not do what is needed.", problem=ProblemCode.UNSUPPORTED
            )


def is_refusal(error: Exception) -> bool:
    """Whether an answer means that this server does not let this user do it, now or ever."""
    from redis import exceptions as driver

    passing = (
        driver.AuthenticationError,
        driver.BusyLoadingError,
        driver.TryAgainError,
        driver.ClusterDownError,
        driver.OutOfMemoryError,
    )
    return isinstance(error, driver.ResponseError) and not isinstance(error, passing)


def is_denied(error: Exception) -> bool:
    """Whether an answer means that the user lacks a right, or that the command is taken away."""
    from redis import exceptions as driver

    return isinstance(error, driver.NoPermissionError) or str(error).startswith("unknown ")
