"""A memory in five stores with canaries planted in it, and a look at it without ``purge``.

Everything is planted and read back by plain clients: json, sqlite3, chromadb, bytes. Nothing here
imports purge. All people and places are invented.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import zstandard

PHRASE: Final = "Åsa keeps the café’s spare key 7731-QX"
PLAIN: Final = "Åsa keeps the café's spare key 7731-QX"
ID: Final = "mem/7 %*[x]'\"\\#é"
ROW_NOTE: Final = "metadata-canary-row-5519"
VECTOR_NOTE: Final = "metadata-canary-vector-9120"
EARLIER: Final = "earlier-deleted-canary-3308 " + PLAIN
VECTOR: Final = [round(0.03125 * ((7 * i) % 29 - 14), 5) for i in range(24)]
NEAR: Final = (
    "Åsa keeps the café's spare key 7731-QXY",
    "the café's spare key",
    "Åsa keeps the cafés spare key 7731-QX",
)
COUNTS: Final = {"logs": 9, "notes": 2, "memories": 1, "vectors": 1, "summaries": 2}
"""How many records hold a canary or derive from one, by site."""

MANIFEST: Final = """
purge: 1
name: canaries
safety: {max_records: 40}
sites:
  logs: {adapter: jsonl, path: data/logs, id: uuid, text: [message.content]}
  notes: {adapter: markdown, path: data/notes, record: section}
  memories:
    adapter: sql
    url: sqlite:///data/memories.db
    table: memories
    id: id
    text: [content]
    derived_from: {logs: source_id}
  vectors:
    adapter: chroma
    path: data/chroma
    collections: [memories]
    derived_from: {memories: memory_id}
  summaries:
    adapter: markdown
    path: data/summaries
    record: block
    derived_from: {memories: derived_from}
