"""Looking for what outlives removal: in the file's pages, its logs, its indexes, and beside it.

None of these looks asks whoever deleted. Bytes in use belong to rows, and rows are judged by what
they say; bytes not in use belong to nobody, and what stands there is left over. SQLite leaves more
there than what was deleted: when it spreads the rows of a page over others it leaves copies of
rows in the gaps, also under ``secure_delete`` (3.40.1, by experiment).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from purge.adapter import Control, Examined, NotChecked, Observation, ProblemCode, Residue, Site
from purge.targets import NeedleKind, Targets
from purge_adapters._files import relative
from purge_adapters._sql_known import KINDS, Known, ask, holds, lives
from purge_adapters._sql_needles import (
    Needle,
    of_phrases,
    of_trace,
    owners,
    pieces,
    present,
    short_forms,
    stands_cut,
    unscoped,
)
from purge_adapters._sql_rows import Tables
from purge_adapters._sql_settings import SqlSettings
from purge_adapters._sql_shadows import copies
from purge_adapters._sql_sqlite import database_path, read_schema, statements
from purge_adapters._sql_tables import lay_out
from purge_adapters._sql_terms import stale_words
from purge_adapters._sqlite import JOURNAL, WAL, Snapshot, beside, looking
from purge_adapters._sqlite_bytes import Bytes
from purge_adapters._sqlite_pages import FREE, Malformed, Pages

DO: Final = "do"
"""The key of a residue's handle that says what ``sanitize`` has to do."""
CHECKPOINT: Final = "checkpoint"
OVERWRITE: Final = "overwrite"
REWRITE: Final = "rewrite"
DROP_JOURNAL: Final = "drop journal"
_MOST_DOUBTS: Final = 40
_TELLING: Final = 24
"""How many characters of a text are a mark of one record, although others may say them too."""
_OF_SQLITE: Final = frozenset({"sqlite_sequence", "sqlite_stat1"})
"""Tables of SQLite's own that hold names and numbers and no value of any row."""


def residue(site: Site, settings: SqlSettings, targets: Targets) -> Iterator[Observation]:
    """Yield the copies that outlive removal; see the contract.

    Raises:
        Transient, Permanent: the database cannot be looked at.
    """
    path = database_path(site, settings.url)
    with looking(path) as snapshot, statements(snapshot.connection) as core:
        tables = Tables(core, lay_out(site, settings, read_schema(snapshot.connection)))
        known = ask(snapshot.connection, tables, site, targets)
        found = tuple(_Look(path, site, snapshot, tables, known, targets).everywhere())
        words = tuple(
            stale_words(snapshot.connection, known.layouts, known.lost, unscoped(targets))
        )
    yield from found
    yield from words
    yield from copies(path, site, settings, targets, known)


