"""The ledger under several processes, killed processes, and without permission."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from purge.errors import LedgerFault, Locked
from purge.ledger import Event, EventKind, KeyState, Ledger, NewRequest, StepRecord, run_lock
from purge.ledger.storage import ledger_files
from purge.state import State
from purge.targets import Target, TargetKind

TARGETS = (Target(0, TargetKind.PHRASE, "the otter sleeps in the boathouse"),)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where many ledgers are made quickly; whether a disk keeps them is not the question here."""
NOBODY = 65534


def clock() -> datetime:
    return datetime.now(UTC)


def new_request() -> NewRequest:
    return NewRequest("was wrong", "ines", TARGETS, {"logs": "jsonl", "notes": "markdown"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "l" / "ledger.db"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "key"


PRELUDE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from purge.ledger import *
from purge.targets import Target, TargetKind
path, key_file = Path(sys.argv[1]), Path(sys.argv[2])
clock = lambda: datetime.now(UTC)
"""


def start(script: str, path: Path, key_file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(path), str(key_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str], *, killed: bool = False) -> str:
    said, error = process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGKILL if killed else 0), error
    return said


def test_several_processes_append_in_turns(path: Path, key_file: Path) -> None:
    with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
        id = ledger.create_request(new_request()).id
        script = f"""
with Ledger.open_existing(path, key_file, clock=clock) as ledger:
    for n in range(25):
        ledger.append([Event(EventKind.FACT, "{id}", "logs", {{"n": n}})])
        ledger.append([Event(EventKind.DECISION, "{id}", None, {{"question": "a", "answer": "b"}})])
"""
        processes = [start(script, path, key_file) for _ in range(4)]
        for process in processes:
            end(process)
        outcome = ledger.verify()
        assert outcome.ok, outcome.first_fault
        assert len(list(ledger.events(id, [EventKind.FACT]))) == 100
        view = ledger.request(id)
        assert view is not None
        assert len(view.decisions) == 100


def test_asking_where_things_stand_imports_nothing_heavy(path: Path, key_file: Path) -> None:
    with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
        id = ledger.create_request(new_request()).id
    script = f"""
with Ledger.open_read_only(path, key_file) as ledger:
    print(len(ledger.requests()), len(ledger.steps("{id}")), ledger.resolve("{id}"))
    heavy = ("cryptography", "ulid", "pydantic", "rich", "typer", "yaml")
    print(sorted(name for name in heavy if name in sys.modules))
    ledger.targets("{id}")
    print("cryptography" in sys.modules)
"""
    said = end(start(script, path, key_file)).splitlines()
    assert said == [f"1 2 {id}", "[]", "True"]


def test_several_processes_make_one_ledger(path: Path, key_file: Path) -> None:
    script = """
sys.stdin.read()
with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
    target = Target(0, TargetKind.ID, "r-1")
    print(ledger.create_request(NewRequest("why", "ines", [target], {"logs": "jsonl"})).id)
"""
    processes = [start(script, path, key_file) for _ in range(6)]
    time.sleep(0.3)
    for process in processes:  # they all wait at this line
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    ids = [end(process).strip() for process in processes]
    with Ledger.open_read_only(path, key_file) as ledger:
        assert sorted(view.id for view in ledger.requests()) == sorted(ids)
        assert all(ledger.targets(id) for id in ids)
        assert ledger.verify().ok
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.keys.db"]
    assert sorted(file.name for file in key_file.parent.iterdir()) == ["key", "l"]


def test_a_reader_beside_writers_never_sees_a_fault(path: Path, key_file: Path) -> None:
    with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
        id = ledger.create_request(new_request()).id
    script = f"""
for _ in range(20):
    with Ledger.open_existing(path, key_file, clock=clock) as ledger:
        for n in range(5):
            ledger.append([Event(EventKind.FACT, "{id}", "logs", {{"n": n}})])
        ledger.destroy_key(ledger.create_request(NewRequest(
            "why", "ines", [Target(0, TargetKind.ID, "r-1")], {{"logs": "jsonl"}})).id)
"""
    writer = start(script, path, key_file)
    looks, events = 0, 0
    while writer.poll() is None:
        with Ledger.open_read_only(path, key_file) as reader:
            outcome = reader.verify()
            assert outcome.ok, outcome.first_fault
            assert outcome.events >= events
            events, looks = outcome.events, looks + 1
            assert reader.targets(id) == TARGETS
    end(writer)
    assert looks > 5


def test_what_was_announced_before_a_kill_is_there(path: Path, key_file: Path) -> None:
    with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
        id = ledger.create_request(new_request()).id
    script = f"""
with Ledger.open_existing(path, key_file, clock=clock) as ledger:
    for n in range(1_000_000):
        ledger.append([Event(EventKind.INTENT, "{id}", "logs", {{"n": n}})])
        print(n, flush=True)
"""
    for delay in (0.02, 0.1, 0.25):
        process = start(script, path, key_file)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
        lines = end(process, killed=True).splitlines()
        said = int(lines[-1] if lines else 0)
        assert path.with_name("ledger.db-wal").exists()
        with Ledger.open_read_only(path, key_file) as reader:
            found = [event.body["n"] for event in reader.events(id, [EventKind.INTENT])]
            assert found[-1] in (said, said + 1)
            outcome = reader.verify()
            assert outcome.ok, outcome.first_fault
        with Ledger.open_existing(path, key_file, clock=clock) as ledger:
            assert ledger.verify().events == outcome.events
        assert not path.with_name("ledger.db-wal").exists()


class Tripwire(sqlite3.Connection):
    """Kills the process before the statement of a given number."""

    left = 0

    def execute(self, *arguments: object) -> sqlite3.Cursor:
        Tripwire.left -= 1
        if Tripwire.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(*arguments)  # type: ignore[arg-type]  # passed on


def announce(pipe: int, text: str) -> None:
    os.write(pipe, (text + "\n").encode())


def killed_at(number: int, act: Callable[[Callable[[str], None]], None]) -> tuple[bool, list[str]]:
    """Run ``act`` in a child that is killed before its statement ``number``.

    Returns whether it was, and what it had announced by then.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            connect = sqlite3.connect
            sqlite3.connect = lambda *a, **k: connect(*a, factory=Tripwire, **k)  # type: ignore[assignment]  # only in the child
            Tripwire.left = number
            act(lambda text: announce(writing, text))
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().splitlines()
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, said
    return os.WIFSIGNALED(status), said


SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_killed_before_any_statement_it_is_sound_again(shard: int) -> None:
    """The whole life of a request, killed at every statement, and gone on with."""

    def live(path: Path, key_file: Path, say: Callable[[str], None]) -> None:
        with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
            say("made")
            key = ledger.idempotency_key(["a"])
            id = ledger.find_by_idempotency(key)
            if id is None:
                new = NewRequest("why", "ines", TARGETS, {"logs": "jsonl"}, idempotency=key)
                id = ledger.create_request(new).id
            say(f"request {id}")
            ledger.seal(id, "plan", {"n": 1})
            say("sealed")
            ledger.append([StepRecord("jsonl", State.CONFIRMED_DELETED).event(id, "logs")])
            say("recorded")
            ledger.destroy_key(id, remember_asked=True)
            say("destroyed")

    number, killed, said = shard + 1 - SHARDS, True, [""]
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        while killed:
            number += SHARDS
            folder = Path(place) / str(number)
            path, key_file = folder / "ledger.db", folder / "key"
            killed, said = killed_at(number, lambda say, p=path, k=key_file: live(p, k, say))  # type: ignore[misc]  # defaults bind the loop's values
            with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
                outcome = ledger.verify()
                assert outcome.ok, (number, outcome.first_fault)
                ids = [line.split()[1] for line in said if line.startswith("request")]
                views = ledger.requests()
                assert len(views) <= 1
                if ids:
                    assert [view.id for view in views] == ids
                    assert ledger.find_by_idempotency(ledger.idempotency_key(["a"])) == ids[0]
                for view in views:
                    assert view.key is not KeyState.DESTROYING
                    destroyed = view.key is KeyState.DESTROYED
                    assert destroyed or "destroyed" not in said
                    assert (ledger.targets(view.id) is None) is destroyed
                    if "sealed" in said and not destroyed:
                        assert ledger.unseal(view.id, "plan") == {"n": 1}
                    if "recorded" in said:
                        assert view.state is State.CONFIRMED_DELETED
            with closing(sqlite3.connect(ledger_files(path).keys)) as keys:
                kept = {row[0] for row in keys.execute("SELECT request FROM keys")}
            assert not kept & {view.id for view in views if view.key is KeyState.DESTROYED}
            if not any(view.key is KeyState.DESTROYED for view in views):
                assert killed_at(0, lambda say, p=path, k=key_file: live(p, k, say))[1][-1] == (  # type: ignore[misc]  # as above
                    "destroyed"
                )
    assert said[-1] == "destroyed"
    assert number > 60


@contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """A folder of this process's user, who is not root while the block runs."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        # What is imported late must be there already: another user may not read it.
        warm = Path(name) / "warm"
        with Ledger.create_or_open(warm / "ledger.db", warm / "key", clock=clock) as ledger:
            ledger.targets(ledger.create_request(new_request()).id)
        if user == 0:
            os.chown(name, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            os.seteuid(user)


@pytest.mark.parametrize("closed", [True, False])
def test_a_folder_that_may_not_be_written(closed: bool) -> None:
    with unprivileged_folder() as folder:
        path, key_file = folder / "l" / "ledger.db", folder / "key"
        with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
            id = ledger.create_request(new_request()).id
        if not closed:
            killed_at(20, lambda say: append_for_ever(path, key_file, id))
            path.with_name("ledger.db-shm").unlink()
        path.parent.chmod(0o500)
        try:
            if closed:
                with Ledger.open_read_only(path, key_file) as reader:
                    assert reader.verify().ok
                    assert reader.targets(id) == TARGETS
            else:
                with pytest.raises(LedgerFault, match="left work unfinished"):
                    Ledger.open_read_only(path, key_file)
            with (
                pytest.raises(LedgerFault, match=r"may not be|cannot be opened"),
                Ledger.open_existing(path, key_file, clock=clock) as ledger,
            ):
                ledger.append([Event(EventKind.FACT, id)])
            path.parent.chmod(0o700)
            path.chmod(0o000)
            with pytest.raises(LedgerFault, match="may not be read"):
                Ledger.open_read_only(path, key_file)
            path.chmod(0o600)
        finally:
            path.parent.chmod(0o700)


def append_for_ever(path: Path, key_file: Path, id: str) -> None:
    with Ledger.open_existing(path, key_file, clock=clock) as ledger:
        while True:
            ledger.append([Event(EventKind.FACT, id)])


def test_a_folder_in_which_nothing_may_be_made() -> None:
    with unprivileged_folder() as folder:
        folder.chmod(0o500)
        with pytest.raises(LedgerFault, match="may not be"):
            Ledger.create_or_open(folder / "l" / "ledger.db", folder / "key", clock=clock)
        with pytest.raises(LedgerFault, match="may not be"), run_lock(folder / "l.db", clock=clock):
            pass
        folder.chmod(0o700)


# The lock

HOLD = """
with run_lock(path, clock=clock):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_stops_at_once_and_says_who_is_there(path: Path, key_file: Path) -> None:
    holder = start(HOLD, path, key_file)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    began = time.monotonic()
    with (
        pytest.raises(Locked, match=f"process {holder.pid}, started 20") as fault,
        run_lock(path, clock=clock),
    ):
        pytest.fail("two runs at once")
    assert time.monotonic() - began < 1
    assert fault.value.exit_code == 5
    end(holder)
    with run_lock(path, clock=clock):
        pass
    assert path.with_suffix(".lock").read_bytes() == b""


def test_the_lock_is_free_when_its_holder_is_killed(path: Path, key_file: Path) -> None:
    holder = start(HOLD, path, key_file)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    end(holder, killed=True)
    with run_lock(path, clock=clock):
        pass


def test_one_process_does_not_run_twice_either(path: Path) -> None:
    with run_lock(path, clock=clock):
        assert not path.exists()
        with pytest.raises(Locked, match=f"process {os.getpid()}"), run_lock(path, clock=clock):
            pass
        with run_lock(path.with_name("another.db"), clock=clock):
            pass


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"pid": 1}', b"\xff\xfe"])
def test_a_holder_that_does_not_say_who_it_is(path: Path, content: bytes) -> None:
    with run_lock(path, clock=clock):
        path.with_suffix(".lock").write_bytes(content)
        with (
            pytest.raises(Locked, match="Another run is under way"),
            run_lock(path, clock=clock),
        ):
            pass


def test_the_lock_does_not_follow_a_link(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"precious")
    path.parent.mkdir()
    path.with_suffix(".lock").symlink_to(other)
    with pytest.raises(LedgerFault), run_lock(path, clock=clock):
        pass
    assert other.read_bytes() == b"precious"
