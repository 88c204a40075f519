"""Rich text: a phrase whose words are cut by a change of style is found, and nothing else."""

from __future__ import annotations

import json
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purge.matching import PhraseMatcher
from purge.matching.fragments import runs, without_tags
from purge.matching.prefilter import Prefilter
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_record import entries_of

PHRASE = "tilda keeps the spare key"
BEFORE, BEHIND = "Yes: Tilda keeps the spa", "re key, she says."
IN_PIECES: dict[str, object] = {
    "Slack": {
        "elements": [
            {"type": "text", "text": BEFORE},
            {"type": "text", "text": BEHIND, "style": {"bold": True}},
        ]
    },
    "Notion": {
        "rich_text": [
            {"type": "text", "text": {"content": BEFORE, "link": None}},
            {"type": "text", "text": {"content": BEHIND, "link": None}},
        ]
    },
    "Notion, as it was": {"title": [[BEFORE, [["b"]]], [BEHIND]]},
    "ProseMirror": {
        "content": [
            {
                "type": "paragraph",
                "content": [
                    {"type": "text", "text": BEFORE},
                    {"type": "text", "marks": [{"type": "bold"}], "text": BEHIND},
                ],
            }
        ]
    },
    "Slate, with a link": {
        "children": [
            {"text": "Yes: Tilda keeps the spa"},
            {"type": "link", "url": "https://example.org/", "children": [{"text": "re k"}]},
            {"text": "ey, she says."},
        ]
    },
    "Quill": {"ops": [{"insert": BEFORE, "attributes": {"bold": True}}, {"insert": BEHIND}]},
    "Telegram": {"text": [BEFORE, {"type": "bold", "text": BEHIND}, ""]},
    "a tree of Markdown": {"children": [{"type": "text", "value": BEFORE}, {"value": BEHIND}]},
    "Google Docs": {
        "elements": [{"textRun": {"content": BEFORE}}, {"textRun": {"content": BEHIND}}]
    },
    "words of an answer": {
        "words": [{"w": piece} for piece in ("Tilda", " keeps", " the", " sp", "are", " key")]
    },
    "letter by letter": {"spans": [{"t": letter} for letter in PHRASE]},
    "a break between words": {
        "content": [{"text": "Tilda keeps the"}, {"type": "hardBreak"}, {"text": "spare key"}]
    },
    "HTML": {"html": "<p>Yes: <b>Tilda</b> keeps the <i class='x'>spa</i>re key</p>"},
    "HTML, cut twice": {"html": "Tilda keeps<br/>the s<wbr>pa<!-- soft -->re k<SPAN>ey</SPAN>"},
}
APART: dict[str, object] = {
    "two paragraphs": {
        "content": [
            {"type": "paragraph", "content": [{"type": "text", "text": BEFORE}]},
            {"type": "paragraph", "content": [{"type": "text", "text": BEHIND}]},
        ]
    },
    "two messages": [{"role": "user", "text": BEFORE}, {"role": "user", "text": BEHIND}],
    "two records": {"rows": [{"id": 1, "text": BEFORE}, {"id": 2, "text": BEHIND}]},
    "two fields": {"a": BEFORE, "b": BEHIND},
    "strings of a list": {"tags": [BEFORE, BEHIND]},
    "different fields of two elements": {"parts": [{"text": BEFORE}, {"url": BEHIND}]},
    "a picture between": {
        "content": [{"text": BEFORE}, {"type": "image", "src": "x.png"}, {"text": BEHIND}]
    },
    "the end of a longer word": {"c": [{"text": BEFORE}, {"text": "re keys"}]},
    "two blocks of HTML": {"html": "<p>Tilda keeps the spa</p><p>re key</p>"},
    "what is no tag": {"code": "Tilda keeps the spa<key>re key"},
}


def found(line: bytes, matcher: PhraseMatcher) -> bool:
    """The plain definition."""
    return any(
        matcher.search(text)
        for entry in entries_of(line, Fields())
        for text in (
            *(value for _, value, _ in entry.strings()),
            *(run.text for run in entry.in_pieces()),
            *entry.lines(),
        )
    )


