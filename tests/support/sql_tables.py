"""Databases with several tables behind one site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from purge.adapter import Match
from tests.support.sql_stores import Run, Store

SECRET = "Ilmari hid the boathouse key behind the tar barrel"
NEAR = "Ilmari hid the boathouse key behind the tar barrels"


def store(folder: Path, described: Any, *statements: str, **site: Any) -> Store:
    """Return a database with some tables, and a site over it."""
    made = Store(folder, {"table": None, "lock_timeout": 0.2, **described}, site)
    made.run(*statements)
    return made


def insert(made: Store, table: str, *rows: Sequence[Any]) -> None:
    for row in rows:
        made.run((f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row))


def clean(run: Run) -> Run:
    assert run.left == ()
    assert run.is_clean, (run.back, run.after, run.undone)
    return run


def ids(made: Store, table: str) -> list[str]:
    return [row[0] for row in made.run(f"SELECT id FROM {table} ORDER BY id")]


def pieces(matches: Sequence[Match]) -> dict[tuple[str, str], int]:
    return {(match.part, match.id): match.pieces for match in matches}
