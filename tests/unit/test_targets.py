"""Targets: which records they name, and what the traces of a record look like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.errors import EmptySelector
from purge.matching import How
from purge.targets import (
    NEEDLE_BYTES,
    NeedleKind,
    Record,
    Target,
    TargetKind,
    Targets,
    Text,
    Trace,
    windows,
)


def record(id: str = "mem-3", text: str = "", **more: object) -> Record:
    return Record(id, [Text("content", text)], **more)  # type: ignore[arg-type]  # test shorthand


def hows(targets: Targets, one: Record, site: str = "memories") -> list[tuple[int, How]]:
    return [(hit.key, hit.how) for hit in targets.match(site, one)]


@pytest.mark.parametrize("other", ["m", "mem-33", "MEM-3", "mem-3 ", "mem", "m%-3", ""])
def test_an_id_is_compared_whole(other: str) -> None:
    targets = Targets([Target(1, TargetKind.ID, "mem-3")])
    assert hows(targets, record("mem-3")) == [(1, How.ID)]
    assert hows(targets, record(other)) == []


@pytest.mark.parametrize("id", ["ABC#1", "a/b", "a%2Fb", "*", "[x]", "é", "e\u0301", "a\nb"])
def test_an_id_is_never_a_pattern(id: str) -> None:
    targets = Targets([Target(1, TargetKind.ID, id)])
    others = {"ABC", "a", "b", "x", "a/b", "a%2Fb", "é", "e\u0301", "ab", "ABC#1"} - {id}
    assert hows(targets, record(id)) == [(1, How.ID)]
    assert all(hows(targets, record(other)) == [] for other in others)


def test_an_id_of_one_site_is_not_looked_for_at_another() -> None:
    targets = Targets([Target(1, TargetKind.ID, "x", "memories"), Target(2, TargetKind.ID, "y")])
    assert targets.ids("memories") == ("x", "y")
    assert targets.ids("logs") == ("y",)
    assert hows(targets, record("x"), "logs") == []


def test_lineage_is_found_among_several_parents() -> None:
    targets = Targets([Target(1, TargetKind.LINEAGE, "log-2", "logs")])
    child = record(parents={"logs": ["log-1", "log-2"], "notes": ["log-2"]})
    assert hows(targets, child) == [(1, How.LINEAGE)]
    assert hows(targets, record(parents={"notes": ["log-2"]})) == []


def test_a_record_of_another_scope_is_not_named() -> None:
    targets = Targets([Target(1, TargetKind.PHRASE, "spare key", scope={"project": "atlas"})])
    mine = record(text="spare key", scope={"project": "atlas"})
    other = record(text="spare key", scope={"project": "borealis"})
    silent = record(text="spare key")
    assert [hit.scope_unknown for hit in targets.match("m", mine)] == [False]
    assert targets.match("m", other) == ()
    assert [hit.scope_unknown for hit in targets.match("m", silent)] == [True]


def test_a_subject_is_compared_whole() -> None:
    targets = Targets([Target(1, TargetKind.SUBJECT, "user-1")])
    assert hows(targets, record(subjects=["user-1"])) == [(1, How.ID)]
    assert hows(targets, record(subjects=["user-10"], text="user-1")) == []


@pytest.mark.parametrize("kind", TargetKind)
@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_an_empty_target_is_stopped(kind: TargetKind, value: str) -> None:
    with pytest.raises(EmptySelector):
        Target(1, kind, value)


def test_nothing_shows_in_a_repr() -> None:
    target = Target(1, TargetKind.PHRASE, "canary-words", scope={"user": "canary-user"})
    trace = Trace("canary-id", ("canary-text",), ("canary-meta",), ((0.5,),))
    said = repr((target, trace, record("canary-id", "canary-text"), Targets([target])))
    assert "canary" not in said


def test_short_strings_are_no_needles() -> None:
    trace = Trace("short", ("exactly8", "seven77"))
    assert trace.needles(NeedleKind.ID) == ()
    assert trace.needles(NeedleKind.TEXT) == ("exactly8",)
    assert NEEDLE_BYTES == 8


@given(st.text(min_size=1, max_size=600))
def test_windows_are_pieces_of_the_text_and_reach_both_ends(text: str) -> None:
    pieces = windows(text)
    assert all(piece in text for piece in pieces)
    assert text.startswith(pieces[0])
    assert text.endswith(pieces[-1])
    assert len(pieces) <= 8


def test_two_targets_may_not_share_a_key() -> None:
    with pytest.raises(ValueError, match="same key"):
        Targets([Target(1, TargetKind.ID, "a"), Target(1, TargetKind.ID, "b")])
