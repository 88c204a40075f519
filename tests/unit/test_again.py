"""What came back and what is new: the rule that decides what a later run takes by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from purge.adapter import Match
from purge.plan.again import SETTLE, Again, Coming, Hold, is_held, said
from purge.targets import Trace

ASKED = datetime(2026, 11, 1, 3, tzinfo=UTC)
REMOVED = ASKED + timedelta(hours=1)
LATER = REMOVED + timedelta(days=9)
TEXT = "the staging database may be wiped"
SITES = frozenset({"logs", "summaries"})


def record(text: str = "something", created: datetime | None = None, **more: object) -> Match:
    return Match("r1", (), "w", {}, Trace("r1", (text,)), created=created, **more)  # type: ignore[arg-type]  # shorthand


def again(now: datetime = LATER, **more: object) -> Again:
    known = {
        **{"created": ASKED, "now": now, "removed": REMOVED, "texts": said([TEXT])},
        **{"derived": frozenset({"summaries"}), "looked": SITES},
    }
    return Again(**(known | more))  # type: ignore[arg-type]  # shorthand


@pytest.mark.parametrize(
    ("site", "match", "coming"),
    [
        ("logs", record(TEXT), Coming.BACK),
        ("logs", record(TEXT.upper()), Coming.BACK),
        ("logs", record(f"I quote: {TEXT}"), Coming.SEEN_AGAIN),
        ("logs", record(f"I quote: {TEXT}", created=LATER), Coming.RESTATED),
        ("logs", record(f"I quote: {TEXT}", created=ASKED - SETTLE), Coming.SEEN_AGAIN),
        ("summaries", record(f"it says {TEXT}", created=LATER), Coming.SEEN_AGAIN),
        ("summaries", record(f"it says {TEXT}", created=REMOVED + SETTLE), Coming.BACK),
        ("summaries", record(f"it says {TEXT}"), Coming.SEEN_AGAIN),
    ],
)
def test_long_after_the_removal(site: str, match: Match, coming: Coming) -> None:
    assert again().judge(site, match) is coming


@pytest.mark.parametrize(
    ("site", "coming"), [("summaries", Coming.BACK), ("logs", Coming.SEEN_AGAIN)]
)
def test_within_the_day_a_derived_record_goes(site: str, coming: Coming) -> None:
    soon = again(now=REMOVED + SETTLE)
    assert soon.judge(site, record(f"it says {TEXT}")) is coming
    assert soon.judge(site, record(f"it says {TEXT}", created=ASKED - SETTLE)) is coming


def test_what_stood_there_at_the_time_is_not_taken_for_what_was_removed() -> None:
    assert again().judge("logs", record(TEXT), spared=True) is Coming.SEEN_AGAIN
    soon = again(now=REMOVED + SETTLE)
    assert soon.judge("summaries", record(f"it says {TEXT}"), spared=True) is Coming.SEEN_AGAIN


def test_a_site_that_no_run_got_to_is_done_as_asked() -> None:
    assert again(looked=frozenset({"summaries"})).judge("logs", record()) is Coming.GOES
    assert again(removed=None).judge("logs", record()) is Coming.GOES
    assert again(removed=None).judge("logs", record(created=LATER)) is Coming.RESTATED


def test_suppress_takes_everything() -> None:
    asked = again(suppress=True)
    assert asked.judge("logs", record(created=LATER)) is Coming.BACK


def test_short_texts_tell_nothing() -> None:
    assert said(["yes", "ok then"]) == frozenset()
    assert again(texts=said(["yes"])).judge("logs", record("yes")) is Coming.SEEN_AGAIN


HELD = record(subjects=("edwin",), scope={"project": "cafe"})


@pytest.mark.parametrize(
    ("hold", "held"),
    [
        (Hold(ids=frozenset({("logs", "r1")})), True),
        (Hold(ids=frozenset({(None, "r1")})), True),
        (Hold(ids=frozenset({("notes", "r1")})), False),
        (Hold(ids=frozenset({("logs", "r11")})), False),
        (Hold(subjects=frozenset({"edwin"})), True),
        (Hold(subjects=frozenset({"edwina"})), False),
        (Hold(scope={"project": "cafe"}), True),
        (Hold(scope={"project": "boat"}), False),
        (Hold(scope={"project": "cafe", "tenant": "x"}), False),
        (Hold(), False),
    ],
)
def test_what_a_hold_is_on(hold: Hold, held: bool) -> None:
    assert hold.holds("logs", HELD, ["project"]) is held
    assert is_held([Hold(), hold], "logs", HELD, ["project"]) is held


def test_a_record_that_does_not_say_its_scope_is_held_in_doubt() -> None:
    hold = Hold(scope={"project": "cafe"})
    assert hold.holds("logs", record(), ["project"])
    assert not hold.holds("logs", record(), [])