class _Look:
    """One look at the bytes of the database's three files."""

    def __init__(
        self,
        path: Path,
        site: Site,
        snapshot: Snapshot,
        tables: Tables,
        known: Known,
        targets: Targets,
    ) -> None:
        self._path = path
        self._site = site
        self._snapshot = snapshot
        self._tables = tables
        self._known = known
        self._targets = targets
        encoding = known.encoding
        per_trace = [tuple(of_trace(trace, kinds, encoding)) for trace, kinds in known.gone]
        self._lost = (
            *(needle for each in per_trace for needle in each),
            *of_phrases(targets, encoding),
        )
        self._bare = [
            trace for (trace, _), each in zip(known.gone, per_trace, strict=True) if not each
        ]
        """Records that are gone and leave nothing that is long enough to be looked for."""
        self._spoken = [tuple(of_trace(t, known.kinds, encoding)) for t in known.readable]
        """By record, what those say that are still readable."""
        self._by_structure = False

    def everywhere(self) -> Iterator[Observation]:
        """Yield what stands in the files, and whether it could have been seen."""
        data, frames, old = self._snapshot.data, self._snapshot.log, self._snapshot.journal
        log, journal = beside(self._path, WAL), beside(self._path, JOURNAL)
        spoken = tuple(needle for each in self._spoken for needle in each)
        everything = (*self._lost, *spoken)
        groups = self._groups()
        forms = {form for group in groups for form in group}

        def enough(found: set[bytes]) -> bool:
            return all(not found.isdisjoint(group) for group in groups)

        # Where every row belongs to the site itself, bytes that are in use need no search for
        # what is gone: whoever asks for rows sees them, and the others are looked into below.
        if len(frames) or (self._lost and self._has_other_tables()):
            forms.update(form for needle in self._lost for form in needle.forms)
            seen = present(data, forms) | present(frames, forms)
        else:
            seen = present(data, forms, enough)
        for group in groups:
            if seen.isdisjoint(group):
                seen.update(form for form in group if stands_cut(self._snapshot.settled, form))
        controls = tuple(self._controls(seen))
        yield from controls
        found = list(self._left_over(seen))
        self._by_structure |= bool(self._bare) or not controls
        # What is still readable may stand in the log by right.
        said_again = not self._spoken and self._targets.mentioned_in(frames[0 : len(frames)])
        if len(frames) and (found or self._bare or said_again):
            yield Residue(
                relative(log, self._site),
                "the write-ahead log has not been emptied into the database",
                fixable=True,
                handle={DO: CHECKPOINT},
            )
        if self._lost or self._by_structure or self._targets.needs_texts:
            yield from self._in_pages(self._snapshot.settled, found)
        stale = {form for needle in everything for form in needle.forms}
        if present(old, stale) or self._targets.mentioned_in(old[0 : len(old)]):
            yield Residue(
                relative(journal, self._site),
                "the rollback journal keeps old pages",
                fixable=True,
                handle={DO: DROP_JOURNAL},
            )
        files = (data, frames, old)
        yield Examined(
            files=sum(1 for each in files if len(each)),
            bytes=sum(map(len, files)),
            records=self._tables.read,
        )

    def _groups(self) -> list[set[bytes]]:
        """Return what the look is tried on: of each group one form must be seen."""
        groups = [
            {form for needle in each if needle.kind is kind for form in needle.forms}
            for each in self._spoken
            for kind in KINDS
        ]
        groups += [
            {form for needle in near for form in needle.forms}
            for near in self._known.neighbours.values()
        ]
        return [group for group in groups if group]

    def _has_other_tables(self) -> bool:
        """Whether a page in use may belong to a table that is not the site's."""
        own = self._tables.layouts.table_names
        parts = tuple(f"{name}_" for name in self._known.fulltext)
        return any(
            name.casefold() not in own
            and name not in _OF_SQLITE
            and not (name.startswith(parts) and not name.endswith("_content"))
            for name in self._known.roots.values()
        )

    def _left_over(self, seen: Collection[bytes]) -> Iterator[Needle]:
        """Yield what stands somewhere and should not, as far as bytes alone tell."""
        spoken = {needle.text for each in self._spoken for needle in each}
        for needle in self._lost:
            if needle.text in spoken or not any(form in seen for form in needle.forms):
                continue
            # What other rows say as well tells of no record.
            if needle.kind is NeedleKind.METADATA and lives(self._tables, needle.text):
                continue
            yield needle

    def _controls(self, seen: Collection[bytes]) -> Iterator[Control]:
        tried: dict[NeedleKind, list[bool]] = {}
        for each in self._spoken:
            for kind in KINDS:
                own = [needle for needle in each if needle.kind is kind]
                if own:
                    was_seen = any(form in seen for needle in own for form in needle.forms)
                    tried.setdefault(kind, []).append(was_seen)
        for kind, outcomes in tried.items():
            yield Control(kind, all(outcomes), on_target=True)
        wanted = {needle.kind for needle in self._lost} or {NeedleKind.TEXT}
        for kind in KINDS:
            near = self._known.neighbours.get(kind)
            if kind in wanted and kind not in tried:
                if near:
                    was_seen = any(form in seen for needle in near for form in needle.forms)
                    yield Control(kind, was_seen, on_target=False)
                else:
                    # Nothing is left that the look could be tried on: the structure has to do.
                    self._by_structure = True

    def _in_pages(self, settled: Bytes, found: Sequence[Needle]) -> Iterator[Observation]:
        """Tell left-over bytes from rows, and other tables' rows from the site's own."""
        where = relative(self._path, self._site)
        try:
            content = settled[0 : len(settled)]
            pages = Pages(content, self._known.roots)
        except Malformed:
            yield Control(None, False, on_target=False)
            yield NotChecked(where, "its pages do not fit together", ProblemCode.CORRUPT)
            return
        if self._by_structure:
            yield Control(None, pages.unaccounted == 0, on_target=False)
        for kind, unused in sorted(pages.unused_bytes().items()):
            # Whoever wrote it, in whatever form: words that are asked for may stand here because
            # somebody deleted them earlier, under an id that nobody knows any more.
            if self._is_left_over(kind, unused) or self._targets.mentioned_in(unused):
                overwrite = kind == FREE and not pages.unaccounted
                yield Residue(
                    f"{where} ({kind})",
                    "deleted content that nobody has overwritten",
                    fixable=True,
                    handle={DO: OVERWRITE if overwrite else REWRITE},
                )
        yield from self._in_other_tables(owners(content, pages, found))

    def _is_left_over(self, kind: str, content: bytes) -> bool:
        """Whether something of what is gone stands in bytes that are not in use.

        An id and a whole window of a text count there, whoever else says them. Metadata, a short
        text, a piece of a long one, and what is shorter than a needle count if no live row of the
        site says them. Of a record without any needle a free page tells nothing unless it is empty.
        """
        if self._bare and kind == FREE and content.count(0) != len(content):
            return True
        telling = {
            form
            for needle in self._lost
            if needle.kind is NeedleKind.ID
            or (needle.kind is NeedleKind.TEXT and len(needle.text) >= _TELLING)
            for form in needle.forms
        }
        if present(content, telling):
            return True
        encoding = self._known.encoding
        parts = {part for text in self._gone_texts() for part in pieces(text, encoding)}
        doubtful = [_text(part, encoding) for part in present(content, parts)]
        doubtful += [
            needle.text
            for trace in self._bare
            for needle in short_forms(trace, encoding)
            if any(content.find(form) >= 0 for form in needle.forms)
        ]
        # Asking the rows takes its time. So many doubts are worth a rewrite.
        return len(doubtful) > _MOST_DOUBTS or not all(
            lives(self._tables, text) for text in doubtful
        )

    def _gone_texts(self) -> Iterator[str]:
        """Yield all that is looked for, each in one piece."""
        for trace, kinds in self._known.gone:
            said = {
                NeedleKind.ID: (trace.id,),
                NeedleKind.TEXT: trace.texts,
                NeedleKind.METADATA: trace.metadata,
            }
            for kind in kinds:
                yield from said[kind]
        yield from unscoped(self._targets)

    def _in_other_tables(self, live: Mapping[str, Mapping[Needle, None]]) -> Iterator[Residue]:
        own = self._tables.layouts.table_names
        for table, needles in sorted(live.items()):
            telling = [each for each in needles if each.kind is not NeedleKind.METADATA]
            fulltext = next((n for n in self._known.fulltext if table.startswith(f"{n}_")), None)
            shown = fulltext or table
            if not telling or {table.casefold(), shown.casefold()} & own:
                continue
            if fulltext is not None and not table.endswith("_content"):
                continue  # The words of an index are asked for by themselves.
            other = self._tables.layouts.schema.table(table)
            if other is None or any(
                holds(self._tables, other, each, self._targets) for each in telling
            ):
                yield Residue(f"table {shown}", "another table holds it")


def _text(part: bytes, encoding: str) -> str:
    """Return what a piece of a text says. Half a character at an end is left out."""
    try:
        return part.decode("utf-8")
    except UnicodeDecodeError:
        pass
    code = encoding.lower()
    return part.decode(code if len(part) % 2 == 0 and code != "utf-8" else "utf-8", "ignore")
