"""What a sweep found and did: as JSON (``purge/sweep/1``), for a terminal, and as metrics.

All forms are made from the same value, so that they cannot disagree. None holds a text or an
identifier of a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from purge.plan.outcome import Step, is_settled
from purge.plan.sweep import Item, Sweep, Unheard
from purge.report.document import report_document
from purge.report.text import STYLES
from purge.state import State

SCHEMA: Final = "purge/sweep/1"


def sweep_document(sweep: Sweep) -> dict[str, Any]:
    """Return a sweep as JSON values."""
    return {
        "schema": SCHEMA,
        "mode": sweep.mode,
        "applied": sweep.applied,
        "begun": _iso(sweep.begun),
        "ended": _iso(sweep.ended),
        "snapshot": {
            "site": sweep.gate.site,
            "taken": _iso(sweep.gate.taken),
            "refusal": sweep.gate.refusal,
        },
        "to_remove": sweep.to_remove,
        "settled": sweep.settled,
        "requests": [_item(item) for item in sweep.items],
        "markers": {
            "ignored": [_unheard(one) for one in sweep.ignored],
            "refused": [_unheard(one) for one in sweep.refused],
            "struck": sweep.struck,
        },
        "not_read": [_unheard(one) for one in sweep.failures],
        "overdue": [
            {"request": late.request or None, "due": _iso(late.due), "why": late.why}
            for late in sweep.overdue
        ],
    }


def _item(item: Item) -> dict[str, Any]:
    document = report_document(item.outcome)
    return {
        **document,
        "since": _iso(item.since),
        "new": item.new,
        "closed": item.closed,
        "marker": item.outcome.request.origin,
    }


def _unheard(one: Unheard) -> dict[str, Any]:
    return {"site": one.site, "where": one.where, "why": one.why, "since": _iso(one.since)}


def sweep_text(sweep: Sweep) -> RenderableType:
    """Return a sweep, to be printed by rich."""
    parts: list[RenderableType] = [_headline(sweep)]
    if sweep.items:
        parts.append(_table(sweep))
    for heading, lines in (
        ("Came back", _came_back(sweep)),
        ("For you to look at", _to_look_at(sweep)),
        ("Late", (Text(f"{late.request}: {late.why}") for late in sweep.overdue)),
        ("Markers refused", map(_line, sweep.refused)),
        ("Lines that look like markers and are not obeyed", map(_line, sweep.ignored)),
        ("Could not be read", map(_line, sweep.failures)),
    ):
        said = list(lines)
        if said:
            parts.append(Text(f"\n{heading}", style="bold"))
            parts.extend(Padding(line, (0, 0, 0, 2)) for line in said)
    parts.append(_closing(sweep))
    return Group(*parts)


def _headline(sweep: Sweep) -> Text:
    line = Text(sweep.mode.capitalize(), style="bold")
    if not sweep.applied:
        line.append(": this is what would happen. Nothing was deleted.")
    else:
        line.append(f" of {sweep.begun:%Y-%m-%d %H:%M %z}")
    if sweep.gate.taken is not None:
        line.append(f"\nSnapshot behind it: {sweep.gate.site}, {sweep.gate.taken:%Y-%m-%d %H:%M}")
    if sweep.gate.refusal is not None:
        line.append("\nIt would be refused now. ", style="yellow")
        line.append(sweep.gate.refusal)
    return line


def _table(sweep: Sweep) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("request", no_wrap=True, min_width=26)
    if sweep.applied:
        table.add_column("state", no_wrap=True)
    table.add_column("removed" if sweep.applied else "would go", justify="right")
    table.add_column("left" if sweep.applied else "to decide", justify="right")
    table.add_column("waiting since", no_wrap=True)
    table.add_column("from", overflow="fold")
    for item in sweep.items:
        table.add_row(*_row(item, applied=sweep.applied))
    return table


def _row(item: Item, *, applied: bool) -> Iterator[RenderableType]:
    outcome = item.outcome
    tallies = [step.tally for step in outcome.steps]
    yield Text(outcome.request.id or "(new)")
    if applied:
        state = outcome.state
        words = "" if state is None else state.value
        if state is State.BACKUP_RETAINED and outcome.until is not None:
            words = f"{state.value} {outcome.until:%Y-%m-%d}"
        said = Text(words, style=STYLES[state] if state else "")
        if item.closed:
            said.append("; closed", style="dim")
        elif not outcome.settled:
            said.append(" !", style="bold red")
        yield said
        yield str(sum(tally.removed for tally in tallies))
        yield str(sum(tally.left for tally in tallies))
    else:
        yield str(outcome.to_remove)
        yield str(sum(tally.left - (tally.to_remove - tally.removed) for tally in tallies))
    yield f"{item.since:%Y-%m-%d}"
    source = outcome.request.origin
    yield f"a marker in {source}" if source else (outcome.request.reason or "a request")


def _came_back(sweep: Sweep) -> Iterator[Text]:
    for item in sweep.items:
        for step in item.outcome.steps:
            for back in step.reappeared:
                if back.seen < sweep.begun:
                    continue
                count = "1 record" if back.count == 1 else f"{back.count} records"
                done = "" if sweep.applied else " (it would be removed again)"
                yield Text(
                    f"{item.outcome.request.id} at {step.site}: {count}, removed "
                    f"{back.removed:%Y-%m-%d %H:%M}, seen again {back.seen:%Y-%m-%d %H:%M}{done}"
                )


def _to_look_at(sweep: Sweep) -> Iterator[Text]:
    for item in sweep.items:
        for step in item.outcome.steps:
            if step.problem is None:
                continue
            code = step.problem.code.value
            if code != "restated" and is_settled(step.state, step.problem):
                continue
            if code == "nothing-found" and step is not item.outcome.steps[0]:
                continue  # It is said of the request as a whole.
            name = item.outcome.request.id or f"marker in {item.outcome.request.origin}"
            line = Text(f"{name} at {step.site}: ")
            line.append(code, style="yellow")
            line.append(f"  {step.problem.sentence}")
            yield line


def _line(one: Unheard) -> Text:
    since = f" (since {one.since:%Y-%m-%d})" if one.since else ""
    return Text(f"{one.site}: {one.where}: {one.why}{since}")


def _closing(sweep: Sweep) -> Text:
    if not sweep.applied:
        count = sweep.to_remove
        if not count:
            return Text("\nNothing would be removed. Nothing was deleted.", style="dim")
        records = "1 record" if count == 1 else f"{count} records"
        oldest = min((i.since for i in sweep.items if i.outcome.to_remove), default=sweep.begun)
        return Text(
            f"\n{records} would be removed; the oldest request waits since {oldest:%Y-%m-%d}. "
            "Nothing was deleted: say --apply to do it.",
            style="bold",
        )
    if sweep.struck:
        struck = "1 marker" if sweep.struck == 1 else f"{sweep.struck} markers"
        return Text(f"\n{struck} struck.", style="dim")
    if not sweep.items:
        return Text("\nNothing to do: no open request and no marker.", style="dim")
    return Text("\nNothing is owed." if sweep.settled else "", style="green")


def metrics_text(sweep: Sweep, total_reappearances: int | None = None) -> str:
    """Return a sweep in the text format that Prometheus reads (one gauge a line).

    Args:
        sweep: what was done.
        total_reappearances: those of this sweep, if left out.
    """
    open_ = [item for item in sweep.items if not item.closed]
    steps: Counter[str] = Counter()
    back = 0
    for item in open_:
        for step in item.outcome.steps:
            if step.state is not None:
                steps[step.state.value] += 1
            back += _back_now(step, sweep.begun)
    oldest = min((item.since for item in open_), default=sweep.ended)
    gauges: list[tuple[str, str, str, float]] = [
        ("purge_open_requests", "Requests that are not closed.", "", len(open_)),
        (
            "purge_oldest_request_age_seconds",
            "How long the oldest open request has been waiting.",
            "",
            max(0.0, (sweep.ended - oldest).total_seconds()),
        ),
        *(
            (
                "purge_steps",
                "Steps of open requests by state.",
                f'{{state="{state.value}"}}',
                steps[state.value],
            )
            for state in State
        ),
        (
            "purge_reappeared_records",
            "Records that had been removed and were met again in the last sweep.",
            "",
            back if total_reappearances is None else total_reappearances,
        ),
        ("purge_overdue_requests", "Requests of which a promise is late.", "", len(sweep.overdue)),
        (
            "purge_last_sweep_timestamp_seconds",
            "When the last sweep ended.",
            "",
            sweep.ended.timestamp(),
        ),
    ]
    if sweep.gate.taken is not None:
        gauges.append(
            (
                "purge_last_snapshot_timestamp_seconds",
                "The snapshot that stood behind the last sweep.",
                "",
                sweep.gate.taken.timestamp(),
            )
        )
    lines: list[str] = []
    for name, help_, labels, value in gauges:
        if f"# TYPE {name} gauge" not in lines:
            lines += [f"# HELP {name} {help_}", f"# TYPE {name} gauge"]
        lines.append(f"{name}{labels} {value:.0f}" if value == int(value) else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _back_now(step: Step, begun: datetime) -> int:
    return sum(back.count for back in step.reappeared if back.seen >= begun)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
