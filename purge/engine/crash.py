"""Named points at which tests kill a run, to see that the next one finishes it.

Does nothing unless the environment variable ``PURGE_CRASH_AT`` names the point.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "PURGE_CRASH_AT"

POINTS: Final = (
    "planned",  # the plan is in the ledger, nothing is removed
    "remove.intended",  # the intent is recorded, the store untouched
    "remove.done",  # the store was changed, the fact not recorded
    "remove.recorded",
    "reread.done",  # read back, nothing of it recorded
    "sanitize.intended",
    "sanitize.done",
    "sanitize.recorded",
    "examined",  # everything is known, no state recorded
    "judged",  # everything is recorded, nothing is printed
    "swept",  # a sweep's run is recorded, nothing is closed or struck
    "closed",  # a request is closed and its key is still there
)
"""Every point, in the order of a run. Those of a verb are passed once for every site."""


def crash_point(name: str, site: str | None = None) -> None:
    """Kill this process if the environment says that it is to die here.

    Args:
        name: one of :data:`POINTS`.
        site: narrows the point to one site; ``NAME@SITE`` in the variable.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted is not None and wanted in (name, f"{name}@{site}"):
        os.kill(os.getpid(), signal.SIGKILL)
