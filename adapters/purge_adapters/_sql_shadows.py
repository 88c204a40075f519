"""Copies of a database beside it: backups, older files, trash, git histories.

A copy is looked at as bytes, and, where it is a database itself, asked as the site is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from purge.adapter import Examined, Match, NotChecked, Residue, Site
from purge.errors import Permanent
from purge.targets import Targets
from purge_adapters._shadows import Shadow, look_through, shadows
from purge_adapters._sql_find import find
from purge_adapters._sql_known import KINDS, Known
from purge_adapters._sql_layout import lay_out
from purge_adapters._sql_needles import of_phrases, of_trace, present
from purge_adapters._sql_rows import Rows
from purge_adapters._sql_settings import SqlSettings
from purge_adapters._sql_sqlite import read_schema, statements
from purge_adapters._sqlite import JOURNAL, WAL, beside, in_memory
from purge_adapters._sqlite_files import MAGIC


def copies(
    path: Path, site: Site, settings: SqlSettings, targets: Targets, known: Known
) -> Iterator[Residue | NotChecked | Examined]:
    """Yield the copies of the database that hold what is looked for."""
    own = (path, *(beside(path, suffix) for suffix in (WAL, JOURNAL, "-shm")))
    needles = (
        *(n for t in (*known.readable, *known.lost) for n in of_trace(t, KINDS, known.encoding)),
        *of_phrases(targets, known.encoding),
    )
    wanted = {form for needle in needles for form in needle.forms}

    def holds(shadow: Shadow) -> bool:
        content = shadow.read()
        return bool(present(content, wanted)) or _says(content, site, settings, targets)

    yield from look_through(shadows(own, site), holds)


def _says(content: bytes, site: Site, settings: SqlSettings, targets: Targets) -> bool:
    """Whether a copy, asked as a database, returns what is looked for."""
    if not content.startswith(MAGIC) or not targets:
        return False
    try:
        with closing(in_memory(content)) as connection, statements(connection) as core:
            layout = lay_out(site, settings, read_schema(connection))
            found = find(Rows(core, layout), site.name, site.action, targets)
    except (sqlite3.Error, Permanent):
        return False  # Another table, or damaged: then its bytes have to do.
    return any(isinstance(item, Match) for item in found)
