"""``sql``: records in the rows of tables. SQLite files now; other databases later.

Looking reads the file without a lock or a side file, or a private copy of it where its log has to
be read as well. Removing goes through SQLite's own locks, in one transaction, by bound values.
What was deleted is then looked for in the file itself: free pages, gaps in pages, the write-ahead
log, the rollback journal, full-text indexes and copies beside the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from purge.adapter import (
    Action,
    Adapter,
    AdapterInfo,
    EvidenceKind,
    Finding,
    NotChecked,
    NotRemoved,
    Observation,
    Removal,
    Residue,
    Statement,
    guard,
)
from purge.targets import Targets
from purge_adapters import _sqlite
from purge_adapters._sql_settings import SqlSettings


class SqlAdapter(Adapter[SqlSettings]):
    """The rows of one table or several, with what is below them."""

    info: ClassVar[AdapterInfo] = AdapterInfo(
        name="sql",
        summary="rows of tables in an SQLite file",
        evidence=EvidenceKind.BYTES,
        actions=frozenset({Action.DELETE, Action.BLANK, Action.REPORT}),
        extra="sql",
        modules=("sqlalchemy",),
    )
    Settings: ClassVar[type] = SqlSettings

    def footprint(self) -> tuple[Path, ...]:
        """The database and the files that SQLite keeps beside it."""
        from purge_adapters._sql_sqlite import database_path
        from purge_adapters._sqlite_files import JOURNAL, WAL, beside

        path = database_path(self.site, self.settings.url)
        return (path, beside(path, WAL), beside(path, JOURNAL))

    def check(self) -> Iterator[Statement]:
        """Say what is true of the database, the table and its surroundings; see the contract."""
        from purge_adapters._sql_check import check

        yield from check(self.site, self.settings)

    def find(self, targets: Targets) -> Iterator[Finding]:
        """Yield the rows that hold a target; see the contract."""
        from purge_adapters._sql_find import find
        from purge_adapters._sql_rows import Tables
        from purge_adapters._sql_sqlite import database_path, read_schema, statements
        from purge_adapters._sql_tables import lay_out

        path = database_path(self.site, self.settings.url)
        with (
            _sqlite.reading(path, at_leisure=targets.needs_texts) as connection,
            statements(connection) as core,
        ):
            layouts = lay_out(self.site, self.settings, read_schema(connection))
            found = find(Tables(core, layouts), self.site.name, self.site.action, targets)
        yield from found

    def remove(self, removals: Sequence[Removal]) -> Iterator[NotRemoved]:
        """Take the rows and what is below them out, in one transaction; see the contract."""
        guard(removals)
        from purge_adapters._sql_remove import Remover
        from purge_adapters._sql_rows import Tables
        from purge_adapters._sql_sqlite import database_path, read_schema, statements
        from purge_adapters._sql_tables import lay_out

        path = database_path(self.site, self.settings.url)
        with (
            _sqlite.writing(path, self.settings.lock_timeout) as connection,
            statements(connection) as core,
        ):
            connection.execute("BEGIN IMMEDIATE")
            layouts = lay_out(self.site, self.settings, read_schema(connection))
            left = Remover(connection, Tables(core, layouts), self.site.action).remove(removals)
            connection.execute("COMMIT")
        yield from left

    def sanitize(self, residue: Sequence[Residue]) -> Iterator[NotRemoved | NotChecked]:
        """Overwrite, checkpoint, merge or rewrite, as residue calls for; see the contract."""
        from purge_adapters._sql_sanitize import sanitize
        from purge_adapters._sql_sqlite import database_path

        path = database_path(self.site, self.settings.url)
        yield from sanitize(path, residue, self.settings.lock_timeout)

    def residue(self, targets: Targets) -> Iterator[Observation]:
        """Yield the copies that outlive removal in the files; see the contract."""
        from purge_adapters._sql_residue import residue

        yield from residue(self.site, self.settings, targets)
