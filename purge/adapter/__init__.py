"""The contract between ``purge`` and the code that knows one kind of store.

The docstrings here are the specification; the suite in :mod:`purge.testing` is its proof. An
adapter finds, removes, makes removal physical and looks for what outlives it. It has no opinion:
what a look means is judged by the core alone, from what the adapter *saw*, never from what the
store *answered*.

An adapter module imports the standard library, its own driver (inside functions, so that the
class can be read without it), this module, :mod:`purge.targets`, :mod:`purge.matching` and
:mod:`purge.errors`. It contains no ``if dry_run``, no retry loop, no print, no log line, and no
message that holds an identifier or a text of a record.
"""

from purge.adapter.contract import Adapter, guard
from purge.adapter.looks import (
    Control,
    ControlKind,
    Examined,
    Finding,
    Marker,
    Match,
    NotAMarker,
    NotChecked,
    NotRemoved,
    Observation,
    Readability,
    Removal,
    Residue,
    Snapshot,
    Statement,
)
from purge.adapter.site import Action, AdapterInfo, Covered, EvidenceKind, Site
from purge.state import ProblemCode

__all__ = [
    "Action",
    "Adapter",
    "AdapterInfo",
    "Control",
    "ControlKind",
    "Covered",
    "EvidenceKind",
    "Examined",
    "Finding",
    "Marker",
    "Match",
    "NotAMarker",
    "NotChecked",
    "NotRemoved",
    "Observation",
    "ProblemCode",
    "Readability",
    "Removal",
    "Residue",
    "Site",
    "Snapshot",
    "Statement",
    "guard",
]
