"""The contract suite catches what a killed process leaves."""

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
                def save(content):
                    value = json.dumps({"records": content.records, "graves": content.graves})
                    with self.store.file.open("w") as stream:
                        stream.write(value[:200])
                        stream.flush()
                        stream.write(value[200:])
                self.store.save = save
            """,
            "harness": "kill_points = 8",
            "caught_by": ("test_killed_in_remove_nothing_else_is_lost_and_a_repeat_finishes",),
        },
        id="the file is overwritten in place",
    ),
    pytest.param(
        {
            "adapter": """
            def __init__(self, site, settings):
                super().__init__(site, settings)
                self.store.unfinished = tuple
            """,
            "harness": "kill_points = 8",
            "caught_by": ("test_killed_in_remove_nothing_else_is_lost_and_a_repeat_finishes",),
        },
        id="what a killed writer left is not looked at",
    ),
    pytest.param(
        {
            "adapter": """
            def sanitize(self, residue):
                content = self.store.load()
                self.store.save(Content())
                self.store.save(Content(content.records))
                return iter(())
            """,
            "harness": "kill_points = 8",
            "caught_by": ("test_killed_in_sanitize_nothing_else_is_lost_and_a_repeat_finishes",),
        },
        id="sanitize takes all out and puts it back",
    ),
    pytest.param(
        {
            "adapter": """
            def remove(self, removals):
                place = Path(tempfile.mkdtemp()) / "copy"
                place.write_bytes(self.store.file.read_bytes())
                yield from super().remove(removals)
                place.unlink()
            """,
            "harness": "kill_points = 3",
            "caught_by": ("test_killed_in_remove_nothing_else_is_lost_and_a_repeat_finishes",),
        },
        id="a private copy outlives its process",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