def written(value: object, dice: random.Random) -> bytes:
    """Return a line that says a value in some way."""
    gaps = dice.choice([(",", ":"), (", ", ": "), (" , ", " : "), (",  ", ":")])
    text = json.dumps({"id": "r", "in": value}, separators=gaps, ensure_ascii=dice.random() < 0.5)
    for _ in range(dice.choice([0, 0, 1, 1, 2, 3])):
        indent = dice.choice([None, None, 1, "\t"])
        inner = json.dumps(json.loads(text), indent=indent) if indent else text
        inner = inner.replace(",\n", "\n,") if dice.random() < 0.2 else inner
        text = json.dumps({"a": inner}, separators=gaps, ensure_ascii=dice.random() < 0.5)
    if dice.random() < 0.4:
        hexadecimal = dice.choice(["\\u003c", "\\u003C"])
        text = text.replace("<", hexadecimal)
    if dice.random() < 0.2:
        text = text.replace('\\"', "\\u0022")
    if dice.random() < 0.2:
        text = text.replace("/", "\\/")
    return text.encode()


@pytest.mark.parametrize("name", IN_PIECES)
def test_a_text_in_pieces_is_read_as_one(name: str) -> None:
    matcher = PhraseMatcher({7: PHRASE})
    said = json.dumps(IN_PIECES[name])
    assert set(matcher.search(said)) == {7}
    assert set(matcher.search(json.dumps({"inner": said}))) == {7}
    assert found(said.encode(), matcher)


@pytest.mark.parametrize("name", APART)
def test_what_a_reader_sees_apart_is_not_joined(name: str) -> None:
    matcher = PhraseMatcher({7: PHRASE})
    said = json.dumps(APART[name])
    assert matcher.search(said) == {}
    assert not found(said.encode(), matcher)


def test_the_pieces_are_named_in_order() -> None:
    (run,) = runs(IN_PIECES["Slate, with a link"], ("x",))
    assert run.text == "Yes: Tilda keeps the spare key, she says."
    assert run.paths == (
        ("x", "children", 0, "text"),
        ("x", "children", 1, "children", 0, "text"),
        ("x", "children", 2, "text"),
    )


def test_only_the_pieces_that_say_it_are_named() -> None:
    said = ["so: ", "Tilda keeps the spa", "re key", ". And ", "tilda keeps", " the spare key", "!"]
    (run,) = runs([{"text": text} for text in said])
    matcher = PhraseMatcher({0: PHRASE})
    assert sorted(run.holding(lambda text: bool(matcher.search(text)))) == [
        (at, "text") for at in (1, 2, 4, 5)
    ]
    assert run.holding(lambda text: False) == []


def test_a_text_without_tags_is_the_same_object() -> None:
    for text in ("a < b and c > d", "x<y>z", "<!-- never closed", "List<String> names"):
        assert without_tags(text) is text


def test_many_open_tags_and_comments_take_no_time() -> None:
    text = "<b" * 200_000 + "<!--" * 200_000 + "-->" + "<!--" * 200_000
    assert len(without_tags(text)) < len(text)


FORMS = st.sampled_from([*IN_PIECES.values(), *APART.values()])
PREFILTERS = {"fast": Prefilter([PHRASE, "the crab pot licence"])}
with pytest.MonkeyPatch.context() as patch:
    patch.setitem(sys.modules, "hyperscan", None)
    PREFILTERS["slow"] = Prefilter([PHRASE])


@settings(deadline=None, database=None, max_examples=600)
@given(FORMS, st.integers(0, 2**48))
def test_the_prefilter_misses_no_text_in_pieces(value: object, seed: int) -> None:
    line = written(value, random.Random(seed))
    if found(line, PhraseMatcher({0: PHRASE})):
        for prefilter in PREFILTERS.values():
            assert list(prefilter.lines(b'{"a": 1}\n' + line)) == [(9, 9 + len(line))]


def test_both_prefilters_are_what_they_are_called() -> None:
    assert PREFILTERS["fast"].is_fast
    assert not PREFILTERS["slow"].is_fast
