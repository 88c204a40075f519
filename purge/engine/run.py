"""One run: find, remove, read back, sanitize, examine, judge, for a list of requests at once.

``request``, ``resume`` and ``verify`` are this run over different requests, with or without its
middle part. It decides nothing itself: :mod:`purge.plan` says what has to go and what was proved.
Every act is in the ledger as an intent before, and as a fact after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from purge.adapter import Action, NotChecked, NotRemoved, Removal, Residue
from purge.engine.crash import crash_point
from purge.engine.journal import Journal, Kept
from purge.engine.sites import Removed, ResidueLook, Sites
from purge.engine.survey import Excerpt, Survey
from purge.engine.verdicts import Seen, make_step, without_site
from purge.ledger import JSON, Event, EventKind
from purge.plan.limits import Limits, ambiguity, refusal
from purge.plan.outcome import Outcome, Step, Tally
from purge.plan.reach import Owed, explore
from purge.plan.request import Decisions, Request
from purge.targets import Targets

ROUNDS = 3
"""How often what turns up during a run is removed before it is left to the next one."""


@dataclass(slots=True)
class Task:
    """A request in a run, with what earlier runs of it left."""

    request: Request
    kept: Kept = field(default_factory=Kept)
    steps: Mapping[str, Step] = field(default_factory=dict)
    asked_before: bool = False
    decided: Decisions | None = None
    """What the caller decided this time; recorded once the run is allowed."""
    refusal: str | None = None
    late: dict[str, int] = field(default_factory=dict)
    limited: bool = False


class Run:
    """One run over the sites of a manifest.

    Args:
        sites: the sites; writable if the run applies.
        limits: what a request may remove.
        clock: the time, with a time zone.
        open_journal: opens the ledger, when there is something to record; ``None`` in a dry run.
    """

    def __init__(
        self,
        sites: Sites,
        limits: Limits,
        clock: Callable[[], datetime],
        open_journal: Callable[[], Journal] | None = None,
    ) -> None:
        self.sites = sites
        self.limits = limits
        self.clock = clock
        self._open_journal = open_journal
        self._journal: Journal | None = None
        self._left_alone: dict[str, list[NotRemoved | NotChecked]] = {}
        self._failures: dict[str, Removed] = {}
        self.excerpts: list[Excerpt] = []
        """What the last dry run met, with its words."""

    def show(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Find out what would happen. Changes nothing, and writes no ledger."""
        survey = self._survey(tasks)
        self._refuse(tasks, survey)
        self.excerpts = survey.excerpts()
        looks = self._examine(survey, tasks)
        return self._outcomes(tasks, survey, looks, applied=False)

    def verify(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Look again now and record what was seen. Removes nothing."""
        journal = self._need_journal()
        ids = [task.request.id for task in tasks]
        journal.note(EventKind.RUN_STARTED, ids, None, {"mode": "verify"})
        for task in tasks:
            journal.begin_steps(task.request.id, task.steps, self._adapters())
        survey = self._survey(tasks)
        looks = self._examine(survey, tasks)
        outcomes = self._outcomes(tasks, survey, looks, applied=True)
        self._record(tasks, outcomes)
        return outcomes

    def apply(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Carry the requests out. A request that a safety rule refuses changes nothing."""
        survey = self._survey(tasks)
        self._refuse(tasks, survey)
        refused = [task for task in tasks if task.refusal is not None]
        carried = [task for task in tasks if task.refusal is None]
        outcomes = []
        if carried:
            if refused:
                survey = self._survey(carried)
            outcomes = self._carry_out(carried, survey)
        return [*outcomes, *self._explain(refused)]

    def _carry_out(self, tasks: Sequence[Task], survey: Survey) -> list[Outcome]:
        self._plan(tasks, survey)
        survey = self._remove_all(tasks, survey)
        looks, changed = self._sanitize(tasks, survey)
        if changed:
            survey = self._survey(tasks)
        crash_point("examined")
        outcomes = self._outcomes(tasks, survey, looks, applied=True)
        self._record(tasks, outcomes)
        return outcomes

    def _explain(self, refused: Sequence[Task]) -> list[Outcome]:
        """Show what refused requests would have met."""
        if not refused:
            return []
        survey = self._survey(refused)
        return self._outcomes(refused, survey, self._examine(survey, refused), applied=False)

    # Looking.

    @staticmethod
    def _numbers(tasks: Sequence[Task]) -> list[int]:
        return list(range(len(tasks)))

    def _survey(self, tasks: Sequence[Task]) -> Survey:
        reach = explore(
            [task.request for task in tasks],
            self.sites,
            self.sites.find,
            min_copy_width=self.limits.min_phrase_width,
            owed={number: task.kept.owed for number, task in enumerate(tasks)},
        )
        return Survey.of(reach, self._numbers(tasks))

    def _refuse(self, tasks: Sequence[Task], survey: Survey) -> None:
        for number, task in enumerate(tasks):
            going = self._by_purge(survey.by_site(number))
            planned = self._by_purge(survey.planned(number))
            if task.kept.owed and not going:
                continue  # Planned and allowed earlier, and nothing of it is left to remove.
            task.refusal = ambiguity(survey.reach, number) or refusal(
                task.request, going, self.limits, planned=sum(planned.values())
            )

    def _by_purge(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Leave out the sites where a person has to act."""
        return {
            name: count
            for name, count in counts.items()
            if self.sites.action(name) is not Action.REPORT
        }

    def _examine(
        self, survey: Survey, tasks: Sequence[Task], names: Iterable[str] | None = None
    ) -> dict[str, ResidueLook]:
        targets = self._leftovers(survey, tasks)
        wanted = self.sites.names() if names is None else names
        return {name: self.sites.residue(name, targets) for name in wanted}

    def _leftovers(self, survey: Survey, tasks: Sequence[Task]) -> Targets:
        return survey.targets(self._numbers(tasks), lambda number: tasks[number].kept.owed)

    # Acting.

    def _plan(self, tasks: Sequence[Task], survey: Survey) -> None:
        """Put everything that the run is about to do, and what it saw, into the ledger."""
        # The control: the look for residue must see now what it is not to see afterwards.
        touched = [name for name in self.sites.names() if survey.to_remove(name)]
        before = self._examine(survey, tasks, touched)
        journal = self._need_journal()
        for number, task in enumerate(tasks):
            if not task.request.id:
                task.request = journal.create(task.request, self._adapters())
            else:
                journal.begin_steps(task.request.id, task.steps, self._adapters())
                if task.decided is not None:
                    journal.decide(task.request.id, task.decided)
            for name, look in before.items():
                task.kept.take_controls(name, look.by_kind(on_target=True))
            _extend(task.kept, survey.owed(number))
            id, counts = task.request.id, dict(survey.by_site(number))
            begun = [
                Event(EventKind.RUN_STARTED, id, None, {"mode": "apply"}),
                Event(EventKind.PLAN_MADE, id, None, {"to_remove": counts}),
            ]
            journal.keep(id, task.kept, begun)
        crash_point("planned")

    def _remove_all(self, tasks: Sequence[Task], survey: Survey) -> Survey:
        """Remove, read back, and remove again what turned up; return the last reading."""
        for round_ in range(ROUNDS):
            acted = False
            for name in self.sites.removal_order():
                acted |= self._remove(tasks, survey, name)
            if not acted:
                return survey
            survey = self._survey(tasks)
            crash_point("reread.done")
            if not self._take_up_late(tasks, survey, last=round_ == ROUNDS - 1):
                return survey
        return survey

    def _remove(self, tasks: Sequence[Task], survey: Survey, name: str) -> bool:
        removals = [
            Removal(match, tasks[number].request.id, self.clock())
            for number, match in survey.to_remove(name)
            if not tasks[number].limited
        ]
        if not removals or self.sites.action(name) is Action.REPORT:
            return False
        journal, ids = self._need_journal(), _ids(tasks, survey, name)
        for task in tasks:
            task.kept.removed_at.pop(name, None)  # Something is back, or was never gone.
        body: dict[str, JSON] = {"act": "remove", "records": len(removals)}
        journal.note(EventKind.INTENT, ids, name, body)
        crash_point("remove.intended", name)
        done = self.sites.remove(name, removals)
        crash_point("remove.done", name)
        self._note_result(name, done)
        body["left_alone"] = len(done.left_alone)
        journal.note(EventKind.FACT, ids, name, body)
        crash_point("remove.recorded", name)
        return True

    def _take_up_late(self, tasks: Sequence[Task], survey: Survey, *, last: bool) -> bool:
        """Put what turned up meanwhile into the plan; whether there is anything to remove."""
        journal, more = self._need_journal(), False
        for number, task in enumerate(tasks):
            known = {entry.key for entry in task.kept.owed}
            owed = survey.owed(number)
            late = [entry for entry in owed if entry.key not in known]
            allowed = max(self.limits.max_records, task.request.expect or 0)
            if late and len(owed) > allowed:
                task.limited = True
                continue
            if late:
                for entry in late:
                    task.late[entry.site] = task.late.get(entry.site, 0) + 1
                _extend(task.kept, late)
                journal.keep(task.request.id, task.kept)
            more |= bool(late)
        return more and not last

    def _sanitize(
        self, tasks: Sequence[Task], survey: Survey
    ) -> tuple[dict[str, ResidueLook], bool]:
        """Look for left-over copies, remove those that can be, and look again.

        Returns:
            The last look at each site, and whether any site was changed.
        """
        targets = self._leftovers(survey, tasks)
        looks: dict[str, ResidueLook] = {}
        changed = False
        for name in self.sites.names():
            look = self.sites.residue(name, targets)
            fixable = [copy for copy in look.residue if copy.fixable]
            if fixable and not survey.to_remove(name) and self._may_write(name):
                self._sanitize_one(tasks, name, fixable)
                look, changed = self.sites.residue(name, targets), True
            looks[name] = look
        return looks, changed

    def _sanitize_one(self, tasks: Sequence[Task], name: str, fixable: Sequence[Residue]) -> None:
        journal, ids = self._need_journal(), [task.request.id for task in tasks]
        body: dict[str, JSON] = {"act": "sanitize", "copies": len(fixable)}
        journal.note(EventKind.INTENT, ids, name, body)
        crash_point("sanitize.intended", name)
        done = self.sites.sanitize(name, fixable)
        crash_point("sanitize.done", name)
        self._note_result(name, done)
        body["left_alone"] = len(done.left_alone)
        journal.note(EventKind.FACT, ids, name, body)
        crash_point("sanitize.recorded", name)

    def _may_write(self, name: str) -> bool:
        return self.sites.action(name) is not Action.REPORT and not self._left_alone.get(name)

    def _note_result(self, name: str, done: Removed) -> None:
        self._left_alone.setdefault(name, []).extend(done.left_alone)
        if done.failure is not None:
            self._failures[name] = done

    # Judging and recording.

    def _outcomes(
        self,
        tasks: Sequence[Task],
        survey: Survey,
        looks: Mapping[str, ResidueLook],
        *,
        applied: bool,
    ) -> list[Outcome]:
        now = self.clock()
        outcomes = []
        for number, task in enumerate(tasks):
            steps = []
            for name in self.sites.names():
                failed = self._failures.get(name)
                seen = Seen(
                    site=self.sites.manifest.sites[name],
                    info=self.sites.info(name),
                    request=task.request,
                    tally=_tally(survey, number, name, task),
                    look=survey.look(name),
                    residue=looks[name],
                    before=task.kept.controls.get(name, {}),
                    removed_at=task.kept.removed_at.get(name),
                    left_alone=tuple(self._left_alone.get(name, ())),
                    failure=(failed.failure if failed else None) or looks[name].failure,
                    found_anywhere=survey.found_anywhere(number),
                    limited=task.limited,
                    previous=task.steps.get(name),
                )
                step = make_step(seen, now, applied=applied)
                if applied:
                    _note_removal(task.kept, seen, now)
                steps.append(step)
            # A site that left the manifest is no longer looked at; what was proved there stays.
            steps.extend(
                without_site(step)
                for name, step in task.steps.items()
                if name not in self.sites.manifest.sites
            )
            outcomes.append(
                Outcome(
                    task.request.asked(), applied, tuple(steps), task.refusal, task.asked_before
                )
            )
        return outcomes

    def _record(self, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
        journal = self._need_journal()
        for task, outcome in zip(tasks, outcomes, strict=True):
            journal.record(task.request.id, outcome.steps, task.kept)
        crash_point("judged")

    def _adapters(self) -> dict[str, str]:
        """Every site of the manifest with the name of its adapter."""
        return {name: self.sites.manifest.sites[name].adapter for name in self.sites.names()}

    def _need_journal(self) -> Journal:
        if self._journal is None:
            if self._open_journal is None:
                raise RuntimeError("a run without a ledger only shows")
            self._journal = self._open_journal()
        return self._journal


def _tally(survey: Survey, number: int, name: str, task: Task) -> Tally:
    """Count what a look saw. A look that failed saw nothing, which is no removal."""
    before = task.steps.get(name)
    counted = survey.tally(number, name, task.late.get(name, 0))
    if survey.look(name).failure is None:
        return counted
    if before is not None:
        return before.tally
    return replace(counted, removed=0, left=counted.to_remove)


def _note_removal(kept: Kept, seen: Seen, now: datetime) -> None:
    """Keep since when reads have returned nothing, without a break."""
    if seen.look.failure is not None or seen.look.unseen:
        return
    if seen.tally.to_remove > seen.tally.removed:
        kept.removed_at.pop(seen.site.name, None)
    elif seen.tally.to_remove:
        kept.removed_at.setdefault(seen.site.name, now)


def _extend(kept: Kept, entries: Sequence[Owed]) -> None:
    known = {entry.key for entry in kept.owed}
    kept.owed.extend(entry for entry in entries if entry.key not in known)


def _ids(tasks: Sequence[Task], survey: Survey, name: str) -> list[str]:
    return [
        task.request.id for number, task in enumerate(tasks) if survey.tally(number, name).to_remove
    ]
