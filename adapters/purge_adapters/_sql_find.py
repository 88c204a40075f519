"""Finding the rows that hold a target: by index where only ids are looked for, else all of them.

Everything is collected before anything is handed out, since a look that moved meanwhile must not
be used, and nobody may delete while a statement is still being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from purge.adapter import Action, Examined, Finding, Match, NotChecked, ProblemCode
from purge.targets import Record, Targets
from purge_adapters._sql_layout import Child, Link
from purge_adapters._sql_records import Records, Seen, Way
from purge_adapters._sql_rows import Key, Row, Rows, Tables, chunks, identity
from purge_adapters._sql_schema import Table


def find(tables: Tables, site: str, action: Action, targets: Targets) -> tuple[Finding, ...]:
    """Return everything that a look for ``targets`` sees.

    Args:
        tables: those of the site, through a connection that nobody else changes.
        site: the site's name.
        action: what removal does there; a blanked record is recognised only where it blanks.
        targets: what is looked for.
    """
    findings: list[Finding] = []
    found: list[tuple[Match, list[Seen]]] = []
    unlinked = 0
    for rows in tables.each:
        records = Records(rows, site, action, targets)
        by_id: dict[tuple[str, bool], list[Seen]] = {}
        for seen in _named(rows, records, targets):
            key = (seen.record.id, seen.way is Way.EMPTY_WORDS)
            by_id.setdefault(key, []).append(seen)
        found.extend((records.match(each), each) for each in by_id.values())
        layout = rows.layout
        if records.closed:
            findings.append(
                NotChecked(
                    f"table {layout.table.name}",
                    f"{records.closed} compressed values (zstd) were not looked into",
                    ProblemCode.UNSUPPORTED,
                )
            )
        unlinked += rows.unlinked(layout.parents.values()) if layout.parents else 0
    matches = _counted(found) if len(tables.each) > 1 else [match for match, _ in found]
    return (*matches, *findings, Examined(files=1, records=tables.read, unlinked=unlinked))


def _counted(found: Sequence[tuple[Match, list[Seen]]]) -> Iterator[Match]:
    """Yield matches with the number of rows that go with each; no row counts twice."""
    known = {
        (seen.whole.table.name, identity(seen.whole.table, seen.whole.row))
        for _, some in found
        for seen in some
        if seen.whole.table is not None and seen.way is not Way.EMPTY_WORDS
    }
    for match, some in found:
        pieces = len(some)
        for seen in some:
            for part in seen.whole.below if seen.way.reaches_records_below else ():
                table = part.child.table
                named = {(table.name, identity(table, row)) for row in part.rows}
                if part.child.own:
                    pieces += len(named - known)
                    known |= named
        yield replace(match, pieces=pieces)


def _named(rows: Rows, records: Records, targets: Targets) -> Iterator[Seen]:
    candidates = _all_texts if targets.needs_texts else _looked_up
    for chunk in chunks(candidates(rows, records, targets)):
        for seen in records.see(list(rows.whole(chunk))):
            if seen.hits:
                yield seen


def _looked_up(rows: Rows, records: Records, targets: Targets) -> Iterator[Row]:
    """Yield the rows that an id, a subject or lineage may name, each once."""
    known: set[Key] = set()

    def new(found: Iterable[Row]) -> Iterator[Row]:
        for row in found:
            key = (row.number, *rows.key(row))
            if key not in known:
                known.add(key)
                yield row

    if ids := records.ids():
        yield from new(rows.by_id(ids))
    if (subject := rows.layout.subject) is not None and (subjects := targets.subjects()):
        yield from new(rows.by_field(subject, subjects))
    for source, field in rows.layout.parents.items():
        if field is None or not (lineage := targets.lineage(source)):
            continue
        if isinstance(field, Link):
            yield from new(rows.by_link(field, lineage))
        else:
            yield from new(rows.by_field(field, lineage))


def _all_texts(rows: Rows, records: Records, targets: Targets) -> Iterator[Row]:
    """Yield the rows that hold a target themselves or in a row below them. Reads all of them."""
    layout = rows.layout
    by_child: set[Key] = set()
    for child in layout.children:
        if child.own:
            continue
        for row in _owners(rows, records, targets, child, layout.table):
            by_child.add(rows.key(row))
    for chunk in chunks(rows.stream(layout.table)):
        named = {id(seen.whole.row) for seen in records.see_alone(chunk) if seen.hits}
        for row in chunk:
            if id(row) in named or (by_child and rows.key(row) in by_child):
                yield row


def _owners(
    rows: Rows, records: Records, targets: Targets, child: Child, parent: Table
) -> Iterator[Row]:
    """Yield the rows of ``parent`` that have a row in ``child`` or below that holds a target."""
    holding: dict[Key, Row] = {}
    names = child.table.names
    for row in rows.stream(child.table):
        texts = tuple(records.texts(names, row.values))
        if texts and targets.match("", Record("", texts)):
            holding[row.number, *row.values] = row
    for below in child.children:
        if below.own:
            continue
        for row in _owners(rows, records, targets, below, child.table):
            holding[row.number, *row.values] = row
    yield from rows.owners(child, parent, holding.values())
