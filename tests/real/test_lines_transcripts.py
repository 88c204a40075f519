"""The adapter for lines on chats, histories and made-up transcripts."""

from __future__ import annotations

import gzip
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, Marker, NotAMarker, NotChecked, ProblemCode, Readability
from purge.shapes import ShapeFault, validate
from purge.targets import Target, TargetKind, Targets
from purge_adapters._leftovers import OLD, own_name
from purge_adapters.lines import LinesSettings
from tests.real.format_folders import PHRASE, Folder, phrase

CARD = "café Łucja card 8812-ZT"
CODE = "locker nine opens\nwith 3306"

# --- aider ---------------------------------------------------------------------------------------

CHAT = f"""
# aider chat started at 2026-04-02 07:00:00

> /usr/bin/aider  
> Aider v0.86.0  

#### remember this:  
#### {PHRASE}  
#### and put it in the readme

Done, it now says:

readme.md
```
<<<<<<< SEARCH
nothing
=======
{PHRASE}
>>>>>>> REPLACE
```

> Tokens: 1.9k sent, 70 received.  
> Applied edit to readme.md  

#### {CARD}

Noted. A line that begins with RETRACTS: takes a note back, says the handbook.

# aider chat started at 2026-04-03 08:00:00

#### locker nine opens  
#### with 3306

This heading is no session:
# A heading
{PHRASE}s are many
"""  # noqa: W291  (aider ends its lines like this)
TYPED = f"""
# 2026-04-02 07:00:10.000001
+remember this:
+{PHRASE}
+and put it in the readme

# 2026-04-02 07:09:00.000001
+{unicodedata.normalize("NFD", CARD)}

# 2026-04-03 08:00:01.000001
+locker nine opens
+with 3306
"""


def roles(text: str) -> list[tuple[str, str]]:
    """Read a chat as aider restores one: by the beginnings of its lines, and nothing else."""
    found: list[tuple[str, str]] = []
    held: dict[str, list[str]] = {"user": [], "assistant": [], "tool": []}

    def end(*names: str) -> None:
        for name in names:
            said = "".join(held[name])
            if said.strip():
                found.append((name, said.strip()))
            held[name] = []

    for line in text.splitlines(keepends=True):
        if line.startswith("# "):
            continue
        if line.startswith("> "):
            end("assistant", "user")
            held["tool"].append(line[2:])
        elif line.startswith("#### "):
            end("assistant", "tool")
            held["user"].append(line[5:])
        else:
            end("user", "tool")
            held["assistant"].append(line)
    end("assistant", "user", "tool")
    return found


def typed(text: str) -> list[str]:
    """Read a history as prompt_toolkit does: every line without a plus ends an entry."""
    found: list[str] = []
    lines: list[str] = []
    for line in [*text.splitlines(keepends=True), ""]:
        if line.startswith("+"):
            lines.append(line[1:])
            continue
        if lines:
            found.append("".join(lines)[:-1])
        lines = []
    return found


def aider(root: Path, **site: Any) -> Folder:
    files = {".aider.chat.history.md": CHAT, ".aider.input.history": TYPED, "readme.md": "x\n"}
    return Folder(root, files, {"path": ".", "format": "aider"}, **site)


def test_a_phrase_is_found_in_every_file_of_aider(tmp_path: Path) -> None:
    chat = aider(tmp_path)
    before = roles(CHAT)
    places = sorted(match.where for match in chat.purge(phrase()))
    assert places == [
        ".aider.chat.history.md, line 11",
        ".aider.chat.history.md, line 7",
        ".aider.input.history, line 2",
    ]
    after = roles(chat.text(".aider.chat.history.md"))
    gone = [one for one in before if f"{PHRASE}s" not in one[1] and PHRASE in one[1]]
    assert after == [one for one in before if one not in gone]
    assert len(gone) == 2
    assert typed(chat.text(".aider.input.history")) == typed(TYPED)[1:]


