"""What may follow what, and what a request's state is made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from purge.errors import LedgerFault
from purge.ledger.events import JSON, Event, EventKind, StoredEvent
from purge.ledger.fold import Folded, fold
from purge.ledger.views import KeyState, Remains, StepRecord, StepView
from purge.state import Problem, ProblemCode, State

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
CREATED: Mapping[str, JSON] = {
    "reason": "a wrong lesson",
    "asked_by": "ines",
    "scope": ["project"],
    "options": {"expect": 2},
    "targets": {"id": 1, "phrase": 2},
    "deadline": None,
    "key": "k1",
}


class Chain:
    """Events in order, an hour apart, without hashes."""

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.add(Event(EventKind.LEDGER_CREATED, body={"ledger": "x"}))

    def add(self, event: Event) -> None:
        seq = len(self.events) + 1
        at = START + timedelta(hours=seq)
        self.events.append(
            StoredEvent(seq, at, event.kind, event.request, event.site, event.body, "")
        )

    def tell(self, kind: EventKind, body: Mapping[str, JSON] | None = None) -> None:
        self.add(Event(kind, "R1", None, body or {}))

    def step(self, site: str, record: StepRecord) -> None:
        self.add(record.event("R1", site))

    def folded(self) -> Folded:
        return fold(self.events)["R1"]


@pytest.fixture
def chain() -> Chain:
    chain = Chain()
    chain.tell(EventKind.REQUEST_CREATED, CREATED)
    for site in ("logs", "notes", "vectors"):
        chain.step(site, StepRecord("jsonl"))
    return chain


def test_a_request_is_what_was_asked(chain: Chain) -> None:
    view = chain.folded().request
    assert (view.id, view.reason, view.asked_by) == ("R1", "a wrong lesson", "ines")
    assert view.created == START + timedelta(hours=2)
    assert view.changed == START + timedelta(hours=5)
    assert (view.scope, view.options, view.targets) == (
        ("project",),
        {"expect": 2},
        {"id": 1, "phrase": 2},
    )
    assert view.open
    assert (view.state, view.until, view.sites, view.problems) == (State.ACCEPTED, None, 3, 0)
    assert view.key is KeyState.HELD


def test_a_request_is_as_far_as_its_weakest_step(chain: Chain) -> None:
    soon, late = START + timedelta(days=9), START + timedelta(days=40)
    chain.step("logs", StepRecord("jsonl", State.CONFIRMED_DELETED))
    chain.step("notes", StepRecord("jsonl", State.BACKUP_RETAINED, until=late))
    assert chain.folded().request.state is State.ACCEPTED
    chain.step("vectors", StepRecord("jsonl", State.BACKUP_RETAINED, until=soon))
    view = chain.folded().request
    assert (view.state, view.until) == (State.BACKUP_RETAINED, late)
    chain.step("vectors", StepRecord("jsonl", State.REMOVED_FROM_READS))
    view = chain.folded().request
    assert (view.state, view.until) == (State.REMOVED_FROM_READS, None)


def test_a_record_that_came_back_takes_the_step_back(chain: Chain) -> None:
    chain.step("logs", StepRecord("jsonl", State.CONFIRMED_DELETED))
    problem = Problem(ProblemCode.STILL_READABLE, "It is there again.")
    chain.step("logs", StepRecord("jsonl", State.ACCEPTED, problem=problem, left=1))
    folded = chain.folded()
    assert folded.steps["logs"].state is State.ACCEPTED
    assert folded.steps["logs"].problem == problem
    assert folded.request.problems == 1
    assert list(folded.steps) == ["logs", "notes", "vectors"]


def test_a_request_waits_for_what_only_a_person_decides(chain: Chain) -> None:
    kept = Problem(ProblemCode.SOURCE_KEPT, "A source is kept.")
    other = Problem(ProblemCode.HELD_OPEN, "Held open.")
    chain.step("logs", StepRecord("jsonl", problem=kept))
    chain.step("notes", StepRecord("jsonl", problem=other))
    assert chain.folded().request.waits_for == (ProblemCode.SOURCE_KEPT,)
    chain.tell(EventKind.DECISION, {"question": "sources", "answer": "remove"})
    chain.step("logs", StepRecord("jsonl", State.CONFIRMED_DELETED))
    view = chain.folded().request
    assert view.waits_for == ()
    assert [(one.question, one.answer) for one in view.decisions] == [("sources", "remove")]


def test_a_withdrawn_request_waits_for_nothing(chain: Chain) -> None:
    kept = Problem(ProblemCode.SOURCE_KEPT, "A source is kept.")
    chain.step("logs", StepRecord("jsonl", problem=kept))
    chain.tell(EventKind.REQUEST_WITHDRAWN)
    chain.step("notes", StepRecord("jsonl", problem=kept))
    view = chain.folded().request
    assert view.waits_for == ()
    assert not view.open
    assert view.withdrawn == START + timedelta(hours=7)


def test_a_step_carries_what_was_recorded(chain: Chain) -> None:
    until = START + timedelta(days=3)
    copies = (Remains("snapshot 3", "kept for a week", until),)
    evidence: Mapping[str, JSON] = {"kind": "api", "control": {"id": True}}
    record = StepRecord(
        "restic", State.BACKUP_RETAINED, until, None, 4, 3, 0, copies, evidence, "proven"
    )
    chain.step("logs", record)
    assert chain.folded().steps["logs"] == StepView(
        "R1",
        "logs",
        "restic",
        State.BACKUP_RETAINED,
        until,
        None,
        4,
        3,
        0,
        copies,
        evidence,
        "proven",
        START + timedelta(hours=6),
    )


def test_a_step_begins_as_accepted(chain: Chain) -> None:
    chain.step("backups", StepRecord("restic", State.CONFIRMED_DELETED))
    with pytest.raises(LedgerFault, match="begins as accepted"):
        chain.folded()


FALSE_CLAIMS = [
    (StepRecord("x", State.CONFIRMED_DELETED, left=1), "still there"),
    (StepRecord("x", State.CONFIRMED_DELETED, residue=[Remains("a", "b")]), "still there"),
    (StepRecord("x", State.BACKUP_RETAINED), "a date belongs"),
    (StepRecord("x", State.CONFIRMED_DELETED, until=START), "a date belongs"),
    (StepRecord("x", State.REMOVED_FROM_READS, until=START), "a date belongs"),
    (StepRecord("x", State.BACKUP_RETAINED, START, residue=[Remains("a", "b")]), "by the date"),
    (
        StepRecord(
            "x", State.BACKUP_RETAINED, START, residue=[Remains("a", "b", START + timedelta(1))]
        ),
        "by the date",
    ),
]


@pytest.mark.parametrize(("record", "why"), FALSE_CLAIMS)
def test_a_claim_that_its_own_numbers_contradict_is_refused(
    chain: Chain, record: StepRecord, why: str
) -> None:
    chain.step("logs", record)
    with pytest.raises(LedgerFault, match=why):
        chain.folded()


def test_nothing_follows_the_closing_but_the_end_of_the_key(chain: Chain) -> None:
    chain.tell(EventKind.REQUEST_CLOSED)
    chain.tell(EventKind.KEY_DESTROYING)
    assert chain.folded().request.key is KeyState.DESTROYING
    chain.tell(EventKind.KEY_DESTROYED)
    assert chain.folded().request.key is KeyState.DESTROYED
    assert not chain.folded().request.open
    chain.step("logs", StepRecord("jsonl", State.REMOVED_FROM_READS))
    with pytest.raises(LedgerFault, match="closed"):
        chain.folded()


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([Event(EventKind.REQUEST_CREATED, "R1", None, CREATED)], "exists already"),
        ([Event(EventKind.DECISION, "R2", None, {"question": "a", "answer": "b"})], "no such"),
        ([StepRecord("jsonl").event("R2", "logs")], "no such request"),
        ([Event(EventKind.FACT, "R2")], "no such request"),
        ([Event(EventKind.REQUEST_CLOSED)], "names no request"),
        ([Event(EventKind.LEDGER_CREATED)], "once"),
        ([Event(EventKind.KEY_DESTROYED, "R1")], "not announced"),
        ([Event(EventKind.KEY_DESTROYING, "R1")] * 2, "destroyed before"),
        ([Event(EventKind.REQUEST_WITHDRAWN, "R1")] * 2, "withdrawn before"),
        ([Event(EventKind.STEP_RECORDED, "R1", "logs", {"adapter": "x"})], "state is missing"),
        ([Event(EventKind.STEP_RECORDED, "R1", "logs", {"adapter": "x", "state": "gone"})], "step"),
        ([Event(EventKind.STEP_RECORDED, "R1", None, {"adapter": "x"})], "names no site"),
        (
            [
                Event(
                    EventKind.STEP_RECORDED,
                    "R1",
                    "logs",
                    {"adapter": "x", "state": "accepted", "left": -1},
                )
            ],
            "number",
        ),
        (
            [
                Event(
                    EventKind.REQUEST_SEALED,
                    "R1",
                    None,
                    {"name": "plan", "version": 2, "key": "k1", "digest": "d"},
                )
            ],
            "version",
        ),
        (
            [
                Event(
                    EventKind.REQUEST_SEALED,
                    "R1",
                    None,
                    {"name": "plan", "version": 1, "key": "k2", "digest": "d"},
                )
            ],
            "another key",
        ),
        (
            [
                Event(EventKind.KEY_DESTROYING, "R1"),
                Event(
                    EventKind.REQUEST_SEALED,
                    "R1",
                    None,
                    {"name": "plan", "version": 1, "key": "k1", "digest": "d"},
                ),
            ],
            "destroyed before",
        ),
    ],
)
def test_what_may_not_follow_is_refused(chain: Chain, events: list[Event], why: str) -> None:
    for event in events[:-1]:
        chain.add(event)
    chain.folded()
    chain.add(events[-1])
    with pytest.raises(LedgerFault, match=why):
        chain.folded()


def test_runs_touch_no_request() -> None:
    chain = Chain()
    chain.add(Event(EventKind.RUN_STARTED, body={"verb": "sweep"}))
    chain.add(Event(EventKind.RUN_FINISHED))
    assert fold(chain.events) == {}


def test_a_ledger_begins_with_its_creation() -> None:
    chain = Chain()
    chain.events.clear()
    chain.add(Event(EventKind.RUN_STARTED))
    with pytest.raises(LedgerFault, match="begins with its creation"):
        fold(chain.events)
