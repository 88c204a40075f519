"""The life of a ledger on disk: made, filled, sealed, read, closed, read again."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from purge.errors import LedgerFault, Refused, UsageFault
from purge.ledger import (
    Event,
    EventKind,
    KeyState,
    Ledger,
    NewRequest,
    Remains,
    StepRecord,
    run_lock,
)
from purge.ledger.keyring import Keyring
from purge.ledger.storage import ledger_files, make_file
from purge.state import Problem, ProblemCode, State
from purge.targets import Target, TargetKind

PHRASE = "the heron nests behind the old Käsefabrik"
RECORD = "rec-7f3a/55%20 b"
SUBJECT = "ines.tester@example.org"
SCOPE = "tenant-quillwort-4471"
CANARIES = (PHRASE, RECORD, SUBJECT, SCOPE)
REASON = "lesson was wrong since the move"
TARGETS = (
    Target(0, TargetKind.PHRASE, PHRASE, None, {"tenant": SCOPE}),
    Target(1, TargetKind.ID, RECORD, "notes", {"tenant": SCOPE}),
    Target(2, TargetKind.SUBJECT, SUBJECT, None, {"tenant": SCOPE}),
)
SITES = {"logs": "jsonl", "notes": "markdown", "vectors": "chroma"}


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2031, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / ".purge" / "ledger.db"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "purge.key"


@pytest.fixture
def ledger(path: Path, key_file: Path) -> Iterator[Ledger]:
    with Ledger.create_or_open(path, key_file, clock=Clock()) as ledger:
        yield ledger


def new_request(**changes: object) -> NewRequest:
    asked: dict[str, object] = {
        "reason": REASON,
        "asked_by": "ines",
        "targets": TARGETS,
        "sites": SITES,
        "options": {"expect": 3},
    }
    return NewRequest(**(asked | changes))  # type: ignore[arg-type]  # fields by name


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def listing(folder: Path) -> Mapping[str, tuple[int, ...]]:
    return {
        str(file.relative_to(folder)): (
            file.stat().st_ino,
            file.stat().st_size,
            file.stat().st_mtime_ns,
            file.stat().st_ctime_ns,
        )
        for file in sorted((folder, *folder.rglob("*")))
    }


def test_files_are_for_their_owner_alone(ledger: Ledger, path: Path, key_file: Path) -> None:
    ledger.create_request(new_request())
    with run_lock(path, clock=Clock()):
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == [
            "ledger.db",
            "ledger.db-shm",
            "ledger.db-wal",
            "ledger.keys.db",
            "ledger.lock",
        ]
        assert set(files) <= set(ledger_files(path).all())
        assert {mode(file) for file in (*files, key_file)} == {0o600}
    assert {mode(folder) for folder in (path.parent, path.parent.parent, key_file.parent)} == {
        0o700
    }
    assert [file.name for file in key_file.parent.iterdir()] == ["purge.key"]


def test_a_file_is_closed_to_others_from_its_first_byte(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_file(tmp_path / "a" / "b" / "file")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b" / "file") == 0o600
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Ledger.create_or_open(tmp_path / "l.db", tmp_path / "key", clock=Clock()):
        assert mode(tmp_path) == 0o755


def test_a_file_that_was_opened_to_others_is_closed_again(path: Path, key_file: Path) -> None:
    Ledger.create_or_open(path, key_file, clock=Clock()).close()
    for file in path.parent.iterdir():
        file.chmod(0o644)
    with Ledger.open_existing(path, key_file, clock=Clock()):
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}


def test_a_request_is_recorded_with_its_steps(ledger: Ledger) -> None:
    view = ledger.create_request(new_request(deadline=datetime(2031, 4, 1, tzinfo=UTC)))
    assert ledger.request(view.id) == view
    assert (view.reason, view.asked_by, view.scope) == (REASON, "ines", ("tenant",))
    assert view.targets == {"id": 1, "phrase": 1, "subject": 1}
    assert view.options == {"expect": 3}
    assert view.deadline == datetime(2031, 4, 1, tzinfo=UTC)
    steps = ledger.steps(view.id)
    assert [(step.site, step.adapter, step.state) for step in steps] == [
        (site, adapter, State.ACCEPTED) for site, adapter in SITES.items()
    ]
    assert ledger.targets(view.id) == TARGETS
    assert ledger.request("01ARZ3NDEKTSV4RRFFQ69G5FAV") is None


def test_a_request_needs_a_target(ledger: Ledger) -> None:
    with pytest.raises(UsageFault):
        ledger.create_request(new_request(targets=()))
    assert ledger.requests() == []


@pytest.mark.parametrize(
    "reason",
    [
        f"please forget {PHRASE}",
        "THE HERON  nests behind the old Ka\u0308sefabrik was never true",
        f"record {RECORD} is wrong",
        "Ines.Tester@example.org asked",
        '{"why": "the heron nests behind the old K\\u00e4sefabrik"}',
    ],
)
def test_a_reason_that_repeats_what_is_to_be_forgotten_is_refused(
    ledger: Ledger, reason: str
) -> None:
    with pytest.raises(Refused) as refusal:
        ledger.create_request(new_request(reason=reason))
    assert not any(canary.casefold() in str(refusal.value).casefold() for canary in CANARIES)
    assert ledger.requests() == []
    assert ledger.verify().ok


def test_who_asks_about_themselves_is_not_named(ledger: Ledger) -> None:
    view = ledger.create_request(new_request(asked_by=f"Ines <{SUBJECT}>"))
    assert view.asked_by == "someone whom the request names"


def test_what_is_sealed_comes_back_and_the_last_version_counts(ledger: Ledger) -> None:
    id = ledger.create_request(new_request()).id
    assert ledger.unseal(id, "plan") is None
    ledger.seal(id, "plan", {"texts": [PHRASE, "\ud800", "\0"], "vectors": [[0.25, -1.5]]})
    ledger.seal(id, "plan", {"texts": ["second"], "vectors": [[0.1]]})
    ledger.seal(id, "traces", {"n": 1})
    assert ledger.unseal(id, "plan") == {"texts": ["second"], "vectors": [[0.1]]}
    assert ledger.unseal(id, "traces") == {"n": 1}
    assert ledger.verify().ok


def test_unpaired_surrogates_survive_sealing(ledger: Ledger) -> None:
    id = ledger.create_request(new_request()).id
    payload = {"texts": [PHRASE, "\ud800", "\0", "👩‍🌾"]}
    ledger.seal(id, "plan", payload)
    assert ledger.unseal(id, "plan") == payload


def test_the_length_of_what_is_sealed_does_not_tell_a_short_phrase(
    ledger: Ledger, path: Path
) -> None:
    ids = [ledger.create_request(new_request()).id for _ in range(2)]
    ledger.seal(ids[0], "plan", {"phrase": "a"})
    ledger.seal(ids[1], "plan", {"phrase": "a" * 100})
    with closing(sqlite3.connect(path)) as raw:
        sizes = raw.execute("SELECT DISTINCT length(content) FROM sealed WHERE name = 'plan'")
        assert len(sizes.fetchall()) == 1


def test_events_that_may_not_follow_leave_nothing_behind(ledger: Ledger) -> None:
    id = ledger.create_request(new_request()).id
    before = ledger.verify()
    steps = ledger.steps(id)
    with pytest.raises(LedgerFault, match="begins as accepted"):
        ledger.append(
            [
                StepRecord("jsonl", State.CONFIRMED_DELETED).event(id, "logs"),
                StepRecord("restic", State.CONFIRMED_DELETED).event(id, "backups"),
            ]
        )
    with pytest.raises(LedgerFault, match="names no request"):
        ledger.append([Event(EventKind.REQUEST_WITHDRAWN)])
    with pytest.raises(TypeError, match="floats"):
        ledger.append([Event(EventKind.FACT, id, "logs", {"seconds": 1.5})])
    assert ledger.verify() == before
    assert ledger.steps(id) == steps


@pytest.mark.parametrize(
    "kind",
    [
        EventKind.LEDGER_CREATED,
        EventKind.REQUEST_CREATED,
        EventKind.REQUEST_SEALED,
        EventKind.KEY_DESTROYING,
        EventKind.KEY_DESTROYED,
    ],
)
def test_what_speaks_of_the_ledgers_own_files_is_not_appended(
    ledger: Ledger, kind: EventKind
) -> None:
    id = ledger.create_request(new_request()).id
    with pytest.raises(LedgerFault, match="by the ledger alone"):
        ledger.append([Event(kind, id)])


def test_events_are_read_back_by_request_and_kind(ledger: Ledger) -> None:
    ids = [ledger.create_request(new_request(sites={})).id for _ in range(2)]
    ledger.append([Event(EventKind.FACT, ids[i % 2], "logs", {"n": i}) for i in range(2_500)])
    ledger.append([Event(EventKind.RUN_FINISHED)])
    numbers = [event.seq for event in ledger.events()]
    assert numbers == list(range(1, 2_507))
    facts = list(ledger.events(ids[1], [EventKind.FACT, EventKind.INTENT]))
    assert [event.body["n"] for event in facts] == list(range(1, 2_500, 2))
    assert list(ledger.events(ids[0], [EventKind.INTENT])) == []
    assert [event.kind for event in ledger.events(kinds=[EventKind.RUN_FINISHED])] == [
        EventKind.RUN_FINISHED
    ]


def test_requests_are_listed_and_counted(ledger: Ledger) -> None:
    ids = [ledger.create_request(new_request()).id for _ in range(4)]
    ledger.append([Event(EventKind.REQUEST_WITHDRAWN, ids[1])])
    for site in SITES:
        ledger.append([StepRecord("x", State.CONFIRMED_DELETED).event(ids[0], site)])
    assert [view.id for view in ledger.requests()] == ids[::-1]
    assert [view.id for view in ledger.requests(open_only=True)] == [ids[3], ids[2], ids[0]]
    assert [view.id for view in ledger.requests(open_only=True, limit=1)] == [ids[3]]
    assert ledger.counts() == {
        State.ACCEPTED: 2,
        State.REMOVED_FROM_READS: 0,
        State.BACKUP_RETAINED: 0,
        State.CONFIRMED_DELETED: 1,
    }
    assert sum(ledger.counts(open_only=False).values()) == 4


def test_an_id_may_be_given_by_its_beginning(ledger: Ledger) -> None:
    ids = [ledger.create_request(new_request()).id for _ in range(2)]
    other = next(n for n, (a, b) in enumerate(zip(*ids, strict=True)) if a != b)
    assert ledger.resolve(ids[0]) == ids[0]
    assert ledger.resolve(f" {ids[1][: max(other + 1, 6)].lower()} ") == ids[1]
    with pytest.raises(UsageFault, match="Several"):
        ledger.resolve(ids[0][:6])
    with pytest.raises(UsageFault, match="at least 6"):
        ledger.resolve(ids[0][:5])
    for unknown in ("7ZZZZZZZ", ids[0] + "0", "%%%%%%", "______"):
        with pytest.raises(UsageFault, match="No request"):
            ledger.resolve(unknown)


def test_a_request_is_known_again(ledger: Ledger, path: Path, key_file: Path) -> None:
    key = ledger.idempotency_key(["notes", "n1", PHRASE])
    assert ledger.idempotency_key(["notes", "n1" + PHRASE]) != key
    assert ledger.find_by_idempotency(key) is None
    first = ledger.create_request(new_request(idempotency=key)).id
    assert ledger.find_by_idempotency(key) == first
    second = ledger.create_request(new_request(idempotency=key)).id
    assert ledger.find_by_idempotency(key) == second
    ledger.close()
    with Ledger.open_existing(path, key_file, clock=Clock()) as again:
        assert again.idempotency_key(["notes", "n1", PHRASE]) == key
        assert again.find_by_idempotency(key) == second
        again.destroy_key(second, remember_asked=True)
        assert again.find_by_idempotency(key) == second
        again.destroy_key(first)
        assert again.find_by_idempotency(key) == second


def test_an_idempotency_key_is_forgotten_with_the_key(ledger: Ledger) -> None:
    key = ledger.idempotency_key([PHRASE])
    id = ledger.create_request(new_request(idempotency=key)).id
    ledger.destroy_key(id)
    assert ledger.find_by_idempotency(key) is None


def test_digests_of_ids_are_each_requests_own(ledger: Ledger) -> None:
    one, other = (ledger.create_request(new_request()).id for _ in range(2))
    assert ledger.keyed_digest(one, RECORD) == ledger.keyed_digest(one, RECORD)
    assert ledger.keyed_digest(one, RECORD) != ledger.keyed_digest(one, RECORD + " ")
    assert ledger.keyed_digest(one, RECORD) != ledger.keyed_digest(other, RECORD)
    ledger.destroy_key(one)
    with pytest.raises(LedgerFault, match="destroyed"):
        ledger.keyed_digest(one, RECORD)


def test_a_destroyed_key_is_gone_from_every_file(
    ledger: Ledger, path: Path, key_file: Path
) -> None:
    ids = [ledger.create_request(new_request()).id for _ in range(40)]
    keys = path.with_name("ledger.keys.db")
    with closing(sqlite3.connect(keys)) as raw:
        wrapped = dict(raw.execute("SELECT request, wrapped FROM keys"))
    with closing(sqlite3.connect(path)) as raw:
        sealed = dict(raw.execute("SELECT request, content FROM sealed"))
    files = ledger_files(path)

    def stands(piece: bytes) -> bool:
        return any(piece in file.read_bytes() for file in files.all() if file.exists())

    gone = ids[::2]
    assert all(stands(wrapped[id]) and stands(sealed[id]) for id in ids)
    for id in gone:
        ledger.destroy_key(id)
    for id in ids:
        assert stands(wrapped[id][:20]) is (id not in gone)
        assert stands(wrapped[id][-20:]) is (id not in gone)
        assert stands(sealed[id][:40]) is (id not in gone)
    assert ledger.targets(gone[0]) is None
    assert ledger.unseal(gone[0], "targets") is None
    with pytest.raises(LedgerFault, match="destroyed"):
        ledger.seal(gone[0], "plan", {})
    view = ledger.request(gone[0])
    assert view is not None
    assert view.key is KeyState.DESTROYED
    events = ledger.verify().events
    ledger.destroy_key(gone[0])
    assert ledger.verify().events == events
    assert ledger.targets(ids[1]) == TARGETS
    ledger.close()
    with Ledger.open_read_only(path, key_file) as again:
        assert again.verify().ok
        assert again.targets(gone[0]) is None
        assert again.targets(ids[1]) == TARGETS


def test_reading_makes_and_changes_nothing(path: Path, key_file: Path, tmp_path: Path) -> None:
    with Ledger.create_or_open(path, key_file, clock=Clock()) as ledger:
        id = ledger.create_request(new_request()).id
    before = listing(tmp_path)
    with Ledger.open_read_only(path, key_file) as reader:
        assert [view.id for view in reader.requests()] == [id]
        assert reader.request(id) is not None
        assert len(reader.steps(id)) == 3
        assert reader.targets(id) == TARGETS
        assert reader.verify().ok
        assert len(list(reader.events())) == 6
        assert reader.resolve(id[:12]) == id
        assert listing(tmp_path) == before
        with pytest.raises(LedgerFault, match="read only"):
            reader.append([Event(EventKind.FACT, id)])
        with pytest.raises(LedgerFault, match="read only"):
            reader.rebuild()
    assert listing(tmp_path) == before


def test_reading_needs_no_key_until_something_is_unsealed(path: Path, key_file: Path) -> None:
    with Ledger.create_or_open(path, key_file, clock=Clock()) as ledger:
        id = ledger.create_request(new_request()).id
    with Ledger.open_read_only(path) as reader:
        assert reader.request(id) is not None
        assert reader.verify().ok
        with pytest.raises(LedgerFault, match="key file"):
            reader.targets(id)


def test_a_reader_sees_what_a_writer_commits_meanwhile(path: Path, key_file: Path) -> None:
    clock = Clock()
    Ledger.create_or_open(path, key_file, clock=clock).close()
    with Ledger.open_read_only(path) as reader:
        assert reader.requests() == []
        with Ledger.open_existing(path, key_file, clock=clock) as ledger:
            one = ledger.create_request(new_request()).id
            assert [view.id for view in reader.requests()] == [one]
            two = ledger.create_request(new_request()).id
            assert [view.id for view in reader.requests()] == [two, one]
        assert [view.id for view in reader.requests()] == [two, one]
        with Ledger.open_existing(path, key_file, clock=clock) as ledger:
            three = ledger.create_request(new_request()).id
        assert [view.id for view in reader.requests()] == [three, two, one]
        assert reader.verify().ok


def test_opening_what_is_not_there_makes_nothing(path: Path, key_file: Path) -> None:
    with pytest.raises(LedgerFault, match="no ledger"):
        Ledger.open_existing(path, key_file, clock=Clock())
    with pytest.raises(LedgerFault, match="no ledger"):
        Ledger.open_read_only(path, key_file)
    assert not path.parent.exists()
    assert not key_file.parent.exists()


def test_an_earlier_head_is_still_in_the_chain(ledger: Ledger) -> None:
    ledger.create_request(new_request())
    noted = ledger.verify()
    ledger.create_request(new_request())
    assert ledger.verify(noted=(noted.events, noted.head)).ok
    forged = noted.head[:-1] + ("0" if noted.head[-1] != "0" else "1")
    wrong = ledger.verify(noted=(noted.events, forged))
    assert wrong.first_fault == f"Event {noted.events} is not the one that was noted: " + (
        "the chain was remade."
    )
    assert not ledger.verify(noted=(1_000, noted.head)).ok


def test_the_end_that_is_noted_never_goes_back(path: Path, key_file: Path) -> None:
    clock = Clock()
    with (
        Ledger.create_or_open(path, key_file, clock=clock) as one,
        Ledger.open_existing(path, key_file, clock=clock) as other,
    ):
        one.create_request(new_request())
        early = one.verify()
        other.create_request(new_request())
        late = other.verify()
    with closing(Keyring.open_to_write(ledger_files(path).keys, key_file, at="", create=False)) as (
        keyring
    ):
        assert (keyring.anchor().events, keyring.anchor().head) == (late.events, late.head)
        keyring.note(early.events, early.head)
        assert keyring.anchor().events == late.events


def test_nothing_that_is_to_be_forgotten_stands_in_any_file(path: Path, key_file: Path) -> None:
    clock = Clock()

    def stands(text: str) -> bool:
        forms = {
            text.encode(),
            text.casefold().encode(),
            text.encode("utf-16-le"),
            text.encode("utf-16-be"),
            text.encode("ascii", "backslashreplace").replace(b"\\x", b"\\u00"),
            text[:12].encode(),
            text[-12:].encode(),
        }
        files = (*ledger_files(path).all(), key_file)
        contents = [file.read_bytes().lower() for file in files if file.exists()]
        return any(form.lower() in content for form in forms for content in contents)

    def check() -> None:
        assert stands(REASON)
        assert not any(map(stands, CANARIES))

    with run_lock(path, clock=clock), Ledger.create_or_open(path, key_file, clock=clock) as ledger:
        key = ledger.idempotency_key(["phrase", PHRASE, SUBJECT])
        view = ledger.create_request(new_request(idempotency=key, asked_by=SUBJECT))
        check()
        id = view.id
        ledger.append([Event(EventKind.RUN_STARTED, None, None, {"verb": "request"})])
        plan = {"records": [{"id": RECORD, "texts": [PHRASE], "subject": SUBJECT, "s": SCOPE}]}
        ledger.seal(id, "plan", plan)
        ledger.seal(id, "plan", plan | {"more": [PHRASE] * 50})
        digest = ledger.keyed_digest(id, RECORD)
        ledger.append([Event(EventKind.INTENT, id, "logs", {"records": [digest]})])
        ledger.append([Event(EventKind.FACT, id, "logs", {"removed": 1})])
        check()
        until = clock.now + timedelta(days=9)
        ledger.append(
            [
                StepRecord("jsonl", State.CONFIRMED_DELETED, found=1, removed=1).event(id, "logs"),
                StepRecord(
                    "markdown",
                    State.REMOVED_FROM_READS,
                    problem=Problem(ProblemCode.HELD_OPEN, "Another process holds it."),
                ).event(id, "notes"),
                StepRecord(
                    "chroma",
                    State.BACKUP_RETAINED,
                    until,
                    residue=[Remains("snapshot", "kept", until)],
                ).event(id, "vectors"),
                Event(EventKind.RUN_FINISHED),
            ]
        )
        assert ledger.targets(id) == TARGETS
        ledger.rebuild()
        check()
    check()
    with Ledger.open_existing(path, key_file, clock=clock) as ledger:
        ledger.append([Event(EventKind.REQUEST_CLOSED, id)])
        ledger.destroy_key(id)
        check()
        assert ledger.verify().ok
    check()
