"""Deciding whether a text holds a phrase: folding, word edges, decoding.

The one definition of a textual hit, used by every adapter. It works on decoded text and never on
a store, may import nothing of ``purge``, and never logs or raises with the text it looks at.
"""

from purge.matching.decode import Flavor, readings
from purge.matching.fold import fold, width
from purge.matching.markers import MARKER, is_marker_line, without_markers
from purge.matching.phrases import How, PhraseMatcher

__all__ = [
    "MARKER",
    "Flavor",
    "How",
    "PhraseMatcher",
    "fold",
    "is_marker_line",
    "readings",
    "width",
    "without_markers",
]
