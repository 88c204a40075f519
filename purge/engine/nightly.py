"""How an engine carries out a sweep or a replay: the lock, the ledger, and the order of things."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purge.engine import sweep as nights
from purge.engine.crash import crash_point
from purge.engine.journal import Journal
from purge.engine.sweep import Heard, Night
from purge.errors import PurgeError, Refused, UsageFault
from purge.ledger import EventKind, Ledger
from purge.plan.sweep import Gate, Item, Sweep, Unheard

if TYPE_CHECKING:
    from purge.engine.engine import Engine
    from purge.engine.run import Run
    from purge.plan.outcome import Outcome


def sweep(engine: Engine, *, apply: bool, without_snapshot: bool) -> Sweep:
    """Carry out what the manifest's markers and open requests ask for, or show it.

    Raises:
        Refused: no fresh snapshot stands behind it; nothing was deleted.
        Locked: another run over this manifest is under way.
    """
    begun = engine.clock()
    with ExitStack() as stack:
        if apply:
            stack.enter_context(engine.locked())
        sites = engine.sites(writable=apply)
        gate = nights.check_gate(engine.manifest, sites, begun)
        if without_snapshot and gate.site is None:
            gate = Gate()
        if apply and gate.refusal is not None:
            raise Refused(f"Nothing was deleted. {gate.refusal}")
        heard = nights.listen(engine.manifest, sites)
        journal = _open_journal(engine, stack, apply=apply, needed=bool(heard.markers))
        night = nights.gather(heard, journal, begun, engine.deadline, engine.load)
        return _carry_out(engine, night, heard, gate, journal, apply=apply)


def replay(engine: Engine, names: Sequence[str] | None, *, apply: bool) -> Sweep:
    """Take out again what was purged from sites, after a restore; or show it.

    Args:
        engine: of the manifest.
        names: the sites that were restored; ``None``: all.
        apply: do it.

    Raises:
        UsageFault: there is no such site.
        Locked: another run over this manifest is under way.
    """
    for name in names or ():
        if name not in engine.manifest.sites:
            known = ", ".join(engine.manifest.sites)
            raise UsageFault(f"There is no site '{name}'. The manifest has: {known}.")
    only = None if names is None else frozenset(names)
    with ExitStack() as stack:
        if apply:
            stack.enter_context(engine.locked())
        journal = _open_journal(engine, stack, apply=apply, needed=False)
        night = nights.gather(Heard(), journal, engine.clock(), engine.deadline, engine.load)
        return _carry_out(
            engine, night, Heard(), Gate(), journal, apply=apply, mode="replay", only=only
        )


def _carry_out(
    engine: Engine,
    night: Night,
    heard: Heard,
    gate: Gate,
    journal: Journal | None,
    *,
    apply: bool,
    mode: str = "sweep",
    only: frozenset[str] | None = None,
) -> Sweep:
    begun = engine.clock()
    outcomes: Sequence[Outcome] = ()
    struck = 0
    failures = list(heard.failures)
    if night.tasks:
        run = _run(engine, journal, apply=apply, mode=mode, only=only)
        outcomes = run.apply(night.tasks) if apply else run.show(night.tasks)
    refused = list(heard.refused)
    items = []
    for task, outcome, since, new in zip(
        night.tasks, outcomes, night.since, night.new, strict=True
    ):
        if new and task.refusal is not None:
            marker = night.markers[task.request.identity()]
            assert task.request.origin is not None
            refused.append(
                Unheard(task.request.origin.site, marker.where, task.refusal, marker.created)
            )
        else:
            items.append((task, Item(outcome, since, new)))
    done: tuple[Item, ...] = tuple(item for _, item in items)
    if apply and journal is not None:
        crash_point("swept")
        done = nights.close(
            journal, done, [task for task, _ in items], engine.clock(), engine.settle
        )
        if mode == "sweep":
            struck, unstruck = _strike(engine, night, journal)
            failures += unstruck
        journal.swept(mode, engine.clock(), len(done))
    ended = engine.clock()
    return Sweep(
        applied=apply,
        begun=begun,
        ended=ended,
        gate=gate,
        items=done,
        ignored=tuple(heard.ignored),
        refused=tuple(refused),
        struck=struck,
        overdue=nights.overdue(done, ended, engine.deadline),
        failures=tuple(failures),
        mode=mode,
    )


def _run(
    engine: Engine,
    journal: Journal | None,
    *,
    apply: bool,
    mode: str,
    only: frozenset[str] | None,
) -> Run:
    def opened() -> Journal:
        assert journal is not None
        return journal

    return engine.run(
        writable=apply,
        journal=opened if apply else None,
        holds=engine.holds(journal),
        mode=mode,
        only=only,
    )


def _strike(engine: Engine, night: Night, journal: Journal) -> tuple[int, list[Unheard]]:
    count, failures = 0, []
    for site, markers in nights.to_strike(night, journal, engine.manifest).items():
        ids = [request for _, request in markers]
        journal.note_strike(EventKind.INTENT, site, len(ids))
        try:
            left = engine.sites(writable=True).strike(site, markers)
        except PurgeError as error:
            failures.append(Unheard(site, site, f"a marker could not be struck: {error}"))
            continue
        failures += [Unheard(site, gap.where, gap.why) for gap in left]
        count += len(markers) - len(left)
        journal.note_strike(EventKind.FACT, site, len(markers) - len(left))
    return count, failures


def _open_journal(engine: Engine, stack: ExitStack, *, apply: bool, needed: bool) -> Journal | None:
    """Open the ledger: to write when the run applies, to read when it shows, if there is one."""
    manifest = engine.manifest
    if apply and (needed or manifest.ledger.exists()):
        ledger = Ledger.create_or_open(manifest.ledger, manifest.key_file, clock=engine.clock)
    elif not apply and manifest.ledger.exists():
        ledger = Ledger.open_read_only(manifest.ledger, manifest.key_file)
    else:
        return None
    stack.callback(ledger.close)
    opened = Journal(ledger, manifest.timezone)
    if apply:
        nights.finish_closing(opened)
    return opened
