"""Forget one thing everywhere an AI agent remembers it, and prove it site by site.

As a library::

    import purge

    engine = purge.open("purge.yaml")
    outcome = engine.request([purge.phrase("the wrong lesson, word for word")])
    if outcome.refusal is None:
        outcome = engine.request([...], reason="it was wrong", apply=True)
    for step in outcome.steps:
        print(step.site, step.state, step.problem)

Importing this package imports no driver, no YAML and no pydantic; they come when they are needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from purge.engine import Engine
    from purge.plan.request import Decisions, Wanted

__version__ = "0.1.0"

__all__ = ["Decisions", "__version__", "id", "open", "phrase", "subject"]


def __getattr__(name: str) -> object:
    if name == "Decisions":
        from purge.plan.request import Decisions

        return Decisions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(manifest: str | Path) -> Engine:
    """Read a manifest and return an engine for it, with the built-in adapters. No site is touched.

    Raises:
        purge.errors.ManifestFault: with everything that is wrong in it.
    """
    from purge.cli.wiring import registry
    from purge.engine import Engine

    return Engine.open(Path(manifest), registry())


def phrase(text: str) -> Wanted:
    """Name every record that holds these words.

    Raises:
        purge.errors.UsageFault: there are none.
    """
    from purge.plan.request import Wanted
    from purge.targets import TargetKind

    return Wanted(TargetKind.PHRASE, text)


def id(value: str, site: str | None = None) -> Wanted:
    """Name a record by its id: of one site, or of whichever site has it.

    Raises:
        purge.errors.UsageFault: it is empty.
    """
    from purge.plan.request import Wanted
    from purge.targets import TargetKind

    return Wanted(TargetKind.ID, value, site)


def subject(value: str) -> Wanted:
    """Name every record of a person, by the manifest's subject fields.

    Raises:
        purge.errors.UsageFault: it is empty.
    """
    from purge.plan.request import Wanted
    from purge.targets import TargetKind

    return Wanted(TargetKind.SUBJECT, value)
