"""Where an HTML block in Markdown ends: the seven kinds of CommonMark, comments apart.

Pure: no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_RAW: Final = re.compile(r" {0,3}<(script|pre|style|textarea)(?:[ >]|$)", re.IGNORECASE)
_RAW_END: Final = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)
_SPANS: Final = (
    (re.compile(r" {0,3}<\?"), re.compile(r"\?>")),
    (re.compile(r" {0,3}<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r" {0,3}<![A-Za-z]"), re.compile(r">")),
)
_NAMES: Final = (
    "address article aside base basefont blockquote body caption center col colgroup dd details "
    "dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 "
    "head header hr html iframe legend li link main menu menuitem nav noframes ol optgroup option "
    "p param search section summary table tbody td tfoot th thead title tr track ul"
)
_BLOCK: Final = re.compile(
    rf" {{0,3}}</?(?:{'|'.join(_NAMES.split())})(?:[ >]|/>|$)", re.IGNORECASE
)
_ATTRIBUTE: Final = r"""(?: +[A-Za-z_:][\w.:-]*(?: *= *(?:[^ "'=<>`]+|'[^']*'|"[^"]*"))?)"""
_ALONE: Final = re.compile(
    rf" {{0,3}}(?:<[A-Za-z][A-Za-z0-9-]*{_ATTRIBUTE}* */?>|</[A-Za-z][A-Za-z0-9-]* *>) *$"
)


def html_block(first: str, rest: Iterable[str], in_paragraph: bool = False) -> int | None:
    """Return how many lines the HTML block at a line has; ``None`` when there is none.

    Args:
        first: the line in question, without its end.
        rest: the lines after it, to the end of its container.
        in_paragraph: the line follows one of a paragraph, which a lone tag does not end.
    """
    if "<" not in first:
        return None
    closer: re.Pattern[str] | None = None
    if _RAW.match(first):
        closer = _RAW_END
    else:
        closer = next((end for opener, end in _SPANS if opener.match(first)), None)
    if closer is None:
        if not (_BLOCK.match(first) or (not in_paragraph and _ALONE.match(first))):
            return None
    elif closer.search(first):
        return 1
    upto_blank = 0
    size = 1
    for size, line in enumerate(rest, 2):
        if closer is not None and closer.search(line):
            return size
        if not line.strip() and not upto_blank:
            upto_blank = size - 1
            if closer is None:
                break
    # What is never closed ends at the first blank line, not at the end of the file.
    return upto_blank or size
