"""The contract suite catches what is removed wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest_plugins = ["pytester"]

MISTAKES = [
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                names = tuple(it.match.id for it in removals)
                content.records = [it for it in content.records if not it["id"].startswith(names)]
                self.store.save(content)
            """,
            "caught_by": (
                "test_the_neighbours_are_what_they_were",
                "test_only_the_records_with_these_ids_go[ids that are prefixes of each other]",
            ),
        },
        id="remove deletes by prefix",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                letters = {letter for it in removals for letter in it.match.id}
                content.records = [it for it in content.records if it["id"] not in letters]
                self.store.save(content)
            """,
            "caught_by": ("test_the_neighbours_are_what_they_were",),
        },
        id="an id is taken for a list of letters",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                for pattern in [it.match.id for it in removals]:
                    content.records = [
                        it for it in content.records if not fnmatch.fnmatchcase(it["id"], pattern)
                    ]
                self.store.save(content)
            """,
            "caught_by": ("test_only_the_records_with_these_ids_go[ids that look like patterns]",),
        },
        id="an id is taken for a pattern",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                for pattern in [it.match.id.replace("_", "?").replace("%", "*") for it in removals]:
                    content.records = [
                        it for it in content.records if not fnmatch.fnmatchcase(it["id"], pattern)
                    ]
                self.store.save(content)
            """,
            "caught_by": (
                "test_only_the_records_with_these_ids_go[ids with percent signs and underscores]",
            ),
        },
        id="an id is taken for a pattern of a database",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                places = {it["id"]: at for at, it in enumerate(self.store.load().records)}
                for it in super().find(targets):
                    yield replace(it, handle={"at": places[it.id]}) if isinstance(it, Match) else it
            def remove(self, removals):
                for it in removals:
                    content = self.store.load()
                    del content.records[it.match.handle["at"]]
                    self.store.save(content)
                return iter(())
            """,
            "caught_by": ("test_the_neighbours_are_what_they_were",),
        },
        id="records are removed by their place",
    ),
    pytest.param(
        {
            "faults": '{"lies": True}',
            "caught_by": (
                "test_a_fresh_client_no_longer_returns_the_records",
                "test_a_fresh_look_no_longer_finds_the_records",
                "test_all_records_may_go",
            ),
        },
        id="remove answers fine and removes nothing",
    ),
    pytest.param(
        {
            "faults": '{"resurrects": "always"}',
            "caught_by": ("test_a_fresh_client_no_longer_returns_the_records",),
        },
        id="what was removed comes back",
    ),
    pytest.param(
        {
            "adapter": """
            hidden = set()
            def find(self, targets):
                for it in super().find(targets):
                    if not isinstance(it, Match) or it.id not in self.hidden:
                        yield it
            def remove(self, removals):
                guard(removals)
                self.hidden.update(it.match.id for it in removals)
                return iter(())
            """,
            "caught_by": ("test_a_fresh_client_no_longer_returns_the_records",),
        },
        id="find hides what remove did not remove",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                content.records = [{**it, "seen": True} for it in content.records]
                self.store.save(content)
            """,
            "caught_by": ("test_the_bytes_of_the_neighbours_are_what_they_were",),
        },
        id="the neighbours are written anew",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                for it in content.records:
                    it["text"] = it["text"].strip(".")
                self.store.save(content)
            """,
            "caught_by": (
                "test_the_neighbours_are_what_they_were",
                "test_what_was_added_after_the_look_stays",
            ),
        },
        id="the neighbours change a little",
    ),
    pytest.param(
        {
            "adapter": """
            def _agrees(self, fields, match):
                return True
            """,
            "caught_by": ("test_a_record_that_changed_after_it_was_found_is_left_and_named",),
        },
        id="what changed meanwhile is removed all the same",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                list(super().remove(removals))
                return iter(())
            """,
            "caught_by": ("test_a_record_that_changed_after_it_was_found_is_left_and_named",),
        },
        id="what changed meanwhile is left without a word",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                for it in super().remove(removals):
                    yield replace(it, sentence=f"{it.match.id} changed.")
            """,
            "caught_by": ("test_a_record_that_changed_after_it_was_found_is_left_and_named",),
        },
        id="a sentence shows the id",
    ),
    pytest.param(
        {
            "adapter": """
            known = {}
            def find(self, targets):
                self.known[self.store.folder] = self.store.load()
                return super().find(targets)
            def remove(self, removals):
                guard(removals)
                names = {it.match.id for it in removals}
                content = self.known[self.store.folder]
                self.store.save(Content([it for it in content.records if it["id"] not in names]))
                return iter(())
            """,
            "caught_by": ("test_what_was_added_after_the_look_stays",),
        },
        id="the store is written as it was when it was read",
    ),
    pytest.param(
        {
            "adapter": """
            known = {}
            def find(self, targets):
                for it in super().find(targets):
                    if isinstance(it, Match):
                        self.known.setdefault(self.store.folder, []).append(it)
                    yield it
            def remove(self, removals):
                more = [Removal(it, "r", removals[0].at) for it in self.known[self.store.folder]]
                return super().remove(more)
            """,
            "caught_by": ("test_one_match_of_two_may_be_removed_alone",),
        },
        id="all that is known goes when one thing is named",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                return super().remove(removals) if removals else iter(())
            """,
            "caught_by": ("test_an_empty_selection_is_refused_and_changes_nothing",),
        },
        id="an empty selection is not refused",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                if removals:
                    yield from super().remove(removals)
                else:
                    self.store.save(Content())
            """,
            "caught_by": ("test_an_empty_selection_is_refused_and_changes_nothing",),
        },
        id="an empty selection removes everything",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                names = {it["id"] for it in self.store.load().records}
                if not names.issuperset(it.match.id for it in removals):
                    raise Permanent("It is not there.")
                return super().remove(removals)
            """,
            "caught_by": ("test_removing_what_is_no_longer_there_is_no_error",),
        },
        id="removing twice is an error",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                yield from super().remove(removals)
                content = self.store.load()
                content.graves.append({"id": "an entry in a log"})
                self.store.save(content)
            """,
            "caught_by": ("test_removing_what_is_no_longer_there_is_no_error",),
        },
        id="removing what is gone rewrites the store",
    ),
    pytest.param(
        {
            "adapter": """
            gone = set()
            def find(self, targets):
                for it in super().find(targets):
                    if not isinstance(it, Match) or it.handle["digest"] not in self.gone:
                        yield it
            def remove(self, removals):
                self.gone.update(it.match.handle["digest"] for it in removals)
                return super().remove(removals)
            """,
            "caught_by": ("test_a_copy_planted_again_is_found_again",),
        },
        id="what was removed once is never found again",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                content = self.store.load()
                yield from super().remove(removals)
                if not self.store.load().records:
                    self.store.save(Content(content.records[-1:]))
            """,
            "caught_by": ("test_all_records_may_go",),
        },
        id="the last record of a store stays",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
