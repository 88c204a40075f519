"""The Markdown adapter on a vault, a memory bank, a chat history, and written forms."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from purge.adapter import Action, NotChecked, ProblemCode, Readability
from purge.targets import Target, TargetKind, Targets
from tests.real.markdown_notes import PHRASE, Notes, named, phrase

# --- a vault -------------------------------------------------------------------------------------

VAULT: dict[str, str | bytes] = {
    "Doors.md": (
        "---\naliases: [Ways in]\nrelated: [\"[[Harbour#^slip]]\"]\n---\n# Doors\n\n"
        f"Ann says {PHRASE}. ^door\n\nSee [[Harbour]].\n\n%% {PHRASE} %%\n"
    ),
    "Harbour.md": "# Harbour\n\nslip four\nis narrow ^slip\n\nBack to [[Doors#^door|the door]].\n",
    "days/one.md": f"- [ ] ask whether {PHRASE}\n- [x] paint\n\n> {PHRASE}\n> -- [[Doors]]\n",
    "days/two.md": b"\xef\xbb\xbfRETRACTS: the lighthouse door opens with 5512\r\n\r\nMoved.\r\n",
    "longer.md": f"{PHRASE}99 is another number\n",
    ".trash/Old doors.md": f"{PHRASE}\n",
    ".obsidian/workspace.json": "{}",
}  # fmt: skip


def test_a_vault_loses_every_block_that_holds_the_phrase(tmp_path: Path) -> None:
    notes = Notes(tmp_path, VAULT)
    matches = notes.purge(phrase())
    assert sorted(match.where for match in matches) == [
        "Doors.md, line 11",
        "Doors.md, line 7",
        "days/one.md, line 1",
        "days/one.md, line 4",
    ]
    assert notes.text("Doors.md") == (
        '---\naliases: [Ways in]\nrelated: ["[[Harbour#^slip]]"]\n---\n'
        "# Doors\n\nSee [[Harbour]].\n"
    )
    assert notes.text("days/one.md") == "- [x] paint\n"
    for name in ("Harbour.md", "days/two.md", "longer.md", ".trash/Old doors.md"):
        content = VAULT[name]
        assert (tmp_path / name).read_bytes() == (
            content.encode() if isinstance(content, str) else content
        )


def test_the_trash_of_a_vault_is_searched(tmp_path: Path) -> None:  # LOG-23
    notes = Notes(tmp_path, VAULT)
    matches = notes.purge(phrase())
    left = notes.residue(phrase(), matches)
    assert [item.where for item in left] == [".trash/Old doors.md"]
    assert left[0].until is None
    (tmp_path / ".trash/Old doors.md").unlink()
    assert notes.residue(phrase(), matches) == []


def test_a_blanked_vault_keeps_the_ids_that_others_point_at(tmp_path: Path) -> None:
    notes = Notes(tmp_path, VAULT)
    notes.site = {"action": Action.BLANK}
    notes.purge(phrase())
    assert "\n<!-- purged: 01JREQUEST 2026-11-30 --> ^door\n" in notes.text("Doors.md")
    assert notes.text("days/one.md").startswith("- <!-- purged: 01JREQUEST 2026-11-30 -->\n- [x]")
    (match,) = notes.find(named("Doors.md#^door"))
    assert match.readability is Readability.BLANKED
    assert PHRASE not in notes.text("Doors.md") + notes.text("days/one.md")


def test_both_forms_of_an_accent_are_found(tmp_path: Path) -> None:  # MAT-01
    written = {
        "c.md": "- café Šárka card 4471\n",
        "d.md": "- caf\u0065\u0301 S\u030ca\u0301rka card 4471\n",
    }
    for form in ("NFC", "NFD"):
        notes = Notes(tmp_path, written)
        wanted = unicodedata.normalize(form, "café Šárka card 4471")
        assert len(notes.find(phrase(wanted))) == 2


def test_a_phrase_is_the_whole_phrase(tmp_path: Path) -> None:  # MAT-04
    notes = Notes(tmp_path, {"a.md": "- slip 14 code\n- slip 2\n- code\n"})
    notes.purge(phrase("slip 14 code"))
    assert notes.text("a.md") == "- slip 2\n- code\n"


@pytest.mark.parametrize("record", ["file", "section", "block"])
def test_a_note_that_explains_markers_is_left_as_it_is(
    tmp_path: Path, record: str
) -> None:  # LOG-25
    text = f"A line such as `RETRACTS: {PHRASE[:14]}` asks to forget.\n\n```\nRETRACTS: x\n```\n"
    notes = Notes(tmp_path, {"help.md": text})
    notes.record = record
    assert notes.find(phrase()) == []
    assert notes.text("help.md") == text


@pytest.mark.parametrize("record", ["file", "section", "block"])
def test_a_marker_is_no_match_and_a_like_of_it_is(tmp_path: Path, record: str) -> None:
    genuine = f"RETRACTS: {PHRASE}\n"
    others = {
        "fence.md": f"```\n{genuine}```\n",
        "comment.md": f"<!--\n{genuine}-->\n",
        "quote.md": f"> {genuine}",
        "bullet.md": f"- {genuine}",
        "front.md": f"---\n{genuine}---\n",
        "indented.md": f" {genuine}",
        "open.md": f"```\n{genuine}",
        "low.md": genuine.lower(),
    }
    notes = Notes(tmp_path, {"genuine.md": genuine, "bom.md": f"\ufeff{genuine}", **others})
    notes.record = record
    assert sorted(match.where.partition(",")[0] for match in notes.find(phrase())) == sorted(others)
    assert not any(match.carries_marker for match in notes.find(phrase()))


def test_a_record_that_carries_a_marker_says_so(tmp_path: Path) -> None:
    text = f"# A\n{PHRASE}\n\nRETRACTS: something else entirely\n\n# B\n{PHRASE}\n"
    notes = Notes(tmp_path, {"a.md": text})
    notes.record = "section"
    assert [match.carries_marker for match in notes.find(phrase())] == [True, False]


def test_a_link_out_of_the_folder_is_listed_and_not_followed(tmp_path: Path) -> None:  # RUN-12
    outside = tmp_path / "outside.md"
    outside.write_text(f"{PHRASE}\n")
    notes = Notes(tmp_path / "vault", {"a.md": f"{PHRASE}\n"})
    (tmp_path / "vault/link.md").symlink_to(outside)
    (tmp_path / "vault/folder").symlink_to(tmp_path)
    found = notes.look(phrase())
    assert sorted(item.where for item in found if isinstance(item, NotChecked)) == [
        "folder",
        "link.md",
    ]
    notes.purge(phrase())
    assert outside.read_text() == f"{PHRASE}\n"
    assert (tmp_path / "vault/link.md").is_symlink()
    # A file that becomes a link between the looks is not written through either.
    notes.write("b.md", f"{PHRASE}\n")
    matches = notes.find(phrase())
    (tmp_path / "vault/b.md").unlink()
    (tmp_path / "vault/b.md").symlink_to(outside)
    assert [left.problem for left in notes.remove(matches)] == [ProblemCode.CHANGED_UNDERNEATH]
    assert outside.read_text() == f"{PHRASE}\n"


# --- a memory bank -------------------------------------------------------------------------------

BANK: dict[str, str | bytes] = {
    "MEMORY.md": (
        f"# Index\n\n- [Door](topics/door.md) - {PHRASE}\n- [Card](topics/card.md)\n"
        "- [Gone](topics/gone.md)\n"
    ),
    "topics/door.md": f"---\nname: door\n---\n\nIt is said that {PHRASE}.\n\n**Why:** asked.\n",
    "topics/card.md": "---\nname: c\nderived_from: [topics/door.md, session:1]\n---\ncard 4471\n",
    "topics/table.md": f"| n | note |\n|---|---|\n| 1 | free |\n| 2 | {PHRASE} |\n",
    "bank/now.md": "## Focus\n- Ann: the lighthouse door\n  opens with 5512\n\n## Later\n- paint\n",
}  # fmt: skip


def test_the_index_line_that_repeats_the_text_goes_with_the_topic(tmp_path: Path) -> None:  # MEM-22
    notes = Notes(tmp_path, BANK)
    notes.purge(phrase())
    assert (
        notes.text("MEMORY.md") == "# Index\n\n- [Card](topics/card.md)\n- [Gone](topics/gone.md)\n"
    )
    assert notes.text("topics/table.md") == "| n | note |\n|---|---|\n| 1 | free |\n"
    assert notes.text("topics/door.md") == "---\nname: door\n---\n\n**Why:** asked.\n"
    assert notes.text("bank/now.md") == "## Focus\n\n## Later\n- paint\n"
    assert notes.text("topics/card.md") == BANK["topics/card.md"]


def test_a_topic_file_goes_whole_and_what_derives_from_it_is_found(tmp_path: Path) -> None:
    notes = Notes(tmp_path, BANK)
    notes.path, notes.record, notes.id = ".", "file", "$key"
    notes.site = {"derived_from": {"notes": "derived_from", "logs": None}}
    (door,) = notes.find(named("topics/door.md"))
    assert notes.remove([door]) == []
    assert not notes.exists("topics/door.md")
    assert notes.exists("topics")
    of_door = Targets([Target(1, TargetKind.LINEAGE, "topics/door.md", "notes")])
    (card,) = notes.find(of_door)
    assert card.id == "topics/card.md"
    assert card.parents == {"notes": ("topics/door.md", "session:1")}


def test_a_file_that_the_manifest_names_stays_empty(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {"log.md": f"{PHRASE}\n", "other/log.md": f"{PHRASE}\n"})
    notes.record = "file"
    for path, left in (("log.md", [True, True]), ("other/*.md", [True, False])):
        notes.path = path
        notes.purge(phrase())
        assert [notes.exists("log.md"), notes.exists("other/log.md")] == left
    assert notes.text("log.md") == ""


# --- a chat history with a sign before each line -------------------------------------------------

CHAT = """
# chat started at 2026-03-01 08:10:11

