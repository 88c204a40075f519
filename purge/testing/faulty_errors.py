"""The one place in which the fault-injecting adapter maps its store's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from purge.errors import Permanent, StoreError, Transient
from purge.state import ProblemCode
from purge.testing.faulty_store import Taken, Unreadable


@contextmanager
def mapped() -> Iterator[None]:
    """Turn what the store raises into what an adapter may raise.

    Raises:
        Transient, Permanent: in place of the store's own errors.
    """
    try:
        yield
    except Taken:
        raise Transient("Another process holds the store.", problem=ProblemCode.BUSY) from None
    except Unreadable:
        raise Permanent("The store is damaged.", problem=ProblemCode.CORRUPT) from None
    except OSError as error:
        raise _problem(error) from None


def _problem(error: OSError) -> StoreError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Permanent("The store is not there.", problem=ProblemCode.UNREACHABLE)
    if isinstance(error, PermissionError):
        return Permanent("The store refused access.", problem=ProblemCode.NO_PERMISSION)
    return Transient("The store could not be read or written.", problem=ProblemCode.UNREACHABLE)
