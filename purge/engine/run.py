"""One run: find, remove, read back, sanitize, examine, judge, for a list of requests at once.

``request``, ``resume``, ``verify``, ``sweep`` and ``replay`` are this run over different requests,
with or without its middle part. It decides nothing itself: :mod:`purge.plan` says what has to go
and what was proved. Every act is in the ledger as an intent before, and as a fact after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from purge.adapter import Action, Match, Removal, Residue
from purge.engine.crash import crash_point
from purge.engine.journal import Journal
from purge.engine.judging import Account, Picture, changed_steps
from purge.engine.sites import ResidueLook, Sites
from purge.engine.survey import Excerpt, Leftovers, Survey
from purge.engine.task import Task
from purge.ledger import JSON, Event, EventKind
from purge.plan.again import SETTLE, Hold, is_held
from purge.plan.decide import Policy
from purge.plan.limits import Limits, ambiguity, refusal, refusal_of_more
from purge.plan.outcome import Outcome, Reappearance
from purge.plan.reach import explore

ROUNDS = 3
"""How often what turns up during a run is removed before it is left to the next one."""


class Run:
    """One run over the sites of a manifest.

    Args:
        sites: the sites; writable if the run applies.
        limits: what a request may remove.
        clock: the time, with a time zone.
        open_journal: opens the ledger, when there is something to record; ``None`` in a dry run.
        holds: legal holds; what they are on stays.
        settle: how long after a removal a derived record counts as made from what was removed.
        only: the sites where records may be taken out; ``None``: all.
        mode: what kind of run it is, for the ledger.
    """

    def __init__(
        self,
        sites: Sites,
        limits: Limits,
        clock: Callable[[], datetime],
        open_journal: Callable[[], Journal] | None = None,
        *,
        holds: Sequence[Hold] = (),
        settle: timedelta = SETTLE,
        only: frozenset[str] | None = None,
        mode: str = "apply",
    ) -> None:
        self.sites = sites
        self.limits = limits
        self.clock = clock
        self.holds = tuple(holds)
        self.settle = settle
        self.only = only
        self.mode = mode
        self._open_journal = open_journal
        self._journal: Journal | None = None
        self._account = Account()
        self.excerpts: list[Excerpt] = []
        """What the last dry run met, with its words."""

    def show(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Find out what would happen. Changes nothing, and writes no ledger."""
        all_ = dict(enumerate(tasks))
        survey = self._survey(all_)
        self._refuse(all_, survey)
        self._note_back(all_, survey)
        self.excerpts = survey.excerpts()
        return self._explain(all_, survey)

    def verify(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Look again now and record what was seen. Removes nothing."""
        all_ = dict(enumerate(tasks))
        journal = self._need_journal()
        ids = [task.request.id for task in tasks]
        journal.note(EventKind.RUN_STARTED, ids, None, {"mode": "verify"})
        known = {task.request.id: list(task.steps) for task in tasks}
        journal.begin_steps(known, self._adapters())
        survey = self._survey(all_)
        self._note_back(all_, survey)
        leftovers = self._leftovers(survey, all_)
        looks = {name: self.sites.residue(name, leftovers.targets) for name in self.sites.names()}
        picture = Picture(survey, looks, leftovers, self._account)
        outcomes = picture.outcomes(self.sites, all_, self.clock(), applied=True)
        self._record(all_, survey, outcomes)
        return list(outcomes.values())

    def apply(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Carry the requests out. A request that a safety rule refuses changes nothing.

        Returns:
            The outcomes in the order of the tasks.
        """
        all_ = dict(enumerate(tasks))
        survey = self._survey(all_)
        self._refuse(all_, survey)
        carried = {number: task for number, task in all_.items() if task.refusal is None}
        refused = {number: task for number, task in all_.items() if task.refusal is not None}
        outcomes: dict[int, Outcome] = {}
        if refused:
            outcomes |= dict(zip(refused, self._explain(refused, survey), strict=True))
        if carried:
            if refused:
                survey = self._decide(survey, carried)
            outcomes |= self._carry_out(carried, survey)
        return [outcomes[number] for number in all_]

    def _carry_out(self, tasks: Mapping[int, Task], survey: Survey) -> dict[int, Outcome]:
        self._note_back(tasks, survey)
        self._plan(tasks, survey)
        survey = self._remove_all(tasks, survey)
        looks, leftovers, changed = self._sanitize(tasks, survey)
        if changed:
            survey = self._survey(tasks)
        crash_point("examined")
        picture = Picture(survey, looks, leftovers, self._account)
        outcomes = picture.outcomes(self.sites, tasks, self.clock(), applied=True)
        self._record(tasks, survey, outcomes)
        return outcomes

    def _explain(self, tasks: Mapping[int, Task], survey: Survey) -> list[Outcome]:
        """Show what requests meet, and what is left of it, without acting."""
        survey = self._decide(survey, tasks)
        leftovers = self._leftovers(survey, tasks)
        looks = {name: self.sites.residue(name, leftovers.targets) for name in self.sites.names()}
        picture = Picture(survey, looks, leftovers)
        return list(picture.outcomes(self.sites, tasks, self.clock(), applied=False).values())

    # Looking.

    def _survey(self, tasks: Mapping[int, Task]) -> Survey:
        # The numbers of the requests are their places in the list, whoever is left out.
        last = max(tasks) + 1
        stand_in = next(iter(tasks.values())).request
        requests = [tasks[n].request if n in tasks else stand_in for n in range(last)]
        policy = self._policy(tasks)
        reach = explore(
            requests,
            self.sites,
            self.sites.find,
            min_copy_width=self.limits.min_phrase_width,
            owed={number: task.kept.owed for number, task in tasks.items()},
            cut={number: task.kept.flagged for number, task in tasks.items()},
            again=policy.again,
            among=tasks,
        )
        return Survey.of(reach, tasks, policy)

    def _decide(self, survey: Survey, tasks: Mapping[int, Task]) -> Survey:
        """Decide anew over what was met, for some of the requests."""
        return Survey.of(survey.reach, tasks, self._policy(tasks))

    def _policy(self, tasks: Mapping[int, Task]) -> Policy:
        now, derived = self.clock(), self.sites.derived()
        policies = {n: task.policy(now, derived, self.settle) for n, task in tasks.items()}
        return Policy(
            again={n: policy for n, policy in policies.items() if policy is not None},
            spared={n: task.kept.spared for n, task in tasks.items() if task.kept.spared},
            waiting={n: task.kept.waiting for n, task in tasks.items() if task.kept.waiting},
            markers=_from_markers(tasks),
            held=self._is_held,
        )

    def _is_held(self, site: str, match: Match) -> bool:
        return is_held(self.holds, site, match, self.sites.manifest.sites[site].scope)

    def _refuse(self, tasks: Mapping[int, Task], survey: Survey) -> None:
        for number, task in tasks.items():
            if task.refusal is not None:
                continue
            going = self._by_purge(survey.by_site(number))
            if task.kept.owed and not going:
                continue  # Planned and allowed earlier, and nothing of it is left to remove.
            task.refusal = ambiguity(survey.reach, number)
            if task.refusal is not None:
                continue
            if task.again and task.kept.owed:
                known = {entry.key for entry in task.kept.owed}
                new = sum(e.pieces for e in survey.owed(number) if e.key not in known)
                task.refusal = refusal_of_more(task.request, new, self.limits)
                continue
            planned = self._by_purge(survey.planned(number))
            task.refusal = refusal(
                task.request,
                going,
                self.limits,
                planned=sum(planned.values()),
                marker=task.marker,
            )

    def _by_purge(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Leave out the sites where a person has to act."""
        return {
            name: count
            for name, count in counts.items()
            if self.sites.action(name) is not Action.REPORT
        }

    def _note_back(self, tasks: Mapping[int, Task], survey: Survey) -> None:
        """Keep what had come back before it is taken out again."""
        now = self.clock()
        for number, task in tasks.items():
            task.back = survey.back(number)
            gone = {entry.key: entry.gone for entry in task.kept.owed}
            for site in dict.fromkeys(key.site for key in sorted(task.back)):
                keys = [key for key in task.back if key.site == site]
                times = [at for key in keys if (at := gone.get(key)) is not None]
                removed = max(times, default=None) or task.kept.last_removed
                count = survey.tally(number, site).reappeared
                if count and removed is not None:
                    task.reappeared[site] = Reappearance(count, removed, now)

    def _leftovers(self, survey: Survey, tasks: Mapping[int, Task]) -> Leftovers:
        markers = _from_markers(tasks)
        return survey.leftovers(list(tasks), lambda number: tasks[number].kept.owed, markers)

    # Acting.

    def _plan(self, tasks: Mapping[int, Task], survey: Survey) -> None:
        """Put everything that the run is about to do, and what it saw, into the ledger."""
        # The control: the look for residue must see now what it is not to see afterwards.
        touched = [name for name in self.sites.names() if survey.to_remove(name)]
        leftovers = self._leftovers(survey, tasks)
        before = {name: self.sites.residue(name, leftovers.targets) for name in touched}
        journal = self._need_journal()
        events = []
        for number, task in tasks.items():
            if not task.request.id:
                task.request = journal.create(task.request, self._adapters())
            elif task.decided is not None:
                journal.decide(task.request.id, task.decided)
            going = survey.by_site(number)
            first = not (task.again and task.carried_out)
            for name, look in before.items():
                if going.get(name):
                    task.kept.take_controls(name, look.by_kind(on_target=True))
            new = task.kept.extend(survey.owed(number))
            task.kept.flagged = survey.flagged(number)
            if new or going or first:
                id, counts = task.request.id, dict(going)
                events += [
                    Event(EventKind.RUN_STARTED, id, None, {"mode": self.mode}),
                    Event(EventKind.PLAN_MADE, id, None, {"to_remove": counts}),
                ]
        known = {t.request.id: list(t.steps) for t in tasks.values() if t.steps}
        journal.begin_steps(known, self._adapters())
        journal.keep({task.request.id: task.kept for task in tasks.values()}, events)
        crash_point("planned")

    def _remove_all(self, tasks: Mapping[int, Task], survey: Survey) -> Survey:
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

    def _may_take(self, name: str) -> bool:
        return self.sites.action(name) is not Action.REPORT and (
            self.only is None or name in self.only
        )

    def _remove(self, tasks: Mapping[int, Task], survey: Survey, name: str) -> bool:
        removals = [
            Removal(match, tasks[number].request.id, self.clock())
            for number, match in survey.to_remove(name)
            if not tasks[number].limited
        ]
        if not removals or not self._may_take(name):
            return False
        journal, now = self._need_journal(), self.clock()
        mine = [task for n, task in tasks.items() if survey.by_site(n).get(name)]
        for task in mine:
            task.kept.removed_at.pop(name, None)  # Something is back, or was never gone.
            task.kept.last_removed = now
        ids = [task.request.id for task in mine]
        body: dict[str, JSON] = {"act": "remove", "records": len(removals)}
        journal.note(EventKind.INTENT, ids, name, body)
        crash_point("remove.intended", name)
        done = self.sites.remove(name, removals)
        crash_point("remove.done", name)
        self._account.note(name, done)
        body["left_alone"] = len(done.left_alone)
        journal.note(EventKind.FACT, ids, name, body)
        crash_point("remove.recorded", name)
        return True

    def _take_up_late(self, tasks: Mapping[int, Task], survey: Survey, *, last: bool) -> bool:
        """Put what turned up meanwhile into the plan; whether there is anything to remove."""
        more, taken = False, {}
        for number, task in tasks.items():
            known = {entry.key for entry in task.kept.owed}
            owed = survey.owed(number)
            late = [entry for entry in owed if entry.key not in known]
            allowed = max(self.limits.max_records, task.request.expect or 0, len(known))
            if late and len(owed) > allowed:
                task.limited = True
                continue
            if late:
                for entry in late:
                    task.late[entry.site] = task.late.get(entry.site, 0) + 1
                task.kept.extend(late)
                taken[task.request.id] = task.kept
            more |= bool(late)
        self._need_journal().keep(taken)
        return more and not last

    def _sanitize(
        self, tasks: Mapping[int, Task], survey: Survey
    ) -> tuple[dict[str, ResidueLook], Leftovers, bool]:
        """Look for left-over copies, remove those that can be, and look again.

        Returns:
            The last look at each site, what it looked for, and whether any site was changed.
        """
        leftovers = self._leftovers(survey, tasks)
        held = {number for number in tasks if survey.decided[number].held}
        looks: dict[str, ResidueLook] = {}
        changed = False
        for name in self.sites.names():
            look = self.sites.residue(name, leftovers.targets)
            # Where a hold is on a record of a request, no copy of that request is touched. What
            # nobody can tell apart is no copy of a record that is still there, but in a backup.
            is_backup = bool(self.sites.manifest.sites[name].covers)
            fixable = [
                copy
                for copy in look.residue
                if copy.fixable
                and not (
                    (copy.keys or is_backup)
                    and any(leftovers.of(number, [copy]) for number in held)
                )
            ]
            if fixable and not survey.to_remove(name) and self._may_clean(name):
                self._sanitize_one(tasks, name, fixable, leftovers)
                look, changed = self.sites.residue(name, leftovers.targets), True
            looks[name] = look
        return looks, leftovers, changed

    def _sanitize_one(
        self,
        tasks: Mapping[int, Task],
        name: str,
        fixable: Sequence[Residue],
        leftovers: Leftovers,
    ) -> None:
        journal = self._need_journal()
        ids = [task.request.id for number, task in tasks.items() if leftovers.of(number, fixable)]
        body: dict[str, JSON] = {"act": "sanitize", "copies": len(fixable)}
        journal.note(EventKind.INTENT, ids, name, body)
        crash_point("sanitize.intended", name)
        done = self.sites.sanitize(name, fixable)
        crash_point("sanitize.done", name)
        self._account.note(name, done)
        body["left_alone"] = len(done.left_alone)
        journal.note(EventKind.FACT, ids, name, body)
        crash_point("sanitize.recorded", name)

    def _may_clean(self, name: str) -> bool:
        return self._may_take(name) and not self._account.left_alone.get(name)

    # Recording.

    def _record(
        self, tasks: Mapping[int, Task], survey: Survey, outcomes: Mapping[int, Outcome]
    ) -> None:
        now, done = self.clock(), {}
        for number, task in tasks.items():
            task.kept.note_gone(survey.alive(number), task.back, now)
            task.kept.spared = set(survey.decided[number].spared)
            cut = survey.decided[number].cut
            task.kept.flagged = [it for it in task.kept.flagged if it.key in cut]
            task.kept.waiting = set(survey.decided[number].held)
            steps = outcomes[number].steps
            if self.mode in ("sweep", "replay"):
                # Every night says the same of most; only what is new is written down.
                steps = tuple(changed_steps(task, steps))
            done[task.request.id] = (steps, task.kept)
        self._need_journal().record(done, mode=self.mode)
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


def _from_markers(tasks: Mapping[int, Task]) -> frozenset[int]:
    """Return the requests that come from a marker."""
    return frozenset(number for number, task in tasks.items() if task.marker)
