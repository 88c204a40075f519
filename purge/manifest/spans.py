"""Lengths of time as people write them: ``26h``, ``30d``, ``1d12h``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART: Final = re.compile(r"([0-9]{1,6})([wdhms])")
_WHOLE: Final = re.compile(r"([0-9]{1,6}[wdhms])+")


def read_span(text: str) -> timedelta | None:
    """Return the length of time, or ``None`` where ``text`` says none, zero, a unit twice, or more
    than a hundred years. Units: ``w``, ``d``, ``h``, ``m`` (minutes), ``s``."""
    parts = _PART.findall(text)
    if not _WHOLE.fullmatch(text) or len({unit for _, unit in parts}) != len(parts):
        return None
    span = timedelta(**{_UNITS[unit]: int(count) for count, unit in parts})
    return span if timedelta(0) < span <= timedelta(days=36525) else None
