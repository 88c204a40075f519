"""Large logs are sifted before they are read; what is found is what reading every line finds."""

from __future__ import annotations

import gzip
import json
import random
import sys
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import zstandard

from purge.adapter import Match, NotChecked, ProblemCode
from purge.matching.prefilter import Prefilter
from purge.targets import Target, TargetKind, Targets
from purge.testing.case import Looked
from purge_adapters import _prefilter_read, _prefilter_site
from purge_adapters._prefilter_read import LineFilter, Portion, Sifted, use_executor
from tests.support.jsonl_logs import Logs, as_line, said

PHRASE = 'café Žofie says "no" at a/b\nand keeps the spare 鍵 🔑 key'


def raw(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def upper_hex(text: str) -> str:
    pieces = json.dumps(text).split("\\u")
    return "\\u".join([pieces[0], *(piece[:4].upper() + piece[4:] for piece in pieces[1:])])


def some_escaped(text: str) -> str:
    written = raw(text)
    for character in "éŽpk鍵":
        written = written.replace(character, f"\\u{ord(character):04x}", 1)
    return written


FORMS: dict[str, Callable[[str], str]] = {
    "plain UTF-8": raw,
    "escapes": json.dumps,
    "upper-case hex": upper_hex,
    "some characters escaped": some_escaped,
    "JSON inside a JSON string": lambda text: json.dumps(json.dumps({"a": [text]})),
    "JSON three deep": lambda text: raw(json.dumps(raw(text))),
    "escaped quote and newline": lambda text: raw(f'"{text}"\n'),
    "NFC": lambda text: raw(unicodedata.normalize("NFC", text)),
    "NFD": lambda text: raw(unicodedata.normalize("NFD", text)),
    "NFD escaped": lambda text: json.dumps(unicodedata.normalize("NFD", text)),
    "upper case": lambda text: raw(text.upper()),
    "full-width space": lambda text: raw(text.replace(" ", "\u3000")),
    "escaped slash": lambda text: raw(text).replace("/", "\\/"),
    "HTML-escaped as Go and PHP do": lambda text: (
        raw(f"<b>{text}</b>")
        .replace("<", "\\u003c")
        .replace(">", "\\u003E")
        .replace("é", "\\u00E9")
    ),
    "a surrogate pair": lambda text: raw(text).replace("🔑", "\\ud83d\\udd11"),
    "white space of all kinds": lambda text: raw(text.replace(" ", " \t\u2003\u00a0", 2)),
    "invisible characters": lambda text: raw(text.replace("spare", "spa\u00adre\u200b")),
}
NEAR = {
    "another end": PHRASE + "ring",
    "another beginning": "de" + PHRASE,
    "no accent": PHRASE.replace("é", "e"),
    "a word more": PHRASE.replace("spare", "spare old"),
    "in two fields": PHRASE[:20],
}


@pytest.fixture(params=["hyperscan", "without"])
def logs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Logs of which even the smallest is sifted, with tiny blocks and portions."""
    monkeypatch.setattr(_prefilter_site, "WORTH", 0)
    monkeypatch.setattr(_prefilter_read, "_BLOCK", 64)
    monkeypatch.setattr(_prefilter_read, "_PORTION", 256)
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "hyperscan", None)
        monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    return Logs(tmp_path)


def phrases(*texts: str) -> Targets:
    return Targets([Target(key, TargetKind.PHRASE, text) for key, text in enumerate(texts)])


def line(name: str, written: str) -> bytes:
    return f'{{"id": "{name}", "text": {written}}}\n'.encode()


def names(logs: Logs, targets: Targets) -> list[str]:
    return sorted(match.id for match in logs.case().find(targets).matches)


def test_every_written_form_is_found_and_no_near_miss(logs: Logs) -> None:
    lines = [line(name, write(PHRASE)) for name, write in FORMS.items()]
    lines.append(line("beside invalid UTF-8", raw(PHRASE + " ~")).replace(b"~", b"\xff\xfe"))
    lines += [line("near: " + name, raw(text)) for name, text in NEAR.items()]
    random.Random(1).shuffle(lines)
    logs.write_bytes(b"".join(lines))
    assert names(logs, phrases(PHRASE)) == sorted([*FORMS, "beside invalid UTF-8"])


def test_the_sieve_lets_few_lines_through() -> None:
    dull = b'{"id": "x", "text": "nothing to see here, \\u00e9\\u306e \xe6\x97\xa5\xe6\x9c\xac"}\n'
    block = dull * 500 + line("hit", json.dumps(PHRASE)) + dull * 500
    prefilter = Prefilter([PHRASE, "予備の鍵は桜の木の下"], ["id-of-a-record"])
    assert prefilter.is_fast
    assert list(prefilter._suspects(block, len(block))) == list(prefilter.lines(block))
    assert len(list(prefilter.lines(block))) == 1


def both_ways(logs: Logs, targets: Targets, monkeypatch: pytest.MonkeyPatch) -> None:
    """See that reading every line finds the same, gaps included."""
    sifted = logs.case().find(targets)
    with monkeypatch.context() as patch:
        patch.setattr(_prefilter_site, "WORTH", 1 << 62)
        plain = logs.case().find(targets)
    assert sifted.matches == plain.matches
    assert sifted.not_checked == plain.not_checked


CONTENTS = {
    "CRLF": b"\r\n".join([as_line(said("a", PHRASE)).strip(), b'{"id": "b"}', b""]),
    "byte order mark": b"\xef\xbb\xbf" + line("a", raw(PHRASE)) + b'{"id": "b"}\n',
    "U+2028": line("a", raw("x\u2028" + PHRASE + "\u0085")) * 2,
    "torn": line("a", raw(PHRASE))[:-3],
    "torn in the middle": line("a", raw(PHRASE))[:-3] + line("b", "1"),
    "NUL": b"\0" * 300 + line("a", raw(PHRASE)) + b"\0\0\n",
    "lone surrogates": line("a", '"\\ud800' + raw(PHRASE)[1:]) + line("b", '"\\udc00"'),
    "UTF-16": line("a", raw(PHRASE)).decode().encode("utf-16"),
    "UTF-16 without a mark": line("a", raw(PHRASE)).decode().encode("utf-16-le"),
    "UTF-16 behind UTF-8": line("b", "1") + line("a", raw(PHRASE)).decode().encode("utf-16-le"),
    "ASCII in UTF-16 behind UTF-8": line("b", "1") + "keeps the spare key".encode("utf-16-le"),
    "neither JSON nor text": b"\xfd\xfc oops\n" + line("a", raw(PHRASE)) + b"\x80\n",
    "a hole": line("b", "1") + b'{"id": "c", "text": "du\0\0ll\n' + line("a", raw(PHRASE)),
    "no JSON": (PHRASE.replace("\n", " ") + "\nother\n").encode(),
    "glued": line("a", raw(PHRASE)).strip() + line("b", "1"),
    "empty lines": b"\n\n" + line("a", raw(PHRASE)) + b"\n \n",
    "marker": line("a", raw("x\nRETRACTS: y\n" + PHRASE)) + line("b", raw("RETRACTS: " + PHRASE)),
    "a word over a marker": line("a", raw("keeps the\nRETRACTS: nothing\nspare key")),
    "nothing": b"",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_odd_files_are_searched_like_any(
    logs: Logs, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not content.startswith((b"\xff", b"{\0")):
        logs.write_bytes(line("first", '"dull"') + content)
    logs.write_bytes(content, "logs/alone.jsonl")
    logs.write_bytes(gzip.compress(content), "logs/b.jsonl.gz")
    logs.write_bytes(zstandard.compress(content), "logs/c.jsonl.zst")
    both_ways(logs, phrases(PHRASE, "keeps the spare key"), monkeypatch)


IDS = ("mem-1", "m/2", 'a"b', "é-3", "12", "1.5", "-7", "1e3", "x y", "inf", "a", "m\\4")


@pytest.mark.parametrize("wanted", [*([id] for id in IDS), ["mem-1", "12"], [*IDS]])
def test_ids_are_found_however_they_are_written(
    logs: Logs, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'{{"id": {write(id)}}}\n' for id in IDS for write in (raw, json.dumps)]
    lines += [line("mem-11", '"mem-1"').decode(), '{"id": 12}\n', '{"id": 1.50}\n']
    lines += ['{"id": 1e3}\n', '{"id": -7}\n', '{"id": Infinity}\n', '{"id": "\\u006dem-1"}\n']
    lines += ['{"id": "mem\\u002d1"}\n', '{"id": "m\\/2"}\n', '{"id": 120}\n']
    logs.write_bytes("".join(lines).encode())
    targets = Targets([Target(key, TargetKind.ID, id, None) for key, id in enumerate(wanted)])
    both_ways(logs, targets, monkeypatch)
    assert set(wanted) <= set(names(logs, targets)) | {"1e3"}


def test_a_subject_is_found_in_lists_and_numbers(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.write({"id": "a", "who": ["u1", "u2"]}, {"id": "b", "who": '["u2", 7]'}, said("c", "u2"))
    case = logs.case()
    case.site = replace(case.site, subject="who")
    targets = Targets([Target(0, TargetKind.SUBJECT, "u2"), Target(1, TargetKind.SUBJECT, "7")])
    assert [match.id for match in case.find(targets).matches] == ["a", "b"]


def test_every_record_of_a_derived_site_is_read(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.write(said("a", "dull", source="up-1"), said("b", "dull"), said("c", "x", source="up-2"))
    case = logs.case()
    case.site = replace(case.site, derived_from={"up": "source"})
    found = case.find(Targets([Target(0, TargetKind.LINEAGE, "up-1", "up")]))
    assert [match.id for match in found.matches] == ["a"]


@pytest.mark.parametrize("phrase", ["4915112345678", "0.0000001", "1000000.0"])
def test_a_number_is_found_however_it_is_written(
    logs: Logs, phrase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ("4915112345678", "49151123456.78e2", "4915112345678.0", "1e-7", "1e6", "1000000.0")
    logs.write_bytes(b"".join(line(number, number) for number in numbers))
    both_ways(logs, phrases(phrase), monkeypatch)


def test_lines_of_any_length_at_any_border(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    for turn in range(12):
        lines = [
            as_line(said(f"{at}", dice.choice([PHRASE, "dull"]) + " x" * dice.randrange(150)))
            for at in range(40)
        ]
        logs.write_bytes(b"".join(lines)[: -(turn % 2) or None])
        both_ways(logs, phrases(PHRASE), monkeypatch)


def test_places_are_told_by_line_or_by_byte(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logs.write(said("a", "dull"), said("b", "dull"), said("c", PHRASE))
    (match,) = logs.case().find(phrases(PHRASE)).matches
    assert match.where == "logs/a.jsonl, line 3"
    monkeypatch.setattr(_prefilter_read, "_COUNTED", 1)
    (match,) = logs.case().find(phrases(PHRASE)).matches
    assert match.where == f"logs/a.jsonl, the line at byte {len(lines[0]) + len(lines[1])}"


class Counting(ProcessPoolExecutor):
    """Processes, and how many tasks they were given."""

    tasks = 0

    def submit(self, *args: Any, **named: Any) -> Future[Any]:
        self.tasks += 1
        return super().submit(*args, **named)


def test_another_executor_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_prefilter_site, "WORTH", 0)
    monkeypatch.setattr(_prefilter_read, "_PORTION", 2000)
    logs = Logs(tmp_path)
    logs.write(*(said(str(at), PHRASE if at % 9 == 0 else "dull") for at in range(100)))
    with Counting(2, get_context("spawn")) as executor, use_executor(executor):
        found = logs.case().find(phrases(PHRASE)).matches
    assert executor.tasks > 1
    assert [match.id for match in found] == [str(at) for at in range(0, 100, 9)]
    assert found == logs.case().find(phrases(PHRASE)).matches


def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sieve give only lines that hold nothing."""

    def lines(self: Prefilter, data: bytes, stop: int | None = None) -> Iterator[tuple[int, int]]:
        for start, end in seeing(self, data, stop):
            if b"dull" in data[start:end]:
                yield start, end

    seeing = Prefilter.lines
    monkeypatch.setattr(Prefilter, "lines", lines)


def controls(looked: Looked) -> dict[object, bool]:
    return {control.kind: control.passed for control in looked.controls}


def test_many_files_are_searched_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_prefilter_site, "WORTH", 0)
    logs = Logs(tmp_path)
    names = [f"logs/{number:02}.jsonl" for number in range(30)]
    for name in names:
        logs.write(said(name, PHRASE), said("dull", "dull"), name=name)
    targets = Targets([Target(at, TargetKind.ID, name, None) for at, name in enumerate(names)])
    with Counting(2, get_context("spawn")) as executor, use_executor(executor):
        found = logs.case().find(targets)
    assert executor.tasks == len(names)
    assert sorted(found.ids) == names
    assert found == logs.case().find(targets)


