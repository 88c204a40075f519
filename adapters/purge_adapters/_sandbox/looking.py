"""A look at the sandbox that owes nothing to purge: plain clients, plain files, own rules.

It copies the folder first and looks at the copy, so that looking changes nothing. Two looks:
what a reader of the stores would find, and what a reader of the bytes would find.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
import struct
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from purge_adapters._sandbox.embeddings import embed
from purge_adapters._sandbox.stores import COLLECTION, run_embeddings
from purge_adapters._sandbox.story import LESSON, PHRASE

SITES: Final[Mapping[str, str]] = {
    "raw-logs": "data/logs",
    "notes": "data/notes",
    "memories": "data/memories.db",
    "embeddings": "data/chroma",
    "summaries": "data/summaries",
}
"""Where each site of the manifest lies that is made of files."""
CACHE: Final = "redis"
"""Where Redis keeps its files."""

_BORDER: Final = re.compile(r"\n[ \t]*\n|\n(?=- )")
_PREFIX: Final = re.compile(r"^[ \t]*(?:(?:>|#+|[-*])[ \t]+)*", re.MULTILINE)


def look(folder: Path, phrase: str = PHRASE) -> Mapping[str, int]:
    """Return, by site, how many records or passages hold the phrase for a reader.

    Whole words, in any letter case, composed or not, over line breaks.
    """
    return count(read(folder), phrase)


def read(folder: Path) -> Mapping[str, list[list[str]]]:
    """Return, by site, every record or passage that a reader gets: the strings of each."""
    with tempfile.TemporaryDirectory(prefix="sandbox-look-") as place:
        copy = Path(place)
        shutil.copytree(folder / "data", copy / "data")
        logs = (line for path in _files(copy / SITES["raw-logs"]) for line in _lines(path))
        return {
            "raw-logs": [list(_strings(line)) for line in logs],
            "notes": list(_passages(copy / SITES["notes"])),
            "memories": _rows(copy / SITES["memories"]),
            "embeddings": [[text] for text in _documents(copy / SITES["embeddings"])],
            "summaries": list(_passages(copy / SITES["summaries"])),
        }


def count(found: Mapping[str, list[list[str]]], phrase: str = PHRASE) -> Mapping[str, int]:
    """Return, by site, how many of the records hold the phrase."""
    pattern = re.compile(rf"(?<!\w){re.escape(_plain(phrase))}(?!\w)")
    return {
        site: sum(any(pattern.search(_plain(text)) for text in record) for record in records)
        for site, records in found.items()
    }


def look_at_bytes(folder: Path) -> Mapping[str, int]:
    """Return, by site, how often the wrong lesson stands in the bytes of any file.

    As UTF-8, composed and not, over line breaks, as UTF-16, as JSON escapes, and as its vector.
    Deleted rows, queues and free pages are bytes too, so there may be more than a reader finds.
    Of the servers only Redis has files that show their bytes: restic encrypts its own, and those
    of the S3 server are nobody's business but its own.
    """
    places = dict(SITES)
    if (folder / CACHE).is_dir():
        places["cache"] = CACHE
    return {site: sum(_count(path) for path in _files(folder / at)) for site, at in places.items()}


def _count(path: Path) -> int:
    data = _data(path)
    vector = struct.pack("<64f", *embed(LESSON))
    return len(_BYTES.findall(data)) + data.count(vector)


def _byte_forms() -> Iterator[bytes]:
    """Yield a pattern for each way of writing the phrase, "timeslot" left out."""
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, PHRASE)
        escaped = json.dumps(text)[1:-1]
        for written, encoding in (
            (text, "utf-8"),
            (text, "utf-16-le"),
            (text, "utf-16-be"),
            (escaped, "ascii"),
            (json.dumps(escaped)[1:-1], "ascii"),
        ):
            pattern = re.escape(written.encode(encoding))
            if encoding == "utf-8":
                pattern = pattern.replace(re.escape(b" "), _SPACE)
            yield pattern + b"(?!" + re.escape("slot".encode(encoding)) + b")"


_SPACE: Final = b"(?:[ \t\r\n>]|\xe3\x80\x80)+"
_BYTES: Final = re.compile(b"|".join(_byte_forms()), re.IGNORECASE)


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(path for path in place.rglob("*") if path.is_file())
    # A database has companions: -wal, -shm, -journal.
    return sorted(place.parent.glob(f"{place.name}*"))


def _data(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def _lines(path: Path) -> list[str]:
    return [line for line in _data(path).decode().split("\n") if line.strip()]


def _passages(folder: Path) -> Iterator[list[str]]:
    """Yield each paragraph, bullet and quote, without the marks that begin its lines."""
    for path in _files(folder):
        for passage in _BORDER.split(path.read_text(encoding="utf-8")):
            yield [_PREFIX.sub("", passage)]


def _rows(path: Path) -> list[list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM memories").fetchall()
    return [[value for value in row if isinstance(value, str)] for row in rows]


def _documents(folder: Path) -> list[str]:
    return [record["document"] for record in run_embeddings(["read", str(folder), COLLECTION])]


def _strings(value: object) -> Iterator[str]:
    """Yield every string of a JSON text, and of JSON texts inside it."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            inner = None
        if isinstance(inner, dict | list):
            yield from _strings(inner)
        else:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def holds(content: bytes, phrase: str = PHRASE) -> bool:
    """Whether a text holds the phrase for a reader, over line breaks and marks of quotes."""
    text = _PREFIX.sub("", content.decode("utf-8", "replace"))
    return re.search(rf"{re.escape(_plain(phrase))}(?!\w)", _plain(text)) is not None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
