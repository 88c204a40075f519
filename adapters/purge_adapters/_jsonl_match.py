"""Comparing the records of logs with what is looked for, and gathering what belongs together.

A record is what its id names in its scope: several lines with one id and one scope (a log that was
resumed in another file, versions of an entry) are one record and go together. Only reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from purge.adapter import (
    Action,
    Examined,
    Finding,
    Match,
    NotChecked,
    ProblemCode,
    Readability,
    Site,
)
from purge.errors import StoreError
from purge.matching import How
from purge.targets import Hit, Record, Targets, Text, Trace
from purge_adapters._codecs import Codec
from purge_adapters._files import os_problem, place, relative
from purge_adapters._json_fields import Fields, shown
from purge_adapters._json_text import Path as Steps
from purge_adapters._jsonl_lines import Line, LogFile
from purge_adapters._jsonl_record import LINE, Entry, entries_of
from purge_adapters._prefilter_read import Sieve
from purge_adapters._prefilter_site import sieve_for, sieve_of_ids

__all__ = ["Look", "Matcher", "damaged", "is_certain", "read_log", "search"]

_NOBODY: Final = "\0no record has this name\0"
_SHORT: Final = 96
"""Strings up to this length are remembered once they are known to hold nothing."""
_REMEMBERED: Final = 100_000
_NUMERIC: Final = re.compile(r"[-+.0-9eE]+")


def is_certain(hits: Sequence[Hit]) -> bool:
    """Whether some hit names the record without a doubt about its scope."""
    return any(not hit.scope_unknown for hit in hits)


class Matcher:
    """Compares records with targets.

    Args:
        site: the name of the site.
        targets: what is looked for.
    """

    def __init__(self, site: str, targets: Targets) -> None:
        self.site = site
        self.targets = targets
        self._numbers = any(_NUMERIC.fullmatch(phrase.strip()) for phrase in targets.phrases())
        self._dull: set[str] = set()

    def hits(self, entry: Entry) -> tuple[Hit, ...]:
        """Return every way in which a record is named."""
        texts = [text for _, _, text in self._texts(entry)] if self.targets.needs_texts else []
        if self.targets.needs_texts:
            texts += [Text(shown(run.paths[0]), run.text) for run in entry.in_pieces()]
        hits = self.targets.match(self.site, entry.record(texts))
        for other in entry.ids[:-1]:
            # An id key that is repeated: which one counts depends on who reads the line.
            hits += self.targets.match(self.site, Record(other, (), scope=entry.scope))
        return tuple(dict.fromkeys(hits))

    def matched(self, entry: Entry) -> list[tuple[Steps, bool]]:
        """Return the paths of the strings that hold a phrase; the last is true for a key."""
        if not self.targets.needs_texts:
            return []
        found = [
            (path, is_key)
            for path, is_key, text in self._texts(entry)
            if path is not None and is_certain(self._search(text, entry.scope))
        ]
        for run in entry.in_pieces():
            found += [
                (path, False)
                for path in run.holding(
                    lambda said: is_certain(self._search(Text("", said), entry.scope))
                )
            ]
        return list(dict.fromkeys(found))

    def holds(self, text: str) -> bool:
        """Whether a text that belongs to no record holds a phrase."""
        return bool(self._search(Text(LINE, text), {}))

    def _texts(self, entry: Entry) -> Iterator[tuple[Steps | None, bool, Text]]:
        for path, value, is_key in entry.strings(numbers=self._numbers):
            if len(value) > _SHORT or not self._is_dull(value):
                yield path, is_key, Text(shown(path, is_key=is_key), value)
        for value in entry.lines():
            yield None, False, Text(LINE, value)

    def _is_dull(self, value: str) -> bool:
        if value in self._dull:
            return True
        if self._search(Text("", value), {}):
            return False
        if len(self._dull) >= _REMEMBERED:
            self._dull.clear()
        self._dull.add(value)
        return True

    def _search(self, text: Text, scope: Mapping[str, str]) -> tuple[Hit, ...]:
        return self.targets.match(self.site, Record(_NOBODY, (text,), scope=scope))


@dataclass(slots=True)
class Look:
    """What reading one file met besides its records."""

    path: Path
    where: str
    """The file, for people."""
    key: str
    """The file, for a handle."""
    records: int = 0
    size: int = 0
    codec: Codec = Codec.PLAIN
    wide: bool = False
    gaps: list[NotChecked] = field(default_factory=list)

    @classmethod
    def at(cls, path: Path, site: Site) -> Look:
        """Begin with a file."""
        return cls(path, relative(path, site), place(path, site))

    def miss(self, why: str, problem: str) -> None:
        """Note that the file could not be looked at, or only in part."""
        self.gaps.append(NotChecked(self.where, why, ProblemCode(problem)))


def read_log(
    look: Look,
    fields: Fields,
    wanted: Callable[[bytes], bool] | None = None,
    sieve: Sieve | None = None,
) -> Iterator[tuple[Line, Entry]]:
    """Yield the records of a file with the lines that they stand in.

    What could not be read is noted in ``look`` and never raised.

    Args:
        look: at the file.
        fields: what the fields of its records mean.
        wanted: which lines to take apart; without it, all.
        sieve: gives the lines that are worth taking apart, all others are then not counted.
    """
    try:
        with LogFile(look.path) as log:
            look.size, look.codec = log.fingerprint.size, log.codec
            lines = log.lines() if sieve is None else sieve.lines(log)
            look.wide = log.wide
            for line in lines:
                if wanted is not None and not wanted(line.data):
                    continue
                for entry in entries_of(line.data, fields, look.key):
                    look.records += sieve is None
                    yield line, entry
            look.wide = log.wide
            if log.has_changed():
                look.miss("it changed while it was read", ProblemCode.CHANGED_UNDERNEATH)
    except FileNotFoundError:
        look.miss("it went away while it was looked at", ProblemCode.CHANGED_UNDERNEATH)
    except OSError as error:
        problem = os_problem(error)
        look.miss(str(problem), problem.problem)
    except StoreError as error:
        look.miss(str(error), error.problem)


@dataclass(frozen=True, slots=True)
class _Part:
    """One place where a record stands: what a handle says of it, and what else was seen."""

    handle: dict[str, object]
    where: str
    blanked: bool
    marker: bool
    entry_trace: Trace = field(repr=False)


@dataclass(slots=True)
class _Group:
    """All that is known of one record."""

    name: str
    part: str
    has_id: bool
    parts: dict[tuple[str, int], _Part] = field(default_factory=dict)
    hits: dict[Hit, None] = field(default_factory=dict)
    parents: dict[str, dict[str, None]] = field(default_factory=dict)
    created: datetime | None = None
    subjects: dict[str, None] = field(default_factory=dict)
    scope: Mapping[str, str] = field(default_factory=dict)


def search(
    site: Site, files: Sequence[Path], fields: Fields, targets: Targets
) -> Iterator[Finding]:
    """Yield what ``find`` of the adapter yields for some files."""
    yield from _Search(site, files, fields, targets).run()


class _Search:
    """One look for targets in all files of a site."""

    def __init__(self, site: Site, files: Sequence[Path], fields: Fields, targets: Targets) -> None:
        self.site = site
        self.files = files
        self.fields = fields
        self.targets = targets
        self.matcher = Matcher(site.name, targets)
        self.sieve = sieve_for(site, files, fields, targets)
        self.groups: dict[tuple[str, str], _Group] = {}
        self.gaps: dict[NotChecked, None] = {}

    def run(self) -> Iterator[Finding]:
        for path in self.sieve.in_turn(self.files) if self.sieve else self.files:
            look = Look.at(path, self.site)
            unlinked = 0
            for line, entry in read_log(look, self.fields, sieve=self.sieve):
                hits = self.matcher.hits(entry)
                if hits:
                    self._take(look, line, entry, hits)
                if entry.is_damaged:
                    look.gaps.append(damaged(look, line))
                if self.site.derived_from and not entry.parents:
                    unlinked += 1
            self.gaps.update(dict.fromkeys(look.gaps))
            yield Examined(1, look.size, look.records, unlinked)
        self._complete()
        yield from self.gaps
        for group in self.groups.values():
            yield self._match(group)
        yield Examined()

    def _take(self, look: Look, line: Line, entry: Entry, hits: tuple[Hit, ...]) -> None:
        key = (entry.name, entry.part)
        group = self.groups.setdefault(key, _Group(*key, has_id=bool(entry.ids)))
        group.hits.update(dict.fromkeys(hits))
        self._add(group, look, line, entry)

    def _add(self, group: _Group, look: Look, line: Line, entry: Entry) -> None:
        matched = self.matcher.matched(entry)
        at = line.offset + entry.start
        group.parts[look.key, at] = _Part(
            handle={
                "file": look.key,
                "offset": at,
                "length": len(entry.data),
                "digest": entry.digest,
                "whole": entry.whole,
                "strings": [list(path) for path, is_key in matched if not is_key],
                "keys": [list(path) for path, is_key in matched if is_key],
            },
            where=f"{look.where}, {line.place}",
            # Empty text fields say nothing of a record that still says it elsewhere.
            blanked=self.site.action is Action.BLANK
            and entry.parsed
            and entry.is_blanked
            and not matched,
            marker=entry.carries_marker,
            entry_trace=entry.trace(path for path, is_key in matched if not is_key),
        )
        for source, ids in entry.parents.items():
            group.parents.setdefault(source, {}).update(dict.fromkeys(ids))
        group.created = group.created or entry.created
        group.subjects.update(dict.fromkeys(entry.subjects))
        group.scope = entry.scope  # The same in all of them: it is a part of what a record is.

    def _complete(self) -> None:
        """Look for further lines of the records found, which no target named by themselves."""
        open_ended = {
            key: group
            for key, group in self.groups.items()
            if group.has_id and is_certain(tuple(group.hits)) and not self._is_complete(group)
        }
        if not open_ended:
            return
        sieve = sieve_of_ids(self.files, {name for name, _ in open_ended})
        for path in self.files:
            look = Look.at(path, self.site)
            for line, entry in read_log(look, self.fields, sieve=sieve):
                group = open_ended.get((entry.name, entry.part))
                if group is not None and (look.key, line.offset + entry.start) not in group.parts:
                    self._add(group, look, line, entry)
            self.gaps.update(dict.fromkeys(look.gaps))

    def _is_complete(self, group: _Group) -> bool:
        """Whether every line of the record was hit: a target names it by its id."""
        return any(
            hit.how is How.ID and hit.field == "$id" and not hit.scope_unknown for hit in group.hits
        )

    def _match(self, group: _Group) -> Match:
        parts = list(group.parts.values())
        texts = dict.fromkeys(text for part in parts for text in part.entry_trace.texts)
        metadata = dict.fromkeys(text for part in parts for text in part.entry_trace.metadata)
        more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
        return Match(
            id=group.name,
            hits=tuple(group.hits),
            where=parts[0].where + more,
            handle={"parts": [part.handle for part in parts]},
            trace=Trace(
                group.name, tuple(texts), tuple(text for text in metadata if text not in texts)
            ),
            parents={source: tuple(ids) for source, ids in group.parents.items()},
            readability=(
                Readability.BLANKED if all(part.blanked for part in parts) else Readability.READABLE
            ),
            carries_marker=any(part.marker for part in parts),
            created=group.created,
            part=group.part,
            pieces=len(parts),
            subjects=tuple(group.subjects),
            scope=group.scope,
        )


def damaged(look: Look, line: Line) -> NotChecked:
    """Say that nobody can tell what a line held."""
    return NotChecked(
        f"{look.where}, {line.place}",
        "the line is damaged: neither JSON nor text",
        ProblemCode.CORRUPT,
    )
