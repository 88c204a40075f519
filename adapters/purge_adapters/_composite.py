"""One site that is made of files of several kinds, each served by the adapter that knows it.

Every verb is handed on to the members and their answers are handed back, so that nothing is known
here of any format. What lies below the site's path and belongs to no member is searched as bytes:
it is named where it holds what is looked for, and never changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    Control,
    EvidenceKind,
    Examined,
    Finding,
    Marker,
    Match,
    NotAMarker,
    NotChecked,
    NotRemoved,
    Observation,
    ProblemCode,
    Readability,
    Removal,
    Residue,
    Site,
    Statement,
    guard,
)
from purge.errors import Permanent, PurgeError, StoreError
from purge.targets import Targets
from purge_adapters._composite_format import FilesFormat, Member, members_of
from purge_adapters._composite_members import Members
from purge_adapters._composite_others import look_into
from purge_adapters._files import footprint, relative, walk
from purge_adapters._shadows import is_variant

__all__ = ["Composite", "WithFormat"]

S = TypeVar("S")
H = TypeVar("H", Match, Residue, Marker)


class WithFormat(Adapter[S]):
    """An adapter whose sites may have a ``format`` instead of its own keys.

    The members of the format then serve the site, and this adapter does not.
    """

    def __new__(cls, site: Site, settings: S) -> Self:
        """Return the adapter that serves the site."""
        if getattr(settings, "format", None) is None:
            return super().__new__(cls)
        return Composite(site, settings)  # type: ignore[return-value]  # an adapter all the same


class Composite(Adapter[Any]):
    """Serves a site by the members of its format. ``settings`` has a ``path`` and a ``format``."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="files",
        summary="formats made of several kinds of files: Claude Code, Obsidian, aider and others",
        evidence=EvidenceKind.BYTES,
        actions=frozenset((Action.DELETE, Action.BLANK, Action.REPORT)),
    )

    def __init__(self, site: Site, settings: Any) -> None:
        super().__init__(site, settings)
        self._paths = [settings.path] if isinstance(settings.path, str) else list(settings.path)
        self._format: FilesFormat = members_of(settings.format)
        self._members = Members(site, self._paths, self._format)

    def close(self) -> None:
        """Close the adapters of all members."""
        self._members.close()

    def footprint(self) -> tuple[Path, ...]:
        """The files and folders that the members' paths name."""
        patterns = [one for member in self._members.all for one in self._members.patterns(member)]
        return footprint(self.site, patterns or self._paths)

    def check(self) -> Iterator[Statement]:
        """Say what the members say, and what belongs to none of them."""
        try:
            owned = self._members.owned()
            others = list(self._others(owned))
            present = list(self._members.present())
        except PurgeError as error:
            yield Statement(str(error), ok=False)
            return
        said: set[Statement] = set()
        for member, adapter in present:
            if self._members.files_of(member, adapter):
                for statement in adapter.check():
                    if statement not in said:
                        said.add(statement)
                        yield statement
        if not owned:
            yield Statement("No file of the format is there. Is the path right?", ok=False)
        count = sum(isinstance(one, Path) for one in others)
        if count:
            yield Statement(
                f"{count} {'file belongs' if count == 1 else 'files belong'} to no member of the "
                "format: searched, never changed."
            )

    # --- find and remove ------------------------------------------------------------------------

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield what the members find, and the files of no member that hold a target."""
        owned = self._members.owned()
        gaps: dict[NotChecked, None] = {}
        for member, adapter in self._members.present():
            for item in adapter.find(targets):
                if isinstance(item, NotChecked):
                    gaps[item] = None
                elif isinstance(item, Match):
                    yield self._told(member, item)
                else:
                    yield item
        for other in self._others(owned) if targets.needs_texts else ():
            if isinstance(other, Path):
                yield from look_into(other, self.site, targets)
            else:
                gaps[other] = None
        yield from gaps
        yield Examined()

    def _told(self, member: Member, match: Match) -> Match:
        readability = match.readability
        if member.archived and readability is Readability.READABLE:
            readability = Readability.ARCHIVED
        part = self._members.part(member, match.part)
        return replace(_outer(member, match), readability=readability, part=part)

    def _others(self, owned: Mapping[Path, Member]) -> Iterator[Path | NotChecked]:
        """Yield the files that belong to the format and to none of its members."""
        patterns = [
            other if path in ("", ".") else f"{path.rstrip('/')}/{other}"
            for path in self._paths
            if not self.site.place(path).is_file()
            for other in self._format.further
        ]
        there = [one for one in patterns if any(map(os.path.lexists, footprint(self.site, [one])))]
        names: dict[Path, list[str]] = {}
        for path in owned:
            names.setdefault(path.parent, []).append(path.name)
        for item in walk(self.site, there) if there else ():
            if isinstance(item, Path) and (
                item in owned
                # A copy of a member's file: the member looks at it as what is left over.
                or any(is_variant(item.name, name) for name in names.get(item.parent, ()))
            ):
                continue
            yield item

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Let each member take its records out."""
        guard(removals)
        self._members.owned()
        outer = {_key(removal.match): removal.match for removal in removals}
        todo: dict[str, list[Removal]] = {}
        for removal in removals:
            name, match = _inner(removal.match)
            todo.setdefault(name, []).append(replace(removal, match=match))
        for name, own in todo.items():
            for left in self._members.of(name).remove(own):
                told = self._told(self._members.called(name), left.match)
                yield replace(left, match=outer.get(_key(told), told))

    # --- markers --------------------------------------------------------------------------------

    def markers(
        self, where: Mapping[str, str]
    ) -> Iterator[Marker | NotAMarker | NotChecked | Examined]:
        """Yield the marker lines of all members that can have any."""
        self._members.owned()
        refusal: StoreError | None = None
        answered = False
        for member, adapter in self._members.present():
            try:
                for item in adapter.markers(where):
                    answered = True
                    if isinstance(item, Marker):
                        part = self._members.part(member, item.part)
                        yield replace(_outer(member, item), part=part)
                    else:
                        yield item
            except Permanent as error:
                if error.problem != ProblemCode.UNSUPPORTED:
                    raise
                refusal = error
        if refusal is not None and not answered:
            raise refusal

    def strike(self, markers: Sequence[tuple[Marker, str]]) -> Iterator[NotChecked]:
        """Let each member strike its marker lines."""
        guard(markers)
        todo: dict[str, list[tuple[Marker, str]]] = {}
        for marker, replacement in markers:
            name, own = _inner(marker)
            todo.setdefault(name, []).append((own, replacement))
        for name, jobs in todo.items():
            yield from self._members.of(name).strike(jobs)

    # --- sanitize and residue -------------------------------------------------------------------

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Let each member remove what it said it can."""
        todo: dict[str, list[Residue]] = {}
        for left in residue:
            name, own = _inner(left)
            todo.setdefault(name, []).append(own)
        for name, own_residue in todo.items():
            yield from self._members.of(name).sanitize(own_residue)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield what the members see; one member's file is no left-over copy of another's."""
        owned = self._members.owned()
        live = {relative(path, self.site): owner for path, owner in owned.items()}
        going: list[str] = []
        """Where records lie that are archived and will go by themselves."""
        for member, adapter in self._members.present():
            if member.archived:
                found = adapter.find(targets)
                going += (item.where for item in found if isinstance(item, Match))
        controls: list[Control] = []
        said: set[object] = set()
        for member, adapter in self._members.present():
            for item in adapter.residue(targets):
                if isinstance(item, Control):
                    controls.append(item)
                elif isinstance(item, Examined):
                    yield item
                elif isinstance(item, NotChecked):
                    if item not in said:
                        said.add(item)
                        yield item
                elif not _is_live(item.where, member, live, going):
                    told = (item.where, item.why, item.until, item.keys)
                    if told not in said:
                        said.add(told)
                        yield _outer(member, item)
        yield from _vouching(controls)
        yield Examined()


