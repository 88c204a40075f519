"""A memory in several real stores, with a manifest and the command line run in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from purge.cli.app import main


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The document that it printed."""
        return dict(json.loads(self.out))

    def step(self, site: str) -> dict[str, Any]:
        """Return what its document says of one site."""
        (found,) = (step for step in self.json["steps"] if step["site"] == site)
        return dict(found)

    def states(self) -> dict[str, str]:
        """Return the states by site."""
        return {step["site"]: step["state"] for step in self.json["steps"]}

    def problem(self, site: str) -> str | None:
        """Return the code of a site's problem."""
        said = self.step(site)["problem"]
        return said and str(said["code"])


@dataclass(frozen=True, slots=True)
class Places:
    """A folder with a manifest."""

    folder: Path

    def manifest(self, sites: Mapping[str, Mapping[str, Any]], **more: Any) -> None:
        """Write the manifest; JSON is YAML."""
        told = {"purge": 1, "name": "places", "sites": sites, **more}
        (self.folder / "purge.yaml").write_text(json.dumps(told))

    def lines(self, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
        """Write a log."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    def read(self, name: str) -> list[dict[str, Any]]:
        """Read a log."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]

    def sql(self, name: str, *statements: str | tuple[str, Any]) -> list[Any]:
        """Run statements as an application; return the rows of the last one."""
        rows: list[Any] = []
        with closing(sqlite3.connect(self.folder / name, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = OFF")
            for each in statements:
                text, values = (each, ()) if isinstance(each, str) else each
                rows = connection.execute(text, values).fetchall()
        return rows

    def run(self, *arguments: str, **environment: str) -> Ended:
        """Run the command line."""
        out, err = io.StringIO(), io.StringIO()
        words = ["purge", *arguments]
        code: object = 0
        with (
            self._here(words, environment),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                code = ended.code
        number = code if isinstance(code, int) else 0 if code is None else 1
        return Ended(number, out.getvalue(), err.getvalue())

    def ask(self, *arguments: str) -> Ended:
        """Run a command that prints a document."""
        return self.run(*arguments, "--json")

    def forget(self, *arguments: str) -> Ended:
        """Run an applied request."""
        return self.ask("request", *arguments, "--apply")

    @contextlib.contextmanager
    def _here(self, words: list[str], environment: Mapping[str, str]) -> Iterator[None]:
        more = {"COLUMNS": "200", **environment}
        kept = {name: value for name, value in os.environ.items() if name != "PURGE_MANIFEST"}
        with (
            contextlib.chdir(self.folder),
            mock.patch.object(sys, "argv", words),
            mock.patch.dict(os.environ, {**kept, **more}, clear=True),
        ):
            yield
