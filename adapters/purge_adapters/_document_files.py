"""Files of JSON as the values that stand in them, and what else they say. Only reads.

A file is a JSON value, a JSON value a line, or has one behind declared words. What cannot be
parsed is given as text, so that it is searched all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from purge.adapter import NotChecked, ProblemCode, Site
from purge.errors import StoreError
from purge.matching import Flavor
from purge.targets import Text
from purge_adapters._codecs import Codec
from purge_adapters._files import Fingerprint, os_problem, place, relative
from purge_adapters._format_model import FileKind, Layout
from purge_adapters._json_fields import Fields
from purge_adapters._json_text import parse
from purge_adapters._jsonl_lines import LogFile, lines_of, narrowed, wide_encoding
from purge_adapters._jsonl_record import BOM, Entry, encode, entries_of

__all__ = ["NO_FIELDS", "DocumentFile", "Unit", "loose_texts", "read_file", "units_of"]

NO_FIELDS = Fields()
_MARKUP = (".html", ".htm", ".xml", ".svg")


@dataclass(frozen=True, slots=True)
class Unit:
    """One JSON value as it stands in a file.

    Args:
        entry: its bytes and what they say.
        offset: where they begin in the plain content.
        number: which one of the file it is, from 0.
        line: its line from 1, or 0.
        around: where its line begins in the plain content, and where the next one does.
        siblings: how many values its line has.
        ended: its line has a line break.
        lone: there is nothing else in the file.
    """

    entry: Entry = field(repr=False)
    offset: int
    number: int
    line: int = 0
    around: tuple[int, int] = (0, 0)
    siblings: int = 1
    ended: bool = True
    lone: bool = False

    @property
    def place(self) -> str:
        """Where it stands in its file, for people."""
        return f", line {self.line}" if self.line else ""


@dataclass(slots=True)
class DocumentFile:
    """One file of a site, and what reading it met.

    Args:
        path: where it is.
        kind: what the format says of it.
        where: its name for people.
        key: its name for a handle.
    """

    path: Path
    kind: FileKind
    where: str
    key: str
    size: int = 0
    records: int = 0
    wide: bool = False
    codec: Codec = Codec.PLAIN
    fingerprint: Fingerprint | None = None
    changed: bool = False
    limit: int | None = None
    """How many of its bytes are read; all, if nothing is said."""
    gaps: list[NotChecked] = field(default_factory=list)
    loose: list[Text] = field(default_factory=list, repr=False)
    """Texts of the file that stand in no JSON value."""

    @classmethod
    def at(cls, path: Path, kind: FileKind, site: Site) -> DocumentFile:
        """Begin with a file."""
        return cls(path, kind, relative(path, site), place(path, site))

    def miss(self, why: str, problem: str) -> None:
        """Note that it could not be looked at, or only in part."""
        self.gaps.append(NotChecked(self.where, why, ProblemCode(problem)))


def read_file(file: DocumentFile) -> Iterator[Unit]:
    """Yield the values of a file. What could not be read is noted in ``file``, never raised."""
    try:
        with LogFile(file.path, file.limit) as log:
            file.size, file.codec, file.fingerprint = (
                log.fingerprint.size,
                log.codec,
                log.fingerprint,
            )
            yield from _units(log, file)
            if log.has_changed():
                file.changed = True
                file.miss("it changed while it was read", ProblemCode.CHANGED_UNDERNEATH)
    except FileNotFoundError:
        file.changed = True
        file.miss("it went away while it was looked at", ProblemCode.CHANGED_UNDERNEATH)
    except OSError as error:
        problem = os_problem(error)
        file.miss(str(problem), problem.problem)
    except StoreError as error:
        file.miss(str(error), error.problem)


def _units(log: LogFile, file: DocumentFile) -> Iterator[Unit]:
    if file.kind.layout is Layout.LINES:
        yield from _of_lines(log, file)
        return
    content = b"".join(block for _, block in log.members())
    encoding = wide_encoding(content[:8])
    if encoding is not None:
        file.wide = True
        content = b"".join(narrowed([content], encoding))
    yield from units_of(content, file)


def _of_lines(log: LogFile, file: DocumentFile) -> Iterator[Unit]:
    number = 0
    for line in log.lines():
        entries = entries_of(line.data, NO_FIELDS, file.key)
        for entry in entries:
            if entry.is_damaged:
                file.gaps.append(
                    NotChecked(
                        f"{file.where}, line {line.number}",
                        "the line is damaged: neither JSON nor text",
                        ProblemCode.CORRUPT,
                    )
                )
            around = line.offset, line.offset + len(line.data) + line.ended
            at = line.offset + entry.start
            yield Unit(entry, at, number, line.number, around, len(entries), line.ended)
            number += 1
    file.wide = log.wide


def units_of(content: bytes, file: DocumentFile) -> list[Unit]:
    """Return the values of the plain content of a file that is not read by lines."""
    if file.kind.layout is Layout.EMBEDDED:
        return _embedded(content, file)
    if not content.strip(b" \t\r\n\0" + BOM):
        return []
    entries = entries_of(content, NO_FIELDS, file.key)
    units = [
        Unit(entry, entry.start, at, lone=len(entries) == 1) for at, entry in enumerate(entries)
    ]
    for unit in units:
        if not unit.entry.parsed:
            file.loose += [Text("$file", text) for text in _as_texts(unit.entry)]
            file.miss(
                "it is no whole JSON document, so it was searched as text and is not edited",
                ProblemCode.CORRUPT,
            )
    return [unit for unit in units if unit.entry.parsed]


def _embedded(content: bytes, file: DocumentFile) -> list[Unit]:
    """Return the values behind the declared words; everything else is loose text."""
    text = content.decode("utf-8", "surrogateescape")
    found: list[Unit] = []
    done = 0
    while (at := text.find(file.kind.begins, done)) >= 0:
        start = at + len(file.kind.begins)
        parts = parse(text[start:])
        if not parts or not isinstance(parts[0][2], dict | list):
            file.miss(
                "what stands behind the words that begin its JSON is none; it was searched as "
                "text and is not edited",
                ProblemCode.CORRUPT,
            )
            break
        first, end, _ = parts[0]
        file.loose.append(_loose(text[done : start + first], file))
        data = encode(text[start + first : start + end])
        offset = len(encode(text[: start + first]))
        entry = entries_of(data, NO_FIELDS, file.key)[0]
        found.append(Unit(entry, offset, len(found)))
        done = start + end
    file.loose.append(_loose(text[done:], file))
    return found


def _loose(text: str, file: DocumentFile) -> Text:
    markup = file.path.suffix.lower() in _MARKUP
    return Text("$file", text, Flavor.HTML if markup else Flavor.PLAIN)


def _as_texts(entry: Entry) -> Iterator[str]:
    yield from (text for _, text, _ in entry.strings())
    yield from entry.lines()


def loose_texts(content: bytes) -> Sequence[Text]:
    """Return what a file of no declared kind says, line by line, as JSON where it is JSON."""
    found: list[Text] = []
    for line in lines_of(iter((content,))):
        for entry in entries_of(line.data, NO_FIELDS):
            found += [Text("$file", text) for text in _as_texts(entry)]
    return found
