"""The report as Markdown, to be kept beside a ticket or sent to who asked."""

from __future__ import annotations

from collections.abc import Iterator

from purge.plan.outcome import Completeness, Outcome, Step
from purge.report.document import describe, name_control
from purge.state import State


def report_markdown(outcome: Outcome) -> str:
    """Return the report as Markdown text that ends with a newline."""
    return "\n".join(_lines(outcome)) + "\n"


def _lines(outcome: Outcome) -> Iterator[str]:
    asked = outcome.request
    yield f"# Request {asked.id}" if asked.id else "# Dry run"
    yield ""
    yield f"- asked: {asked.created.isoformat(timespec='seconds')}"
    if asked.reason:
        yield f"- reason: {_cell(asked.reason)}"
    if asked.asked_by:
        yield f"- asked by: {_cell(asked.asked_by)}"
    if asked.scope:
        yield f"- limited by scope: {', '.join(map(_cell, asked.scope))} (values sealed)"
    if asked.withdrawn is not None:
        yield f"- withdrawn: {asked.withdrawn.isoformat(timespec='seconds')}"
    if outcome.state is not None:
        yield f"- as a whole: **{_state(outcome.state, outcome)}**"
    if outcome.refusal:
        yield f"- refused: {_cell(outcome.refusal)} Nothing was deleted."
    yield ""
    applied = outcome.applied
    yield (
        "| site | adapter | state | found | removed | left | proved by | looked | completeness |"
        if applied
        else "| site | adapter | found | would go | to decide | looked |"
    )
    yield "|---|---|---|--:|--:|--:|---|---|---|" if applied else "|---|---|--:|--:|--:|---|"
    for step in outcome.steps:
        yield _applied_row(step) if applied else _shown_row(step)
    notes = [note for step in outcome.steps for note in _notes(step)]
    if notes:
        yield ""
        yield "## Still owed" if applied else "## Before it is applied"
        yield ""
        yield from notes


def _applied_row(step: Step) -> str:
    evidence = step.evidence
    proof = "not looked at"
    when = ""
    if evidence is not None:
        control = ", ".join(
            f"{name_control(kind)} {'seen' if passed else 'NOT seen'}"
            for kind, passed in evidence.control.items()
        )
        proof = f"{evidence.kind.value}: {describe(evidence.examined)}"
        proof += f"; control before removal: {control}" if control else ""
        when = evidence.at.isoformat(timespec="seconds")
    tally = step.tally
    complete = "proven" if step.completeness is Completeness.PROVEN else step.completeness.value
    state = _state(step.state, step) if step.state else ""
    cells = (step.site, step.adapter, state, tally.found, tally.removed, tally.left)
    return "| " + " | ".join(_cell(str(cell)) for cell in (*cells, proof, when, complete)) + " |"


def _shown_row(step: Step) -> str:
    tally = step.tally
    undecided = tally.sources + tally.flagged + tally.copies + tally.scope_unknown
    undecided += tally.by_person
    looked = describe(step.evidence.examined) if step.evidence else "not looked at"
    going = tally.to_remove - tally.removed
    cells = (step.site, step.adapter, tally.found, going, undecided, looked)
    return "| " + " | ".join(_cell(str(cell)) for cell in cells) + " |"


def _notes(step: Step) -> Iterator[str]:
    if step.problem is not None:
        yield f"- {step.site}: `{step.problem.code.value}`. {_cell(step.problem.sentence)}"
    said = step.problem.sentence if step.problem else ""
    for copy in step.residue:
        if said.startswith(f"{copy.where}: "):
            continue
        until = f", until {copy.until.isoformat(timespec='seconds')}" if copy.until else ""
        yield f"- {step.site}: {_cell(copy.where)}: {_cell(copy.why)}{until}"
    for gap in step.not_checked:
        if said.startswith(f"{gap.where}: "):
            continue
        yield f"- {step.site}: not checked: {_cell(gap.where)}: {_cell(gap.why)}"


def _state(state: State, step: Step | Outcome) -> str:
    if state is State.BACKUP_RETAINED and step.until is not None:
        return f"{state.value} {step.until.isoformat(timespec='seconds')}"
    return state.value


def _cell(text: str) -> str:
    """Keep a text from ending a cell, a line or an element of Markdown."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.split())
