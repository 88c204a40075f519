"""Cutting records out of a text by a grammar of lines: nothing that stays reads differently."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from purge.shapes import validate
from purge_adapters._lines_edit import Cut, edit
from purge_adapters._lines_grammar import Grammar
from purge_adapters._lines_records import Entry, LineFields, entries_of, take_apart
from purge_adapters._presets import preset
from purge_adapters.lines import LinesSettings

FIELDS = LineFields()


def aider() -> Grammar:
    members = (preset("files", "aider") or {})["members"]
    raw = {key: value for key, value in members[0].items() if key != "adapter"}
    return validate(LinesSettings, raw).grammar()


AIDER = aider()
FORMS = ("#### q{}", "> t{}", "a{}", "", "# aider chat started at d{}", "# h{}", "  a{}", "####")


@st.composite
def chats(draw: st.DrawFn) -> str:
    forms = draw(st.lists(st.sampled_from(FORMS), max_size=24))
    end = draw(st.sampled_from(("\n", "\r\n")))
    text = end.join(form.format(at) for at, form in enumerate(forms))
    return text + draw(st.sampled_from(("", end)))


def as_aider_reads(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return the messages that aider restores, each with its role and its words."""
    found: list[tuple[str, list[str]]] = []
    role = ""
    for line in text.splitlines():
        if line.startswith("# "):
            continue
        new, said = "assistant", line
        if line.startswith("#### "):
            new, said = "user", line[5:]
        elif line.startswith("> "):
            new, said = "tool", line[2:]
        if new != role:
            found.append((new, []))
        role = new
        found[-1][1].append(said.strip())
    return [(name, frozenset(filter(None, words))) for name, words in found if any(words)]


def cut(text: str, chosen: Sequence[int]) -> tuple[str, list[Entry], list[Entry]]:
    """Return the text without some records, what had to go, and what had to stay."""
    note = take_apart(AIDER, "chat", text.encode())
    entries = entries_of(note, AIDER, FIELDS)
    numbers = sorted({at % len(entries) for at in chosen}) if entries else []
    made = edit(note, [Cut(entries[at]) for at in numbers], AIDER, FIELDS)
    gone = [entries[at] for place, at in enumerate(numbers) if place not in made.refused]
    stay = [entry for entry in entries if entry not in gone]
    assert made.data is not None
    return made.data.decode(), gone, stay


PLACEHOLDERS = ("(removed)",)


@given(chats(), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=400, deadline=None)
def test_what_stays_reads_as_before(text: str, chosen: list[int]) -> None:
    after, gone, stay = cut(text, chosen)
    left = entries_of(take_apart(AIDER, "chat", after.encode()), AIDER, FIELDS)
    kept = [entry for entry in left if entry.said not in PLACEHOLDERS]
    assert [(entry.span.kind, entry.digest) for entry in kept] == [
        (entry.span.kind, entry.digest) for entry in stay
    ]
    for entry in gone:
        for word in entry.said.split():
            if word[-1:].isdigit():
                assert word not in after.split()


@given(chats(), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=400, deadline=None)
def test_nothing_runs_together_as_aider_reads_it(text: str, chosen: list[int]) -> None:
    after, _, _ = cut(text, chosen)
    before = as_aider_reads(text)
    for role, words in as_aider_reads(after):
        said = words - set(PLACEHOLDERS)
        if said:
            assert any(role == was and said <= held for was, held in before)


@given(chats(), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=200, deadline=None)
def test_blanked_records_keep_their_places(text: str, chosen: list[int]) -> None:
    note = take_apart(AIDER, "chat", text.encode())
    entries = entries_of(note, AIDER, FIELDS)
    numbers = sorted({at % len(entries) for at in chosen}) if entries else []
    cuts = [Cut(entries[at], ("01JREQUEST", "2026-11-30")) for at in numbers]
    made = edit(note, cuts, AIDER, FIELDS)
    assert made.data is not None
    left = entries_of(take_apart(AIDER, "chat", made.data), AIDER, FIELDS)
    assert [entry.span.kind for entry in left] == [entry.span.kind for entry in entries]
    going = {at for place, at in enumerate(numbers) if place not in made.refused}
    for at, (old, new) in enumerate(zip(entries, left, strict=True)):
        assert new.blanked if at in going else new.digest == old.digest


@given(st.lists(st.sampled_from(FORMS), max_size=24))
@settings(max_examples=200, deadline=None)
def test_every_line_that_says_something_is_in_one_record(forms: list[str]) -> None:
    lines = [f"{form.format(at)}\n" for at, form in enumerate(forms)]
    spans = AIDER.read(lines)
    held = [at for span in spans for at in range(span.start, span.end)]
    assert len(held) == len(set(held))
    assert {at for at, line in enumerate(lines) if line.strip()} <= set(held)
    assert all(lines[span.start].strip() and lines[span.end - 1].strip() for span in spans)