"""


def written_forms() -> Iterator[str]:
    """JSON lines, each with the phrase in another written form."""

    def record(number: int, text: str, *, ascii: bool = False) -> str:
        body = {"uuid": f"log-{number}", "message": {"role": "user", "content": text}}
        return json.dumps(body, ensure_ascii=ascii)

    yield record(1, f"By the way: {PHRASE}.")
    yield record(2, PLAIN, ascii=True)
    yield record(3, unicodedata.normalize("NFD", PLAIN))
    yield record(4, PLAIN.upper())
    yield record(5, PLAIN.replace(" ", "\u3000"))
    yield record(6, json.dumps({"output": json.dumps([PLAIN])}))
    yield record(7, PLAIN.replace("spare key", "spare\nkey"))
    yield record(8, "x").replace('"x"', '["a", {"t": "' + PLAIN + '\u2028"}]')


def neighbours() -> Iterator[str]:
    """JSON lines that must stay, byte for byte."""
    for number, text in enumerate(NEAR):
        yield json.dumps({"uuid": f"near-{number}", "message": {"content": text}})
    yield '{"uuid": "log-1 ", "message":   {"content": "an id with a space", "n": 1.50e3}}'
    yield '{"uuid": "log-10", "message": {"content": "a longer id"}, "dup": 1, "dup": 2}'
    yield '{"uuid": "u2028", "message": {"content": "one\u2028record"}}'


def build(folder: Path) -> None:
    """Make all five stores and the manifest in ``folder``."""
    data = folder / "data"
    _logs(data / "logs")
    _papers(data)
    _memories(data / "memories.db")
    worker = [sys.executable, str(Path(__file__)), "vectors", str(data / "chroma")]
    subprocess.run(worker, check=True, capture_output=True)
    (folder / "purge.yaml").write_text(MANIFEST)


def _logs(folder: Path) -> None:
    (folder / "old").mkdir(parents=True)
    hits, rest = list(written_forms()), list(neighbours())
    lines = [line for pair in zip(hits, [*rest, *rest], strict=False) for line in pair]
    (folder / "day.jsonl").write_bytes(("\n".join(lines) + "\n" + '{"torn": "lin').encode())
    crlf = "\ufeff" + "\r\n".join(rest) + "\r\n"
    (folder / "crlf.jsonl").write_bytes(crlf.encode())
    packed = (hits[0].replace("log-1", "log-9") + "\n" + rest[0] + "\n").encode()
    (folder / "old" / "week.jsonl.gz").write_bytes(gzip.compress(packed))
    (folder / "old" / "month.jsonl.zst").write_bytes(
        zstandard.compress((rest[1] + "\n" + rest[2] + "\n").encode())
    )


def _papers(data: Path) -> None:
    notes, summaries = data / "notes", data / "summaries"
    notes.mkdir(parents=True)
    summaries.mkdir()
    wrapped = PLAIN.replace("spare key", "spare\r\nkey")
    (notes / "keys.md").write_bytes(
        f"# Keys\r\n\r\nThe bell is broken.\r\n\r\n## Spare\r\n\r\n> {wrapped}\r\n\r\n"
        f"## Other\r\n\r\n- {NEAR[0]}\r\n- the bell ^bell\r\n".encode()
    )
    (notes / "list.md").write_text(f"# List\n\n- {PHRASE}\n- {NEAR[1]}\n\n# Rest\n\nkept\n")
    (summaries / "week.md").write_text(
        f"# Week 48\n\nQuoted: {PLAIN}\n\nIn other words, a key is somewhere. "
        f"<!-- derived_from: {json.dumps([ID], ensure_ascii=False)} -->\n\n{NEAR[0]}\n"
    )


def _memories(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA secure_delete=OFF")
        db.executescript(
            """
            CREATE TABLE memories (n INTEGER PRIMARY KEY, id TEXT UNIQUE, content TEXT,
                                   note TEXT, source_id TEXT);
            CREATE VIRTUAL TABLE words USING fts5(content, content='memories', content_rowid='n');
            CREATE TRIGGER added AFTER INSERT ON memories BEGIN
              INSERT INTO words(rowid, content) VALUES (new.n, new.content);
            END;
            CREATE TRIGGER gone AFTER DELETE ON memories BEGIN
              INSERT INTO words(words, rowid, content) VALUES ('delete', old.n, old.content);
            END;
            """
        )
        insert = "INSERT INTO memories(id, content, note, source_id) VALUES (?, ?, ?, ?)"
        db.execute(insert, (ID, f"Remember: {PLAIN}. " * 40, ROW_NOTE, "log-1"))
        for number, text in enumerate(NEAR):
            db.execute(insert, (f"{ID}{number}", text, "kept-note-0001", "log-77"))
        db.execute(insert, (ID.rstrip("é") + "e\u0301", "a decomposed twin", "", "log-78"))
        db.execute(insert, ("gone", EARLIER, "", None))
        db.execute("DELETE FROM memories WHERE id = 'gone'")


def plant_vectors(path: Path) -> None:
    """Fill a Chroma folder; run in a process of its own, so that nothing stays open."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
    made = client.create_collection("memories", embedding_function=None, metadata={"k": "v"})
    ids = [f"near-{number}" for number in range(30)]
    near: list[Any] = [[((i * 13 + j * 7) % 31) / 31 for j in range(24)] for i in range(30)]
    made.add(
        ids=[*ids, ID, "gone"],
        embeddings=[*near, VECTOR, [x / 2 for x in VECTOR]],
        documents=[*(f"{NEAR[i % 3]} {i}" for i in range(30)), PLAIN, EARLIER],
        metadatas=[
            *({"memory_id": f"other-{i}", "note": "kept"} for i in range(30)),
            {"memory_id": ID, "note": VECTOR_NOTE},
            {"memory_id": "gone", "note": "earlier"},
        ],
    )
    made.delete(ids=["gone"])


