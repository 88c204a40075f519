# ruff: noqa: D102  (the name of a test says what it shows)
"""The contract suite: ``action: blank`` keeps the record, its id and its links, and no text."""

from __future__ import annotations

import pytest

from purge.adapter import Action, Readability
from purge.targets import TargetKind, Targets
from purge.testing.case import ids, phrase, target
from purge.testing.harness import SOURCE
from purge.testing.samples import CANARY, CANARY_WORDS, NEIGHBOURS, SHORT, fit
from purge.testing.snapshots import differences
from purge.testing.suite_base import Maker, Suite, missing, needs, told, words_in
from purge.testing.suite_removing import Story, tell


class BlankingSuite(Suite):
    """Emptying a record in its place."""

    @pytest.fixture(scope="class")
    @classmethod
    def blanked(cls, make_shared: Maker) -> Story:
        """Two records blanked between their neighbours."""
        records = (*NEIGHBOURS[:4], CANARY, *NEIGHBOURS[4:], SHORT)
        case = make_shared(records, Action.BLANK)
        named = ids(case.harness.id_of(CANARY), case.harness.id_of(SHORT))
        return tell(case, named, NEIGHBOURS)

    @needs("blank")
    def test_a_blanked_record_keeps_its_id_and_its_links(self, blanked: Story) -> None:
        for record in fit(blanked.case.harness, (CANARY, SHORT)):
            read = blanked.read_after[record.id]
            assert dict(read.parents) == dict(record.parents)

    @needs("blank")
    def test_a_blanked_record_has_lost_its_words(self, blanked: Story) -> None:
        said = {record.id: record.text for record in (CANARY, SHORT)}
        for name, text in said.items():
            words = {word for word in text.casefold().split() if len(word) > 4}
            assert not words & set(blanked.read_after[name].text.casefold().split())

    @needs("blank", "bytes")
    def test_no_byte_of_a_blanked_text_is_left(self, blanked: Story) -> None:
        assert sorted(words_in(blanked.contents_before, CANARY_WORDS)) == sorted(CANARY_WORDS)
        assert words_in(blanked.contents_after, CANARY_WORDS) == {}

    @needs("blank", "vectors", "bytes of vectors")
    def test_no_byte_of_a_blanked_vector_is_left(self, blanked: Story) -> None:
        (planted,) = fit(blanked.case.harness, (CANARY,))
        forms = blanked.case.harness.vector_forms(planted.vector or ())
        assert any(form in data for form in forms for data in blanked.contents_before.values())
        assert not any(form in data for form in forms for data in blanked.contents_after.values())

    @needs("blank")
    def test_a_blanked_record_is_found_as_blanked(self, blanked: Story) -> None:
        found = blanked.purged.read_back
        assert len(found.matches) == 2
        assert {match.readability for match in found.matches} == {Readability.BLANKED}

    @needs("blank")
    def test_a_blanked_record_is_not_found_by_its_words(self, blanked: Story) -> None:
        assert blanked.case.find(phrase("permit code zanderberry-55173")).matches == ()

    @needs("blank", "parents")
    def test_a_blanked_record_is_still_found_by_its_links(self, blanked: Story) -> None:
        of_log = Targets([target(TargetKind.LINEAGE, "log-thistledown-1", site=SOURCE)])
        matches = blanked.case.find(of_log).matches
        assert [match.readability for match in matches] == [Readability.BLANKED]
        assert matches[0].parents[SOURCE] == ("log-thistledown-1",)

    @needs("blank")
    def test_the_neighbours_of_a_blanked_record_are_what_they_were(self, blanked: Story) -> None:
        assert missing(blanked.neighbours, blanked.read_after) == []
        assert len(blanked.read_after) == len(blanked.neighbours) + 2
        kept = {record.id for record in blanked.neighbours}
        for name, data in blanked.raw_before.items():
            assert name not in kept or blanked.raw_after[name] == data

    @needs("blank", "bytes")
    def test_the_id_of_a_blanked_record_is_no_residue(self, blanked: Story) -> None:
        assert blanked.purged.after.undated == ()
        assert blanked.purged.after.not_checked == ()
        assert all(control.passed for control in blanked.purged.after.controls)

    @needs("blank")
    def test_blanking_leaves_nothing_alone(self, blanked: Story) -> None:
        assert blanked.purged.left == ()
        assert blanked.purged.sanitized == ()

    @needs("blank")
    def test_blanking_shows_nobody_whom_or_what_it_was_about(self, blanked: Story) -> None:
        said = [*blanked.purged.everything(), *blanked.again.everything()]
        assert [secret for item in said for secret in told(item)] == []

    @needs("blank")
    def test_a_dry_run_of_blanking_changes_nothing(self, blanked: Story) -> None:
        assert blanked.dry_run == []

    @needs("blank")
    def test_a_second_run_of_blanking_changes_nothing(self, blanked: Story) -> None:
        assert differences(blanked.state_after, blanked.state_again) == []

    @needs("blank")
    def test_blanking_what_is_blanked_changes_nothing(self, make: Maker) -> None:
        case = make((CANARY, *NEIGHBOURS), Action.BLANK)
        found = case.find(ids(case.harness.id_of(CANARY)))
        assert case.remove(found.matches) == ()
        before = case.harness.read()
        assert case.remove(found.matches) == ()
        assert case.harness.read() == before

    @needs("blank")
    def test_a_blanked_record_may_be_deleted(self, make: Maker) -> None:
        case = make((CANARY, *NEIGHBOURS), Action.BLANK)
        named = ids(case.harness.id_of(CANARY))
        case.purge(named)
        found = case.find(named)
        # What a later request with another action does.
        again = type(case)(case.harness, Action.DELETE)
        assert again.remove(found.matches) == ()
        assert CANARY.id not in case.harness.read()
        assert missing(fit(case.harness, NEIGHBOURS), case.harness.read()) == []
