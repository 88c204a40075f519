"""The contract suite catches what goes wrong at a broken store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest_plugins = ["pytester"]

MISTAKES = [
    pytest.param(
        {
            "adapter": """
            def __init__(self, site, settings):
                super().__init__(site, settings)
                if not self.store.file.exists():
                    self.store.load = Content
                    self.store.file = Path(__file__)
            """,
            "caught_by": (
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[missing]",
                "test_check_of_a_broken_store_changes_nothing_and_a_missing_one_is_a_fault[missing]",
                "test_the_look_for_residue_in_a_broken_store_is_no_all_clear[missing]",
            ),
        },
        id="a missing store is taken for an empty one",
    ),
    pytest.param(
        {
            "adapter": """
            def __init__(self, site, settings):
                super().__init__(site, settings)
                if not self.store.file.exists():
                    self.store.make()
            """,
            "caught_by": (
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[missing]",
            ),
        },
        id="a missing store is made",
    ),
    pytest.param(
        {
            "adapter": """
            def __init__(self, site, settings):
                super().__init__(site, settings)
                load = self.store.load
                def forgiving():
                    try:
                        return load()
                    except ValueError:
                        return Content()
                self.store.load = forgiving
            """,
            "caught_by": (
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[corrupt]",
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[torn]",
                "test_the_look_for_residue_in_a_broken_store_is_no_all_clear[torn]",
            ),
        },
        id="a damaged store is taken for an empty one",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                try:
                    self.store.load()
                except ValueError:
                    self.store.save(Content())
                return super().remove(removals)
            """,
            "caught_by": (
                "test_remove_in_a_broken_store_loses_nothing_and_is_never_silent[corrupt]",
                "test_remove_in_a_broken_store_loses_nothing_and_is_never_silent[torn]",
            ),
        },
        id="a damaged store is replaced by an empty one",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                try:
                    yield from super().find(targets)
                except StoreError:
                    raise Permanent("It does not work.")
            """,
            "caught_by": (
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[corrupt]",
            ),
        },
        id="an error has the wrong code",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                self.store.load()
                return super().find(targets)
            """,
            "caught_by": (
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[missing]",
                "test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[torn]",
            ),
        },
        id="an error of the driver comes through",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                try:
                    yield from super().find(targets)
                except StoreError as error:
                    shown = read_quietly(self.store.file).decode("latin-1")
                    raise Permanent(f"What is this? {shown}", problem=error.problem) from None
            """,
            "caught_by": ("test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[torn]",),
        },
        id="an error shows what is in the store",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                try:
                    yield from super().find(targets)
                except StoreError as error:
                    cause = ValueError(read_quietly(self.store.file).decode("latin-1"))
                    raise Permanent("Damaged.", problem=error.problem) from cause
            """,
            "caught_by": ("test_find_in_a_broken_store_is_complete_or_says_what_it_is_not[torn]",),
        },
        id="the cause of an error shows what is in the store",
    ),
    pytest.param(
        {
            "adapter": """
            def __init__(self, site, settings):
                super().__init__(site, settings)
                self.store.locked = nullcontext
            """,
            "caught_by": (
                "test_remove_in_a_broken_store_loses_nothing_and_is_never_silent[locked]",
            ),
        },
        id="a lock is not respected",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                try:
                    yield from super().remove(removals)
                except StoreError:
                    pass
            """,
            "caught_by": (
                "test_remove_in_a_broken_store_loses_nothing_and_is_never_silent[locked]",
                "test_remove_in_a_broken_store_loses_nothing_and_is_never_silent[read-only]",
                "test_remove_in_a_broken_store_loses_nothing_and_is_never_silent[missing]",
            ),
        },
        id="a refusal is not told",
    ),
    pytest.param(
        {
            "adapter": """
            def sanitize(self, residue):
                try:
                    yield from super().sanitize(residue)
                except StoreError:
                    pass
            """,
            "caught_by": (
                "test_a_hindered_sanitize_loses_nothing_and_is_never_silent[locked]",
                "test_a_hindered_sanitize_loses_nothing_and_is_never_silent[read-only]",
            ),
        },
        id="a refused sanitize is not told",
    ),
    pytest.param(
        {
            "adapter": """
            refused = set()
            def find(self, targets):
                for it in super().find(targets):
                    if not isinstance(it, Match) or self.store.folder not in self.refused:
                        yield it
            def remove(self, removals):
                try:
                    yield from super().remove(removals)
                except StoreError:
                    self.refused.add(self.store.folder)
                    raise
            """,
            "caught_by": ("test_a_hindered_remove_is_done_once_the_hindrance_is_gone[locked]",),
        },
        id="what was refused once is never tried again",
    ),
    pytest.param(
        {
            "harness": """
            unbreakable = {Breakage.LOCKED: " "}
            """,
            "caught_by": ("test_what_a_store_is_excused_from_has_a_reason",),
        },
        id="what is excused has no reason",
    ),
    pytest.param(
        {
            "harness": """
            def contents(self):
                return {}
            """,
            "caught_by": (
                "test_the_look_at_the_bytes_saw_all_of_it_before",
                "test_no_byte_of_the_vector_is_left",
            ),
        },
        id="the witness cannot see the bytes",
    ),
    pytest.param(
        {
            "harness": """
            def read(self):
                return {name: it for name, it in super().read().items() if name != "m"}
            """,
            "caught_by": ("test_what_is_planted_is_read_back_as_it_was_planted",),
        },
        id="the witness loses a record",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
