"""What a library user calls: one engine for one manifest.

Dry run is the default everywhere. What changes a store, or records what was seen, holds the
manifest's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from purge.adapter import Statement
from purge.engine.journal import Journal
from purge.engine.recorded import recorded
from purge.engine.run import Run
from purge.engine.sites import Sites, Watcher, silent
from purge.engine.survey import Excerpt
from purge.engine.task import Task
from purge.errors import UsageFault
from purge.ledger import Ledger, RequestView, Verification, run_lock
from purge.manifest import Manifest, load_manifest
from purge.plan.limits import Limits
from purge.plan.outcome import Outcome
from purge.plan.request import Decisions, Request, Wanted
from purge.registry import Registry
from purge.resilience import Patience
from purge.targets import TargetKind

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """What ``purge check`` says of one site."""

    site: str
    adapter: str
    statements: tuple[Statement, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that would make a run go wrong."""
        return all(statement.ok for statement in self.statements)


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
        )
        self._check_names(asked)
        with self._locked(), self._journal() as journal:
            task = Task(asked)
            if self.manifest.ledger.exists():
                same = journal().find_same(asked)
                if same is not None:
                    task = self._task(journal(), same, asked.decisions, expect)
                    task.asked_before = True
                    task.again = False  # Asking anew means everything that it names.
            return self._run(writable=True, journal=journal).apply([task])[0]

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
        self._check_names(asked)
        run = self._run(writable=False)
        outcome = run.show([Task(asked)])[0]
        return Shown(outcome, tuple(run.excerpts))

    def resume(
        self, id: str, decisions: Decisions | None = None, *, expect: int | None = None
    ) -> Outcome:
        """Go on with a recorded request: one that was killed, or waits for a decision.

        Raises:
            UsageFault: there is no such request, or it was withdrawn.
        """
        with self._locked(), self._journal(existing=True) as journal:
            found = self._open_request(journal(), id)
            task = self._task(journal(), found, decisions or Decisions(), expect)
            return self._run(writable=True, journal=journal).apply([task])[0]

    def verify(self, id: str) -> Outcome:
        """Look again now for everything a request named, and record what was seen.

        Raises:
            UsageFault: there is no such request.
        """
        with self._locked(), self._journal(existing=True) as journal:
            found = journal().ledger.resolve(id)
            task = self._task(journal(), found, Decisions(), None)
            return self._run(writable=False, journal=journal).verify([task])[0]

    def withdraw(self, id: str) -> RequestView:
        """Stop a request that should not have been made. What is gone stays gone.

        Raises:
            UsageFault: there is no such request, or it was withdrawn before.
        """
        with self._locked(), self._journal(existing=True) as journal:
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
        sites = self._sites(writable=False)
        return [
            SiteCheck(name, entry.adapter, (*sites.check(name), *self._backed_up(sites, name)))
            for name, entry in self.manifest.sites.items()
        ]

    def _backed_up(self, sites: Sites, name: str) -> Iterator[Statement]:
        """Refuse a ledger or key that gets into backups: a destroyed key would live on there."""
        own = {"ledger": self.manifest.ledger, "keys": self.manifest.keys}
        own["key file"] = self.manifest.key_file
        for covered in self.manifest.sites[name].covers:
            for what, path in own.items():
                if any(path.resolve().is_relative_to(held) for held in sites.footprint(covered)):
                    yield Statement(
                        f"The {what} lies under '{covered}', which this site backs up: keys that "
                        "are destroyed would live on in backups. Move it with 'ledger:' in the "
                        "manifest.",
                        ok=False,
                    )

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

    def clock(self) -> datetime:
        """Return the time in the manifest's time zone."""
        return self._now().astimezone(self.manifest.timezone)

    # Inside.

    def _sites(self, *, writable: bool) -> Sites:
        return Sites(
            self.manifest,
            self.registry,
            writable=writable,
            patience=self._patience,
            watch=self._watch,
            clock=self.clock,
        )

    def _run(self, *, writable: bool, journal: Callable[[], Journal] | None = None) -> Run:
        safety = self.manifest.safety
        limits = Limits(safety.min_phrase_width, safety.max_records)
        return Run(self._sites(writable=writable), limits, self.clock, journal)

    @contextmanager
    def _locked(self) -> Iterator[None]:
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
        )

    def _check_names(self, asked: Request) -> None:
        for wanted in asked.wanted:
            if wanted.site is not None and wanted.site not in self.manifest.sites:
                known = ", ".join(self.manifest.sites)
                raise UsageFault(f"There is no site '{wanted.site}'. The manifest has: {known}.")
        for key in asked.scope:
            if not any(key in entry.scope for entry in self.manifest.sites.values()):
                mapped = sorted({k for e in self.manifest.sites.values() for k in e.scope})
                raise UsageFault(
                    f"No site of the manifest maps the scope '{key}'. "
                    f"Mapped: {', '.join(mapped) or 'none'}."
                )
        if any(w.kind is TargetKind.SUBJECT for w in asked.wanted) and not any(
            entry.subject for entry in self.manifest.sites.values()
        ):
            raise UsageFault(
                "No site of the manifest maps a 'subject' field, so that nobody can be found "
                "by --subject. Map one, or name ids or phrases."
            )
