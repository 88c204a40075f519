"""What a note says *about* a record: ids, lineage, scope and subject, in front matter and inline.

An inline field stands in the record itself, in one of three forms::

    derived_from: [m1, m2]                 a line of its own
    <!-- derived_from: m1 -->              a comment
    derived_from:: m1                      Dataview, also [derived_from:: m1], (derived_from:: m1)

A value is a string, or a list: in brackets, or with ``, `` between its parts where a list is
asked for. A wikilink names a note: ``[[Keys#^key]]`` is the id ``Keys.md#^key``. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from purge_adapters._markdown_front import load_flow, quoted
from purge_adapters._markdown_kinds import TOMBSTONE
from purge_adapters._markdown_text import without_comments

_BLOCK_ID: Final = re.compile(r"(?:^|[ \t\n])\^([A-Za-z0-9-]+)\s*\Z")
_WIKILINK: Final = re.compile(r"!?\[\[([^\[\]|#]*)(#[^\[\]|]*)?(?:\|[^\[\]]*)?\]\]\Z")
_PREFIX: Final = re.compile(
    r"^[ \t]*(?:(?:>|#{1,6}(?=[ \t])|[-*+](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]|$))[ \t]*)+", re.MULTILINE
)
_TASK: Final = re.compile(r"^\[[^\[\]]\][ \t]+", re.MULTILINE)
_HIDDEN: Final = re.compile(r"%%.*?%%", re.DOTALL)
BLANKED_FRONT: Final = re.compile(r"^# purged: (\S+) (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
"""The tombstone in front matter."""
_SAFE: Final = re.compile(r"[\w./](?:[\w./@+: -]*[\w./@+-])?\Z")


class FieldReader:
    """Reads the inline fields of some names.

    Args:
        names: the fields that the manifest maps; all others are text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(name for name in names if not name.startswith("$")))
        one = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)))
        self._any = re.compile(
            rf"<!--\s*(?P<comment>{one})\s*:\s*(?P<commented>.*?)\s*-->"
            rf"|\[(?P<square>{one})::\s*(?P<squared>(?:\[\[.*?\]\]|[^\[\]])*)\]"
            rf"|\((?P<round>{one})::\s*(?P<rounded>[^()]*)\)"
            rf"|(?:^|(?<=\s))(?P<open>{one})::[ \t]*(?P<opened>[^\n]*)"
            rf"|^[ \t]*(?P<line>{one}):[ \t]+(?P<lined>[^\n]+)",
            re.MULTILINE | re.DOTALL,
        )

    def read(self, text: str) -> dict[str, list[str]]:
        """Return the values of each field that stands in ``text``, as they are written there.

        Args:
            text: the record with ``\\n`` as its line ends and without its line prefixes.
        """
        found: dict[str, list[str]] = {}
        if not self.names or not any(name in text for name in self.names):
            return found
        for match in self._any.finditer(text):
            groups = match.groupdict()
            for name, value in (
                ("comment", "commented"),
                ("square", "squared"),
                ("round", "rounded"),
                ("open", "opened"),
                ("line", "lined"),
            ):
                if groups[name] is not None:
                    said = _BLOCK_ID.sub("", groups[value]).strip()
                    if said:
                        found.setdefault(groups[name], []).append(said)
        return found

    def strip(self, text: str) -> str:
        """Return ``text`` without the fields that :meth:`read` finds in it."""
        return self._any.sub("", text) if self.names else text


def one_of(values: Iterable[object]) -> str | None:
    """Return the first value that is a single string; ids and scopes are."""
    for value in values:
        said = load_flow(value) if isinstance(value, str) and value[:1] in "\"'" else value
        if isinstance(said, str) and said.strip():
            return said
    return None


def list_of(values: Iterable[object]) -> tuple[str, ...]:
    """Return every id that the values of a field name, each once, in order."""
    return tuple(dict.fromkeys(id for value in values for id in _ids(value)))


def front_one(value: object) -> str | None:
    """Return a front matter value as a single string, or ``None`` when it is not one."""
    return value if isinstance(value, str) and value.strip() else None


def front_list(value: object) -> tuple[str, ...]:
    """Return every id that a front matter value names."""
    if isinstance(value, str):
        return list_of([value])
    return tuple(dict.fromkeys(_target(text) for text in _link_strings(value) if text.strip()))


def _ids(value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield from front_list(value)
        return
    text = value.strip()
    if text[:1] == "[" and not _WIKILINK.match(text):
        yield from front_list(load_flow(text))
    elif text[:1] in "\"'" and isinstance(said := load_flow(text), str):
        yield said
    else:
        for part in text.split(", "):
            if part.strip():
                yield _target(part.strip())


def _link_strings(value: object) -> Iterator[str]:
    """Yield the strings of a value. An unquoted ``[[x]]`` is to YAML a list in a list: a link."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, list) and len(item) == 1 and isinstance(item[0], str):
                yield f"[[{item[0]}]]"
            else:
                yield from _link_strings(item)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _link_strings(inner)
    elif isinstance(value, str):
        yield value


def _target(text: str) -> str:
    """Return the id that a value names; a wikilink names a note by its path."""
    link = _WIKILINK.match(text)
    if link is None:
        return text
    note, place = link.group(1).strip(), link.group(2) or ""
    suffix = "" if not note or "." in note.rsplit("/", 1)[-1] else ".md"
    return f"{note}{suffix}{place}"


def block_id(text: str) -> str | None:
    """Return the id of a block, without its sign: the last word of it, as in ``text ^key``."""
    found = _BLOCK_ID.search(text)
    return found.group(1) if found else None


def without_prefixes(text: str) -> str:
    """Return ``text`` without the signs of quotes, lists and headings before its lines."""
    return _PREFIX.sub("", text)


def clean(text: str, reader: FieldReader) -> str:
    """Return what a record says, without the signs, fields, comments and ids around it."""
    said = _TASK.sub("", without_prefixes(text))
    said = _HIDDEN.sub("", without_comments(reader.strip(said)))
    return _BLOCK_ID.sub("", said).strip()


def tombstone(request: str, date: str, fields: Iterable[tuple[str, Iterable[str]]], id: str) -> str:
    """Return the line that stands in the place of a blanked record, without prefix and line end.

    Args:
        request: the id of the request.
        date: the day, ``YYYY-MM-DD``.
        fields: names and values that the record keeps.
        id: the block id that it keeps, or nothing.
    """
    name = re.sub(r"[^\w.:-]|-(?=-)", "_", request)
    parts = [f"<!-- purged: {name} {date} -->"]
    for field, values in fields:
        written = [_written(value) for value in values]
        if written:
            shown = written[0] if len(written) == 1 else f"[{', '.join(written)}]"
            parts.append(f"<!-- {field}: {shown} -->")
    if id:
        parts.append(f"^{id}")
    return " ".join(parts)


def _written(value: str) -> str:
    if _SAFE.match(value) and "--" not in value and ": " not in value:
        return value
    return quoted(value).replace("|", "\\u007c")


def is_blanked(text: str, reader: FieldReader) -> bool:
    """Whether a record holds a tombstone and, fields and ids apart, nothing else."""
    if not TOMBSTONE.search(text):
        return False
    left = reader.strip(without_prefixes(TOMBSTONE.sub("", text)))
    return not _BLOCK_ID.sub("", left).strip(" \t\n|:-")
