"""The prefilter misses nothing that the plain definition finds, however a line is written."""

from __future__ import annotations

import json
import random
import sys
import unicodedata
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from purge.matching import PhraseMatcher, fold
from purge.matching.prefilter import Prefilter
from purge.matching.sources import changed, dropped, sources
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_record import entries_of

PHRASES = (
    "the crab pot licence",
    "we go to it at 5 pm",
    "café Žofie keeps the spare key",
    "straße pass office",
    "ﬁnal oﬀer for kiosk",
    "予備の鍵は桜の木の下",
    "ガラスの鍵とパスポート",
    "株式会社みどり令和",
    "กุญแจสำรองอยู่ใต้กระถาง",
    "запасной ключ под горшком",
    "Το κλειδί είναι κάτω",
    "예비 열쇠는 화분 아래",
    "chìa khóa dự phòng ở dưới",
    "मेरी ज़रूरी चाबी कहाँ है",
    "المفتاح الاحتياطي تحت",
    "מפתח רזרבי מתחת",
    'she said "no" - ok/fine',
    "iPhone15を買う",
    "u2abcd token x9",
    "4915112345678",
    "x̂ ŷ vector",
)
NO_WINDOW = ("🔑🪴🔑🪴",)
"""Phrases that are looked for in every line."""
TEXTS = " \t\n.,;-\"'\\/aZ09é́か゛ㄱㅏ\u200b\u00a0\u3000ßﬁ①"


def written(text: str, dice: random.Random) -> str:
    """Return a text in some way that folds alike, as a rule."""
    out: list[str] = []
    mode = dice.random()
    if dice.random() < 0.3:
        text = unicodedata.normalize(dice.choice(["NFC", "NFD", "NFKC", "NFKD"]), text)
    if dice.random() < 0.3:
        text = dice.choice([str.upper, str.title, str.lower, str.swapcase])(text)
    for character in text:
        chance = dice.random()
        if character == " " and chance < mode:
            white = "".join(dice.choices(" \t\n\r\u00a0\u3000\u2003\u200b\x0b", k=3)) + " "
            out.append(dice.choice(["\n", "\n\n", "\t", " \n", "\n\n\n", white, white]))
        elif chance < 0.15 * mode:
            out.append(dice.choice(sources().get(fold(character), (character,))))
        elif chance < 0.25 * mode:
            out.append(character + dice.choice(dropped()))
        elif chance < 0.35 * mode:
            out.append(dice.choice([character.upper(), character.title()]))
        else:
            out.append(character)
    said = "".join(out)
    if dice.random() < 0.3 * mode:
        for character, folded in LENGTHY:
            if folded in said and dice.random() < 0.5:
                said = said.replace(folded, character)
    return said


LENGTHY = [(character, folded) for character, folded in changed().items() if len(folded) > 1]


def encoded(text: str, dice: random.Random) -> str:
    """Return a JSON string of a text, escaped in some way."""
    style = dice.choice(["raw", "ascii", "mixed", "upper", "all"])
    if style == "raw":
        return json.dumps(text, ensure_ascii=False)
    if style == "ascii":
        return json.dumps(text)
    out: list[str] = []
    for character in json.dumps(text, ensure_ascii=False)[1:-1]:
        chance = dice.random()
        if character in '\\"' or (out and out[-1] == "\\"):
            out.append(character)
        elif style == "all" or chance < 0.3:
            is_plain = character.isascii()
            escape = f"\\u{ord(character):04x}" if is_plain else json.dumps(character)[1:-1]
            out.append(escape.upper().replace("\\U", "\\u") if style == "upper" else escape)
        elif character == "/" and chance < 0.6:
            out.append("\\/")
        else:
            out.append(character)
    said = '"' + "".join(out) + '"'
    try:
        json.loads(said)
    except ValueError:
        return json.dumps(text)
    return said


def in_pieces(text: str, dice: random.Random) -> str:
    """Return a JSON list of fragments, or a JSON string with tags, of a text."""
    at = dice.randrange(len(text) + 1)
    if dice.random() < 0.4:
        tag = dice.choice(["<b>", "</i>", "<BR/>", "<!-- x -->", '<span class="a">', "<code\t>"])
        return encoded(text[:at] + tag + text[at:], dice)
    key, gap = dice.choice(["text", "t", "value"]), dice.choice(["", " ", "\t", "  ", " \r"])
    pieces = (f'{{"{key}": {encoded(said, dice)}}}' for said in (text[:at], text[at:], "."))
    return "[" + f"{gap},{dice.choice(['', gap])}".join(pieces) + "]"


