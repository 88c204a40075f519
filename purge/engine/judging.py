"""From what a run saw to the outcome of each of its requests. Asks no site, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from purge.adapter import NotChecked, NotRemoved
from purge.engine.sites import Removed, ResidueLook, Sites
from purge.engine.survey import Leftovers, Survey
from purge.engine.task import Kept, Task
from purge.engine.verdicts import Seen, make_step, without_site
from purge.plan.outcome import Outcome, Step, Tally


@dataclass(slots=True)
class Account:
    """What removing and cleaning up left alone, by site."""

    left_alone: dict[str, list[NotRemoved | NotChecked]] = field(default_factory=dict)
    failures: dict[str, Removed] = field(default_factory=dict)

    def note(self, name: str, done: Removed) -> None:
        """Add what one call answered."""
        self.left_alone.setdefault(name, []).extend(done.left_alone)
        if done.failure is not None:
            self.failures[name] = done


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that was seen at the end of a run."""

    survey: Survey
    looks: Mapping[str, ResidueLook]
    leftovers: Leftovers
    account: Account = field(default_factory=Account)

    def outcomes(
        self,
        sites: Sites,
        tasks: Mapping[int, Task],
        now: datetime,
        *,
        applied: bool,
    ) -> dict[int, Outcome]:
        """Return what is to be said of each request.

        Args:
            sites: the sites of the run.
            tasks: the requests, by their number in the survey.
            now: the time of judging.
            applied: the run acted; otherwise there are no states.
        """
        return {
            number: self._outcome(sites, number, task, now, applied=applied)
            for number, task in tasks.items()
        }

    def _outcome(
        self, sites: Sites, number: int, task: Task, now: datetime, *, applied: bool
    ) -> Outcome:
        seen = {name: self._seen(sites, number, name, task) for name in sites.names()}
        found = self.survey.found_anywhere(number) or any(
            copy.keys for look in seen.values() for copy in look.residue.residue
        )
        steps: list[Step] = []
        for one in seen.values():
            steps.append(make_step(replace(one, found_anywhere=found), now, applied=applied))
            if applied:
                note_removal(task.kept, one, now)
        # A site that left the manifest is no longer looked at; what was proved there stays.
        steps.extend(
            without_site(step)
            for name, step in task.steps.items()
            if name not in sites.manifest.sites
        )
        return Outcome(task.request.asked(), applied, tuple(steps), task.refusal, task.asked_before)

    def _seen(self, sites: Sites, number: int, name: str, task: Task) -> Seen:
        failed = self.account.failures.get(name)
        look = self.looks[name]
        mine = replace(look, residue=self.leftovers.of(number, look.residue))
        return Seen(
            site=sites.manifest.sites[name],
            info=sites.info(name),
            request=task.request,
            tally=tally_of(self.survey, number, name, task),
            look=self.survey.look(name),
            residue=mine,
            before=task.kept.controls.get(name, {}),
            removed_at=task.kept.removed_at.get(name),
            left_alone=tuple(self.account.left_alone.get(name, ())),
            failure=(failed.failure if failed else None) or look.failure,
            found_anywhere=True,
            limited=task.limited,
            previous=task.steps.get(name),
            reappeared=task.reappeared.get(name),
        )


def tally_of(survey: Survey, number: int, name: str, task: Task) -> Tally:
    """Count what a look saw. A look that failed saw nothing, which is no removal."""
    before = task.steps.get(name)
    counted = survey.tally(number, name, task.late.get(name, 0))
    if survey.look(name).failure is None:
        return counted
    if before is not None:
        return before.tally
    return replace(counted, removed=0, left=counted.to_remove)


def note_removal(kept: Kept, seen: Seen, now: datetime) -> None:
    """Keep since when reads have returned nothing, without a break."""
    if seen.look.failure is not None or seen.look.unseen:
        return
    name = seen.site.name
    kept.looked.setdefault(name, now)
    if seen.tally.to_remove > seen.tally.removed:
        kept.removed_at.pop(name, None)
    elif seen.tally.to_remove:
        kept.removed_at.setdefault(name, now)


def same(one: Step | None, other: Step) -> bool:
    """Whether two steps say the same, apart from when and how much was looked at."""
    if one is None or one.state is not other.state:
        return False
    return _said(one) == _said(other)


def _said(step: Step) -> tuple[object, ...]:
    controls = dict(step.evidence.control) if step.evidence is not None else None
    kind = step.evidence.kind if step.evidence is not None else None
    copies = [(copy.where, copy.why, copy.until) for copy in step.residue]
    return (
        step.until,
        step.problem,
        step.tally,
        copies,
        step.not_checked,
        controls,
        kind,
        step.completeness,
        step.reappeared,
    )


def changed_steps(task: Task, steps: Sequence[Step]) -> list[Step]:
    """Return the steps that say something else than the ones recorded last."""
    return [step for step in steps if not same(task.steps.get(step.site), step)]
