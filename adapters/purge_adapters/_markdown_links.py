"""Links between notes: index lines that go with the note they list, and block ids that others name.

Three forms are known: ``[text](path)``, ``[[name]]`` and ``@path``. A link is only ever compared
with the names of the site's own files. Reads only.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

from purge.adapter import Match, NotChecked, ProblemCode
from purge.targets import Trace
from purge_adapters._markdown_fields import FieldReader
from purge_adapters._markdown_files import Files, Opened
from purge_adapters._markdown_kinds import Kind
from purge_adapters._markdown_records import Grain, Note
from purge_adapters._markdown_text import plain_ends
from purge_adapters._markdown_units import Unit, trace_of
from purge_adapters._match_places import places_of

__all__ = ["Index", "is_index", "is_linked", "linked_blocks", "links_in"]

_LINK: Final = re.compile(
    r"\[[^\[\]]*\]\(\s*(?:<(?P<angle>[^<>\n]+)>|(?P<plain>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*))"
    r"|\[\[(?P<wiki>[^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]"
    r"|(?:^|(?<=[\s(]))@(?P<import>[\w~.][\w./~+-]*\.\w+)",
    re.MULTILINE,
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLOCK: Final = re.compile(r"\[\[([^\[\]|#\n]*)#\^([A-Za-z0-9-]+)\s*(?:\|[^\[\]\n]*)?\]\]")
_SIGN: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)]|\|)?[ \t]*(?:\[[ xX]\][ \t]+)?[*_~]*")
"""What stands before the first words of a list item or table row."""
_LISTED: Final = (Kind.ITEM, Kind.ROW, Kind.PARAGRAPH)


@dataclass(frozen=True, slots=True)
class NoteLink:
    """Where a link leads. ``by_name``: to whichever note has that name, wherever it lies."""

    target: str
    by_name: bool

    def leads_to(self, source: str, place: str) -> bool:
        """Whether it leads from the file ``source`` to the file ``place``; both are paths."""
        if self.by_name:
            name, wanted = _plain(place), _plain(self.target)
            known = {name, posixpath.splitext(name)[0]}
            return any(one == wanted or one.endswith(f"/{wanted}") for one in known)
        folder = posixpath.dirname(source)
        return _plain(posixpath.normpath(posixpath.join(folder, self.target))) == _plain(place)


def links_in(text: str) -> Iterator[NoteLink]:
    """Yield the links of a text that lead to notes; addresses on the web are none."""
    for match in _LINK.finditer(text):
        wiki = match["wiki"]
        target = wiki or match["angle"] or match["plain"] or match["import"] or ""
        target = target.partition("#")[0].strip()
        if not target or _SCHEME.match(target):
            continue
        yield NoteLink(target if wiki else unquote(target), wiki is not None)


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def linked_blocks(files: Files) -> frozenset[tuple[str, str]]:
    """Return the block ids that some note names: the name of the note, and the id."""
    found: set[tuple[str, str]] = set()
    for item in files.read():
        if isinstance(item, NotChecked):
            continue
        for name, block in _BLOCK.findall("".join(item.note.lines.lines)):
            found.add((_stem(name or item.place), block))
    return frozenset(found)


def is_linked(place: str, block: str | None, linked: Collection[tuple[str, str]]) -> bool:
    """Whether a block of a file is named by some note."""
    return block is not None and (_stem(place), block) in linked


def _stem(name: str) -> str:
    last = posixpath.basename(_plain(name.strip()))
    return last.removesuffix(".md")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of an index that links to notes."""

    item: Opened
    unit: Unit
    links: tuple[NoteLink, ...]
    lists: bool
    """It is an entry of a list: it begins with its link, or is nothing but that."""


