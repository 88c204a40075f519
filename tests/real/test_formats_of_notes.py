"""The presets for notes: memory banks and Obsidian vaults."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, Marker, ProblemCode, Readability
from tests.real.format_folders import PHRASE, Folder, named, phrase

# --- memory banks --------------------------------------------------------------------------------

BANK: dict[str, str | bytes] = {
    "MEMORY.md": (
        "# Index\n\n"
        f"- [Sluice](topics/sluice.md) - {PHRASE}\n"
        "- [Ferry card](topics/ferry.md)\n"
        "- [Moorings](topics/moorings.md)\n"
        "- [Lost](topics/lost.md) - gone for a year\n"
    ),
    "topics/sluice.md": (
        "---\nname: sluice\ndescription: where the key is\nmetadata:\n  from: session-9\n---\n\n"
        f"{PHRASE}.\n\n**Why:** asked in April.\nSee [[moorings]].\n"
    ),
    "topics/ferry.md": (
        "---\nname: ferry\nderived_from: [topics/sluice.md, session-9]\n---\ncafé Łucja 8812-ZT\n"
    ),
    "topics/moorings.md": (
        "| mooring | note |\n|---|---|\n| 8 | free |\n| 9 | locker opens with 3306 |\n\n"
        "Moor with care.\n"
    ),
    "bank/now.md": (
        "# Now\n\n- Ilse hides the sluice\n  key behind the\n  third barrel\n\n"
        f"## Then\n- {PHRASE}s are many\n"
    ),
    "bank/sum.md": f"# So far\n\nThe key is known ({PHRASE}), the card is known.\n\nOn we go.\n",
    "CLAUDE.md": "@MEMORY.md\n\n# Rules\n- Be kind.\n",
}


def bank(root: Path, **site: Any) -> Folder:
    return Folder(root, BANK, {"path": ".", "format": "memory-bank"}, **site)


def test_a_memory_goes_with_its_line_in_the_index(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    matches = memory.purge(phrase())
    assert sorted((match.where, match.pieces) for match in matches) == [
        ("MEMORY.md, line 3", 1),
        ("bank/now.md, line 3", 1),
        ("bank/sum.md, line 3", 1),
        ("topics/sluice.md", 1),
    ]
    assert not (tmp_path / "topics/sluice.md").exists()
    lines = str(BANK["MEMORY.md"]).splitlines(keepends=True)
    assert memory.text("MEMORY.md") == "".join([*lines[:2], *lines[3:]])
    assert memory.text("bank/sum.md") == "# So far\n\nOn we go.\n"
    assert memory.text("bank/now.md") == f"# Now\n\n## Then\n- {PHRASE}s are many\n"
    for name in ("topics/ferry.md", "topics/moorings.md", "CLAUDE.md"):
        assert memory.text(name) == BANK[name]


@pytest.mark.parametrize(
    "line",
    [
        "- [the card](topics/ferry.md)\n",
        "- [the card](<topics/ferry.md>)\n",
        '- [the card](./topics/ferry.md#card "how it is")\n',
        "* [[ferry]]\n",
        "1. [[topics/ferry|the card]], see https://example.org/ferry\n",
        "- [x] **[the card](topics/ferry.md)** - done\n",
        "@topics/ferry.md\n",
    ],
)
def test_every_form_of_link_in_an_index_goes(tmp_path: Path, line: str) -> None:
    memory = bank(tmp_path)
    memory.write("MEMORY.md", f"# Index\n\n{line}\n- [Moorings](topics/moorings.md)\n")
    (match,) = memory.purge(named("topics/ferry.md"))
    assert match.pieces == 2
    assert memory.text("MEMORY.md") == "# Index\n\n- [Moorings](topics/moorings.md)\n"
    assert memory.said(ok=False) == []


def test_a_row_of_an_index_goes_and_the_table_stays_one(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    rows = "| note | what |\n|---|---|\n| [[ferry]] | card |\n| [[moorings]] | boats |\n"
    memory.write("MEMORY.md", rows)
    memory.purge(named("topics/ferry.md"))
    assert memory.text("MEMORY.md") == rows.replace("| [[ferry]] | card |\n", "")


@pytest.mark.parametrize(
    "line",
    [
        "- [card](topics/ferry.md) and [moorings](topics/moorings.md)\n",
        "- Always pay with [the card](topics/ferry.md), never with coins.\n",
        "@topics/ferry.md is read first\n",
    ],
)
def test_a_line_of_an_index_that_says_more_is_left_and_said(tmp_path: Path, line: str) -> None:
    memory = bank(tmp_path)
    memory.write("MEMORY.md", line)
    matches, gaps = memory.look(named("topics/ferry.md"))
    assert [(gap.where, gap.problem) for gap in gaps] == [
        ("MEMORY.md, line 1", ProblemCode.UNSUPPORTED)
    ]
    assert memory.remove(matches) == []
    assert memory.text("MEMORY.md") == line


def test_prose_with_a_link_to_another_note_keeps_the_link(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    memory.write("topics/moorings.md", "---\nname: moorings\n---\nBoats lie here.\n")
    memory.write("MEMORY.md", "- [Moorings](topics/moorings.md)\n")
    memory.purge(named("topics/moorings.md"))
    assert memory.text("topics/sluice.md") == BANK["topics/sluice.md"]
    assert memory.text("MEMORY.md") == ""


def test_the_index_keeps_a_line_whose_note_is_only_blanked(tmp_path: Path) -> None:
    memory = bank(tmp_path, action=Action.BLANK)
    memory.purge(named("topics/ferry.md"))
    assert "[Ferry card](topics/ferry.md)" in memory.text("MEMORY.md")
    assert (tmp_path / "topics/ferry.md").exists()


def test_the_index_keeps_a_line_whose_note_was_left(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    matches = memory.find(named("topics/ferry.md"))
    memory.write("topics/ferry.md", f"{BANK['topics/ferry.md']!s}more\n")
    (left,) = memory.remove(matches)
    assert left.problem is ProblemCode.CHANGED_UNDERNEATH
    assert memory.text("MEMORY.md") == BANK["MEMORY.md"]


def test_a_link_that_was_dead_before_is_said_by_check_only(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    assert "MEMORY.md, line 6 links to a note that is not there." in memory.said(ok=True)
    assert memory.look(phrase())[1] == []
    memory.purge(phrase())
    assert [said for said in memory.said(ok=True) if "is not there" in said] == [
        "MEMORY.md, line 5 links to a note that is not there."
    ]


def test_a_note_that_was_made_from_one_that_goes_stays_and_is_said(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    assert memory.residue(phrase("nobody said this"), []) == []
    matches = memory.purge(phrase())
    (left,) = memory.residue(phrase(), matches)
    assert (left.where, left.problem) == ("topics/ferry.md", ProblemCode.DERIVED_FROM_PURGED)
    memory.write("topics/ferry.md", "---\nname: ferry\n---\ncafé Łucja 8812-ZT\n")
    assert memory.residue(phrase(), matches) == []


def test_a_note_with_front_matter_only_is_said(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    memory.write("topics/empty.md", "---\nname: empty\n---\n\n")
    assert "topics/empty.md has front matter and nothing else." in memory.said(ok=True)


def test_a_file_of_no_member_that_holds_it_is_named(tmp_path: Path) -> None:
    memory = bank(tmp_path)
    memory.write("notes.docx.xml", f"<p>{PHRASE}</p>")
    memory.write("other.bin", b"\x00\x01")
    _, gaps = memory.look(phrase())
    assert [(gap.where, gap.problem) for gap in gaps] == [
        ("notes.docx.xml", ProblemCode.UNSUPPORTED)
    ]
    assert any("2 files belong to no member" in said for said in memory.said(ok=True))


def test_the_format_may_stand_on_a_markdown_site(tmp_path: Path) -> None:
    memory = Folder(tmp_path, BANK, {"path": ".", "format": "memory-bank"}, "markdown")
    assert {match.where for match in memory.find(phrase())} == {
        match.where for match in bank(tmp_path).find(phrase())
    }


# --- Obsidian ------------------------------------------------------------------------------------

CARD = "café Łucja card 8812-ZT"
CANVAS = (
    '{"nodes":[{"id":"a1","type":"text","text":"'
    + PHRASE
    + '","x":0,"y":0},\n\t{"id":"a2","type":"file","file":"Keys.md","x":9,"y":1.50},\n\t'
    '{"id":"a3","type":"text","text":"caf\\u00e9","x":1,"y":1}],\n'
    '"edges":[{"id":"e1","fromNode":"a1","toNode":"a2"},{"id":"e2","fromNode":"a2","toNode":"a3"}]}'
)
VAULT: dict[str, str | bytes] = {
    "Keys.md": (
        '---\ntitle: Keys\naliases: [Ways in, "Ilse: key"]\nrelated: ["[[Slips#^nine]]"]\n---\n'
        f"# Keys\n\n{PHRASE}. ^key\n\nSee [[Slips]] and ![[Slips#^nine]].\n\n%% {PHRASE} %%\n"
    ),
    "Slips.md": "# Slips\n\nlocker nine opens\nwith 3306 ^nine\n\nBack to [[Keys#^key|the key]].\n",
    "days/1.md": f"- [ ] ask whether {PHRASE}\n- [x] paint\n\n> {PHRASE}\n> -- [[Keys]]\n",
    "days/2.md": f"\ufeffRETRACTS: {PHRASE}\r\n\r\nMoved.\r\n",
    f"{unicodedata.normalize('NFD', 'Café Łucja')}.md": (
        f"# card\r\n\r\n- {unicodedata.normalize('NFD', CARD)}\r\n"
    ),
    "longer.md": f"{PHRASE}s are many\n",
    "Map.canvas": CANVAS,
    ".trash/Old keys.md": f"{PHRASE}\n\nOld.\n",
    ".obsidian/workspace.json": json.dumps({"search": {"query": PHRASE}, "open": ["Keys.md"]}),
}


def vault(root: Path, **site: Any) -> Folder:
    folder = Folder(root, VAULT, {"path": "vault", "format": "obsidian"}, **site)
    for name, content in VAULT.items():
        (root / name).unlink()
        folder.write(f"vault/{name}", content)
    return folder


def test_a_vault_loses_the_words_everywhere(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    matches = notes.purge(phrase())
    assert sorted(match.where for match in matches) == [
        "vault/.obsidian/workspace.json",
        "vault/.trash/Old keys.md, line 1",
        "vault/Keys.md, line 12",
        "vault/Keys.md, line 8",
        "vault/Map.canvas, nodes.0 and 1 more",
        "vault/days/1.md, line 1",
        "vault/days/1.md, line 4",
    ]
    assert notes.text("vault/days/1.md") == "- [x] paint\n"
    assert notes.text("vault/.trash/Old keys.md") == "Old.\n"
    assert json.loads(notes.text("vault/.obsidian/workspace.json")) == {
        "search": {"query": ""},
        "open": ["Keys.md"],
    }
    for name in ("Slips.md", "days/2.md", "longer.md"):
        assert notes.text(f"vault/{name}") == VAULT[name]
    assert notes.residue(phrase(), matches) == []


def test_an_edge_goes_with_its_node_and_the_rest_keeps_its_bytes(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    notes.purge(phrase())
    made = json.loads(notes.text("vault/Map.canvas"))
    was = json.loads(CANVAS)
    assert made["nodes"] == was["nodes"][1:]
    assert made["edges"] == was["edges"][1:]
    assert '"y":1.50},\n\t{"id":"a3"' in notes.text("vault/Map.canvas")
    assert "caf\\u00e9" in notes.text("vault/Map.canvas")


def test_a_block_id_that_others_name_stays(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    notes.purge(phrase())
    assert notes.text("vault/Keys.md") == (
        '---\ntitle: Keys\naliases: [Ways in, "Ilse: key"]\nrelated: ["[[Slips#^nine]]"]\n---\n'
        "# Keys\n\n<!-- purged: 01JREQUEST 2026-11-30 --> ^key\n\n"
        "See [[Slips]] and ![[Slips#^nine]].\n"
    )


def test_a_block_id_that_nobody_names_goes(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    notes.write("vault/Slips.md", "# Slips\n\nBack to [[Keys]].\n")
    notes.purge(phrase())
    assert "^key" not in notes.text("vault/Keys.md")


def test_what_lies_in_the_trash_is_archived(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    states = {match.where: match.readability for match in notes.find(phrase())}
    assert states["vault/.trash/Old keys.md, line 1"] is Readability.ARCHIVED
    assert states["vault/Keys.md, line 8"] is Readability.READABLE


def test_a_copy_in_the_trash_is_residue_once_the_note_is_gone_by_its_id(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    assert notes.residue(phrase(), notes.find(phrase())) == []
    notes.write("vault/.trash/Slips.md", "locker nine opens\nwith 3306\n")
    matches = notes.find(named("Slips.md#^nine"))
    assert notes.remove(matches) == []
    (left,) = notes.residue(named("Slips.md#^nine"), matches)
    assert (left.where, left.until) == ("vault/.trash/Slips.md", None)


def test_names_and_words_in_other_forms_are_found(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    notes.purge(phrase(CARD))
    name = unicodedata.normalize("NFD", "Café Łucja")
    assert notes.text(f"vault/{name}.md") == "# card\r\n"


def test_a_link_out_of_the_vault_is_said_and_never_followed(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    outside = tmp_path / "outside.md"
    outside.write_text(f"{PHRASE}\n")
    (tmp_path / "vault/out.md").symlink_to(outside)
    matches, gaps = notes.look(phrase())
    assert [gap.where for gap in gaps] == ["vault/out.md"]
    assert notes.remove(matches) == []
    assert outside.read_text() == f"{PHRASE}\n"
    assert (tmp_path / "vault/out.md").is_symlink()


def test_the_markers_of_all_notes_are_read(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    (marker,) = [item for item in notes.open().markers({}) if isinstance(item, Marker)]
    assert (marker.phrase, marker.where) == (PHRASE, "vault/days/2.md, line 1")
    assert list(notes.open().strike([(marker, "01JREQUEST")])) == []
    assert notes.text("vault/days/2.md") == "\ufeffSTRUCK: 01JREQUEST\r\n\r\nMoved.\r\n"


def test_a_vault_can_be_checked(tmp_path: Path) -> None:
    assert vault(tmp_path).said(ok=False) == []


def test_a_note_with_a_name_that_cannot_be_printed_is_rewritten(tmp_path: Path) -> None:
    notes = vault(tmp_path)
    notes.write("vault/odd\x07name.md", f"{PHRASE}\n\nrest\n")
    assert "vault/odd\ufffdname.md, line 1" in {match.where for match in notes.purge(phrase())}
    assert notes.text("vault/odd\x07name.md") == "rest\n"
