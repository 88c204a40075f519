"""What a library user calls: one engine for one manifest.

Dry run is the default everywhere. What changes a store, or records what was seen, holds the
manifest's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from purge.engine import nightly
from purge.engine.checking import SiteCheck, backed_up, check_names
from purge.engine.holds import HoldView, add_hold, check_hold, release_hold, standing_holds
from purge.engine.journal import Journal
from purge.engine.recorded import recorded
from purge.engine.run import Run
from purge.engine.sites import Sites, Watcher, silent
from purge.engine.survey import Excerpt
from purge.engine.task import Task
from purge.errors import UsageFault
from purge.ledger import Ledger, RequestView, Verification, run_lock
from purge.manifest import Manifest, load_manifest
from purge.plan.again import Hold
from purge.plan.limits import Limits
from purge.plan.outcome import Outcome
from purge.plan.request import Decisions, Request, Wanted
from purge.plan.sweep import Sweep
from purge.registry import Registry
from purge.resilience import Patience

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a dry run found, with excerpts for a person to look at."""

    outcome: Outcome
    excerpts: tuple[Excerpt, ...] = field(default=(), repr=False)


class Engine:
    """Forgets what is asked, at every site of one manifest.

    Args:
        manifest: a manifest without faults.
        registry: knows the adapters.
        clock: the time, with a time zone.
        patience: how long transient errors are borne.
        watch: told of each phase and site as it begins, for progress.
    """

    def __init__(
        self,
        manifest: Manifest,
        registry: Registry,
        *,
        clock: Clock = _now,
        patience: Patience | None = None,
        watch: Watcher = silent,
    ) -> None:
        self.manifest = manifest
        self.registry = registry
        self._now = clock
        self._patience = patience
        self._watch = watch

    @classmethod
    def open(
        cls,
        path: Path,
        registry: Registry,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Clock = _now,
        watch: Watcher = silent,
    ) -> Engine:
        """Read a manifest and return an engine for it. No site is touched.

        Raises:
            ManifestFault: with everything that is wrong in it.
        """
        manifest = load_manifest(path, os.environ if environ is None else environ, registry)
        return cls(manifest, registry, clock=clock, watch=watch)

    def request(
        self,
        wanted: Sequence[Wanted],
        *,
        scope: Mapping[str, str] | None = None,
        reason: str = "",
        asked_by: str = "",
        decisions: Decisions | None = None,
        expect: int | None = None,
        deadline: timedelta | None = None,
        apply: bool = False,
    ) -> Outcome:
        """Ask for something to be forgotten.

        Args:
            wanted: the ids, phrases and subjects.
            scope: field values that limit it.
            reason: why, for the record; it may not hold what is to be forgotten.
            asked_by: who asked, for the record.
            decisions: what to do with sources and copies.
            expect: how many records are expected to go, over all sites.
            deadline: by when it has to be confirmed or dated, from now; ``None``: as the manifest
                says.
            apply: carry it out; otherwise only show what would happen.

        Returns:
            What was found and proved. A request that a safety rule refuses has a ``refusal``, and
            nothing was changed.

        Raises:
            UsageFault: a site that is named does not exist, or nothing is named.
            Locked: another run over this manifest is under way.
        """
        if not apply:
            return self.show(wanted, scope=scope, decisions=decisions, expect=expect).outcome
        asked = Request(
            "",
            self.clock(),
            tuple(wanted),
            dict(scope or {}),
            reason,
            asked_by,
            decisions or Decisions(),
            expect,
            self.clock() + (deadline or self.deadline),
        )
        check_names(self.manifest, asked)
        with self.locked(), self._journal() as journal:
            task = Task(asked)
            if self.manifest.ledger.exists():
                same = journal().find_same(asked)
                if same is not None:
                    task = self._task(journal(), same, asked.decisions, expect)
                    task.asked_before = True
                    task.again = False  # Asking anew means everything that it names.
            return self.run(writable=True, journal=journal).apply([task])[0]

    def show(
        self,
        wanted: Sequence[Wanted],
        *,
        scope: Mapping[str, str] | None = None,
        decisions: Decisions | None = None,
        expect: int | None = None,
    ) -> Shown:
        """Find out what a request would do. Nothing is changed or recorded.

        Returns:
            The outcome, and excerpts of what was found, for a person to look at. The excerpts hold
            the words: they belong on a terminal and nowhere else.
        """
        asked = Request(
            "",
            self.clock(),
            tuple(wanted),
            dict(scope or {}),
            decisions=decisions or Decisions(),
            expect=expect,
        )
        check_names(self.manifest, asked)
        run = self.run(writable=False)
        outcome = run.show([Task(asked)])[0]
        return Shown(outcome, tuple(run.excerpts))

    def resume(
        self, id: str, decisions: Decisions | None = None, *, expect: int | None = None
    ) -> Outcome:
        """Go on with a recorded request: one that was killed, or waits for a decision.

        Raises:
            UsageFault: there is no such request, or it was withdrawn.
        """
        with self.locked(), self._journal(existing=True) as journal:
            found = self._open_request(journal(), id)
            task = self._task(journal(), found, decisions or Decisions(), expect)
            return self.run(writable=True, journal=journal).apply([task])[0]

    def verify(self, id: str) -> Outcome:
        """Look again now for everything a request named, and record what was seen.

        Raises:
            UsageFault: there is no such request.
        """
        with self.locked(), self._journal(existing=True) as journal:
            found = journal().ledger.resolve(id)
            task = self._task(journal(), found, Decisions(), None)
            return self.run(writable=False, journal=journal).verify([task])[0]

    def withdraw(self, id: str) -> RequestView:
        """Stop a request that should not have been made. What is gone stays gone.

        Raises:
            UsageFault: there is no such request, or it was withdrawn before.
        """
        with self.locked(), self._journal(existing=True) as journal:
            found = self._open_request(journal(), id)
            journal().withdraw(found)
            view = journal().ledger.request(found)
            assert view is not None
            return view

    def report(self, id: str) -> Outcome:
        """Return where a request stands, from the ledger alone; no site is touched.

        Raises:
            UsageFault: there is no such request.
        """
        with self.read_ledger() as ledger:
            return recorded(ledger, ledger.resolve(id), self.manifest.timezone)

    def check(self) -> list[SiteCheck]:
        """Reach every site and say what is true of it and what could be proved there."""
        sites = self.sites(writable=False)
        return [
            SiteCheck(name, entry.adapter, (*sites.check(name), *backed_up(sites, name)))
            for name, entry in self.manifest.sites.items()
        ]

    def verify_ledger(self, noted: tuple[int, str] | None = None) -> Verification:
        """Check the chain of the ledger, and that what it says of every request follows from it.

        Raises:
            LedgerFault: there is none, or it cannot be read.
        """
        with self.read_ledger() as ledger:
            return ledger.verify(noted=noted)

    def read_ledger(self) -> Ledger:
        """Open the ledger to read.

        Raises:
            LedgerFault: there is none yet.
        """
        return Ledger.open_read_only(self.manifest.ledger, self.manifest.key_file)

    def watch_with(self, watcher: Watcher) -> None:
        """Tell one more of each phase and site as it begins."""
        before = self._watch

        def both(phase: str, site: str) -> None:
            before(phase, site)
            watcher(phase, site)

        self._watch = both

    def clock(self) -> datetime:
        """Return the time in the manifest's time zone."""
        return self._now().astimezone(self.manifest.timezone)

    def sweep(self, *, apply: bool = False, without_snapshot: bool = False) -> Sweep:
        """Obey the markers and keep every open request's promise, in one run; or show it.

        Args:
            apply: do it; otherwise nothing is changed or recorded.
            without_snapshot: act although the manifest names no snapshot to go back to.

        Raises:
            Refused: no fresh snapshot stands behind it; nothing was deleted.
            Locked: another run over this manifest is under way.
        """
        return nightly.sweep(self, apply=apply, without_snapshot=without_snapshot)

    def replay(self, sites: Sequence[str] | None = None, *, apply: bool = False) -> Sweep:
        """After a restore: take out again what was purged from sites (``None``: all).

        Raises:
            UsageFault: there is no such site.
            Locked: another run over this manifest is under way.
        """
        return nightly.replay(self, sites, apply=apply)

    def add_hold(self, hold: Hold, reason: str = "", asked_by: str = "") -> HoldView:
        """Put a legal hold on records: nothing removes them until it is released.

        Raises:
            UsageFault: it is on nothing, or on something that the manifest does not map.
        """
        check_hold(self.manifest, hold)
        with self.locked(), self._journal() as journal:
            return add_hold(journal().ledger, hold, reason, asked_by, self.manifest.timezone)

    def release_hold(self, id: str) -> HoldView:
        """End a legal hold. What it kept goes with the next sweep, if a request says so.

        Raises:
            UsageFault: there is no such hold.
        """
        with self.locked(), self._journal(existing=True) as journal:
            return release_hold(journal().ledger, id, self.manifest.timezone)

    @property
    def deadline(self) -> timedelta:
        """By when a request has to be confirmed or dated, where it does not say otherwise."""
        return self.manifest.safety.deadline

    @property
    def settle(self) -> timedelta:
        """How long after a removal a derived record counts as made from what was removed."""
        return self.manifest.safety.settle

    # For the other modules of this package.

    def holds(self, journal: Journal | None) -> list[Hold]:
        """The legal holds that stand."""
        return standing_holds(journal.ledger) if journal is not None else []

    def load(self, journal: Journal, id: str) -> Task:
        """Return a recorded request as the task of a run."""
        return self._task(journal, id, Decisions(), None)

    def sites(self, *, writable: bool) -> Sites:
        """Return the sites of a run."""
        return Sites(
            self.manifest,
            self.registry,
            writable=writable,
            patience=self._patience,
            watch=self._watch,
            clock=self.clock,
        )

    def run(
        self,
        *,
        writable: bool,
        journal: Callable[[], Journal] | None = None,
        holds: Sequence[Hold] | None = None,
        mode: str = "apply",
        only: frozenset[str] | None = None,
    ) -> Run:
        """Return a run over the sites. Without ``holds``, those in the ledger are read."""
        safety = self.manifest.safety
        return Run(
            self.sites(writable=writable),
            Limits(safety.min_phrase_width, safety.max_records),
            self.clock,
            journal,
            holds=self._read_holds() if holds is None else holds,
            settle=safety.settle,
            only=only,
            mode=mode,
        )

    # Inside.

    def _read_holds(self) -> list[Hold]:
        if not self.manifest.ledger.exists():
            return []
        with self.read_ledger() as ledger:
            return standing_holds(ledger)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that keeps two runs over this manifest apart.

        Raises:
            Locked: another run holds it.
        """
        with run_lock(self.manifest.ledger, clock=self.clock):
            yield

    @contextmanager
    def _journal(self, *, existing: bool = False) -> Iterator[Callable[[], Journal]]:
        """Open the ledger when it is first needed, so that a refused run leaves none behind."""
        opened: list[Journal] = []

        def journal() -> Journal:
            if not opened:
                make = Ledger.open_existing if existing else Ledger.create_or_open
                ledger = make(self.manifest.ledger, self.manifest.key_file, clock=self.clock)
                opened.append(Journal(ledger, self.manifest.timezone))
            return opened[0]

        try:
            yield journal
        finally:
            for one in opened:
                one.ledger.close()

    def _open_request(self, journal: Journal, id: str) -> str:
        found = journal.ledger.resolve(id)
        view = journal.ledger.request(found)
        if view is not None and view.withdrawn is not None:
            raise UsageFault(f"Request {found} was withdrawn; make a new one.")
        if view is not None and view.closed is not None:
            raise UsageFault(f"Request {found} is closed: nothing is left to do for it.")
        return found

    def _task(self, journal: Journal, id: str, decisions: Decisions, expect: int | None) -> Task:
        request = journal.load(id)
        request = replace(request, decisions=decisions.or_else(request.decisions))
        if expect is not None:
            request = replace(request, expect=expect)
        return Task(
            request,
            journal.kept(id),
            {step.site: step for step in journal.steps(id)},
            decided=None if decisions == Decisions() else decisions,
            again=True,
            marker=request.origin is not None,
        )
