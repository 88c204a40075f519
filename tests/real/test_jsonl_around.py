"""Files around the logs: links, companions, copies, histories."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from purge.adapter import ProblemCode
from purge.testing.case import ids, phrase
from purge.testing.snapshots import differences
from tests.support.jsonl_logs import TEXT, Logs, as_line, said

ONLY = "What nobody else ever said of the harbour master."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    folder = tmp_path / "root"
    folder.mkdir()
    return Logs(folder)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


# --- links (RUN-12) -------------------------------------------------------------------------------


def test_a_link_out_of_the_root_is_listed_and_never_written(logs: Logs) -> None:
    outside = logs.folder.parent / "outside.jsonl"
    outside.write_bytes(as_line(said("x", TEXT)))
    logs.write(said("y", TEXT))
    logs.path("logs/link.jsonl").symlink_to(outside)
    purged = logs.case().purge(phrase(TEXT))
    assert purged.found.ids == ("y",)
    assert [gap.where for gap in purged.found.not_checked] == ["logs/link.jsonl"]
    assert "logs/link.jsonl" in [gap.where for gap in purged.after.not_checked]
    assert outside.read_bytes() == as_line(said("x", TEXT))
    assert logs.bytes_of() == b""


def test_a_file_with_another_name_outside_the_site_is_left_and_said(logs: Logs) -> None:
    (written,) = logs.write(said("x", TEXT))
    os.link(logs.path(), logs.folder / "other-name.jsonl")
    purged = logs.case().purge(phrase(TEXT))
    assert [item.problem for item in purged.left] == [ProblemCode.UNSUPPORTED]
    assert [gap.where for gap in purged.after.not_checked] == ["logs/a.jsonl"]
    assert logs.bytes_of() == written


def test_a_file_whose_names_are_all_of_the_site_loses_the_record_under_each(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("kept", "a"))
    os.link(logs.path(), logs.path("logs/b.jsonl"))
    purged = logs.case().purge(phrase(TEXT))
    assert purged.left == ()
    assert purged.after.not_checked == ()
    assert logs.bytes_of() == logs.bytes_of("logs/b.jsonl") == as_line(said("kept", "a"))


def test_a_second_name_that_an_interrupted_purge_left_is_no_obstacle(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("kept", "a"))
    os.link(logs.path(), logs.path("logs/.purge-old99-1-1-0123456789ab-01234567"))
    purged = logs.case().purge(phrase(TEXT))
    assert purged.left == ()
    assert purged.after.not_checked == ()
    assert purged.after.residue == ()
    assert os.listdir(logs.path().parent) == ["a.jsonl"]


# --- companions (LOG-06) --------------------------------------------------------------------------


def test_a_folder_covers_the_companion_folders_of_its_logs(tmp_path: Path) -> None:
    logs = Logs(tmp_path, path=["projects", "projects/**/tool-results/*.txt", "history.jsonl"])
    names = [
        "projects/-srv-boat/s1.jsonl",
        "projects/-srv-boat/s1/subagents/agent-x.jsonl",
        "projects/-srv-boat/s1/subagents/agent-y.ndjson",
        "history.jsonl",
    ]
    for name in names:
        logs.write(said(name, TEXT), said("kept", "a"), name=name)
    logs.write_bytes(f"one\n{TEXT}\ntwo\n".encode(), "projects/-srv-boat/s1/tool-results/b1.txt")
    purged = logs.case().purge(phrase(TEXT))
    assert len(purged.found.matches) == 5
    assert purged.read_back.matches == ()
    for name in names:
        assert logs.bytes_of(name) == as_line(said("kept", "a"))
    assert logs.bytes_of("projects/-srv-boat/s1/tool-results/b1.txt") == b"one\ntwo\n"


# --- copies ---------------------------------------------------------------------------------------

OLD = as_line(said("x", TEXT)) + as_line(said("kept", "a"))
COPIES = {
    "logs/a.jsonl.bak": OLD,
    "logs/a.jsonl~": OLD,
    "logs/a.jsonl.1": OLD,
    "logs/a.jsonl.2.gz": gzip.compress(OLD),
    "logs/a.jsonl.3.zst": zstandard.compress(OLD),
    "logs/gone.jsonl.bak": OLD,
    "logs/.trash/a.jsonl": OLD,
    "logs/a.jsonl.reset.2026-05-01": OLD,
    "logs/.a.jsonl.swp": b"b0VIM 9.0\0\0\0\xff\xfe\0" + OLD.replace(b"\n", b"\0") + b"\0" * 100,
    "logs/a.jsonl.orig": OLD.decode().encode("utf-16"),
    "logs/a.jsonl.tmp": OLD[:44],
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_with_the_record_is_residue_without_a_date(logs: Logs, name: str) -> None:
    logs.write_bytes(OLD)
    copy = logs.write_bytes(COPIES[name], name)
    purged = logs.case().purge(phrase(TEXT))
    assert [item.where for item in purged.control.undated] == [name]
    assert [item.where for item in purged.after.undated] == [name]
    assert purged.after.fixable == ()
    assert purged.after.not_checked == ()
    assert copy.read_bytes() == COPIES[name]
    assert logs.bytes_of() == as_line(said("kept", "a"))


@pytest.mark.parametrize("name", [name for name in COPIES if "tmp" not in name])
def test_a_copy_is_found_by_the_id_of_its_record_too(logs: Logs, name: str) -> None:
    record = said("record-4711", ONLY)
    data = COPIES[name]
    if "gz" in name:
        data = gzip.compress(as_line(record))
    elif "zst" in name:
        data = zstandard.compress(as_line(record))
    elif "orig" in name:
        data = as_line(record).decode().encode("utf-16")
    else:
        data = data.replace(as_line(said("x", TEXT))[:-1], as_line(record)[:-1])
    logs.write(record, said("kept", "a"))
    logs.write_bytes(data, name)
    purged = logs.case().purge(ids("record-4711"))
    assert [item.where for item in purged.after.undated] == [name]


@pytest.mark.parametrize(
    "data",
    [
        as_line(said("kept", "a")),
        as_line(said("x", "other words under another name"))[:-1].replace(b'"x"', b'"y"'),
        as_line(said("xx", "the crab potting licence")),
        as_line({"id": "m", "text": f"RETRACTS: {TEXT}"}),
    ],
)
def test_a_copy_without_the_record_is_no_residue(logs: Logs, data: bytes) -> None:
    logs.write_bytes(OLD)
    logs.write_bytes(data, "logs/a.jsonl.bak")
    assert logs.case().purge(phrase(TEXT)).after.residue == ()


def test_words_that_live_records_say_as_well_prove_nothing_in_a_broken_copy(logs: Logs) -> None:
    common = "Good morning, what can be done for you today?"
    logs.write(said("record-4711", common), said("kept", common))
    logs.write_bytes(b'\0\0"' + common.encode() + b'"\0\0', "logs/.a.jsonl.swp")
    assert logs.case().purge(ids("record-4711")).after.residue == ()
    # What it alone has tells.
    logs.write(said("record-4711", ONLY), said("kept", common))
    logs.write_bytes(b'\0\0"' + ONLY.encode() + b'"\0\0', "logs/.a.jsonl.swp")
    purged = logs.case().purge(ids("record-4711"))
    assert [item.where for item in purged.after.residue] == ["logs/.a.jsonl.swp"]


@pytest.mark.parametrize("what", ["the id", "the text"])
def test_a_copy_in_another_form_is_found_by_its_bytes(logs: Logs, what: str) -> None:
    logs.write(said("record-4711", ONLY), said("kept", "a"))
    record = {"uuid": "record-4711"} if what == "the id" else {"words": ONLY}
    logs.write({"export": [record, {"uuid": "another"}]}, name="logs/a.jsonl.bak")
    purged = logs.case().purge(ids("record-4711"))
    assert [item.where for item in purged.after.residue] == ["logs/a.jsonl.bak"]


def test_a_copy_in_another_scope_is_no_residue(tmp_path: Path) -> None:
    logs = Logs(tmp_path, scope={"project": "cwd"})
    logs.write(said("x", TEXT, cwd="north"), said("y", TEXT, cwd="south"))
    logs.write(said("y", TEXT, cwd="south"), name="logs/a.jsonl.bak")
    assert logs.case().purge(phrase(TEXT, project="north")).after.residue == ()


def test_what_an_interrupted_purge_left_is_removed_by_the_next(logs: Logs) -> None:
    logs.write(said("kept", "a"))
    left = logs.write_bytes(OLD, "logs/.purge-old99-1-1-0123456789ab-01234567")
    case = logs.case()
    before = case.snapshot()
    (item,) = case.residue(phrase(TEXT)).fixable
    assert differences(before, case.now()) == []
    assert case.sanitize([item]) == ()
    assert not left.exists()
    assert case.sanitize([item]) == ()
    assert case.residue(phrase(TEXT)).residue == ()


def test_nothing_but_such_files_is_ever_sanitized(logs: Logs) -> None:
    logs.write_bytes(OLD, "logs/a.jsonl.bak")
    logs.write(said("kept", "a"))
    (item,) = logs.case().residue(phrase(TEXT)).residue
    forged = type(item)(item.where, item.why, fixable=True, handle={"file": "logs/a.jsonl.bak"})
    assert [gap.problem for gap in logs.case().sanitize([forged])] == [ProblemCode.HELD_OPEN]
    assert logs.bytes_of("logs/a.jsonl.bak") == OLD


# --- histories ------------------------------------------------------------------------------------


def test_a_git_history_is_residue_without_a_date(logs: Logs) -> None:
    logs.write_bytes(OLD)
    git(logs.folder.parent, "init", "-q")
    git(logs.folder.parent, "add", "root")
    git(logs.folder.parent, "commit", "-q", "-m", "logs")
    purged = logs.case().purge(phrase(TEXT))
    (item,) = purged.after.undated
    assert item.where == f"git repository {logs.folder.parent}"
    assert "1 object" in item.why
    git(logs.folder.parent, "checkout", "-q", "--orphan", "new")
    git(logs.folder.parent, "commit", "-q", "-a", "-m", "anew")
    git(logs.folder.parent, "branch", "-q", "-D", "master")
    assert logs.case().residue(phrase(TEXT)).undated  # No branch leads there, and it is there.
    git(logs.folder.parent, "reflog", "expire", "--expire=now", "--all")
    git(logs.folder.parent, "gc", "-q", "--prune=now")
    assert logs.case().residue(phrase(TEXT)).residue == ()


def test_pictures_in_a_history_are_looked_at_as_bytes(logs: Logs) -> None:
    logs.write(said("record-4711", ONLY), said("kept", "a"))
    git(logs.folder, "init", "-q")
    (logs.folder / "picture.png").write_bytes(b"\x89PNG\0\0" + os.urandom(1000))
    (logs.folder / "sound.bin").write_bytes(b"\0\0" + os.urandom(100) + ONLY.encode() + b"\0")
    git(logs.folder, "add", "picture.png", "sound.bin")
    purged = logs.case().purge(ids("record-4711"))
    assert ["1 object" in item.why for item in purged.after.undated] == [True]


# --- compressed logs ------------------------------------------------------------------------------


def test_a_compressed_log_keeps_its_name_time_and_members(logs: Logs) -> None:
    with logs.write_bytes(b"", "logs/a.jsonl.gz").open("wb") as out:
        for part in (OLD, as_line(said("z", "b")), as_line(said("x", TEXT))):
            with gzip.GzipFile("chat.jsonl", "wb", 9, out, 1234567890) as member:
                member.write(part)
    logs.write(said("x", TEXT), name="logs/wrongly-named.gz.jsonl")
    assert logs.case().purge(phrase(TEXT)).read_back.matches == ()
    data = logs.bytes_of("logs/a.jsonl.gz")
    assert gzip.decompress(data) == as_line(said("kept", "a")) + as_line(said("z", "b"))
    assert data.count(b"\x1f\x8b\x08\x08\xd2\x02\x96\x49\x02") == 2
    assert data.count(b"chat.jsonl\0") == 2


def test_a_log_is_taken_for_what_its_bytes_say_not_its_name(logs: Logs) -> None:
    logs.write_bytes(gzip.compress(OLD), "logs/a.jsonl")
    logs.write_bytes(OLD, "logs/b.jsonl.gz")
    assert logs.case().purge(phrase(TEXT)).read_back.matches == ()
    assert gzip.decompress(logs.bytes_of("logs/a.jsonl")) == as_line(said("kept", "a"))
    assert logs.bytes_of("logs/b.jsonl.gz") == as_line(said("kept", "a"))


def test_a_line_over_the_border_of_two_members_goes_whole(logs: Logs) -> None:
    data = gzip.compress(OLD[:12]) + gzip.compress(OLD[12:20]) + gzip.compress(OLD[20:])
    logs.write_bytes(data, "logs/a.jsonl.gz")
    assert logs.case().purge(phrase(TEXT)).read_back.matches == ()
    assert gzip.decompress(logs.bytes_of("logs/a.jsonl.gz")) == as_line(said("kept", "a"))


def test_a_damaged_compressed_log_is_said_and_left_as_it_is(logs: Logs) -> None:
    data = gzip.compress(OLD) + gzip.compress(as_line(said("y", TEXT)))[:-4]
    logs.write_bytes(data, "logs/a.jsonl.gz")
    purged = logs.case().purge(phrase(TEXT))
    assert sorted(purged.found.ids) == ["x", "y"]
    assert {gap.problem for gap in purged.found.not_checked} == {ProblemCode.CORRUPT}
    assert {item.problem for item in purged.left} == {ProblemCode.CORRUPT}
    assert {gap.problem for gap in purged.after.not_checked} == {ProblemCode.CORRUPT}
    assert logs.bytes_of("logs/a.jsonl.gz") == data


@pytest.mark.parametrize("name", ["a.jsonl.bz2", "a.jsonl.xz"])
def test_what_is_only_read_is_found_and_left(logs: Logs, name: str) -> None:
    import bz2
    import lzma

    data = bz2.compress(OLD) if name.endswith("bz2") else lzma.compress(OLD)
    path = logs.write_bytes(data, f"logs/{name}")
    single = Logs(logs.folder, path=f"logs/{name}")
    purged = single.case().purge(phrase(TEXT))
    assert purged.found.ids == ("x",)
    assert [item.problem for item in purged.left] == [ProblemCode.UNSUPPORTED]
    assert path.read_bytes() == data


def test_an_archive_among_the_logs_is_said(logs: Logs) -> None:
    logs.write_bytes(b"PK\x03\x04" + OLD, "logs/a.jsonl")
    found = logs.case().find(phrase(TEXT))
    assert found.matches == ()
    assert [gap.problem for gap in found.not_checked] == [ProblemCode.UNSUPPORTED]


# --- check ----------------------------------------------------------------------------------------


def faults(logs: Logs, action: str = "delete") -> list[str]:
    from purge.adapter import Action

    return [item.sentence for item in logs.case(Action(action)).check() if not item.ok]


def test_check_finds_no_fault_where_there_is_none(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("y", "b"))
    statements = logs.case().check()
    assert all(statement.ok for statement in statements)
    assert "1 file (1 plain)" in statements[0].sentence
    assert "2 records" in statements[0].sentence


def test_check_says_what_is_wrong_with_the_fields(tmp_path: Path) -> None:
    logs = Logs(tmp_path, id="uuid", subject="person", text=[], scope={"project": "cwd"})
    logs.write(said("x", TEXT), said("y", "b", cwd="north"))
    said_of = " ".join(faults(logs, "blank"))
    assert "2 of 2 records" in said_of
    assert "'subject'" in said_of
    assert "'text'" in said_of
    assert "project" not in said_of


def test_check_warns_of_a_field_that_is_no_id(tmp_path: Path) -> None:
    logs = Logs(tmp_path, id="session")
    logs.write(*(said(str(number), f"words {number}", session="s1") for number in range(20)))
    assert any("id" in sentence for sentence in faults(logs))
    resumed = Logs(tmp_path)
    resumed.write(*(said(str(at % 10), f"words {at}") for at in range(20)))
    assert faults(resumed) == []


def test_check_says_what_would_be_left_alone(logs: Logs) -> None:
    from purge.testing.breakages import held_open

    logs.write(said("x", TEXT))
    logs.write_bytes(as_line(said("y", "b")).decode().encode("utf-16"), "logs/wide.jsonl")
    logs.write(said("z", "c"), name="logs/linked.jsonl")
    os.link(logs.path("logs/linked.jsonl"), logs.folder / "other")
    logs.path("logs/out.jsonl").symlink_to("/proc/self/maps")
    with held_open([logs.path()]):
        found = faults(logs)
    for part in ("1 file", "logs/wide.jsonl", "logs/linked.jsonl", "logs/out.jsonl"):
        assert any(part in sentence for sentence in found)
    assert len(found) == 4


def test_check_counts_lines_that_are_no_json_and_faults_damaged_ones(logs: Logs) -> None:
    logs.write(said("x", "a"), b"no JSON\n", b"\xff\xfe\0x\n")
    statements = logs.case().check()
    assert any("1 line." in it.sentence and it.ok for it in statements)
    assert any("Damaged" in it.sentence and not it.ok for it in statements)


def test_check_tells_of_files_that_are_no_logs_by_their_names(logs: Logs) -> None:
    logs.write(said("x", "a"))
    logs.write_bytes(TEXT.encode(), "logs/a/tool-results/1.txt")
    logs.write_bytes(TEXT.encode(), f"logs/a/named.{TEXT}")
    (sentence,) = [it.sentence for it in logs.case().check() if "Other files" in it.sentence]
    assert "2 (" in sentence
    assert "1 .txt" in sentence
    assert TEXT not in sentence


def test_without_the_driver_a_zstd_log_is_said_and_left(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.write(said("x", TEXT))
    packed = zstandard.compress(OLD)
    path = logs.write_bytes(packed, "logs/b.jsonl.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    purged = logs.case().purge(phrase(TEXT))
    assert purged.found.ids == ("x",)
    assert [gap.problem for gap in purged.found.not_checked] == [ProblemCode.UNSUPPORTED]
    assert "jsonl" in purged.found.not_checked[0].why
    assert [gap.where for gap in purged.after.not_checked] == ["logs/b.jsonl.zst"]
    assert any("logs/b.jsonl.zst" in sentence for sentence in faults(logs))
    assert path.read_bytes() == packed
    assert logs.bytes_of() == b""


def test_check_tells_of_a_history(logs: Logs) -> None:
    logs.write(said("x", "a"))
    git(logs.folder, "init", "-q")
    assert any("git repository" in it.sentence and it.ok for it in logs.case().check())


def test_no_statement_shows_a_text(logs: Logs) -> None:
    logs.write({"id": "tilda@example.org", "text": TEXT, TEXT: json.dumps(TEXT)})
    said_of = " ".join(statement.sentence for statement in logs.case().check())
    assert TEXT not in said_of
    assert "tilda" not in said_of
