"""Whatever is done to a ledger, its projection is what its events say."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from purge.errors import LedgerFault
from purge.ledger import Event, EventKind, KeyState, Ledger, NewRequest, Remains, StepRecord
from purge.ledger.events import JSON
from purge.ledger.fold import fold
from purge.state import Problem, ProblemCode, State, weakest
from purge.targets import Target, TargetKind

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where many ledgers are made quickly; whether a disk keeps them is not the question here."""
SITES = ("logs", "notes", "Vektoren/ü", "backups")

dates = st.datetimes(datetime(2031, 1, 1), datetime(2032, 1, 1)).map(
    lambda d: d.replace(tzinfo=UTC)
)
texts = st.text(max_size=8)
records = st.builds(
    StepRecord,
    adapter=st.sampled_from(["jsonl", "sql"]),
    state=st.sampled_from(State),
    until=st.none() | dates,
    problem=st.none() | st.builds(Problem, st.sampled_from(ProblemCode), texts),
    found=st.integers(0, 3),
    removed=st.integers(0, 3),
    left=st.integers(0, 1),
    residue=st.lists(st.builds(Remains, texts, texts, st.none() | dates), max_size=2),
    evidence=st.dictionaries(texts, st.integers() | texts | st.lists(st.booleans()), max_size=2),
    completeness=st.none() | texts,
)
places = st.tuples(st.integers(0, 2), st.sampled_from(SITES))
bodies: st.SearchStrategy[dict[str, JSON]] = st.dictionaries(
    texts, st.integers() | texts, max_size=2
)
acts = st.one_of(
    st.tuples(st.just("create"), st.lists(st.sampled_from(SITES), unique=True), texts),
    st.tuples(st.just("step"), places, records),
    st.tuples(st.just("seal"), places, bodies),
    st.tuples(
        st.sampled_from(
            [
                EventKind.INTENT,
                EventKind.FACT,
                EventKind.PLAN_MADE,
                EventKind.REQUEST_WITHDRAWN,
                EventKind.REQUEST_CLOSED,
            ]
        ),
        places,
        bodies,
    ),
    st.tuples(st.just("decide"), places, texts),
    st.tuples(st.just("run"), bodies, st.none()),
    st.tuples(st.just("destroy"), places, st.booleans()),
)


def do(ledger: Ledger, ids: list[str], act: tuple[object, ...], sealed: dict[str, object]) -> None:
    match act:
        case ("create", list() | tuple() as sites, str(reason)):
            target = Target(0, TargetKind.ID, "record-9000")
            new = NewRequest(reason, "ines", [target], dict.fromkeys(sites, "jsonl"))
            ids.append(ledger.create_request(new).id)
        case ("run", dict(body), _):
            ledger.append([Event(EventKind.RUN_STARTED, body=body)])
        case (what, (int(number), str(site)), value) if ids:
            id = ids[number % len(ids)]
            match what, value:
                case "step", StepRecord():
                    ledger.append([value.event(id, site)])
                case "seal", dict():
                    ledger.seal(id, "plan", value)
                    sealed[id] = value
                case "decide", str():
                    said = {"question": value, "answer": value}
                    ledger.append([Event(EventKind.DECISION, id, None, said)])
                case "destroy", bool():
                    ledger.destroy_key(id, remember_asked=value)
                    sealed[id] = None
                case EventKind(), dict():
                    ledger.append([Event(what, id, site, value)])


def seen(ledger: Ledger, ids: Sequence[str]) -> object:
    return (
        [ledger.request(id) for id in ids],
        [ledger.steps(id) for id in ids],
        ledger.requests(),
        ledger.requests(open_only=True),
        ledger.counts(),
    )


@given(st.lists(acts, max_size=25))
@settings(max_examples=40, deadline=None)
def test_the_projection_is_the_fold_of_the_events(script: list[tuple[object, ...]]) -> None:
    now = START

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path, key_file = Path(folder) / "ledger.db", Path(folder) / "key"
        ids: list[str] = []
        sealed: dict[str, object] = {}
        with Ledger.create_or_open(path, key_file, clock=clock) as ledger:
            for act in [("create", SITES[:2], "why"), *script]:
                before = list(ledger.events())
                try:
                    do(ledger, ids, act, sealed)
                except LedgerFault:
                    assert list(ledger.events()) == before
            folds = fold(ledger.events())
            assert list(folds) == ids
            for id in ids:
                assert ledger.request(id) == folds[id].request
                assert ledger.steps(id) == list(folds[id].steps.values())
                assert ledger.unseal(id, "plan") == sealed.get(id)
                if folds[id].steps:
                    states = [step.state for step in ledger.steps(id)]
                    assert folds[id].request.state is weakest(states)
            truth, outcome = seen(ledger, ids), ledger.verify()
            assert outcome.ok, outcome.first_fault
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("DELETE FROM requests")
            raw.execute("DELETE FROM steps")
        with Ledger.open_existing(path, key_file, clock=clock) as ledger:
            assert ledger.requests() == []
            ledger.rebuild()
            assert seen(ledger, ids) == truth
            assert ledger.verify() == outcome
            assert all(view.key is not KeyState.DESTROYING for view in ledger.requests())
