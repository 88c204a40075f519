"""What can be made to go wrong in the fault-injecting adapter, and the journal of its calls.

Plain values that a manifest can hold, and one file beside the store. Nothing here knows records.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from purge.errors import Permanent, Transient
from purge.state import ProblemCode


@dataclass(frozen=True, slots=True)
class FaultyResidue:
    """A copy that the adapter claims to see while a target's record is or was here.

    Args:
        why: the clause of the residue.
        until: when it goes by itself; ``None``: never.
        fixable: ``sanitize`` takes it away.
        problem: the code that it carries.
    """

    why: str = "a copy that a test asked for"
    until: datetime | None = None
    fixable: bool = False
    problem: ProblemCode = ProblemCode.NO_END_DATE


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong. Verbs are ``check``, ``find``, ``remove``, ``sanitize`` and ``residue``.

    Args:
        transient: by verb, how many of its first calls raise ``Transient`` (``busy``).
        permanent: by verb, the problem code of the ``Permanent`` that every call raises.
        unknown: verbs of which every call raises an error that no adapter may raise, with the
            ids it was given in its message.
        slow: by verb, how many seconds a call takes longer.
        crash: by verb, after how many acts the process kills itself with SIGKILL: records removed,
            copies sanitized, things yielded. 0: before the first. Happens once.
        lies: ``remove`` answers as if all were well, and removes nothing.
        leaves: ``remove`` leaves everything alone and says so with this problem code.
        resurrects: what was removed is back when ``remove`` ends: after the first time, or always.
        arrives: how many copies of the removed records, with new ids, a job that was in flight
            writes while the first ``remove`` runs.
        arrives_always: that job never stops.
        residue: copies that are there besides the real ones.
        control_fails: the look at bytes cannot see live values either.
        not_checked: verbs that yield a ``NotChecked``.
    """

    transient: Mapping[str, int] = field(default_factory=dict)
    permanent: Mapping[str, ProblemCode] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    slow: Mapping[str, float] = field(default_factory=dict)
    crash: Mapping[str, int] = field(default_factory=dict)
    lies: bool = False
    leaves: ProblemCode | None = None
    resurrects: Literal["never", "once", "always"] = "never"
    arrives: int = 0
    arrives_always: bool = False
    residue: tuple[FaultyResidue, ...] = ()
    control_fails: bool = False
    not_checked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb, or one thing that happened once (then ``event`` is set)."""

    verb: str
    ids: tuple[str, ...] = ()
    event: str = ""


class Journal:
    """All calls of a store's verbs, over all instances and processes, in one file.

    Args:
        path: the file; it need not exist. ``None``: nothing is kept, so that no fault which
            happens once or a number of times can be asked for.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def calls(self, verb: str | None = None) -> tuple[Call, ...]:
        """Return the calls so far, in order, of one verb or of all."""
        return tuple(call for call in self._all() if not call.event and verb in (None, call.verb))

    def happened(self, event: str) -> bool:
        """Whether something that happens once has happened."""
        return any(call.event == event for call in self._all())

    def write(self, call: Call) -> None:
        """Add one line, at once."""
        if self._path is None:
            return
        line = json.dumps({"verb": call.verb, "ids": call.ids, "event": call.event}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def _all(self) -> tuple[Call, ...]:
        if self._path is None or not self._path.exists():
            return ()
        lines = map(json.loads, self._path.read_text().splitlines())
        return tuple(Call(line["verb"], tuple(line["ids"]), line["event"]) for line in lines)


class Mischief:
    """Makes the faults happen that do not depend on the store's content."""

    def __init__(self, faults: Faults, journal: Journal) -> None:
        self.faults = faults
        self.journal = journal

    def begin(self, verb: str, ids: tuple[str, ...] = ()) -> None:
        """Note the call, then be slow, crash or fail as asked.

        Raises:
            Transient, Permanent: asked for.
            RuntimeError: asked for (``unknown``).
        """
        self.journal.write(Call(verb, ids))
        faults = self.faults
        if verb in faults.slow:
            time.sleep(faults.slow[verb])
        self.crash(verb, 0)
        if verb in faults.unknown:
            raise RuntimeError(f"an error without manners about {', '.join(ids) or 'everything'}")
        if verb in faults.transient and len(self.journal.calls(verb)) <= faults.transient[verb]:
            raise Transient("The store is busy, as a test asked.", problem=ProblemCode.BUSY)
        if verb in faults.permanent:
            raise Permanent("The store refused, as a test asked.", problem=faults.permanent[verb])

    def crash(self, verb: str, acts: int) -> None:
        """Kill this process if the verb is to crash after so many acts and has not yet."""
        if self.faults.crash.get(verb) == acts and self.once(f"crash {verb}"):
            os.kill(os.getpid(), signal.SIGKILL)

    def once(self, event: str) -> bool:
        """Whether this is the first time; it is noted."""
        if self.journal.happened(event):
            return False
        self.journal.write(Call("", event=event))
        return True
