"""The contract suite catches what is found wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest_plugins = ["pytester"]

MISTAKES = [
    pytest.param(
        {
            "adapter": """
            def record(self, fields):
                record = super().record(fields)
                return replace(record, id=record.id[:5])
            """,
            "caught_by": ("test_an_id_finds_the_record_that_has_exactly_this_id",),
        },
        id="ids are compared as prefixes",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                lowered = [replace(it, value=it.value.lower()) for it in targets]
                return super().find(Targets(lowered))
            def record(self, fields):
                record = super().record(fields)
                return replace(record, id=record.id.lower())
            """,
            "caught_by": (
                "test_an_id_finds_the_record_that_has_exactly_this_id",
                "test_only_the_records_with_these_ids_go[ids of one letter]",
            ),
        },
        id="ids are compared without case",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                same = [replace(it, value=unicodedata.normalize("NFC", it.value)) for it in targets]
                return super().find(Targets(same))
            def record(self, fields):
                record = super().record(fields)
                return replace(record, id=unicodedata.normalize("NFC", record.id))
            """,
            "caught_by": ("test_only_the_records_with_these_ids_go[ids in other scripts]",),
        },
        id="ids are compared composed",
    ),
    pytest.param(
        {
            "adapter": """
            def record(self, fields):
                record = super().record(fields)
                return replace(record, id=record.id.strip())
            """,
            "caught_by": ("test_only_the_records_with_these_ids_go[ids with spaces and slashes]",),
        },
        id="spaces around ids are taken off",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                return super().find(Targets([replace(it, site=None) for it in targets]))
            """,
            "caught_by": ("test_an_id_of_another_site_finds_nothing_here",),
        },
        id="the site of an id is not looked at",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for target in targets:
                    yield from super().find(Targets([target]))
            """,
            "caught_by": (
                "test_a_record_is_yielded_once_however_many_targets_name_it",
                "test_no_targets_find_nothing_and_still_say_what_was_read",
            ),
        },
        id="a record is yielded once for every target",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for item in super().find(targets):
                    if not isinstance(item, Match) or item.id < "crowd-01000":
                        yield item
            """,
            "caught_by": ("test_every_record_of_a_crowd_is_found_and_goes",),
        },
        id="only the first page is read",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                return (it for it in super().find(targets) if not isinstance(it, Examined))
            """,
            "caught_by": (
                "test_no_targets_find_nothing_and_still_say_what_was_read",
                "test_an_id_that_no_record_has_finds_nothing",
            ),
        },
        id="nothing is said of how much was read",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                if not targets:
                    targets = Targets([Target(0, TargetKind.PHRASE, "the")])
                return super().find(targets)
            """,
            "caught_by": ("test_no_targets_find_nothing_and_still_say_what_was_read",),
        },
        id="everything is found when nothing is looked for",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                words = [it.value for it in targets if it.kind is TargetKind.PHRASE]
                for item in super().find(targets):
                    texts = item.trace.texts if isinstance(item, Match) else ()
                    if not texts or any(word in text for word in words for text in texts):
                        yield item
            """,
            "caught_by": (
                "test_a_phrase_is_found_in_another_form[upper case]",
                "test_a_phrase_is_found_in_another_form[accents composed]",
                "test_a_phrase_is_found_in_another_form[a full-width space]",
                "test_a_phrase_is_found_in_another_form[typographic quotes]",
            ),
        },
        id="phrases are looked for without folding",
    ),
    pytest.param(
        {
            "adapter": """
            def record(self, fields):
                record = super().record(fields)
                texts = []
                for text in record.texts:
                    value = text.value
                    for words in ("the ", "crab pot", "licence"):
                        value = value.replace(words, f" {words} ")
                    texts.append(replace(text, value=value))
                return replace(record, texts=texts)
            """,
            "caught_by": (
                "test_a_phrase_finds_the_records_that_hold_it_as_whole_words",
                "test_only_the_records_that_hold_the_phrase_go",
            ),
        },
        id="phrases are looked for within words",
    ),
    pytest.param(
        {
            "adapter": """
            def record(self, fields):
                record = super().record(fields)
                return replace(record, texts=[it for it in record.texts if it.field == "text"])
            """,
            "caught_by": ("test_a_phrase_is_looked_for_in_every_field",),
        },
        id="phrases are looked for in the text alone",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                return super().find(Targets([replace(it, scope={}) for it in targets]))
            """,
            "caught_by": (
                "test_a_phrase_in_a_scope_spares_the_same_words_in_another",
                "test_only_the_records_of_the_scope_go",
                "test_an_id_in_another_scope_is_not_found",
                "test_a_subject_in_another_scope_is_not_found",
            ),
        },
        id="the scope is ignored",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for item in super().find(targets):
                    if not isinstance(item, Match) or not item.hits[0].scope_unknown:
                        yield item
            """,
            "caught_by": ("test_a_phrase_in_a_scope_spares_the_same_words_in_another",),
        },
        id="records that do not say their scope are passed over",
    ),
    pytest.param(
        {
            "adapter": """
            def record(self, fields):
                record = super().record(fields)
                return replace(record, subjects=[it[:13] for it in record.subjects])
            """,
            "caught_by": ("test_a_subject_finds_the_records_about_exactly_this_person",),
        },
        id="subjects are compared as prefixes",
    ),
    pytest.param(
        {
            "adapter": """
            def _parents(self, fields):
                return {site: ids[:1] for site, ids in super()._parents(fields).items()}
            """,
            "caught_by": (
                "test_lineage_finds_the_children_of_exactly_this_record",
                "test_a_match_says_what_it_derives_from",
            ),
        },
        id="only the first parent is read",
    ),
    pytest.param(
        {
            "adapter": """
            def _parents(self, fields):
                found = super()._parents(fields)
                both = tuple(it for ids in found.values() for it in ids)
                return {"source": both, "other": both} if both else {}
            """,
            "caught_by": (
                "test_lineage_of_one_site_is_not_that_of_another",
                "test_lineage_finds_the_children_of_exactly_this_record",
            ),
        },
        id="parents of all sites are one list",
    ),
    pytest.param(
        {
            "adapter": """
            def _linked(self, fields):
                return True
            """,
            "caught_by": ("test_records_without_lineage_are_counted",),
        },
        id="records without lineage are not counted",
    ),
    pytest.param(
        {
            "adapter": """
            def trace(self, fields):
                return replace(super().trace(fields), vectors=())
            """,
            "caught_by": ("test_a_match_is_readable_and_carries_what_it_looks_like",),
        },
        id="a match does not carry the vector",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for it in super().find(targets):
                    if isinstance(it, Match):
                        it = replace(it, handle={**it.handle, "at": (1, 2)})
                    yield it
            """,
            "caught_by": ("test_a_handle_is_made_of_json_values",),
        },
        id="a handle holds a tuple",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for it in super().find(targets):
                    yield replace(it, where=f"file of {it.id}") if isinstance(it, Match) else it
            """,
            "caught_by": (
                "test_nothing_that_is_yielded_shows_whom_or_what_it_is_about",
                "test_nothing_that_was_said_shows_whom_or_what_it_was_about",
            ),
        },
        id="the id stands in the place that people see",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                for it in super().find(targets):
                    yield replace(it, scope={}, subjects=()) if isinstance(it, Match) else it
            """,
            "caught_by": (
                "test_a_match_says_of_which_scope_it_is",
                "test_a_match_says_about_whom_it_is",
            ),
        },
        id="a match does not say of whom it is",
    ),
    pytest.param(
        {
            "adapter": """
            def check(self):
                yield Statement("Something is wrong.", ok=False)
            """,
            "caught_by": ("test_the_check_of_a_sound_store_finds_no_fault",),
        },
        id="check finds a fault in a sound store",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
