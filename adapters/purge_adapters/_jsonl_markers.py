"""Marker lines in the texts of logs: reading them, and striking one out of its JSON string.

A marker counts only in a string of a line that is one whole record, so that it is certain whose
words these are. Striking edits that string where it stands and leaves every other byte of the
file; what a handle says is never trusted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from purge.adapter import Examined, Marker, NotAMarker, NotChecked, ProblemCode, Site
from purge.errors import Permanent, StoreError, Transient
from purge.matching import MarkerLine, carries_marker, read_markers, strike
from purge.matching.enclosures import body, split_lines
from purge_adapters._files import Changed, os_problem
from purge_adapters._json_fields import Fields, scalars, values_at
from purge_adapters._json_text import Path as Steps
from purge_adapters._json_text import leaves, spans
from purge_adapters._jsonl_edit import Edit, Plan, carry_out, wait_for_writers
from purge_adapters._jsonl_lines import Line, LogFile
from purge_adapters._jsonl_match import Look, damaged, read_log
from purge_adapters._jsonl_record import Entry, encode, entries_of

__all__ = ["Strike", "markers_in", "strike_in", "strikes_of"]

_HINT: Final = re.compile(rb"retract|\\u(?:00|ff)|\xef\xbc|\0", re.IGNORECASE)
"""A line without any of these holds no marker and nothing like one, however it is written."""
_LETTER: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.",
    re.DOTALL,
)
"""One character of a JSON string as it is written."""
_LOOKS: Final = 3


def markers_in(
    site: Site, files: Sequence[Path], fields: Fields, where: Mapping[str, str]
) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
    """Yield what ``markers`` of the adapter yields for some files."""
    paths: dict[Steps, str] = {tuple(name.split(".")): wanted for name, wanted in where.items()}
    for path in files:
        look = Look.at(path, site)
        for line, entry in read_log(look, fields, lambda data: _HINT.search(data) is not None):
            at = f"{look.where}, line {line.number}"
            if entry.is_damaged:
                look.gaps.append(damaged(look, line))
            elsewhere = _why_not_here(entry, paths)
            for steps, text, found in _lines_of(entry):
                why = found.why or elsewhere or ("" if steps else _NOT_JSON)
                if why:
                    yield NotAMarker(at, why)
                else:
                    yield _marker(path, look, line, entry, steps, text, found)
        yield from dict.fromkeys(look.gaps)
        yield Examined(
            1, look.size, look.records, note="only lines that may hold a marker were taken apart"
        )


_NOTE: Final = "only lines that may hold a marker were taken apart"
_NOT_JSON: Final = "its line is not valid JSON, so that it is not known whose words these are"
_SEVERAL: Final = "its line holds several records"


def _why_not_here(entry: Entry, where: Mapping[Steps, str]) -> str:
    """Say why no marker of a record is obeyed; nothing when they are."""
    if not entry.parsed:
        return _NOT_JSON
    if entry.holds_several:
        return _SEVERAL
    for path, wanted in where.items():
        if set(_values(entry, path)) != {wanted}:
            return f"its record does not have the value of '{'.'.join(map(str, path))}' that counts"
    return ""


def _values(entry: Entry, path: Steps) -> Iterator[str]:
    if path == ("$id",):
        yield entry.name
    elif path == ("$key",):
        yield entry.key
    else:
        for _, value in values_at(entry.value, path):
            # What is no single word is said too: a record that says two things says neither.
            said = list(scalars(value))
            yield from said or [json.dumps(value)]


def _lines_of(entry: Entry) -> Iterator[tuple[Steps, str, MarkerLine]]:
    """Yield the marker lines of a record and what is like them, with the string they stand in.

    The path is empty for the text of a line that is no JSON.
    """
    times = Counter(path for path, _, is_key in entry.strings() if not is_key)
    for path, text, is_key in entry.strings():
        found = list(read_markers(text))
        for line in found:
            if is_key:
                line = MarkerLine(line.number, why=line.why or "it stands in the name of a field")
            elif times[path] > 1:
                line = MarkerLine(line.number, why=line.why or "its field stands twice in a record")
            yield path, text, line
        if not any(line.counts for line in found) and carries_marker(text):
            yield path, text, MarkerLine(1, why="it stands in a text within the text")
    if not entry.parsed:
        for text in entry.lines():
            for line in read_markers(text):
                yield (), text, line
            if carries_marker(text):
                yield (), text, MarkerLine(1, why=_NOT_JSON)
            break


def _marker(
    path: Path, look: Look, line: Line, entry: Entry, steps: Steps, text: str, found: MarkerLine
) -> Marker:
    return Marker(
        record=entry.name,
        phrase=found.phrase,
        where=f"{look.where}, line {line.number}",
        scope=entry.scope,
        created=entry.created or _changed_at(path),
        part=entry.part,
        handle={
            "file": look.key,
            "offset": line.offset + entry.start,
            "digest": entry.digest,
            "path": list(steps),
            "line": found.number,
        },
    )


def _changed_at(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


# --- striking ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Strike:
    """One marker that is to be struck, as its handle says it."""

    marker: Marker
    replacement: str
    offset: int
    digest: str
    path: Steps = field(repr=False)
    line: int


def strikes_of(markers: Sequence[tuple[Marker, str]]) -> dict[str, list[Strike]]:
    """Return what is to be struck, by file.

    Raises:
        Permanent: a handle is none of this adapter's.
    """
    found: dict[str, list[Strike]] = {}
    for marker, replacement in markers:
        handle = marker.handle
        try:
            offset, steps, line = handle["offset"], handle["path"], handle["line"]
            if not (isinstance(offset, int) and isinstance(line, int) and isinstance(steps, list)):
                raise TypeError
            one = Strike(marker, replacement, offset, str(handle["digest"]), tuple(steps), line)
            found.setdefault(str(handle["file"]), []).append(one)
        except (KeyError, TypeError):
            raise Permanent(
                "A marker was read by another adapter or version; read it again.",
                problem=ProblemCode.UNSUPPORTED,
            ) from None
    return found


def strike_in(
    path: Path, where: str, strikes: Sequence[Strike], fields: Fields
) -> Iterator[NotChecked]:
    """Strike markers of one file.

    Raises:
        Transient: the system is short of something; trying again may help.
    """
    try:
        for look in range(_LOOKS):
            wait_for_writers(path)
            plan, left = _plan(path, strikes, fields)
            try:
                if plan.edits:
                    carry_out(path, plan)
            except Changed:
                if look < _LOOKS - 1:
                    continue
                raise
            yield from left
            return
    except OSError as error:
        problem = os_problem(error, where)
        if isinstance(problem, Transient):
            raise problem from None
        yield from _leave(strikes, str(problem), problem.problem)
    except StoreError as error:
        yield from _leave(strikes, f"it was not struck: {error}", error.problem)


def _leave(strikes: Iterable[Strike], why: str, problem: str) -> Iterator[NotChecked]:
    for one in strikes:
        yield NotChecked(one.marker.where, why, ProblemCode(problem))


_NOT_UTF8: Final = "its record holds bytes that are no UTF-8, so that it was not struck"
_CHANGED: Final = "its record changed since it was read, so that it was not struck"


def _plan(
    path: Path, strikes: Sequence[Strike], fields: Fields
) -> tuple[Plan, tuple[NotChecked, ...]]:
    """Find the markers in the file as it is now.

    Raises:
        Permanent: the file cannot be rewritten.
        OSError: it cannot be read.
    """
    wanted: dict[str, list[int]] = {}
    for one in strikes:
        places = wanted.setdefault(one.digest, [])
        if one.offset not in places:
            places.append(one.offset)
    there: dict[str, dict[int, tuple[Entry, bool]]] = {digest: {} for digest in wanted}
    with LogFile(path) as log:
        plan = Plan(log.fingerprint)
        for line in log.lines():
            for entry in entries_of(line.data, fields) if _HINT.search(line.data) else ():
                if entry.digest in there:
                    start = line.offset + entry.start
                    there[entry.digest][start] = (entry, line.ended)
        if log.wide:
            raise Permanent("it is in UTF-16, which is only read", problem=ProblemCode.UNSUPPORTED)
        if log.has_changed():
            raise Changed
    left: list[NotChecked] = []
    for digest, places in wanted.items():
        found = there[digest]
        moved = iter(sorted(found.keys() - set(places)))
        for place in places:
            mine = [one for one in strikes if (one.digest, one.offset) == (digest, place)]
            at = place if place in found else next(moved, None)
            if at is None:
                left += _leave(mine, _CHANGED, ProblemCode.CHANGED_UNDERNEATH)
                continue
            entry, ended = found[at]
            new = _struck(entry, mine)
            if entry.mended:
                left += _leave(mine, _NOT_UTF8, ProblemCode.UNSUPPORTED)
            elif new is None:
                left += _leave(mine, _CHANGED, ProblemCode.CHANGED_UNDERNEATH)
            else:
                plan.edits.append(Edit(at, at + len(entry.data), new))
                plan.cuts_open_line = plan.cuts_open_line or not ended
    plan.edits.sort(key=lambda edit: edit.start)
    return plan, tuple(left)


def _struck(entry: Entry, strikes: Sequence[Strike]) -> bytes | None:
    """Return the bytes of a record with lines struck; ``None`` when they are no markers there."""
    if not entry.parsed or entry.mended:
        return None
    by_path: dict[Steps, dict[int, str]] = {}
    for one in strikes:
        text = _string_at(entry, one.path)
        lines = () if text is None else read_markers(text)
        if not any(it.number == one.line and it.phrase == one.marker.phrase for it in lines):
            return None
        by_path.setdefault(one.path, {})[one.line] = one.replacement
    core = entry.text.strip("\0")
    at = entry.text.index(core)
    pieces: list[str] = []
    done = 0
    for span in spans(core):
        if not span.is_key and span.path in by_path:
            written = _edited(core[span.start : span.end], by_path[span.path])
            pieces += [core[done : span.start], written]
            done = span.end
    return encode("".join((entry.text[:at], *pieces, core[done:], entry.text[at + len(core) :])))


def _string_at(entry: Entry, steps: Steps) -> str | None:
    """Return the string at a path, where exactly one stands."""
    found = [value for path, value, is_key in leaves(entry.value) if path == steps and not is_key]
    return found[0] if len(found) == 1 and isinstance(found[0], str) else None


def _edited(written: str, replacements: Mapping[int, str]) -> str:
    """Return a JSON string with lines of its text struck, all else as it is written."""
    text = json.loads(written, strict=False)
    letters = _LETTER.findall(written[1:-1])
    assert len(letters) == len(text)
    at = 0
    pieces: list[str] = []
    for number, line in enumerate(split_lines(text), 1):
        kept = letters[at : at + len(line)]
        if number in replacements:
            new = strike(line, {1: replacements[number]})
            said = body(new)
            kept = [json.dumps(said)[1:-1], *kept[len(body(line)) :]]
        pieces += kept
        at += len(line)
    made = f'"{"".join(pieces)}"'
    assert json.loads(made, strict=False) == strike(text, replacements)
    return made
