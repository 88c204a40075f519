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
from purge_adapters._owners import Held, Owners
from purge_adapters._shadows import Shadow, look_through, shadows
from purge_adapters._sql_find import find
from purge_adapters._sql_known import KINDS, Known
from purge_adapters._sql_needles import of_phrases, of_trace, present
from purge_adapters._sql_rows import Tables
from purge_adapters._sql_settings import SqlSettings
from purge_adapters._sql_sqlite import read_schema, statements
from purge_adapters._sql_tables import draw
from purge_adapters._sqlite import JOURNAL, WAL, beside, in_memory
from purge_adapters._sqlite_files import MAGIC


def copies(
    path: Path, site: Site, settings: SqlSettings, targets: Targets, known: Known
) -> Iterator[Residue | NotChecked | Examined]:
    """Yield the copies of the database that hold what is looked for."""
    own = (path, *(beside(path, suffix) for suffix in (WAL, JOURNAL, "-shm")))
    owners: Owners[bytes] = Owners()
    for trace in (*known.readable, *known.lost):
        keys = targets.keys_of(site.name, trace.id)
        for needle in of_trace(trace, KINDS, known.encoding):
            owners.add(needle.forms, keys)
    for needle in of_phrases(targets, known.encoding):
        owners.add(needle.forms, frozenset() if needle.key is None else frozenset({needle.key}))
    wanted = set(owners)

    def holds(shadow: Shadow) -> Held:
        content = shadow.read()
        held = owners.of(present(content, wanted))
        said = _says(content, site, settings, targets)
        return True if held is True else frozenset(held or ()) | said

    yield from look_through(shadows(own, site), holds)


def _says(content: bytes, site: Site, settings: SqlSettings, targets: Targets) -> frozenset[int]:
    """Return the targets of which a copy, asked as a database, returns a record."""
    if not content.startswith(MAGIC) or not targets:
        return frozenset()
    try:
        with closing(in_memory(content)) as connection, statements(connection) as core:
            layouts, _ = draw(site, settings, read_schema(connection))
            if layouts is None:
                return frozenset()  # Of something else: then its bytes have to do.
            found = find(Tables(core, layouts), site.name, site.action, targets)
    except (sqlite3.Error, Permanent):
        return frozenset()  # Damaged: then its bytes have to do.
    return frozenset(hit.key for item in found if isinstance(item, Match) for hit in item.hits)
