"""Which lines of a text stand in code, comments, raw HTML or front matter.

It follows the block rules of CommonMark, and where these can be read in two ways it takes a line
to be enclosed. No renderer: it only has to know what may not be taken at its word. Lines end as
CommonMark has it: U+2028 and its like stand inside lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

BOM: Final = "\ufeff"
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")

_FENCE: Final = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_ITEM: Final = re.compile(r"( {0,3}(?:[-+*]|\d{1,9}[.)]))( +(?=[^ ])|(?= *$))")
_RULE: Final = re.compile(r" {0,3}([-*_])(?: *\1){2,} *$")
_NO_PARAGRAPH: Final = re.compile(r" {0,3}(?:#{1,6}(?: |$)|([-*_])(?: *\1){2,} *$)")
_RAW: Final = (
    (
        re.compile(r" {0,3}<(?:script|pre|style|textarea)(?=[ >]|$)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(r" {0,3}<\?"), re.compile(r"\?>")),
    (re.compile(r" {0,3}<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r" {0,3}<![A-Za-z]"), re.compile(r">")),
)
"""What begins raw HTML that goes on over blank lines, and what ends it."""
_COMMENT: Final = re.compile(r" {0,3}<!--")
_ENDS_COMMENT: Final = re.compile("-->")
_ENDS_HIDDEN: Final = re.compile("%%")

_IN_FENCE: Final = "it stands in a code fence"
_IN_COMMENT: Final = "it stands in an HTML comment"
_IN_HIDDEN: Final = "it stands in a comment"
_IN_HTML: Final = "it stands in raw HTML"
_IN_FRONT: Final = "it stands in front matter"


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text, each with its end: ``\\n``, ``\\r\\n`` or a lone ``\\r``."""
    return tuple(_LINE.findall(text))


def body(line: str) -> str:
    """Return a line without its end."""
    return line.rstrip("\r\n")


def enclosures(lines: Sequence[str], *, front_matter: bool = False) -> tuple[str, ...]:
    """Return for each line what encloses it, as a clause; empty where nothing does.

    Args:
        lines: all lines of a text.
        front_matter: the text may begin with front matter.
    """
    shown = [body(line).expandtabs(4).rstrip("\0") for line in lines]
    if shown:
        shown[0] = shown[0].removeprefix(BOM)
    front = _front(shown) if front_matter else 0
    rest = shown[front:]
    one = _Reading(rest, strictly=True).read()
    other = _Reading(rest, strictly=False).read()
    return (*[_IN_FRONT] * front, *(a or b for a, b in zip(one, other, strict=True)))


def _front(shown: Sequence[str]) -> int:
    """Return how many lines are front matter."""
    if not shown or shown[0].rstrip() != "---":
        return 0
    ends = (at for at, line in enumerate(shown[1:], 2) if line.rstrip() in ("---", "..."))
    return next(ends, 0)


@dataclass(frozen=True, slots=True)
class _Open:
    """Something that is open: what ends it, and what is said of the lines in it.

    ``column``: it belongs to a list item, and ends with the first line that is indented less.
    """

    end: re.Pattern[str]
    why: str
    column: int = 0


