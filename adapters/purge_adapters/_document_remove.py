"""Taking records, parts of them, or their texts out of the files of declared formats.

What a handle says is never trusted: what stands in the files now must say the same. Files that
only hold what hangs on a record are written before the one with the record itself, so that a run
that is killed finds it again.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from purge.adapter import Action, NotRemoved, ProblemCode, Removal
from purge.errors import StoreError, Transient
from purge_adapters._codecs import Codec
from purge_adapters._document_edit import UnitWork, edits_of, texts_to_blank
from purge_adapters._document_files import DocumentFile
from purge_adapters._document_items import Item, content_name, digest_value
from purge_adapters._document_links import Ref, Web
from purge_adapters._document_match import Grouping, Key
from purge_adapters._document_related import Gathering
from purge_adapters._document_source import Source, items_of
from purge_adapters._document_wanted import Wanted, wanted_of
from purge_adapters._file_looks import shared_files
from purge_adapters._files import Changed, Fingerprint, Held, fingerprint, holders, os_problem
from purge_adapters._format_model import Layout
from purge_adapters._jsonl_edit import Plan, carry_out, wait_for_writers
from purge_adapters._jsonl_record import is_content_name

__all__ = ["remove"]

_LOOKS: Final = 3


@dataclass(slots=True)
class _Work:
    """What is to be done to one file, and for the sake of which removals."""

    units: dict[int, UnitWork] = field(default_factory=lambda: defaultdict(UnitWork))
    causes: set[int] = field(default_factory=set)
    owns: bool = False
    """It holds what was found itself, and not only what hangs on it."""


def remove(source: Source, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
    """Take records out, and yield what was left alone.

    Raises:
        Transient: the system is short of something; trying again may help.
    """
    yield from _Removing(source, [wanted_of(removal) for removal in removals]).run()


class _Removing:
    """One call of ``remove``."""

    def __init__(self, source: Source, wanted: list[Wanted]) -> None:
        self.source = source
        self.site = source.site
        self.wanted = wanted
        self.left: dict[int, NotRemoved] = {}
        self.files: dict[str, DocumentFile] = {}
        paths = [path for path, _ in source.files]
        self.shared = {gap.where for gap in shared_files(paths, source.site)}

    def run(self) -> Iterator[NotRemoved]:
        for look in range(_LOOKS):
            try:
                self._once()
                break
            except Changed:
                if look == _LOOKS - 1:
                    raise
        yield from self.left.values()

    def _once(self) -> None:
        self.left.clear()
        self.files.clear()
        web = self._read()
        for number, one in enumerate(self.wanted):
            if one.obstacle:
                self._leave(number, ProblemCode.UNSUPPORTED, one.obstacle)
            elif one.missing:
                self._leave(
                    number,
                    ProblemCode.CHANGED_UNDERNEATH,
                    f"{sorted(one.missing)[0]}: a record changed after it was found; look again.",
                )
        while True:
            work = self._decide(web)
            before = len(self.left)
            self._leave_surplus(web)
            for key, each in work.items():
                problem = self._obstacle(key)
                if problem is not None:
                    for number in each.causes:
                        self._leave(number, *problem)
            if len(self.left) == before:
                break
        for key in sorted(work, key=lambda key: (work[key].owns, key)):
            self._write(key, work[key])

    def _leave(self, number: int, problem: str, sentence: str) -> None:
        match = self.wanted[number].removal.match
        self.left.setdefault(number, NotRemoved(match, ProblemCode(problem), sentence))

    # --- reading ------------------------------------------------------------------------------

    def _read(self) -> Web:
        """Find what is wanted in the files as they are now, and what hangs together."""
        grouping = Grouping(self.source.format)
        by_key: dict[Key, list[Wanted]] = defaultdict(list)
        by_id: dict[tuple[str, str], list[Wanted]] = defaultdict(list)
        for one in self.wanted:
            one.refs, one.parts, one.blanked = [], [], []
            one.missing, one.obstacle = set(), ""
            by_key[one.key].append(one)
            by_id[one.key[:2]].append(one)
        web = Web(self.source.format)
        changed: dict[int, set[str]] = defaultdict(set)
        met: dict[int, set[str]] = defaultdict(set)
        seen: set[Ref] = set()
        gathering = Gathering(self.source, web, self._read_whole())
        seeds = {one.key[1] for one in self.wanted}
        seeds |= {name for one in self.wanted for _, _, name in one.children}
        while True:
            further = False
            for file, found in gathering.read(seeds):
                further = True
                for item in found[:-1]:
                    if item.ref in seen:
                        continue
                    seen.add(item.ref)
                    key = grouping.key(item)
                    for one in by_key.get(key, ()):
                        if self._meet(one, item, file):
                            met[id(one)].add(file.key)
                    for one in by_id.get(key[:2], ()):
                        if one.what == "record" and not (
                            self.site.action is Action.BLANK and item.is_blanked
                        ):
                            changed[id(one)].add(file.key)
                self._keep(file, done=not found)
            if not further:
                break
            self._decide(web)
            seeds = web.seeds()
        for one in self.wanted:
            wanted = {name for name, _ in one.places}
            one.missing = (changed[id(one)] & wanted) - met[id(one)]
        return web

    def _read_whole(self) -> set[str]:
        """Return the files in which something is wanted that has no id to look for."""
        found: set[str] = set()
        for one in self.wanted:
            if is_content_name(one.key[1]):
                found |= {name for name, _ in one.places}
            found |= {name for name, _, called in one.children if is_content_name(called)}
        return found

    def _keep(self, file: DocumentFile, *, done: bool) -> None:
        """Remember a file as it was when it was first read.

        Raises:
            Changed: it is another one by now.
        """
        known = self.files.setdefault(file.key, file)
        if file.changed:
            raise Changed
        if done and known is not file:
            was, now = known.fingerprint, file.fingerprint
            if was is None or now is None or not now.same_file(was) or now.size < was.size:
                raise Changed
            if now.size == was.size and now != was:
                raise Changed

    def _meet(self, one: Wanted, item: Item, file: DocumentFile) -> bool:
        """Note what of a record is wanted; return whether it is one that was found."""
        if one.what == "part":
            for path, part in item.parts.items():
                if (file.key, digest_value(part.value)) in one.places:
                    name = content_name("part", item.kind.name, item.name, digest_value(part.value))
                    if name == one.removal.match.id:
                        one.parts.append((item.ref, path))
            return True
        place = one.places.get((file.key, item.digest))
        if place is None:
            return False
        if one.what == "record" and self.site.action is not Action.BLANK:
            one.refs.append(item.ref)
            return True
        blanking = texts_to_blank(item, *place, only=one.what == "strings")
        if isinstance(blanking, str):
            one.obstacle = f"{file.where}{item.unit.place}: a record {blanking}"
        else:
            one.blanked.append((item.ref, blanking))
        return True

    # --- deciding -----------------------------------------------------------------------------

    def _decide(self, web: Web) -> dict[str, _Work]:
        """Return the work for each file, for all removals that are not left."""
        web.begin()
        work: dict[str, _Work] = defaultdict(_Work)
        for number, one in enumerate(self.wanted):
            if number in self.left:
                continue
            mine = frozenset({number})
            for ref in one.refs:
                web.gone[ref] = web.gone.get(ref, frozenset()) | mine
                work[ref[0]].owns = True
            for ref, path in one.parts:
                web.gone_parts[ref][path] = web.gone_parts[ref].get(path, frozenset()) | mine
                work[ref[0]].owns = True
            for ref, blanking in one.blanked:
                work[ref[0]].owns = True
                work[ref[0]].causes.add(number)
                work[ref[0]].units[ref[1]].blanked.append(blanking)
        web.spread()
        for ref, causes in web.gone.items():
            work[ref[0]].causes |= causes
            work[ref[0]].units[ref[1]].gone.add(ref[2])
        for ref, parts in web.gone_parts.items():
            for path, causes in parts.items():
                if ref not in web.gone:
                    work[ref[0]].causes |= causes
                    work[ref[0]].units[ref[1]].parts.add(path)
        for mend in web.mends():
            work[mend.ref[0]].causes |= mend.causes
            work[mend.ref[0]].units[mend.ref[1]].mends.append((mend.path, mend.values))
        return dict(work)

    def _leave_surplus(self, web: Web) -> None:
        """Leave what something hangs on by now that was not shown when it was found."""
        own = {ref for one in self.wanted for ref in one.refs}
        shown: set[tuple[str, str, str]] = set()
        parts = set()
        for one in self.wanted:
            shown |= one.children
            parts.update(one.parts)
        gone = [(ref, causes) for ref, causes in web.gone.items() if ref not in own]
        for ref, inner in web.gone_parts.items():
            if ref not in web.gone:
                gone += [(ref, inner[path]) for path in inner if (ref, path) not in parts]
        for ref, causes in gone:
            facts = web.facts[ref]
            if (ref[0], facts.kind.name, facts.name) not in shown:
                where = self.files[ref[0]].where
                for number in causes:
                    self._leave(
                        number,
                        ProblemCode.CHANGED_UNDERNEATH,
                        f"{where}: more hangs on a record than when it was found; look again.",
                    )

    # --- writing ------------------------------------------------------------------------------

    def _obstacle(self, key: str) -> tuple[str, str] | None:
        """Return why a file cannot be written, if so."""
        file = self.files[key]
        if file.wide:
            return (
                ProblemCode.UNSUPPORTED,
                f"{file.where}: it is in UTF-16, which is only read; convert it to UTF-8.",
            )
        if file.codec in (Codec.BZIP2, Codec.XZ):
            return ProblemCode.UNSUPPORTED, f"{file.where}: its compression is only read."
        if file.where in self.shared:
            return (
                ProblemCode.UNSUPPORTED,
                f"{file.where}: the file has other names (hard links), which would keep the text. "
                "Name them in the site as well, or copy the file to part them.",
            )
        if not os.access(file.path, os.R_OK | os.W_OK) or not os.access(
            file.path.parent, os.W_OK | os.X_OK
        ):
            return ProblemCode.NO_PERMISSION, f"{file.where}: it may not be written."
        try:
            wait_for_writers(file.path)
        except Held as error:
            return error.problem, f"{file.where}: {error}"
        return None

    def _write(self, key: str, work: _Work) -> None:
        """Write one file anew.

        Raises:
            Changed: it is no longer what was read.
            Transient: trying again may help.
        """
        file = self.files[key]
        numbers = [number for number in work.causes if number not in self.left]
        if any(number in self.left for number in work.causes):
            # Another file failed meanwhile. What hangs on something that stays is left as well.
            for number in numbers:
                self._leave(number, ProblemCode.NOT_CHECKED, f"{file.where}: left with the others.")
            return
        try:
            found, expected = self._again(file, work)
            if _is_whole(file, found):
                _unlink(file.path, expected)
                return
            plan = Plan(expected, edits_of(file, found), cuts_open_line=_is_tight(file, found))
            plan.edits = [edit for edit in plan.edits if edit.end > edit.start]
            if plan.edits:
                carry_out(file.path, plan)
        except Changed:
            raise
        except OSError as error:
            problem = os_problem(error, file.where)
            if isinstance(problem, Transient):
                raise problem from None
            for number in numbers:
                self._leave(number, problem.problem, str(problem))
        except StoreError as error:
            for number in numbers:
                self._leave(number, error.problem, f"{file.where}: {error}")

    def _again(
        self, known: DocumentFile, work: _Work
    ) -> tuple[list[tuple[list[Item], UnitWork]], Fingerprint]:
        """Read a file once more, which must be what it was when it was decided."""
        was = known.fingerprint
        if was is None:
            raise Changed
        file = DocumentFile.at(known.path, known.kind, self.site)
        file.limit = was.size
        found = [
            (items, work.units[items[-1].unit.number])
            for items in items_of(
                file, self.source.fields, wanted=lambda unit: unit.number in work.units
            )
        ]
        now = file.fingerprint
        if now is None or file.changed or not now.same_file(was):
            raise Changed
        if now != was and not (file.kind.layout is Layout.LINES and now.size > was.size):
            raise Changed
        return found, was


def _is_whole(file: DocumentFile, found: Sequence[tuple[list[Item], UnitWork]]) -> bool:
    """Whether the file is one record that goes, so that the file goes."""
    return file.kind.layout is Layout.DOCUMENT and all(
        items[-1].unit.lone and () in work.gone for items, work in found
    )


def _is_tight(file: DocumentFile, found: Sequence[tuple[list[Item], UnitWork]]) -> bool:
    """Whether something added behind the file would change what was read of it."""
    if file.kind.layout is not Layout.LINES:
        return True
    return any(not items[-1].unit.ended for items, _ in found)


def _unlink(path: Path, expected: Fingerprint) -> None:
    """Delete a file that is one record.

    Raises:
        Changed: it is no longer what was read.
        Held: a process has it open for writing.
        OSError: it cannot be deleted.
    """
    if any(holder.writes for holder in holders([path])):
        raise Held
    with suppress(FileNotFoundError):
        if fingerprint(path) != expected:
            raise Changed
        path.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
