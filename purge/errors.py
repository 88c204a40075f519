"""What can go wrong, as types, and the one table that maps it to an exit code.

This module may not import anything of ``purge``. Messages are shown to people as they stand, so
they say what, where and what to do, and they never hold erased text, an identifier of a subject
or a secret.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """How a command ends. Scripts should treat an unknown code as failure."""

    DONE = 0
    """As asked."""
    ERROR = 1
    """An error stopped the command."""
    USAGE = 2
    """The command line or the manifest is wrong."""
    INCOMPLETE = 3
    """It ran, but not everything is confirmed or dated."""
    REFUSED = 4
    """A safety rule refused it; nothing was deleted."""
    LOCKED = 5
    """Another run holds the lock."""


class PurgeError(Exception):
    """Base of every error that ``purge`` raises on purpose."""

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR
    code: ClassVar[str] = "error"


class UsageFault(PurgeError):
    """The caller's words are off: an option, an argument, an unknown request."""

    exit_code = ExitCode.USAGE
    code = "usage"


class ManifestFault(UsageFault):
    """The manifest cannot be used. ``faults`` lists everything that is wrong with it."""

    code = "manifest"

    def __init__(self, message: str, faults: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class MissingDriver(UsageFault):
    """An adapter's driver is not installed; the message names the extra to install."""

    code = "missing-driver"


class Refused(PurgeError):
    """A safety rule forbids it. Raised before anything was deleted."""

    exit_code = ExitCode.REFUSED
    code = "refused"


class EmptySelector(Refused):
    """A selector that would select everything or nothing was stopped before it reached a store."""

    code = "empty-selector"


class Locked(PurgeError):
    """Another run over the same manifest is under way."""

    exit_code = ExitCode.LOCKED
    code = "locked"


class LedgerFault(PurgeError):
    """The ledger or its keys cannot be read, do not belong together, or were altered."""

    code = "ledger"


class StoreError(PurgeError):
    """A store did not do what was asked of it. Adapters raise one of the two kinds below."""

    code = "store"

    def __init__(self, message: str, *, problem: str = "unreachable") -> None:
        super().__init__(message)
        self.problem = problem
        """A code of :class:`purge.state.ProblemCode`, for the report."""


class Transient(StoreError):
    """It may work if it is tried again: busy, timed out, connection lost. Retried by the engine."""

    code = "transient"


class Permanent(StoreError):
    """Trying again cannot help: no permission, corrupt, missing. Never retried."""

    code = "permanent"