@pytest.mark.parametrize("said", [CARD, CODE])
def test_prefixes_and_written_forms_hide_nothing(tmp_path: Path, said: str) -> None:
    chat = aider(tmp_path)
    matches = chat.purge(phrase(said))
    assert len(matches) == 2
    before, after = roles(CHAT), roles(chat.text(".aider.chat.history.md"))
    kept = [one for one in after if one != ("user", "(removed)")]
    assert kept == [one for one in before if one in after]
    assert len(kept) == len(before) - 1
    assert len(typed(chat.text(".aider.input.history"))) == 2


def test_blanked_messages_keep_their_place(tmp_path: Path) -> None:
    chat = aider(tmp_path, action=Action.BLANK)
    chat.purge(phrase())
    before, after = roles(CHAT), roles(chat.text(".aider.chat.history.md"))
    assert [role for role, _ in after] == [role for role, _ in before]
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [
        ("user", "[purged 01JREQUEST 2026-11-30]"),
        ("assistant", "[purged 01JREQUEST 2026-11-30]"),
    ]
    assert typed(chat.text(".aider.input.history"))[0] == "[purged 01JREQUEST 2026-11-30]"
    assert chat.find(phrase()) == []


def test_answers_do_not_run_together_when_the_question_between_them_goes(tmp_path: Path) -> None:
    text = f"\nFirst answer.\n\n#### {PHRASE}\n\nSecond answer.\n"
    chat = aider(tmp_path)
    chat.write(".aider.chat.history.md", text)
    chat.purge(phrase())
    assert roles(chat.text(".aider.chat.history.md")) == [
        ("assistant", "First answer."),
        ("user", "(removed)"),
        ("assistant", "Second answer."),
    ]


def test_questions_do_not_run_together_when_the_answer_between_them_goes(tmp_path: Path) -> None:
    chat = aider(tmp_path)
    chat.write(".aider.chat.history.md", f"#### one\n{PHRASE}\n#### two\n")
    chat.purge(phrase())
    assert chat.text(".aider.chat.history.md") == "#### one\n\n#### two\n"


def test_only_what_a_user_wrote_is_a_marker(tmp_path: Path) -> None:
    chat = aider(tmp_path)
    lines = "#### RETRACTS: the old pier\n\nRETRACTS: the new pier\n\n> RETRACTS: a third\n"
    chat.write(".aider.chat.history.md", lines)
    found = list(chat.open().markers({}))
    (marker,) = [item for item in found if isinstance(item, Marker)]
    assert (marker.phrase, marker.where) == ("the old pier", ".aider.chat.history.md, line 1")
    whys = [item.why for item in found if isinstance(item, NotAMarker)]
    assert whys == [
        "records of the kind 'assistant' give no markers",
        "records of the kind 'tool' give no markers",
    ]
    assert list(chat.open().strike([(marker, "01JREQUEST")])) == []
    assert chat.text(".aider.chat.history.md") == lines.replace(
        "#### RETRACTS: the old pier", "#### STRUCK: 01JREQUEST"
    )


def test_a_file_beside_the_members_is_searched_and_named(tmp_path: Path) -> None:
    chat = aider(tmp_path)
    chat.write(".aider.tags.cache.v4/cache.db", b"\x00\x01" + PHRASE.encode() + b"\x00")
    chat.write("readme.md", f"{PHRASE}\n")  # No file of aider's: another site's business.
    _, gaps = chat.look(phrase())
    assert [(gap.where, gap.problem) for gap in gaps] == [
        (".aider.tags.cache.v4/cache.db", ProblemCode.UNSUPPORTED)
    ]
    assert chat.look(phrase("nothing holds these words"))[1] == []


def test_a_copy_beside_a_chat_is_residue(tmp_path: Path) -> None:
    chat = aider(tmp_path)
    chat.write(".aider.input.history.bak", TYPED)
    matches = chat.purge(phrase())
    assert chat.look(phrase()) == ([], [])
    left = chat.residue(phrase(), matches)
    assert [item.where for item in left] == [".aider.input.history.bak"]
    assert left[0].until is None


# --- transcripts that somebody describes ---------------------------------------------------------