@dataclass(slots=True)
class Index:
    """The lines of the files that list other notes.

    Feed it every note with :meth:`take`; then :meth:`joined`.

    Args:
        patterns: which files these are.
        reader: of the fields that the manifest maps.
    """

    patterns: Sequence[str]
    reader: FieldReader
    _lines: list[_Line] = field(default_factory=list)
    _places: list[str] = field(default_factory=list)

    def take(self, item: Opened, units: Iterable[Unit]) -> None:
        """Take one note, with its records."""
        self._places.append(item.place)
        if not any(PurePosixPath(item.place).match(pattern) for pattern in self.patterns):
            return
        for unit in units:
            if unit.part.grain is Grain.BLOCK and unit.part.kind in _LISTED:
                said = _said(item.note, unit)
                if links := tuple(links_in(said)):
                    self._lines.append(_Line(item, unit, links, _lists(unit.part.kind, said)))

    def joined(self, matches: Collection[Match]) -> Iterator[Match | NotChecked]:
        """Yield the matches again; one of a whole file with the lines that link to it."""
        taken = {
            _place(place)
            for match in matches
            if not all(hit.scope_unknown for hit in match.hits)
            for place in places_of(match)
        }
        for match in matches:
            files = [str(place["file"]) for place in places_of(match) if _is_file(place)]
            lines = [
                line
                for line in self._lines
                if any(_leads(line, file) for file in files) and _place(_handle(line)) not in taken
            ]
            own = [line for line in lines if line.lists and _leads_only(line, files)]
            yield _with(match, own, self.reader) if own else match
            for line in lines:
                if line not in own:
                    yield NotChecked(
                        f"{line.item.shown}, line {line.unit.line}",
                        "it links to a note that goes and says more than that: it stays, edit it "
                        "by hand",
                        ProblemCode.UNSUPPORTED,
                    )

    def dead(self) -> Iterator[tuple[str, int]]:
        """Yield the lines that link to a note that is not there: the file for people, the line."""
        for line in self._lines:
            source = line.item.place
            for link in line.links:
                if not any(link.leads_to(source, place) for place in self._places) and not (
                    not link.by_name and (line.item.path.parent / link.target).exists()
                ):
                    yield line.item.shown, line.unit.line
                    break


def is_index(place: Mapping[str, object]) -> bool:
    """Whether a place of a match is a line of an index."""
    return place.get("index") is True


def _said(note: Note, unit: Unit) -> str:
    return plain_ends("".join("".join(note.lines.lines[a:b]) for a, b in unit.spans))


def _lists(kind: Kind, said: str) -> bool:
    plain = _SIGN.sub("", said.strip(), count=1)
    link = _LINK.match(plain)
    if link is None:
        return False
    return kind is not Kind.PARAGRAPH or not plain[link.end() :].strip(" )")


def _handle(line: _Line) -> dict[str, object]:
    unit = line.unit
    return {
        "file": line.item.place,
        "grain": unit.part.grain.value,
        "digest": unit.digest,
        "ordinal": unit.ordinal,
        "records": unit.siblings,
    }


def _place(handle: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(handle[name] for name in ("file", "grain", "digest", "ordinal"))


def _is_file(place: object) -> bool:
    return isinstance(place, dict) and place.get("grain") == Grain.FILE.value


def _leads(line: _Line, file: str) -> bool:
    return any(link.leads_to(line.item.place, file) for link in line.links)


def _leads_only(line: _Line, files: Sequence[str]) -> bool:
    """Whether every link of a line leads to one of some files."""
    source = line.item.place
    return all(any(link.leads_to(source, file) for file in files) for link in line.links)


def _with(match: Match, lines: Sequence[_Line], reader: FieldReader) -> Match:
    """Return a match to which index lines belong as well."""
    places: list[object] = list(places_of(match))
    texts = list(match.trace.texts)
    for line in lines:
        places.append({**_handle(line), "index": True})
        texts += trace_of(line.item.note, line.unit, reader).texts
    return replace(
        match,
        handle={"places": places},
        trace=Trace(match.id, tuple(dict.fromkeys(texts)), match.trace.metadata),
        pieces=match.pieces + len(lines),
    )
