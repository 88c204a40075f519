"""Looking for what outlives removal: in the file's pages, its logs, its indexes, and beside it.

None of these looks asks whoever deleted. Bytes in use belong to rows, and rows are judged by what
they say; bytes not in use belong to nobody, and what stands there is left over. SQLite leaves more
there than what was deleted: when it spreads the rows of a page over others it leaves copies of
rows in the gaps, also under ``secure_delete`` (3.40.1, by experiment).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from purge.adapter import Control, Examined, NotChecked, Observation, ProblemCode, Residue, Site
from purge.targets import NeedleKind, Targets
from purge_adapters._files import relative
from purge_adapters._sql_known import (
    KINDS,
    Known,
    ask,
    holds,
    needles_of_gone,
    without_needle,
)
from purge_adapters._sql_layout import lay_out
from purge_adapters._sql_needles import (
    Needle,
    by_kind,
    in_pieces,
    of_phrases,
    of_trace,
    owners,
    short_forms,
    stands_in,
    unscoped,
)
from purge_adapters._sql_rows import Rows
from purge_adapters._sql_settings import SqlSettings
from purge_adapters._sql_shadows import copies
from purge_adapters._sql_sqlite import database_path, read_schema, statements
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


def residue(site: Site, settings: SqlSettings, targets: Targets) -> Iterator[Observation]:
    """Yield the copies that outlive removal; see the contract.

    Raises:
        Transient, Permanent: the database cannot be looked at.
    """
    path = database_path(site, settings.url)
    with looking(path) as snapshot, statements(snapshot.connection) as core:
        rows = Rows(core, lay_out(site, settings, read_schema(snapshot.connection)))
        known = ask(snapshot.connection, rows, site, targets)
        found = tuple(_Look(path, site, snapshot, rows, known, targets).everywhere())
        words = tuple(stale_words(snapshot.connection, known.layout, known.lost, unscoped(targets)))
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
        rows: Rows,
        known: Known,
        targets: Targets,
    ) -> None:
        self._path = path
        self._site = site
        self._snapshot = snapshot
        self._rows = rows
        self._known = known
        self._targets = targets
        self._by_structure = False
        self._lost = (*needles_of_gone(known), *of_phrases(targets, known.encoding))

    def everywhere(self) -> Iterator[Observation]:
        """Yield what stands in the files, and whether it could have been seen."""
        log, journal = beside(self._path, WAL), beside(self._path, JOURNAL)
        data, frames, old = self._snapshot.data, self._snapshot.log, self._snapshot.journal
        controls = tuple(self._controls((data, frames)))
        yield from controls
        found = self._left_over((data, frames))
        bare = without_needle(self._known)
        self._by_structure |= bool(bare) or not controls
        if len(frames):
            if found or bare:
                yield Residue(
                    relative(log, self._site),
                    "the write-ahead log has not been emptied into the database",
                    fixable=True,
                    handle={DO: CHECKPOINT},
                )
            if self._by_structure:
                yield Control(None, self._is_sound(), on_target=False)
        elif self._lost or self._by_structure:
            yield from self._in_pages(data, found)
        if any(stands_in(old, each.forms) for each in (*self._lost, *self._spoken())):
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
            records=self._rows.read,
        )

    def _spoken(self) -> Iterator[Needle]:
        """Yield what the records say that are still readable."""
        for trace in self._known.readable:
            yield from of_trace(trace, KINDS, self._known.encoding)

    def _left_over(self, places: Sequence[Bytes]) -> list[Needle]:
        """Return what stands somewhere and should not, as far as bytes alone tell."""
        spoken = {each.text for each in self._spoken()}
        table = self._rows.layout.table
        return [
            needle
            for needle in self._lost
            if needle.text not in spoken
            and any(stands_in(place, needle.forms) for place in places)
            # What other rows say as well tells of no record.
            and not (
                needle.kind is NeedleKind.METADATA
                and holds(self._rows, table, needle, self._targets)
            )
        ]

    def _controls(self, places: Sequence[Bytes]) -> Iterator[Control]:
        def seen(needle: Needle) -> bool:
            return any(stands_in(place, needle.forms) for place in places)

        known = self._known
        tried: dict[NeedleKind, list[bool]] = {}
        for trace in known.readable:
            for kind, each in by_kind(of_trace(trace, known.kinds, known.encoding)).items():
                tried.setdefault(kind, []).append(any(map(seen, each)))
        for kind, outcomes in tried.items():
            yield Control(kind, all(outcomes), on_target=True)
        wanted = {each.kind for each in needles_of_gone(known)} or {NeedleKind.TEXT}
        for kind in KINDS:
            near = known.neighbours.get(kind)
            if kind in wanted and kind not in tried:
                if near is not None:
                    yield Control(kind, seen(near), on_target=False)
                else:
                    # Nothing is left that the look could be tried on: the structure has to do.
                    self._by_structure = True

    def _is_sound(self) -> bool:
        """Whether every page is accounted for and every row can be read."""
        return self._snapshot.connection.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]

    def _in_pages(self, data: Bytes, found: Sequence[Needle]) -> Iterator[Observation]:
        """Tell left-over bytes from rows, and other tables' rows from the site's own."""
        where = relative(self._path, self._site)
        try:
            pages = Pages(data, self._known.roots)
        except Malformed:
            yield Control(None, False, on_target=False)
            yield NotChecked(where, "its pages do not fit together", ProblemCode.CORRUPT)
            return
        if self._by_structure:
            yield Control(None, pages.unaccounted == 0, on_target=False)
        for kind, content in sorted(pages.unused_bytes().items()):
            if self._is_left_over(kind, content):
                overwrite = kind == FREE and not pages.unaccounted
                yield Residue(
                    f"{where} ({kind})",
                    "deleted content that nobody has overwritten",
                    fixable=True,
                    handle={DO: OVERWRITE if overwrite else REWRITE},
                )
        yield from self._in_other_tables(owners(data, pages, found))

    def _is_left_over(self, kind: str, content: bytes) -> bool:
        """Whether something of what is gone stands in bytes that are not in use.

        A whole window of a text counts there, whoever else says it. A piece of one, and what is
        shorter than a needle, count if no live row of the table says them. Of a record without
        any needle a free page tells nothing unless it is empty.
        """
        if any(stands_in(content, needle.forms) for needle in self._lost):
            return True
        bare = without_needle(self._known)
        if bare and kind == FREE and content.count(0) != len(content):
            return True
        encoding = self._known.encoding
        short = (each for trace in bare for each in short_forms(trace, encoding))
        return any(
            stands_in(content, each.forms)
            and not holds(self._rows, self._rows.layout.table, each, self._targets)
            for each in (*in_pieces(self._gone_texts(), encoding), *short)
        )

    def _gone_texts(self) -> Iterator[Needle]:
        """Yield all that is looked for in one piece each."""
        for trace, kinds in self._known.gone:
            for kind, texts in (
                (NeedleKind.ID, (trace.id,)),
                (NeedleKind.TEXT, trace.texts),
                (NeedleKind.METADATA, trace.metadata),
            ):
                if kind in kinds:
                    yield from (Needle(kind, text, ()) for text in texts)
        for text in unscoped(self._targets):
            yield Needle(NeedleKind.TEXT, text, ())

    def _in_other_tables(self, live: Mapping[str, Mapping[Needle, None]]) -> Iterator[Residue]:
        own = self._rows.layout.table_names
        for table, needles in sorted(live.items()):
            telling = [each for each in needles if each.kind is not NeedleKind.METADATA]
            fulltext = next((n for n in self._known.fulltext if table.startswith(f"{n}_")), None)
            shown = fulltext or table
            if not telling or {table.casefold(), shown.casefold()} & own:
                continue
            if fulltext is not None and not table.endswith("_content"):
                continue  # The words of an index are asked for by themselves.
            other = self._rows.layout.schema.table(table)
            if other is None or any(
                holds(self._rows, other, each, self._targets) for each in telling
            ):
                yield Residue(f"table {shown}", "another table holds it")
