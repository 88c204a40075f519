"""Looking for many byte strings at once finds what looking for each finds."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.targets import NeedleKind, Target, TargetKind, Targets, Trace
from purge_adapters import _chroma_needles as needles

ALPHABET = st.sampled_from([b"a", b"b", b"\x00"])
PIECES = st.lists(ALPHABET, max_size=60).map(b"".join)


def by_hand(forms: list[bytes], content: bytes) -> set[tuple[bytes, int]]:
    return {
        (form, at)
        for form in forms
        for at in range(len(content))
        if content[at : at + len(form)] == form
    }


@given(
    forms=st.lists(PIECES.filter(lambda piece: len(piece) >= 8), unique=True, max_size=8),
    content=st.lists(PIECES, max_size=6).map(b"".join),
    block=st.integers(min_value=8, max_value=40),
)
def test_every_place_is_found_whatever_the_blocks(
    forms: list[bytes], content: bytes, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(needles, "_ONE_BY_ONE", 0)
        patch.setattr(needles, "_BLOCK", block)
        found = list(needles.Finder(forms).places(content))
    assert len(found) == len(set(found))
    assert set(found) == by_hand(forms, content)
    assert set(needles.Finder(forms).places(content)) == by_hand(forms, content)


def test_what_is_shorter_than_a_needle_is_none() -> None:
    trace = Trace("short", texts=("許可証",), metadata=("x", "long enough"), vectors=((1.0,),))
    targets = Targets([Target(0, TargetKind.ID, "1", "here")])
    found = needles.needles_of([trace], targets, "here")
    assert all(len(form) >= 8 for form in found)
    assert {(needle.kind, needle.text) for needle in found.values()} == {
        (NeedleKind.TEXT, "許可証"),  # Nine bytes in UTF-8, six in UTF-16.
        (NeedleKind.METADATA, "long enough"),
    }


def test_a_vector_that_says_nothing_is_no_needle() -> None:
    assert needles.vector_pieces([0.0] * 64) == ()
    assert needles.vector_pieces([1000.0] * 64) == ()
    telling = [float(number) for number in range(64)]
    pieces = needles.vector_pieces(telling)
    assert all(piece in struct.pack("<64f", *telling) for piece in pieces)
    assert len(pieces) == 3
