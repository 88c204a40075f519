"""Texts that are written in pieces: rich text, in which a change of style may cut a word.

Editors and chat programs keep a text as a list of fragments, one for each change of style
(``[{"text": "spa"}, {"text": "re key", "bold": true}]``), and HTML puts tags between. What a
person reads is the pieces side by side, so that is looked into as well. What is joined is only
what a reader sees as one text: the pieces of one list and what is nested inside them, never two
paragraphs, two fields, two messages or two strings of a plain list.

Plain values, no input or output. A prefilter that does not take lines apart finds those that may
hold such a text with :data:`SIGNS`: this module is the only place that says what they look like.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

__all__ = ["SIGNS", "Run", "may_be_in_pieces", "runs", "without_tags"]

Path = tuple[str | int, ...]

_OF_ITS_OWN: Final = frozenset(
    (
        "id",
        "uuid",
        "role",
        "author",
        "sender",
        "from",
        "user",
        "time",
        "timestamp",
        "ts",
        "date",
        "created_at",
        "createdAt",
    )
)
"""What has an id, a speaker or a time is a text of its own and no fragment of one."""
_BREAK: Final = re.compile(r"(?:hard|soft|line)?[_-]?(?:break|br|newline)", re.IGNORECASE)
_KINDS: Final = ("type", "nodeType", "_type")
_SOMETHING: Final = "\ufffc"
"""Stands for what a reader sees between the pieces and what is no text: a picture, a mention."""

_INLINE: Final = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|rb|rp|rt"
    "|ruby|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr"
)
"""Tags within a word that nobody sees."""
_BLOCK: Final = "blockquote|br|div|h[1-6]|hr|li|ol|p|section|table|td|th|tr|ul"
"""Tags that keep what stands before and behind them apart."""
_TAG: Final = re.compile(
    rf"</?(?:(?:{_INLINE})|(?P<apart>{_BLOCK}))(?=[ \t\r\n/>])[^<>]*>", re.IGNORECASE
)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)

_ENDS: Final = ("}", "]", '"', "u0022")
"""How a piece ends before the comma; quotes are escaped where the text is for HTML."""
_ESCAPED_WHITE: Final = ("\\n", "\\r", "\\t", "\\u0009", "\\u000a", "\\u000d", "\\u0020")
_DEEP: Final = "\\\\\\"
"""An escape that was escaped twice or more."""


def _signs_of_lists() -> Iterator[str]:
    """Yield what may stand before a second element that is an object or a list."""
    escapes = (*_ESCAPED_WHITE, *("\\" + escape for escape in _ESCAPED_WHITE), _DEEP)
    for end in _ENDS:
        yield from (f"{end},{space}{begin}" for space in ("", " ") for begin in "{[")
        yield from (f"{end},{white}" for white in ("\t", "\r", "  ", " \t", " \r", *escapes))
        yield from (f"{end}, {escape}" for escape in escapes)
        yield f"{end} ,"
    for white in ("\t", "\r", *_ESCAPED_WHITE):
        yield from (f"{white},", f"{white} ,")
    yield from ("  ,", "\\u002c")


def _signs_of_tags() -> Iterator[str]:
    """Yield what a tag or a comment begins with."""
    names = f"{_INLINE}|{_BLOCK}".replace("h[1-6]", "h1|h2|h3|h4|h5|h6").split("|")
    for begin in ("<", "u003c"):
        yield from (begin + sign for sign in "/\\!")
        yield from (begin + name for name in names if len(name) > 1)
        yield from (begin + name + end for name in names if len(name) == 1 for end in " \t\r/>\\")


SIGNS: Final = frozenset(sign.encode() for sign in (*_signs_of_lists(), *_signs_of_tags()))
"""Every line that holds a text in pieces has one of these, without regard to the case of ASCII;
letters and digits that are escaped apart."""
_SEPARATOR: Final = re.compile(r",\s*[{\[]")


@dataclass(frozen=True, slots=True)
class Run:
    """One text in pieces, in order. A piece has the path at which it stands; what only keeps others
    apart has none."""

    pieces: tuple[tuple[Path | None, str], ...] = field(repr=False)

    @property
    def text(self) -> str:
        """What the pieces say together."""
        return "".join(said for _, said in self.pieces)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the pieces stand."""
        return tuple(path for path, _ in self.pieces if path is not None)

    def holding(self, holds: Callable[[str], bool]) -> list[Path]:
        """Return the paths of the pieces that take part in what a search finds.

        Args:
            holds: whether a text holds what is looked for; asked a few times for each place.
        """
        found: list[Path] = []
        said = [text for _, text in self.pieces]
        for _ in self.pieces:
            if not holds("".join(said)):
                break
            # Whatever stands before the last place, and behind it, can be left out.
            begin = _last(len(said), partial(_still, holds, said, False))
            behind = _last(len(said) - begin, partial(_still, holds, said[begin:][::-1], True))
            end = len(said) - behind
            found += [path for path, _ in self.pieces[begin:end] if path is not None]
            said[begin:end] = [_SOMETHING] * (end - begin)
        return found


