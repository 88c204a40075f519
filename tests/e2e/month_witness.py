"""Checks every sentence of a sweep's reports against the stores. Uses nothing of ``purge``.

It reads the JSON, the text and the figures as any reader would, and knows three things besides:
which request is about which words, what the stores held before the night, and how long restic
keeps a snapshot.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from tests.e2e.month_stores import LIVE, Snapshot, Stores, says

COUNTED = {
    "seen-again": "seen_again",
    "restated": "restated",
    "held": "held",
    "scope-unknown": "scope_unknown",
    "source-kept": "sources",
}
"""By the code of a problem: the count that its sentence begins with."""
FILES = ("logs", "notes", "team", "summaries", "rules")
ROWS = ("logs", "memories", "embeddings")
JSON = dict[str, Any]


class Forms(Protocol):
    """One sweep in every form in which it is said."""

    @property
    def document(self) -> JSON: ...

    @property
    def text(self) -> str: ...

    @property
    def metrics(self) -> str: ...


@dataclass(slots=True)
class Witness:
    """What was seen so far.

    Args:
        stores: how to look.
        kept_days: restic's ``--keep-daily``.
        prune: hour and minute of the nightly prune.
    """

    stores: Stores
    kept_days: int
    prune: tuple[int, int]
    words: dict[str, str] = field(default_factory=dict)
    """By request."""
    anew: set[str] = field(default_factory=set)
    """New statements of the request that is looked at: their copies are no copies of its item."""
    beyond: dict[str, Counter[str]] = field(default_factory=dict)
    """By words: how many records at which site lie beyond the scope of their request."""
    removals: dict[tuple[str, str], list[datetime]] = field(default_factory=dict)
    """By request and site: when something was seen to vanish."""
    before: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    claims: Counter[str] = field(default_factory=Counter)
    """How often each claim was made and checked."""

    def look(self) -> None:
        """See what is there before the sweep."""
        self.before = self.stores.records()

    def check(self, shown: Forms | None, applied: Forms, new: list[str], now: datetime) -> None:
        """Check a night.

        Args:
            shown: what was foretold; a replay is not.
            applied: what was done.
            new: the words of the requests that it was the first to hear of, in their order.
            now: the time of the sweep.
        """
        after = self.stores.records()
        self.snapshots = self.stores.snapshots()
        gone = {site: self._gone(site, after) for site in LIVE}
        was = applied.document
        assert was["applied"]
        coming = iter(new)
        for item in was["requests"]:
            if item["new"]:
                self.words[item["request"]["id"]] = next(coming, "nobody said so")
        assert next(coming, None) is None, "a marker was not heard"
        if shown is not None:
            assert not shown.document["applied"]
            assert "Nothing was deleted" in shown.text
            self._foretold(shown.document, was, gone, now)
        for item in was["requests"]:
            self._item(item, after, gone, now)
        self._only_what_was_asked(was, gone)
        self._whole(applied, now)
        self._text(applied)
        self._figures(applied)
        self._nothing_leaks(*([shown] if shown else []), applied)

    def _gone(self, site: str, after: dict[str, list[tuple[str, str]]]) -> list[str]:
        left, was = Counter(after[site]), Counter(self.before[site])
        added = [text for (_, text), count in (left - was).items() if count and text]
        assert not added, f"{site}: something was added or changed"
        return [text for (_, text) in (was - left).elements() if text]

    # One request.

    def _foretold(self, told: JSON, was: JSON, gone: dict[str, list[str]], now: datetime) -> None:
        for key in ("ignored", "refused"):
            assert told["markers"][key] == was["markers"][key]
        for before, item in zip(told["requests"], was["requests"], strict=True):
            words = self.words[item["request"]["id"]]
            assert before["new"] == item["new"]
            assert before["since"] == item["since"]
            for promise, step in zip(before["steps"], item["steps"], strict=True):
                where = (now, promise, step)
                assert "state" not in promise
                assert promise["found"] == step["found"], where
                vanished = [text for text in gone.get(step["site"], []) if says(text, words)]
                assert promise["to_remove"] == len(vanished), (vanished, where)
                for key, count in step["shown"].items():
                    assert promise["shown"][key] == count, (key, where)
                self.claims["foretold"] += bool(vanished)

    def _item(
        self,
        item: JSON,
        after: dict[str, list[tuple[str, str]]],
        gone: dict[str, list[str]],
        now: datetime,
    ) -> None:
        id, words = item["request"]["id"], self.words[item["request"]["id"]]
        order = ["accepted", "removed-from-reads", "backup-retained-until", "confirmed-deleted"]
        states = [step["state"] for step in item["steps"]]
        assert item["state"] == min(states, key=order.index)
        dates = [step["until"] for step in item["steps"] if step["until"]]
        assert item["until"] == (max(dates) if item["state"] == order[2] else None)
        self.anew = {
            text
            for step in item["steps"]
            if step["shown"]["restated"]
            for _, text in after[step["site"]]
            if says(text, words)
        }
        for step in item["steps"]:
            site = step["site"]
            vanished = [text for text in gone.get(site, []) if says(text, words)]
            if vanished:
                self.removals.setdefault((id, site), []).append(now)
            self._counts(step, len(vanished), after, words, now)
            self._state(step, after, words, now)
            self._came_back(id, step, len(vanished), now)
            self._evidence(step, after, now)
        if item["closed"]:
            assert set(states) == {"confirmed-deleted"}
            assert id not in self.closed
            self.closed.add(id)
            self.claims["closed"] += 1
            assert self.stores.blobs_with(f"Lesson: {words}") == []
        assert bool(self.stores.keys_of(id)) is not item["closed"]

    def _counts(
        self,
        step: JSON,
        vanished: int,
        after: dict[str, list[tuple[str, str]]],
        words: str,
        now: datetime,
    ) -> None:
        where, shown = (now, step["site"], step), step["shown"]
        live = self._live(after, step["site"], words)
        beyond = self.beyond.get(words, Counter())[step["site"]]
        assert live - beyond == step["left"] + shown["restated"], (live, beyond, where)
        assert step["removed"] >= vanished, where
        assert step["found"] == step["removed"] + step["left"], where
        problem = step["problem"]
        if problem and problem["code"] in COUNTED:
            said = re.match(r"(\d+) records? ", problem["sentence"])
            assert said, where
            assert int(said[1]) == shown[COUNTED[problem["code"]]], where
            assert int(said[1]) <= live, where
            self.claims[problem["code"]] += 1

    def _state(
        self, step: JSON, after: dict[str, list[tuple[str, str]]], words: str, now: datetime
    ) -> None:
        site, state, where = step["site"], step["state"], (now, step["site"], step)
        beyond = self.beyond.get(words, Counter())[site]
        others = step["shown"]["restated"] + beyond
        live = self._live(after, site, words)
        self.claims[state] += 1
        if state == "accepted":
            assert step["problem"], where
            return
        assert live == others, where
        if state == "removed-from-reads":
            assert step["problem"], where
        if state == "backup-retained-until":
            until, due = datetime.fromisoformat(step["until"]), self._age_out(words, now)
            assert until > now, where
            assert due is None or until >= due, (due, where)
            if due is not None and not self.beyond.get(words):
                assert until == due, (due, where)
            self.claims["dated to the minute"] += until == due
            self.claims["dated too late"] += until != due
        if state != "confirmed-deleted":
            return
        if site == "backups":
            kept = [one.id for one in self.snapshots if one.says(words, self.anew)]
            assert kept == [] or self.beyond.get(words), where
        elif site not in FILES[:3] and not others:
            assert words.encode() not in self.stores.raw(site), where

    def _age_out(self, words: str, now: datetime) -> datetime | None:
        """When the last snapshot that says the words goes, if every night goes well from now on."""
        having = [one for one in self.snapshots if one.says(words, self.anew)]
        if not having:
            return None
        newest = having[-1].taken.astimezone(now.tzinfo).date()
        days = {one.taken.astimezone(now.tzinfo).date() for one in self.snapshots}
        nights = self.kept_days - len([day for day in days if day > newest])
        hour, minute = self.prune
        tonight = now.replace(hour=hour, minute=minute)
        nights = max(nights, 1) - (now < tonight)
        due = tonight + timedelta(days=nights)
        return due.astimezone(now.tzinfo)

    def _came_back(self, id: str, step: JSON, vanished: int, now: datetime) -> None:
        for back in step["reappeared"]:
            removed = datetime.fromisoformat(back["removed"])
            seen = datetime.fromisoformat(back["seen"])
            known = [at for (one, _), times in self.removals.items() if one == id for at in times]
            assert removed in known, (now, step)
            assert removed < seen <= now, (now, step)
            if seen == now:
                assert 0 < back["count"] <= vanished, (now, step)
                self.claims["reappeared"] += 1

    def _evidence(self, step: JSON, after: dict[str, list[tuple[str, str]]], now: datetime) -> None:
        evidence, site = step["evidence"], step["site"]
        if evidence is None:
            assert step["state"] != "confirmed-deleted"
            return
        assert datetime.fromisoformat(evidence["at"]) == now, (now, step)
        if step["state"] == "confirmed-deleted":
            assert evidence["control"], (now, step)
            assert all(evidence["control"].values()), (now, step)
        said = {
            noun.rstrip("s"): int(count)
            for count, noun in re.findall(r"(\d+) (files?|records?)\b", evidence["examined"])
        }
        if site in FILES:
            count = len({name for name, _ in after[site]}) if site != "logs" else 1
            assert said["file"] == count, (now, step)
        if site in ROWS:
            assert said.get("record", 0) == len(after[site]), (now, said, after[site], step)

    def _live(self, after: dict[str, list[tuple[str, str]]], site: str, words: str) -> int:
        return sum(says(text, words) for _, text in after.get(site, []))

    # The whole.

    def _only_what_was_asked(self, was: JSON, gone: dict[str, list[str]]) -> None:
        asked = {self.words[item["request"]["id"]] for item in was["requests"]}
        for site, texts in gone.items():
            for text in texts:
                assert any(says(text, words) for words in asked), (site, text)

    def _whole(self, night: Forms, now: datetime) -> None:
        document = night.document
        assert document["begun"] == document["ended"] == now.isoformat(timespec="seconds")
        newest = self.snapshots[-1].taken
        if document["mode"] == "sweep":
            assert datetime.fromisoformat(document["snapshot"]["taken"]) == newest
        assert document["to_remove"] == 0
        owed = [item for item in document["requests"] if not (item["settled"] or item["closed"])]
        assert document["settled"] is not bool(owed or document["overdue"] or document["not_read"])
        for late in document["overdue"]:
            self.claims["overdue"] += 1
            item = next(i for i in document["requests"] if i["request"]["id"] == late["request"])
            codes = [step["problem"]["code"] for step in item["steps"] if step["problem"]]
            if late["due"] is None:
                assert "promise-missed" in codes, late
            else:
                assert datetime.fromisoformat(late["due"]) < now, late

    def _text(self, applied: Forms) -> None:
        assert "Nothing was deleted" not in applied.text
        document = applied.document
        assert ("Nothing is owed." in applied.text) is (
            document["settled"] and bool(document["requests"]) and not document["markers"]["struck"]
        )
        for item in document["requests"]:
            row = next(
                line.split()
                for line in applied.text.splitlines()
                if line.startswith(item["request"]["id"]) and " marker " in line + " marker "
            )
            assert row[1].rstrip(";") == item["state"]
            numbers = [word for word in row if word.isdigit()]
            removed, left = (
                sum(step[key] for step in item["steps"]) for key in ("removed", "left")
            )
            assert numbers[:2] == [str(removed), str(left)], row
            if item["until"]:
                assert row[2] == item["until"][:10]
        back = [
            (item["request"]["id"], step["site"])
            for item in document["requests"]
            for step in item["steps"]
            for one in step["reappeared"]
            if one["seen"] >= document["begun"]
        ]
        said = re.findall(r"^  (\S+) at (\S+): \d+ records?, removed", applied.text, re.MULTILINE)
        assert said == back

    def _figures(self, night: Forms) -> None:
        figures = dict(
            line.rsplit(" ", 1) for line in night.metrics.splitlines() if not line.startswith("#")
        )
        open_ = [item for item in night.document["requests"] if not item["closed"]]
        assert int(figures["purge_open_requests"]) == len(open_)
        assert int(figures["purge_overdue_requests"]) == len(night.document["overdue"])
        states = Counter(step["state"] for item in open_ for step in item["steps"])
        for state, count in states.items():
            assert int(figures[f'purge_steps{{state="{state}"}}']) == count
        back = [
            one["count"]
            for item in open_
            for step in item["steps"]
            for one in step["reappeared"]
            if one["seen"] == night.document["begun"]
        ]
        assert int(figures["purge_reappeared_records"]) == sum(back)

    def _nothing_leaks(self, *nights: Forms) -> None:
        for night in nights:
            for said in (repr(night.document), night.text, night.metrics):
                for words in {*self.words.values(), *self.beyond}:
                    assert words not in said