TALK: dict[str, Any] = {
    "path": "talk.log",
    "time": "time",
    "kinds": {
        "turn": {
            "begins": r"\[(?P<time>[\d-]+ [\d:]+)\] <(?P<who>\w+)> (?P<text>.*)$",
            "goes_on": r"    ",
        },
        "notice": {"each": r"\*\*\* "},
    },
}
TALK_LINES = (
    "*** the talk begins\r\n"
    "[2026-02-01 10:00:00] <ilse> good morning\r\n"
    "[2026-02-01 10:01:00] <bram> listen: Ilse hides the sluice key\r\n"
    "    behind the third barrel\r\n"
    "    and nowhere else\r\n"
    "*** bram left\r\n"
    "[2026-02-01 10:02:00] <ilse> ok"
)


def test_a_described_transcript_loses_one_turn(tmp_path: Path) -> None:
    talk = Folder(tmp_path, {"talk.log": TALK_LINES}, TALK, "lines")
    (match,) = talk.purge(phrase())
    assert (match.where, match.hits[0].field) == ("talk.log, line 3", "turn")
    assert match.created is not None
    assert match.created.isoformat() == "2026-02-01T10:01:00+00:00"
    lines = TALK_LINES.splitlines(keepends=True)
    assert talk.text("talk.log") == "".join([*lines[:2], *lines[5:]])


def test_notices_do_not_run_together_where_nothing_may_stand_between(tmp_path: Path) -> None:
    text = f"*** one\n[2026-02-01 10:00:00] <ilse> {PHRASE}\n*** two\n"
    talk = Folder(tmp_path, {"talk.log": text}, TALK, "lines")
    talk.purge(phrase())
    assert talk.text("talk.log") == "*** one\n\n*** two\n"


def test_without_a_placeholder_a_record_between_two_of_the_rest_is_left(tmp_path: Path) -> None:
    text = f"free text\n*** {PHRASE}\nmore free text\n"
    free = {**TALK, "kinds": {**TALK["kinds"], "free": {}}}
    talk = Folder(tmp_path, {"talk.log": text}, free, "lines")
    (left,) = talk.remove(talk.find(phrase()))
    assert left.problem is ProblemCode.UNSUPPORTED
    assert "placeholder" in left.sentence
    assert talk.text("talk.log") == text
    kinds = {**free["kinds"], "notice": {"each": r"\*\*\* ", "placeholder": "*** gone"}}
    talk.settings = {**TALK, "kinds": kinds}
    talk.purge(phrase())
    assert talk.text("talk.log") == "free text\n*** gone\n\nmore free text\n"


def test_a_name_before_the_words_is_found_as_well(tmp_path: Path) -> None:
    talk = Folder(tmp_path, {"talk.log": "[2026-02-01 10:00:00] <bartholomea> hi\n"}, TALK, "lines")
    talk.purge(phrase("bartholomea"))
    assert talk.text("talk.log") == ""


def test_a_blanked_turn_keeps_its_heading(tmp_path: Path) -> None:
    talk = Folder(tmp_path, {"talk.log": TALK_LINES}, TALK, "lines", action=Action.BLANK)
    talk.purge(phrase())
    lines = TALK_LINES.splitlines(keepends=True)
    lines[2:5] = ["[2026-02-01 10:01:00] <bram> [purged 01JREQUEST 2026-11-30]\r\n"]
    assert talk.text("talk.log") == "".join(lines)


def test_a_record_that_changed_is_left(tmp_path: Path) -> None:
    talk = Folder(tmp_path, {"talk.log": TALK_LINES}, TALK, "lines")
    matches = talk.find(phrase())
    talk.write("talk.log", TALK_LINES.replace("listen", "hear"))
    (left,) = talk.remove(matches)
    assert left.problem is ProblemCode.CHANGED_UNDERNEATH


