"""Log lines for those who watch: text or JSON, to standard error, without erased text."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from purge.plan.sweep import Sweep


class Log:
    """Writes log lines.

    Args:
        form: ``text`` or ``json``; ``None`` writes nothing.
        clock: the time, with a time zone.
    """

    def __init__(self, form: str | None, clock: Callable[[], datetime]) -> None:
        self._form = form
        self._clock = clock

    def phase(self, phase: str, site: str) -> None:
        """Say that a phase begins at a site."""
        self._write("phase", phase=phase, site=site)

    def sweep(self, done: Sweep) -> None:
        """Say what became of each request, and of the whole."""
        for item in done.items:
            outcome = item.outcome
            self._write(
                "request",
                request=outcome.request.id or None,
                state=outcome.state.value if outcome.state else None,
                until=outcome.until.isoformat() if outcome.until else None,
                settled=outcome.settled,
                closed=item.closed,
            )
        for late in done.overdue:
            self._write("overdue", request=late.request, why=late.why)
        for one in done.refused:
            self._write("marker-refused", site=one.site, where=one.where, why=one.why)
        self._write(done.mode, applied=done.applied, requests=len(done.items), settled=done.settled)

    def _write(self, event: str, **values: Any) -> None:
        if self._form is None:
            return
        at = self._clock().isoformat(timespec="seconds")
        if self._form == "json":
            typer.echo(json.dumps({"at": at, "event": event, **values}), err=True)
            return
        said = " ".join(f"{key}={_plain(value)}" for key, value in values.items())
        typer.echo(f"{at} {event} {said}", err=True)


def _plain(value: object) -> str:
    text = str(value)
    return json.dumps(text) if " " in text or not text else text
