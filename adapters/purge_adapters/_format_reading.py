"""Reading the description of a format: from a manifest or a preset, in the same language.

Everything that is wrong is said at once, each with its place. No sentence made here holds more
than what the description itself says. This module does no input or output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

from purge_adapters._format_model import (
    Count,
    FileKind,
    Format,
    Gone,
    Hash,
    Last,
    Layout,
    Leave,
    Link,
    PartKind,
    RecordKind,
    Taking,
    Unique,
)
from purge_adapters._format_routes import Route, RouteFault

__all__ = ["FRAME", "FormatFault", "read_format"]

FRAME: Final = "(around)"
"""The name of the kind for what lies around the records of a document."""
_LINES: Final = (".jsonl", ".ndjson")
E = TypeVar("E", bound=StrEnum)


class FormatFault(ValueError):
    """A description is not written as one is. The sentence lists everything that is wrong."""


def read_format(raw: Mapping[str, Any], name: str = "format") -> Format:
    """Return what a description says.

    Args:
        raw: the mapping.
        name: what it is called in a fault.

    Raises:
        FormatFault: it says something that is not understood; with everything that is wrong.
    """
    reader = _Reader()
    found = reader.format(raw, name)
    if reader.faults:
        raise FormatFault(" ".join(reader.faults))
    return found


class _Reader:
    """One reading, and what was wrong on the way."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def fault(self, at: str, sentence: str) -> None:
        self.faults.append(f"{at}: {sentence}")

    # --- the description ----------------------------------------------------------------------

    def format(self, raw: object, at: str) -> Format:
        if isinstance(raw, Mapping) and "files" not in raw:
            raw = {"files": _every_file(raw)}
        said = self.mapping(raw, at, ("files",))
        files = tuple(
            self.file(item, f"{at}.files[{n}]")
            for n, item in enumerate(self.sequence(said.get("files"), f"{at}.files", needed=True))
        )
        known = {record.name for file in files for record in file.records if not record.is_frame}
        for number, file in enumerate(files):
            for record in file.records:
                self.check_names(record, known, f"{at}.files[{number}]")
        return Format(at, files)

    def check_names(self, record: RecordKind, known: set[str], at: str) -> None:
        wanted = [name for link in record.links for name in link.to]
        wanted += [count.records for count in record.counts if count.records]
        for name in wanted:
            if name not in known:
                self.fault(at, f"no record is called '{name}'.{_nearest(name, known)}")

    def file(self, raw: object, at: str) -> FileKind:
        said = self.mapping(raw, at, ("path", "layout", "begins", "records", "links", "counts"))
        path = self.text(said.get("path"), f"{at}.path", needed=True)
        begins = self.text(said.get("begins"), f"{at}.begins")
        default = Layout.EMBEDDED if begins else _layout(path)
        layout = self.one_of(said.get("layout"), Layout, default, f"{at}.layout")
        if (layout is Layout.EMBEDDED) != bool(begins):
            self.fault(at, "'begins' goes with 'layout: embedded': the words before the value.")
        records = [
            self.record(item, f"{at}.records[{n}]")
            for n, item in enumerate(self.sequence(said.get("records"), f"{at}.records"))
        ]
        frame = RecordKind(
            FRAME,
            Route("", ()),
            links=self.links(said.get("links"), f"{at}.links"),
            counts=self.counts(said.get("counts"), f"{at}.counts"),
            is_frame=True,
        )
        if not records:
            self.fault(at, "'records' is missing: where the records stand.")
        return FileKind(path, layout, (*records, frame), begins)

    def record(self, raw: object, at: str) -> RecordKind:
        keys = ("name", "at", "where", "id", "text", "time", "removal", "unique", "pair")
        more = ("joined", "columns", "parts", "links", "counts", "hashes")
        said = self.mapping(raw, at, (*keys, *more))
        return RecordKind(
            name=self.text(said.get("name"), f"{at}.name") or "record",
            at=self.route(said.get("at", ""), f"{at}.at"),
            where=self.condition(said.get("where"), f"{at}.where"),
            id=self.routes(said.get("id"), f"{at}.id"),
            text=self.routes(said.get("text"), f"{at}.text"),
            time=self.route(said["time"], f"{at}.time") if said.get("time") else None,
            taking=self.one_of(said.get("removal"), Taking, Taking.DELETE, f"{at}.removal"),
            unique=self.one_of(said["unique"], Unique, Unique.SITE, f"{at}.unique")
            if "unique" in said
            else None,
            joined=self.routes(said.get("joined"), f"{at}.joined"),
            columns=self.texts(said.get("columns"), f"{at}.columns"),
            pair=self.routes(said.get("pair"), f"{at}.pair"),
            parts=tuple(
                self.part(item, f"{at}.parts[{n}]")
                for n, item in enumerate(self.sequence(said.get("parts"), f"{at}.parts"))
            ),
            links=self.links(said.get("links"), f"{at}.links"),
            counts=self.counts(said.get("counts"), f"{at}.counts"),
            hashes=tuple(
                self.hash(item, f"{at}.hashes[{n}]")
                for n, item in enumerate(self.sequence(said.get("hashes"), f"{at}.hashes"))
            ),
        )

    def part(self, raw: object, at: str) -> PartKind:
        if isinstance(raw, str):
            raw = {"at": raw}
        said = self.mapping(raw, at, ("at", "where", "leave", "last", "signed", "pair"))
        route = self.route(said.get("at"), f"{at}.at")
        last = Last.REMOVE if route.names_elements else Last.KEEP
        return PartKind(
            at=route,
            where=self.condition(said.get("where"), f"{at}.where"),
            leave=self.one_of(said.get("leave"), Leave, Leave.NOTHING, f"{at}.leave"),
            last=self.one_of(said.get("last"), Last, last, f"{at}.last"),
            signed=self.truth(said.get("signed"), f"{at}.signed"),
            pair=self.routes(said.get("pair"), f"{at}.pair"),
        )

    def links(self, raw: object, at: str) -> tuple[Link, ...]:
        return tuple(self.link(item, f"{at}[{n}]") for n, item in enumerate(self.sequence(raw, at)))

    def link(self, raw: object, at: str) -> Link:
        keys = ("field", "to", "when_gone", "via", "entry", "last", "otherwise", "normalized")
        said = self.mapping(raw, at, keys)
        field = self.route(said.get("field"), f"{at}.field")
        gone = self.one_of(said.get("when_gone"), Gone, Gone.KEEP, f"{at}.when_gone")
        if "when_gone" not in said:
            self.fault(at, f"'when_gone' is missing; it is one of: {', '.join(Gone)}.")
        entry = self.route(said["entry"], f"{at}.entry") if said.get("entry") else field
        if field.steps[: len(entry.steps)] != entry.steps:
            self.fault(f"{at}.entry", "the field does not lie within it.")
        otherwise = self.one_of(said.get("otherwise"), Gone, Gone.NULL, f"{at}.otherwise")
        if otherwise is Gone.RELINK:
            self.fault(f"{at}.otherwise", "cannot be 'relink': nothing is left to point to.")
        return Link(
            field=field,
            to=self.texts(said.get("to"), f"{at}.to", needed=True),
            when_gone=gone,
            via=self.route(said["via"], f"{at}.via") if said.get("via") else field,
            entry=entry,
            last=self.one_of(said.get("last"), Last, Last.KEEP, f"{at}.last"),
            otherwise=otherwise,
            normalized=self.truth(said.get("normalized"), f"{at}.normalized"),
        )

    def counts(self, raw: object, at: str) -> tuple[Count, ...]:
        return tuple(
            self.count(item, f"{at}[{n}]") for n, item in enumerate(self.sequence(raw, at))
        )

    def count(self, raw: object, at: str) -> Count:
        said = self.mapping(raw, at, ("field", "of", "records", "by"))
        if ("of" in said) == ("records" in said):
            self.fault(at, "say what is counted: either 'of' (a route) or 'records' (a name).")
        return Count(
            field=self.route(said.get("field"), f"{at}.field"),
            of=self.route(said["of"], f"{at}.of") if said.get("of") else None,
            records=self.text(said.get("records"), f"{at}.records") or None,
            by=self.route(said["by"], f"{at}.by") if said.get("by") else None,
        )

    def hash(self, raw: object, at: str) -> Hash:
        said = self.mapping(raw, at, ("field", "of", "algorithm"))
        algorithm = self.text(said.get("algorithm"), f"{at}.algorithm", needed=True)
        if algorithm and algorithm not in hashlib.algorithms_guaranteed - {
            "shake_128",
            "shake_256",
        }:
            self.fault(f"{at}.algorithm", "is none that is known (md5, sha1, sha256, ...).")
        return Hash(
            self.route(said.get("field"), f"{at}.field"),
            self.route(said.get("of"), f"{at}.of"),
            algorithm,
        )

    # --- the pieces ---------------------------------------------------------------------------

    def mapping(self, raw: object, at: str, keys: Sequence[str]) -> Mapping[str, Any]:
        if not isinstance(raw, Mapping):
            self.fault(at, "must be a mapping (key: value).")
            return {}
        for key in raw:
            if key not in keys:
                self.fault(at, f"unknown key '{key}'.{_nearest(str(key), keys)}")
        return raw

    def sequence(self, raw: object, at: str, *, needed: bool = False) -> Iterator[object]:
        if raw is None and not needed:
            return
        if not isinstance(raw, list | tuple) or (needed and not raw):
            self.fault(at, "must be a list with at least one entry." if needed else "is no list.")
            return
        yield from raw

    def text(self, raw: object, at: str, *, needed: bool = False) -> str:
        if isinstance(raw, str) and raw:
            return raw
        if raw is not None or needed:
            self.fault(at, "must be a text." if raw is not None else "is missing.")
        return ""

    def texts(self, raw: object, at: str, *, needed: bool = False) -> tuple[str, ...]:
        if raw is None and not needed:
            return ()
        many = raw if isinstance(raw, list | tuple) else [raw]
        return tuple(self.text(item, at, needed=needed) for item in many)

    def truth(self, raw: object, at: str) -> bool:
        if raw is not None and not isinstance(raw, bool):
            self.fault(at, "must be true or false.")
        return raw is True

    def one_of(self, raw: object, kind: type[E], default: E, at: str) -> E:
        if raw is None:
            return default
        try:
            return kind(str(raw))
        except ValueError:
            self.fault(at, f"is one of: {', '.join(kind)}.")
            return default

    def route(self, raw: object, at: str) -> Route:
        if not isinstance(raw, str):
            self.fault(at, "is missing: a route such as message.content[]." if raw is None else
                       "must be a route such as message.content[].")  # fmt: skip
            return Route("", ())
        try:
            return Route.read(raw)
        except RouteFault as fault:
            self.fault(at, str(fault))
            return Route("", ())

    def routes(self, raw: object, at: str) -> tuple[Route, ...]:
        if raw is None:
            return ()
        many = raw if isinstance(raw, list | tuple) else [raw]
        return tuple(self.route(item, at) for item in many)

    def condition(self, raw: object, at: str) -> dict[Route, tuple[object, ...] | None]:
        if raw is None:
            return {}
        if not isinstance(raw, Mapping):
            self.fault(at, "must be a mapping (field: value).")
            return {}
        found: dict[Route, tuple[object, ...] | None] = {}
        for field, wanted in raw.items():
            many = tuple(wanted) if isinstance(wanted, list | tuple) else (wanted,)
            found[self.route(field, f"{at}.{field}")] = None if wanted == "*" else many
        return found


def _every_file(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kinds of files of a description that names none: all, by their endings."""
    lines = [f"*{suffix}" for suffix in _LINES]
    return [{**raw, "path": path} for path in (*lines, "*.json")]


def _layout(path: str) -> Layout:
    name = PurePosixPath(path.removesuffix(".gz").removesuffix(".zst"))
    return Layout.LINES if name.suffix.lower() in _LINES else Layout.DOCUMENT


def _nearest(name: str, known: Sequence[str] | set[str]) -> str:
    close = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""
