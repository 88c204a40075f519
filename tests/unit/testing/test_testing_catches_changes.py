"""The contract suite catches looks that change something."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

pytest_plugins = ["pytester"]

MISTAKES = [
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                os.utime(self.store.file)
                return super().find(targets)
            """,
            "caught_by": (
                "test_looking_changes_no_byte_and_no_time[find]",
                "test_a_dry_run_changes_no_byte_and_no_time",
                "test_a_run_that_finds_nothing_changes_no_byte_and_no_time",
            ),
        },
        id="find sets the time of the file",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                found = self.store.file.stat()
                self.store.save(self.store.load())
                os.utime(self.store.file, ns=(found.st_atime_ns, found.st_mtime_ns))
                return super().find(targets)
            """,
            "caught_by": ("test_looking_changes_no_byte_and_no_time[find]",),
        },
        id="find sets the time of the file and puts it back",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                self.store.file.read_bytes()
                return super().find(targets)
            """,
            "caught_by": ("test_looking_changes_no_byte_and_no_time[find]",),
        },
        id="find moves the access time",
    ),
    pytest.param(
        {
            "adapter": """
            def residue(self, targets):
                self.store.file.read_bytes()
                return super().residue(targets)
            """,
            "caught_by": (
                "test_looking_changes_no_byte_and_no_time[residue]",
                "test_a_dry_run_changes_no_byte_and_no_time",
            ),
        },
        id="residue moves the access time",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                (self.store.folder / "lock").touch()
                (self.store.folder / "lock").unlink()
                return super().find(targets)
            """,
            "caught_by": ("test_looking_changes_no_byte_and_no_time[find]",),
        },
        id="a lock file is made and taken away",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                place = self.store.folder / "busy"
                place.touch()
                yield from super().find(targets)
                place.unlink()
            """,
            "caught_by": ("test_a_look_that_is_broken_off_changes_nothing",),
        },
        id="a file is left by a look that is broken off",
    ),
    pytest.param(
        {
            "adapter": """
            def __init__(self, site, settings):
                super().__init__(site, settings)
                (self.store.folder / "session").write_bytes(os.urandom(8))
            """,
            "caught_by": ("test_an_adapter_that_is_opened_and_closed_changes_nothing",),
        },
        id="opening makes a file",
    ),
    pytest.param(
        {
            "adapter": """
            def find(self, targets):
                descriptor, name = tempfile.mkstemp()
                os.write(descriptor, self.store.file.read_bytes())
                return super().find(targets)
            """,
            "caught_by": ("test_nothing_is_left_among_the_temporary_files",),
        },
        id="a private copy is forgotten",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_suite_catches(
    mistake: Mapping[str, object], not_caught: Callable[[Mapping[str, object]], list[str]]
) -> None:
    assert not_caught(mistake) == []
