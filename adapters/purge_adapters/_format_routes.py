"""Routes: how a description of a format says where something stands in a JSON value.

A route is written as a dotted path: ``message.content[].text``. Its steps:

- ``name``: the member of that name. A name with dots or brackets stands in double quotes.
- ``*``: every member of an object. ``[]``: every element of a list; ``[0]``, ``[-1]``: one of them.
- ``**``: any number of steps, none included.
- ``$json``: the JSON that a string holds.
- ``$key``, ``$file``, ``$folder``: alone: the name under which a record stands, the name of its
  file without the ending, the name of the folder of its file.

This module does no input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from purge_adapters._json_text import NOT_JSON, Path, items, parse

__all__ = ["INSIDE", "Route", "RouteFault", "enter", "is_at_or_below", "shown_route"]

INSIDE: Final = -1
"""The step of a path that leads into the JSON that a string holds."""
_TOKEN: Final = re.compile(
    r'(?P<dot>\.)|(?P<list>\[\])|\[(?P<at>-?\d+)\]|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^.\[\]"]+)'
)
_ALONE: Final = ("$key", "$file", "$folder")


class RouteFault(ValueError):
    """A route is not written as one is."""


class Every(Enum):
    """A step that stands for several."""

    MEMBER = "*"
    ELEMENT = "[]"
    DEPTH = "**"
    JSON = "$json"


Step = str | int | Every


@dataclass(frozen=True, slots=True)
class Route:
    """Where something stands, from a record or from the beginning of a document."""

    written: str
    steps: tuple[Step, ...]

    @classmethod
    def read(cls, written: str) -> Route:
        """Take a route apart.

        Raises:
            RouteFault: it is none.
        """
        steps: list[Step] = []
        at = 0
        after_dot = True
        while at < len(written):
            found = _TOKEN.match(written, at)
            if found is None:
                raise RouteFault(f"'{written}' is no route: what stands at character {at + 1}?")
            at = found.end()
            if found["dot"]:
                if after_dot or at == len(written):
                    raise RouteFault(f"'{written}' is no route: a name is missing beside a dot.")
                after_dot = True
                continue
            if not after_dot and not (found["list"] or found["at"]):
                raise RouteFault(f"'{written}' is no route: a dot is missing.")
            after_dot = False
            steps.append(_step(found))
        if any(step in _ALONE for step in steps) and len(steps) > 1:
            raise RouteFault(f"'{written}' is no route: {', '.join(_ALONE)} stand alone.")
        return cls(written, tuple(steps))

    @property
    def alone(self) -> str | None:
        """``$key``, ``$file`` or ``$folder``, if that is what it says."""
        return self.written if self.written in _ALONE else None

    @property
    def enters(self) -> bool:
        """Whether it leads into the JSON of a string."""
        return Every.JSON in self.steps

    @property
    def names_elements(self) -> bool:
        """Whether what it leads to are elements of a list or members by any name."""
        return bool(self.steps) and self.steps[-1] in (Every.ELEMENT, Every.MEMBER, Every.DEPTH)

    def places(self, value: object, base: Path = ()) -> Iterator[tuple[Path, object]]:
        """Yield the paths and values to which it leads from a value."""
        found = _places(value, self.steps, base)
        if Every.DEPTH not in self.steps:
            yield from found
            return
        met: set[Path] = set()  # There may be several ways to one place.
        for path, inner in found:
            if path not in met:
                met.add(path)
                yield path, inner

    def is_shut(self, value: object) -> bool:
        """Whether a string that it leads through holds something, and no JSON."""
        for at, step in enumerate(self.steps):
            if step is Every.JSON:
                for _, found in _places(value, self.steps[:at], ()):
                    if isinstance(found, str) and found.strip() and enter(found) is NOT_JSON:
                        return True
        return False


def _step(found: re.Match[str]) -> Step:
    if found["list"]:
        return Every.ELEMENT
    if found["at"] is not None:
        return int(found["at"])
    if found["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", found["quoted"])
    name = found["name"]
    return next((step for step in Every if step.value == name), name)


def _places(value: object, steps: tuple[Step, ...], base: Path) -> Iterator[tuple[Path, object]]:
    if not steps:
        yield base, value
        return
    step, rest = steps[0], steps[1:]
    if step is Every.DEPTH:
        yield from _places(value, rest, base)
        for name, inner in _below(value):
            yield from _places(inner, steps, (*base, name))
    elif step is Every.JSON:
        inner = enter(value)
        if inner is not NOT_JSON:
            yield from _places(inner, rest, (*base, INSIDE))
    elif isinstance(value, dict):
        for key, inner in items(value):
            if step is Every.MEMBER or key == step:
                yield from _places(inner, rest, (*base, key))
    elif isinstance(value, list):
        if isinstance(step, int):
            at = step + len(value) if step < 0 else step
            if 0 <= at < len(value):
                yield from _places(value[at], rest, (*base, at))
        elif step is Every.ELEMENT:
            for at, inner in enumerate(value):
                yield from _places(inner, rest, (*base, at))
        elif isinstance(step, str):
            # A name behind a list stands for that field of every element, as in 'text' of jsonl.
            for at, inner in enumerate(value):
                if isinstance(inner, dict):
                    yield from _places(inner, steps, (*base, at))


def _below(value: object) -> Iterator[tuple[str | int, object]]:
    if isinstance(value, dict):
        yield from items(value)
    elif isinstance(value, list):
        yield from enumerate(value)


def enter(value: object) -> object:
    """Return the JSON value that a string holds; ``NOT_JSON`` where it holds none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        parts = parse(value)
        if len(parts) == 1:
            return parts[0][2]
    return NOT_JSON


def is_at_or_below(path: Path, place: Path) -> bool:
    """Whether a path leads to a place or into it."""
    return path[: len(place)] == place


def shown_route(path: Path, *routes: Route) -> str:
    """Return a real path for people: indices, and of the names only those that routes spell out.

    The other names are ids or content.
    """
    known = {step for route in routes for step in route.steps if isinstance(step, str)}
    pieces: list[str] = []
    for step in path:
        if step == INSIDE:
            pieces.append("$json")
        elif isinstance(step, int):
            pieces.append(str(step))
        else:
            pieces.append(step if step in known else "*")
    return ".".join(pieces)
