"""Formats of several kinds of files: how the members work together, and what a user can say."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Examined, Match, NotChecked, ProblemCode
from purge.errors import Permanent
from purge.shapes import ShapeFault, validate
from purge.targets import Target, TargetKind, Targets
from purge_adapters._bytes import BLOCK
from purge_adapters.files import FilesSettings
from tests.real.format_folders import PHRASE, Folder, named, phrase

MADE_UP: dict[str, Any] = {
    "path": "agent",
    "format": {
        "members": [
            {"adapter": "jsonl", "path": "log/*.jsonl", "id": "id", "scope": {"team": "group"}},
            {"adapter": "markdown", "path": "**/*.md", "record": "section", "id": "id"},
            {
                "adapter": "lines",
                "path": "talk.txt",
                "id": "id",
                "kinds": {"turn": {"begins": r"(?P<id>t\d+) (?P<who>\w+): "}},
            },
        ]
    },
}
FILES: dict[str, str | bytes] = {
    "agent/log/1.jsonl": json.dumps({"id": "l1", "group": "north", "text": PHRASE}) + "\n"
    '{"id":"l2","group":"south","text":"ok"}\n',
    "agent/notes/a.md": f"## One\nid: n1\n\n{PHRASE}\n\n## Two\nid: n2\n\nkept\n",
    "agent/talk.txt": f"t1 ann: hello\nt2 bo: {PHRASE},\n  she says\nt3 ann: ok\n",
    "agent/readme": "what this is\n",
}


def made_up(root: Path, **site: Any) -> Folder:
    return Folder(root, FILES, MADE_UP, **site)


def test_each_member_finds_and_removes_its_own(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    matches = memory.purge(phrase())
    assert {(match.id, match.part.split()[0], match.where) for match in matches} == {
        ("l1", "jsonl", "agent/log/1.jsonl, line 1"),
        ("n1", "markdown", "agent/notes/a.md, line 1"),
        ("t2", "lines", "agent/talk.txt, line 2"),
    }
    assert memory.text("agent/log/1.jsonl") == '{"id":"l2","group":"south","text":"ok"}\n'
    assert memory.text("agent/notes/a.md") == "## Two\nid: n2\n\nkept\n"
    assert memory.text("agent/talk.txt") == "t1 ann: hello\nt3 ann: ok\n"
    assert memory.residue(phrase(), matches) == []


def test_records_are_known_by_the_ids_of_their_members(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    assert {match.id for match in memory.find(named("l2", "n2", "t3"))} == {"l2", "n2", "t3"}


def test_a_member_may_map_other_fields_than_the_site(tmp_path: Path) -> None:
    memory = made_up(tmp_path, scope={"team": "team"})
    south = Targets([Target(1, TargetKind.PHRASE, PHRASE, None, {"team": "south"})])
    hits = {match.id: match.hits[0].scope_unknown for match in memory.find(south)}
    assert hits == {"n1": True, "t2": True}


def test_the_footprint_is_what_the_members_name(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    assert set(memory.open().footprint()) == {
        tmp_path / "agent" / "log",
        tmp_path / "agent",
        tmp_path / "agent" / "talk.txt",
    }


def test_two_members_with_one_file_are_a_fault(tmp_path: Path) -> None:
    settings = json.loads(json.dumps(MADE_UP))
    settings["format"]["members"].append({"adapter": "lines", "path": "notes/*"})
    memory = Folder(tmp_path, FILES, settings)
    said = "two members of its format (markdown and lines 2) both have agent/notes/a.md"
    assert any(said in sentence for sentence in memory.said(ok=False))
    with pytest.raises(Permanent, match="both have"):
        memory.find(phrase())


def test_a_site_that_is_not_there_raises(tmp_path: Path) -> None:
    memory = Folder(tmp_path, {}, MADE_UP)
    with pytest.raises(Permanent) as raised:
        memory.find(phrase())
    assert raised.value.problem == ProblemCode.UNREACHABLE
    assert memory.said(ok=False) != []


def test_a_member_of_which_nothing_is_there_is_no_fault(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    (tmp_path / "agent/talk.txt").unlink()
    (tmp_path / "agent/log/1.jsonl").unlink()
    (tmp_path / "agent/log").rmdir()
    assert [match.id for match in memory.purge(phrase())] == ["n1"]
    assert memory.said(ok=False) == []


def test_a_copy_of_the_last_file_of_a_member_is_still_seen(tmp_path: Path) -> None:
    settings = {"path": "out", "format": {"members": [{"adapter": "lines", "path": "**/*.txt"}]}}
    files = {"out/a.txt": f"{PHRASE}\n", "out/a.txt.bak": f"{PHRASE}\n"}
    memory = Folder(tmp_path, files, settings)
    matches = memory.purge(phrase())
    assert not (tmp_path / "out/a.txt").exists()
    assert [item.where for item in memory.residue(phrase(), matches)] == ["out/a.txt.bak"]


def test_a_file_beside_the_members_is_searched_in_every_form(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    memory.write("agent/export.json", json.dumps({"said": PHRASE.replace("k", "\u212a")}))
    found = list(memory.open().find(phrase()))
    gaps = [item for item in found if isinstance(item, NotChecked)]
    assert [(gap.where, gap.problem) for gap in gaps] == [
        ("agent/export.json", ProblemCode.UNSUPPORTED)
    ]
    assert PHRASE not in gaps[0].why
    assert sum(item.files for item in found if isinstance(item, Examined)) == 5


def test_others_can_be_narrowed(tmp_path: Path) -> None:
    settings = json.loads(json.dumps(MADE_UP))
    settings["format"]["others"] = "log/**"
    memory = Folder(tmp_path, {**FILES, "agent/export.json": PHRASE}, settings)
    assert memory.look(phrase())[1] == []


def test_one_file_of_a_format_can_be_named_alone(tmp_path: Path) -> None:
    settings = {**MADE_UP, "path": "agent/talk.txt"}
    memory = Folder(tmp_path, FILES, settings)
    assert [match.id for match in memory.purge(phrase())] == ["t2"]
    memory.settings = {**MADE_UP, "path": "agent/readme"}
    with pytest.raises(Permanent, match="no member of its format has files of that name"):
        memory.find(phrase())


def test_a_match_of_another_description_is_not_taken(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    matches = memory.find(phrase())
    memory.settings = {
        "path": "agent",
        "format": {"members": [{"adapter": "markdown", "path": "**/*.md"}]},
    }
    with pytest.raises(Permanent, match="another description"):
        memory.remove([match for match in matches if match.id == "l1"])


@pytest.mark.parametrize(
    ("format", "said"),
    [
        ("obsidan", "there is no format 'obsidan'. Did you mean 'obsidian'?"),
        ({"members": []}, "members: may not be empty"),
        ({"members": [{"path": "x"}]}, "members[0].adapter: must be one of: json, jsonl, lines"),
        (
            {"members": [{"adapter": "markdwn", "path": "x"}]},
            "members[0].adapter: must be one of: json, jsonl, lines, markdown. Did you mean",
        ),
        ({"members": [{"adapter": "lines"}]}, "members[0].path: must be text"),
        ({"members": [{"adapter": "lines", "path": "/etc"}]}, "may not leave it"),
        ({"members": [{"adapter": "lines", "path": "../x"}]}, "may not leave it"),
        (
            {"members": [{"adapter": "markdown", "path": "x", "recrd": "file"}]},
            "members[0].recrd: unknown key. Did you mean 'record'?",
        ),
        ({"members": [{"adapter": "lines", "path": "x"}], "other": "x"}, "format.other: unknown"),
        (
            {"members": [{"adapter": "lines", "path": "x", "kinds": {"a": {"each": "("}}}]},
            "kinds.a.each: is no regular expression",
        ),
    ],
)
def test_a_wrong_format_is_said_in_one_sentence(format: Any, said: str) -> None:
    with pytest.raises(ShapeFault) as raised:
        validate(FilesSettings, {"path": "x", "format": format})
    assert said in str(raised.value)


# --- Claude Code as a folder ---------------------------------------------------------------------

SESSION = "-home-ilse-dock/6a0c1f5e-1111-4222-8333-944444444444"


def claude_code(root: Path, adapter: str) -> Folder:
    first = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"content": "hello"}}
    files: dict[str, str | bytes] = {
        f"{SESSION}.jsonl": json.dumps(first) + "\n",
        f"{SESSION}/tool-results/b77.txt": f"a long output\n{PHRASE}\nand its end\n",
        f"{SESSION}/tool-results/b78.txt": "another\n",
        "history.jsonl": json.dumps({"display": f"remember: {PHRASE}"}) + "\n",
        "-home-ilse-dock/memory/MEMORY.md": "- [key](key.md)\n- [rest](rest.md)\n",
        "-home-ilse-dock/memory/key.md": f"---\nname: key\n---\n{PHRASE}\n",
        "-home-ilse-dock/memory/rest.md": "---\nname: rest\n---\nRest.\n",
    }
    return Folder(root, files, {"path": ".", "format": "claude-code"}, adapter)


@pytest.mark.parametrize("adapter", ["files", "jsonl"])
def test_the_texts_beside_the_sessions_are_members_too(tmp_path: Path, adapter: str) -> None:
    sessions = claude_code(tmp_path, adapter)
    matches = sessions.purge(phrase())
    assert sorted(match.where for match in matches) == [
        "-home-ilse-dock/6a0c1f5e-1111-4222-8333-944444444444/tool-results/b77.txt",
        "-home-ilse-dock/memory/key.md",
        "history.jsonl, line 1",
    ]
    assert not (tmp_path / SESSION / "tool-results/b77.txt").exists()
    assert sessions.text(f"{SESSION}/tool-results/b78.txt") == "another\n"
    assert sessions.text("-home-ilse-dock/memory/MEMORY.md") == "- [rest](rest.md)\n"
    assert sessions.residue(phrase(), matches) == []


def test_a_format_of_json_alone_may_stand_on_a_site_of_lines(tmp_path: Path) -> None:
    entity = {"type": "entity", "name": "ilse", "entityType": "person", "observations": [PHRASE]}
    line = json.dumps(entity) + "\n"
    settings = {"path": ".", "format": "mcp-memory"}
    memory = Folder(tmp_path, {"memory.jsonl": line, "x.txt": "x"}, settings, "jsonl")
    found = [item for item in memory.open().find(phrase()) if isinstance(item, Match)]
    assert [item.where.split(",")[0] for item in found] == ["memory.jsonl"]


# --- what belongs to no member -------------------------------------------------------------------


def zipped(root: Path, name: str, text: str) -> None:
    with zipfile.ZipFile(root / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:t>{text}</w:t>")


def test_archives_beside_the_members_are_opened(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    zipped(tmp_path, "agent/letter.docx", PHRASE)
    zipped(tmp_path, "agent/other.zip", "nothing of that")
    memory.write("agent/old.gz", gzip.compress(PHRASE.encode()))
    memory.write("agent/closed.7z", b"7z\xbc\xaf\x27\x1c and so on")
    memory.write("agent/broken.zip", b"PK\x03\x04 and no more")
    gaps = {gap.where: gap.problem for gap in memory.look(phrase())[1]}
    assert gaps == {
        "agent/letter.docx": ProblemCode.UNSUPPORTED,
        "agent/old.gz": ProblemCode.UNSUPPORTED,
        "agent/closed.7z": ProblemCode.UNSUPPORTED,
        "agent/broken.zip": ProblemCode.CORRUPT,
    }


def test_a_phrase_over_a_border_between_two_pieces_is_seen(tmp_path: Path) -> None:
    memory = made_up(tmp_path)
    memory.write("agent/big.dat", b"." * (BLOCK - 9) + b" " + PHRASE.encode() + b" ")
    memory.write("agent/big.gz", gzip.compress(b"." * (1024 * 1024 - 9) + b" " + PHRASE.encode()))
    assert {gap.where for gap in memory.look(phrase())[1]} == {"agent/big.dat", "agent/big.gz"}


def test_a_member_may_blank_where_the_site_deletes(tmp_path: Path) -> None:
    settings = json.loads(json.dumps(MADE_UP))
    settings["format"]["members"][2]["action"] = "blank"
    memory = Folder(tmp_path, FILES, settings)
    assert memory.remove(memory.find(phrase())) == []
    assert memory.text("agent/notes/a.md") == "## Two\nid: n2\n\nkept\n"
    assert "t2 bo: [purged 01JREQUEST 2026-11-30]\n" in memory.text("agent/talk.txt")
    assert memory.find(phrase()) == []
    settings["format"]["members"][2]["action"] = "burn"
    with pytest.raises(ShapeFault, match=r"members\[2\].action: must be one of: delete, blank"):
        memory.open()


def test_a_copy_of_the_files_is_looked_at_by_itself(tmp_path: Path) -> None:
    original = tmp_path / "original"
    memory = made_up(original)
    copy = tmp_path / "copy"
    shutil.copytree(original, copy / original.relative_to("/"))
    memory.site = memory.site.copied_to(copy)
    matches = memory.find(phrase())
    assert {match.id for match in matches} == {"l1", "n1", "t2"}
    assert memory.remove(matches) == []
    assert memory.find(phrase()) == []
    for name, content in FILES.items():
        assert (original / name).read_text() == content
    changed = (copy / original.relative_to("/") / "agent/talk.txt").read_text()
    assert changed == "t1 ann: hello\nt3 ann: ok\n"
