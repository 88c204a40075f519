"""Between the engine and an adapter: patience, and a wall against surprises.

Retries what an adapter calls transient, with a fresh instance each time, and turns whatever else
an adapter raises into one of the contract's errors, so that no exception text of a driver (which
may hold erased text) travels further. Writes no ledger and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from purge.adapter import Adapter
from purge.errors import Permanent, PurgeError, Transient
from purge.state import Problem, ProblemCode

T = TypeVar("T")
Opener = Callable[[], Adapter[Any]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long transient errors are borne.

    Args:
        attempts: how often a call is made before it is given up.
        first, longest: seconds between attempts; they grow, with jitter, from one to the other.
    """

    attempts: int = 4
    first: float = 0.2
    longest: float = 3.0


def call(
    open_adapter: Opener, act: Callable[[Adapter[Any]], Iterable[T]], patience: Patience
) -> list[T]:
    """Run one verb to its end on a fresh adapter and return what it yields.

    Args:
        open_adapter: makes a new instance, hence a new connection.
        act: calls the verb. It may run more than once; every verb is idempotent.
        patience: how often.

    Raises:
        Transient: it still failed at the last attempt.
        Permanent: trying again cannot help. Unknown exceptions become this.
        PurgeError: a safety rule or a setting stopped it.
    """

    def once() -> list[T]:
        try:
            with open_adapter() as adapter:
                return list(act(adapter))
        except PurgeError:
            raise
        except Exception as error:
            raise Permanent(
                f"The adapter failed in a way that it does not know ({type(error).__name__}).",
                problem=ProblemCode.UNREACHABLE,
            ) from error

    retrying = Retrying(
        retry=retry_if_exception_type(Transient),
        stop=stop_after_attempt(patience.attempts),
        wait=wait_random_exponential(multiplier=patience.first, max=patience.longest),
        reraise=True,
    )
    return retrying(once)


def problem_of(error: PurgeError) -> Problem:
    """Return a failed call as the problem that its step carries."""
    code = getattr(error, "problem", ProblemCode.UNREACHABLE)
    try:
        known = ProblemCode(code)
    except ValueError:
        known = ProblemCode.UNREACHABLE
    return Problem(known, str(error))
