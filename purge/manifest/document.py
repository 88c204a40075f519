"""Reading YAML with the place of every value, and nothing surprising in between.

Stricter than YAML's own rules where those are a danger in a file that says what gets deleted: a
key that stands twice is a fault (YAML keeps the last, silently), ``no``, ``12:30`` and dates are
text (YAML 1.1 makes a truth value, 750 and a date of them), tags are refused, and size, depth and
the number of values after aliases were followed are limited. This module knows nothing of what a
manifest means, and no sentence made here holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from purge.shapes import Steps

if TYPE_CHECKING:
    from yaml import Event

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 40
MAX_VALUES: Final = 50_000


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands in the file; both count from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Node:
    """One value and its place. ``value`` is a plain scalar, a list or a mapping of nodes."""

    value: object
    place: Place
    keys: tuple[tuple[str, Place], ...] = ()
    """For a mapping: its keys, each with its own place."""

    def plain(self) -> Any:
        """Return the value without places: ``dict``, ``list``, ``str``, ``int``, ``float``,
        ``bool`` or ``None``."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def place_of(self, path: Steps, *, at_key: bool = False) -> Place:
        """Return the place of what stands at ``path``; of the nearest thing around it, where
        nothing stands there. ``at_key``: the place of the key rather than that of its value."""
        node, place = self, self.place
        for step in path:
            inner: object = None
            if isinstance(node.value, dict) and isinstance(step, str):
                inner = node.value.get(step)
                # A value that begins on a later line is better pointed to by its key.
                key_place = dict(node.keys).get(step, place)
            elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
                inner = node.value[step]
                key_place = node.value[step].place
            else:
                break
            if not isinstance(inner, Node):
                break
            node = inner
            is_scalar = not isinstance(inner.value, (dict, list))
            place = inner.place if is_scalar and not at_key else key_place
        return place


class YamlFault(Exception):
    """The text is no document that can be worked with at all."""

    def __init__(self, place: Place, sentence: str) -> None:
        super().__init__(sentence)
        self.place = place
        self.sentence = sentence


@dataclass(slots=True)
class Document:
    """The mapping that a text holds, and the faults that did not keep it from being read."""

    root: Node
    faults: list[tuple[Place, Steps, str]]


