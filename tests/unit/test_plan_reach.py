"""What a request reaches, on small invented memories held in dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from purge.adapter import Examined, Match, NotChecked, Readability
from purge.engine.survey import Survey
from purge.plan.limits import Limits, ambiguity, refusal
from purge.plan.outcome import Role
from purge.plan.reach import Look, Owed, explore
from purge.plan.request import Decisions, Request, Wanted
from purge.targets import Record, TargetKind, Targets, Text, Trace

WORDS = "the staging database may be wiped"
PHRASE = Wanted(TargetKind.PHRASE, WORDS)


@dataclass
class Memory:
    """Sites as dictionaries: site to records; and how the sites derive from each other."""

    edges: Mapping[str, Mapping[str, str | None]]
    records: dict[str, list[Record]]
    caches: frozenset[str] = frozenset()
    blanked: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    asked: list[tuple[str, int]] = field(default_factory=list)

    def sources_first(self) -> Sequence[str]:
        done: dict[str, None] = {}

        def visit(site: str) -> None:
            for source in self.edges.get(site, {}):
                visit(source)
            done[site] = None

        for site in self.records:
            visit(site)
        return tuple(done)

    def ancestors(self, site: str) -> frozenset[str]:
        direct = self.edges.get(site, {})
        return frozenset(direct) | frozenset(a for s in direct for a in self.ancestors(s))

    def descendants(self, site: str) -> frozenset[str]:
        return frozenset(other for other in self.records if site in self.ancestors(other))

    def recorded_sources(self, site: str) -> Mapping[str, str | None]:
        return self.edges.get(site, {})

    def deletes_with_source(self, site: str) -> bool:
        return site in self.caches

    def find(self, site: str, targets: Targets) -> Look:
        self.asked.append((site, len(targets.all)))
        gaps = (NotChecked(site, "cut off"),) if site in self.unseen else ()
        return Look(tuple(self._matches(site, targets)), gaps, Examined(records=1))

    def _matches(self, site: str, targets: Targets) -> Iterator[Match]:
        for record in self.records[site]:
            hits = targets.match(site, record)
            if hits:
                yield Match(
                    record.id,
                    hits,
                    site,
                    {},
                    Trace(record.id, tuple(text.value for text in record.texts)),
                    {source: tuple(ids) for source, ids in record.parents.items()},
                    Readability.BLANKED if record.id in self.blanked else Readability.READABLE,
                    part="" if record.texts[0].field == "t" else record.texts[0].field,
                )


def make(id: str, text: str, scope: str | None = None, **parents: str | list[str]) -> Record:
    links = {site: [ids] if isinstance(ids, str) else ids for site, ids in parents.items()}
    said = {} if scope is None else {"project": scope}
    return Record(id, [Text("t", text)], scope=said, parents=links)


def lineage(**records: list[Record]) -> Memory:
    """Logs, memories made from them, and vectors and summaries made from memories."""
    edges: dict[str, Mapping[str, str | None]] = {
        "memories": {"logs": "source"},
        "vectors": {"memories": "memory"},
        "summaries": {"memories": "from"},
    }
    sites = ("logs", "memories", "vectors", "summaries", "diary")
    return Memory(edges, {site: records.get(site, []) for site in sites})


def request(*wanted: Wanted, **more: object) -> Request:
    at = datetime(2026, 11, 30, tzinfo=UTC)
    return Request("R", at, wanted or (PHRASE,), **more)  # type: ignore[arg-type]  # shorthand


def survey(memory: Memory, *requests: Request, owed: dict[int, list[Owed]] | None = None) -> Survey:
    asked = requests or (request(),)
    reach = explore(asked, memory, memory.find, min_copy_width=12, owed=owed)
    return Survey.of(reach, range(len(asked)))


def gone(found: Survey, number: int = 0) -> set[tuple[str, str]]:
    return {key.name for key in found.decided[number].remove}


def role(found: Survey, site: str, id: str, number: int = 0) -> Role | None:
    return next(
        (r for key, r in found.decided[number].roles.items() if key.name == (site, id)), None
    )


def by_id(site: str, id: str) -> Wanted:
    return Wanted(TargetKind.ID, id, site)


def test_what_derives_from_a_named_record_goes_with_it() -> None:
    memory = lineage(
        logs=[make("l1", WORDS)],
        memories=[make("m1", "reworded", logs="l1"), make("m2", "other", logs="l2")],
        vectors=[make("v1", "reworded", memories="m1"), make("v2", "other", memories="m2")],
        summaries=[make("s1", "in other words", memories=["m1"])],
    )
    assert gone(survey(memory)) == {
        ("logs", "l1"),
        ("memories", "m1"),
        ("vectors", "v1"),
        ("summaries", "s1"),
    }


def test_a_record_with_another_living_source_is_flagged() -> None:
    memory = lineage(
        memories=[make("m1", WORDS), make("m2", "true")],
        summaries=[make("s1", "both", memories=["m1", "m2"])],
    )
    found = survey(memory)
    assert role(found, "summaries", "s1") is Role.FLAGGED
    assert gone(found) == {("memories", "m1")}
    assert found.tally(0, "summaries").flagged == 1


def test_a_source_that_no_longer_exists_does_not_keep_a_record() -> None:
    memory = lineage(
        memories=[make("m1", WORDS)], summaries=[make("s1", "both", memories=["m1", "m-gone"])]
    )
    assert ("summaries", "s1") in gone(survey(memory))


def test_a_blanked_source_does_not_keep_a_record() -> None:
    memory = lineage(
        memories=[make("m1", WORDS), make("m2", "")],
        summaries=[make("s1", "both", memories=["m1", "m2"])],
    )
    memory.blanked = frozenset({"m2"})
    assert ("summaries", "s1") in gone(survey(memory))


def test_a_cache_goes_with_any_of_its_sources() -> None:
    memory = lineage(
        memories=[make("m1", WORDS), make("m2", "true")],
        summaries=[make("s1", "both", memories=["m1", "m2"])],
    )
    memory.caches = frozenset({"summaries"})
    assert ("summaries", "s1") in gone(survey(memory))


def test_two_requests_of_one_run_may_take_all_sources_of_a_record() -> None:
    memory = lineage(
        memories=[make("m1", WORDS), make("m2", "true")],
        summaries=[make("s1", "both", memories=["m1", "m2"])],
    )
    both = survey(memory, request(by_id("memories", "m1")), request(by_id("memories", "m2")))
    assert ("summaries", "s1") in gone(both, 0) | gone(both, 1)


def test_nothing_derived_from_a_flagged_record_goes() -> None:
    memory = Memory(
        {"b": {"a": "x"}, "c": {"b": "x"}},
        {
            "a": [make("a1", WORDS), make("a2", "true")],
            "b": [make("b1", "both", a=["a1", "a2"])],
            "c": [make("c1", "more", b="b1")],
        },
    )
    assert gone(survey(memory)) == {("a", "a1")}


def test_the_source_of_a_named_record_is_shown_and_waits() -> None:
    memory = lineage(
        logs=[make("l1", "said otherwise"), make("l2", "unrelated")],
        memories=[make("m1", WORDS, logs="l1"), make("m9", "sibling", logs="l1")],
    )
    found = survey(memory)
    assert gone(found) == {("memories", "m1")}
    assert role(found, "logs", "l1") is Role.SOURCE
    assert found.tally(0, "logs").sources == 1


def test_sources_removed_by_decision_start_no_closure() -> None:
    memory = lineage(
        logs=[make("l1", "said otherwise")],
        memories=[make("m1", WORDS, logs="l1"), make("m9", "sibling", logs="l1")],
    )
    found = survey(memory, request(decisions=Decisions(sources=True)))
    assert gone(found) == {("memories", "m1"), ("logs", "l1")}


def test_sources_kept_by_decision_are_counted_as_kept() -> None:
    memory = lineage(logs=[make("l1", "said")], memories=[make("m1", WORDS, logs="l1")])
    found = survey(memory, request(decisions=Decisions(sources=False)))
    assert (found.tally(0, "logs").sources, found.tally(0, "logs").kept) == (0, 1)


def test_the_source_of_a_source_is_shown_too() -> None:
    memory = lineage(
        logs=[make("l1", "said")],
        memories=[make("m1", "reworded", logs="l1")],
        vectors=[make("v1", WORDS, memories="m1")],
    )
    found = survey(memory)
    assert role(found, "memories", "m1") is Role.SOURCE
    assert role(found, "logs", "l1") is Role.SOURCE


LONG = "the whole text of a memory, wide enough to be looked for"


def test_the_text_of_a_record_named_by_id_is_looked_for_where_there_is_no_lineage() -> None:
    memory = lineage(
        memories=[make("m1", LONG), make("m2", "other")],
        summaries=[make("s1", f"it says: {LONG}"), make("s2", f"from: {LONG}", memories="m2")],
        diary=[make("d1", f"I read '{LONG}'"), make("d2", "nothing")],
    )
    found = survey(memory, request(by_id("memories", "m1")))
    assert gone(found) == {("memories", "m1")}
    assert role(found, "diary", "d1") is Role.COPY
    assert role(found, "summaries", "s1") is Role.COPY
    assert role(found, "summaries", "s2") is None
    assert role(found, "memories", "m2") is None
    decided = survey(memory, request(by_id("memories", "m1"), decisions=Decisions(copies=True)))
    assert {("diary", "d1"), ("summaries", "s1")} < gone(decided)


def test_other_records_with_the_same_text_are_copies_unless_they_say_what_they_derive_from() -> (
    None
):
    memory = lineage(
        logs=[make("l1", "said otherwise"), make("l2", LONG), make("l3", f"again: {LONG}")],
        memories=[
            make("m1", LONG, logs="l1"),
            make("m2", LONG, logs="l9"),
            make("m3", LONG),
        ],
    )
    found = survey(memory, request(by_id("memories", "m1")))
    assert role(found, "logs", "l1") is Role.SOURCE
    assert {key.id for key in found.decided[0].roles if key.site == "logs"} == {"l1", "l2", "l3"}
    assert role(found, "logs", "l3") is Role.COPY
    assert role(found, "memories", "m2") is None
    assert role(found, "memories", "m3") is None


def test_blanked_records_that_no_plan_knows_are_not_counted() -> None:
    memory = lineage(memories=[make("m1", WORDS)], summaries=[make("s1", "", memories="m1")])
    memory.blanked = frozenset({"s1"})
    found = survey(memory)
    assert gone(found) == {("memories", "m1")}
    assert found.tally(0, "summaries").found == 0


def test_a_narrow_text_is_not_looked_for_as_a_copy() -> None:
    memory = lineage(memories=[make("m1", "ok then")], diary=[make("d1", "ok then")])
    assert role(survey(memory, request(by_id("memories", "m1"))), "diary", "d1") is None


def test_copies_start_no_closure() -> None:
    memory = Memory(
        {"child": {"diary": "x"}},
        {
            "memories": [make("m1", LONG)],
            "diary": [make("d1", LONG)],
            "child": [make("c1", "made from the diary", diary="d1")],
        },
    )
    asked = request(by_id("memories", "m1"), decisions=Decisions(copies=True))
    assert gone(survey(memory, asked)) == {("memories", "m1"), ("diary", "d1")}


def test_a_scope_limits_a_request_and_lineage_crosses_it() -> None:
    memory = lineage(
        logs=[
            make("l1", WORDS, scope="atlas"),
            make("l2", WORDS, scope="borealis"),
            make("l3", WORDS),
        ],
        memories=[make("m1", "reworded", logs="l1")],
    )
    found = survey(memory, request(scope={"project": "atlas"}))
    assert gone(found) == {("logs", "l1"), ("memories", "m1")}
    assert found.tally(0, "logs").scope_unknown == 1


def test_a_bare_id_at_two_sites_without_lineage_is_ambiguous() -> None:
    memory = lineage(memories=[make("x", "a")], diary=[make("x", "b")])
    asked = request(Wanted(TargetKind.ID, "x"))
    sentence = ambiguity(survey(memory, asked).reach, 0)
    assert sentence is not None
    assert "diary and memories" in sentence


def test_a_bare_id_at_two_sites_with_lineage_is_one_memory() -> None:
    memory = lineage(memories=[make("x", "a")], vectors=[make("x", "a", memories="x")])
    found = survey(memory, request(Wanted(TargetKind.ID, "x")))
    assert ambiguity(found.reach, 0) is None
    assert gone(found) == {("memories", "x"), ("vectors", "x")}


def test_an_earlier_plan_is_followed_even_where_its_records_are_gone() -> None:
    memory = lineage(
        logs=[make("l1", "said")],
        vectors=[make("v1", "late", memories="m1")],
        diary=[make("d1", LONG)],
    )
    owed = Owed("memories", Trace("m1", (LONG,)), Role.NAMED, "id", {"logs": ("l1",)})
    found = survey(memory, request(by_id("memories", "m1")), owed={0: [owed]})
    assert gone(found) == {("memories", "m1"), ("vectors", "v1")}
    assert role(found, "logs", "l1") is Role.SOURCE
    assert role(found, "diary", "d1") is Role.COPY
    tally = found.tally(0, "memories")
    assert (tally.found, tally.to_remove, tally.removed, tally.left) == (1, 1, 1, 0)
    assert found.to_remove("memories") == []


def test_an_owed_record_that_is_still_there_is_still_to_be_removed() -> None:
    memory = lineage(memories=[make("m1", "in other words, still the same fact")])
    owed = Owed("memories", Trace("m1", ("the same fact",)), Role.DERIVED, "lineage")
    found = survey(memory, owed={0: [owed]})
    assert [match.id for _, match in found.to_remove("memories")] == ["m1"]


def test_an_id_that_is_used_again_for_something_else_is_left_alone() -> None:
    memory = lineage(
        memories=[make("m1", "an innocent new memory")],
        vectors=[make("v1", "made from the new one", memories="m1")],
    )
    owed = Owed("memories", Trace("m1", (WORDS,)), Role.NAMED, "exact")
    found = survey(memory, owed={0: [owed]})
    assert found.to_remove("memories") == []
    assert found.to_remove("vectors") == []
    tally = found.tally(0, "memories")
    assert (tally.to_remove, tally.removed, tally.left) == (1, 1, 0)


def test_an_id_that_the_request_itself_names_goes_again() -> None:
    memory = lineage(memories=[make("m1", "something else")])
    owed = Owed("memories", Trace("m1", (WORDS,)), Role.NAMED, "id")
    found = survey(memory, request(by_id("memories", "m1")), owed={0: [owed]})
    assert [match.id for _, match in found.to_remove("memories")] == ["m1"]


def test_a_source_that_nobody_could_look_at_may_be_alive() -> None:
    memory = lineage(
        memories=[make("m1", WORDS)], summaries=[make("s1", "both", memories="m1", diary="d1")]
    )
    memory.edges = {**memory.edges, "summaries": {"memories": "from", "diary": "too"}}
    assert ("summaries", "s1") in gone(survey(memory))
    memory.unseen = frozenset({"diary"})
    assert role(survey(memory), "summaries", "s1") is Role.FLAGGED


def test_a_copy_whose_lineage_leads_nowhere_is_shown() -> None:
    memory = lineage(memories=[make("m1", LONG)], summaries=[make("s1", LONG, memories="m-gone")])
    found = survey(memory, request(by_id("memories", "m1")))
    assert role(found, "summaries", "s1") is Role.COPY


def test_one_id_in_two_parts_of_a_site_is_two_records() -> None:
    memory = lineage(
        memories=[
            Record("m1", [Text("one", WORDS)]),
            Record("m1", [Text("two", WORDS)]),
            Record("m2", [Text("one", WORDS)]),
            Record("m2", [Text("two", "other words")]),
        ],
        summaries=[make("s1", "x", memories="m1"), make("s2", "x", memories="m2")],
    )
    found = survey(memory)
    assert {(key.id, key.part) for key in found.decided[0].remove if key.site == "memories"} == {
        ("m1", "one"),
        ("m1", "two"),
        ("m2", "one"),
    }
    assert found.tally(0, "memories").found == 3
    assert {key.id for key in found.decided[0].remove if key.site == "summaries"} == {"s1"}
    assert role(found, "summaries", "s2") is Role.FLAGGED


def test_a_cycle_of_records_ends() -> None:
    memory = Memory(
        {"b": {"a": "x"}}, {"a": [make("1", WORDS)], "b": [make("1", WORDS, a="1", b="1")]}
    )
    assert gone(survey(memory)) == {("a", "1"), ("b", "1")}


def test_each_site_is_asked_for_all_requests_at_once() -> None:
    memory = lineage(logs=[make("l1", WORDS)])
    survey(memory, *(request() for _ in range(5)))
    first = [count for site, count in memory.asked if site == "logs"]
    assert first == [5]


def test_nothing_found_reaches_nothing() -> None:
    found = survey(lineage())
    assert not found.found_anywhere(0)
    assert gone(found) == set()


@pytest.mark.parametrize(
    ("phrase", "expect", "count", "refused"),
    [
        (WORDS, None, 25, False),
        (WORDS, None, 26, True),
        (WORDS, 26, 26, False),
        (WORDS, 25, 26, True),
        (WORDS, 27, 26, True),
        ("crab pot", None, 1, True),
        ("crab pot", 1, 1, False),
        ("crab pot", 2, 1, True),
        ("予備の鍵は青", None, 1, False),
        ("予備の鍵は", None, 1, True),
        (WORDS, 0, 0, False),
        ("x", None, 0, True),
    ],
)
def test_limits(phrase: str, expect: int | None, count: int, refused: bool) -> None:
    asked = request(Wanted(TargetKind.PHRASE, phrase), expect=expect)
    sentence = refusal(asked, {"logs": count, "diary": 0}, Limits())
    assert (sentence is not None) is refused
    if sentence is not None:
        assert phrase == "x" or phrase not in sentence
        assert str(count) in sentence