def line_of(text: str, dice: random.Random) -> bytes:
    said = encoded(text, dice) if dice.random() < 0.85 else in_pieces(text, dice)
    for _ in range(dice.choice([0, 0, 0, 1, 1, 2, 4])):
        inner = dice.choice(["{}", '{{"a": {}}}', "[{}, 1]", '{{"type":"x","k":{}}}']).format(said)
        said = encoded(inner, dice)
    record = f'{{"id": "r1", "text": {said}}}'
    if dice.random() < 0.1:
        record = record[: -dice.randrange(1, 4)]
    line = record.encode("utf-8", "surrogatepass")
    chance = dice.random()
    if chance < 0.05:
        at = dice.randrange(len(line))
        line = line[:at] + bytes([dice.choice([0xE9, 0xA0, 0xAD, 0xFF, 0x92])]) + line[at:]
    elif chance < 0.1:
        line = record.encode("cp1252", "ignore")
    elif chance < 0.12:
        line = line.replace(b" ", b"\0 ", 3)
    return line.replace(b"\n", b" ")


def is_found(line: bytes, matcher: PhraseMatcher) -> bool:
    """The plain definition."""
    for entry in entries_of(line, Fields()):
        texts = [value for _, value, _ in entry.strings(numbers=True)]
        texts += [run.text for run in entry.in_pieces()]
        if any(matcher.search(text) for text in (*texts, *entry.lines())):
            return True
    return False


@dataclass(frozen=True)
class Look:
    """The prefilter for some phrases, with Hyperscan and without, and the plain definition."""

    phrases: tuple[str, ...]
    fast: Prefilter
    slow: Prefilter
    matcher: PhraseMatcher

    def check(self, line: bytes) -> None:
        """See that the prefilter gives a line if the plain definition finds something in it."""
        if is_found(line, self.matcher):
            content = b'{"a": 1}\n' + line + b"\nend"
            place = (9, 9 + len(line))
            assert place in self.fast.lines(content), ("with Hyperscan", self.phrases[:4], line)
            assert place in self.slow.lines(content), ("without it", self.phrases[:4], line)


def look_for(phrases: tuple[str, ...], sample: bytes = b"") -> Look:
    fast = Prefilter(phrases, (), sample)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "hyperscan", None)
        slow = Prefilter(phrases, (), sample)
    assert not slow.is_fast
    return Look(phrases, fast, slow, PhraseMatcher(dict(enumerate(phrases))))


DICE = random.Random(7)
WORDS = " ".join(PHRASES).split() * 60
DICE.shuffle(WORDS)
SAMPLE = " ".join(WORDS).encode()
"""Each word of the phrases is common here, and no two stand side by side as in a phrase."""
CROWD = tuple("".join(DICE.choices("abcdefghij кложи鍵の", k=12)).strip() + "x" for _ in range(600))
"""With so many phrases, what is common in real text is searched for and the rest is odd."""
CHOICES = (
    NO_WINDOW,
    *((phrase,) for phrase in PHRASES for _ in range(2)),
    *((phrase,) for phrase in ("crab", "été", "鍵の", "ключ", "열쇠", "of it")),
    *(tuple(DICE.sample(PHRASES, count)) for count in (2, 2, 3, 3, 4, 4, 8) for _ in range(2)),
    (*PHRASES, *CROWD),
)
"""A new prefilter takes longer than a hundred looks with it: there are some for all examples."""


@cache
def prepared(choice: int) -> Look:
    return look_for(CHOICES[choice], SAMPLE if choice % 2 else b"")


def check(choice: int, seed: int, around: str) -> None:
    dice = random.Random(seed)
    look = prepared(choice)
    phrase = dice.choice(look.phrases[: len(PHRASES)])
    if dice.random() < 0.03:
        phrase = phrase.replace(" ", "\nRETRACTS: nothing\n", 1)
    said = written(phrase, dice)
    text = dice.choice(["", "x ", around]) + said + dice.choice(["", ".", around])
    look.check(line_of(text, dice))


CHANGED = tuple(changed())
FRAMES = (
    "spare {}key",
    "spare{}",
    "{}key",
    "a {} b",
    "{}",
    "{}{}",
    "鍵{}穴",
    "ключ{}ом",
    "мой {}",
    "가{}각",
    "ガ{}",
    "é{}ö ñandú",
    "ก{}ำ",
    "ß{}ﬁ",
    "क{}ी",
    "-{}'",
)