def test_subjects_scopes_and_sources_are_named_groups(tmp_path: Path) -> None:
    settings = {
        "path": "cards.txt",
        "id": "id",
        "kinds": {"card": {"begins": r"== (?P<id>\w+) \((?P<of>\w+)\)$"}},
        "fields": {"from": r"^from: (.*)$"},
    }
    cards = "== c1 (north)\nfrom: n1, n2\nfirst\n== c2 (south)\nsecond\n"
    folder = Folder(
        tmp_path,
        {"cards.txt": cards},
        settings,
        "lines",
        scope={"team": "of"},
        derived_from={"notes": "from"},
    )
    lineage = Targets([Target(1, TargetKind.LINEAGE, "n2", "notes")])
    (match,) = folder.find(lineage)
    assert (match.id, dict(match.parents)) == ("c1", {"notes": ("n1", "n2")})
    south = Targets([Target(1, TargetKind.PHRASE, "second", None, {"team": "north"})])
    assert folder.find(south) == []


def test_a_file_that_is_one_record_goes_whole(tmp_path: Path) -> None:
    files = {"out/a.txt": f"line\n{PHRASE}\n", "out/b.txt": "other\n"}
    folder = Folder(tmp_path, files, {"path": "out/*.txt", "id": "$key"}, "lines")
    (match,) = folder.purge(phrase())
    assert match.id == "a.txt"
    assert not (tmp_path / "out/a.txt").exists()
    assert folder.text("out/b.txt") == "other\n"


def test_a_file_that_is_one_record_is_blanked(tmp_path: Path) -> None:
    files = {"out/a.txt": f"line\n{PHRASE}\n"}
    folder = Folder(tmp_path, files, {"path": "out"}, "lines", action=Action.BLANK)
    folder.purge(phrase())
    assert folder.text("out/a.txt") == "[purged 01JREQUEST 2026-11-30]\n"
    named = Targets([Target(1, TargetKind.PHRASE, PHRASE)])
    assert [
        match for match in folder.find(named) if match.readability is Readability.READABLE
    ] == []


def test_utf_16_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"talk.log": TALK_LINES.encode("utf-16")}, TALK, "lines")
    folder.purge(phrase())
    assert (tmp_path / "talk.log").read_bytes().decode("utf-16").count("\r\n") == 3
    folder.write("talk.log", b"*** caf\xe9 \xff\n" + TALK_LINES.encode())
    folder.purge(phrase())
    assert (tmp_path / "talk.log").read_bytes().startswith(b"*** caf\xe9 \xff\n*** the talk")
    _, gaps = folder.look(phrase("café Łucja"))
    assert isinstance(gaps[0], NotChecked)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kinds": {"a": {"begins": "["}}}, "kinds.a.begins: is no regular expression"),
        ({"kinds": {"a": {"begins": "x", "each": "y"}}}, "contradict each other"),
        ({"kinds": {"a": {"goes_on": "x"}}}, "kinds.a.goes_on: means something only beside"),
        ({"kinds": {"a": {}, "b": {}}}, "a and b have neither 'begins' nor 'each'"),
        ({"kinds": {"a": {"starts": "x"}}}, "kinds.a.starts: unknown key"),
        ({"kinds": {"a": {"each": ""}}}, "kinds.a.each: is empty"),
        ({"fields": {"id": "x"}}, "fields.id: must have one group"),
        ({"kinds": {"a": {"each": "x"}}, "id": "uuid"}, "id: no group and none of 'fields'"),
        ({"format": "aidr"}, "there is no format 'aidr'. Did you mean 'aider'?"),
        ({"format": "aider", "id": "x"}, "id: 'format' says that already"),
    ],
)
def test_a_wrong_description_is_said_in_one_sentence(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ShapeFault) as raised:
        validate(LinesSettings, {"path": "x", **keys})
    assert said in str(raised.value)


def test_a_record_may_end_before_the_next_one_begins(tmp_path: Path) -> None:
    settings = {
        "path": "dates.ics",
        "id": "uid",
        "kinds": {"event": {"begins": "BEGIN:VEVENT", "ends": "END:VEVENT"}},
        "fields": {"uid": r"^UID:(.*)$"},
    }
    first = f"BEGIN:VEVENT\r\nUID:e-1\r\nSUMMARY:{PHRASE}\r\nEND:VEVENT\r\n"
    second = "BEGIN:VEVENT\r\nUID:e-2\r\nSUMMARY:tides\r\nEND:VEVENT\r\n"
    text = f"BEGIN:VCALENDAR\r\n{first}{second}END:VCALENDAR\r\n"
    dates = Folder(tmp_path, {"dates.ics": text}, settings, "lines")
    (match,) = dates.purge(phrase())
    assert match.id == "e-1"
    assert dates.text("dates.ics") == text.replace(first, "")
    dates.purge(Targets([Target(1, TargetKind.ID, "e-2", "memory")]))
    assert dates.text("dates.ics") == "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"


