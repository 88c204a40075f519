"""Marker lines: they name what must go, so they are never themselves what was named.

This module only tells a marker line from other text, and from what nearly is one. Who may write a
marker, and what it can reach, is decided elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from purge.matching.enclosures import BOM, body, enclosures, split_lines

MARKER: Final = "RETRACTS:"
STRUCK: Final = "STRUCK:"
"""What a marker line says once its request is confirmed, if it is struck."""

_HINT: Final = re.compile("retract|[\uff32\uff52]", re.IGNORECASE)
"""Without this a text has no marker, and nothing like one."""
_SIGNS: Final = r"""[*_~`"'|()\[\]]"""
_NEAR: Final = re.compile(
    rf"""
    (?P<before>(?:\s|>|<!--|%%|//|;|[-+*](?=\s)|\#{{1,6}}(?=\s)|\d{{1,9}}[.)](?=\s)|{_SIGNS})*+)
    (?P<word>retracts?)
    (?P<between>(?:\s|{_SIGNS})*)
    :
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class MarkerLine:
    """A line that is a marker, or nearly one.

    Args:
        number: which line, from 1; lines end at ``\\n``, ``\\r\\n`` or a lone ``\\r``.
        phrase: what a marker names, without the white space around it; may be empty. Always empty
            for a line that does not count.
        why: why the line is not obeyed, one clause; empty for a marker.
    """

    number: int
    phrase: str = field(default="", repr=False)
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is a marker."""
        return not self.why


def is_marker_line(line: str) -> bool:
    """Whether a line by itself is a marker: it starts with the word at column 0.

    A byte order mark may stand before it. A line with NUL characters is damaged and is none.
    Where the line stands is not known here; :func:`read_markers` decides for lines of a text.
    """
    return line.startswith(_STARTS) and "\0" not in line


_STARTS: Final = (MARKER, BOM + MARKER)


def read_markers(text: str, *, front_matter: bool = False) -> Iterator[MarkerLine]:
    """Yield the lines of a text that are markers, and those that nearly are, in order.

    A marker starts at column 0 of its line, and stands in no code fence, comment, raw HTML or
    front matter. Where one can read the structure of the text in two ways, a line counts only if
    it does in both. ``RETRACTS:`` in the middle of a line is text, and nothing is said of it.

    Args:
        text: all of it: a fence is seen only with its beginning.
        front_matter: the text is a file that may begin with front matter.
    """
    if _HINT.search(text) is None:
        return
    lines = split_lines(text)
    around: tuple[str, ...] | None = None
    for at, line in enumerate(lines):
        said = body(line)
        is_marker = is_marker_line(said)
        why = "" if is_marker else _why_not(said)
        if why is None:
            continue
        if around is None:
            around = enclosures(lines, front_matter=front_matter)
        why = around[at] or why
        phrase = "" if why else said.removeprefix(BOM).removeprefix(MARKER).strip()
        yield MarkerLine(at + 1, phrase, why)


def without_markers(text: str) -> str:
    """Return ``text`` without its marker lines; the same object when it has none."""
    if MARKER not in text:
        return text
    gone = {line.number for line in read_markers(text) if line.counts}
    if not gone:
        return text
    return "".join(line for at, line in enumerate(split_lines(text), 1) if at not in gone)


def strike(text: str, replacements: Mapping[int, str]) -> str:
    """Return ``text`` with some marker lines struck, and every other character as it was.

    Args:
        text: what :func:`read_markers` read.
        replacements: by the number of a line that counts, what stands in the place of its phrase.

    Raises:
        ValueError: a line does not start with a marker.
    """
    lines = list(split_lines(text))
    for number, replacement in replacements.items():
        said = body(lines[number - 1]) if number <= len(lines) else ""
        if not is_marker_line(said):
            raise ValueError("the line is no marker")
        mark = BOM if said.startswith(BOM) else ""
        lines[number - 1] = f"{mark}{STRUCK} {replacement}{lines[number - 1][len(said) :]}"
    return "".join(lines)


def _why_not(line: str) -> str | None:
    """Say why a line that is nearly a marker is none; ``None`` when it is nothing like one."""
    if _HINT.search(line) is None:
        return None
    plain = "".join(
        letter for letter in unicodedata.normalize("NFKC", line) if not _is_invisible(letter)
    )
    found = _NEAR.match(plain)
    if found is None or (found["word"].upper() == "RETRACT" != found["word"]):
        return None
    if line.startswith(_STARTS):
        return "it holds NUL characters, as a damaged line does"
    before, between = found["before"], found["between"]
    for sign, why in _PLACES:
        if sign in before:
            return why
    if re.search(r"[-+*]\s|\d[.)]\s", before):
        return "it stands in a list item"
    if re.search(_SIGNS, before + between):
        return "it has formatting or other signs around it"
    if "\t" in before or len(before) >= 4:
        return "it is indented, as code is"
    if before:
        return "it does not start at the beginning of its line"
    return _how_it_is_written(line, found["word"], between)


_PLACES: Final = (
    (">", "it stands in a quote"),
    ("<!--", "it stands in an HTML comment"),
    ("%%", "it stands in a comment"),
    ("#", "it stands in a heading"),
    ("|", "it stands in a table"),
)


def _how_it_is_written(line: str, word: str, between: str) -> str:
    if word.upper() == "RETRACT":
        return "it says RETRACT, not RETRACTS"
    if word != "RETRACTS":
        return "it is not written in capital letters"
    if between:
        return "white space stands before its colon"
    if MARKER[:-1] in line and MARKER not in line:
        return "its colon is another character"
    return "it is written with other or invisible characters"


def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cf", "Cc") and not letter.isspace()