def test_a_second_look_sees_what_the_first_one_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_prefilter_site, "WORTH", 0)
    logs = Logs(tmp_path)
    logs.write(said("a", "dull"), said("b", PHRASE), said("c", "dull"))
    targets = phrases(PHRASE)
    looked = logs.case().residue(targets)
    assert not looked.residue
    assert controls(looked)[None]
    blind(monkeypatch)
    assert not logs.case().find(targets).matches
    looked = logs.case().residue(targets)
    assert [(it.where, it.problem, it.keys) for it in looked.residue] == [
        ("logs/a.jsonl, line 2", ProblemCode.CONTROL_FAILED, frozenset({0}))
    ]
    assert not controls(looked)[None]


def test_the_sieve_is_tried_even_where_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_prefilter_site, "WORTH", 0)
    logs = Logs(tmp_path)
    logs.write(said("a", "dull"))
    blind(monkeypatch)
    assert not controls(logs.case().residue(phrases(PHRASE)))[None]


def test_a_part_that_was_not_searched_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_prefilter_site, "WORTH", 0)
    monkeypatch.setattr(_prefilter_read, "_PORTION", 200)
    logs = Logs(tmp_path)
    logs.write(*(said(str(at), "dull") for at in range(50)))
    assert not logs.case().find(phrases(PHRASE)).not_checked
    real = _prefilter_read.sift

    def forgetful(chooses: LineFilter, portion: Portion) -> Sifted:
        sifted = real(chooses, portion)
        return replace(sifted, end=sifted.start) if portion.start == 600 else sifted

    monkeypatch.setattr(_prefilter_read, "sift", forgetful)
    (gap,) = logs.case().find(phrases(PHRASE)).not_checked
    assert gap.problem == "changed-underneath"


def test_a_file_replaced_while_it_is_searched_is_not_passed_over(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.write(said("a", PHRASE))
    real = _prefilter_read.sift

    def replaced(prefilter: Prefilter, portion: _prefilter_read.Portion) -> object:
        logs.path().unlink()
        logs.write(said("a", PHRASE))
        return real(prefilter, portion)

    monkeypatch.setattr(_prefilter_read, "sift", replaced)
    found = logs.case().find(phrases(PHRASE))
    assert [gap.problem for gap in found.not_checked] == ["changed-underneath"]


def test_types_of_findings(logs: Logs) -> None:
    logs.write(said("a", PHRASE))
    found = list(logs.case().open().find(phrases(PHRASE)))
    assert any(isinstance(item, Match) for item in found)
    assert not any(isinstance(item, NotChecked) for item in found)