#### please note that  \n#### the lighthouse door  \n#### opens with 5512

I will write it down:

```
<<<<<<< SEARCH
old
=======
the lighthouse door opens with 5512
>>>>>>> REPLACE
```

> Tokens: 2.1k sent.  \n> Applied edit.  \n
#### and a card

Noted. RETRACTS: is only a word here.
"""


def test_a_phrase_cut_by_the_sign_of_a_heading_is_found_as_one_record(tmp_path: Path) -> None:
    notes = Notes(tmp_path, {".chat.history.md": CHAT})
    matches = notes.purge(phrase())
    assert len(matches) == 2
    kept = CHAT.replace(
        "#### please note that  \n#### the lighthouse door  \n#### opens with 5512\n\n", ""
    )
    start, end = kept.index("```"), kept.rindex("```") + 5
    assert notes.text(".chat.history.md") == kept[:start] + kept[end:]


def test_one_line_of_a_message_goes_alone_when_it_holds_the_phrase_alone(tmp_path: Path) -> None:
    notes = Notes(
        tmp_path, {"chat.md": f"#### note this  \n#### {PHRASE}  \n#### and act\n\nOk.\n"}
    )
    notes.purge(phrase())
    assert notes.text("chat.md") == "#### note this  \n#### and act\n\nOk.\n"


@pytest.mark.parametrize(
    "text",
    [
        "- Ann: the lighthouse\n  door opens\n  with 5512\n",
        "> the lighthouse door\n> opens with 5512\n",
        "> > the lighthouse door\n> > opens with 5512\n",
        "the **lighthouse** door _opens_ with `5512`\n",
        "the [lighthouse door](door.md) opens with [[Code|5512]]\n",
        "the lighthouse&nbsp;door opens with &#53;512\n",
        "the lighthouse\\\ndoor opens<br>with 5512\n",
        "![the lighthouse door opens with 5512](x.png)\n",
        "[door](<the lighthouse door opens with 5512.md>)\n",
        "[[the lighthouse door opens with 5512]]\n",
        "the light\u00adhouse door opens with 5512\n",
        "THE LIGHTHOUSE DOOR OPENS WITH 5512\n",
        '---\nsummary: >\n  the lighthouse door\n  opens with 5512\n---\n',
        '---\nsummary: "the lighthouse door \\\n  opens with 5512"\n---\n',
        "---\nthe lighthouse door opens with 5512: key\n---\n",
        "---\na: b # the lighthouse door opens with 5512\n---\n",
        '```json\n{"t": "the lighthouse\\ndoor opens \\u0077ith 5512"}\n```\n',
        "<div>\nthe lighthouse door\nopens with 5512\n</div>\n",
        "the lighthouse door\ropens with 5512\r",
    ],
)  # fmt: skip
def test_written_forms_of_a_phrase_are_found_and_go(tmp_path: Path, text: str) -> None:
    notes = Notes(tmp_path, {"a.md": text, "b.md": "the lighthouse keeper\n"})
    for record in ("file", "section", "block"):
        notes.record = record
        assert len(notes.find(phrase())) == 1
    notes.purge(phrase())
    assert notes.text("a.md") in ("", "---\n---\n")


def test_words_of_two_blocks_are_no_phrase(tmp_path: Path) -> None:
    text = "- the lighthouse door\n- opens with 5512\n\nthe lighthouse door\n\nopens with 5512\n"
    notes = Notes(tmp_path, {"a.md": text})
    for record in ("file", "section", "block"):
        notes.record = record
        assert notes.find(phrase()) == []
