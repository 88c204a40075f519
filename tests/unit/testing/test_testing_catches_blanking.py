"""The contract suite catches what is blanked wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest_plugins = ["pytester"]

MISTAKES = [
    pytest.param(
        {
            "adapter": """
            def _take(self, content, place, match):
                content.graves.append(content.records[place])
                return content.records.pop(place)
            """,
            "caught_by": (
                "test_a_blanked_record_keeps_its_id_and_its_links",
                "test_a_blanked_record_is_found_as_blanked",
            ),
        },
        id="blank deletes",
    ),
    pytest.param(
        {
            "adapter": """
            def _take(self, content, place, match):
                fields = super()._take(content, place, match)
                content.records[place].pop("from_logs", None)
                return fields
            """,
            "caught_by": (
                "test_a_blanked_record_keeps_its_id_and_its_links",
                "test_a_blanked_record_is_still_found_by_its_links",
            ),
        },
        id="blank drops the links",
    ),
    pytest.param(
        {
            "adapter": """
            def _take(self, content, place, match):
                fields = content.records[place]
                content.records[place] = {**fields, "blanked": True}
                return fields
            """,
            "caught_by": (
                "test_a_blanked_record_has_lost_its_words",
                "test_no_byte_of_a_blanked_text_is_left",
                "test_a_blanked_record_is_not_found_by_its_words",
            ),
        },
        id="blank keeps the text",
    ),
    pytest.param(
        {
            "adapter": """
            def _take(self, content, place, match):
                fields = super()._take(content, place, match)
                content.records[place]["vector"] = fields.get("vector")
                return fields
            """,
            "caught_by": ("test_no_byte_of_a_blanked_vector_is_left",),
        },
        id="blank keeps the vector",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for it in super().find(targets):
                    if isinstance(it, Match):
                        it = replace(it, readability=Readability.READABLE)
                    yield it
            """,
            "caught_by": ("test_a_blanked_record_is_found_as_blanked",),
        },
        id="a blanked record is still called readable",
    ),
    pytest.param(
        {
            "adapter": """
            def _copies(self, targets, content, backups, data):
                for trace in targets.traces(self.site.name):
                    if trace.id.encode() in data[self.store.file]:
                        yield Residue("store.json", "the id is still there")
            """,
            "caught_by": ("test_the_id_of_a_blanked_record_is_no_residue",),
        },
        id="the id of a blanked record is called residue",
    ),
    pytest.param(
        {
            "adapter": """
            def _is_done(self, fields):
                return False
            """,
            "caught_by": ("test_blanking_what_is_blanked_changes_nothing",),
        },
        id="blanking twice is called a change",
    ),
    pytest.param(
        {
            "adapter": """
            def _is_done(self, fields):
                return bool(fields.get("blanked"))
            """,
            "caught_by": ("test_a_blanked_record_may_be_deleted",),
        },
        id="what is blanked cannot be deleted",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
