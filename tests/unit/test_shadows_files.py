"""Copies that lie beside files, in trash folders, and with processes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard

from purge.adapter import Examined, NotChecked, ProblemCode, Residue, Site
from purge_adapters import _shadows
from purge_adapters._shadows import Shadow, is_variant, look_through, shadows

SECRET = b"the crab pot licence"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, whose trash may be looked at."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return folder


@pytest.fixture
def site(tmp_path: Path) -> Site:
    root = tmp_path / "root"
    (root / "notes").mkdir(parents=True)
    (root / "notes/a.md").write_bytes(b"kept")
    return Site("notes", root)


def plant(site: Site, name: str, data: bytes = SECRET) -> Path:
    path = site.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def look(site: Site, *, covered: bool = True) -> list[Shadow | NotChecked]:
    files = [site.root / "notes/a.md"]
    if covered:
        return list(shadows(files, site, folders=[site.root / "notes"], suffixes=[".md"]))
    return list(shadows(files, site))


def places(site: Site, *, covered: bool = True) -> list[str]:
    return [item.where for item in look(site, covered=covered) if isinstance(item, Shadow)]


COPIES = [
    "a.md~",
    "a.md.bak",
    "a.md.orig",
    "a.md.tmp",
    "a.md.old",
    "a.md.1",
    "a.md-20260501",
    "a.md.save",
    ".a.md.swp",
    ".a.md.swo",
    "#a.md#",
    ".#a.md.backup",
    "a.deleted.md",
    "a.md.deleted.2026-05-01",
    "a (copy).md",
    "a.sync-conflict-20260501-120000-ABCDEFG.md",
    "Copy of a.md",
    "~$a.md",
]


@pytest.mark.parametrize("covered", [True, False])
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_beside_the_file_is_a_shadow(site: Site, name: str, covered: bool) -> None:
    plant(site, f"notes/{name}")
    (shadow,) = look(site, covered=covered)
    assert isinstance(shadow, Shadow)
    assert (shadow.where, shadow.read(), shadow.fixable) == (f"notes/{name}", SECRET, False)


PACKED = {
    "a.md.1.gz": gzip.compress(SECRET[:9]) + gzip.compress(SECRET[9:]) + b"\0" * 100,
    "a.md.2.zst": zstandard.compress(SECRET[:9]) + zstandard.compress(SECRET[9:]),
    "a.md.3.bz2": bz2.compress(SECRET[:9]) + bz2.compress(SECRET[9:]),
    "a.md.4.xz": lzma.compress(SECRET[:9]) + b"\0\0\0\0" + lzma.compress(SECRET[9:]),
    "a.md.gz": gzip.compress(SECRET),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_compressed_copy_is_read_out_of_its_compression(site: Site, name: str) -> None:
    plant(site, f"notes/{name}", PACKED[name])
    (shadow,) = look(site)
    assert isinstance(shadow, Shadow)
    assert shadow.read() == SECRET


@pytest.mark.parametrize("name", ["ab.md", "a.mdx", "b.txt", "a.mdown", "aa.md.bak2x", "data.md5"])
def test_another_file_is_no_shadow(site: Site, name: str) -> None:
    plant(site, f"notes/{name}")
    assert places(site, covered=False) == []


def test_the_backup_of_a_file_that_is_no_more_is_a_shadow_in_a_covered_folder(site: Site) -> None:
    plant(site, "notes/gone.md~")
    plant(site, "notes/below/gone-too.md.bak")
    plant(site, "notes/below/other.txt")
    assert places(site) == ["notes/gone.md~", "notes/below/gone-too.md.bak"]
    assert places(site, covered=False) == []


def test_the_plain_form_of_a_compressed_file_is_a_shadow() -> None:
    assert is_variant("a.jsonl", "a.jsonl.gz")
    assert is_variant("a.jsonl.zst", "a.jsonl.gz")
    assert not is_variant("a.jsonl.gz", "a.jsonl.gz")


@pytest.mark.parametrize("name", [".talk.log.bak", ".talk.log~", "#.talk.log#", "..talk.log.swp"])
def test_the_copies_of_a_hidden_file_are_known(name: str) -> None:
    assert is_variant(name, ".talk.log")
    assert not is_variant("talk.log.bak", ".talk.log")


@pytest.mark.parametrize("name", ["a.md.gpg", "a.md.age", "a.md.zip", "a.md.7z"])
def test_a_copy_that_cannot_be_read_is_said(site: Site, name: str) -> None:
    plant(site, f"notes/{name}")
    assert [item.problem for item in look(site) if isinstance(item, NotChecked)] == [
        ProblemCode.UNSUPPORTED
    ]


def test_a_link_beside_the_file_is_said_unless_it_leads_to_a_file_of_the_site(site: Site) -> None:
    elsewhere = site.root.parent / "elsewhere"
    elsewhere.write_bytes(SECRET)
    (site.root / "notes/a.md.bak").symlink_to(elsewhere)
    (site.root / "notes/a.md.1").symlink_to("a.md")
    (site.root / "notes/.#a.md").symlink_to("somebody@host.4711")
    (gap,) = look(site)
    assert isinstance(gap, NotChecked)
    assert gap.where == "notes/a.md.bak"


@pytest.mark.parametrize(
    "place", ["notes/.trash", ".trash", "notes/.Trash-1000/files", "Trash", "notes/.stversions"]
)
def test_a_deleted_copy_in_a_trash_folder_is_a_shadow(site: Site, place: str) -> None:
    plant(site, f"{place}/a.md")
    plant(site, f"{place}/sub/another 1.md")
    plant(site, f"{place}/picture.png")
    assert places(site) == [f"{place}/a.md", f"{place}/sub/another 1.md"]
    assert places(site, covered=False) == [f"{place}/a.md"]


def test_a_trash_folder_outside_the_root_is_none_of_the_sites(site: Site) -> None:
    plant(site, "../.trash/a.md")
    assert places(site) == []


def test_the_desktops_trash_is_asked_where_its_files_come_from(site: Site, home: Path) -> None:
    trash = home / ".local/share/Trash"
    for name, was in {
        "a.md": site.root / "notes/a.md",
        "b.2.md": site.root / "notes/below/b ä.md",
        "c.md": site.root / "other/c.md",
        "folder": site.root / "notes/folder",
    }.items():
        quoted = str(was).replace("ä", "%C3%A4").replace(" ", "%20")
        info = trash / "info" / f"{name}.trashinfo"
        info.parent.mkdir(parents=True, exist_ok=True)
        info.write_text(f"[Trash Info]\nPath={quoted}\nDeletionDate=2026-05-01T12:00:00\n")
    (trash / "files/folder").mkdir(parents=True)
    for name in ("a.md", "b.2.md", "c.md", "folder/d.md", "folder/e.png"):
        (trash / "files" / name).write_bytes(SECRET)
    found = sorted(Path(place).name for place in places(site))
    assert found == ["a.md", "b.2.md", "d.md"]


@contextmanager
def deleted_and_held(path: Path, *, delete: bool = True) -> Iterator[int]:
    source = "import sys; held = open(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", source, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        if delete:
            path.unlink()
        yield process.pid
        process.stdin.close()


@pytest.mark.parametrize("name", ["a.md", "a.md.bak", "gone.md", "below/gone.md.1.gz"])
def test_a_deleted_file_that_a_process_holds_is_a_shadow(site: Site, name: str) -> None:
    path = plant(site, f"notes/{name}", gzip.compress(SECRET) if name.endswith("gz") else SECRET)
    with deleted_and_held(path) as pid:
        if name == "a.md":
            plant(site, "notes/a.md", b"kept")
        (shadow,) = look(site)
        assert isinstance(shadow, Shadow)
        assert shadow.where == f"notes/{name} (process {pid})"
        assert shadow.read() == SECRET
    assert places(site) == []


def test_a_file_that_is_merely_open_is_no_shadow(site: Site) -> None:
    with deleted_and_held(site.root / "notes/a.md", delete=False):
        assert places(site) == []


def test_a_deleted_file_of_others_is_no_shadow(site: Site) -> None:
    path = plant(site, "elsewhere/a.md")
    with deleted_and_held(path):
        assert places(site) == []


def test_what_others_hold_is_said_to_be_unknown_where_it_is(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_shadows, "unseen_processes", lambda: True)
    assert look(site) == []  # The kernel told, when the file was replaced.
    monkeypatch.setattr(_shadows, "leases_work", lambda _: False)
    (gap,) = look(site)
    assert isinstance(gap, NotChecked)
    assert gap.where == "processes of other users"


def test_what_an_interrupted_replacement_left_can_be_removed(site: Site) -> None:
    left = plant(site, "notes/.purge-old17-1-1-0123456789ab-01234567")
    plant(site, "notes/.purge-of-someone")
    found = {item.where: item for item in look(site) if isinstance(item, Shadow)}
    assert found["notes/.purge-of-someone"].fixable is False
    shadow = found["notes/" + left.name]
    assert (shadow.fixable, shadow.path, shadow.read()) == (True, left, SECRET)


def test_looking_through_yields_residue_gaps_and_how_much_was_read(site: Site) -> None:
    plant(site, "notes/a.md.bak")
    plant(site, "notes/a.md.orig", b"nothing")
    plant(site, "notes/a.md.1.gz", gzip.compress(SECRET)[:-6])
    plant(site, "notes/a.md.zip")
    found = list(look_through(look(site), lambda shadow: SECRET in shadow.read()))
    assert [item.where for item in found if isinstance(item, Residue)] == ["notes/a.md.bak"]
    assert {item.where: item.problem for item in found if isinstance(item, NotChecked)} == {
        "notes/a.md.1.gz": ProblemCode.CORRUPT,
        "notes/a.md.zip": ProblemCode.UNSUPPORTED,
    }
    assert [item.files for item in found if isinstance(item, Examined)] == [3]


def test_looking_changes_no_time(site: Site) -> None:
    path = plant(site, "notes/a.md.bak")
    os.utime(path, ns=(1_000_000_000, 2_000_000_000))
    before = path.stat()
    list(look_through(look(site), lambda shadow: SECRET in shadow.read()))
    assert path.stat() == before
