"""Making removal physical: merge, check in the log, overwrite, rewrite; only what is called for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from purge.adapter import NotChecked, ProblemCode, Residue
from purge_adapters._sql_fulltext import rebuild
from purge_adapters._sql_residue import DO, DROP_JOURNAL, OVERWRITE, REWRITE
from purge_adapters._sql_terms import OPTIMIZE, REBUILD
from purge_adapters._sqlite import (
    checkpoint,
    drop_journal,
    optimize_fulltext,
    overwrite_free_pages,
    rewrite,
    would_renumber,
    writing,
)

_BUSY = "another connection reads an older state, so that the log cannot be emptied"


def sanitize(path: Path, residue: Sequence[Residue], timeout_s: float) -> Iterator[NotChecked]:
    """Do what residue calls for, and yield what was left undone.

    Every step is a transaction of SQLite's own, so that a kill leaves the database as it was
    before the step or after it.

    Raises:
        Transient, Permanent: the database cannot be written.
    """
    wanted = [str(item.handle.get(DO, "")) for item in residue]
    tables = {
        do: sorted({str(i.handle["table"]) for i in residue if i.handle.get(DO) == do})
        for do in (OPTIMIZE, REBUILD)
    }
    if not any(wanted):
        return
    undone: list[NotChecked] = []
    renumbers = REWRITE in wanted and would_renumber(path)
    with writing(path, timeout_s) as connection:
        for table in tables[REBUILD]:
            rebuild(connection, table)
        for table in sorted({*tables[OPTIMIZE], *tables[REBUILD]}):
            optimize_fulltext(connection, table)
        emptied = checkpoint(connection)
        if not emptied:
            undone.append(NotChecked("write-ahead log", _BUSY, ProblemCode.BUSY))
        if DROP_JOURNAL in wanted:
            drop_journal(connection)
        if REWRITE in wanted:
            why = rewrite(connection, renumbers=renumbers)
            if why:
                undone.append(NotChecked("gaps in pages", why, ProblemCode.UNSUPPORTED))
        if OVERWRITE in wanted or (REWRITE in wanted and undone):
            overwrite_free_pages(connection)
        if emptied and not checkpoint(connection):
            undone.append(NotChecked("write-ahead log", _BUSY, ProblemCode.BUSY))
    yield from undone
