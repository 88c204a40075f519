# ruff: noqa: D102  (the name of a test says what it shows)
"""The contract suite: what ``find``, ``residue`` and ``check`` see, say, and leave as it was."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from purge.adapter import Action, Match, Readability
from purge.errors import EmptySelector
from purge.matching import How
from purge.targets import NOTHING, TargetKind, Targets
from purge.testing.case import Case, ids, phrase, target
from purge.testing.harness import OTHER, SCOPE, SITE, SOURCE, Breakage, Planted
from purge.testing.samples import (
    CANARY,
    CANARY_TOPIC,
    CHILD_OF_ONE,
    FAMILY,
    FAMILY_OF_MANY,
    FOLDED,
    JAPANESE,
    NEIGHBOURS,
    NORTH,
    PHRASE,
    SHORT,
    SOUTH,
    SPEAKERS,
    SPOKEN,
    Written,
    close,
    fit,
    unit_vector,
)
from purge.testing.snapshots import differences
from purge.testing.suite_base import Maker, Suite, needs, told

LIBRARY = (
    CANARY,
    SHORT,
    *NEIGHBOURS,
    *FAMILY,
    *FAMILY_OF_MANY,
    *SPOKEN,
    *(Planted(f"says {form.name}", form.text) for form in FOLDED),
    Planted("says-japanese", JAPANESE[1]),
)
EVERYTHING = Targets(
    [
        target(TargetKind.ID, CANARY.id, key=0),
        target(TargetKind.PHRASE, "zanderberry-55173", key=1),
        target(TargetKind.PHRASE, "spare brasskeyling under", key=2),
        target(TargetKind.SUBJECT, "user-marrowstone-610", key=3),
        target(TargetKind.LINEAGE, "log-thistledown-1", key=4, site=SOURCE),
        target(TargetKind.COPY, CANARY.text, key=5),
    ]
)
"""Six ways to name the same record."""


class LookingSuite(Suite):
    """Looking at a store that nothing is wrong with."""

    @pytest.fixture(scope="class")
    @classmethod
    def library(cls, make_shared: Maker) -> Case:
        """A store that is only looked at."""
        return make_shared(LIBRARY)

    def found(self, case: Case, targets: Targets) -> list[str]:
        """Return the ids that are found, as they were planted, sorted."""
        planted = {case.harness.id_of(record): record.id for record in LIBRARY}
        return sorted(planted.get(name, name) for name in case.find(targets).ids)

    # --- by id ------------------------------------------------------------------------------

    @pytest.mark.parametrize("record", [CANARY, SHORT, *NEIGHBOURS[:6]], ids=lambda it: it.id)
    def test_an_id_finds_the_record_that_has_exactly_this_id(
        self, library: Case, record: Planted
    ) -> None:
        assert self.found(library, ids(library.harness.id_of(record))) == [record.id]

    def test_a_bare_id_finds_the_record(self, library: Case) -> None:
        name = library.harness.id_of(CANARY)
        assert self.found(library, ids(name, site=None)) == [CANARY.id]

    def test_an_id_of_another_site_finds_nothing_here(self, library: Case) -> None:
        assert self.found(library, ids(library.harness.id_of(CANARY), site="elsewhere")) == []

    @pytest.mark.parametrize("name", ["mem-quillfeather", "mem-quillfeather-884210", "%", "*"])
    def test_an_id_that_no_record_has_finds_nothing(self, library: Case, name: str) -> None:
        found = library.find(ids(name))
        assert found.ids == ()
        assert found.examined

    def test_no_targets_find_nothing_and_still_say_what_was_read(self, library: Case) -> None:
        found = library.find(NOTHING)
        assert found.matches == ()
        assert found.not_checked == ()
        assert found.examined

    def test_a_record_is_yielded_once_however_many_targets_name_it(self, library: Case) -> None:
        found = library.find(EVERYTHING)
        assert found.ids == (library.harness.id_of(CANARY),)
        keys = {hit.key for hit in found.matches[0].hits}
        expected = {0, 1, 2, 5}
        expected |= {3} if library.harness.has_subject else set()
        expected |= {4} if library.harness.has_parents else set()
        assert keys == expected

    def test_looking_twice_sees_the_same(self, library: Case) -> None:
        assert library.find(EVERYTHING).matches == library.find(EVERYTHING).matches

    # --- by what is said ---------------------------------------------------------------------

    def test_a_phrase_finds_the_records_that_hold_it_as_whole_words(self, library: Case) -> None:
        assert self.found(library, phrase(PHRASE)) == sorted(SPEAKERS)

    def test_a_phrase_that_no_record_holds_finds_nothing(self, library: Case) -> None:
        assert self.found(library, phrase("the crab pot licence of the north")) == []

    @needs("scope")
    def test_a_phrase_in_a_scope_spares_the_same_words_in_another(self, library: Case) -> None:
        matches = library.find(phrase(PHRASE, **{SCOPE: NORTH})).matches
        certain = [match.id for match in matches if not match.hits[0].scope_unknown]
        unknown = [match.id for match in matches if match.hits[0].scope_unknown]
        by_name = {record.id: library.harness.id_of(record) for record in SPOKEN}
        assert certain == [by_name["says-north"]]
        assert unknown == [by_name["says-nowhere"]]

    @needs("scope")
    def test_an_id_in_another_scope_is_not_found(self, library: Case) -> None:
        name = library.harness.id_of(CANARY)
        named = [target(TargetKind.ID, name, site=SITE, scope={SCOPE: SOUTH})]
        assert self.found(library, Targets(named)) == []

    @pytest.mark.parametrize("form", FOLDED, ids=lambda form: form.name)
    def test_a_phrase_is_found_in_another_form(self, library: Case, form: Written) -> None:
        found = library.find(phrase(form.phrase))
        assert self.found(library, phrase(form.phrase)) == [f"says {form.name}"]
        assert [hit.how for hit in found.matches[0].hits] == [How.FOLDED]

    def test_a_phrase_of_a_script_without_spaces_is_found(self, library: Case) -> None:
        assert self.found(library, phrase(JAPANESE[0])) == ["says-japanese"]

    @needs("metadata")
    def test_a_phrase_is_looked_for_in_every_field(self, library: Case) -> None:
        assert self.found(library, phrase(CANARY_TOPIC)) == [CANARY.id]

    # --- by whom and from what ----------------------------------------------------------------

    @needs("subject")
    def test_a_subject_finds_the_records_about_exactly_this_person(self, library: Case) -> None:
        about = [target(TargetKind.SUBJECT, "user-marrow-6")]
        assert self.found(library, Targets(about)) == ["mem-other-code"]

    @needs("subject", "scope")
    def test_a_subject_in_another_scope_is_not_found(self, library: Case) -> None:
        about = [target(TargetKind.SUBJECT, "user-marrow-6", scope={SCOPE: SOUTH})]
        assert self.found(library, Targets(about)) == []

    @needs("parents")
    def test_lineage_finds_the_children_of_exactly_this_record(self, library: Case) -> None:
        of_one = Targets([target(TargetKind.LINEAGE, CHILD_OF_ONE, site=SOURCE)])
        expected = {"child-of-1"}
        if library.harness.many_parents:
            expected |= {"child-of-2-and-1"}
        assert set(self.found(library, of_one)) == expected
        assert {hit.how for match in library.find(of_one).matches for hit in match.hits} == {
            How.LINEAGE
        }

    @needs("many parents")
    def test_lineage_of_one_site_is_not_that_of_another(self, library: Case) -> None:
        of_other = Targets([target(TargetKind.LINEAGE, CHILD_OF_ONE, site=OTHER)])
        assert self.found(library, of_other) == ["child-of-another-site"]

    @needs("many parents")
    def test_lineage_of_several_parents_yields_the_child_once(self, library: Case) -> None:
        both = Targets(
            target(TargetKind.LINEAGE, name, key=key, site=site)
            for key, (name, site) in enumerate(
                [("log-2", SOURCE), ("log-1", SOURCE), ("note-1", OTHER)]
            )
        )
        assert self.found(library, both) == ["child-of-1", "child-of-2-and-1", "mem-other-code"]

    @needs("parents")
    def test_a_match_says_what_it_derives_from(self, library: Case) -> None:
        for record in fit(library.harness, (CANARY, *FAMILY, *FAMILY_OF_MANY, SHORT)):
            name = library.harness.id_of(record)
            assert dict(library.find(ids(name))[name].parents) == dict(record.parents)

    @needs("scope")
    @pytest.mark.parametrize("record", [CANARY, SPOKEN[1], SPOKEN[2]], ids=lambda it: it.id)
    def test_a_match_says_of_which_scope_it_is(self, library: Case, record: Planted) -> None:
        name = library.harness.id_of(record)
        assert dict(library.find(ids(name))[name].scope) == dict(record.scope)

    @needs("subject")
    @pytest.mark.parametrize("record", [CANARY, SPOKEN[2]], ids=lambda it: it.id)
    def test_a_match_says_about_whom_it_is(self, library: Case, record: Planted) -> None:
        name = library.harness.id_of(record)
        expected = () if record.subject is None else (record.subject,)
        assert library.find(ids(name))[name].subjects == expected

    @needs("parents")
    def test_records_without_lineage_are_counted(self, library: Case) -> None:
        expected = sum(not record.parents for record in fit(library.harness, LIBRARY))
        assert sum(part.unlinked for part in library.find(NOTHING).examined) == expected

    # --- what a match carries -----------------------------------------------------------------

    def test_a_match_is_readable_and_carries_what_it_looks_like(self, library: Case) -> None:
        match = library.find(EVERYTHING).matches[0]
        assert match.readability is Readability.READABLE
        assert match.trace.id == match.id
        assert any(CANARY.text in text for text in match.trace.texts)
        if library.harness.has_metadata:
            assert any(CANARY_TOPIC in value for value in match.trace.metadata)
        if library.harness.has_vectors:
            expected = unit_vector(CANARY.id)
            assert any(close(vector, expected) for vector in match.trace.vectors)

    def test_a_handle_is_made_of_json_values(self, library: Case) -> None:
        with library.open() as adapter:
            matches = [it for it in adapter.find(EVERYTHING) if isinstance(it, Match)]
        for match in matches:
            assert json.loads(json.dumps(match.handle, allow_nan=False)) == dict(match.handle)

    def test_nothing_that_is_yielded_shows_whom_or_what_it_is_about(self, library: Case) -> None:
        found = library.find(EVERYTHING)
        looked = library.residue(EVERYTHING, found.matches)
        yielded: list[object] = [
            *found.matches,
            *found.examined,
            *found.not_checked,
            *looked.residue,
            *looked.controls,
            *looked.examined,
            *looked.not_checked,
            *library.check(),
            *(match.where for match in found.matches),
        ]
        assert [secret for item in yielded for secret in told(item)] == []

    # --- the look for what is left ------------------------------------------------------------

    def test_the_look_for_residue_says_what_was_read_and_has_a_control(self, library: Case) -> None:
        for targets in (EVERYTHING, NOTHING, ids("mem-that-never-was")):
            looked = library.residue(targets)
            assert looked.examined
            assert looked.controls
            assert looked.not_checked == ()

    def test_the_control_sees_the_records_while_they_are_readable(self, library: Case) -> None:
        found = library.find(EVERYTHING)
        controls = library.residue(EVERYTHING, found.matches).controls
        assert all(control.passed for control in controls)
        assert any(control.on_target or control.kind is None for control in controls)

    def test_a_control_on_a_neighbour_does_not_claim_to_be_on_the_target(
        self, library: Case
    ) -> None:
        controls = library.residue(ids("mem-that-never-was")).controls
        assert [control for control in controls if control.on_target] == []

    def test_the_check_of_a_sound_store_finds_no_fault(self, library: Case) -> None:
        statements = library.check()
        assert statements
        assert all(statement.ok and statement.sentence.strip() for statement in statements)

    # --- nothing changes ----------------------------------------------------------------------

    @pytest.mark.parametrize(
        "look",
        [
            pytest.param(lambda case: case.find(EVERYTHING), id="find"),
            pytest.param(lambda case: case.find(NOTHING), id="find for nothing"),
            pytest.param(lambda case: case.residue(EVERYTHING), id="residue"),
            pytest.param(lambda case: case.check(), id="check"),
        ],
    )
    def test_looking_changes_no_byte_and_no_time(
        self, library: Case, look: Callable[[Case], object]
    ) -> None:
        before = library.snapshot()
        look(library)
        assert differences(before, library.now()) == []

    def test_a_look_that_is_broken_off_changes_nothing(self, library: Case) -> None:
        before = library.snapshot()
        with library.open() as adapter:
            next(iter(adapter.find(EVERYTHING)))
        with library.open() as adapter:
            next(iter(adapter.residue(EVERYTHING)))
        assert differences(before, library.now()) == []

    def test_an_adapter_that_is_opened_and_closed_changes_nothing(self, library: Case) -> None:
        before = library.snapshot()
        with library.open():
            pass
        assert differences(before, library.now()) == []

    def test_an_empty_selection_is_refused_and_changes_nothing(self, library: Case) -> None:
        before = library.snapshot()
        with pytest.raises(EmptySelector):
            library.remove(())
        assert differences(before, library.now()) == []

    def test_what_a_store_is_excused_from_has_a_reason(self, library: Case) -> None:
        harness = library.harness
        assert bool(harness.visible) != bool(harness.invisible.strip())
        assert all(isinstance(kind, Breakage) for kind in harness.unbreakable)
        assert all(reason.strip() for reason in harness.unbreakable.values())
        assert Action.DELETE in harness.adapter.info.actions
