"""The ``redis`` adapter keeps the whole contract, on real servers of several makes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import pytest
import redis

from purge.adapter import Action
from purge.targets import NeedleKind
from purge.testing import (
    METADATA,
    OTHER,
    SCOPE,
    SOURCE,
    AdapterContract,
    Breakage,
    Harness,
    Planted,
)
from purge_adapters.redis import RedisAdapter
from tests.support import redis_servers
from tests.support.redis_servers import Server

USER = "app"
SECRET = "s e:cr/et@é"
ANSWERED = "a running server answers from memory; damaged files are tried in tests/real"


class Imported(RedisAdapter):
    """The adapter, from a module that imports the driver: killed children do not pay for it."""


def as_json(record: Planted) -> bytes:
    said: dict[str, Any] = {"id": record.id, "body": record.text}
    said |= {"project": record.scope[SCOPE]} if record.scope else {}
    said |= {"person": record.subject} if record.subject is not None else {}
    said |= {"topic": record.metadata[METADATA]} if record.metadata else {}
    for site, name in ((SOURCE, "sources"), (OTHER, "notes")):
        if site in record.parents:
            said[name] = list(record.parents[site])
    return json.dumps(said, ensure_ascii=False).encode()


def from_fields(said: Mapping[str, Any]) -> Planted:
    parents = {SOURCE: tuple(said.get("sources", ())), OTHER: tuple(said.get("notes", ()))}
    return Planted(
        said["id"],
        said.get("body", ""),
        {SCOPE: said["project"]} if "project" in said else {},
        said.get("person"),
        {site: ids for site, ids in parents.items() if ids},
        {METADATA: said["topic"]} if "topic" in said else {},
    )


class RedisHarness(Harness):
    """Strings with JSON, one for each record, in a server that keeps both kinds of files.

    Dumps are not compressed, so that their bytes can be seen without the adapter's decoder.
    """

    adapter = Imported
    kill_points = 3
    unbreakable: ClassVar[Mapping[Breakage, str]] = {
        Breakage.CORRUPT: ANSWERED,
        Breakage.TORN: ANSWERED,
    }
    options: ClassVar[tuple[str, ...]] = ("--appendonly", "yes")
    dumps: ClassVar[bool] = True
    rights: ClassVar[tuple[str, ...]] = ("~*", "+@all")
    server: Server

    def make(self) -> None:
        options = ("--rdbcompression", "no", "--appendfsync", "no", *self.options)
        self.server = Server(self.folder, options).start()
        with self.server.client() as client:
            client.execute_command("ACL", "SETUSER", USER, "on", f">{SECRET}", *self.rights)

    def stop(self) -> None:
        self.server.stop()

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {
            "url": self.server.url_of(USER, SECRET),
            "keys": "mem:{id}",
            "text": ["body"],
            "socket_timeout": 0.5,
            "action": action.value,
            "scope": {SCOPE: "project"},
            "subject": "person",
            "derived_from": {SOURCE: "sources", OTHER: "notes"},
        }

    def plant(self, records: Sequence[Planted]) -> None:
        with self.server.client() as client:
            pipe = client.pipeline(transaction=False)
            for record in records:
                self.put(pipe, record)
            pipe.execute()
            if self.dumps:
                client.execute_command("SAVE")

    def put(self, pipe: Any, record: Planted) -> None:
        pipe.set(b"mem:" + record.id.encode(), as_json(record), ex=5000)

    def change(self, record: Planted) -> None:
        with self.server.client() as client:
            self.put(client, record)

    def read(self) -> Mapping[str, Planted]:
        with self.server.client() as client:
            return {record.id: record for record in self.records(client)}

    def records(self, client: Any) -> Iterator[Planted]:
        for key in client.scan_iter(match="mem:*", count=1000):
            assert client.ttl(key) > 0
            yield from_fields(json.loads(client.get(key)))

    def break_it(self, kind: Breakage) -> AbstractContextManager[None]:
        return {
            Breakage.MISSING: self._without_socket,
            Breakage.LOCKED: self._paused,
            Breakage.READ_ONLY: self._reading,
        }[kind]()

    @contextmanager
    def _without_socket(self) -> Iterator[None]:
        path = self.server.socket_path
        os.rename(path, f"{path}.away")
        try:
            yield
        finally:
            os.rename(f"{path}.away", path)

    @contextmanager
    def _paused(self) -> Iterator[None]:
        with self.server.client() as client:
            client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
            try:
                yield
            finally:
                client.execute_command("CLIENT", "UNPAUSE")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self.server.client() as client:
            client.execute_command("ACL", "SETUSER", USER, "-@write")
            try:
                yield
            finally:
                client.execute_command("ACL", "SETUSER", USER, "+@write")


class TestRedis(AdapterContract):
    harness = RedisHarness


class HashHarness(RedisHarness):
    """Hashes, in a server that keeps only an append-only file, all of it as commands."""

    kill_points = 2
    dumps = False
    options = ("--appendonly", "yes", "--aof-use-rdb-preamble", "no")

    def put(self, pipe: Any, record: Planted) -> None:
        key = b"mem:" + record.id.encode()
        said = json.loads(as_json(record))
        pipe.delete(key)
        pipe.hset(
            key, mapping={k: v if isinstance(v, str) else json.dumps(v) for k, v in said.items()}
        )
        pipe.expire(key, 5000)

    def records(self, client: Any) -> Iterator[Planted]:
        for key in client.scan_iter(match="mem:*", count=1000):
            assert client.ttl(key) > 0
            said = {k.decode(): v.decode() for k, v in client.hgetall(key).items()}
            lists = {k: json.loads(said[k]) for k in ("sources", "notes") if k in said}
            yield from_fields(said | lists)


@pytest.mark.long
class TestRedisHashes(AdapterContract):
    harness = HashHarness


class ListHarness(RedisHarness):
    """The items of one list, in a server that keeps only a dump."""

    kill_points = 2
    options: ClassVar[tuple[str, ...]] = ()
    key: ClassVar[bytes] = b"history [all]*\xff"

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {**super().settings(action), "keys": "history*", "record": "element", "id": "id"}

    def put(self, pipe: Any, record: Planted) -> None:
        pipe.lpush(self.key, as_json(record))

    def change(self, record: Planted) -> None:
        with self.server.client() as client:
            items = client.lrange(self.key, 0, -1)
            (at,) = (i for i, item in enumerate(items) if json.loads(item)["id"] == record.id)
            client.lset(self.key, at, as_json(record).decode())

    def records(self, client: Any) -> Iterator[Planted]:
        for item in client.lrange(self.key, 0, -1):
            yield from_fields(json.loads(item))


@pytest.mark.long
class TestRedisLists(AdapterContract):
    harness = ListHarness


class StreamHarness(ListHarness):
    """The entries of one stream, with a group of consumers, in a server with both files."""

    options = ("--appendonly", "yes")
    key = b"history"

    def make(self) -> None:
        super().make()
        with self.server.client() as client:
            client.xgroup_create(self.key, "group", id="0", mkstream=True)

    def settings(self, action: Action) -> Mapping[str, Any]:
        return {**super().settings(action), "id": "data.id"} | {
            "text": ["data.body"],
            "scope": {SCOPE: "data.project"},
            "subject": "data.person",
            "derived_from": {SOURCE: "data.sources", OTHER: "data.notes"},
        }

    def put(self, pipe: Any, record: Planted) -> None:
        pipe.xadd(self.key, {"data": as_json(record)})

    def change(self, record: Planted) -> None:
        with self.server.client() as client:
            for name, said in client.xrange(self.key):
                if json.loads(said[b"data"])["id"] == record.id:
                    client.xdel(self.key, name)
            self.put(client, record)

    def records(self, client: Any) -> Iterator[Planted]:
        for _, said in client.xrange(self.key):
            yield from_fields(json.loads(said[b"data"]))


@pytest.mark.long
class TestRedisStreams(AdapterContract):
    harness = StreamHarness


class ManagedHarness(RedisHarness):
    """A server that refuses everything but data, as a managed one does."""

    kill_points = 2
    visible: ClassVar[frozenset[NeedleKind]] = frozenset()
    invisible = "a managed server shows neither its files nor where they are"
    rights = ("~mem:*", "+@all", "-@admin", "-@dangerous", "-@scripting")

    def contents(self) -> Mapping[str, bytes]:
        return {}


@pytest.mark.long
class TestRedisManaged(AdapterContract):
    harness = ManagedHarness


def test_the_harness_talks_to_the_driver_itself() -> None:
    assert redis.__name__ == "redis"
    assert RedisAdapter.__module__ == "purge_adapters.redis"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_servers, "PROGRAM", "no-such-redis-server")
        with pytest.raises(FileNotFoundError, match="make tools"):
            redis_servers.program()