class _Reading:
    """One way to read the structure of a text, line by line.

    Args:
        shown: the lines, without ends and tabs.
        strictly: as CommonMark has it: what is indented below a list item ends with that item,
            and only what begins a line opens anything. Otherwise as an author may have meant it:
            all ends where it is closed, comments begin anywhere, also Obsidian's.
    """

    def __init__(self, shown: Sequence[str], *, strictly: bool) -> None:
        self._shown = shown
        self._strictly = strictly
        self._open: _Open | None = None
        self._columns: list[int] = []
        """Where the content of each list item begins that a line may belong to."""
        self._in_paragraph = False
        self._next_blank = self._next(lambda line: not line.strip())
        self._next_comment_end = self._next(lambda line: "-->" in line)
        self._next_hidden_end = self._next(lambda line: "%%" in line)

    def _next(self, holds: Callable[[str], bool]) -> list[int]:
        """Return for each line the first one behind it for which something holds."""
        found = len(self._shown)
        places = [found] * len(self._shown)
        for at in range(len(self._shown) - 1, -1, -1):
            places[at] = found
            if holds(self._shown[at]):
                found = at
        return places

    def read(self) -> list[str]:
        """Return for each line what encloses it."""
        return [self._line(at, line) for at, line in enumerate(self._shown)]

    def _line(self, at: int, line: str) -> str:
        indent = len(line) - len(line.lstrip(" "))
        if self._open is not None and line.strip() and indent < self._open.column:
            self._open = None
            self._in_paragraph = False
        if self._open is None:
            self._in_paragraph = bool(line.strip()) and self._begin(at, line, indent)
            return ""
        inside = self._open
        ended = inside.end.search(line)
        if ended is not None:
            self._open = None
            self._in_paragraph = False
            if inside.why == _IN_COMMENT and not self._strictly:
                self._open_comment(at, line, ended.end(), True)
        return inside.why

    def _begin(self, at: int, line: str, indent: int) -> bool:
        """See what a line opens that nothing encloses; whether a paragraph may go on below it."""
        around = [column for column in self._columns if column <= indent]
        start = around[-1] if around else 0
        inherited = len(around)
        while (item := _ITEM.match(line, start)) is not None and not _RULE.match(line, start):
            # Five spaces or more: indented code, which begins one space after the sign.
            start = item.end(1) + (len(item[2]) if 0 < len(item[2]) <= 4 else 1)
            around.append(start)
        # A line that begins nothing may go on with a paragraph in an item, however indented it is.
        if self._opens(at, line, start) or len(around) > inherited or not self._in_paragraph:
            self._columns = around
        if self._open is not None:
            return False
        rest = line[start:]
        is_code = len(rest) - len(rest.lstrip(" ")) >= 4
        return bool(rest.strip()) and not (is_code or _NO_PARAGRAPH.match(rest))

    def _opens(self, at: int, line: str, start: int) -> bool:
        """See whether a line opens something that encloses what follows."""
        column = start if self._strictly else 0
        if (fence := _FENCE.match(line, start)) is not None:
            sign = fence[2]
            end = re.compile(rf"^ {{0,{3 + start}}}{re.escape(sign[0])}{{{len(sign)},}} *$")
            self._open = _Open(end, _IN_FENCE, column)
            return True
        if line[start:].startswith("    "):
            return False
        for begins, ends in _RAW:
            if (found := begins.match(line, start)) is not None:
                if ends.search(line, found.end()) is None:
                    self._open = _Open(ends, _IN_HTML, column)
                return True
        if self._strictly:
            comment = _COMMENT.match(line, start)
            if comment is not None and "-->" not in line[comment.end() - 2 :]:
                self._open = _Open(_ENDS_COMMENT, _IN_COMMENT, column)
            return comment is not None
        if line.lstrip(" ").startswith("%%"):
            if "%%" not in line.lstrip(" ")[2:] and self._next_hidden_end[at] < len(self._shown):
                self._open = _Open(_ENDS_HIDDEN, _IN_HIDDEN)
        else:
            self._open_comment(at, line, 0, False)
        return False

    def _open_comment(self, at: int, line: str, start: int, is_block: bool) -> None:
        """See whether a line leaves a comment open.

        One that begins a line, or stands among tags, is open until it is closed, or to the end.
        Another is a comment only if it is closed before the paragraph ends; else it is text.
        """
        while (begin := line.find("<!--", start)) >= 0:
            before = line[:begin].strip()
            is_block = is_block or not before or before.startswith("<")
            end = line.find("-->", begin + 2)
            if end < 0:
                if is_block or self._next_comment_end[at] < self._next_blank[at]:
                    self._open = _Open(_ENDS_COMMENT, _IN_COMMENT)
                return
            start = end + 3
