"""Words that somebody deleted earlier, written otherwise than they are asked for now.

No trace of such a record is known, so that its bytes can only be found by reading the free space of
the file as text. A database that deletes without overwriting keeps them there.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest

import purge

ASKED = "Åsa keeps the café’s spare key 7731"
WRITTEN = {
    "straight quote": "Åsa keeps the café's spare key 7731",
    "upper case": "ÅSA KEEPS THE CAFÉ'S SPARE KEY 7731",
    "decomposed": unicodedata.normalize("NFD", "Åsa keeps the café's spare key 7731"),
    "JSON": json.dumps({"said": "Åsa keeps the café's spare key 7731"}),
}
CHURN = """
import sys, sqlite3
import chromadb
from chromadb.config import Settings
client = chromadb.PersistentClient(sys.argv[1], Settings(anonymized_telemetry=False))
made = client.create_collection("memories", embedding_function=None)
made.add(ids=["kept"], embeddings=[[1.0, 2.0]], documents=["another thing altogether"])
made.add(ids=["gone"], embeddings=[[3.0, 4.0]], documents=[sys.stdin.read()])
made.delete(ids=["gone"])
"""


def stands_in(folder: Path, text: str) -> bool:
    forms = (text.encode(), text.encode("utf-16-le"), json.dumps(text)[1:-1].encode())
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(form in path.read_bytes() for path in files for form in forms)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("form", WRITTEN)
def test_in_sqlite(tmp_path: Path, form: str, encoding: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with closing(sqlite3.connect(data / "m.db", isolation_level=None)) as db:
        db.execute(f"PRAGMA encoding = '{encoding}'")
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("CREATE TABLE m (id TEXT PRIMARY KEY, content TEXT)")
        db.execute("INSERT INTO m VALUES ('kept', 'another thing altogether')")
        db.execute("INSERT INTO m VALUES ('now', ?)", (ASKED,))
        db.execute("INSERT INTO m VALUES ('gone', ?)", (WRITTEN[form],))
        db.execute("DELETE FROM m WHERE id = 'gone'")
    assert stands_in(data, WRITTEN[form]), "the test must plant what it looks for"
    (tmp_path / "purge.yaml").write_text(
        "purge: 1\nname: t\nsites:\n"
        "  m: {adapter: sql, url: 'sqlite:///data/m.db', table: m, id: id}\n"
    )
    outcome = purge.open(tmp_path / "purge.yaml").request([purge.phrase(ASKED)], apply=True)
    assert outcome.state == "confirmed-deleted"
    assert not stands_in(data, WRITTEN[form])
    assert stands_in(data, "another thing altogether")


@pytest.mark.parametrize("form", ["straight quote", "decomposed"])
def test_in_chroma(tmp_path: Path, form: str) -> None:
    data = tmp_path / "data"
    worker = [sys.executable, "-c", CHURN, str(data)]
    subprocess.run(worker, input=WRITTEN[form].encode(), check=True, capture_output=True)
    # The queue is emptied as a busy application empties it, so that only free space is left.
    with closing(sqlite3.connect(data / "chroma.sqlite3", isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("DELETE FROM embeddings_queue WHERE id = 'gone'")
        db.execute(
            "INSERT INTO embedding_fulltext_search(embedding_fulltext_search) VALUES ('optimize')"
        )
    assert stands_in(data, WRITTEN[form]), "the test must plant what it looks for"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text(json.dumps({"id": "1", "text": ASKED}) + "\n")
    (tmp_path / "purge.yaml").write_text(
        "purge: 1\nname: t\nsites:\n"
        "  logs: {adapter: jsonl, path: logs, id: id}\n"
        "  c: {adapter: chroma, path: data, collections: [memories]}\n"
    )
    outcome = purge.open(tmp_path / "purge.yaml").request([purge.phrase(ASKED)], apply=True)
    assert outcome.state == "confirmed-deleted", outcome.steps
    assert not stands_in(data, WRITTEN[form])
    assert stands_in(data, "another thing altogether")
