"""Writing the stores of the sandbox: files, SQLite and Chroma, as an application would.

Nothing here knows how purge reads them.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from purge_adapters._sandbox.conversations import SESSIONS
from purge_adapters._sandbox.memories import KEPT, MEMORIES, pinned_for
from purge_adapters._sandbox.papers import NOTES, SUMMARIES
from purge_adapters._sandbox.story import (
    DAYS,
    MERGED_ID,
    Client,
    Memory,
    Session,
    Turn,
    day_of,
    identity,
    moment_of,
)

COLLECTION: Final = "memories"
_EMBEDDINGS: Final = Path(__file__).with_name("embeddings.py")

_SCHEMA: Final = """\
CREATE TABLE memories (
  id TEXT PRIMARY KEY,
  content TEXT NOT NULL,
  project TEXT NOT NULL,
  pinned INTEGER NOT NULL DEFAULT 0,
  source_id TEXT,
  created_at TEXT NOT NULL
);
CREATE VIRTUAL TABLE memories_fts USING fts5(content, content='memories', content_rowid='rowid');
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
  INSERT INTO memories_fts(rowid, content) VALUES (new.rowid, new.content);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
  INSERT INTO memories_fts(memories_fts, rowid, content)
  VALUES ('delete', old.rowid, old.content);
END;
CREATE TRIGGER memories_changed AFTER UPDATE OF content ON memories BEGIN
  INSERT INTO memories_fts(memories_fts, rowid, content)
  VALUES ('delete', old.rowid, old.content);
  INSERT INTO memories_fts(rowid, content) VALUES (new.rowid, new.content);
END;
"""


def run_embeddings(arguments: Sequence[str], given: object = None) -> Any:
    """Run the program that opens the vector store, and return what it answers, decoded.

    Raises:
        RuntimeError: it failed; its own words follow.
    """
    # -P keeps the folder of the script off the path, where its neighbours would hide libraries.
    ended = subprocess.run(
        [sys.executable, "-P", str(_EMBEDDINGS), *arguments],
        input=json.dumps(given),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"The vector store of the sandbox could not be used:\n{ended.stderr}")
    return json.loads(ended.stdout) if ended.stdout else None


def write_logs(folder: Path, today: date) -> int:
    """Write one file of chat records a day, the oldest one gzipped; return how many records."""
    folder.mkdir(parents=True)
    count = 0
    for number in range(1, DAYS + 1):
        lines = [
            line for session in SESSIONS if session.day == number for line in _lines(session, today)
        ]
        count += len(lines)
        data = "".join(f"{line}\n" for line in lines).encode()
        name = f"{day_of(today, number)}.jsonl"
        if number == 1:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
        else:
            (folder / name).write_bytes(data)
    return count


def _lines(session: Session, today: date) -> Iterator[str]:
    turns = (Turn("system", pinned_for(session)), *session.turns)
    for position, turn in enumerate(turns):
        text = session.written(turn.text)
        record = {
            "uuid": _uuid(session, position, turn),
            "timestamp": moment_of(today, session, position).isoformat(),
            "session": identity(f"{session.day} {session.start}"),
            "project": session.project,
            "cwd": f"/srv/{session.project}",
            "user": session.user,
            "client": str(session.client),
            "message": {
                "role": turn.role,
                "content": [{"type": "text", "text": text}] if turn.in_blocks else text,
            },
        }
        yield json.dumps(record, ensure_ascii=session.client is Client.PHONE)


def _uuid(session: Session, position: int, turn: Turn) -> str:
    return identity(turn.key or f"{session.day} {session.start} {position}")


def write_papers(notes: Path, summaries: Path, today: date) -> int:
    """Write the Markdown files; return how many."""
    dates = {f"DAY{number}": f"{day_of(today, number)}" for number in range(1, DAYS + 1)}
    for folder, papers in ((notes, NOTES), (summaries, SUMMARIES)):
        folder.mkdir(parents=True)
        for name, text in papers.items():
            for placeholder, value in dates.items():
                name, text = name.replace(placeholder, value), text.replace(placeholder, value)
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return len(NOTES) + len(SUMMARIES)


def write_memories(path: Path, today: date) -> int:
    """Write the memories into SQLite as an application does; return how many it remembers.

    ``secure_delete`` is off, as most builds have it, so that the row which the assistant merged
    away leaves its bytes behind.
    """
    rows = [
        (
            memory.id,
            memory.content,
            memory.project,
            int(memory.pinned),
            identity(memory.source) if memory.source else None,
            _created(memory, today),
        )
        for memory in MEMORIES
    ]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = OFF")
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
        connection.execute("DELETE FROM memories WHERE id = ?", (MERGED_ID,))
    return len(KEPT)


def write_embeddings(folder: Path, today: date) -> int:
    """Write one vector for each memory into Chroma; return how many are left."""
    store = {
        "collection": COLLECTION,
        "add": [
            {
                "id": _vector_id(memory.id),
                "document": memory.content,
                "metadata": {
                    "memory_id": memory.id,
                    "project": memory.project,
                    "created": _created(memory, today),
                },
            }
            for memory in MEMORIES
        ],
        "delete": [_vector_id(MERGED_ID)],
    }
    run_embeddings(["write", str(folder)], store)
    return len(KEPT)


def _vector_id(memory_id: str) -> str:
    return f"{memory_id}#0"


def _created(memory: Memory, today: date) -> str:
    for session in SESSIONS:
        for position, turn in enumerate(session.turns, start=1):
            if memory.source and turn.key == memory.source:
                return moment_of(today, session, position).isoformat()
    return f"{day_of(today, 1) - timedelta(days=memory.age)}T12:00:00+09:00"
