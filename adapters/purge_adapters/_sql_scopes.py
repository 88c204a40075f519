"""What the rows to which a row belongs say of its scope. Read by bound values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from purge_adapters._sql_layout import Layout
from purge_adapters._sql_rows import Row, Rows, said
from purge_adapters._sql_values import ids_at

if TYPE_CHECKING:
    import sqlalchemy


def scopes_above(
    core: sqlalchemy.Connection, layout: Layout, rows: Sequence[Row]
) -> list[dict[str, str]]:
    """Return for each row what the rows say of the scope to which it belongs."""
    found: list[dict[str, str]] = [{} for _ in rows]
    for above in layout.above:
        child, upper = above.child, Rows(core, above.layout)
        owners = list(upper.owners(child, upper.layout.table, rows))
        higher = scopes_above(core, above.layout, owners) if above.layout.above else []
        by_key: dict[tuple[str | None, ...], dict[str, str]] = {}
        for at, owner in enumerate(owners):
            own = {
                key: said_here[0]
                for key, (name, path) in above.layout.scope.items()
                if len(said_here := ids_at(upper.value(owner, name), path)) == 1
            }
            by_key[said(upper.layout.table, owner, child.parent_columns)] = {
                **(higher[at] if higher else {}),
                **own,
            }
        for at, row in enumerate(rows):
            for key, value in by_key.get(said(child.table, row, child.columns), {}).items():
                found[at].setdefault(key, value)
    return found
