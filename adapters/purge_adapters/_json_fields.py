"""Fields of a JSON record by dotted path, and what their values mean.

This module does no input or output.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from purge.adapter import Site
from purge_adapters._json_text import Path, items, leaves, parse

__all__ = ["Fields", "moment", "part_of", "scalar", "scalars", "shown", "values_at"]

Said = Callable[[Path], Iterable[str]]
"""What a record says at a path: ids, each as it is written."""
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,39}")


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields of a record mean what; dotted paths, taken apart."""

    id: Path | None = None
    text: tuple[Path, ...] = ()
    time: Path | None = None
    scope: Mapping[str, Path] = field(default_factory=dict)
    subject: Path | None = None
    parents: Mapping[str, Path | None] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, id: str | None, text: Sequence[str], time: str | None) -> Fields:
        """Take the paths of a site apart."""

        def split(path: str) -> Path:
            return tuple(path.split("."))

        return cls(
            split(id) if id else None,
            tuple(split(path) for path in text),
            split(time) if time else None,
            {key: split(path) for key, path in site.scope.items()},
            split(site.subject) if site.subject else None,
            {name: split(path) if path else None for name, path in site.derived_from.items()},
        )

    def scope_of(self, said: Said) -> dict[str, str]:
        """Return scope key to the one value of a record; absent where it has none or several.

        Args:
            said: what the record says at a path.
        """
        found: dict[str, str] = {}
        for key, path in self.scope.items():
            values = set(said(path))
            if len(values) == 1:
                found[key] = values.pop()
        return found

    def subjects_of(self, said: Said) -> tuple[str, ...]:
        """Return the ids of the people that a record is about."""
        return tuple(dict.fromkeys(said(self.subject))) if self.subject else ()

    def parents_of(self, said: Said) -> dict[str, tuple[str, ...]]:
        """Return source site to the ids that a record says it derives from."""
        found: dict[str, tuple[str, ...]] = {}
        for site, path in self.parents.items():
            ids = tuple(dict.fromkeys(said(path))) if path else ()
            if ids:
                found[site] = ids
        return found

    def links(self) -> Iterator[Path]:
        """Yield the paths of what identifies a record, or ties it to others."""
        mapped = (self.id, self.time, self.subject, *self.scope.values(), *self.parents.values())
        yield from (path for path in mapped if path)


def part_of(scope: Mapping[str, str]) -> str:
    """Return what tells records of one id apart that say different scopes; shows none of them."""
    if not scope:
        return ""
    said = json.dumps(sorted(scope.items())).encode("ascii")
    return hashlib.blake2b(said, digest_size=8).hexdigest()


def shown(path: Path, *, is_key: bool = False) -> str:
    """Return a path as a hit carries it. A name that may be content is left out."""
    steps = path[:-1] if is_key else path
    names = [str(step) if _is_name(step) else "*" for step in steps]
    return ".".join((*names, "*") if is_key else names)


def _is_name(step: str | int) -> bool:
    return isinstance(step, int) or _NAME.fullmatch(step) is not None


def values_at(value: object, path: Path, place: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield what stands at a dotted path, with the real path to it.

    Numbers index lists; a name behind a list stands for that field of every element; a key that
    has dots itself is found too.
    """
    if not path:
        yield place, value
    elif isinstance(value, dict):
        for taken in range(1, len(path) + 1):
            name = ".".join(map(str, path[:taken]))
            if name in value:
                for key, inner in items(value):
                    if key == name:
                        yield from values_at(inner, path[taken:], (*place, key))
    elif isinstance(value, list):
        step = str(path[0])
        if step.isdecimal():
            at = int(step)
            if at < len(value):
                yield from values_at(value[at], path[1:], (*place, at))
        else:
            for at, inner in enumerate(value):
                yield from values_at(inner, path, (*place, at))


def scalar(value: object) -> str | None:
    """Return a value as an id is written, if it can be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def scalars(value: object) -> Iterator[str]:
    """Yield every id below a value; a list written as a string counts as a list too."""
    for _, leaf, is_key in leaves(value):
        text = None if is_key else scalar(leaf)
        if text:
            yield text
            if text.startswith("[") and isinstance(leaf, str):
                parts = parse(text)
                if len(parts) == 1 and isinstance(parts[0][2], list):
                    yield from scalars(parts[0][2])


_SECONDS_PER_UNIT: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (0.0, 1.0))
"""From which size on a number of the present counts nanoseconds, microseconds, milliseconds."""


def moment(value: object) -> datetime | None:
    """Return the time that a value says; without a time zone it is taken as UTC."""
    try:
        if isinstance(value, str):
            when = datetime.fromisoformat(value)
            return when if when.tzinfo else when.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            unit = next(unit for size, unit in _SECONDS_PER_UNIT if abs(value) >= size)
            return datetime.fromtimestamp(value * unit, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
