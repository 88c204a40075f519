"""The contract suite catches what is cleaned wrongly, or called clean."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest_plugins = ["pytester"]

MISTAKES = [
    pytest.param(
        {
            "adapter": """
            def _copies(self, *_):
                return iter(())
            """,
            "caught_by": (
                "test_no_byte_of_the_id_is_left",
                "test_no_byte_of_the_text_is_left",
                "test_no_byte_of_the_metadata_is_left",
                "test_no_byte_of_the_vector_is_left",
                "test_no_byte_of_a_blanked_text_is_left",
            ),
        },
        id="copies are not looked for",
    ),
    pytest.param(
        {
            "adapter": """
            def sanitize(self, residue):
                return iter(())
            """,
            "caught_by": (
                "test_the_last_look_finds_no_copy_without_a_date",
                "test_no_byte_of_the_text_is_left",
                "test_sanitizing_twice_is_harmless",
            ),
        },
        id="sanitize does nothing",
    ),
    pytest.param(
        {
            "adapter": """
            def sanitize(self, residue):
                content = self.store.load()
                vectors = [it["vector"] for it in content.graves if "vector" in it]
                content.graves = [{"vector": it} for it in vectors]
                self.store.save(content)
                return iter(())
            def _is_wanted(self, targets, fields):
                return "id" in fields and super()._is_wanted(targets, fields)
            """,
            "caught_by": ("test_no_byte_of_the_vector_is_left",),
        },
        id="sanitize leaves the vector",
    ),
    pytest.param(
        {
            "adapter": """
            def sanitize(self, residue):
                yield from super().sanitize(residue)
                content = self.store.load()
                self.store.save(Content(content.records[1:]))
            """,
            "caught_by": (
                "test_the_neighbours_are_what_they_were",
                "test_sanitizing_twice_is_harmless",
            ),
        },
        id="sanitize loses a neighbour",
    ),
    pytest.param(
        {
            "adapter": """
            def _copies(self, *_):
                yield Residue("store.json, deleted part", "it may be there", fixable=True)
            """,
            "caught_by": (
                "test_the_last_look_finds_no_copy_without_a_date",
                "test_a_second_run_finds_nothing_and_changes_nothing",
            ),
        },
        id="there is always something to sanitize",
    ),
    pytest.param(
        {
            "adapter": """
            def _copies(self, targets, content, backups, data):
                for phrase in targets.phrases():
                    if phrase.encode() in data[self.store.file]:
                        yield Residue("store.json", "the words are still there")
            """,
            "caught_by": ("test_only_the_records_of_the_scope_go",),
        },
        id="live words of another scope are taken for copies",
    ),
    pytest.param(
        {
            "faults": '{"control_fails": True}',
            "caught_by": (
                "test_every_look_for_copies_could_have_found_one",
                "test_the_control_sees_the_records_while_they_are_readable",
            ),
        },
        id="the control fails",
    ),
    pytest.param(
        {
            "adapter": """
            def _controls(self, *_):
                return iter(())
            """,
            "caught_by": (
                "test_every_look_for_copies_could_have_found_one",
                "test_the_look_for_residue_says_what_was_read_and_has_a_control",
            ),
        },
        id="there is no control",
    ),
    pytest.param(
        {
            "adapter": """
            def _controls(self, content, live, data):
                for it in super()._controls(content, live, data):
                    yield replace(it, on_target=True)
            """,
            "caught_by": ("test_a_control_on_a_neighbour_does_not_claim_to_be_on_the_target",),
        },
        id="a control on a neighbour claims to be on the target",
    ),
    pytest.param(
        {
            "faults": '{"not_checked": ["residue"]}',
            "caught_by": (
                "test_the_last_look_finds_no_copy_without_a_date",
                "test_the_look_for_residue_says_what_was_read_and_has_a_control",
            ),
        },
        id="a part is not looked at",
    ),
    pytest.param(
        {
            "faults": '{"residue": [{"why": "it stays"}]}',
            "caught_by": ("test_the_last_look_finds_no_copy_without_a_date",),
        },
        id="a copy without a date is left",
    ),
    pytest.param(
        {
            "adapter": """
            def _copies(self, *_):
                yield Residue("a backup", "it ages out", until=datetime(2030, 1, 1))
            """,
            "caught_by": ("test_a_copy_that_goes_by_itself_has_a_date_with_a_time_zone",),
        },
        id="a date has no time zone",
    ),
    pytest.param(
        {
            "adapter": """
            def _copies(self, targets, *_):
                for trace in targets.traces(self.site.name):
                    yield Residue("store.json", f"it holds {trace.texts}")
            """,
            "caught_by": ("test_nothing_that_was_said_shows_whom_or_what_it_was_about",),
        },
        id="residue shows the text",
    ),
    pytest.param(
        {
            "adapter": """
            def _keys(self, targets, records):
                return frozenset(target.key for target in targets)
            """,
            "caught_by": ("test_a_copy_counts_only_against_what_it_holds",),
        },
        id="a copy counts against every target",
    ),
    pytest.param(
        {
            "adapter": """
            def _keys(self, targets, records):
                return frozenset()
            """,
            "caught_by": ("test_a_copy_counts_only_against_what_it_holds",),
        },
        id="a copy is not told apart",
    ),
    pytest.param(
        {
            "harness": """
            visible = frozenset()
            invisible = "a test says so"
            """,
            "caught_by": ("test_the_last_look_says_that_it_cannot_see_the_bytes",),
        },
        id="nothing can be seen and that is called clean",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