def check_character(character: str, frame: str, seed: int) -> None:
    """Look for one character that folding changes between others, for nothing else."""
    dice = random.Random(seed)
    phrase = frame.replace("{}", fold(character))
    if not fold(phrase):
        return
    look = look_for((phrase,))
    for _ in range(24):
        said = recomposed(frame.replace("{}", character), dice)
        look.check(line_of(dice.choice(["", "x ", "\u0301", "\\"]) + said, dice))


def recomposed(text: str, dice: random.Random) -> str:
    """Return a text with some of its marks apart from their letters, in any order."""
    out: list[str] = []
    for character in text:
        base, *marks = list(unicodedata.normalize("NFD", character))
        if marks and dice.random() < 0.5:
            dice.shuffle(marks)
            first = unicodedata.normalize(dice.choice(["NFC", "NFD"]), base + marks[0])
            character = first + "".join(marks[1:])
        out.append(character)
    return "".join(out)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        # The halves of a letter beyond the first plane, far from each other when escaped often.
        ("5,5,", "\U0001f106\U0001f106"),
        ("sparek", "spare\U0001f13a"),
        # A letter of its own that ends a syllable.
        ("갆각", "가\u3136각"),
        # A phrase that stands around a marker line, which is no part of the text.
        ("a b", "a\nRETRACTS: x\nb"),
    ],
)
@pytest.mark.parametrize("depth", range(6))
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_what_was_once_missed(phrase: str, text: str, depth: int, ensure_ascii: bool) -> None:
    said = text
    for _ in range(depth):
        said = json.dumps([said], ensure_ascii=ensure_ascii)
    line = json.dumps({"text": said}, ensure_ascii=ensure_ascii).encode()
    assert is_found(line, PhraseMatcher({0: phrase}))
    assert list(Prefilter([phrase]).lines(line)) == [(0, len(line))]


@pytest.mark.parametrize(
    ("phrase", "line"),
    [
        # A marker in pieces, with the phrase around it.
        ("a b", '{"text": [{"t": "a\\nRETR"}  ,{"t": "ACTS: x\\nb"}]}'),
        # Fragments in JSON whose braces are escaped.
        ("crab", '{"text": "[{\\"t\\": \\"cr\\"}  ,\\u007b\\"t\\": \\"ab\\"}]"}'),
        ("crab", '{"text": "cr<b>ab</b>"}'),
    ],
)
def test_what_was_once_missed_in_pieces(phrase: str, line: str) -> None:
    look_for((phrase,)).check(line.encode())
    assert is_found(line.encode(), PhraseMatcher({0: phrase}))


def test_what_was_once_missed_in_another_encoding() -> None:
    line = b'{"text": "\xe9\xe9 "}'
    look_for(("éé",)).check(line)
    assert is_found(line, PhraseMatcher({0: "éé"}))


def test_the_prefilters_search_whole_blocks() -> None:
    slow = [CHOICES[at] for at in range(len(CHOICES)) if not prepared(at).fast.is_fast]
    assert slow == [NO_WINDOW]


CROWDED = st.just(len(CHOICES) - 1)
CHOSEN = st.one_of(st.integers(0, len(CHOICES) - 1), st.integers(0, len(CHOICES) - 1), CROWDED)
SEEDS = st.integers(0, 2**48)
ROUTINE = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    # A smaller seed makes no simpler line: shrinking would only take long.
    phases=[Phase.explicit, Phase.generate],
)


@settings(ROUTINE, max_examples=2000)
@given(CHOSEN, SEEDS, st.text(TEXTS, max_size=8))
def test_nothing_is_missed(choice: int, seed: int, around: str) -> None:
    check(choice, seed, around)


@pytest.mark.long
@settings(ROUTINE, max_examples=100_000)
@given(CHOSEN, SEEDS, st.text(TEXTS, max_size=8))
def test_nothing_is_missed_in_many_more(choice: int, seed: int, around: str) -> None:
    check(choice, seed, around)


@settings(ROUTINE, max_examples=100)
@given(st.sampled_from(CHANGED), st.sampled_from(FRAMES), SEEDS)
def test_no_character_is_missed(character: str, frame: str, seed: int) -> None:
    check_character(character, frame, seed)


@pytest.mark.long
@settings(ROUTINE, max_examples=5_000)
@given(st.sampled_from(CHANGED), st.sampled_from(FRAMES), SEEDS)
def test_no_character_is_missed_in_many_more(character: str, frame: str, seed: int) -> None:
    check_character(character, frame, seed)
