"""The words are found wherever a record can hold them: in values, in keys, in metadata, in names.

And a hit says how it was found and in which field, without the words themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Action, Match, NotChecked, ProblemCode
from purge.matching import How
from purge.targets import TargetKind, Targets
from purge.testing.case import phrase, target
from tests.real import chroma_stores
from tests.real.markdown_notes import Notes
from tests.support import s3_servers, sql_stores
from tests.support.jsonl_logs import Logs
from tests.support.redis_servers import Server
from tests.support.redis_sites import site
from tests.support.s3_buckets import Bucket

WORDS = "the spare key in the blue tin"
SAID = f"Ask for {WORDS}."
FOLDED = "Ask for THE SPARE\u3000KEY in the blue tin."
OTHER = "the spare keyring in the blue tin"
Look = Callable[[Targets], list[Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


def of_jsonl(folder: Path, record: Mapping[str, Any]) -> Look:
    logs = Logs(folder)
    logs.write({"id": "x", **record}, {"id": "other", "text": OTHER, OTHER: OTHER})
    return lambda targets: [*logs.case().find(targets).matches]


def of_sql(folder: Path, columns: Mapping[str, Any]) -> Look:
    store = sql_stores.Store(folder)
    store.run(
        sql_stores.TABLE,
        (
            "INSERT INTO memories VALUES ('x', ?, ?)",
            (columns.get("body", OTHER), columns.get("topic", OTHER)),
        ),
        ("INSERT INTO memories VALUES ('other', ?, ?)", (OTHER, json.dumps({OTHER: OTHER}))),
    )
    return lambda targets: [*store.find(targets)]


def of_chroma(folder: Path, record: tuple[str | None, Mapping[str, Any] | None]) -> Look:
    store = chroma_stores.Store(folder)
    chroma_stores.plant(store.folder, {"x": record, "other": (OTHER, {OTHER: OTHER})})
    return lambda targets: [item for part in store.find(targets) for item in part]


def of_s3(folder: Path, put: tuple[bytes, Mapping[str, Any]]) -> Look:
    del folder
    bucket = Bucket(s3_servers.moto(), s3_servers.moto().bucket())
    said, more = put
    bucket.put("m/x", said, **more)
    bucket.put("m/other", OTHER.encode(), Metadata={"about": OTHER})
    settings = {"format": "object", "key": "m/{id}", "id": None, "prefix": "m/"}
    return lambda targets: [*bucket.adapter(**settings).find(targets)]


def of_markdown(folder: Path, note: str) -> Look:
    notes = Notes(folder, {"x.md": note, "other.md": f"---\n{OTHER}: {OTHER}\n---\n\n{OTHER}\n"})
    notes.record = "file"
    return notes.look


PLACES: Mapping[str, tuple[Callable[[Path, Any], Look], Any]] = {
    "jsonl: a value": (of_jsonl, {"text": SAID}),
    "jsonl: a key": (of_jsonl, {"seen": {SAID: 1}}),
    "jsonl: metadata": (of_jsonl, {"meta": {"tags": ["a", SAID]}}),
    "sql: a column": (of_sql, {"body": SAID}),
    "sql: another column": (of_sql, {"topic": SAID}),
    "sql: a value in JSON": (of_sql, {"topic": json.dumps({"a": [SAID]})}),
    "sql: a key in JSON": (of_sql, {"topic": json.dumps({"a": {SAID: 1}})}),
    "chroma: the document": (of_chroma, (SAID, {"a": "b"})),
    "chroma: metadata": (of_chroma, ("nothing", {"about": SAID})),
    "chroma: a key of metadata": (of_chroma, ("nothing", {SAID: "yes"})),
    "s3: the content": (of_s3, (SAID.encode(), {})),
    "s3: a key in JSON": (of_s3, (json.dumps({SAID: 1}).encode(), {})),
    "s3: metadata": (of_s3, (b"nothing", {"Metadata": {"about": SAID}})),
    "s3: a tag": (of_s3, (b"nothing", {"Tagging": "about=" + SAID.replace(" ", "%20")})),
    "markdown: the text": (of_markdown, f"# One\n\n{SAID}\n"),
    "markdown: over a line break": (
        of_markdown,
        SAID.replace(" key", "\n> key").join(("> ", "\n")),
    ),
    "markdown: front matter": (of_markdown, f"---\nabout: {SAID}\n---\n\nnothing\n"),
    "markdown: a key of front matter": (of_markdown, f"---\n{WORDS}: yes\n---\n\nnothing\n"),
    "markdown: emphasis within a word": (
        of_markdown,
        "Ask for **the spa**re key in the blue tin\n",
    ),
    "markdown: entities": (of_markdown, "Ask for the sp&#97;re key&nbsp;in the blue tin\n"),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_words_are_found_in(tmp_path: Path, name: str) -> None:
    plant, record = PLACES[name]
    found = plant(tmp_path, record)(phrase(WORDS))
    (match,) = (item for item in found if isinstance(item, Match))
    assert Path(match.id).stem == "x"
    assert [item for item in found if isinstance(item, NotChecked)] == []
    (hit,) = match.hits
    assert hit.how in (How.EXACT, How.FOLDED)
    assert "spare" not in hit.field + match.where


REDIS: Mapping[str, tuple[str, Any]] = {
    "a string": ("set", ("m:x", SAID)),
    "a value in JSON": ("set", ("m:x", json.dumps({"a": [{"b": SAID}]}))),
    "the name of a key": ("set", (f"m:{SAID}", "nothing")),
    "a field": ("hset", ("m:x", "about", SAID)),
    "the name of a field": ("hset", ("m:x", SAID, "yes")),
    "an element": ("rpush", ("m:x", "nothing", SAID)),
    "a member": ("sadd", ("m:x", SAID)),
}


@pytest.mark.parametrize("name", REDIS)
def test_the_words_are_found_in_redis(tmp_path: Path, server: Server, name: str) -> None:
    command, values = REDIS[name]
    with server.client() as client:
        client.flushall()
        getattr(client, command)(*values)
        client.hset("m:other", OTHER, OTHER)
    (match,) = site(tmp_path, url=server.url, keys="m:*").find(phrase(WORDS)).matches
    (hit,) = match.hits
    assert hit.how in (How.EXACT, How.FOLDED)
    assert "spare" not in hit.field + match.where


def test_a_hit_says_how_it_was_found(tmp_path: Path) -> None:
    logs = Logs(tmp_path, derived_from={"source": "of"})
    logs.write(
        {"id": "by-id", "text": "a"},
        {"id": "by-lineage", "text": "b", "of": "s1"},
        {"id": "exact", "text": SAID},
        {"id": "folded", "text": FOLDED},
        {"id": "in-pieces", "text": [{"t": "the spa"}, {"t": "re key in the blue tin"}]},
    )
    targets = Targets(
        [
            target(TargetKind.ID, "by-id", key=0),
            target(TargetKind.LINEAGE, "s1", key=1, site="source"),
            target(TargetKind.PHRASE, WORDS, key=2),
        ]
    )
    found = logs.case().find(targets)
    hits = {
        match.id: [(hit.key, hit.how, hit.field) for hit in match.hits] for match in found.matches
    }
    assert hits == {
        "by-id": [(0, How.ID, "$id")],
        "by-lineage": [(1, How.LINEAGE, "source")],
        "exact": [(2, How.EXACT, "text")],
        "folded": [(2, How.FOLDED, "text")],
        "in-pieces": [(2, How.EXACT, "text.0.t")],
    }


def test_blanking_empties_the_pieces_that_say_it_and_no_other(tmp_path: Path) -> None:
    pieces = ["Hello. ", "Ask for the spa", "re key in the blue tin", ". Goodbye"]
    logs = Logs(tmp_path, text=["title"])
    logs.write({"id": "x", "body": [{"t": said} for said in pieces], "title": "note"})
    case = logs.case(Action.BLANK)
    purged = case.purge(phrase(WORDS))
    assert (purged.left, case.find(phrase(WORDS)).matches) == ((), ())
    said = json.loads(logs.bytes_of())
    assert [piece["t"] for piece in said["body"]] == ["Hello. ", "", "", ". Goodbye"]


@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp", "koi8_r", "gb18030"])
def test_what_is_in_an_unknown_encoding_is_said_and_never_called_clean(
    tmp_path: Path, encoding: str
) -> None:
    """Nobody can tell what such a line says; the log is not proved to be free of the words."""
    words = {"koi8_r": "запасной ключ под горшком", "gb18030": "备用钥匙在花盆下面的盒子里"}
    said = words.get(encoding, "予備の鍵は桜の木の下にある")
    logs = Logs(tmp_path)
    logs.write(json.dumps({"id": "x", "text": said}, ensure_ascii=False).encode(encoding) + b"\n")
    looked = logs.case().purge(phrase(said))
    for gaps in (looked.found.not_checked, looked.after.not_checked):
        assert [gap.problem for gap in gaps] == [ProblemCode.CORRUPT]


def test_rows_of_sql_in_pieces_are_blanked_piece_by_piece(tmp_path: Path) -> None:
    store = sql_stores.Store(tmp_path, settings={"id": "id", "text": ["topic"]})
    pieces = ["Hello. ", "Ask for the spa", "re key in the blue tin", ". Goodbye"]
    said = json.dumps([{"t": each} for each in pieces])
    store.run(sql_stores.TABLE, ("INSERT INTO memories VALUES ('x', ?, 'note')", (said,)))
    found = store.matches(phrase(WORDS), Action.BLANK)
    assert store.remove(found, Action.BLANK) == ()
    with closing(store.connect()) as connection:
        ((body, topic),) = connection.execute("SELECT body, topic FROM memories").fetchall()
    assert [piece["t"] for piece in json.loads(body)] == ["Hello. ", "", "", ". Goodbye"]
    assert topic == ""


def test_metadata_whose_name_or_value_says_it_is_blanked_in_chroma(tmp_path: Path) -> None:
    """Hits name such a key by its place alone, and it is found again by that."""
    store = chroma_stores.Store(tmp_path, site={"action": Action.BLANK})
    metadata = {"a b": "kept", SAID: "yes", "c d": SAID, "z": "kept"}
    chroma_stores.plant(store.folder, {"x": ("nothing", metadata), "other": (OTHER, None)})
    found = store.matches(phrase(WORDS))
    assert store.remove(found) == []
    assert store.matches(phrase(WORDS)) == []
    records = chroma_stores.see(store.folder).records
    assert records["x"] == ("", {"a b": "kept", "c d": "", "z": "kept"})
    assert records["other"] == (OTHER, None)
