"""Taking values out of a JSON text, or putting others in their place, and leaving all the rest.

What is not named stays as it was written, in JSON within strings as well. This module does no
input or output.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from purge_adapters._format_routes import INSIDE
from purge_adapters._json_text import Path

__all__ = ["Ambiguous", "Change", "JsonEditing", "apply"]

_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:(?P<mark>[{}\[\]:,])"
    r'|(?P<string>"(?:[^"\\]++|\\.)*+")|(?P<scalar>[^\s{}\[\]:,"]+))',
    re.DOTALL,
)
_LETTER: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.",
    re.DOTALL,
)
"""One character of a JSON string as it is written."""
Change = tuple[int, int, str]
"""Where characters begin and end, and what is to stand in their place."""


class Ambiguous(ValueError):
    """A path leads to several values, or to none: a key stands twice, or the text is another."""


@dataclass(slots=True, eq=False)
class _Node:
    """A value in a text."""

    start: int
    end: int = 0
    mark: str = ""
    """``{`` or ``[``; nothing for a scalar."""
    children: list[_Node] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    """For the members of an object, where their keys begin."""

    def beginning(self, at: int) -> int:
        return self.begins[at] if self.mark == "{" else self.children[at].start


def _tree(text: str) -> _Node:
    """Return the value that a valid JSON text holds."""
    root: _Node | None = None
    open_: list[_Node] = []
    key: tuple[str, int] | None = None
    at = 0
    while (found := _TOKEN.match(text, at)) is not None:
        at = found.end()
        mark, string = found["mark"], found["string"]
        if mark and mark in "}]":
            open_.pop().end = at
            continue
        if mark and mark in ":,":
            continue
        around = open_[-1] if open_ else None
        if string is not None and around is not None and around.mark == "{" and key is None:
            key = (json.loads(string, strict=False), found.start("string"))
            continue
        start = found.start("mark") if mark else found.start("string" if string else "scalar")
        node = _Node(start, at, mark or "")
        if around is not None:
            around.children.append(node)
            if key is not None:
                around.names.append(key[0])
                around.begins.append(key[1])
                key = None
        elif root is None:
            root = node
        if mark:
            open_.append(node)
    if root is None or open_:
        raise Ambiguous("no JSON")
    return root


class JsonEditing:
    """Changes to one JSON text.

    Args:
        text: valid JSON.

    Raises:
        Ambiguous: it is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._root = _tree(text)
        self._dropped: set[_Node] = set()
        self._put: dict[_Node, str] = {}
        self._renamed: dict[tuple[_Node, int], str] = {}
        self._inner: dict[_Node, JsonEditing] = {}
        self._ascii = text.isascii()
        self._tight = re.search(r"[:,]\s", text) is None

    def drop(self, path: Path) -> None:
        """Take the value at a path out, with its name or its place in a list.

        Raises:
            Ambiguous: as for :meth:`put`.
        """
        editing, node = self._find(path)
        editing._dropped.add(node)

    def put(self, path: Path, values: list[object]) -> None:
        """Put values in the place of one; several only in a list.

        Raises:
            Ambiguous: the path does not lead to one value.
        """
        editing, node = self._find(path)
        comma = "," if editing._tight else ", "
        editing._put[node] = comma.join(editing._written(value) for value in values)

    def rename(self, path: Path, name: str) -> None:
        """Give a member another name. Raises as :meth:`put`."""
        editing, around = self._find(path[:-1])
        at = [n for n, known in enumerate(around.names) if known == path[-1]]
        if len(at) != 1:
            raise Ambiguous("a key stands twice")
        editing._renamed[around, at[0]] = editing._written(name)

    def changes(self) -> list[Change]:
        """Return what has to be changed in the text, in its order."""
        found: list[Change] = []
        stack = [self._root]
        while stack:
            node = stack.pop()
            if node in self._put:
                found.append((node.start, node.end, self._put[node]))
            elif node in self._inner:
                found += self._lifted(node)
            else:
                gone = {at for at, child in enumerate(node.children) if child in self._dropped}
                found += _cuts(node, gone)
                for at, child in enumerate(node.children):
                    if at not in gone:
                        if (node, at) in self._renamed:
                            start = node.begins[at]
                            end = start + _length_of_string(self.text, start)
                            found.append((start, end, self._renamed[node, at]))
                        stack.append(child)
        return sorted(found)

    def _find(self, path: Path) -> tuple[JsonEditing, _Node]:
        node = self._root
        for taken, step in enumerate(path):
            if step == INSIDE:
                inner = self._inner.get(node)
                if inner is None:
                    try:
                        said = json.loads(self.text[node.start : node.end], strict=False)
                    except ValueError:
                        raise Ambiguous("no JSON") from None
                    if not isinstance(said, str):
                        raise Ambiguous("no string")
                    inner = self._inner[node] = JsonEditing(said)
                return inner._find(path[taken + 1 :])
            if isinstance(step, int):
                if node.mark != "[" or step >= len(node.children):
                    raise Ambiguous("no such element")
                node = node.children[step]
            else:
                found = [n for n, name in enumerate(node.names) if name == step]
                if node.mark != "{" or len(found) != 1:
                    raise Ambiguous("no such member, or two of them")
                node = node.children[found[0]]
        return self, node

    def _written(self, value: object) -> str:
        marks = (",", ":") if self._tight else (", ", ": ")
        if not self._ascii:
            made = json.dumps(value, ensure_ascii=False, separators=marks)
            try:
                made.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                pass
            else:
                return made
        return json.dumps(value, separators=marks)

    def _lifted(self, node: _Node) -> list[Change]:
        """Return the changes within a string as changes to what is written here."""
        inner = self._inner[node].changes()
        if not inner:
            return []
        letters = _LETTER.findall(self.text[node.start + 1 : node.end - 1])
        places = [node.start + 1]
        for letter in letters:
            places.append(places[-1] + len(letter))
        return [(places[start], places[end], self._written(new)[1:-1]) for start, end, new in inner]


def _cuts(node: _Node, gone: set[int]) -> list[Change]:
    """Return what to cut so that some children of a container are gone, commas with them."""
    if not gone:
        return []
    last = len(node.children) - 1
    if len(gone) == len(node.children):
        return [(node.start + 1, node.end - 1, "")]
    found: list[Change] = []
    at = 0
    while at <= last:
        if at not in gone:
            at += 1
            continue
        end = at
        while end + 1 in gone:
            end += 1
        if at > 0:
            found.append((node.children[at - 1].end, node.children[end].end, ""))
        else:
            found.append((node.beginning(0), node.beginning(end + 1), ""))
        at = end + 1
    return found


def _length_of_string(text: str, start: int) -> int:
    found = _TOKEN.match(text, start)
    assert found is not None
    return found.end() - start


def apply(text: str, changes: list[Change]) -> str:
    """Return a text with changes that do not overlap."""
    pieces: list[str] = []
    done = 0
    for start, end, new in sorted(changes):
        pieces += [text[done:start], new]
        done = end
    return "".join((*pieces, text[done:]))
