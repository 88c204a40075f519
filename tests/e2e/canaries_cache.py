"""A Redis server with canaries planted in it, and a look at it without ``purge``.

Planted and read by redis-py and as bytes of the server's own files. Nothing here imports purge.
"""

from __future__ import annotations

import gzip
import json
import unicodedata
from pathlib import Path
from typing import Any, Final

from tests.e2e.canaries import EARLIER, ID, NEAR, PHRASE, PLAIN
from tests.support.redis_servers import Server

OPTIONS: Final = (
    *("--appendonly", "yes", "--save", "3600 1", "--appendfsync", "always"),
    # Compressed, their bytes would prove nothing.
    *("--rdbcompression", "no"),
)
COUNTS: Final = {"cache": 11, "chats": 6}
"""How many records hold a canary or derive from one, by site."""
SITES: Final = """
  cache:
    adapter: redis
    url: "${REDIS_URL}"
    keys: "answer:*"
    derived_from: {memories: ids}
    when_source_purged: delete
  chats:
    adapter: redis
    url: "${REDIS_URL}"
    keys: "chat:*"
    record: element
"""
"""``cache`` loses whole keys, ``chats`` single elements; both lie in one server."""


def build(folder: Path) -> None:
    """Fill the files of a server in ``folder``, and leave it stopped."""
    folder.mkdir(parents=True)
    server = Server(folder, OPTIONS).start()
    try:
        with server.client() as client:
            _plant_answers(client)
            _plant_chats(client)
            client.set("answer:earlier", EARLIER)
            client.delete("answer:earlier")
            client.save()
            client.set("other:later", "outside of the site")
    finally:
        server.stop()


def _plant_answers(client: Any) -> None:
    text = json.dumps([PLAIN])
    client.set("answer:1", json.dumps({"answer": PLAIN, "ids": ["mem/1"]}, ensure_ascii=False))
    client.set("answer:2", json.dumps({"answer": PLAIN, "ids": []}), ex=86_400)
    client.set("answer:3", json.dumps({"answer": "a key is somewhere", "ids": ["mem/1", ID]}))
    client.set("answer:4", gzip.compress(PLAIN.encode(), mtime=0))
    client.set("answer:5 [x]*?\\", json.dumps({"out": json.dumps({"deep": text})}))
    client.hset("answer:6", mapping={"text": unicodedata.normalize("NFD", PLAIN), "n": "1"})
    client.rpush("answer:7", "before", PLAIN.upper(), "after")
    client.sadd("answer:8", "one", PLAIN.replace(" ", "\u3000"))
    client.zadd("answer:9", {PHRASE: 1.5, "two": 2.25})
    client.xadd("answer:10", {"say": PLAIN.replace("spare key", "spare\nkey")})
    client.set(b"answer:\xff\x00", f"By the way: {PHRASE}.")
    for number, near in enumerate(NEAR):
        client.set(f"answer:1{number}\n", json.dumps({"answer": near, "ids": [f"{ID}{number}"]}))
        client.hset(f"answer:near-hash-{number}", mapping={"text": near, "ids": "other"})
    client.set("answer:for an hour", NEAR[0], ex=90_000)
    client.set(b"answer:\xff\x01", gzip.compress(NEAR[0].encode(), mtime=0))
    client.set("answerX:1", "outside of the site")


def _plant_chats(client: Any) -> None:
    client.rpush("chat:list", "first", NEAR[0], PLAIN, "first", NEAR[1])
    client.hset("chat:hash", mapping={"a": PLAIN, "b": NEAR[1], "c": "\x00binary\xff"})
    client.sadd("chat:set", PHRASE, NEAR[0], "member")
    client.zadd("chat:zset", {PLAIN.upper(): 1, NEAR[2]: 2.5, "last": 3})
    client.expire("chat:zset", 90_000)
    client.xadd("chat:stream", {"text": NEAR[0]}, id="1-1")
    client.xadd("chat:stream", {"text": PLAIN, "n": "2"}, id="2-1")
    client.xadd("chat:stream", {"text": "the third"}, id="3-1")
    client.xadd("chat:stream", {"text": EARLIER}, id="4-1")
    client.xgroup_create("chat:stream", "readers", id="0")
    client.xreadgroup("readers", "one", {"chat:stream": ">"}, count=1)
    client.xdel("chat:stream", "4-1")
    client.rpush("chat:json", json.dumps({"id": "x", "t": PLAIN}), json.dumps({"t": NEAR[2]}))


def look(server: Server) -> dict[bytes, Any]:
    """Read every key of the server, of every type, as an application does."""
    seen: dict[bytes, Any] = {}
    with server.client() as client:
        for key in sorted(client.keys()):
            seen[key] = [_value(client, key), client.ttl(key) > 0]
    return seen


def _value(client: Any, key: bytes) -> Any:
    kind = client.type(key)
    if kind == b"string":
        return client.get(key)
    if kind == b"hash":
        return client.hgetall(key)
    if kind == b"list":
        return client.lrange(key, 0, -1)
    if kind == b"set":
        return client.smembers(key)
    if kind == b"zset":
        return client.zrange(key, 0, -1, withscores=True)
    assert kind == b"stream", kind
    groups = [
        {name: group[name] for name in ("name", "pending", "last-delivered-id")}
        for group in client.xinfo_groups(key)
    ]
    return {
        "entries": client.xrange(key),
        "last": client.xinfo_stream(key)["last-generated-id"],
        "groups": groups,
        "pending": [
            (one["message_id"], one["consumer"], one["times_delivered"])
            for group in groups
            for one in client.xpending_range(key, group["name"], "-", "+", 10)
        ],
    }


def expected(before: dict[bytes, Any]) -> dict[bytes, Any]:
    """Return what must be left of what was there: every neighbour, every time to live."""
    taken = {f"answer:{number}".encode() for number in range(1, 11)} - {b"answer:5"}
    taken |= {b"answer:5 [x]*?\\", b"answer:\xff\x00"}
    assert taken <= before.keys()
    left = {key: value for key, value in before.items() if key not in taken}
    words = {text.encode() for text in (PLAIN, PHRASE, PLAIN.upper())}

    def is_kept(item: object) -> bool:
        content = item[0] if isinstance(item, tuple) else item
        return content not in words

    for key in (b"chat:list", b"chat:set", b"chat:zset"):
        value, has_end = left[key]
        left[key] = [type(value)(item for item in value if is_kept(item)), has_end]
        assert len(left[key][0]) == len(value) - 1, key
    value, has_end = left[b"chat:hash"]
    left[b"chat:hash"] = [{name: text for name, text in value.items() if name != b"a"}, has_end]
    value, has_end = left[b"chat:json"]
    left[b"chat:json"] = [value[1:], has_end]
    stream, has_end = left[b"chat:stream"]
    entries = [entry for entry in stream["entries"] if entry[0] != b"2-1"]
    left[b"chat:stream"] = [{**stream, "entries": entries}, has_end]
    return left


__all__ = ["COUNTS", "OPTIONS", "SITES", "Server", "build", "expected", "look"]
