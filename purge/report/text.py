"""The report for a terminal: one line a site, then what is owed, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from purge.plan.outcome import Completeness, Outcome, Step, is_settled
from purge.report.document import describe, name_control
from purge.state import ProblemCode, State

STYLES: Final = {
    State.ACCEPTED: "red",
    State.REMOVED_FROM_READS: "yellow",
    State.BACKUP_RETAINED: "cyan",
    State.CONFIRMED_DELETED: "green",
}


def report_text(outcome: Outcome) -> RenderableType:
    """Return the report, to be printed by rich."""
    parts: list[RenderableType] = [_headline(outcome), _table(outcome)]
    owed = list(_owed(outcome))
    if owed:
        heading = "Still owed" if outcome.applied else "Before you apply it"
        if outcome.applied and outcome.settled:
            heading = "Kept, as you decided"
        parts.append(Text(f"\n{heading}", style="bold"))
        parts.extend(Padding(line, (0, 0, 0, 2)) for line in owed)
    aging = list(_aging(outcome))
    if aging:
        parts.append(Text("\nLeft to age out by itself", style="bold"))
        parts.extend(Padding(line, (0, 0, 0, 2)) for line in aging)
    cleaned = [] if outcome.applied else list(_to_be_cleaned(outcome))
    if cleaned:
        parts.append(
            Text("\nLeft over in the stores already; to be cleaned up with it", style="dim")
        )
        parts.extend(Padding(line, (0, 0, 0, 2)) for line in cleaned)
    if outcome.refusal:
        parts.append(Text(f"\n{outcome.refusal}", style="red"))
    parts.append(_closing(outcome))
    return Group(*parts)


def _headline(outcome: Outcome) -> Text:
    asked = outcome.request
    line = Text()
    if outcome.refusal:
        line.append("Refused", style="bold red")
        line.append(": nothing was changed. This is what was found.")
        return line
    if not outcome.applied:
        line.append("Dry run", style="bold")
        line.append(": this is what would happen. Nothing was changed.")
        return line
    line.append(f"Request {asked.id}", style="bold")
    line.append(f"  asked {asked.created:%Y-%m-%d %H:%M %z}")
    if asked.withdrawn is not None:
        line.append(f"  withdrawn {asked.withdrawn:%Y-%m-%d %H:%M %z}", style="bold yellow")
    if outcome.asked_before:
        line.append("  (asked before; went on with it)", style="dim")
    if outcome.state is not None:
        line.append("\nAs a whole: ")
        line.append(_state_words(outcome.state, outcome), style=STYLES[outcome.state])
    return line


def _state_words(state: State, step: Step | Outcome) -> str:
    if state is State.BACKUP_RETAINED and step.until is not None:
        return f"backup-retained-until {step.until:%Y-%m-%d}"
    return state.value


def _table(outcome: Outcome) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("site", no_wrap=True, style="bold")
    if outcome.applied:
        table.add_column("state", no_wrap=True)
    table.add_column("found", justify="right")
    table.add_column("removed" if outcome.applied else "would go", justify="right")
    table.add_column("left" if outcome.applied else "to decide", justify="right")
    table.add_column("seen by" if outcome.applied else "looked at", overflow="fold")
    for step in outcome.steps:
        table.add_row(*_row(step, applied=outcome.applied))
    return table


def _row(step: Step, *, applied: bool) -> Iterator[RenderableType]:
    yield step.site
    tally = step.tally
    if applied and step.state is not None:
        state = Text(_state_words(step.state, step), style=STYLES[step.state])
        if step.problem is not None and not is_settled(step.state, step.problem):
            state.append(" !", style="bold red")
        yield state
    yield _number(tally.found)
    yield _number(tally.removed if applied else tally.to_remove - tally.removed)
    undecided = tally.sources + tally.flagged + tally.copies + tally.scope_unknown
    undecided += tally.by_person
    yield _number(tally.left if applied else undecided, "yellow")
    yield _evidence(step, applied=applied)


def _number(count: int, style: str = "") -> Text:
    return Text(str(count), style=style if count else "dim")


def _evidence(step: Step, *, applied: bool) -> Text:
    if step.evidence is None:
        return Text("not looked at", style="red")
    line = Text(describe(step.evidence.examined, short=True))
    if applied:
        line = Text(f"{step.evidence.kind.value}: ") + line
        for kind, passed in step.evidence.control.items():
            mark = "✓" if passed else "✗"
            line.append(f" {name_control(kind)}{mark}", style="green" if passed else "red")
    if step.completeness is Completeness.CANNOT_BE_RULED_OUT:
        line.append(" (more cannot be ruled out)", style="dim")
    return line


def _owed(outcome: Outcome) -> Iterator[Text]:
    """Say once what concerns everything, then what concerns each site."""
    codes = {step.problem.code for step in outcome.steps if step.problem}
    if codes == {ProblemCode.NOTHING_FOUND}:
        first = next(step.problem for step in outcome.steps if step.problem)
        yield Text(f"{first.sentence} Look for a typing mistake: this is not a deletion.")
        return
    for step in outcome.steps:
        problem = step.problem
        if problem is not None and problem.code is not ProblemCode.NOTHING_FOUND:
            line = Text(f"{step.site}: ", style="bold")
            line.append(f"{problem.code.value}  ", style="yellow")
            line.append(problem.sentence, style="default")
            yield line
        for copy in step.residue:
            if copy.until is not None or (copy.fixable and not outcome.applied):
                continue
            if problem is not None and problem.sentence.startswith(f"{copy.where}: "):
                continue
            yield Text(f"{step.site}: {copy.where}: {copy.why}", style="dim")
        for gap in step.not_checked:
            if problem is None or not problem.sentence.startswith(f"{gap.where}: "):
                yield Text(f"{step.site}: not checked: {gap.where}: {gap.why}", style="dim")


SHOWN: Final = 3
"""Of how many dated copies of a site each is shown; the JSON report lists all of them."""


def _aging(outcome: Outcome) -> Iterator[Text]:
    """What goes by itself on a date, the last to go first."""
    for step in outcome.steps:
        dated = [
            (copy.until, copy)
            for copy in step.residue
            if copy.until is not None and (outcome.applied or not copy.fixable)
        ]
        dated.sort(key=lambda pair: pair[0], reverse=True)
        for until, copy in dated[:SHOWN]:
            yield Text(f"{step.site}: {copy.where}: {copy.why}; gone by {until:%Y-%m-%d}")
        more = len(dated) - SHOWN
        if more > 0:
            places = "1 place" if more == 1 else f"{more} places"
            yield Text(f"{step.site}: and {places} more, none of them longer", style="dim")


def _to_be_cleaned(outcome: Outcome) -> Iterator[Text]:
    """What a dry run sees of earlier deletions that never became physical."""
    for step in outcome.steps:
        for copy in step.residue:
            if copy.fixable:
                yield Text(f"{step.site}: {copy.where}: {copy.why}", style="dim")


def _closing(outcome: Outcome) -> Text:
    if outcome.refusal:
        return Text()
    if not outcome.applied:
        count = outcome.to_remove
        if not count:
            return Text("\nNothing would be removed.", style="dim")
        records = "1 record" if count == 1 else f"{count} records"
        return Text(f"\n{records} would be removed. Say --apply to do it.", style="bold")
    if outcome.request.withdrawn is not None:
        return Text("\nIt was withdrawn: no run acts on it any more.", style="dim")
    if outcome.settled:
        return Text("\nNothing is owed any more.", style="green")
    return Text(f"\n{_advice(outcome)}", style="dim")


def _advice(outcome: Outcome) -> str:
    """Say what to do next, by what holds the request up."""
    id = outcome.request.id
    codes = {step.problem.code for step in outcome.steps if step.problem}
    if codes == {ProblemCode.NOTHING_FOUND}:
        return f"If it was a mistake: purge withdraw {id}"
    if codes & {ProblemCode.SOURCE_KEPT, ProblemCode.POSSIBLE_COPY}:
        return f"Decide, and go on with: purge resume {id} --with-... or --keep-..."
    if codes & {ProblemCode.NO_END_DATE, ProblemCode.REPORT_ONLY}:
        return f"Once that is done by hand: purge verify {id}"
    return f"Once that is mended: purge resume {id}"
