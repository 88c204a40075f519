# ruff: noqa: D102  (the name of a test says what it shows)
"""The contract suite: what is gone after a run, and what is as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from purge.state import ProblemCode
from purge.targets import NeedleKind, TargetKind, Targets
from purge.testing.case import Case, Purged, ids, phrase, target
from purge.testing.harness import SCOPE, SITE, SOURCE, Planted
from purge.testing.samples import (
    CANARY,
    CANARY_TOPIC,
    CANARY_WORDS,
    CHILD_OF_ONE,
    CROWD_OWNER,
    FAMILY,
    FAMILY_OF_MANY,
    HARD_IDS,
    NEIGHBOURS,
    NORTH,
    PHRASE,
    SHORT,
    SPEAKERS,
    SPOKEN,
    HardIds,
    crowd,
    fit,
    hard_records,
)
from purge.testing.snapshots import Snapshot, bytes_of, differences
from purge.testing.suite_base import (
    Maker,
    Suite,
    missing,
    names_of,
    needs,
    still_there,
    told,
    words_in,
)


@dataclass(frozen=True, slots=True)
class Story:
    """One run over one store, and the store at each moment of it."""

    case: Case
    neighbours: tuple[Planted, ...]
    read_before: Mapping[str, Planted]
    contents_before: Mapping[str, bytes]
    raw_before: Mapping[str, bytes]
    dry_run: list[str]
    """What a dry run changed."""
    purged: Purged
    read_after: Mapping[str, Planted]
    contents_after: Mapping[str, bytes]
    raw_after: Mapping[str, bytes]
    state_after: Snapshot
    again: Purged
    state_again: Snapshot


def tell(case: Case, targets: Targets, neighbours: tuple[Planted, ...]) -> Story:
    """Run once for show, once for real, and once more."""
    harness = case.harness
    read_before, contents_before = harness.read(), harness.contents()
    raw_before = harness.raw() or {}
    state_before = case.snapshot()
    found = case.find(targets)
    case.residue(targets, found.matches)
    dry_run = differences(state_before, case.now())
    purged = case.purge(targets)
    read_after, contents_after = harness.read(), harness.contents()
    raw_after = harness.raw() or {}
    state_after = case.snapshot()
    again = case.purge(targets, knowing=purged.found.matches)
    return Story(
        case=case,
        neighbours=fit(harness, neighbours),
        read_before=read_before,
        contents_before=contents_before,
        raw_before=raw_before,
        dry_run=dry_run,
        purged=purged,
        read_after=read_after,
        contents_after=contents_after,
        raw_after=raw_after,
        state_after=state_after,
        again=again,
        state_again=case.now(),
    )


class RemovingSuite(Suite):
    """Removing for good, where nothing goes wrong."""

    @pytest.fixture(scope="class")
    @classmethod
    def story(cls, make_shared: Maker) -> Story:
        """Two records removed from between their neighbours."""
        case = make_shared((*NEIGHBOURS[:4], CANARY, *NEIGHBOURS[4:], SHORT))
        named = ids(case.harness.id_of(CANARY), case.harness.id_of(SHORT))
        return tell(case, named, NEIGHBOURS)

    # --- the one run --------------------------------------------------------------------------

    def test_what_is_planted_is_read_back_as_it_was_planted(self, story: Story) -> None:
        planted = (*story.neighbours, *fit(story.case.harness, (CANARY, SHORT)))
        assert missing(planted, story.read_before) == []
        assert len(story.read_before) == len(planted)

    def test_a_dry_run_changes_no_byte_and_no_time(self, story: Story) -> None:
        assert story.dry_run == []

    def test_the_named_records_are_found_and_nothing_else(self, story: Story) -> None:
        assert sorted(story.purged.found.ids) == names_of(story.case, (CANARY, SHORT))
        assert story.purged.found.not_checked == ()

    def test_nothing_is_left_alone(self, story: Story) -> None:
        assert story.purged.left == ()
        assert story.purged.sanitized == ()

    def test_a_fresh_client_no_longer_returns_the_records(self, story: Story) -> None:
        assert CANARY.id not in story.read_after
        assert SHORT.id not in story.read_after

    def test_a_fresh_look_no_longer_finds_the_records(self, story: Story) -> None:
        assert story.purged.read_back.matches == ()
        assert story.purged.read_back.not_checked == ()

    def test_the_neighbours_are_what_they_were(self, story: Story) -> None:
        assert missing(story.neighbours, story.read_after) == []
        assert len(story.read_after) == len(story.neighbours)

    def test_the_bytes_of_the_neighbours_are_what_they_were(self, story: Story) -> None:
        kept = {record.id for record in story.neighbours}
        before = {name: data for name, data in story.raw_before.items() if name in kept}
        assert story.raw_after == before

    @needs("bytes")
    def test_the_look_at_the_bytes_saw_all_of_it_before(self, story: Story) -> None:
        harness, before = story.case.harness, story.contents_before
        expected = {
            NeedleKind.ID: [CANARY.id],
            NeedleKind.TEXT: list(CANARY_WORDS),
            NeedleKind.METADATA: [CANARY_TOPIC] if harness.has_metadata else [],
        }
        for kind in harness.visible - {NeedleKind.VECTOR}:
            assert sorted(words_in(before, expected[kind])) == sorted(expected[kind])

    @needs("bytes")
    def test_no_byte_of_the_id_is_left(self, story: Story) -> None:
        assert words_in(story.contents_after, [CANARY.id]) == {}

    @needs("bytes")
    def test_no_byte_of_the_text_is_left(self, story: Story) -> None:
        assert words_in(story.contents_after, CANARY_WORDS) == {}

    @needs("metadata", "bytes of metadata")
    def test_no_byte_of_the_metadata_is_left(self, story: Story) -> None:
        assert words_in(story.contents_after, [CANARY_TOPIC]) == {}

    @needs("vectors", "bytes of vectors")
    def test_no_byte_of_the_vector_is_left(self, story: Story) -> None:
        (planted,) = fit(story.case.harness, (CANARY,))
        forms = story.case.harness.vector_forms(planted.vector or ())
        assert any(form in data for form in forms for data in story.contents_before.values())
        assert not any(form in data for form in forms for data in story.contents_after.values())

    def test_nothing_is_left_among_the_temporary_files(self, story: Story, temporary: Path) -> None:
        assert still_there(temporary, (CANARY.id, *CANARY_WORDS, CANARY_TOPIC)) == {}

    @needs("bytes")
    def test_the_last_look_finds_no_copy_without_a_date(self, story: Story) -> None:
        assert story.purged.after.undated == ()
        assert story.purged.after.not_checked == ()

    @needs("no bytes")
    def test_the_last_look_says_that_it_cannot_see_the_bytes(self, story: Story) -> None:
        problems = {item.problem for item in story.purged.after.undated}
        assert problems == {ProblemCode.BYTES_NOT_VISIBLE}

    def test_every_look_for_copies_could_have_found_one(self, story: Story) -> None:
        for looked in (story.purged.control, story.purged.before_sanitize, story.purged.after):
            assert looked.examined
            assert looked.controls
            assert all(control.passed for control in looked.controls)

    def test_a_copy_that_goes_by_itself_has_a_date_with_a_time_zone(self, story: Story) -> None:
        for item in story.purged.after.residue:
            assert item.until is None or item.until.tzinfo is not None

    def test_nothing_that_was_said_shows_whom_or_what_it_was_about(self, story: Story) -> None:
        said = [*story.purged.everything(), *story.again.everything()]
        assert [secret for item in said for secret in told(item)] == []

    def test_a_second_run_finds_nothing_and_changes_nothing(self, story: Story) -> None:
        assert story.again.found.matches == ()
        assert differences(story.state_after, story.state_again) == []

    @needs("bytes")
    def test_a_copy_counts_only_against_what_it_holds(self, make: Maker) -> None:
        case = make((CANARY,))
        harness = case.harness
        if not harness.leave_copy():
            return
        late = Planted("mem-thornapple-7731", "Cordelia Thrupp paints the boathouse door green.")
        harness.plant(fit(harness, (late, NEIGHBOURS[0])))
        by_id = case.purge(ids(harness.id_of(CANARY), harness.id_of(late))).after
        words = [("zanderberry-55173", 0), ("paints the boathouse door", 1)]
        by_phrase = case.residue(
            Targets(target(TargetKind.PHRASE, said, key=key) for said, key in words)
        )
        for looked in (by_id, by_phrase):
            assert looked.residue
            expected = frozenset() if harness.untold else frozenset({0})
            assert {item.keys for item in looked.residue} == {expected}

    # --- exactly these ids --------------------------------------------------------------------

    @pytest.mark.parametrize("group", HARD_IDS, ids=lambda group: group.name)
    def test_only_the_records_with_these_ids_go(self, make: Maker, group: HardIds) -> None:
        planted = hard_records(group)
        case = make(planted)
        fitting = fit(case.harness, planted)
        by_id = {record.id: case.harness.id_of(record) for record in fitting}
        gone = [record_id for record_id in group.removed if record_id in by_id]
        if not gone:
            assert all(case.harness.cannot_hold(record_id) for record_id in group.removed)
            return
        named = ids(*(by_id[record_id] for record_id in gone))
        found = case.find(named)
        assert sorted(found.ids) == sorted(by_id[record_id] for record_id in gone)
        assert case.remove(found.matches) == ()
        assert case.find(named).matches == ()
        kept = [record for record in fitting if record.id not in gone]
        after = case.harness.read()
        assert missing(kept, after) == []
        assert len(after) == len(kept)

    # --- by what is said, by whom, and from what ----------------------------------------------

    def test_only_the_records_that_hold_the_phrase_go(self, make: Maker) -> None:
        case = make((*SPOKEN, *NEIGHBOURS))
        case.purge(phrase(PHRASE))
        kept = [record for record in SPOKEN if record.id not in SPEAKERS]
        after = case.harness.read()
        assert missing(fit(case.harness, (*kept, *NEIGHBOURS)), after) == []
        assert len(after) == len(kept) + len(fit(case.harness, NEIGHBOURS))

    @needs("scope")
    def test_only_the_records_of_the_scope_go(self, make: Maker) -> None:
        case = make(SPOKEN)
        purged = case.purge(phrase(PHRASE, **{SCOPE: NORTH}))
        kept = fit(case.harness, [record for record in SPOKEN if record.id != "says-north"])
        after = case.harness.read()
        assert missing(kept, after) == []
        assert len(after) == len(kept)
        # The words that stay in other scopes are no copies of what went.
        assert purged.after.undated == () or not case.harness.visible
        assert all(control.passed for control in purged.after.controls)

    @needs("subject")
    def test_only_the_records_of_the_subject_go(self, make: Maker) -> None:
        people = [
            Planted("about-6", "They like sardines.", subject="user-6"),
            Planted("about-6-too", "They dislike herring.", subject="user-6"),
            Planted("about-61", "They like sprats.", subject="user-61"),
            Planted("about-6-in-words", "This is what user-6 said of pilchards."),
        ]
        case = make(people)
        case.purge(Targets([target(TargetKind.SUBJECT, "user-6")]))
        after = case.harness.read()
        assert missing(fit(case.harness, people[2:]), after) == []
        assert len(after) == 2

    @needs("parents")
    def test_only_the_children_of_the_record_go(self, make: Maker) -> None:
        case = make((*FAMILY, *FAMILY_OF_MANY))
        case.purge(Targets([target(TargetKind.LINEAGE, CHILD_OF_ONE, site=SOURCE)]))
        gone = {"child-of-1", "child-of-2-and-1"}
        if not case.harness.many_parents:
            gone.discard("child-of-2-and-1")
        kept = [it for it in (*FAMILY, *FAMILY_OF_MANY) if it.id not in gone]
        after = case.harness.read()
        assert missing(fit(case.harness, kept), after) == []
        assert len(after) == len(kept)

    def test_all_records_may_go(self, make: Maker) -> None:
        case = make((CANARY, SHORT))
        purged = case.purge(ids(case.harness.id_of(CANARY), case.harness.id_of(SHORT)))
        assert case.harness.read() == {}
        assert purged.after.controls
        assert all(control.passed for control in purged.after.controls)
        assert words_in(case.harness.contents(), [CANARY.id, *CANARY_WORDS]) == {}
        case.harness.plant(fit(case.harness, NEIGHBOURS[:3]))
        assert len(case.harness.read()) == 3

    @needs("subject")
    def test_every_record_of_a_crowd_is_found_and_goes(self, make: Maker) -> None:
        people = tuple(crowd(make_crowd := 1500))
        case = make(people)
        named = Targets([target(TargetKind.SUBJECT, CROWD_OWNER)])
        found = case.find(named)
        assert len(found.ids) == len(set(found.ids)) == make_crowd // 2
        assert case.remove(found.matches) == ()
        assert case.find(named).matches == ()
        kept = [record for record in people if record.subject != CROWD_OWNER]
        after = case.harness.read()
        assert missing(fit(case.harness, kept), after) == []
        assert len(after) == len(kept)

    # --- nothing to do ------------------------------------------------------------------------

    def test_a_run_that_finds_nothing_changes_no_byte_and_no_time(self, make: Maker) -> None:
        case = make(NEIGHBOURS)
        before = case.snapshot()
        purged = case.purge(ids("mem-that-never-was"))
        assert purged.found.matches == ()
        assert differences(before, case.now()) == []

    def test_removing_what_is_no_longer_there_is_no_error(self, make: Maker) -> None:
        case = make((CANARY, *NEIGHBOURS))
        named = ids(case.harness.id_of(CANARY))
        found = case.find(named)
        assert case.remove(found.matches) == ()
        before = case.snapshot()
        assert case.remove(found.matches) == ()
        if case.harness.raw() is not None:
            assert bytes_of(case.now()) == bytes_of(before)
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []

    def test_sanitizing_twice_is_harmless(self, make: Maker) -> None:
        case = make((CANARY, *NEIGHBOURS))
        named = ids(case.harness.id_of(CANARY))
        found = case.find(named)
        case.remove(found.matches)
        looked = case.residue(named, found.matches)
        if looked.fixable:
            case.sanitize(looked.fixable)
            case.sanitize(looked.fixable)
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []
        assert case.residue(named, found.matches).fixable == ()

    # --- what changed meanwhile ---------------------------------------------------------------

    def test_a_record_that_changed_after_it_was_found_is_left_and_named(self, make: Maker) -> None:
        case = make((CANARY, SHORT, *NEIGHBOURS))
        name = case.harness.id_of(CANARY)
        found = case.find(ids(name, case.harness.id_of(SHORT)))
        (changed,) = fit(case.harness, [replace(CANARY, text="It is about something else now.")])
        case.harness.change(changed)
        left = case.remove(found.matches)
        assert [(item.match.id, item.problem) for item in left] == [
            (name, ProblemCode.CHANGED_UNDERNEATH)
        ]
        assert [secret for item in left for secret in told(item)] == []
        after = case.harness.read()
        assert missing((changed, *fit(case.harness, NEIGHBOURS)), after) == []
        assert SHORT.id not in after

    def test_what_was_added_after_the_look_stays(self, make: Maker) -> None:
        case = make((CANARY, *NEIGHBOURS[:4]))
        found = case.find(ids(case.harness.id_of(CANARY)))
        case.harness.plant(fit(case.harness, NEIGHBOURS[4:]))
        assert case.remove(found.matches) == ()
        after = case.harness.read()
        assert missing(fit(case.harness, NEIGHBOURS), after) == []
        assert CANARY.id not in after

    def test_one_match_of_two_may_be_removed_alone(self, make: Maker) -> None:
        case = make((CANARY, SHORT, *NEIGHBOURS))
        found = case.find(ids(case.harness.id_of(CANARY), case.harness.id_of(SHORT)))
        assert case.remove([found[case.harness.id_of(SHORT)]]) == ()
        after = case.harness.read()
        assert missing(fit(case.harness, (CANARY, *NEIGHBOURS)), after) == []
        assert SHORT.id not in after

    def test_a_copy_planted_again_is_found_again(self, make: Maker) -> None:
        case = make((CANARY, *NEIGHBOURS))
        named = ids(case.harness.id_of(CANARY), site=SITE)
        case.purge(named)
        case.harness.plant(fit(case.harness, [CANARY]))
        found = case.find(named)
        assert found.ids == (case.harness.id_of(CANARY),)
        assert case.remove(found.matches) == ()
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []
