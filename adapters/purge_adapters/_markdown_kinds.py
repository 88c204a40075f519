"""What a block of a note can be. Pure values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a block is. The values are words for people."""

    FRONT = "front matter"
    BLANK = "blank line"
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "list item"
    TABLE_HEAD = "table heading"
    TABLE_RULE = "table rule"
    ROW = "table row"
    FENCE = "code fence"
    OPEN_FENCE = "open code fence"
    CODE = "code"
    HTML = "HTML block"
    COMMENT = "comment"
    TOMBSTONE = "tombstone"
    RULE = "rule"
    MARKER = "marker"


@dataclass(frozen=True, slots=True)
class Block:
    """One block: the lines from ``start`` up to, not including, ``end``.

    Args:
        quote: how many quotes it stands in.
        level: the level of a heading; the column at which the content of a list item begins.
        setext: a heading that is underlined.
        children: the list items within a list item that begin on a line of their own.
    """

    kind: Kind
    start: int
    end: int
    quote: int = 0
    level: int = 0
    setext: bool = False
    children: tuple[Block, ...] = ()
    open: bool = False
    """It ends in a paragraph, which a line without the prefixes of its containers goes on with."""


TOMBSTONE: Final = re.compile(r"<!-- purged: (\S+) (\d{4}-\d{2}-\d{2}) -->")


def walk(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield every block, list items within list items too."""
    for block in blocks:
        yield block
        yield from walk(block.children)
