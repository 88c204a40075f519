"""Taking records out of a note: what goes, what stays byte for byte, and how the rest is joined."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from purge_adapters._markdown_edit import Cut, edit
from purge_adapters._markdown_fields import FieldReader
from purge_adapters._markdown_kinds import Kind
from purge_adapters._markdown_records import FieldMap, Grain, Note, read_note
from purge_adapters._markdown_stamps import Stamp
from purge_adapters._markdown_text import split_lines
from purge_adapters._markdown_units import Unit, units_of

FIELDS = FieldMap.of("id", "about", {"project": "project"}, {"memories": "derived_from"})
STAMP = Stamp("01JREQ", "2026-11-30")
TOMB = "<!-- purged: 01JREQ 2026-11-30 -->"


def rewritten(
    text: str | bytes, word: str, grain: Grain = Grain.BLOCK, stamp: Stamp | None = None
) -> str | None:
    """Return a note without the smallest records that hold a word; ``None``: the file goes."""
    data = text.encode() if isinstance(text, str) else text
    note = read_note("n.md", data)
    units = units_of(note, grain, FIELDS)
    cuts = [Cut(unit, stamp) for unit in units if holds(unit, word) and not unit.part.members]
    assert cuts
    made = edit(note, cuts, units, FIELDS)
    assert made.refused == {}
    return None if made.data is None else made.data.decode(note.lines.encoding)


def holds(unit: Unit, word: str) -> bool:
    return any(word in text.value for text in unit.texts)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Paragraphs, and the blank lines around them.
        ("one\n\nXX\n\ntwo\n", "one\n\ntwo\n"),
        ("XX\n\ntwo\n", "two\n"),
        ("one\n\nXX\n", "one\n"),
        ("one\n\nXX", "one\n"),
        ("one\n\nXX\n\n\n", "one\n\n\n"),
        ("one\n\n\nXX\n\ntwo\n", "one\n\n\ntwo\n"),
        ("one\nstill XX one\n\ntwo\n", "two\n"),
        ("XX\n", ""),
        ("# Head\nXX\n\ntwo\n", "# Head\n\ntwo\n"),
        # Never glued.
        ("one\n```\nXX\n```\ntwo\n", "one\n\ntwo\n"),
        ("one\n# XX\ntwo\n", "one\n\ntwo\n"),
        ("one\n> XX\n\ntwo\n", "one\n\ntwo\n"),
        ("one\n<!-- XX -->\ntwo\n", "one\n\ntwo\n"),
        ("> one\n```\nXX\n```\ntwo\n", "> one\n\ntwo\n"),
        ("one\n1. XX\n2. two\n", "one\n\n2. two\n"),
        ("- one\n\nXX\n\n    code\n", "- one\n\n<!-- -->\n\n    code\n"),
        ("XX\n\n---\na: b\n---\n", "\n---\na: b\n---\n"),
        # Lists.
        ("- one\n- XX\n- two\n", "- one\n- two\n"),
        ("- XX\n- two\n", "- two\n"),
        ("- one\n- XX\n", "- one\n"),
        ("- one\n\n- XX\n\n- two\n", "- one\n\n- two\n"),
        ("1. one\n2. XX\n3. two\n", "1. one\n3. two\n"),
        ("- XX\n  goes on\n\n  second paragraph\n- two\n", "- two\n"),
        ("- one\n  - XX\n  - two\n", "- one\n  - two\n"),
        ("- XX\n  - under it\n- two\n", "- two\n"),
        ("- one\n  - XX\n    - deeper\n- two\n", "- one\n- two\n"),
        ("- [ ] XX\n- [x] two\n", "- [x] two\n"),
        ("* one\n\n  ```\n  - XX\n  ```\n\n* two\n", "* two\n"),
        ("para\n- XX\n", "para\n"),
        # Quotes.
        ("> one\n>\n> XX\n", "> one\n"),
        ("> XX\n>\n> two\n\nafter\n", "> two\n\nafter\n"),
        ("> one\n>\n> XX\n>\n> two\n", "> one\n>\n> two\n"),
        ("before\n\n> XX\nlazy\n\nafter\n", "before\n\nafter\n"),
        ("> - one\n> - XX\n", "> - one\n"),
        ("> > XX\n>\n> two\n", "> two\n"),
        # Tables.
        ("| a |\n|---|\n| XX |\n| 2 |\n", "| a |\n|---|\n| 2 |\n"),
        ("| a |\n|---|\n| XX |\n", "| a |\n|---|\n"),
        ("| XX | b |\n|---|---|\n| 1 | 2 |\n", "|  |  |\n|---|---|\n| 1 | 2 |\n"),
        ("one\n\n| XX |\n|---|\n| XX |\n\ntwo\n", "one\n\ntwo\n"),
        ("> | XX |\n> |---|\n> | 1 |\n", "> |  |\n> |---|\n> | 1 |\n"),
        # Fences and comments.
        ("one\n\n```py\nXX\n```\n\ntwo\n", "one\n\ntwo\n"),
        ("one\n\n%% XX\n\nmore %%\n\ntwo\n", "one\n\ntwo\n"),
        ("```\none\n\nXX\nY\n\ntwo\n", "```\none\n\ntwo\n"),
        ("one\n\n```\nXX\n", "one\n"),
        ("one\n\n    XX\n\n    more\n\ntwo\n", "one\n\ntwo\n"),
        # Block ids.
        ("one ^a\n\nXX ^b\n\ntwo ^c\n", "one ^a\n\ntwo ^c\n"),
        ("one\n\n> XX\n\n^quote\n\ntwo\n", "one\n\ntwo\n"),
        ("one\n\n- XX\n- a XX\n\n^list\n\ntwo\n", "one\n\ntwo\n"),
        ("one\n\n- XX\n- a\n\n^list\n\ntwo\n", "one\n\n- a\n\n^list\n\ntwo\n"),
        ("one\n\n```\nXX\n```\n\n^code\n\ntwo\n", "one\n\ntwo\n"),
        ("one\n\n```\nXX\n```\n\n^code\n\n^of-nothing\n", "one\n\n^of-nothing\n"),
        # Markers stay.
        ("XX\nRETRACTS: XX\n", "RETRACTS: XX\n"),
        ("- XX\nRETRACTS: XX\n", "RETRACTS: XX\n"),
        # Bytes of others.
        ("\ufeffXX\n\ntwo\n", "\ufefftwo\n"),
        ("one  \r\n\r\nXX\r\n\r\ntwo", "one  \r\n\r\ntwo"),
        ("one\r\r\nXX\n\n two \t\n", "one\r\r\n two \t\n"),
        ("one\rXX\r\rtwo\r", "two\r"),
        # Front matter stays where it is.
        ("---\nid: a\n---\n\nXX\n\ntwo\n", "---\nid: a\n---\n\ntwo\n"),
        ("---\nid: a\n---\nXX\n", "---\nid: a\n---\n"),
        ("---\nid: a\n---\n\nXX\n\n\n", "---\nid: a\n---\n"),
        ("---\nid: a\ntitle: XX\n---\nbody\n", "---\nid: a\n---\nbody\n"),
        (
            "\ufeff---\r\nid: a\r\ntags:\r\n  - XX\r\n  - b\r\n---\r\nbody\r\n",
            "\ufeff---\r\nid: a\r\n---\r\nbody\r\n",
        ),
        ("---\nXX: words\n---\nbody\n", "---\n---\nbody\n"),
        ("---\nid: a # XX\n# XX too\n---\nbody\n", "---\n---\nbody\n"),
    ],
)  # fmt: skip
def test_a_block_goes_and_all_else_stays(before: str, after: str) -> None:
    assert rewritten(before, "XX") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# A\na\n\n# B\nXX\n\n# C\nc\n", "# A\na\n\n# C\nc\n"),
        ("# A\na\n\n## B\nXX\n\n# C\nc\n", "# A\na\n\n# C\nc\n"),
        ("# A\nXX\n\n## B\nb\n\n# C\nc\n", "# C\nc\n"),
        ("XX\n\n# A\na\n", "# A\na\n"),
        ("a\n\n# XX\n", "a\n"),
        ("---\nid: a\n---\n\n# A\nXX\n", "---\nid: a\n---\n"),
        ("top\n# A\nXX\n", "top\n"),
        ("a\n\nB XX\n===\nb\n\nC\n---\nc\n", "a\n"),
        ("a\n\nB\n---\nXX\n\nC\n---\nc\n", "a\n\nC\n---\nc\n"),
    ],
)
def test_a_section_goes_with_what_is_below_it(before: str, after: str) -> None:
    assert rewritten(before, "XX", Grain.SECTION) == after


def test_a_file_goes_whole() -> None:
    assert rewritten("---\nid: a\n---\nXX\n", "XX", Grain.FILE) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\n\nXX words\nmore ^key\n\ntwo\n", f"one\n\n{TOMB} ^key\n\ntwo\n"),
        ("one\n\nXX", f"one\n\n{TOMB}"),
        ("- one\r\n- XX\r\n- two\r\n", f"- one\r\n- {TOMB}\r\n- two\r\n"),
        ("1. one\n2. [ ] XX\n", f"1. one\n2. {TOMB}\n"),
        ("> XX\n> more\n> \n> two\n", f"> {TOMB}\n> \n> two\n"),
        ("## XX ##\nbody\n", f"## {TOMB}\nbody\n"),
        ("XX\n===\nbody\n", f"# {TOMB}\nbody\n"),
        ("| a | b |\n|---|---|\n| 1 | XX |\n", f"| a | b |\n|---|---|\n| {TOMB} |  |\n"),
        ("| a | XX |\n|---|---|\n| 1 | 2 |\n", f"| {TOMB} |  |\n|---|---|\n| 1 | 2 |\n"),
        ("one\n```\nXX\n```\ntwo\n", f"one\n{TOMB}\ntwo\n"),
        ("%% XX %%\n", f"{TOMB}\n"),
        (
            "- XX [derived_from:: m1, m2] [project:: boats]\n",
            f"- {TOMB} <!-- derived_from: [m1, m2] --> <!-- project: boats -->\n",
        ),
        ("XX\n<!-- id: n1 -->\n", f"{TOMB} <!-- id: n1 -->\n"),
        (
            "- XX\n  - no id\n  - kept <!-- id: n2 -->\n- two\n",
            f"- {TOMB}\n  - {TOMB} <!-- id: n2 -->\n- two\n",
        ),
        (
            "---\nid: a\ntitle: XX\n---\nbody\n",
            "---\nid: a\n# purged: 01JREQ 2026-11-30\n---\nbody\n",
        ),
    ],
)  # fmt: skip
def test_a_blanked_block_keeps_its_place_its_id_and_its_links(before: str, after: str) -> None:
    assert rewritten(before, "XX", stamp=STAMP) == after
    note = read_note("n.md", after.encode())
    units = units_of(note, Grain.BLOCK, FIELDS)
    blanked = [unit for unit in units if unit.blanked]
    assert blanked
    later = Stamp("01JLATER", "2026-12-01")
    again = edit(note, [Cut(unit, later) for unit in blanked], units, FIELDS)
    assert again.data == after.encode()


@pytest.mark.parametrize(
    ("before", "after", "grain"),
    [
        ("# A\nXX\n\n## B\nb\n\n# C\n", f"# {TOMB}\n\n# C\n", Grain.SECTION),
        ("- XX\n\n# C\n", f"{TOMB}\n\n# C\n", Grain.SECTION),
        (
            "# A\nXX\n<!-- id: a -->\n\n## B\n<!-- id: b -->\n\n# C\n",
            f"# {TOMB} <!-- id: a -->\n## {TOMB} <!-- id: b -->\n\n# C\n",
            Grain.SECTION,
        ),
        (
            "---\ntitle: XX\nid: a\nderived_from:\n  - m1\nabout: Tilda\n---\nwords\n",
            f"---\nid: a\nderived_from:\n  - m1\n---\n{TOMB}\n",
            Grain.FILE,
        ),
        ("\ufeffXX\r\nwords\r\n", f"\ufeff{TOMB}\r\n", Grain.FILE),
    ],
)
def test_a_blanked_section_or_file_keeps_what_says_who_it_is(
    before: str, after: str, grain: Grain
) -> None:
    assert rewritten(before, "XX", grain, STAMP) == after
    assert read_note("n.md", after.encode()).lines.lines
    units = units_of(read_note("n.md", after.encode()), grain, FIELDS)
    assert [unit for unit in units if unit.blanked and unit.part.grain is grain]


def test_text_behind_a_tombstone_makes_it_readable_again() -> None:
    units = units_of(read_note("n.md", f"- {TOMB} and new words\n".encode()), Grain.BLOCK, FIELDS)
    assert not units[0].blanked
    assert holds(units[0], "new words")


def test_sixteen_bit_text_stays_what_it_is() -> None:
    data = "\ufeffone\r\n\r\nXX\r\n\r\ntwo".encode("utf-16-le")
    assert rewritten(data, "XX") == "\ufeffone\r\n\r\ntwo"


def test_bytes_that_are_no_text_stay_what_they_are() -> None:
    note = read_note("n.md", b"caf\xe9\n\nXX \xff\n\n\x80\n")
    units = units_of(note, Grain.BLOCK, FIELDS)
    made = edit(note, [Cut(unit) for unit in units if holds(unit, "XX")], units, FIELDS)
    assert made.data == b"caf\xe9\n\n\x80\n"


@pytest.mark.parametrize(
    "text", ["---\n{title: XX, id: a}\n---\nbody\n", "---\ntitle: [XX\n---\nbody\n"]
)
def test_front_matter_that_cannot_be_cut_is_left_and_said(text: str) -> None:
    note = read_note("n.md", f"{text}\nYY\n".encode())
    units = units_of(note, Grain.BLOCK, FIELDS)
    cuts = [Cut(unit) for unit in units if holds(unit, "XX") or holds(unit, "YY")]
    made = edit(note, cuts, units, FIELDS)
    assert list(made.refused) == [0]
    assert "front matter" in made.refused[0]
    # The other record goes all the same.
    assert made.data == text.encode()


def test_an_inner_record_of_another_scope_stays() -> None:
    text = "# A [project:: boats]\nXX\n\n## B [project:: cars]\nXX\n\n## C\nc\n\n# D\n"
    note = read_note("n.md", text.encode())
    units = units_of(note, Grain.SECTION, FIELDS)
    (boats,) = [unit for unit in units if unit.line == 1]
    made = edit(note, [Cut(boats)], units, FIELDS)
    assert made.data == b"## B [project:: cars]\nXX\n\n# D\n"


# --- properties -----------------------------------------------------------------------------------

PIECES = [
    "word\n",
    "more\n",
    "\n",
    "\n",
    "\n",
    "- item\n",
    "  on\n",
    "- \n",
    "* star\n",
    "1. one\n",
    "# Head\n",
    "## Sub\n",
    "===\n",
    "---\n",
    "```\nfenced\n```\n",
    "~~~\n\nx\n~~~\n",
    "> quote\n",
    ">\n",
    "> - in quote\n",
    "  - nested\n",
    "\tcode\n",
    "<!-- c -->\n",
    "***\n",
    "      far in\n",
    "- item ^id1\n",
]
MORE = [
    "<div>\n",
    "%% hidden %%\n",
    "RETRACTS: this\n",
    "^anchor\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "| 3 | 4 |\n",
    "[ref]: x\n",
    "<!-- derived_from: m1 -->\n",
    "```\n",
]


@st.composite
def notes(draw: st.DrawFn, pieces: list[str]) -> str:
    """Make a note in which every line of words can be told from every other."""
    parts = draw(st.lists(st.sampled_from(pieces), min_size=2, max_size=9))
    text = "".join(
        part.replace("item", f"item {place}").replace(
            "\n", f" {place}\n" if part[0] in "wm#" else "\n"
        )
        for place, part in enumerate(parts)
    )
    text = text.rstrip("\n") if draw(st.booleans()) else text
    front = draw(st.sampled_from(["", "", "---\nid: a\ntitle: b\n---\n"]))
    text = front + text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def some_cut(
    data: st.DataObject, note: Note, grain: Grain, stamp: Stamp | None
) -> tuple[str, list[Unit]]:
    units = units_of(note, grain, FIELDS)
    chosen = data.draw(st.lists(st.sampled_from(units), unique_by=id, min_size=1, max_size=3))
    made = edit(note, [Cut(unit, stamp) for unit in chosen], units, FIELDS)
    taken = [unit for at, unit in enumerate(chosen) if at not in made.refused]
    return (made.data or b"").decode(), taken


@given(notes([*PIECES, *MORE]), st.sampled_from([Grain.BLOCK, Grain.SECTION]), st.data())
@settings(max_examples=400)
def test_every_line_that_stays_is_what_it_was(text: str, grain: Grain, data: st.DataObject) -> None:
    note = read_note("n.md", text.encode())
    if not units_of(note, grain, FIELDS):
        return
    after, taken = some_cut(data, note, grain, None)
    gone = {at for unit in taken for a, b in unit.spans for at in range(a, b)}
    heads = any(unit.part.kind is Kind.TABLE_HEAD for unit in taken)
    structure = (Kind.TABLE_RULE, Kind.TABLE_HEAD, Kind.OPEN_FENCE) if heads else (Kind.OPEN_FENCE,)
    loose = {
        at
        for block in note.blocks
        if block.kind in structure
        for at in range(block.start, block.end)
    }
    kept = [
        line
        for at, line in enumerate(note.lines.lines)
        if at not in gone | loose and line.strip(" >\r\n") and not line.startswith("^")
    ]
    left = iter(split_lines(after))
    assert all(any(line == other for other in left) for line in kept)
    whole = [note.lines.lines[at] for at in sorted(gone)]
    counted = Counter(split_lines(after))
    assert all(
        counted[line] <= Counter(note.lines.lines)[line] - whole.count(line)
        for line in whole
        if line.strip(" >\r\n") and not line.startswith("|")
    )


def leaves(text: str) -> Counter[tuple[str, str]]:
    tokens = MarkdownIt("commonmark").parse(text)
    return Counter(
        (token.type, token.content)
        for token in tokens
        if token.type in ("inline", "fence", "code_block", "html_block")
    )


@given(notes(PIECES), st.sampled_from([None, STAMP]), st.data())
@settings(max_examples=600)
def test_an_independent_parser_reads_what_stays_as_before(
    text: str, stamp: Stamp | None, data: st.DataObject
) -> None:
    note = read_note("n.md", text.encode())
    size = note.front.size
    blocks = [
        unit for unit in units_of(note, Grain.BLOCK, FIELDS) if unit.part.kind is not Kind.FRONT
    ]
    if not blocks or any(block.kind is Kind.OPEN_FENCE for block in note.blocks):
        return
    chosen = data.draw(st.lists(st.sampled_from(blocks), unique_by=id, min_size=1, max_size=3))
    made = edit(note, [Cut(unit, stamp) for unit in chosen], blocks, FIELDS)
    assert made.data is not None
    before = leaves("".join(note.lines.lines[size:]))
    after = leaves("".join(split_lines(made.data.decode())[size:]))
    new = [
        content
        for (_, content), _ in (after - before).items()
        if content.strip() not in ("<!-- -->", TOMB, f"{TOMB} ^id1")
    ]
    assert new == []
    assert made.refused == {}


@given(notes([*PIECES, *MORE]), st.data())
@settings(max_examples=200)
def test_what_was_blanked_says_nothing_any_more(text: str, data: st.DataObject) -> None:
    note = read_note("n.md", text.encode())
    if not units_of(note, Grain.BLOCK, FIELDS):
        return
    after, taken = some_cut(data, note, Grain.BLOCK, STAMP)
    words = {
        line.strip("> #*-\r\n")
        for unit in taken
        for a, b in unit.spans
        for line in note.lines.lines[a:b]
        if any(character.isdigit() for character in line) and line[0] not in "|<"
    }
    kept = {line.strip("> #*-\r\n") for line in split_lines(after)}
    assert not {word for word in words if len(word) > 6} & kept


def test_a_reader_without_names_finds_nothing() -> None:
    assert FieldReader(()).read("id: a <!-- b: c --> d:: e") == {}
