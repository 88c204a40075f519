"""Texts that people keep, each described as a manifest would: one record taken out, or emptied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action
from tests.real.format_folders import PHRASE, Folder, phrase

FIRST, SECOND = PHRASE.split(" behind ")
SECOND = f"behind {SECOND}"

TEXTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "shell history with times": (
        {"kinds": {"command": {"begins": r"#(?P<time>\d{10})$"}}},
        f"#1770000000\ncd dock\n#1770000001\necho '{PHRASE}\n> file'\n#1770000002\nls\n",
        "#1770000000\ncd dock\n#1770000002\nls\n",
    ),
    "extended shell history": (
        {"kinds": {"command": {"begins": r": \d+:\d+;"}}},
        f": 1770000000:0;cd dock\n: 1770000001:0;echo {PHRASE} \\\n more\n: 1770000002:0;ls\n",
        ": 1770000000:0;cd dock\n: 1770000002:0;ls\n",
    ),
    "subtitles": (
        {
            "kinds": {
                "header": {"begins": "WEBVTT", "single": True},
                "cue": {"begins": r"[\d:.]+ --> [\d:.]+"},
            }
        },
        f"WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n\n00:03.000 --> 00:05.000\n"
        f"{FIRST}\n{SECOND}\n\n00:06.000 --> 00:07.000\nbye\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\nhello\n\n00:06.000 --> 00:07.000\nbye\n",
    ),
    "an outline": (
        {"kinds": {"heading": {"begins": r"\*+ "}}},
        f"#+TITLE: dock\n\n* one\ntext\n** two\n:ID: 7\n{PHRASE}\n* three\n",
        "#+TITLE: dock\n\n* one\ntext\n* three\n",
    ),
    "sayings with signs between them": (
        {"kinds": {"sign": {"begins": r"%$"}}},
        f"first\n%\n{PHRASE}\n\nand more of it\n%\nthird\n",
        "first\n%\nthird\n",
    ),
    "paragraphs": (
        {"kinds": {"paragraph": {"each": r".*\S"}}},
        f"first\nof two lines\n\n{PHRASE}\nis here\n\nthird\n",
        "first\nof two lines\n\nthird\n",
    ),
    "a list in YAML": (
        {"kinds": {"item": {"begins": "- ", "goes_on": "  "}}},
        f"memories:\n- id: 1\n  text: hello\n- id: 2\n  text: >\n    {FIRST}\n    {SECOND}\n"
        "- id: 3\n",
        "memories:\n- id: 1\n  text: hello\n- id: 3\n",
    ),
    "tab-separated values": (
        {"kinds": {"row": {"begins": r"(?P<id>\d+)\t", "single": True}}, "id": "id"},
        f"id\ttext\n1\thello\n2\t{PHRASE}\n3\tbye\n",
        "id\ttext\n1\thello\n3\tbye\n",
    ),
    "entries between tags": (
        {"kinds": {"memory": {"begins": r"<memory\b[^>]*>", "ends": "</memory>"}}},
        f"<all>\n<memory id='1'>hello</memory>\n<memory id='2'>\n  {PHRASE}\n</memory>\n</all>\n",
        "<all>\n<memory id='1'>hello</memory>\n</all>\n",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_record_goes_and_the_others_stay(tmp_path: Path, name: str, end: str) -> None:
    described, before, after = TEXTS[name]
    content = before.replace("\n", end)
    texts = Folder(tmp_path, {"x.dat": content}, {"path": "x.dat", **described}, "lines")
    matches = texts.purge(phrase())
    assert len(matches) == 1
    assert texts.text("x.dat") == after.replace("\n", end)
    assert texts.residue(phrase(), matches) == []


@pytest.mark.parametrize("name", TEXTS)
def test_one_record_is_emptied_and_known_to_be(tmp_path: Path, name: str) -> None:
    described, before, _ = TEXTS[name]
    settings = {"path": "x.dat", **described}
    texts = Folder(tmp_path, {"x.dat": before}, settings, "lines", action=Action.BLANK)
    texts.purge(phrase())
    assert texts.find(phrase()) == []
    left = texts.text("x.dat")
    assert left.count("[purged 01JREQUEST 2026-11-30]") == 1
    assert left.splitlines()[-1] == before.splitlines()[-1]
