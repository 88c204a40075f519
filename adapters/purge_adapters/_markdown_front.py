"""Front matter: the YAML at the top of a note, read tolerantly and cut by whole entries.

Values are read as the strings that stand there (no dates, numbers or truth values are made of
them), since an id such as ``007`` is a string to the other stores. Only plain data is built.
Pure: no input or output.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purge_adapters._markdown_text import body, plain_ends

_FIRST_KEY: Final = re.compile(r"""["'\w][^:]*:(?:\s|$)|\{""")
_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

_MOST_VALUES: Final = 100_000
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value, or a comment: the lines from ``start`` up to ``end`` of the note."""

    start: int
    end: int
    key: str | None


@dataclass(frozen=True, slots=True)
class Front:
    """The front matter of a note.

    Args:
        size: how many lines it takes, both rules included; 0 when there is none.
        values: what it says; ``None`` when it is not valid YAML.
        entries: its parts in order, without a gap between the rules; empty when it cannot be
            cut into parts (a flow mapping, broken YAML).
    """

    size: int = 0
    values: Mapping[str, object] | None = None
    entries: tuple[Entry, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether there is front matter that is not valid YAML."""
        return self.size > 0 and self.values is None


def read_front(lines: Sequence[str]) -> Front:
    """Return the front matter of a note. It begins with ``---`` on the very first line."""
    if not lines or body(lines[0]).rstrip() != "---":
        return Front()
    size = next(
        (at for at, line in enumerate(lines[1:], 2) if body(line).rstrip() in ("---", "...")), 0
    )
    if not size:
        return Front()
    inner = lines[1 : size - 1]
    parsed = _parse("".join(inner))
    if parsed is None:
        first = next((line for line in inner if line.strip() and line[0] != "#"), "")
        # Between two rules may stand prose. What begins like a key is meant as front matter.
        return Front(size) if _FIRST_KEY.match(first) else Front()
    values, starts = parsed
    if not isinstance(values, dict):
        return Front()
    return Front(size, values, tuple(_entries(inner, starts)))


def _parse(text: str) -> tuple[object, list[tuple[int, str]] | None] | None:
    """Return the value of a YAML text and where its keys begin; ``None`` when it is broken.

    The starts are ``None`` when it has no block of keys.
    """
    import yaml

    loader_type = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        loader = loader_type(_UNPRINTABLE.sub("\ufffd", plain_ends(text)))
        try:
            node = loader.get_single_node()
            value = {} if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if node is None:
        return {}, []
    if _expanded(value, {}) > _MOST_VALUES:
        return None
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return value, None
    return value, [
        (key.start_mark.line, key.value if isinstance(key.value, str) else "")
        for key, _ in node.value
    ]


def _expanded(value: object, known: dict[int, float]) -> float:
    """Return how many values there are, shared ones as often as they are used.

    Anchors can make a short text stand for endlessly many, or a list contain itself.
    """
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # What is met again before it is counted contains itself.
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_expanded(item, known) for item in inner)
    return known[id(value)]


def _entries(inner: Sequence[str], starts: list[tuple[int, str]] | None) -> Iterator[Entry]:
    """Cut the lines between the rules; line numbers are those of the note."""
    if starts is None or len({line for line, _ in starts}) != len(starts):
        return
    place = 0
    for number, (start, key) in enumerate([*starts, (len(inner), "")]):
        while place < start:  # Comments and blank lines above a key are parts of their own.
            yield Entry(place + 1, place + 2, None)
            place += 1
        if number == len(starts):
            return
        end = starts[number + 1][0] if number + 1 < len(starts) else len(inner)
        while end > start + 1 and (not inner[end - 1].strip() or inner[end - 1][0] == "#"):
            end -= 1
        yield Entry(start + 1, end + 1, key)
        place = end


def without_entries(
    lines: Sequence[str], front: Front, cut: Iterable[Entry], instead: str = ""
) -> tuple[str, ...] | None:
    """Return the lines of the front matter without some entries.

    Args:
        lines: the lines of the note.
        front: its front matter.
        cut: entries of it.
        instead: what stands in the place of each, a whole line with its end, or nothing.

    Returns:
        ``None`` when what is left would not say the same of every other key.
    """
    gone = tuple(cut)
    if front.values is None or not set(gone) <= set(front.entries):
        return None
    kept = list(lines[: front.size])
    for entry in sorted(gone, key=lambda entry: entry.start, reverse=True):
        kept[entry.start : entry.end] = [instead] if instead else []
    names = {entry.key for entry in gone}
    expected = {key: value for key, value in front.values.items() if key not in names}
    again = read_front(kept)
    if again.size != len(kept) or again.values != expected:
        return None
    return tuple(kept)


def only_keys(lines: Sequence[str], front: Front, keys: Iterable[str], eol: str) -> tuple[str, ...]:
    """Return front matter that says nothing but some fields; nothing when it has none of them.

    Lines stay as they are written where they hold nothing else, comments included.

    Args:
        lines: the lines of the note.
        front: its front matter.
        keys: keys, or dotted paths to them.
        eol: the end of a line that has to be written anew.
    """
    wanted = tuple(keys)
    kept: list[str] = []
    for key, value in (front.values or {}).items():
        inner = [name for name in wanted if name == key or name.startswith(f"{key}.")]
        entry = next((entry for entry in front.entries if entry.key == key), None)
        if key in wanted and entry is not None:
            text = lines[entry.start : entry.end]
            if not any("#" in line for line in text):
                kept += text
                continue
        if inner:
            said = value if key in wanted else _only(key, value, inner)
            kept.append(f"{quoted(key)}: {quoted(said)}{eol}")
    return (lines[0], *kept, lines[front.size - 1]) if kept else ()


def holds_only(front: Front, keys: Iterable[str]) -> bool:
    """Whether front matter says nothing but some fields."""
    wanted = tuple(keys)
    return not front.broken and all(
        key in wanted
        or _only(key, value, [name for name in wanted if name.startswith(f"{key}.")]) == value
        for key, value in (front.values or {}).items()
    )


def quoted(value: object) -> str:
    """Return a value as JSON that is also YAML on one line, and safe within an HTML comment."""
    text = json.dumps(value, ensure_ascii=False)
    text = _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
    return text.replace("-->", "--\\u003e")


def _only(key: str, value: object, names: Iterable[str]) -> object:
    kept: dict[str, object] = {}
    for name in names:
        path = name.removeprefix(f"{key}.").split(".")
        found = look_up({key: value}, name)
        if found is None:
            continue
        place = kept
        for part in path[:-1]:
            inner = place.setdefault(part, {})
            assert isinstance(inner, dict)
            place = inner
        place[path[-1]] = found
    return kept


def look_up(values: Mapping[str, object] | None, field: str) -> object:
    """Return a field by its key or its dotted path; ``None`` when it is not there."""
    found: object = values
    if values is not None and field in values:
        return values[field]
    for part in field.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def strings(value: object) -> Iterator[str]:
    """Yield every string in a value, keys included, each shared part once."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, (dict, list)) and id(item) not in seen:
            seen.add(id(item))
            inner = (
                [part for pair in item.items() for part in pair] if isinstance(item, dict) else item
            )
            stack.extend(reversed(inner))


def load_flow(text: str) -> object:
    """Return the value of a short YAML text; the text itself when it is no YAML."""
    parsed = _parse(text)
    return text if parsed is None else parsed[0]
