"""Files that are no record a line, and blanked records that say it elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import purge
from purge.plan.outcome import Outcome
from purge.state import ProblemCode, State

WORDS = "always moor the boat at berth nine"


def forget(folder: Path, content: str, *wanted: object, more: str = "") -> Outcome:
    (folder / "data").mkdir()
    (folder / "data" / "a.jsonl").write_text(content)
    (folder / "purge.yaml").write_text(
        "purge: 1\nname: t\nsites:\n"
        f"  a: {{adapter: jsonl, path: data, id: id, text: [text]{more}}}\n"
    )
    return purge.open(folder / "purge.yaml").request(wanted, apply=True)  # type: ignore[arg-type]  # of purge.id and purge.phrase


def content(folder: Path) -> str:
    return (folder / "data" / "a.jsonl").read_text()


@pytest.mark.parametrize("by", ["id", "phrase"])
def test_a_line_that_is_a_list_of_records_is_left_alone(tmp_path: Path, by: str) -> None:
    records = [{"id": f"c{n}", "text": WORDS if n == 7 else "other"} for n in range(60)]
    line = json.dumps(records) + "\n"
    wanted = purge.id("c7", "a") if by == "id" else purge.phrase(WORDS)
    outcome = forget(tmp_path, line, wanted)
    assert content(tmp_path) == line
    assert outcome.state is State.ACCEPTED
    problem = outcome.steps[0].problem
    assert problem is not None
    assert problem.code is ProblemCode.UNSUPPORTED


def test_a_document_over_several_lines_is_left_whole(tmp_path: Path) -> None:
    text = json.dumps([{"id": "c1", "text": WORDS}, {"id": "c2", "text": "kept"}], indent=1)
    outcome = forget(tmp_path, text, purge.phrase(WORDS))
    assert content(tmp_path) == text
    assert outcome.state is State.ACCEPTED


def test_empty_text_does_not_hide_the_words_in_another_field(tmp_path: Path) -> None:
    lines = [{"id": "k4", "text": "", "note": WORDS}, {"id": "k9", "text": WORDS}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    outcome = forget(tmp_path, text, purge.phrase(WORDS), more=", action: blank")
    assert WORDS not in content(tmp_path)
    assert '"id": "k4"' in content(tmp_path)
    assert outcome.state is State.CONFIRMED_DELETED
    assert outcome.steps[0].tally.removed == 2


def test_lines_of_one_id_are_counted_one_by_one(tmp_path: Path) -> None:
    lines = [{"id": "sess1", "text": WORDS if n == 3 else f"line {n}"} for n in range(61)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    outcome = forget(tmp_path, text, purge.phrase(WORDS))
    assert outcome.refusal is not None
    assert "(a 61)" in outcome.refusal
    assert content(tmp_path) == text
    engine = purge.open(tmp_path / "purge.yaml")
    done = engine.request([purge.phrase(WORDS)], expect=61, apply=True)
    assert done.steps[0].tally.removed == 61
    assert content(tmp_path) == ""
    again = engine.request([purge.phrase(WORDS)], expect=61, apply=True)
    assert (again.steps[0].tally.found, again.steps[0].tally.removed) == (61, 61)