def _is_live(where: str, member: Member, live: Mapping[str, Member], going: Sequence[str]) -> bool:
    """Whether what a member sees beside its files is a live file of another member.

    One that an application does not show any more is a copy, unless it is found as a record.
    """
    owner = live.get(where, member)
    if owner.archived and owner is not member:
        return any(place.startswith(where) for place in going)
    return owner is not member


def _outer(member: Member, item: H) -> H:
    """Return what a member yielded, with a handle that says whose it is."""
    part = getattr(item, "part", "")
    return replace(item, handle={"member": member.name, "part": part, "handle": dict(item.handle)})


def _inner(item: H) -> tuple[str, H]:
    """Return whose something is, and the thing as the member yielded it."""
    name, handle = item.handle.get("member"), item.handle.get("handle")
    if not isinstance(name, str) or not isinstance(handle, dict):
        raise Permanent(
            "It was found by another adapter or version; look again.",
            problem=ProblemCode.UNSUPPORTED,
        )
    if isinstance(item, Residue):
        return name, replace(item, handle=handle)
    return name, replace(item, handle=handle, part=str(item.handle["part"]))


def _key(match: Match) -> tuple[str, str]:
    return match.id, match.part


def _vouching(controls: Sequence[Control]) -> Iterator[Control]:
    """Yield what the controls of all members come to.

    Where one saw the records that have to go, the neighbours that the others saw say nothing
    more; a look that failed is told in any case.
    """
    on_target = any(control.on_target for control in controls)
    told: dict[Control, None] = {}
    for control in controls:
        if control.on_target is on_target or not control.passed:
            told[control] = None
    yield from told or (Control(None, True, False),)
