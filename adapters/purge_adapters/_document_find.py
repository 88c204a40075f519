"""Finding what is looked for in files of declared formats, with what goes along with it.

A record is what its id names: several places with one id are one record. What hangs on a record
by a declared link is counted with it, so that a dry run shows what a run removes. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from purge.adapter import (
    Action,
    Examined,
    Finding,
    Match,
    NotChecked,
    ProblemCode,
    Readability,
)
from purge.errors import StoreError
from purge.targets import Hit, Targets, Trace
from purge_adapters._bytes import open_quietly
from purge_adapters._codecs import reader
from purge_adapters._document_files import DocumentFile, loose_texts
from purge_adapters._document_items import digest_value
from purge_adapters._document_links import Ref, Web
from purge_adapters._document_match import Finder, Grouping, Key, Taken, is_certain
from purge_adapters._document_related import Gathering
from purge_adapters._document_source import Source, items_of
from purge_adapters._files import os_problem, relative
from purge_adapters._format_routes import shown_route

__all__ = ["UNCOVERED", "look_at_others", "search"]

UNCOVERED: Final = (
    "what is looked for stands outside of all records that the format declares, so it is left; "
    "declare it in the site's 'format'"
)


@dataclass(slots=True)
class _Group:
    """All that is known of one thing that would be taken."""

    number: int
    name: str
    what: str
    key: Key
    places: dict[Ref, dict[str, object]] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    hits: dict[Hit, None] = field(default_factory=dict)
    parents: dict[str, dict[str, None]] = field(default_factory=dict)
    subjects: dict[str, None] = field(default_factory=dict)
    scope: dict[str, str] = field(default_factory=dict)
    created: datetime | None = None
    marker: bool = False
    blanked: list[bool] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    refs: set[Ref] = field(default_factory=set)
    paths: list[tuple[Ref, tuple[str | int, ...]]] = field(default_factory=list)


def search(source: Source, targets: Targets) -> Iterator[Finding]:
    """Yield what ``find`` of the adapter yields."""
    yield from _Search(source, targets).run()


class _Search:
    """One look for targets in all files of a site."""

    def __init__(self, source: Source, targets: Targets) -> None:
        self.source = source
        self.site = source.site
        self.finder = Finder(source.site, targets)
        self.grouping = Grouping(source.format)
        self.groups: dict[tuple[str, str, Key], _Group] = {}
        self.gaps: dict[NotChecked, None] = {}
        self.web = Web(source.format)

    def run(self) -> Iterator[Finding]:
        for file in self.source.documents():
            unlinked = 0
            quick = self.finder.may_name if self.finder.is_told_by_strings(file.kind) else None
            for found in items_of(
                file, self.source.fields, numbers=self.finder.numbers, wanted=quick
            ):
                for item in found[:-1]:
                    named = self.finder.compare(item)
                    for taken in named:
                        self._take(file, taken)
                    if named:
                        self.web.note(item)
                    unlinked += bool(self.site.derived_from) and not item.parents
                if self.finder.in_frame(found[-1]):
                    self._gap(file.where + found[-1].unit.place, UNCOVERED)
            if file.loose and self.finder.loose(file.loose):
                self._gap(file.where, UNCOVERED)
            self.gaps.update(dict.fromkeys(file.gaps))
            yield Examined(1, file.size, file.records, unlinked)
        for note in look_at_others(self.source, self.finder):
            if isinstance(note, NotChecked):
                self.gaps[note] = None
            else:
                yield note
        web = self._complete()
        yield from self.gaps
        counted: set[tuple[Ref, object]] = set()
        for group in self.groups.values():
            counted.update((ref, None) for ref in group.refs)
        for group in self.groups.values():
            yield self._match(group, web, counted)
        yield Examined()

    def _gap(self, where: str, why: str) -> None:
        self.gaps[NotChecked(where, why, ProblemCode.UNSUPPORTED)] = None

    def _take(self, file: DocumentFile, taken: Taken) -> None:
        item = taken.item
        what = "part" if taken.part is not None else "strings" if taken.only else "record"
        key = self.grouping.key(item)
        name = taken.name
        group = self.groups.get((what, name, key))
        if group is None:
            group = self.groups[what, name, key] = _Group(len(self.groups), name, what, key)
        group.hits.update(dict.fromkeys(taken.hits))
        self._add(group, file, taken)

    def _add(self, group: _Group, file: DocumentFile, taken: Taken) -> None:
        item = taken.item
        place: dict[str, object] = {"file": file.key, "digest": item.digest}
        at = item.path
        if taken.part is not None:
            at = taken.part.path
            place = {"file": file.key, "digest": digest_value(taken.part.value)}
            group.paths.append((item.ref, at))
        elif not taken.only:
            group.refs.add(item.ref)
        if taken.only or self.site.action is Action.BLANK:
            said = [(item.relative(path), it.is_key) for it in taken.strings for path in it.paths]
            place["strings"] = [list(path) for path, is_key in said if not is_key]
            place["keys"] = [list(path) for path, is_key in said if is_key]
        group.places[file.key, item.unit.number, at] = place
        routes = [item.kind.at] + ([taken.part.kind.at] if taken.part is not None else [])
        shown = shown_route(at, *routes)
        group.where.append(file.where + item.unit.place + (f", {shown}" if shown else ""))
        for source, ids in item.parents.items():
            group.parents.setdefault(source, {}).update(dict.fromkeys(ids))
        group.created = group.created or item.created
        group.subjects.update(dict.fromkeys(item.subjects))
        group.scope = item.scope
        group.marker = group.marker or item.carries_marker
        group.blanked.append(
            self.site.action is Action.BLANK
            and item.unit.entry.parsed
            and item.is_blanked
            and not taken.strings
        )
        if taken.part is not None or taken.only:
            paths = {path for one in taken.strings for path in one.paths}
            texts = tuple(
                dict.fromkeys(
                    one.text
                    for one in item.said
                    if not one.is_key and (one.path in paths if paths else one.part is taken.part)
                )
            )
            group.traces.append(Trace(group.name, texts))
        else:
            group.traces.append(item.trace(group.name, taken.strings))

    def _complete(self) -> Web | None:
        """Look for further places of the records found, and for what goes along with them."""
        certain = [it for it in self.groups.values() if is_certain(tuple(it.hits))]
        if not certain:
            return None
        wanted = {group.key: group for group in certain if group.what == "record"}
        gathering = Gathering(self.source, self.web)
        seeds = {group.name for group in wanted.values()}
        while True:
            further = False
            for file, found in gathering.read(seeds):
                further = True
                for item in found[:-1]:
                    group = wanted.get(self.grouping.key(item))
                    if group is not None and item.id is not None and item.ref not in group.refs:
                        self._add(group, file, Taken(item, (), []))
                self.gaps.update(dict.fromkeys(() if found else file.gaps))
            if not further:
                break
            self._spread(certain)
            seeds = self.web.seeds()
        return None if self.site.action is Action.BLANK else self.web

    def _spread(self, certain: list[_Group]) -> None:
        """Let everything go that goes with what was found."""
        web = self.web
        web.begin()
        for group in certain:
            mine = frozenset({group.number})
            for ref in group.refs:
                web.gone[ref] = web.gone.get(ref, frozenset()) | mine
            for ref, path in group.paths:
                web.gone_parts[ref][path] = web.gone_parts[ref].get(path, frozenset()) | mine
        if self.site.action is not Action.BLANK:
            web.spread()

    def _match(self, group: _Group, web: Web | None, counted: set[tuple[Ref, object]]) -> Match:
        children: list[list[str]] = []
        more = 0
        if web is not None:
            for ref, causes in web.gone.items():
                if group.number in causes and ref not in group.refs:
                    facts = web.facts[ref]
                    children.append([ref[0], facts.kind.name, facts.name])
                    more += _first(counted, (ref, None))
            own = set(group.paths)
            for ref, parts in web.gone_parts.items():
                for path, causes in parts.items():
                    if group.number in causes and (ref, path) not in own and ref not in web.gone:
                        facts = web.facts[ref]
                        children.append([ref[0], facts.kind.name, facts.name])
                        more += _first(counted, (ref, path))
        texts = dict.fromkeys(text for trace in group.traces for text in trace.texts)
        metadata = dict.fromkeys(text for trace in group.traces for text in trace.metadata)
        further = len(group.places) + more - 1
        return Match(
            id=group.name,
            hits=tuple(group.hits),
            where=group.where[0] + (f" and {further} more" if further else ""),
            handle={
                "what": group.what,
                "key": list(group.key),
                "places": list(group.places.values()),
                "children": children,
            },
            trace=Trace(
                group.name, tuple(texts), tuple(text for text in metadata if text not in texts)
            ),
            parents={source: tuple(ids) for source, ids in group.parents.items()},
            readability=Readability.BLANKED if all(group.blanked) else Readability.READABLE,
            carries_marker=group.marker,
            created=group.created,
            part=group.key[2],
            pieces=len(group.places) + more,
            subjects=tuple(group.subjects),
            scope=group.scope,
        )


def _first(counted: set[tuple[Ref, object]], key: tuple[Ref, object]) -> bool:
    """Whether something is counted for the first time; it is noted."""
    if key in counted:
        return False
    counted.add(key)
    return True


def look_at_others(source: Source, finder: Finder) -> Iterator[NotChecked | Examined]:
    """Yield the files of no declared kind that hold what is looked for, and how much was read."""
    for path in source.others:
        where = relative(path, source.site)
        try:
            with open_quietly(path) as stream:
                content = b"".join(reader(stream))
        except OSError as error:
            problem = os_problem(error)
            yield NotChecked(where, str(problem), ProblemCode(problem.problem))
            continue
        except StoreError as error:
            yield NotChecked(where, str(error), ProblemCode(error.problem))
            continue
        yield Examined(1, len(content))
        if finder.targets.mentioned_in(content) or finder.loose(loose_texts(content)):
            yield NotChecked(
                where,
                "a file of no kind that the format declares; it holds what is looked for, and it "
                "is left",
                ProblemCode.UNSUPPORTED,
            )
