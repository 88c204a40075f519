"""One verb of an adapter in a process of its own, which may be killed at a chosen moment.

Run as ``python -c "from purge.testing.child import main; main()"`` with a job on standard input.
A moment is either *before the Nth call that may write* (calls of C functions that are named like
writes are counted with a profile hook) or *after so many seconds* (an alarm whose default action
ends the process at once, also within a driver's native code).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from purge.adapter import Action, Adapter, Match, Removal, Residue, Site
from purge.shapes import validate
from purge.targets import Target, TargetKind, Targets, Trace
from purge.testing.case import REQUEST, Case, with_traces

_WRITES: Final = frozenset(
    (
        *("open", "write", "writelines", "writev", "pwrite", "flush", "fsync", "fdatasync"),
        *("truncate", "ftruncate", "posix_fallocate", "copy_file_range", "sendfile"),
        *("rename", "replace", "link", "symlink", "unlink", "remove", "mkdir", "rmdir"),
        *("chmod", "chown", "fchmod", "fchown", "utime", "setxattr"),
        *("execute", "executemany", "executescript", "commit", "rollback"),
        *("add", "delete", "persist", "update", "upsert"),
    )
)

TEMPORARY: Final = "temporary-files"


@dataclass(frozen=True, slots=True)
class Moment:
    """When the child is killed: never, before a certain call, or after a time in seconds."""

    call: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: whether it was killed, and what it counted if it was not.

    ``turns`` are the calls that may write and do something else than the call before them.
    """

    killed: bool
    turns: tuple[int, ...] = ()
    seconds: float = 0.0


def run_verb(
    case: Case,
    verb: str,
    targets: Targets,
    matches: Iterable[Match],
    moment: Moment,
    folder: Path,
) -> Ended:
    """Run ``remove`` or ``sanitize`` in a child process.

    The child finds for itself what there is to remove, or what residue there is.

    Args:
        case: the store.
        verb: ``remove`` or ``sanitize``.
        targets: what has to go.
        matches: what was found before; their traces go to ``residue``.
        moment: when the child is killed.
        folder: where the child gets a folder for its temporary files, named :data:`TEMPORARY`.

    Raises:
        RuntimeError: the child failed by itself; its error is in the message.
    """
    kind = case.harness.adapter
    temporary = folder / TEMPORARY
    temporary.mkdir(exist_ok=True)
    job = {
        "adapter": [kind.__module__, kind.__qualname__, inspect.getfile(kind)],
        "settings": {**case.harness.settings(case.action), "action": case.action.value},
        "root": str(case.harness.folder),
        "site": case.site.name,
        "targets": [[*_fields(target)] for target in targets],
        "traces": [asdict(match.trace) for match in matches],
        "verb": verb,
        "call": moment.call,
        "seconds": moment.seconds,
    }
    done = subprocess.run(
        [sys.executable, "-c", "from purge.testing.child import main; main()"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(temporary),
        },
        timeout=300,
        check=False,
    )
    if done.returncode in (-signal.SIGKILL, -signal.SIGALRM):
        return Ended(killed=True)
    if done.returncode != 0:
        raise RuntimeError(f"The child failed: {done.stderr}")
    counted = json.loads(done.stdout.splitlines()[-1])
    return Ended(killed=False, turns=tuple(counted["turns"]), seconds=counted["seconds"])


def _fields(target: Target) -> Iterator[object]:
    yield from (target.key, target.kind.value, target.value, target.site, dict(target.scope))


def main() -> None:
    """Do the job on standard input."""
    job = json.load(sys.stdin)
    kind = _class(*job["adapter"])
    raw = dict(job["settings"])
    general = {
        name: raw.pop(name)
        for name in ("scope", "subject", "derived_from", "outside_root")
        if name in raw
    }
    site = Site(job["site"], Path(job["root"]), Action(raw.pop("action")), **general)
    settings: Any = validate(kind.Settings, raw)
    targets = Targets(
        Target(key, TargetKind(name), value, where, scope)
        for key, name, value, where, scope in job["targets"]
    )
    looked_for = with_traces(targets, map(_trace, job["traces"]))

    with kind(site, settings) as adapter:
        if job["verb"] == "remove":
            at = datetime.now(UTC)
            matches = [item for item in adapter.find(targets) if isinstance(item, Match)]
            removals = [Removal(match, REQUEST, at) for match in matches]
            residue: list[Residue] = []
        else:
            seen = adapter.residue(looked_for)
            residue = [item for item in seen if isinstance(item, Residue) and item.fixable]
            removals = []
    with kind(site, settings) as adapter:
        counter = _Counter(job["call"])
        started = time.monotonic()
        if job["seconds"] is not None:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, job["seconds"])
        else:
            sys.setprofile(counter)
        if removals:
            list(adapter.remove(removals))
        elif residue:
            list(adapter.sanitize(residue))
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.monotonic() - started
    sys.stdout.write(f"\n{json.dumps({'turns': counter.turns, 'seconds': seconds})}\n")


class _Counter:
    """A profile hook that counts calls which may write, and kills before a certain one."""

    def __init__(self, deadly: int | None) -> None:
        self.turns: list[int] = []
        self._calls = 0
        self._last = ""
        self._deadly = deadly

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        name = getattr(argument, "__name__", "") if event == "c_call" else ""
        if name not in _WRITES:
            return
        self._calls += 1
        if name != self._last:
            self.turns.append(self._calls)
            self._last = name
        if self._calls == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def _trace(raw: dict[str, Any]) -> Trace:
    vectors = tuple(map(tuple, raw["vectors"]))
    return Trace(raw["id"], tuple(raw["texts"]), tuple(raw["metadata"]), vectors)


def _class(module: str, name: str, file: str) -> type[Adapter[Any]]:
    """Return the class, also where its module is a test file that no name leads to."""
    found: object = reduce(getattr, name.split("."), _module(module, file))
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise TypeError("the job names no adapter")
    return found


def _module(name: str, file: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        spec = importlib.util.spec_from_file_location("the_adapter_under_test", file)
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
