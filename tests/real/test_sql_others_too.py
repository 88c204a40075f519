"""A trigger that would take rows nobody asked for: nothing is removed, and it is said."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import purge
from purge.state import ProblemCode, State

WORDS = "always moor the boat at berth nine"


def test_rows_that_a_trigger_would_take_stay(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE m (id TEXT PRIMARY KEY, content TEXT, grp TEXT)")
        db.execute(
            "CREATE TRIGGER t AFTER DELETE ON m BEGIN DELETE FROM m WHERE grp = old.grp; END"
        )
        rows = [("one", WORDS, "g"), ("two", "an innocent row", "g"), ("three", "other", "h")]
        db.executemany("INSERT INTO m VALUES (?, ?, ?)", rows)
    (tmp_path / "purge.yaml").write_text(
        "purge: 1\nname: t\nsites:\n  m: {adapter: sql, url: 'sqlite:///m.db', table: m, id: id}\n"
    )
    outcome = purge.open(tmp_path / "purge.yaml").request([purge.phrase(WORDS)], apply=True)
    with closing(sqlite3.connect(tmp_path / "m.db")) as db:
        assert len(db.execute("SELECT * FROM m").fetchall()) == 3
    problem = outcome.steps[0].problem
    assert problem is not None
    assert problem.code is ProblemCode.UNSUPPORTED
    assert outcome.state is State.ACCEPTED
