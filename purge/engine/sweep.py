"""The nightly sweep: gate, markers, every open request in one run, expiries, closing, striking.

It decides nothing of its own about records: the run does, with :mod:`purge.plan`. It acts only
behind a fresh snapshot, and one marker that cannot be obeyed keeps nothing else from being done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from purge.adapter import Examined, Marker, NotAMarker, NotChecked, Snapshot
from purge.engine.crash import crash_point
from purge.engine.journal import Journal
from purge.engine.sites import Sites
from purge.engine.task import Kept, Task
from purge.errors import PurgeError
from purge.ledger import KeyState
from purge.manifest import Manifest
from purge.matching import fold, width
from purge.plan.outcome import Outcome
from purge.plan.request import Origin, Request, Wanted
from purge.plan.sweep import Gate, Item, Overdue, Unheard
from purge.state import ProblemCode, State
from purge.targets import TargetKind

DEADLINE = timedelta(days=30)
"""By when a request has to be confirmed or dated, where nobody says otherwise."""


@dataclass(slots=True)
class Heard:
    """The markers of one night."""

    markers: list[tuple[str, Marker]] = field(default_factory=list)
    ignored: list[Unheard] = field(default_factory=list)
    refused: list[Unheard] = field(default_factory=list)
    failures: list[Unheard] = field(default_factory=list)


def check_gate(manifest: Manifest, sites: Sites, now: datetime) -> Gate:
    """Look for a snapshot that is young enough and holds every site that it is to cover."""
    wanted = manifest.safety.snapshot
    if wanted is None:
        return Gate(
            "The manifest names no snapshot to stand behind a sweep (safety.snapshot). Name one, "
            "or run with --without-snapshot if there is nothing to go back to on purpose."
        )
    covered = frozenset(manifest.sites[wanted.site].covers)
    try:
        found = sites.snapshots(wanted.site)
    except PurgeError as error:
        return Gate(f"The snapshots of '{wanted.site}' cannot be listed: {error}", wanted.site)
    whole = [one for one in found if one.sites >= covered]
    newest = max(whole, key=lambda one: one.taken, default=None)
    if newest is None:
        return Gate(_no_snapshot(wanted.site, found, covered), wanted.site)
    if newest.taken > now + timedelta(minutes=10):
        return Gate(
            f"The newest snapshot of '{wanted.site}' is dated in the future "
            f"({_when(newest.taken, now)}); a clock is wrong.",
            wanted.site,
        )
    if now - newest.taken > wanted.max_age:
        return Gate(
            f"The newest whole snapshot of '{wanted.site}' is of {_when(newest.taken, now)}, older "
            f"than safety.snapshot.max_age allows. Make a fresh one, then sweep again.",
            wanted.site,
            newest.taken,
        )
    return Gate(None, wanted.site, newest.taken)


def _no_snapshot(site: str, found: Sequence[Snapshot], covered: frozenset[str]) -> str:
    if not found:
        return f"'{site}' holds no snapshot yet. Make one, then sweep again."
    best = max(found, key=lambda one: one.taken)
    missing = ", ".join(sorted(covered - best.sites))
    return (
        f"No snapshot of '{site}' holds all sites that it is to cover; the newest lacks {missing}. "
        "Make a whole one, then sweep again."
    )


def _when(moment: datetime, now: datetime) -> str:
    return f"{moment.astimezone(now.tzinfo):%Y-%m-%d %H:%M}"


def listen(manifest: Manifest, sites: Sites) -> Heard:
    """Read all markers, and sort out those that cannot be obeyed whatever they would find."""
    heard = Heard()
    for source in manifest.markers.sources if manifest.markers else ():
        try:
            found = sites.markers(source.site, source.where)
        except PurgeError as error:
            heard.failures.append(Unheard(source.site, source.site, str(error)))
            continue
        for item in found:
            if isinstance(item, Marker):
                why = _unfit(manifest, source.site, item)
                if why is None:
                    heard.markers.append((source.site, item))
                else:
                    heard.refused.append(Unheard(source.site, item.where, why, item.created))
            elif isinstance(item, NotAMarker):
                heard.ignored.append(Unheard(source.site, item.where, item.why))
            elif isinstance(item, NotChecked):
                heard.failures.append(Unheard(source.site, item.where, item.why))
            else:
                assert isinstance(item, Examined)
    return heard


def _unfit(manifest: Manifest, site: str, marker: Marker) -> str | None:
    """Return why a marker is refused before anything is looked for."""
    if not fold(marker.phrase):
        return "it names nothing"
    least = manifest.safety.min_phrase_width
    if width(marker.phrase) < least:
        return (
            f"its phrase is {width(marker.phrase)} columns wide, and the manifest asks for at "
            f"least {least} (safety.min_phrase_width)"
        )
    open_ = sorted(key for key in manifest.sites[site].scope if key not in marker.scope)
    if open_:
        return (
            f"its record does not say to which {' and '.join(open_)} it belongs, so that nothing "
            "limits what it could reach"
        )
    return None


def request_of(site: str, marker: Marker, now: datetime, deadline: timedelta) -> Request:
    """Return the request that a marker is."""
    return Request(
        id="",
        created=now,
        wanted=(Wanted(TargetKind.PHRASE, marker.phrase),),
        scope=dict(marker.scope),
        reason=f"a marker in {site}",
        asked_by="",
        deadline=now + deadline,
        origin=Origin(site, marker.record, marker.part),
    )


@dataclass(slots=True)
class Night:
    """The tasks of one sweep, and what is known of where they come from."""

    tasks: list[Task] = field(default_factory=list)
    since: list[datetime] = field(default_factory=list)
    new: list[bool] = field(default_factory=list)
    markers: dict[tuple[str, ...], Marker] = field(default_factory=dict)
    """By the identity of its request."""

    def add(self, task: Task, since: datetime, *, new: bool) -> None:
        """Add a request."""
        self.tasks.append(task)
        self.since.append(since)
        self.new.append(new)


def gather(
    heard: Heard,
    journal: Journal | None,
    now: datetime,
    deadline: timedelta,
    load: Callable[[Journal, str], Task],
) -> Night:
    """Return every open request and every marker that was not heard before."""
    night = Night()
    new: list[tuple[Request, Marker]] = []
    written: dict[tuple[str, ...], datetime | None] = {}
    for site, marker in heard.markers:
        request = request_of(site, marker, now, deadline)
        identity = request.identity()
        if identity in night.markers:
            continue
        night.markers[identity] = marker
        written[identity] = marker.created
        if journal is None or not journal.knows(request):
            new.append((request, marker))
    for task in _open_tasks(journal, load):
        asked = task.request.created
        since = written.get(task.request.identity()) if task.request.origin else None
        night.add(task, min(asked, since) if since else asked, new=False)
    for request, marker in new:
        task = Task(request, marker=True, again=True)
        night.add(task, marker.created or now, new=True)
    return night


def _open_tasks(journal: Journal | None, load: Callable[[Journal, str], Task]) -> Iterator[Task]:
    """The open requests, oldest first."""
    if journal is not None:
        for view in reversed(journal.ledger.requests(open_only=True)):
            yield load(journal, view.id)


def overdue(items: Sequence[Item], now: datetime, deadline: timedelta) -> tuple[Overdue, ...]:
    """Return the requests of which a promise is late."""
    late = []
    for item in items:
        asked, outcome = item.outcome.request, item.outcome
        missed = [
            f"{step.site}: {step.problem.sentence}"
            for step in outcome.steps
            if step.problem is not None and step.problem.code is ProblemCode.PROMISE_MISSED
        ]
        due = asked.deadline or asked.created + deadline
        if missed:
            late.append(Overdue(asked.id, None, missed[0]))
        elif due < now and not (outcome.settled or item.closed):
            late.append(
                Overdue(asked.id, due, f"it was to be confirmed or dated by {_when(due, now)}")
            )
    return tuple(late)


def may_close(outcome: Outcome, kept: Kept, now: datetime, settle: timedelta) -> bool:
    """Whether nothing is left anywhere, and nothing that was under way can bring it back."""
    return (
        outcome.applied
        and bool(outcome.steps)
        and all(step.state is State.CONFIRMED_DELETED for step in outcome.steps)
        and kept.last_removed is not None
        and now - kept.last_removed > settle
    )


def finish_closing(journal: Journal) -> None:
    """Destroy the keys of closed requests where a run was killed before it did."""
    for view in journal.ledger.requests():
        if view.closed is not None and view.key is KeyState.HELD:
            journal.ledger.destroy_key(view.id, remember_asked="marker" in view.options)


def close(journal: Journal, items: Sequence[Item], tasks: Sequence[Task], now: datetime,
          settle: timedelta) -> tuple[Item, ...]:  # fmt: skip
    """Close the requests of which nothing is left, and destroy their keys."""
    done = []
    for item, task in zip(items, tasks, strict=True):
        closes = may_close(item.outcome, task.kept, now, settle)
        if closes:
            journal.close(task.request.id)
            crash_point("closed")
            # A marker that stays in its note must not become a request again.
            journal.ledger.destroy_key(
                task.request.id, remember_asked=task.request.origin is not None
            )
        done.append(replace(item, closed=closes))
    return tuple(done)


def to_strike(
    night: Night, journal: Journal, manifest: Manifest
) -> Mapping[str, list[tuple[Marker, str]]]:
    """Return, by site, the markers whose requests are confirmed, with the ids of these."""
    struck: dict[str, list[tuple[Marker, str]]] = {}
    if manifest.markers is None or manifest.markers.when_done != "strike":
        return struck
    for identity, marker in night.markers.items():
        view = journal.asked(identity)
        if view is not None and view.state is State.CONFIRMED_DELETED:
            struck.setdefault(identity[1], []).append((marker, view.id))
    return struck
