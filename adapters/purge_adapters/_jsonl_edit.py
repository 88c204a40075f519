"""Taking records out of one log file, or emptying them, and leaving every other byte.

What a handle says is never trusted: the bytes at its place must have its digest, or a record with
that digest is looked for in the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from purge.adapter import Action, NotRemoved, ProblemCode, Removal
from purge.errors import Permanent, StoreError, Transient
from purge_adapters._codecs import Codec, Encoder
from purge_adapters._files import Changed, Fingerprint, Held, holders, os_problem, replace_file
from purge_adapters._json_fields import Fields
from purge_adapters._json_text import Path as Steps
from purge_adapters._json_text import replace_scalars
from purge_adapters._jsonl_lines import LogFile
from purge_adapters._jsonl_record import (
    BOM,
    Entry,
    digest_of,
    encode,
    entries_of,
    is_content_name,
)
from purge_adapters._prefilter_site import sieve_of_ids

__all__ = ["Edit", "Part", "Plan", "carry_out", "edit_log", "leave", "parts_of", "wait_for_writers"]

_LOOKS: Final = 3
"""How often a file that changes underneath is read again."""
_PATIENCE_S: Final = 0.3
_PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Part:
    """One place of a record that has to go, as a handle says it."""

    removal: Removal
    offset: int
    length: int
    digest: str
    whole: bool
    strings: frozenset[Steps] = field(repr=False)
    keys: frozenset[Steps] = field(repr=False)


def parts_of(removals: Sequence[Removal]) -> dict[str, list[Part]]:
    """Return the places of the records, by file.

    Raises:
        Permanent: a handle is none of this adapter's.
    """
    found: dict[str, list[Part]] = {}
    for removal in removals:
        handle: Mapping[str, object] = removal.match.handle
        try:
            for part in _list(handle["parts"]):
                found.setdefault(str(part["file"]), []).append(
                    Part(
                        removal,
                        int(part["offset"]),
                        int(part["length"]),
                        str(part["digest"]),
                        bool(part["whole"]),
                        frozenset(tuple(path) for path in part["strings"]),
                        frozenset(tuple(path) for path in part["keys"]),
                    )
                )
        except (KeyError, TypeError, ValueError):
            raise Permanent(
                "A plan was made for another adapter or by another version; make it again.",
                problem=ProblemCode.UNSUPPORTED,
            ) from None
    return found


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


@dataclass(frozen=True, slots=True)
class Edit:
    """A stretch of the plain content and what is to stand in its place."""

    start: int
    end: int
    new: bytes = field(repr=False)


@dataclass(slots=True)
class Plan:
    """What is to be done to one file, as it was when it was read."""

    expected: Fingerprint
    edits: list[Edit] = field(default_factory=list)
    left: list[NotRemoved] = field(default_factory=list)
    cuts_open_line: bool = False


def edit_log(
    path: Path, where: str, parts: Sequence[Part], fields: Fields, action: Action
) -> Iterator[NotRemoved]:
    """Delete or blank the parts of records that stand in one file.

    Yields what was left alone. Nothing is written when there is nothing to change.

    Raises:
        Transient: the system is short of something; trying again may help.
    """
    try:
        for look in range(_LOOKS):
            wait_for_writers(path)
            plan = _plan(path, where, parts, fields, action)
            try:
                if plan.edits:
                    carry_out(path, plan)
            except Changed:
                if look < _LOOKS - 1:
                    continue
                raise
            yield from plan.left
            return
    except OSError as error:
        problem = os_problem(error, where)
        if isinstance(problem, Transient):
            raise problem from None
        yield from leave(parts, problem.problem, str(problem))
    except StoreError as error:
        yield from leave(parts, error.problem, f"{where}: {error}")


def wait_for_writers(path: Path) -> None:
    """Let a writer finish that opens the file for every line.

    Raises:
        Held: someone had it open for writing each time it was looked at.
    """
    end = time.monotonic() + _PATIENCE_S
    while any(holder.writes for holder in holders([path])):
        if time.monotonic() > end:
            raise Held
        time.sleep(_PAUSE_S)


def leave(parts: Sequence[Part], problem: str, sentence: str) -> Iterator[NotRemoved]:
    """Yield that all of some parts were left alone."""
    for part in parts:
        yield NotRemoved(part.removal.match, ProblemCode(problem), sentence)


@dataclass(frozen=True, slots=True)
class _Spot:
    """A record in the file: where its bytes begin, where they end, and whether a break follows."""

    entry: Entry = field(repr=False)
    start: int
    end: int
    ended: bool


def _plan(path: Path, where: str, parts: Sequence[Part], fields: Fields, action: Action) -> Plan:
    """Find the parts in the file as it is now.

    Raises:
        Permanent: the file cannot be rewritten.
        OSError: it cannot be read.
    """
    with LogFile(path) as log:
        plan = Plan(log.fingerprint)
        spots = _at_their_places(log, parts, fields)
        namesakes: dict[tuple[str, str], list[Entry]] = {}
        if spots is None:
            spots, namesakes = _everywhere(log, parts, fields)
        if log.wide:
            raise Permanent(
                "it is in UTF-16, which is only read; convert it to UTF-8",
                problem=ProblemCode.UNSUPPORTED,
            )
        if log.has_changed():
            raise Changed
        broken = any(not spot.entry.parsed for same in spots.values() for spot in same)
        one_document = broken and _is_one_document(log)
    for part in parts:
        same = spots[part.digest]
        if same:
            spot = next((spot for spot in same if spot.start == part.offset), same[0])
            same.remove(spot)
            if one_document or spot.entry.holds_several:
                what = "one JSON document over several lines" if one_document else "several records"
                plan.left.append(
                    NotRemoved(
                        part.removal.match,
                        ProblemCode.UNSUPPORTED,
                        f"{where}: what stands there is {what}, not one record in a line; taking "
                        "the line out would take or break others.",
                    )
                )
                continue
            _plan_part(plan, part, spot, where, action)
        elif _has_changed(namesakes.get(_name(part), ()), action):
            plan.left.append(
                NotRemoved(
                    part.removal.match,
                    ProblemCode.CHANGED_UNDERNEATH,
                    f"{where}: a record changed after it was found; look again.",
                )
            )
    plan.edits.sort(key=lambda edit: edit.start)
    return plan


def _is_one_document(log: LogFile) -> bool:
    """Whether the lines of a file make one JSON value together, and not one each."""
    try:
        json.loads(b"\n".join(line.data for line in log.lines()))
    except (ValueError, RecursionError):
        return False
    return True


def _at_their_places(
    log: LogFile, parts: Sequence[Part], fields: Fields
) -> dict[str, list[_Spot]] | None:
    """Return the parts if all of them stand where they were found, by digest."""
    if log.codec is not Codec.PLAIN:
        return None
    found: dict[str, list[_Spot]] = {}
    for part in parts:
        margin = min(part.offset, 1 + len(BOM))
        before = log.read_at(part.offset - margin, margin).removesuffix(BOM)
        data = log.read_at(part.offset, part.length + 1)
        content, after = data[: part.length], data[part.length :]
        if digest_of(content) != part.digest:
            return None
        if part.whole and (
            after not in (b"\n", b"") or (before and not before.endswith(b"\n")) or b"\n" in content
        ):
            return None
        entries = entries_of(content, fields)
        if len(entries) != 1:
            return None
        spot = _Spot(entries[0], part.offset, part.offset + part.length, after != b"")
        found.setdefault(part.digest, []).append(spot)
    return found


def _everywhere(
    log: LogFile, parts: Sequence[Part], fields: Fields
) -> tuple[dict[str, list[_Spot]], dict[tuple[str, str], list[Entry]]]:
    """Return the parts wherever they stand, by digest, and other records of the same ids."""
    spots: dict[str, list[_Spot]] = {part.digest: [] for part in parts}
    namesakes: dict[tuple[str, str], list[Entry]] = {_name(part): [] for part in parts}
    names = {part.removal.match.id for part in parts}
    # A record that has an id has it in its line; a name made from content stands in none.
    sieve = None if any(map(is_content_name, names)) else sieve_of_ids([log.path], names)
    for line in log.lines() if sieve is None else sieve.lines(log):
        for entry in entries_of(line.data, fields):
            start = line.offset + entry.start
            end = start + len(entry.data)
            if entry.digest in spots:
                ended = line.ended or end < line.offset + len(line.data)
                spots[entry.digest].append(_Spot(entry, start, end, ended))
            elif (entry.name, entry.part) in namesakes:
                namesakes[entry.name, entry.part].append(entry)
    return spots, namesakes


def _name(part: Part) -> tuple[str, str]:
    return part.removal.match.id, part.removal.match.part


def _has_changed(namesakes: Sequence[Entry], action: Action) -> bool:
    """Whether a record that is gone is there in another form, and not merely blanked by now."""
    return any(not (action is Action.BLANK and entry.is_blanked) for entry in namesakes)


def _plan_part(plan: Plan, part: Part, spot: _Spot, where: str, action: Action) -> None:
    if action is Action.BLANK:
        obstacle = _obstacle(part, spot.entry)
        if obstacle is not None:
            plan.left.append(
                NotRemoved(
                    part.removal.match, ProblemCode.UNSUPPORTED, f"{where}: a record {obstacle}"
                )
            )
            return
        new = _blanked(part, spot.entry)
        if new == spot.entry.data:
            return
        plan.edits.append(Edit(spot.start, spot.end, new))
    else:
        line_break = 1 if spot.ended and part.whole else 0
        plan.edits.append(Edit(spot.start, spot.end + line_break, b""))
    plan.cuts_open_line = plan.cuts_open_line or not spot.ended


def _obstacle(part: Part, entry: Entry) -> str | None:
    """Say why a record cannot be blanked, if so."""
    if not entry.parsed:
        return "is not valid JSON and cannot be blanked. Use 'action: delete'."
    if any(entry.is_link(path) for path in part.strings):
        return "has the words in its id or a link, which blanking keeps. Use 'action: delete'."
    if not part.strings and not part.keys and not any(True for _ in entry.text_strings()):
        return "has none of the site's 'text' fields, so nothing can be emptied."
    return None


def _blanked(part: Part, entry: Entry) -> bytes:
    """Return the bytes of a record with its texts emptied and all else as it was written."""
    strings = part.strings | {path for path, _ in entry.text_strings()}

    def choose(path: Steps, is_key: bool) -> str | None:
        return "" if path in (part.keys if is_key else strings) else None

    text = entry.text
    core = text.strip("\0")
    at = text.index(core)
    return encode(text[:at] + replace_scalars(core, choose) + text[at + len(core) :])


def carry_out(path: Path, plan: Plan) -> None:
    """Write the file anew.

    Raises:
        Changed, Held, OSError: as :func:`replace_file` does.
        Permanent: the file's compression is only read, or it is damaged.
    """
    seen: list[bytes] = []

    def write(stream: BinaryIO) -> None:
        with LogFile(path, plan.expected.size) as log:
            if not log.fingerprint.same_file(plan.expected):
                raise Changed
            _copy(log, stream, plan.edits)
            seen.append(log.seen())

    # Behind a line that was not yet ended when it was cut, its rest may come: no mere addition.
    digest = None if plan.cuts_open_line else seen.pop
    replace_file(path, plan.expected, write, seen=digest)


def _copy(log: LogFile, stream: BinaryIO, edits: Sequence[Edit]) -> None:
    encoder = Encoder(stream, log.codec)
    pending = list(reversed(edits))
    start = 0
    for member, block in log.members(note=True):
        end = start + len(block)
        at = start
        while pending and pending[-1].start < end:
            edit = pending[-1]
            if edit.start >= start:
                encoder.write(member, block[at - start : edit.start - start])
                encoder.write(member, edit.new)
            at = min(edit.end, end)
            if edit.end > end:
                break
            pending.pop()
        encoder.write(member, block[at - start :])
        start = end
    encoder.finish()
