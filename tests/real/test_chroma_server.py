"""The Chroma adapter against a real ``chroma run``."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings

from purge.adapter import Action, Readability
from purge.errors import Permanent, Refused, Transient
from purge.state import ProblemCode
from purge.targets import NOTHING, Target, TargetKind, Targets
from purge_adapters.chroma import ChromaSettings
from tests.real.chroma_stores import NAME, Store, answers, ids, phrase, served, vectors_of


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server for all tests of this file; each has a database of its own."""
    with served(tmp_path_factory.mktemp("server")) as (found, _):
        yield found


class Client:
    """An application that talks to the server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.database = uuid.uuid4().hex
        chromadb.AdminClient(
            Settings(
                chroma_api_impl="chromadb.api.fastapi.FastAPI",
                chroma_server_host="localhost",
                chroma_server_http_port=port,
                anonymized_telemetry=False,
            )
        ).create_database(self.database)

    @contextmanager
    def collection(self, name: str = NAME) -> Iterator[Any]:
        client: Any = chromadb.HttpClient(
            "localhost",
            self.port,
            settings=Settings(anonymized_telemetry=False),
            database=self.database,
        )
        try:
            yield client.get_or_create_collection(name, embedding_function=None)
        finally:
            client.close()

    def store(self, root: Path, **more: Any) -> Store:
        url = f"http://localhost:{self.port}"
        return Store(root, url=url, database=self.database, **more)


def fill(client: Client, count: int) -> None:
    vectors = vectors_of(count, 4)
    with client.collection() as collection:
        for at in range(0, count, 1000):
            span = range(at, min(count, at + 1000))
            collection.add(
                ids=[f"memory-{n}" for n in span],
                embeddings=vectors[at : span.stop],
                documents=[f"Note {n} is on shelf {n}." for n in span],
                metadatas=[{"owner": f"keeper-{n}"} for n in span],
            )


def test_a_record_goes_from_every_read_and_its_bytes_cannot_be_seen(
    tmp_path: Path, port: int
) -> None:
    client = Client(port)
    fill(client, 30)
    store = client.store(tmp_path)
    named = ids("memory-5")
    (match,) = store.matches(named)
    assert len(match.trace.vectors) == 1
    residue, controls, _ = store.look(named, [match])
    assert [item.problem for item in residue] == [ProblemCode.BYTES_NOT_VISIBLE]
    assert [control.passed for control in controls if control.on_target] == [True, True]
    assert store.remove([match]) == []
    assert store.matches(named) == []
    residue, controls, gaps = store.look(named, [match])
    assert [(item.problem, item.until, item.fixable) for item in residue] == [
        (ProblemCode.BYTES_NOT_VISIBLE, None, False)
    ]
    assert gaps == []
    with client.collection() as collection:
        assert collection.count() == 29
        assert collection.get(ids=["memory-4"])["documents"] == ["Note 4 is on shelf 4."]


def test_every_page_is_read_and_every_batch_fits(tmp_path: Path, port: int) -> None:
    client = Client(port)
    fill(client, 1030)
    store = client.store(tmp_path)
    found, gaps, examined = store.find(phrase("Note 1029 is on shelf"))
    assert [match.id for match in found] == ["memory-1029"]
    assert gaps == []
    assert sum(part.records for part in examined) == 1030
    many = store.matches(ids(*(f"memory-{n}" for n in range(1010))))
    assert len(many) == 1010
    assert store.remove(many) == []
    with client.collection() as collection:
        kept = sorted(f"memory-{n}" for n in range(1010, 1030))
        assert sorted(collection.get(include=[])["ids"]) == kept


def test_a_removal_that_was_broken_off_half_way_is_finished(tmp_path: Path, port: int) -> None:
    """Killed after the record was written over and before it was deleted."""
    client = Client(port)
    fill(client, 5)
    store = client.store(tmp_path)
    found = store.matches(ids("memory-3"))
    with client.collection() as collection:
        collection.update(
            ids=["memory-3"],
            embeddings=[[1000.0] * 4],
            documents=[""],
            metadatas=[{"owner": None}],
        )
    assert store.remove(found) == []
    assert store.matches(ids("memory-3")) == []


def test_a_record_is_blanked(tmp_path: Path, port: int) -> None:
    client = Client(port)
    fill(client, 5)
    site: Mapping[str, Any] = {"action": Action.BLANK, "subject": "owner"}
    store = client.store(tmp_path, site=site)
    assert store.remove(store.matches(ids("memory-3"))) == []
    about = Targets([Target(0, TargetKind.SUBJECT, "keeper-3")])
    (match,) = store.matches(about)
    assert match.readability is Readability.BLANKED
    with client.collection() as collection:
        got = collection.get(ids=["memory-3"], include=["documents", "embeddings"])
    assert got["documents"] == [""]
    assert len(set(got["embeddings"][0])) == 1


def test_one_id_in_two_collections_is_a_record_of_each(tmp_path: Path, port: int) -> None:
    client = Client(port)
    for name, text in (("chats", "The blue crab pot is here."), ("notes", "Another thing.")):
        with client.collection(name) as collection:
            collection.add(ids=["1"], embeddings=[[1.0, 0.0]], documents=[text])
    store = client.store(tmp_path)
    assert [match.id for match in store.matches(ids("1"))] == ["1", "1"]
    assert len({match.part for match in store.matches(ids("1"))}) == 2
    said = store.matches(phrase("blue crab pot"))
    assert store.remove(said) == []
    (other,) = store.matches(ids("1"))
    assert other.where == "collection 'notes'"
    # The search returns the other one, which is no sign of the one that is gone.
    residue, controls, _ = store.look(ids("1"), said)
    assert [item.problem for item in residue] == [ProblemCode.BYTES_NOT_VISIBLE]
    assert all(control.passed for control in controls)


def test_nothing_found_sends_no_delete(tmp_path: Path, port: int) -> None:
    """CHR-03 and MEM-08: Chroma answers ``deleted: 1`` for an id that never was."""
    client = Client(port)
    fill(client, 5)
    store = client.store(tmp_path)
    assert store.matches(ids("no-such-id")) == []
    with pytest.raises(Refused):
        store.remove([])
    with client.collection() as collection:
        assert collection.delete(ids=["no-such-id"]) == {"deleted": 1}
        assert collection.count() == 5


def test_check_says_what_is_there_and_what_is_missing(tmp_path: Path, port: int) -> None:
    client = Client(port)
    fill(client, 5)
    said = client.store(tmp_path, collections=(NAME, "memoris")).check()
    assert any(f"'{NAME}' holds 5 records" in statement.sentence for statement in said)
    assert ["memoris" in statement.sentence for statement in said if not statement.ok] == [True]
    assert any("not that no byte is left" in statement.sentence for statement in said)


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    store = Store(tmp_path, host="127.0.0.1", port=free)
    for act in (lambda: store.find(NOTHING), lambda: store.residue(NOTHING), store.check):
        with pytest.raises(Transient) as raised:
            act()
        assert raised.value.problem == ProblemCode.UNREACHABLE


def test_a_database_that_is_not_there_is_said(tmp_path: Path, port: int) -> None:
    store = Store(tmp_path, url=f"http://localhost:{port}", database="no-such-database")
    with pytest.raises(Permanent) as raised:
        store.find(NOTHING)
    assert raised.value.problem is ProblemCode.UNREACHABLE
    assert answers(port)


@contextmanager
def listening(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Accept connections, keep what is asked and give one answer to all (``b""``: none)."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                held.append(connection)
                if answer:
                    asked.append(connection.recv(65536))
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], asked
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=10)
        for connection in held:
            connection.close()


def test_a_server_that_never_answers_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with listening(b"") as (found, _):
        store = Store(tmp_path, host="127.0.0.1", port=found, timeout=0.3)
        with pytest.raises(Transient) as raised:
            store.find(NOTHING)
    assert raised.value.problem == ProblemCode.BUSY


def test_the_token_is_sent_and_never_shown(tmp_path: Path) -> None:
    refusal = (
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 55\r\n"
        b'Connection: close\r\n\r\n{"error":"AuthorizationError","message":"Not for you!"}  '
    )
    with listening(refusal) as (found, asked):
        store = Store(
            tmp_path, host="127.0.0.1", port=found, token="hush-92", headers={"X-Team": "blue"}
        )
        with pytest.raises(Permanent) as raised:
            store.find(NOTHING)
    assert raised.value.problem is ProblemCode.NO_PERMISSION
    said = b"".join(asked).lower()
    assert b"authorization: bearer hush-92" in said
    assert b"x-team: blue" in said
    assert "hush-92" not in repr(store.settings) + repr(store.adapter()) + str(raised.value)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"path": "chroma", "url": "http://localhost:8000"},
        {"url": "localhost:8000"},
        {"url": "http://user:word@localhost:8000"},
        {"url": "http://localhost:8000/api"},
    ],
)
def test_a_place_that_cannot_be_meant_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"name one place|'url'"):
        ChromaSettings(**raw)
