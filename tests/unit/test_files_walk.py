"""Which files a site's patterns name, and what is said of the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from purge.adapter import NotChecked, ProblemCode, Site
from purge.errors import Permanent, Refused
from purge_adapters._files import folders, relative, walk

SUFFIXES = (".log", ".log.gz")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    root = tmp_path / "root"
    root.mkdir()
    return Site("logs", root)


def plant(site: Site, *names: str) -> None:
    for name in names:
        path = site.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def names(site: Site, *patterns: str) -> list[str]:
    found = walk(site, patterns, SUFFIXES)
    return [relative(path, site) for path in found if isinstance(path, Path)]


def gaps(site: Site, *patterns: str) -> list[tuple[str, ProblemCode]]:
    found = walk(site, patterns, SUFFIXES)
    return [(gap.where, gap.problem) for gap in found if isinstance(gap, NotChecked)]


def test_a_file_is_named_whatever_its_suffix(site: Site) -> None:
    plant(site, "notes.txt", "other.txt")
    assert names(site, "notes.txt") == ["notes.txt"]


def test_a_folder_stands_for_the_files_below_it_with_the_suffixes(site: Site) -> None:
    plant(site, "a/1.log", "a/b/2.log.gz", "a/b/3.txt", "a/.hidden/4.log", "c/5.log")
    assert names(site, "a") == ["a/.hidden/4.log", "a/1.log", "a/b/2.log.gz"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a/*.log", ["a/1.log"]),
        ("a/*.txt", ["a/2.txt"]),
        ("a/**/*.log", ["a/1.log", "a/b/3.log", "a/b/c/4.log"]),
        ("a/**/c/*.log", ["a/b/c/4.log"]),
        ("**/*.log", ["a/1.log", "a/b/3.log", "a/b/c/4.log", "d/5.log"]),
        ("a/b*", ["a/b/3.log", "a/b/c/4.log"]),
        ("a/**", ["a/1.log", "a/b/3.log", "a/b/c/4.log"]),
        ("?/[0-4].log", ["a/1.log"]),
        ("a/nothing*", []),
    ],
)
def test_a_glob_names_what_it_matches(site: Site, pattern: str, expected: list[str]) -> None:
    plant(site, "a/1.log", "a/2.txt", "a/b/3.log", "a/b/c/4.log", "d/5.log")
    assert names(site, pattern) == expected


def test_a_name_with_wildcards_in_it_is_taken_as_it_stands(site: Site) -> None:
    plant(site, "a[1].log", "a1.log")
    assert names(site, "a[1].log") == ["a[1].log"]


def test_a_file_that_several_patterns_name_is_yielded_once(site: Site) -> None:
    plant(site, "a/1.log")
    assert names(site, "a", "a/*.log", "a/1.log") == ["a/1.log"]


@pytest.mark.parametrize("aside", [".git", ".hg", ".trash", ".Trash-1000", "Trash", ".stversions"])
def test_version_control_and_trash_are_passed_over_unless_named(site: Site, aside: str) -> None:
    plant(site, "a/1.log", f"a/{aside}/2.log")
    assert names(site, "a") == ["a/1.log"]
    assert names(site, "a/**/*.log") == ["a/1.log"]
    assert names(site, f"a/{aside}") == [f"a/{aside}/2.log"]
    assert names(site, f"*/{aside}/*.log") == [f"a/{aside}/2.log"]


def test_what_a_replacement_left_is_no_file_of_the_site(site: Site) -> None:
    plant(site, "a/1.log", "a/.purge-new-1-2-3-4.log")
    assert names(site, "a", "a/*") == ["a/1.log"]


def test_a_link_out_of_the_root_is_listed_and_not_followed(site: Site) -> None:
    plant(site, "a/1.log")
    outside = site.root.parent / "outside"
    outside.mkdir()
    (outside / "2.log").write_text("x")
    (site.root / "a/file.log").symlink_to(outside / "2.log")
    (site.root / "a/folder").symlink_to(outside)
    assert names(site, "a") == ["a/1.log"]
    assert gaps(site, "a") == [
        ("a/file.log", ProblemCode.NOT_CHECKED),
        ("a/folder", ProblemCode.NOT_CHECKED),
    ]
    assert gaps(site, "a/**/*.log") == gaps(site, "a")


def test_a_link_to_a_file_that_is_looked_at_anyway_is_no_gap(site: Site) -> None:
    plant(site, "a/2026-05-01.log", "b/1.log")
    (site.root / "a/latest.log").symlink_to("2026-05-01.log")
    assert names(site, "a") == ["a/2026-05-01.log"]
    assert gaps(site, "a") == []
    (site.root / "a/of-b.log").symlink_to("../b/1.log")
    assert gaps(site, "a") == [("a/of-b.log", ProblemCode.NOT_CHECKED)]
    assert gaps(site, "a", "b") == []


def test_a_link_that_leads_nowhere_is_no_gap(site: Site) -> None:
    plant(site, "a/1.log")
    (site.root / "a/.#1.log").symlink_to("somebody@host.4711")
    (site.root / "a/loop.log").symlink_to("loop.log")
    assert gaps(site, "a") == []


def test_a_link_named_by_the_manifest_is_resolved_within_the_root(site: Site) -> None:
    plant(site, "real/1.log")
    (site.root / "named").symlink_to("real")
    assert names(site, "named") == ["real/1.log"]


def test_a_link_named_by_the_manifest_may_not_leave_the_root(site: Site) -> None:
    (site.root / "named").symlink_to(site.root.parent)
    with pytest.raises(Refused):
        names(site, "named")
    with pytest.raises(Refused):
        names(site, "../*.log")


def test_a_file_that_goes_away_while_its_folder_is_listed_is_no_error(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(site, "a/1.log", "a/2.log", "a/3.log")
    scandir = os.scandir

    def listed_and_gone(folder: str) -> list[os.DirEntry[str]]:
        entries = list(scandir(folder))
        (site.root / "a/2.log").unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(os, "scandir", listed_and_gone)
    assert names(site, "a") == ["a/1.log", "a/3.log"]


def test_what_is_no_regular_file_is_never_opened(site: Site) -> None:
    plant(site, "a/1.log")
    os.mkfifo(site.root / "a/pipe.log")
    assert names(site, "a") == ["a/1.log"]
    assert gaps(site, "a") == [("a/pipe.log", ProblemCode.NOT_CHECKED)]


def test_nothing_of_what_is_named_being_there_is_an_error(site: Site) -> None:
    with pytest.raises(Permanent) as caught:
        names(site, "a", "b/*.log")
    assert caught.value.problem == ProblemCode.UNREACHABLE


def test_some_of_what_is_named_missing_is_a_gap(site: Site) -> None:
    plant(site, "a/1.log")
    assert names(site, "a", "b") == ["a/1.log"]
    assert gaps(site, "a", "b") == [("b", ProblemCode.UNREACHABLE)]


def test_an_empty_folder_is_no_error(site: Site) -> None:
    (site.root / "a").mkdir()
    assert names(site, "a") == []
    assert gaps(site, "a") == []


def test_a_wildcard_before_going_up_is_refused(site: Site) -> None:
    plant(site, "a/1.log")
    with pytest.raises(Permanent):
        names(site, "*/../a/*.log")


def test_a_name_that_cannot_be_printed_is_shown_otherwise(site: Site) -> None:
    path = site.root / os.fsdecode(b"a\xff\n.log")
    path.write_text("x")
    assert relative(path, site) == "a\ufffd\ufffd.log"
    assert names(site, ".") == ["a\ufffd\ufffd.log"]


def test_the_folders_that_patterns_cover(site: Site) -> None:
    plant(site, "a/1.log", "b/c/2.log", "d.log")
    covered = [relative(path, site) for path in folders(site, ["a", "b/*/*.log", "d.log", "e"])]
    assert covered == ["a", "b"]
