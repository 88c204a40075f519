"""The fold as it is kept in tables, so that nothing has to be folded to answer a question.

Reads and writes rows; what they say comes from :mod:`purge.ledger.fold` alone. The tables can be
emptied and made anew from the events at any time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from purge.errors import LedgerFault
from purge.ledger.events import canonical, timestamp
from purge.ledger.fold import Folded, Sealed
from purge.ledger.views import Decision, KeyState, Remains, RequestView, StepView
from purge.state import Problem, ProblemCode, State

RequestRow = tuple[str, int, int, str, str, str]
StepRow = tuple[str, int, str, str]

_REQUEST_ROWS: Final = "SELECT id, seq, open, state, key, content FROM requests"


def request_row(folded: Folded, seq: int) -> RequestRow:
    """Return the row of a request that was created by event ``seq``."""
    view = folded.request
    content = canonical(
        {
            "created": timestamp(view.created),
            "reason": view.reason,
            "asked_by": view.asked_by,
            "scope": view.scope,
            "options": view.options,
            "targets": view.targets,
            "deadline": _written(view.deadline),
            "until": _written(view.until),
            "waits_for": [code.value for code in view.waits_for],
            "decisions": [[one.question, one.answer, timestamp(one.at)] for one in view.decisions],
            "withdrawn": _written(view.withdrawn),
            "closed": _written(view.closed),
            "key_id": view.key_id,
            "sites": view.sites,
            "problems": view.problems,
            "changed": timestamp(view.changed),
            "sealed": {name: [one.version, one.digest] for name, one in folded.sealed.items()},
        }
    )
    return (view.id, seq, int(view.open), view.state.value, view.key.value, content)


def step_rows(folded: Folded) -> list[StepRow]:
    """Return the rows of the steps of a request."""
    return [
        (step.request, position, step.site, _step_content(step))
        for position, step in enumerate(folded.steps.values())
    ]


def _step_content(step: StepView) -> str:
    problem = step.problem
    return canonical(
        {
            "adapter": step.adapter,
            "state": step.state.value,
            "until": _written(step.until),
            "problem": None if problem is None else [problem.code.value, problem.sentence],
            "found": step.found,
            "removed": step.removed,
            "left": step.left,
            "residue": [[copy.where, copy.why, _written(copy.until)] for copy in step.residue],
            "evidence": step.evidence,
            "completeness": step.completeness,
            "at": timestamp(step.at),
        }
    )


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


@contextmanager
def _rows_of(request: str) -> Iterator[None]:
    """Say it clearly when a row is not one that was written here."""
    try:
        yield
    except (ValueError, TypeError, LookupError) as error:
        raise LedgerFault(
            f"What is kept of request {request} is damaged; it can be made anew from the events."
        ) from error


def request_of(row: RequestRow) -> RequestView:
    """Return the request that a row describes.

    Raises:
        LedgerFault: the row is damaged.
    """
    with _rows_of(row[0]):
        return _request(row)


def _request(row: RequestRow) -> RequestView:
    id, _, _, state, key, content = row
    said: dict[str, Any] = json.loads(content)
    return RequestView(
        id=id,
        created=datetime.fromisoformat(said["created"]),
        reason=said["reason"],
        asked_by=said["asked_by"],
        scope=tuple(said["scope"]),
        options=said["options"],
        targets=said["targets"],
        deadline=_read(said["deadline"]),
        state=State(state),
        until=_read(said["until"]),
        waits_for=tuple(map(ProblemCode, said["waits_for"])),
        decisions=tuple(
            Decision(question, answer, datetime.fromisoformat(at))
            for question, answer, at in said["decisions"]
        ),
        withdrawn=_read(said["withdrawn"]),
        closed=_read(said["closed"]),
        key=KeyState(key),
        key_id=said["key_id"],
        sites=said["sites"],
        problems=said["problems"],
        changed=datetime.fromisoformat(said["changed"]),
    )


def sealed_of(row: RequestRow) -> Mapping[str, Sealed]:
    """Return what of the request is sealed.

    Raises:
        LedgerFault: the row is damaged.
    """
    with _rows_of(row[0]):
        sealed: dict[str, Any] = json.loads(row[5])["sealed"]
        return {name: Sealed(version, digest) for name, (version, digest) in sealed.items()}


def step_of(row: StepRow) -> StepView:
    """Return the step that a row describes.

    Raises:
        LedgerFault: the row is damaged.
    """
    with _rows_of(row[0]):
        return _step(row)


def _step(row: StepRow) -> StepView:
    request, _, site, content = row
    said: dict[str, Any] = json.loads(content)
    problem = said["problem"]
    return StepView(
        request=request,
        site=site,
        adapter=said["adapter"],
        state=State(said["state"]),
        until=_read(said["until"]),
        problem=None if problem is None else Problem(ProblemCode(problem[0]), problem[1]),
        found=said["found"],
        removed=said["removed"],
        left=said["left"],
        residue=tuple(Remains(where, why, _read(until)) for where, why, until in said["residue"]),
        evidence=said["evidence"],
        completeness=said["completeness"],
        at=datetime.fromisoformat(said["at"]),
    )


def find_row(connection: sqlite3.Connection, request: str) -> RequestRow | None:
    """Return the row of a request, if there is such a request."""
    row: RequestRow | None = connection.execute(
        f"{_REQUEST_ROWS} WHERE id = ?", (request,)
    ).fetchone()
    return row


def find_steps(connection: sqlite3.Connection, request: str) -> list[StepRow]:
    """Return the rows of the steps of a request, in order."""
    return connection.execute(
        "SELECT request, position, site, content FROM steps WHERE request = ? ORDER BY position",
        (request,),
    ).fetchall()


def list_rows(
    connection: sqlite3.Connection, *, open_only: bool, limit: int | None
) -> list[RequestRow]:
    """Return the rows of the requests, newest first."""
    where = "WHERE open = 1" if open_only else ""
    return connection.execute(
        f"{_REQUEST_ROWS} {where} ORDER BY seq DESC LIMIT ?", (-1 if limit is None else limit,)
    ).fetchall()


def load(connection: sqlite3.Connection, request: str) -> tuple[Folded, int] | None:
    """Return the state of a request and the number of the event that created it."""
    row = find_row(connection, request)
    if row is None:
        return None
    steps = {step.site: step for step in map(step_of, find_steps(connection, request))}
    return Folded(request_of(row), steps, sealed_of(row)), row[1]


def save(connection: sqlite3.Connection, folded: Folded, seq: int) -> None:
    """Write the rows of a request in place of those that are there."""
    connection.execute(
        "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?)", request_row(folded, seq)
    )
    connection.executemany("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", step_rows(folded))


def clear(connection: sqlite3.Connection) -> None:
    """Empty the tables."""
    connection.execute("DELETE FROM requests")
    connection.execute("DELETE FROM steps")


def differences(
    connection: sqlite3.Connection, folds: Mapping[str, tuple[Folded, int]]
) -> Iterator[str]:
    """Yield the requests whose rows are not what the fold says."""
    kept = {row[0]: row for row in list_rows(connection, open_only=False, limit=None)}
    steps: dict[str, list[StepRow]] = {}
    for step in connection.execute(
        "SELECT request, position, site, content FROM steps ORDER BY request, position"
    ):
        steps.setdefault(step[0], []).append(step)
    for request, (folded, seq) in folds.items():
        row = kept.pop(request, None)
        if row != request_row(folded, seq) or steps.pop(request, []) != step_rows(folded):
            yield request
    yield from kept
    yield from steps
