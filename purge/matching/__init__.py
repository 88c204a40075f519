"""Deciding whether a text holds a phrase: folding, word edges, decoding.

The one definition of a textual hit, used by every adapter. It works on decoded text and never on
a store, may import nothing of ``purge``, and never logs or raises with the text it looks at.
"""

from purge.matching.decode import Flavor, carries_marker, readings, unmarked
from purge.matching.fold import fold, width
from purge.matching.markers import (
    MARKER,
    STRUCK,
    MarkerLine,
    is_marker_line,
    read_markers,
    strike,
    without_markers,
)
from purge.matching.phrases import How, PhraseMatcher

__all__ = [
    "MARKER",
    "STRUCK",
    "Flavor",
    "How",
    "MarkerLine",
    "PhraseMatcher",
    "carries_marker",
    "fold",
    "is_marker_line",
    "read_markers",
    "readings",
    "strike",
    "unmarked",
    "width",
    "without_markers",
]
