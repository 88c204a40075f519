"""Taking records out of a database: checked again, children first, in one transaction.

By the numbers of rows that were read in this very transaction, and bound values; no statement
spells out a text. How many rows a statement says that it changed is never looked at.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Final

from purge.adapter import Action, NotRemoved, ProblemCode, Removal
from purge.errors import Permanent
from purge_adapters._sql_blank import update
from purge_adapters._sql_fulltext import Upkeep
from purge_adapters._sql_layout import Child
from purge_adapters._sql_records import WORDS, Way
from purge_adapters._sql_resolve import Bench, Doomed
from purge_adapters._sql_rows import Row, Tables, chunks, identity, naming, plain, said
from purge_adapters._sql_schema import Table

_OTHERS_TOO: Final = (
    "A trigger or a foreign key of the database changes which rows go: others with them, or none. "
    "Nothing was removed."
)
_FORBIDDEN: Final = "A constraint or a trigger of the database does not let the record go."

Going = dict[str, dict[tuple[object, ...], Row]]
"""By table, the rows that go, each once."""


class Remover:
    """Removes records of one site through one connection. Begins and ends no transaction.

    Args:
        connection: from :func:`purge_adapters._sqlite.writing`, in a transaction already.
        tables: the tables of the site through that connection.
        action: delete or blank.
    """

    def __init__(self, connection: sqlite3.Connection, tables: Tables, action: Action) -> None:
        self._connection = connection
        self._tables = tables
        self._benches = {rows.layout.part: Bench(rows, action) for rows in tables.each}
        self._upkeep = Upkeep(connection, tables.layouts)
        depths = tables.layouts.depths()
        self._order = sorted(tables.layouts.tables(), key=lambda table: -depths[table.name])
        """The tables, those first whose rows refer to others."""

    def remove(self, removals: Sequence[Removal]) -> tuple[NotRemoved, ...]:
        """Take the records out and return those that were left alone.

        Raises:
            Permanent: a plan was made for other tables.
        """
        left: list[NotRemoved] = []
        doomed: list[Doomed] = []
        by_part: dict[str, list[Removal]] = {}
        for removal in removals:
            part = removal.match.part.removesuffix(WORDS)
            by_part.setdefault(part, []).append(removal)
        for part, some in by_part.items():
            bench = self._benches.get(part)
            if bench is None:
                raise Permanent(
                    "A plan was made for tables that the site no longer has; make it again.",
                    problem=ProblemCode.UNSUPPORTED,
                )
            doomed.extend(bench.without_referred(list(bench.resolve(some, left)), left))
        if not doomed:
            return tuple(left)
        refused = self._try(doomed)
        if refused:
            # One at a time, so that one refusal does not spare the others.
            for each in doomed:
                if self._try([each]):
                    left.append(NotRemoved(each.removal.match, *refused))
        self._upkeep.finish()
        return tuple(left)

    def _try(self, doomed: Sequence[Doomed]) -> tuple[ProblemCode, str] | None:
        """Act on some records, or on none of them and say why."""
        from sqlalchemy.exc import IntegrityError

        self._connection.execute("SAVEPOINT purge")
        try:
            if self._act(doomed):
                self._connection.execute("RELEASE purge")
                return None
        except (IntegrityError, sqlite3.IntegrityError):
            if not self._connection.in_transaction:
                raise Permanent(
                    "A trigger of the database rolled everything back.",
                    problem=ProblemCode.UNSUPPORTED,
                ) from None
            self._connection.execute("ROLLBACK TO purge")
            self._connection.execute("RELEASE purge")
            return ProblemCode.UNSUPPORTED, _FORBIDDEN
        self._connection.execute("ROLLBACK TO purge")
        self._connection.execute("RELEASE purge")
        return ProblemCode.UNSUPPORTED, _OTHERS_TOO

    def _act(self, doomed: Sequence[Doomed]) -> bool:
        """Empty and delete; whether exactly the rows went that were to go."""
        for each in doomed:
            for piece in each.pieces:
                if piece.way is not Way.DELETE:
                    each.bench.blanks.blank(piece.whole, piece.way, piece.words, self._upkeep)
        going = self._going(doomed)
        if not going:
            return True
        # Rows of the site's other tables may not go by a trigger or foreign key either.
        counted = [
            table
            for table in self._order
            if table.name in going or any(rows.layout.table == table for rows in self._tables.each)
        ]
        before = [self._count(table) for table in counted]
        self._unlink(going)
        for table in self._order:
            if table.name in going:
                self._delete(table, list(going[table.name].values()))
        self._count_anew(going)
        return all(
            was - self._count(table) == len(going.get(table.name, ()))
            for table, was in zip(counted, before, strict=True)
        )

    def _going(self, doomed: Sequence[Doomed]) -> Going:
        found: Going = {}
        for each in doomed:
            own = each.bench.rows.layout.table
            for whole in each.going():
                found.setdefault(own.name, {})[identity(own, whole.row)] = whole.row
                for part in whole.below:
                    table = part.child.table
                    same = found.setdefault(table.name, {})
                    same.update((identity(table, row), row) for row in part.rows)
        return found

    def _unlink(self, going: Going) -> None:
        """Let go of the rows that go where a row that stays names one."""
        for rows in self._tables.each:
            gone = going.get(rows.layout.table.name, {}).values()
            for link in rows.layout.unlinks if gone else ():
                wanted = {said(rows.layout.table, row, (link.to,)) for row in gone}
                child = Child(link.table, (link.column,), (link.to,), declared=False)
                same = going.get(link.table.name, {})
                for row in list(rows.referring(child, wanted)):
                    is_meant = said(link.table, row, child.columns) in wanted
                    if is_meant and identity(link.table, row) not in same:
                        update(rows, link.table, row, {link.column: None}, self._upkeep)

    def _count_anew(self, going: Going) -> None:
        """Take the rows that went off the numbers that rows above them say."""
        for rows in self._tables.each:
            table = rows.layout.table
            for count in rows.layout.counts:
                child = count.child
                gone = list(going.get(child.table.name, {}).values())
                fewer = Counter(said(child.table, row, child.columns) for row in gone)
                place = table.names.index(count.column)
                for row in list(rows.owners(child, table, gone)):
                    number = row.values[place]
                    if isinstance(number, int):
                        less = fewer[said(table, row, child.parent_columns)]
                        new = {count.column: max(0, number - less)}
                        update(rows, table, row, new, self._upkeep)

    def _count(self, table: Table) -> int:
        import sqlalchemy

        counted = sqlalchemy.select(sqlalchemy.func.count()).select_from(plain(table))
        return int(self._tables.each[0].core.execute(counted).scalar_one())

    def _delete(self, table: Table, rows: Sequence[Row]) -> None:
        import sqlalchemy

        self._upkeep.before_delete(table, rows)
        for chunk in chunks(rows):
            for condition in naming(table, chunk):
                core = self._tables.each[0].core
                core.execute(sqlalchemy.delete(plain(table)).where(condition))