def read_document(text: str) -> Document:
    """Read the one YAML mapping in ``text``.

    Raises:
        YamlFault: it is not YAML, not one document, not a mapping, or beyond the limits.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._events = self._parse(text)
        self._anchors: dict[str, Node] = {}
        self._faults: list[tuple[Place, Steps, str]] = []
        self._values = 0

    def read(self) -> Document:
        from yaml import DocumentStartEvent, StreamEndEvent

        next(self._events)
        start = next(self._events)
        if isinstance(start, StreamEndEvent):
            raise YamlFault(Place(), "The file is empty.")
        root = self._node(next(self._events), ())
        next(self._events)
        more = next(self._events)
        if isinstance(more, DocumentStartEvent):
            raise YamlFault(_place(more), "A second document begins here; only one is allowed.")
        if not isinstance(root.value, dict):
            raise YamlFault(root.place, "The file must hold a mapping (purge: 1, sites: ...).")
        return Document(root, self._faults)

    @staticmethod
    def _parse(text: str) -> Iterator[Event]:
        import yaml

        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            yield from yaml.parse(text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place(mark.line + 1, mark.column + 1) if mark else Place()
            said = " ".join(part for part in (error.problem, error.context) if part)
            hint = _hint(text.splitlines()[place.line - 1 : place.line])
            raise YamlFault(place, f"This is not valid YAML: {said}.{hint}") from None
        except yaml.YAMLError as error:
            reason = getattr(error, "reason", "it cannot be read")
            raise YamlFault(
                _place_of_unreadable(text), f"This is not valid YAML: {reason}."
            ) from None

    def _node(self, event: Event, path: Steps) -> Node:
        from yaml import AliasEvent, MappingStartEvent, NodeEvent, ScalarEvent

        place = _place(event)
        self._values += 1
        if self._values > MAX_VALUES:
            raise YamlFault(place, f"There are more than {MAX_VALUES} values here.")
        if len(path) > MAX_DEPTH:
            raise YamlFault(place, f"This is nested more than {MAX_DEPTH} deep.")
        if isinstance(event, AliasEvent):
            return self._alias(event, place, len(path))
        assert isinstance(event, NodeEvent)
        tag = getattr(event, "tag", None)
        if tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._faults.append((place, path, "Tags (a word after '!') are not used here."))
        if isinstance(event, ScalarEvent):
            is_plain = event.style in (None, "") and tag is None
            node = Node(_scalar(event.value) if is_plain else event.value, place)
        elif isinstance(event, MappingStartEvent):
            node = self._mapping(place, path)
        else:
            node = self._list(place, path)
        if event.anchor:
            # Only now: an alias within its own anchor would have no end.
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, place: Place, depth: int) -> Node:
        if event.anchor not in self._anchors:
            raise YamlFault(place, "This alias (*) names no anchor (&) that stands before it.")
        node = self._anchors[event.anchor]
        count, height = _size(node)
        self._values += count
        if self._values > MAX_VALUES:
            raise YamlFault(place, f"With its aliases, this has more than {MAX_VALUES} values.")
        if depth + height > MAX_DEPTH:
            raise YamlFault(place, f"With its aliases, this is nested more than {MAX_DEPTH} deep.")
        return node

    def _list(self, place: Place, path: Steps) -> Node:
        from yaml import SequenceEndEvent

        found: list[Node] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            found.append(self._node(event, (*path, len(found))))
        return Node(found, place)

    def _mapping(self, place: Place, path: Steps) -> Node:
        from yaml import MappingEndEvent, ScalarEvent

        found: dict[str, Node] = {}
        places: dict[str, Place] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self._events), MappingEndEvent):
            key_place = _place(event)
            if not isinstance(event, ScalarEvent):
                self._node(event, path)
                self._node(next(self._events), path)
                self._faults.append((key_place, path, "A key must be plain text."))
                continue
            key = event.value
            if event.anchor:
                self._anchors[event.anchor] = Node(key, key_place)
            node = self._node(next(self._events), (*path, key))
            if key == "<<" and not event.style:
                merged += node.value if isinstance(node.value, list) else [node]
            elif key in found:
                first = places[key].line
                self._faults.append(
                    (
                        key_place,
                        (*path, key),
                        f"This key stands here twice (first in line {first}).",
                    )
                )
            else:
                found[key], places[key] = node, key_place
        for source in merged:
            if not isinstance(source.value, dict):
                self._faults.append((source.place, path, "What is merged (<<) must be a mapping."))
                continue
            for key, key_place in source.keys:
                if key not in found:
                    found[key], places[key] = source.value[key], key_place
        return Node(found, place, tuple(places.items()))


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


def _hint(lines: list[str]) -> str:
    """Return advice for the two mistakes that are made most, by the line they are in."""
    line = lines[0] if lines else ""
    if line.lstrip(" ").startswith("\t"):
        return " Indent with spaces; YAML allows no tabs."
    if "${" in line:
        return " Within {...} and [...], put a value with ${...} in quotes."
    return ""


def _place_of_unreadable(text: str) -> Place:
    """Where the first character stands that YAML does not allow (a control character)."""
    before = re.match(r"[\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*", text)
    lines = (before[0] if before else "").split("\n")
    return Place(len(lines), len(lines[-1]) + 1)


def _size(node: Node) -> tuple[int, int]:
    """Return how many values a node holds, itself included, and how deep they are nested. Stops
    counting when there are too many."""
    count, height, ahead = 0, 0, [(node, 0)]
    while ahead and count <= MAX_VALUES:
        inner, depth = ahead.pop()
        count += 1
        height = max(height, depth)
        if isinstance(inner.value, dict):
            ahead.extend((below, depth + 1) for below in inner.value.values())
        elif isinstance(inner.value, list):
            ahead.extend((below, depth + 1) for below in inner.value)
    return count, height


_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)?\.[0-9]+([eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _scalar(text: str) -> object:
    """Return what a plain (unquoted) scalar means: nothing, a truth value, a number as JSON writes
    it, or else text. (So ``007`` and ``0x1F`` are text, as whoever writes an id means them.)"""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text