def _still(
    holds: Callable[[str], bool], said: Sequence[str], from_the_end: bool, left_out: int
) -> bool:
    """Whether a text holds it without the first pieces; they may be given from the end."""
    rest = [_SOMETHING, *said[left_out:]]
    return holds("".join([_SOMETHING, *reversed(rest)] if from_the_end else rest))


def _last(count: int, is_so: Callable[[int], bool]) -> int:
    """Return the last number below ``count`` for which something is so that is so from 0 on."""
    return bisect_left(range(1, count), True, key=lambda at: not is_so(at))


def may_be_in_pieces(text: str) -> bool:
    """Whether JSON that is written like this may have runs. Without escapes; true is no promise."""
    return _SEPARATOR.search(text) is not None


def without_tags(text: str) -> str:
    """Return a text without the tags and comments of HTML; the same object when it has none."""
    if "<" not in text:
        return text
    # Behind the last end no comment ends, and looking for one there again from each beginning
    # would take the square of the length.
    end = text.rfind("-->") + 3
    bare = _COMMENT.sub("", text[:end]) + text[end:] if end > 2 else text
    bare = _TAG.sub(lambda tag: "\n" if tag["apart"] else "", bare)
    return text if bare == text else bare


def runs(value: object, path: Path = ()) -> Iterator[Run]:
    """Yield the texts in pieces below a decoded JSON value.

    Args:
        value: the value.
        path: where it stands; the paths of the pieces begin with it.
    """
    stack: list[tuple[Path, object]] = [(path, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, dict):
            stack.extend(((*place, key), inner) for key, inner in item.items())
        elif isinstance(item, list):
            stack.extend(((*place, at), inner) for at, inner in enumerate(item))
            # The signs by which a search finds such a line stand before a second element.
            if any(isinstance(element, dict | list) for element in item[1:]):
                yield from _runs_of(item, place)


def _runs_of(elements: Sequence[object], place: Path) -> Iterator[Run]:
    """Yield the runs of a list: one for each field that its fragments share."""
    names: dict[Path, None] = {}
    for element in elements:
        if _is_fragment(element):
            names.update(dict.fromkeys(it for it, _ in _said(element) if it[-1] not in _KINDS))
    for name in names:
        pieces = _Pieces(name)
        pieces.add_all(elements, place)
        if len(pieces.paths) > 1:
            yield Run(tuple(pieces.said))


class _Pieces:
    """The pieces of one run, gathered in the order of reading."""

    def __init__(self, name: Path) -> None:
        self.paths: list[Path] = []
        self.said: list[tuple[Path | None, str]] = []
        self._name = name

    def add_all(self, elements: Sequence[object], place: Path) -> None:
        for at, element in enumerate(elements):
            self._add(element, (*place, at))

    def _add(self, element: object, place: Path) -> None:
        if isinstance(element, str):
            self._take(place, element)
            return
        if not _is_fragment(element):
            self.said.append((None, _SOMETHING))
            return
        own = next((text for where, text in _said(element) if where == self._name), None)
        if own is not None:
            self._take((*place, *self._name), own)
            return
        before = len(self.paths)
        if isinstance(element, dict):
            # A link or the like that has its words in a list of its own.
            for key, inner in element.items():
                if isinstance(inner, list):
                    self.add_all([one for one in inner if not isinstance(one, str)], (*place, key))
        if len(self.paths) == before:
            self.said.append((None, "\n" if _is_break(element) else _SOMETHING))

    def _take(self, place: Path, text: str) -> None:
        self.paths.append(place)
        self.said.append((place, text))


def _is_fragment(element: object) -> bool:
    if isinstance(element, dict):
        return _OF_ITS_OWN.isdisjoint(element)
    return (
        isinstance(element, list)
        and bool(element)
        and isinstance(element[0], str)
        and not any(isinstance(other, str) for other in element[1:])
    )


def _said(element: object) -> Iterator[tuple[Path, str]]:
    """Yield the strings of a fragment that stand in no list, with the way to them."""
    if isinstance(element, list):
        yield (0,), element[0]
        return
    stack: list[tuple[Path, object]] = [((), element)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, dict) and _is_fragment(item):
            stack.extend(((*place, key), inner) for key, inner in item.items())


def _is_break(element: object) -> bool:
    return isinstance(element, dict) and any(
        isinstance(kind := element.get(name), str) and _BREAK.fullmatch(kind) for name in _KINDS
    )
