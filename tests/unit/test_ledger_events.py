"""The canonical form and the hash, checked by means that share no code with the ledger."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.ledger.events import JSON, canonical, digest_of_event, timestamp

values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
bodies = st.dictionaries(st.text(max_size=5), values, max_size=4)
names = st.none() | st.text(max_size=12)


@given(bodies)
def test_canonical_form_is_what_it_says_to_be(body: dict[str, JSON]) -> None:
    text = canonical(body)
    assert text.isascii()
    assert text == json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert json.loads(text) == body


@given(st.integers(min_value=1), bodies, names, names)
def test_hash_is_that_of_the_canonical_object(
    seq: int, body: dict[str, JSON], request: str | None, site: str | None
) -> None:
    previous = "sha256:" + "ab" * 32
    at = "2031-04-05T06:07:08.000009+00:00"
    whole = {
        "seq": seq,
        "at": at,
        "kind": "fact",
        "request": request,
        "site": site,
        "body": body,
        "prev_hash": previous,
    }
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    expected = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    found = digest_of_event(seq, at, "fact", request, site, canonical(body), previous)
    assert found == expected


@pytest.mark.parametrize("body", [{"a": 1.5}, {"a": [{"b": 0.0}]}, {"a": ({"b": float("nan")},)}])
def test_floats_are_refused(body: dict[str, JSON]) -> None:
    with pytest.raises(TypeError, match="floats"):
        canonical(body)


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical({"a": b"bytes"})
    with pytest.raises(TypeError):
        canonical({"a": {1, 2}})  # type: ignore[dict-item]  # what a caller may get wrong
    with pytest.raises(TypeError, match="key"):
        canonical({1: "a"})  # type: ignore[dict-item]  # as above


def test_tuples_and_other_mappings_are_written_like_lists_and_objects() -> None:
    assert canonical({"a": (1, ("x",)), "A": {}}) == '{"A":{},"a":[1,["x"]]}'


def test_times_are_kept_in_utc_and_need_a_zone() -> None:
    tokyo = datetime(2031, 1, 1, 3, 0, tzinfo=timezone(timedelta(hours=9)))
    assert timestamp(tokyo) == "2030-12-31T18:00:00.000000+00:00"
    assert datetime.fromisoformat(timestamp(tokyo)) == tokyo
    with pytest.raises(ValueError, match="time zone"):
        timestamp(tokyo.replace(tzinfo=None))
    assert timestamp(datetime(2031, 1, 1, tzinfo=UTC)).endswith("+00:00")
