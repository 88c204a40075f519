"""A small scanner that cuts a note into blocks and accounts for every line exactly once.

It follows the block rules of CommonMark and of tables in GitHub's extension, and knows what
Obsidian adds: front matter, ``%% comments %%`` and ``^block-ids``. It is no renderer: it only has
to know where a block begins and ends, what belongs to it, and what may not be glued together.
Pure: no input or output.

It differs from CommonMark on purpose in these points, each time towards the smaller block:

- A fence or comment that is never closed does not swallow the rest of the file: the lines below
  it are pieces between blank lines. Nothing in them is a marker.
- A marker line is a block of its own: it ends a paragraph, a list or a quote above it.
- A line that holds only comments with fields (``<!-- derived_from: m1 -->``) belongs to the
  paragraph or fence that it touches.
- Each link definition is a block of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from purge.matching import read_markers
from purge_adapters._markdown_html import html_block
from purge_adapters._markdown_kinds import TOMBSTONE, Block, Kind
from purge_adapters._markdown_text import body

_ATX: Final = re.compile(r" {0,3}(#{1,6})(?: |$)")
_SETEXT: Final = re.compile(r" {0,3}(=+|-+) *$")
_RULE: Final = re.compile(r" {0,3}([-*_])(?: *\1){2,} *$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_QUOTE: Final = re.compile(r" {0,3}> ?")
_ITEM: Final = re.compile(r"( {0,3}(?:[-*+]|(\d{1,9})[.)]))( +|$)(.*)")
_DEFINITION: Final = re.compile(r" {0,3}\[[^\[\]]+\]:")
_FIELD_COMMENTS: Final = re.compile(
    r" {0,3}(?:<!-- *[\w.-]+ *: (?:(?!-->).)*--> *)+(?:\^[\w-]+ *)?$"
)
_DELIMITER: Final = re.compile(r" {0,3}\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$")
_CELL: Final = re.compile(r"(?<!\\)\|")
_NESTING: Final = 32
"""How deep quotes and lists are followed; what lies deeper is text of the innermost."""
_TAIL: Final = 200
"""How many lines of a quote are read again to tell whether it ends in a paragraph."""


@dataclass(frozen=True, slots=True)
class _View:
    """A line as its container sees it: without the prefixes of the containers around it."""

    at: int
    text: str
    lazy: bool = False
    """It lacks the prefix of a container whose paragraph it goes on with."""

    @property
    def blank(self) -> bool:
        return not self.text.strip()

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" "))


def scan(lines: Sequence[str], front: int = 0) -> tuple[Block, ...]:
    """Return the blocks of a note, in order, without a gap.

    Args:
        lines: all lines of the note, each with its end.
        front: how many lines at the top are front matter.
    """
    views = [_View(at, body(line).expandtabs(4).rstrip("\0")) for at, line in enumerate(lines)]
    blocks = [Block(Kind.FRONT, 0, front)] if front else []
    place = front
    # What counts as a marker is decided in one place for all stores, and nothing reaches over it.
    for marker in read_markers("".join(lines), front_matter=front > 0):
        at = marker.number - 1
        if marker.counts and at >= front:
            blocks += [*_scan(views[place:at], 0, 0), Block(Kind.MARKER, at, at + 1)]
            place = at + 1
    return (*blocks, *_scan(views[place:], 0, 0))


def _scan(views: Sequence[_View], quote: int, depth: int) -> list[Block]:
    blocks: list[Block] = []
    at = 0
    while at < len(views):
        made = list(_next(views, at, quote, depth))
        blocks += made
        at = made[-1].end - views[0].at
    return blocks


def _next(views: Sequence[_View], at: int, quote: int, depth: int) -> Iterator[Block]:
    """Yield the block that begins at a line; several for a quote, a table or an open fence."""
    view = views[at]

    def upto(kind: Kind, end: int) -> Block:
        return Block(kind, view.at, views[0].at + end, quote)

    if view.blank:
        yield upto(Kind.BLANK, at + 1)
    elif view.indent >= 4:
        yield upto(Kind.CODE, _end_of_code(views, at))
    elif TOMBSTONE.match(view.text.strip()):
        yield upto(Kind.TOMBSTONE, at + 1)
    elif fence := _FENCE.match(view.text):
        end = _end_of_fence(views, at, fence.group(1))
        if end is not None:
            yield upto(Kind.FENCE, _with_fields(views, end))
        elif depth:
            yield upto(Kind.FENCE, len(views))
        else:
            yield from _pieces(views, at, quote)
    elif heading := _ATX.match(view.text):
        yield replace(upto(Kind.HEADING, at + 1), level=len(heading.group(1)))
    elif _RULE.match(view.text):
        yield upto(Kind.RULE, at + 1)
    elif depth < _NESTING and _QUOTE.match(view.text):
        end = _end_of_quote(views, at, depth)
        yield from _scan([_unquoted(inner) for inner in views[at:end]], quote + 1, depth + 1)
    elif depth < _NESTING and _ITEM.match(view.text):
        yield _item(views, at, quote, depth)
    elif (table := _end_of_table(views, at)) is not None:
        yield upto(Kind.TABLE_HEAD, at + 1)
        yield Block(Kind.TABLE_RULE, view.at + 1, view.at + 2, quote)
        for row in range(view.at + 2, views[0].at + table):
            yield Block(Kind.ROW, row, row + 1, quote)
    elif _FIELD_COMMENTS.match(view.text):
        yield _paragraph(views, at, quote)
    elif (comment := _end_of_comment(views, at)) is not None:
        if comment > len(views):
            yield from _pieces(views, at, quote)
        else:
            yield upto(Kind.COMMENT, comment)
    elif (html := _end_of_html(views, at)) is not None:
        yield upto(Kind.HTML, _with_fields(views, html))
    else:
        yield _paragraph(views, at, quote)


def _end_of_code(views: Sequence[_View], at: int) -> int:
    end = at + 1
    for place in range(at + 1, len(views)):
        if views[place].blank:
            continue
        if views[place].indent < 4:
            break
        end = place + 1
    return end


def _end_of_fence(views: Sequence[_View], at: int, opener: str) -> int | None:
    closing = re.compile(rf" {{0,3}}{re.escape(opener[0])}{{{len(opener)},}} *$")
    for place in range(at + 1, len(views)):
        if closing.match(views[place].text):
            return place + 1
    return None


def _with_fields(views: Sequence[_View], end: int) -> int:
    """Take the lines of field comments that touch the end of a block into it."""
    while end < len(views) and _FIELD_COMMENTS.match(views[end].text):
        end += 1
    return end


def _pieces(views: Sequence[_View], at: int, quote: int) -> Iterator[Block]:
    """Cut what lies below an opener that is never closed: nothing can be said of its structure."""
    yield Block(Kind.OPEN_FENCE, views[at].at, views[at].at + 1, quote)
    place = at + 1
    while place < len(views):
        end = place + 1
        if not views[place].blank:
            while end < len(views) and not views[end].blank:
                end += 1
        kind = Kind.BLANK if views[place].blank else Kind.CODE
        yield Block(kind, views[place].at, views[0].at + end, quote)
        place = end


def _unquoted(view: _View) -> _View:
    lazy = view.lazy or not _QUOTE.match(view.text)
    return _View(view.at, _QUOTE.sub("", view.text, count=1), lazy)


def _end_of_quote(views: Sequence[_View], at: int, depth: int) -> int:
    end = at + 1
    lazy: bool | None = None
    while end < len(views):
        if _QUOTE.match(views[end].text):
            lazy = None
        elif _interrupts(views, end, True):
            break
        else:
            # A lazy line: the paragraph in the quote goes on without its sign.
            if lazy is None:
                tail = views[max(at, end - _TAIL) : end]
                lazy = _is_open(_scan([_unquoted(inner) for inner in tail], 1, depth + 1))
            if not lazy:
                break
        end += 1
    return end


def _is_open(blocks: Sequence[Block]) -> bool:
    return bool(blocks) and blocks[-1].open


def _interrupts(views: Sequence[_View], at: int, outside: bool = False) -> bool:
    """Whether the line ends a paragraph above it.

    ``outside``: the paragraph stands in a quote or a list item, and the line does not.
    """
    view = views[at]
    if view.blank:
        return True
    if view.lazy or view.indent >= 4:
        return False
    text = view.text
    table = not outside and _end_of_table(views, at) is not None
    if text.lstrip(" ")[:1].isalpha():  # Most lines. Only a table begins like this.
        return table
    if (item := _ITEM.match(text)) and not _RULE.match(text):
        return outside or (bool(item.group(4)) and item.group(2) in (None, "1"))
    return bool(
        _ATX.match(text)
        or _RULE.match(text)
        or _FENCE.match(text)
        or _QUOTE.match(text)
        or TOMBSTONE.match(text.strip())
        or (
            not _FIELD_COMMENTS.match(text)
            and (_end_of_comment(views, at) is not None or _end_of_html(views, at, True))
        )
        or table
    )


def _item(views: Sequence[_View], at: int, quote: int, depth: int) -> Block:
    match = _ITEM.match(views[at].text)
    assert match is not None
    sign, _, gap, rest = match.groups()
    # Five spaces or more after the sign: indented code, which begins one space after it.
    column = len(sign) + (len(gap) if rest and len(gap) <= 4 else 1)
    first = _View(views[at].at, " " * (len(gap) - 1 if len(gap) > 4 else 0) + rest)
    inner = [first]
    end, lazy = at + 1, None if rest else False
    for place in range(at + 1, len(views)):
        view = views[place]
        if view.blank:
            if place == at + 1 and not rest:
                break  # A sign without a text, then a blank line: the item ends there.
            lazy = False
        elif view.lazy:
            end = place + 1
        elif view.indent >= column:
            view = _View(view.at, view.text[column:])
            end, lazy = place + 1, None
        else:
            if lazy is None:
                lazy = _is_open(_scan(inner, quote, depth + 1))
            if not lazy or _interrupts(views, place, True):
                break
            view = _View(view.at, view.text, True)
            end = place + 1
        inner.append(view)
    blocks = _scan(inner[: end - at], quote, depth + 1)
    children = tuple(
        block
        for block in blocks
        if block.kind is Kind.ITEM and block.start > first.at and block.quote == quote
    )
    return Block(
        Kind.ITEM,
        first.at,
        views[0].at + end,
        quote,
        column,
        children=children,
        open=_is_open(blocks),
    )


def _cells(text: str) -> int:
    return len(_CELL.findall(text.strip().removeprefix("|").removesuffix("|"))) + 1


def _end_of_table(views: Sequence[_View], at: int) -> int | None:
    if at + 1 >= len(views) or "|" not in views[at].text + views[at + 1].text:
        return None
    head, rule = views[at].text, views[at + 1].text
    if not _DELIMITER.match(rule) or views[at].indent >= 4 or _cells(head) != _cells(rule):
        return None
    end = at + 2
    while end < len(views) and not _ends_table(views, end):
        end += 1
    return end


def _ends_table(views: Sequence[_View], at: int) -> bool:
    text = views[at].text
    return bool(
        views[at].blank
        or views[at].indent >= 4
        or _ATX.match(text)
        or _FENCE.match(text)
        or _QUOTE.match(text)
        or _RULE.match(text)
        or _ITEM.match(text)
        or TOMBSTONE.match(text.strip())
        or text.lstrip().startswith(("<!--", "%%"))
        or _end_of_html(views, at, True) is not None
    )


def _end_of_comment(views: Sequence[_View], at: int) -> int | None:
    """Where a comment that begins a line ends; beyond all lines when an HTML one never does."""
    text = views[at].text.lstrip(" ")
    if text.startswith("<!--"):
        for place in range(at, len(views)):
            shown = views[place].text
            if "-->" in (shown if place > at else text[2:]):
                return place + 1
        return len(views) + 1
    if not text.startswith("%%"):
        return None
    if "%%" in text[2:]:
        return at + 1 if text.rstrip().endswith("%%") and text.count("%%") == 2 else None
    for place in range(at + 1, len(views)):
        if "%%" in views[place].text:
            return place + 1
    return None


def _end_of_html(views: Sequence[_View], at: int, in_paragraph: bool = False) -> int | None:
    rest = (view.text for view in _from(views, at + 1))
    size = html_block(views[at].text, rest, in_paragraph)
    return None if size is None else at + size


def _from(views: Sequence[_View], at: int) -> Iterator[_View]:
    return (views[place] for place in range(at, len(views)))


def _paragraph(views: Sequence[_View], at: int, quote: int) -> Block:
    defines = bool(_DEFINITION.match(views[at].text))
    end = at + 1
    while end < len(views):
        text = views[end].text
        if (underline := _SETEXT.match(text)) and not views[end].lazy:
            level = 1 if underline.group(1)[0] == "=" else 2
            return Block(Kind.HEADING, views[at].at, views[end].at + 1, quote, level, True)
        if _interrupts(views, end) or (defines and _DEFINITION.match(text)):
            break
        end += 1
    return Block(Kind.PARAGRAPH, views[at].at, views[0].at + end, quote, open=True)
