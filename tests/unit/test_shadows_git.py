"""What the history of a git repository keeps, reachable or not."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from purge.adapter import Examined, NotChecked, Residue, Site
from purge_adapters import _git
from purge_adapters._shadows import Shadow, look_through, shadows

SECRET = b"the crab pot licence"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Tilda")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "tilda@example.org")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    root = tmp_path / "work" / "root"
    root.mkdir(parents=True)
    git(tmp_path / "work", "init", "-q", "-b", "main")
    return Site("logs", root)


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], input=stdin, check=True, capture_output=True
    ).stdout


def commit(site: Site, name: str, data: bytes, message: str = "a change") -> None:
    (site.root / name).write_bytes(data)
    git(site.root, "add", "-A", ".")
    git(site.root, "commit", "-q", "-m", message)


def found(site: Site, needle: bytes = SECRET) -> list[Residue | NotChecked | Examined]:
    files = [site.root / "a.log"]
    return list(
        look_through(
            shadows(files, site), lambda shadow: any(needle in it for it in [shadow.read()])
        )
    )


def residue(site: Site, needle: bytes = SECRET) -> list[str]:
    return [f"{it.where}: {it.why}" for it in found(site, needle) if isinstance(it, Residue)]


def expected(site: Site, count: str) -> list[str]:
    return [f"git repository {site.root.parent}: kept in the git history ({count})"]


def test_an_old_version_is_residue_without_a_date(site: Site) -> None:
    commit(site, "a.log", SECRET)
    commit(site, "a.log", b"kept")
    (item,) = (it for it in found(site) if isinstance(it, Residue))
    assert (item.until, item.fixable) == (None, False)
    assert residue(site) == expected(site, "1 object")


def test_a_version_that_no_commit_reaches_is_residue(site: Site) -> None:
    commit(site, "a.log", b"kept")
    git(site.root, "hash-object", "-w", "--stdin", stdin=SECRET)
    assert residue(site) == expected(site, "1 object")


def test_a_version_that_was_reset_away_stays_as_long_as_its_object(site: Site) -> None:
    commit(site, "a.log", b"kept")
    commit(site, "a.log", SECRET)
    git(site.root, "reset", "-q", "--hard", "HEAD~1")
    assert residue(site) == expected(site, "1 object")
    git(site.root, "reflog", "expire", "--expire=now", "--all")
    assert residue(site) == expected(site, "1 object")
    git(site.root, "gc", "-q", "--prune=now")
    assert residue(site) == []


def test_a_stash_and_the_index_are_looked_at(site: Site) -> None:
    commit(site, "a.log", b"kept")
    (site.root / "a.log").write_bytes(SECRET)
    git(site.root, "stash", "-q")
    (site.root / "a.log").write_bytes(SECRET + b" again")
    git(site.root, "add", "a.log")
    assert residue(site) == expected(site, "2 objects")


def test_packed_and_compressed_versions_are_looked_at(site: Site) -> None:
    commit(site, "a.log", SECRET + b"\n" + b"x\n" * 5000)
    commit(site, "a.log", SECRET + b"\n" + b"x\n" * 5001)
    commit(site, "a.log.gz", gzip.compress(SECRET))
    git(site.root, "gc", "-q", "--aggressive", "--prune=now")
    (site.root / "a.log.gz").unlink()
    assert residue(site) == expected(site, "3 objects")


def test_the_words_of_commits_and_tags_are_looked_at(site: Site) -> None:
    commit(site, "a.log", b"kept", message=SECRET.decode())
    git(site.root, "tag", "-a", "-m", SECRET.decode(), "v1")
    assert residue(site) == expected(site, "2 objects")


def test_objects_of_a_large_file_store_are_looked_at(site: Site) -> None:
    commit(site, "a.log", b"kept")
    store = site.root.parent / ".git/lfs/objects/ab/cd"
    store.mkdir(parents=True)
    (store / "abcd").write_bytes(SECRET)
    assert residue(site) == expected(site, "1 object")


def test_a_worktree_shares_the_history(site: Site, tmp_path: Path) -> None:
    commit(site, "a.log", SECRET)
    git(site.root, "worktree", "add", "-q", str(tmp_path / "other"))
    other = Site("logs", tmp_path / "other" / "root")
    assert residue(other) == expected(site, "1 object")


def test_several_large_objects_are_read_one_after_the_other(site: Site) -> None:
    for number in range(3):
        commit(site, "a.log", os.urandom(9_000_000) + SECRET * (number % 2))
    assert residue(site) == expected(site, "1 object")


def test_an_object_is_passed_over_when_it_is_not_read(site: Site) -> None:
    commit(site, "a.log", os.urandom(9_000_000))
    commit(site, "a.log", SECRET)
    files = [site.root / "a.log"]
    read = [it.read() for it in list(shadows([], site)) if isinstance(it, Shadow)]
    assert read == []
    sizes = [
        len(it.read()) if at % 2 else 0
        for at, it in enumerate(shadows(files, site))
        if isinstance(it, Shadow)
    ]
    assert len(sizes) == 4


def test_without_git_nothing_is_said_of_the_history(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(site, "a.log", SECRET)
    monkeypatch.setenv("PATH", "")
    (gap,) = (it for it in found(site) if isinstance(it, NotChecked))
    assert "git" in gap.why
    assert residue(site) == []


def test_too_much_history_is_said_not_to_be_looked_at(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(site, "a.log", SECRET)
    monkeypatch.setattr(_git, "LIMIT_BYTES", 10)
    (gap,) = (it for it in found(site) if isinstance(it, NotChecked))
    assert gap.where == f"git repository {site.root.parent}"


def test_a_broken_repository_is_said_not_to_be_looked_at(site: Site) -> None:
    commit(site, "a.log", SECRET)
    for path in (site.root.parent / ".git/objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"broken")
    assert [it for it in found(site) if isinstance(it, NotChecked)]


def test_a_repository_of_another_user_is_looked_at(site: Site) -> None:
    commit(site, "a.log", SECRET)
    if os.geteuid() == 0:  # Only root may give files away.
        for folder, _, names in os.walk(site.root.parent):
            for name in ("", *names):
                os.chown(os.path.join(folder, name), 1234, 1234)
    assert residue(site) == expected(site, "1 object")


def test_variables_of_an_outer_git_do_not_lead_elsewhere(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(site, "a.log", SECRET)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nowhere"))
    assert residue(site) == expected(site, "1 object")


def test_a_folder_without_a_repository_has_no_history(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    (root / ".git").mkdir(parents=True)
    (root / "a.log").write_bytes(SECRET)
    assert found(Site("logs", root)) == [Examined(files=0)]


def test_looking_changes_nothing_in_the_repository(site: Site) -> None:
    commit(site, "a.log", SECRET)
    folder = site.root.parent / ".git"

    def state() -> dict[Path, tuple[int, int, int]]:
        return {
            path: (status.st_mtime_ns, status.st_ctime_ns, status.st_size)
            for path in (folder, *folder.rglob("*"))
            for status in [path.stat()]
        }

    before = state()
    assert residue(site)
    assert state() == before
