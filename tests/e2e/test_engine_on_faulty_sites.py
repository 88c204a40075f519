"""The engine on sites that fail in every way a test can ask for.

Nothing here trusts what the engine says of a store: records are read back through the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from purge.engine import Engine
from purge.errors import EmptySelector, Locked, Refused, UsageFault
from purge.ledger import run_lock
from purge.plan.outcome import Outcome, Step
from purge.plan.request import Decisions, Wanted
from purge.registry import Registry
from purge.report.document import report_document
from purge.resilience import Patience
from purge.state import Problem, ProblemCode, State
from purge.targets import TargetKind
from purge.testing.faults import Journal
from purge.testing.faulty_store import FaultyStore
from tests.support.redis_servers import Server

LESSON = "the staging database may be wiped at any time"
PHRASE = Wanted(TargetKind.PHRASE, LESSON)
NOW = datetime(2026, 11, 30, 3, 12, tzinfo=UTC)


@dataclass
class World:
    """A manifest of faulty sites: logs, memories made from them, and vectors made from those."""

    folder: Path
    sites: dict[str, dict[str, Any]]
    safety: dict[str, Any]
    now: datetime = NOW

    def engine(self, registry: dict[str, str] | None = None) -> Engine:
        manifest = {"purge": 1, "name": "w", "safety": self.safety, "sites": self.sites}
        path = self.folder / "purge.yaml"
        path.write_text(json.dumps(manifest))
        engine = Engine.open(
            path,
            Registry({"faulty": "purge.testing.faulty:FaultyAdapter", **(registry or {})}),
            environ={},
            clock=lambda: self.now,
        )
        engine._patience = Patience(attempts=3, first=0.001, longest=0.001)
        return engine

    def store(self, site: str) -> FaultyStore:
        return FaultyStore(self.folder / site)

    def plant(self, site: str, *records: dict[str, Any]) -> None:
        self.store(site).plant(records)

    def ids(self, site: str) -> list[str]:
        return [record["id"] for record in self.store(site).records()]

    def calls(self, site: str, verb: str) -> int:
        return len(Journal(self.folder / f"{site}.journal").calls(verb))

    def faults(self, site: str, **faults: Any) -> None:
        self.sites[site]["faults"] = faults

    def request(
        self, *wanted: Wanted, registry: dict[str, str] | None = None, **more: Any
    ) -> Outcome:
        return self.engine(registry).request(wanted or (PHRASE,), **({"apply": True} | more))


@pytest.fixture
def world(tmp_path: Path) -> World:
    def site(name: str, **more: Any) -> dict[str, Any]:
        return {"adapter": "faulty", "path": name, "journal": f"{name}.journal", **more}

    made = World(
        tmp_path,
        {
            "logs": site("logs", scope={"project": "project"}),
            "memories": site("memories", derived_from={"logs": "source"}),
            "vectors": site("vectors", derived_from={"memories": "memory"}),
        },
        {},
    )
    for name in made.sites:
        made.store(name).make()
    made.plant("logs", {"id": "l1", "text": f"I think {LESSON}."}, {"id": "l2", "text": "hello"})
    made.plant(
        "memories",
        {"id": "m1", "text": "wipe staging freely, it does not matter", "source": "l1"},
        {"id": "m2", "text": "the build takes eleven minutes", "source": "l2"},
    )
    made.plant(
        "vectors",
        {"id": "v1", "text": "", "memory": "m1", "vector": [0.25, 0.5, 0.125]},
        {"id": "v2", "text": "", "memory": "m2", "vector": [0.75, 0.5, 0.375]},
    )
    return made


def step(outcome: Outcome, site: str) -> Step:
    return next(step for step in outcome.steps if step.site == site)


def problem(outcome: Outcome, site: str) -> ProblemCode | None:
    found = step(outcome, site).problem
    return found.code if found else None


def states(outcome: Outcome) -> list[State | None]:
    return [step.state for step in outcome.steps]


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith((".journal", "purge.yaml"))
    }


def test_a_request_removes_what_it_reaches_and_nothing_else(world: World) -> None:
    outcome = world.request()
    assert states(outcome) == [State.CONFIRMED_DELETED] * 3
    assert outcome.settled
    assert [world.ids(site) for site in world.sites] == [["l2"], ["m2"], ["v2"]]
    tally = step(outcome, "memories").tally
    assert (tally.found, tally.removed, tally.left) == (1, 1, 0)
    assert tally.by_how == {"lineage": 1}


def test_a_dry_run_changes_nothing_and_shows_the_same_counts(world: World) -> None:
    before = snapshot(world.folder)
    shown = world.request(apply=False)
    assert snapshot(world.folder) == before
    assert shown.request.id == ""
    assert states(shown) == [None, None, None]
    assert all(world.calls(site, "remove") == 0 for site in world.sites)
    applied = world.request()
    for site in world.sites:
        assert step(shown, site).tally.to_remove == step(applied, site).tally.removed


def test_asking_again_goes_on_with_the_same_request_and_changes_nothing(world: World) -> None:
    first = world.request()
    before = {name: value for name, value in snapshot(world.folder).items() if "store" in name}
    again = world.request()
    after = {name: value for name, value in snapshot(world.folder).items() if "store" in name}
    assert again.request.id == first.request.id
    assert again.asked_before
    assert states(again) == states(first)
    assert [s.tally.removed for s in again.steps] == [s.tally.removed for s in first.steps]
    assert after == before
    assert world.calls("logs", "remove") == 1


def test_what_comes_back_takes_the_state_back_and_is_removed_again(world: World) -> None:
    first = world.request()
    world.plant("vectors", {"id": "v9", "text": "", "memory": "m1"})
    world.plant("logs", {"id": "l1", "text": f"I think {LESSON}."})
    seen = world.engine().verify(first.request.id[:12])
    assert [step(seen, site).state for site in ("logs", "vectors")] == [State.ACCEPTED] * 2
    assert world.ids("vectors") == ["v2", "v9"]  # verify removes nothing
    assert world.engine().report(first.request.id).state is State.ACCEPTED
    resumed = world.engine().resume(first.request.id)
    assert states(resumed) == [State.CONFIRMED_DELETED] * 3
    assert world.ids("vectors") == ["v2"]
    assert world.ids("logs") == ["l2"]


def test_transient_errors_are_tried_again(world: World) -> None:
    for site in world.sites:
        world.faults(site, transient={"find": 2, "remove": 2, "residue": 2})
    assert states(world.request()) == [State.CONFIRMED_DELETED] * 3


@pytest.mark.parametrize("verb", ["find", "remove", "residue"])
def test_a_transient_error_that_stays_is_a_problem(world: World, verb: str) -> None:
    world.faults("memories", transient={verb: 99})
    outcome = world.request()
    assert problem(outcome, "memories") is ProblemCode.BUSY
    assert step(outcome, "memories").state is not State.CONFIRMED_DELETED
    assert not outcome.settled


@pytest.mark.parametrize("verb", ["find", "remove", "residue"])
def test_a_permanent_error_is_not_tried_again_and_stops_no_other_site(
    world: World, verb: str
) -> None:
    world.faults("memories", permanent={verb: "no-permission"})
    outcome = world.request()
    assert problem(outcome, "memories") is ProblemCode.NO_PERMISSION
    assert world.ids("logs") == ["l2"]
    assert step(outcome, "logs").state is State.CONFIRMED_DELETED
    if verb == "find":
        assert step(outcome, "memories").state is State.ACCEPTED
        assert world.calls("memories", "remove") == 0


@pytest.mark.parametrize("verb", ["find", "remove", "residue", "sanitize"])
def test_an_error_that_no_adapter_may_raise_says_nothing_of_the_record(
    world: World, verb: str
) -> None:
    world.faults("logs", unknown=[verb])
    outcome = world.request()
    document = json.dumps(report_document(outcome))
    assert problem(outcome, "logs") is ProblemCode.UNREACHABLE
    assert "l1" not in document
    assert LESSON not in document


def test_a_store_that_lies_about_removal_is_caught(world: World) -> None:
    world.faults("memories", lies=True)
    outcome = world.request()
    assert step(outcome, "memories").state is State.ACCEPTED
    assert problem(outcome, "memories") is ProblemCode.STILL_READABLE
    assert step(outcome, "memories").tally.removed == 0


def test_what_is_left_alone_keeps_its_reason(world: World) -> None:
    world.faults("memories", leaves="held-open")
    outcome = world.request()
    assert (step(outcome, "memories").state, problem(outcome, "memories")) == (
        State.ACCEPTED,
        ProblemCode.HELD_OPEN,
    )
    assert world.calls("memories", "sanitize") == 0


def test_a_record_that_arrives_meanwhile_is_removed_too_and_reported_apart(world: World) -> None:
    world.faults("logs", arrives=2)
    outcome = world.request()
    assert step(outcome, "logs").tally.late == 2
    assert step(outcome, "logs").tally.removed == 3
    assert outcome.settled
    assert world.ids("logs") == ["l2"]


def test_records_that_never_stop_arriving_end_the_run_all_the_same(world: World) -> None:
    world.faults("logs", arrives=1, arrives_always=True)
    outcome = world.request()
    assert step(outcome, "logs").state is State.ACCEPTED
    assert world.calls("logs", "remove") <= 4


def test_late_records_stay_within_the_limit(world: World) -> None:
    world.safety = {"max_records": 4}
    world.faults("logs", arrives=3)
    outcome = world.request()
    assert problem(outcome, "logs") is ProblemCode.LIMIT
    assert len(world.ids("logs")) == 4


@pytest.mark.parametrize("resurrects", ["once", "always"])
def test_a_store_that_brings_records_back_is_caught(world: World, resurrects: str) -> None:
    world.faults("memories", resurrects=resurrects)
    outcome = world.request()
    left = "m1" in world.ids("memories")
    assert (step(outcome, "memories").state is State.ACCEPTED) == left


def test_undated_copies_keep_a_step_from_being_confirmed(world: World) -> None:
    world.store("logs").back_up(None)
    outcome = world.request()
    assert step(outcome, "logs").state is State.REMOVED_FROM_READS
    assert problem(outcome, "logs") is ProblemCode.NO_END_DATE
    assert outcome.state is State.REMOVED_FROM_READS
    assert not outcome.settled


def test_dated_copies_give_the_date_of_the_last(world: World) -> None:
    dates = [NOW + timedelta(days=days) for days in (3, 9, 6)]
    for date in dates:
        world.store("logs").back_up(date)
    outcome = world.request()
    assert step(outcome, "logs").state is State.BACKUP_RETAINED
    assert outcome.until == max(dates)
    assert outcome.settled
    world.now = NOW + timedelta(days=10)
    world.store("logs").expire(world.now)
    later = world.engine().verify(outcome.request.id)
    assert later.state is State.CONFIRMED_DELETED


def test_a_control_that_fails_is_no_evidence(world: World) -> None:
    world.faults("memories", control_fails=True)
    outcome = world.request()
    assert step(outcome, "memories").state is State.REMOVED_FROM_READS
    assert problem(outcome, "memories") is ProblemCode.CONTROL_FAILED


@pytest.mark.parametrize(
    ("verb", "state"), [("find", State.ACCEPTED), ("residue", State.REMOVED_FROM_READS)]
)
def test_what_was_not_looked_at_is_said(world: World, verb: str, state: State) -> None:
    world.faults("memories", not_checked=[verb])
    outcome = world.request()
    assert step(outcome, "memories").state is state
    assert problem(outcome, "memories") is ProblemCode.NOT_CHECKED


def test_without_the_clean_up_nothing_is_confirmed(world: World) -> None:
    world.faults("memories", permanent={"sanitize": "busy"})
    outcome = world.request()
    assert step(outcome, "memories").state is State.REMOVED_FROM_READS
    assert "wipe staging" in (world.folder / "memories" / "store.json").read_text()


def test_report_only_touches_nothing(world: World) -> None:
    world.sites["memories"]["action"] = "report"
    outcome = world.request()
    assert problem(outcome, "memories") is ProblemCode.REPORT_ONLY
    assert step(outcome, "memories").state is State.ACCEPTED
    assert "m1" in world.ids("memories")
    assert world.calls("memories", "remove") == world.calls("memories", "sanitize") == 0


def test_blanking_keeps_the_record(world: World) -> None:
    world.sites["memories"]["action"] = "blank"
    outcome = world.request()
    assert step(outcome, "memories").state is State.CONFIRMED_DELETED
    record = next(r for r in world.store("memories").records() if r["id"] == "m1")
    assert record["source"] == "l1"
    assert "wipe" not in json.dumps(record)


def test_nothing_found_is_not_a_deletion(world: World) -> None:
    outcome = world.request(Wanted(TargetKind.PHRASE, "a phrase that stands nowhere at all"))
    assert states(outcome) == [State.ACCEPTED] * 3
    assert {problem(outcome, site) for site in world.sites} == {ProblemCode.NOTHING_FOUND}
    assert all(world.calls(site, "remove") == 0 for site in world.sites)


def test_sources_wait_for_a_decision(world: World) -> None:
    outcome = world.request(Wanted(TargetKind.ID, "m1", "memories"))
    assert problem(outcome, "logs") is ProblemCode.SOURCE_KEPT
    assert "l1" in world.ids("logs")
    kept = world.engine().resume(outcome.request.id, Decisions(sources=False))
    assert problem(kept, "logs") is ProblemCode.KEPT_BY_CHOICE
    assert kept.settled
    assert kept.state is State.ACCEPTED
    taken = world.engine().resume(outcome.request.id, Decisions(sources=True))
    assert states(taken) == [State.CONFIRMED_DELETED] * 3
    assert "l1" not in world.ids("logs")


def test_a_decision_does_not_pass_the_limits(world: World) -> None:
    world.safety = {"max_records": 2}
    world.plant("logs", {"id": "l3", "text": "said"}, {"id": "l4", "text": "said too"})
    world.store("memories").make()
    world.plant("memories", {"id": "m1", "text": "wipe it", "source": ["l1", "l3", "l4"]})
    outcome = world.request(Wanted(TargetKind.ID, "m1", "memories"))
    refused = world.engine().resume(outcome.request.id, Decisions(sources=True))
    assert refused.refusal is not None
    assert "l1" in world.ids("logs")
    assert world.engine().report(outcome.request.id).refusal is None
    done = world.engine().resume(outcome.request.id, Decisions(sources=True), expect=3)
    assert done.settled


@pytest.mark.parametrize(
    ("safety", "more"),
    [({"max_records": 2}, {}), ({}, {"expect": 2}), ({"min_phrase_width": 99}, {})],
)
def test_a_refusal_changes_nothing(
    world: World, safety: dict[str, int], more: dict[str, Any]
) -> None:
    world.safety = safety
    before = snapshot(world.folder)
    outcome = world.request(**more)
    assert outcome.refusal is not None
    assert "logs 1, memories 1, vectors 1" in outcome.refusal
    after = snapshot(world.folder)
    assert {name: value for name, value in after.items() if "lock" not in name} == before
    assert world.request(expect=3).settled


def test_a_site_that_came_later_and_one_that_left_are_told(world: World) -> None:
    memories = world.sites.pop("memories")
    del world.sites["vectors"]["derived_from"]
    first = world.request()
    world.sites["memories"] = memories
    world.plant("memories", {"id": "m8", "text": LESSON})
    again = world.request()
    assert again.request.id == first.request.id
    assert step(again, "memories").state is State.CONFIRMED_DELETED
    assert "m8" not in world.ids("memories")
    del world.sites["memories"]
    left = world.engine().verify(first.request.id)
    assert problem(left, "memories") is ProblemCode.NOT_CHECKED
    assert not left.settled


def test_an_empty_site_is_doubted_unless_the_request_emptied_it(world: World) -> None:
    world.sites["vectors"] = {"adapter": "jsonl", "path": "nothing"}
    (world.folder / "nothing").mkdir()
    registry = {"jsonl": "purge_adapters.jsonl:JsonlAdapter"}
    outcome = world.request(registry=registry)
    assert step(outcome, "vectors").state is State.ACCEPTED
    assert "path" in (step(outcome, "vectors").problem or Problem(ProblemCode.LIMIT, "")).sentence


def test_an_empty_site_is_not_doubted_where_that_is_usual(world: World) -> None:
    server = Server(world.folder, password=None).start()
    try:
        world.sites["cache"] = {"adapter": "redis", "url": server.url, "keys": "answer:*"}
        world.sites["drafts"] = {"adapter": "jsonl", "path": "drafts"}
        (world.folder / "drafts").mkdir()
        registry = {
            "jsonl": "purge_adapters.jsonl:JsonlAdapter",
            "redis": "purge_adapters.redis:RedisAdapter",
        }
        doubted = world.request(registry=registry)
        for name in ("cache", "drafts"):
            assert step(doubted, name).state is State.ACCEPTED
            world.sites[name]["may_be_empty"] = True
        trusted = world.engine(registry).verify(doubted.request.id)
        for name in ("cache", "drafts"):
            assert step(trusted, name).state is State.CONFIRMED_DELETED
            assert problem(trusted, name) is None
        (world.folder / "drafts").rmdir()
        missing = world.engine(registry).verify(doubted.request.id)
        assert problem(missing, "drafts") is not None, "a folder that is not there is no empty one"
    finally:
        server.stop()


def test_retention_counts_from_when_reads_last_became_clean(world: World) -> None:
    world.sites["vectors"]["provider_retention"] = {"period": "30d", "source": "their page"}
    world.faults("vectors", residue=[{"why": "cannot be seen", "problem": "bytes-not-visible"}])
    outcome = world.request()
    world.now = NOW + timedelta(days=25)
    world.plant("vectors", {"id": "v1", "text": "", "memory": "m1", "vector": [0.25, 0.5, 0.125]})
    again = world.engine().resume(outcome.request.id)
    assert step(again, "vectors").until == world.now + timedelta(days=30)


def test_a_look_that_failed_counts_nothing_as_removed(world: World) -> None:
    world.faults("memories", leaves="held-open")
    outcome = world.request()
    world.faults("memories", permanent={"find": "unreachable"})
    later = world.engine().verify(outcome.request.id)
    assert step(later, "memories").tally.removed == 0


def test_a_decision_to_keep_settles_nothing_else(world: World) -> None:
    world.faults("logs", not_checked=["residue"])
    outcome = world.request(
        Wanted(TargetKind.ID, "m1", "memories"), decisions=Decisions(sources=False)
    )
    assert problem(outcome, "logs") is ProblemCode.NOT_CHECKED
    assert not outcome.settled


def test_places_named_after_what_is_forgotten_are_veiled(world: World) -> None:
    world.faults("logs", residue=[{"why": f"a note called '{LESSON.upper()}' keeps it"}])
    outcome = world.request()
    assert LESSON not in json.dumps(report_document(outcome)).casefold()
    for path in (world.folder / ".purge").rglob("*"):
        assert path.is_dir() or LESSON.upper().encode() not in path.read_bytes()


def test_a_bare_id_of_two_unrelated_sites_is_refused(world: World) -> None:
    world.sites["diary"] = {"adapter": "faulty", "path": "diary", "journal": "diary.journal"}
    world.store("diary").make()
    world.plant("diary", {"id": "m1", "text": "another thing"})
    outcome = world.request(Wanted(TargetKind.ID, "m1"))
    assert outcome.refusal is not None
    assert "--id diary:ID" in outcome.refusal
    assert "m1" in world.ids("memories")


def test_a_scope_is_obeyed(world: World) -> None:
    world.plant(
        "logs",
        {"id": "l3", "text": LESSON, "project": "atlas"},
        {"id": "l4", "text": LESSON, "project": "borealis"},
    )
    outcome = world.request(scope={"project": "atlas"})
    assert world.ids("logs") == ["l1", "l2", "l4"]
    assert problem(outcome, "logs") is ProblemCode.SCOPE_UNKNOWN
    assert step(outcome, "logs").tally.scope_unknown == 1


def test_a_derived_record_without_lineage_cannot_be_ruled_out(world: World) -> None:
    world.plant("memories", {"id": "m7", "text": "made of nobody knows what"})
    outcome = world.request()
    assert step(outcome, "memories").completeness == "cannot-be-ruled-out"
    assert step(outcome, "logs").completeness == "proven"


def test_a_provider_that_declares_its_retention(world: World) -> None:
    world.sites["vectors"]["provider_retention"] = {"period": "30d", "source": "their page"}
    world.faults("vectors", residue=[{"why": "cannot be seen", "problem": "bytes-not-visible"}])
    outcome = world.request()
    found = step(outcome, "vectors")
    assert (found.state, found.until) == (State.BACKUP_RETAINED, NOW + timedelta(days=30))
    assert found.evidence is not None
    assert found.evidence.kind == "declared"
    world.now = NOW + timedelta(days=31)
    later = world.engine().verify(outcome.request.id)
    assert step(later, "vectors").state is State.CONFIRMED_DELETED


def test_a_failed_look_keeps_what_was_proved_and_says_so(world: World) -> None:
    first = world.request()
    at = step(first, "logs").evidence
    world.faults("logs", permanent={"find": "unreachable"})
    world.now = NOW + timedelta(days=1)
    later = world.engine().verify(first.request.id)
    assert step(later, "logs").state is State.CONFIRMED_DELETED
    assert problem(later, "logs") is ProblemCode.UNREACHABLE
    assert not later.settled
    evidence = step(later, "logs").evidence
    assert at is not None
    assert evidence is not None
    assert evidence.at == at.at


def test_a_second_run_stops_at_once(world: World) -> None:
    engine = world.engine()
    with run_lock(engine.manifest.ledger, clock=lambda: NOW), pytest.raises(Locked):
        world.request()
    assert "l1" in world.ids("logs")


def test_a_withdrawn_request_is_not_acted_on(world: World) -> None:
    outcome = world.request(Wanted(TargetKind.ID, "m1", "memories"))
    assert world.engine().withdraw(outcome.request.id).withdrawn is not None
    with pytest.raises(UsageFault, match="withdrawn"):
        world.engine().resume(outcome.request.id)
    again = world.request(Wanted(TargetKind.ID, "m1", "memories"))
    assert again.request.id != outcome.request.id


def test_the_report_from_the_ledger_is_the_report_of_the_run(world: World) -> None:
    world.store("logs").back_up(NOW + timedelta(days=3))
    outcome = world.request(reason="wrong lesson")
    recorded = report_document(world.engine().report(outcome.request.id))
    assert recorded == report_document(outcome)


def test_nothing_of_the_request_stands_in_the_ledger(world: World) -> None:
    world.plant("logs", {"id": "l-canary-8731", "text": LESSON, "note": "a-canary-beside-it"})
    outcome = world.request(asked_by="dana@example.org")
    files = [path for path in (world.folder / ".purge").rglob("*") if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes()
        for canary in (LESSON, "l-canary-8731", "a-canary-beside-it", "wipe staging"):
            assert canary.encode() not in data, path.name
    assert "canary" not in json.dumps(report_document(outcome))
    assert "canary" not in repr(outcome)


@pytest.mark.parametrize("reason", [LESSON, f"because {LESSON.upper()} is wrong"])
def test_a_reason_may_not_hold_what_is_to_be_forgotten(world: World, reason: str) -> None:
    with pytest.raises(Refused, match="reason"):
        world.request(reason=reason)
    assert "l1" in world.ids("logs")


@pytest.mark.parametrize(
    "wanted",
    [
        lambda: Wanted(TargetKind.PHRASE, "  "),
        lambda: Wanted(TargetKind.PHRASE, "\u200b"),
        lambda: Wanted(TargetKind.ID, "", "logs"),
        lambda: Wanted(TargetKind.LINEAGE, "l1", "logs"),
    ],
)
def test_an_empty_wish_is_stopped(world: World, wanted: Callable[[], Wanted]) -> None:
    with pytest.raises(UsageFault):
        world.request(wanted())
    assert world.calls("logs", "find") == 0


def test_sites_and_scopes_that_do_not_exist_are_named(world: World) -> None:
    with pytest.raises(UsageFault, match="no site 'memory'"):
        world.request(Wanted(TargetKind.ID, "m1", "memory"))
    with pytest.raises(UsageFault, match="scope 'team'"):
        world.request(scope={"team": "x"})
    with pytest.raises(UsageFault, match="subject"):
        world.request(Wanted(TargetKind.SUBJECT, "user-1"))


def test_an_empty_selection_never_reaches_an_adapter(world: World) -> None:
    sites = world.engine().sites(writable=True)
    for act in (sites.remove, sites.sanitize):
        empty: Sequence[Any] = []
        with pytest.raises(EmptySelector):
            act("logs", empty)
    assert world.calls("logs", "remove") == 0