def test_a_packed_text_is_said_and_not_passed_over(tmp_path: Path) -> None:
    talk = Folder(tmp_path, {"talk.log": gzip.compress(TALK_LINES.encode())}, TALK, "lines")
    matches, gaps = talk.look(phrase())
    assert matches == []
    assert [(gap.where, gap.problem) for gap in gaps] == [("talk.log", ProblemCode.UNSUPPORTED)]
    assert any("compressed" in said for said in talk.said(ok=False))


def test_of_two_gaps_the_wider_one_stays(tmp_path: Path) -> None:
    turn = f"[2026-02-01 10:00:00] <ilse> {PHRASE}\n"
    talk = Folder(tmp_path, {}, TALK, "lines")
    for before, after in (
        (f"*** one\n\n\n{turn}\n*** two\n", "*** one\n\n\n*** two\n"),
        (f"*** one\n\n{turn}\n\n*** two\n", "*** one\n\n\n*** two\n"),
        (f"*** one\n\n{turn}", "*** one\n"),
        (f"\n{turn}\n*** two\n", "\n*** two\n"),
    ):
        talk.write("talk.log", before)
        talk.purge(phrase())
        assert talk.text("talk.log") == after


def test_a_line_that_goes_on_with_nothing_is_a_record_of_its_own(tmp_path: Path) -> None:
    text = f"[2026-02-01 10:00:00] <ilse> hi\n\n    {PHRASE}\n"
    talk = Folder(tmp_path, {"talk.log": text}, TALK, "lines")
    (match,) = talk.purge(phrase())
    assert (match.where, match.hits[0].field) == ("talk.log, line 3", "text")
    assert talk.text("talk.log") == "[2026-02-01 10:00:00] <ilse> hi\n"


def test_a_marker_behind_a_prefix_is_no_text(tmp_path: Path) -> None:
    chat = aider(tmp_path)
    chat.write(".aider.input.history", "")
    chat.write(".aider.chat.history.md", f"#### RETRACTS: {PHRASE}\n#### and more\n\nI see.\n")
    assert chat.find(phrase()) == []
    (match,) = chat.find(phrase("and more"))
    assert match.carries_marker


def test_what_stands_behind_the_words_stays(tmp_path: Path) -> None:
    kinds = {"said": {"begins": r'(?P<who>\w+): "(?P<text>[^"]*)"'}}
    text = f'ann: "{PHRASE}" (loud)\nbo: "RETRACTS: the old pier" (low)\n'
    said = {"path": "said.txt", "kinds": kinds}
    talk = Folder(tmp_path, {"said.txt": text}, said, "lines", action=Action.BLANK)
    (marker,) = [item for item in talk.open().markers({"who": "bo"}) if isinstance(item, Marker)]
    assert marker.phrase == "the old pier"
    assert list(talk.open().strike([(marker, "01JREQUEST")])) == []
    talk.purge(phrase())
    assert talk.text("said.txt") == (
        'ann: "[purged 01JREQUEST 2026-11-30]" (loud)\nbo: "STRUCK: 01JREQUEST" (low)\n'
    )


def test_what_an_interrupted_rewrite_left_does_not_stand_in_the_way(tmp_path: Path) -> None:
    talk = Folder(tmp_path, {"talk.log": TALK_LINES}, TALK, "lines")
    path = tmp_path / "talk.log"
    left = own_name(path, f"{OLD}{path.stat().st_size}")
    dead = left.with_name(left.name.replace(f"-{os.getpid()}-", "-999999999-"))
    dead.hardlink_to(path)
    talk.purge(phrase())
    assert not dead.exists()
    other = tmp_path / "other-name"
    other.hardlink_to(path)
    (refused,) = talk.remove(talk.find(phrase("good morning")))
    assert "hard link" in refused.sentence
