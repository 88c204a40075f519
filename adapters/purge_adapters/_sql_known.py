"""What the database itself says before its bytes are looked at: who is gone, who is near.

Read through a connection that changes nothing. What is known here is what the look at the bytes is
judged by; nothing here looks at bytes.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from purge.adapter import Site
from purge.targets import NOTHING, NeedleKind, Record, Targets, Trace
from purge_adapters._sql_fulltext import all_fulltext
from purge_adapters._sql_needles import Needle, of_trace, spellings_in_text
from purge_adapters._sql_records import Records
from purge_adapters._sql_rows import Row, Rows, Tables, named
from purge_adapters._sql_schema import Table
from purge_adapters._sql_tables import Layouts
from purge_adapters._sql_values import texts_in

KINDS: Final = (NeedleKind.ID, NeedleKind.TEXT, NeedleKind.METADATA)
_NEIGHBOURS: Final = 50
_TRIED: Final = 5


@dataclass(slots=True)
class Known:
    """Everything that the look at the bytes has to know."""

    layouts: Layouts
    encoding: str
    roots: Mapping[int, str]
    """Root page of every table and index to the name of its table."""
    fulltext: frozenset[str]
    readable: list[Trace] = field(default_factory=list)
    """What is still returned of the records that have to go."""
    gone: list[tuple[Trace, tuple[NeedleKind, ...]]] = field(default_factory=list)
    """Records that are no longer returned, and what of them must be nowhere."""
    neighbours: dict[NeedleKind, list[Needle]] = field(default_factory=dict)
    """What a look can be tried on, by kind: pieces of rows that are to stay."""
    kinds: tuple[NeedleKind, ...] = KINDS
    """The kinds that can be told in bytes. A number as an id is no string there."""

    @property
    def lost(self) -> list[Trace]:
        """The traces of the records that are gone."""
        return [trace for trace, _ in self.gone]


def ask(connection: sqlite3.Connection, tables: Tables, site: Site, targets: Targets) -> Known:
    """Return what the database says of the records that have to go, and of the others."""
    traces = targets.traces(site.name)
    roots = connection.execute("SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0")
    known = Known(
        tables.layouts,
        str(connection.execute("PRAGMA encoding").fetchone()[0]),
        {int(page): str(name) for page, name in roots},
        frozenset(each.name for each in all_fulltext(connection)),
    )
    ids = dict.fromkeys(trace.id for trace in traces)
    present: dict[str, Trace] = {}
    for rows in tables.each:
        records = Records(rows, site.name, site.action, NOTHING)
        _find_neighbours(rows, records, set(ids), known)
        for whole in rows.whole(rows.by_id(ids)):
            trace = records.trace_of([whole])
            before = present.get(trace.id, Trace(trace.id))
            present[trace.id] = Trace(
                trace.id, before.texts + trace.texts, before.metadata + trace.metadata
            )
    if NeedleKind.ID not in known.kinds:
        known.neighbours.pop(NeedleKind.ID, None)
    for trace in traces:
        _sort(trace, present.get(trace.id), known)
    return known


def _sort(trace: Trace, now: Trace | None, known: Known) -> None:
    """Tell what of a record is still returned from what is gone.

    A record may have been emptied or written anew, or only some of the rows that share its id may
    have gone. The id of what is still there is no residue.
    """
    if now is None:
        known.gone.append((trace, known.kinds))
        return
    texts, metadata = set(now.texts), set(now.metadata)
    lost = Trace(
        trace.id,
        tuple(text for text in trace.texts if text not in texts),
        tuple(value for value in trace.metadata if value not in metadata),
    )
    if lost.texts or lost.metadata:
        known.gone.append((lost, (NeedleKind.TEXT, NeedleKind.METADATA)))
    if not trace.texts or texts.intersection(trace.texts):
        known.readable.append(
            Trace(
                trace.id,
                tuple(text for text in trace.texts if text in texts),
                tuple(value for value in trace.metadata if value in metadata),
            )
        )


def _find_neighbours(rows: Rows, records: Records, named_ids: set[str], known: Known) -> None:
    layout = rows.layout
    column = layout.table.column(layout.id)
    is_number = column is not None and "INT" in column.type.upper()
    first = list(islice(rows.stream(layout.table), _NEIGHBOURS))
    if first:
        is_number = not isinstance(rows.value(first[0], layout.id), str)
    for whole in rows.whole(first):
        trace = records.trace_of([whole])
        if trace.id not in named_ids:
            for needle in of_trace(trace, KINDS, known.encoding):
                near = known.neighbours.setdefault(needle.kind, [])
                if len(near) < _TRIED:
                    near.append(needle)
    if is_number:
        known.kinds = (NeedleKind.TEXT, NeedleKind.METADATA)


def holds(tables: Tables, table: Table, needle: Needle, targets: Targets) -> bool:
    """Whether a row of a table says what a needle is a piece of.

    An id counts where it stands by itself, not as a part of another one; a phrase where it is
    found as any phrase is.
    """
    whole = re.compile(rf"(?<![0-9A-Za-z_]){re.escape(needle.text)}(?![0-9A-Za-z_])")
    for row in _rows_with(tables, table, needle.text):
        texts = [
            text
            for name, value in zip(table.names, row.values, strict=True)
            for text in texts_in(name, _as_text(value))
        ]
        if needle.key is not None:
            found = any(hit.key == needle.key for hit in targets.match("", Record("", texts)))
        elif needle.kind is NeedleKind.ID:
            found = any(whole.search(text.value) for text in texts)
        else:
            found = True
        if found:
            return True
    return False


def lives(tables: Tables, text: str) -> bool:
    """Whether a text stands in any row of the site's own tables, also as a part of a longer one."""
    own = tables.layouts.tables()
    return any(True for table in own for _ in _rows_with(tables, table, text))


def _rows_with(tables: Tables, table: Table, text: str) -> Iterator[Row]:
    import sqlalchemy

    conditions = [
        sqlalchemy.func.instr(named(table, column.name), spelled) > 0
        for column in table.columns
        for spelled in spellings_in_text(text)
    ]
    if conditions:
        yield from tables.each[0].stream(table, *conditions)


def _as_text(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
