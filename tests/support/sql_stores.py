"""One SQLite database for a test, and the ``sql`` adapter taken through the order of a run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from purge.adapter import (
    Action,
    Control,
    Match,
    NotChecked,
    NotRemoved,
    Removal,
    Residue,
    Site,
    Statement,
)
from purge.shapes import validate
from purge.targets import Target, TargetKind, Targets
from purge_adapters.sql import SqlAdapter

SITE = "memories"
SECRET = "the spare brasskeyling lies under the third flowerpot"
OTHER = "the winch on the east quay needs two hands and a glove"
TABLE = "CREATE TABLE memories (id TEXT PRIMARY KEY, body TEXT, topic TEXT)"


@dataclass(slots=True)
class Run:
    """What was seen in one run."""

    matches: tuple[Match, ...]
    left: tuple[NotRemoved, ...] = ()
    back: tuple[Match, ...] = ()
    before: tuple[object, ...] = ()
    """What the look for residue saw after removal and before any clean-up."""
    undone: tuple[object, ...] = ()
    after: tuple[object, ...] = ()

    @property
    def residue(self) -> tuple[Residue, ...]:
        return of(Residue, self.after)

    @property
    def is_clean(self) -> bool:
        """Whether the core would say that it is confirmed."""
        controls = of(Control, self.after)
        return (
            not (self.back or self.residue or of(NotChecked, self.after) or self.undone)
            and bool(controls)
            and all(control.passed for control in controls)
        )


@dataclass(slots=True)
class Store:
    """A database in a folder. ``settings`` and ``site`` are those of the manifest."""

    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    site: dict[str, Any] = field(default_factory=dict)
    pragmas: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.folder / "memories.db"

    def connect(self) -> sqlite3.Connection:
        """Connect as an application whose SQLite does not overwrite what it frees."""
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=0.1)
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        for pragma in self.pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def run(self, *statements: str | tuple[str, Sequence[Any]]) -> list[Any]:
        """Run statements as an application; return the rows of the last one."""
        rows: list[Any] = []
        with closing(self.connect()) as connection:
            for each in statements:
                text, values = (each, ()) if isinstance(each, str) else each
                rows = connection.execute(text, values).fetchall()
        return rows

    def open(self, action: Action = Action.DELETE) -> SqlAdapter:
        raw = {"url": "sqlite:///memories.db", "table": "memories", "lock_timeout": 0.2}
        site = Site(SITE, self.folder, action=action, **self.site)
        return SqlAdapter(site, validate(SqlAdapter.Settings, {**raw, **self.settings}))

    def check(self) -> list[Statement]:
        with self.open() as adapter:
            return list(adapter.check())

    def find(self, targets: Targets, action: Action = Action.DELETE) -> tuple[object, ...]:
        with self.open(action) as adapter:
            return tuple(adapter.find(targets))

    def ids(self, targets: Targets, action: Action = Action.DELETE) -> list[str]:
        return sorted(match.id for match in of(Match, self.find(targets, action)))

    def matches(self, targets: Targets, action: Action = Action.DELETE) -> tuple[Match, ...]:
        return tuple(
            replace(match, handle=json.loads(json.dumps(match.handle)))
            for match in of(Match, self.find(targets, action))
        )

    def remove(
        self, matches: Iterable[Match], action: Action = Action.DELETE
    ) -> tuple[NotRemoved, ...]:
        removals = [Removal(match, "01J", datetime.now(UTC)) for match in matches]
        with self.open(action) as adapter:
            return tuple(adapter.remove(removals))

    def residue(
        self, targets: Targets, matches: Iterable[Match] = (), action: Action = Action.DELETE
    ) -> tuple[object, ...]:
        traces = {SITE: tuple(match.trace for match in matches)}
        with self.open(action) as adapter:
            return tuple(adapter.residue(Targets(targets.all, traces)))

    def sanitize(self, residue: Iterable[object]) -> tuple[object, ...]:
        fixable = [item for item in of(Residue, residue) if item.fixable]
        if not fixable:
            return ()
        with self.open() as adapter:
            return tuple(adapter.sanitize(fixable))

    def purge(
        self, targets: Targets, action: Action = Action.DELETE, *, knowing: Sequence[Match] = ()
    ) -> Run:
        """Go through a whole run."""
        run = Run(self.matches(targets, action))
        known = (*knowing, *run.matches)
        if run.matches:
            run.left = self.remove(run.matches, action)
        run.back = tuple(
            match for match in self.matches(targets, action) if match.readability.value != "blanked"
        )
        run.before = self.residue(targets, known, action)
        run.undone = self.sanitize(run.before)
        run.after = self.residue(targets, known, action)
        return run

    def contents(self) -> dict[str, bytes]:
        """Return the bytes of every file in the folder."""
        return {
            path.name: path.read_bytes() for path in sorted(self.folder.iterdir()) if path.is_file()
        }

    def holding(self, text: str) -> list[str]:
        """Return the files in which a text stands, in any encoding of a database."""
        forms = [text.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
        return [
            name for name, data in self.contents().items() if any(form in data for form in forms)
        ]


def of(kind: type[Any], items: Iterable[object]) -> tuple[Any, ...]:
    """Return the items of one kind."""
    return tuple(item for item in items if isinstance(item, kind))


def by_id(*values: str, scope: Mapping[str, str] | None = None) -> Targets:
    """Return targets that name records by id."""
    return Targets(
        Target(key, TargetKind.ID, value, SITE, scope or {}) for key, value in enumerate(values)
    )


def phrase(value: str, **scope: str) -> Targets:
    """Return a target that names records by what they say."""
    return Targets([Target(0, TargetKind.PHRASE, value, None, scope)])


def lineage(source: str, *values: str) -> Targets:
    """Return targets that name what derives from records of a site."""
    return Targets(
        Target(key, TargetKind.LINEAGE, value, source) for key, value in enumerate(values)
    )


def subject(value: str) -> Targets:
    """Return a target that names the records of a person."""
    return Targets([Target(0, TargetKind.SUBJECT, value)])


def plant(store: Store, *before: str, journal: str = "DELETE", rows: int = 40) -> None:
    """Make a table with the secret between neighbours, some of which are long."""
    store.run(*before, f"PRAGMA journal_mode = {journal}", TABLE)
    store.pragmas = (f"journal_mode = {journal}",)
    store.settings |= {"text": ["body"], "metadata": ["topic"]}
    fill(store, rows)


def fill(store: Store, rows: int) -> None:
    with closing(store.connect()) as connection:
        connection.execute("BEGIN")
        for at in range(rows):
            text = f"{OTHER}, number {at}. " * (200 if at % 10 == 0 else 1)
            insert(connection, f"mem-neighbour-{at:04}", text, "quay")
        insert(connection, "mem-of-the-key", SECRET, "keys of a house")
        connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, name: str, body: str, topic: str) -> None:
    connection.execute("INSERT INTO memories VALUES (?, ?, ?)", (name, body, topic))


def named(items: tuple[object, ...]) -> list[str]:
    return [item.where for item in of(Residue, items)]