def read_vectors(path: Path) -> dict[str, Any]:
    """Read a Chroma folder as an application does, by get and by query."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(path), Settings(anonymized_telemetry=False))
    made = client.get_collection("memories", embedding_function=None)
    got = made.get(include=["documents", "metadatas", "embeddings"])
    near = made.query(query_embeddings=[VECTOR], n_results=made.count())  # type: ignore[arg-type]  # a list of floats is accepted
    vectors = got["embeddings"]
    assert vectors is not None
    return {
        "records": sorted(
            [id, document, metadata, [float(x) for x in vector]]
            for id, document, metadata, vector in zip(
                got["ids"], got["documents"] or [], got["metadatas"] or [], vectors, strict=True
            )
        ),
        "query": sorted(near["ids"][0]),
        "count": made.count(),
        "metadata": made.metadata,
    }


def look(folder: Path) -> dict[str, Any]:
    """Read everything that must stay, through plain clients, on a copy where opening writes."""
    data = folder / "data"
    copy = folder / "look"
    shutil.copytree(data, copy)
    try:
        worker = [sys.executable, str(Path(__file__)), "read", str(copy / "chroma")]
        vectors = json.loads(subprocess.run(worker, check=True, capture_output=True).stdout)
        with closing(sqlite3.connect(copy / "memories.db")) as db:
            rows = db.execute("SELECT id, content, note, source_id FROM memories").fetchall()
            words = db.execute("SELECT count(*) FROM words WHERE words MATCH 'spare'").fetchone()
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        shutil.rmtree(copy)
    return {
        "logs": {
            str(path.relative_to(data)): decompress(path).split(b"\n")
            for path in sorted((data / "logs").rglob("*.jsonl*"))
        },
        "notes": {path.name: path.read_bytes() for path in sorted((data / "notes").iterdir())},
        "summaries": (data / "summaries" / "week.md").read_bytes(),
        "rows": sorted(rows),
        "words": words[0],
        "vectors": vectors,
    }


def decompress(path: Path) -> bytes:
    """The content of a file, out of gzip or zstd."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(content)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(content).read()
    return content


def needles() -> dict[str, list[bytes]]:
    """What must stand in no file, in every form in which it may be written."""
    texts = {
        "phrase": PLAIN,
        "curly": PHRASE,
        "upper": PLAIN.upper(),
        "decomposed": unicodedata.normalize("NFD", PLAIN),
        "wide": PLAIN.replace(" ", "\u3000"),
        "row note": ROW_NOTE,
        "vector note": VECTOR_NOTE,
        "earlier": "earlier-deleted-canary-3308",
    }
    forms = {
        name: [
            text.encode(),
            text.encode("utf-16-le"),
            json.dumps(text)[1:-1].encode(),
            json.dumps(json.dumps(text))[1:-1].encode(),
        ]
        for name, text in texts.items()
    }
    norm = sum(x * x for x in VECTOR) ** 0.5
    forms["vector"] = [
        struct.pack("<24f", *VECTOR),
        struct.pack("<24f", *(x / norm for x in VECTOR)),
    ]
    return forms


def canaries(folder: Path) -> dict[str, list[str]]:
    """Which canaries stand in which files below ``folder``, the ledger's included.

    Near misses hold the phrase as a part of a longer word; those places do not count.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "purge.yaml":
            content = decompress(path)
            for name, forms in needles().items():
                for form in forms:
                    if any(True for _ in places(content, form)):
                        found.setdefault(name, []).append(str(path.relative_to(folder)))
                        break
    return found


def places(content: bytes, form: bytes) -> Iterator[int]:
    """Yield where a form of a needle stands and is not the beginning of a near miss."""
    at = content.find(form)
    while at >= 0:
        if content[at + len(form) : at + len(form) + 2].strip(b"\0")[:1] not in (b"Y", b"y"):
            yield at
        at = content.find(form, at + 1)


def assert_neighbours(after: dict[str, Any], before: dict[str, Any]) -> None:
    """Two looks: whatever holds no canary is as it was, and what derives from one is gone."""
    hits = [line.encode() for line in written_forms()]
    hits.append(hits[0].replace(b"log-1", b"log-9"))
    for name, lines in before["logs"].items():
        assert after["logs"][name] == [line for line in lines if line not in hits], name
    assert after["rows"] == [row for row in before["rows"] if row[0] != ID]
    assert after["words"] == len(NEAR)
    vectors, had = after["vectors"], before["vectors"]
    assert vectors["records"] == [one for one in had["records"] if one[0] != ID]
    assert vectors["query"] == [id for id in had["query"] if id != ID]
    assert vectors["metadata"] == had["metadata"]
    keys, others = after["notes"]["keys.md"], after["notes"]["list.md"]
    assert b"The bell is broken.\r\n" in keys
    assert f"- {NEAR[0]}\r\n- the bell ^bell\r\n".encode() in keys
    assert b"# Rest\n\nkept\n" in others
    assert NEAR[0].encode() in after["summaries"]
    assert b"in other words" not in after["summaries"].lower()


if __name__ == "__main__":
    if sys.argv[1] == "vectors":
        plant_vectors(Path(sys.argv[2]))
    else:
        print(json.dumps(read_vectors(Path(sys.argv[2]))))  # noqa: T201 - read by the parent
