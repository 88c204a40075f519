"""What a server keeps after removal: logs, dumps, slow logs, streams and replicas; found, and made
to go where that may be."""

from __future__ import annotations

import gzip
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import ProblemCode
from purge.errors import Permanent
from purge.targets import NeedleKind
from purge.testing.case import Case, Looked, ids, phrase
from purge_adapters import _redis_controls, _redis_files
from purge_adapters._redis_aof import stored_in
from purge_adapters._redis_rdb import Dump, pieces_of_dump
from tests.support.redis_servers import PASSWORD, Server, free_port
from tests.support.redis_sites import names, site

SECRET = "zanderberry-55173 lies in the tin box behind the almanack"
WORDS = phrase("zanderberry-55173 lies in the tin box")
Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Server] = []

    def begin(*options: str, **more: Any) -> Server:
        folder = tmp_path / f"server-{len(started)}"
        folder.mkdir()
        started.append(Server(folder, options, **more))
        return started[-1].start()

    yield begin
    for server in reversed(started):
        server.stop()


def plant(server: Server, *, save: bool = False) -> None:
    with server.client() as client:
        for number in range(40):
            client.set(f"mem:neighbour-{number}", f"neighbour {number} says nothing of it. " * 20)
        client.set("mem:quillfeather-88421", f"{SECRET}. " * 20)
        if save:
            client.execute_command("SAVE")


def at(server: Server, **more: Any) -> Case:
    return site(server.folder, url=server.url, **{"keys": "mem:{id}", **more})


def unlink(server: Server, *keys: str) -> None:
    with server.client() as client:
        client.unlink(*keys)


def is_clean(looked: Looked) -> bool:
    controls = looked.controls
    return not looked.residue and not looked.not_checked and all(c.passed for c in controls)


def plain(server: Server) -> bytes:
    """Everything in the files, out of their compression by a server of its own."""
    return b"\n".join(
        piece
        for path in sorted(server.folder.rglob("*"))
        if path.is_file() and path.suffix in (".rdb", ".aof")
        for stored in stored_in(path.read_bytes())
        for piece in stored.pieces
    )


@pytest.mark.parametrize(
    "options",
    [
        ("--appendonly", "yes"),
        ("--appendonly", "yes", "--aof-use-rdb-preamble", "no"),
        ("--save", "3600 1"),
        ("--appendonly", "yes", "--save", "3600 1"),
        (),
    ],
)
def test_what_is_removed_is_in_no_file_afterwards(start: Start, options: tuple[str, ...]) -> None:
    server = start(*options)
    plant(server, save="--save" in options)
    files = bool(options)
    assert (SECRET.encode() in plain(server)) is files
    if "--save" in options:
        # Compressed: only taking the dump apart shows it.
        assert SECRET.encode() not in (server.folder / "dump.rdb").read_bytes()
    run = at(server).purge(ids("quillfeather-88421"))
    assert bool(run.before_sanitize.fixable) is files
    assert run.sanitized == ()
    assert is_clean(run.after)
    assert SECRET.encode() not in plain(server)
    assert b"quillfeather-88421" not in plain(server)
    with server.client() as client:
        assert client.dbsize() == 40
    # Nothing is kept that was not kept before.
    assert (server.folder / "dump.rdb").exists() is ("--save" in options)
    assert (server.folder / "appendonlydir").exists() is ("--appendonly" in options)


def test_what_an_application_deleted_earlier_is_found_by_its_words(start: Start) -> None:
    server = start("--appendonly", "yes", "--save", "3600 1")
    plant(server, save=True)
    unlink(server, "mem:quillfeather-88421")
    case = at(server)
    looked = case.residue(WORDS)
    assert sorted(names(looked.residue)) == [
        "server, appendonly.aof.1.incr.aof",
        "server, dump.rdb",
    ]
    assert {item.keys for item in looked.residue} == {frozenset({0})}
    assert case.sanitize(looked.fixable) == ()
    assert is_clean(case.residue(WORDS))


def test_an_old_dump_of_a_server_that_saves_no_more_is_replaced(start: Start) -> None:
    server = start()
    plant(server, save=True)
    run = at(server).purge(ids("quillfeather-88421"))
    assert [item.where for item in run.before_sanitize.residue] == ["server, dump.rdb"]
    assert is_clean(run.after)
    assert SECRET.encode() not in plain(server)


def test_a_copy_beside_the_dump_is_left_and_said(start: Start) -> None:
    server = start("--save", "3600 1")
    plant(server, save=True)
    dump = server.folder / "dump.rdb"
    (server.folder / "dump.rdb.gz").write_bytes(gzip.compress(dump.read_bytes()))
    shutil.copy(dump, server.folder / "temp-1234.rdb")
    run = at(server).purge(ids("quillfeather-88421"))
    assert sorted(names(run.after.residue)) == ["server, dump.rdb.gz", "server, temp-1234.rdb"]
    assert not run.after.fixable
    assert {item.problem for item in run.after.residue} == {ProblemCode.NO_END_DATE}


def test_a_damaged_file_is_no_evidence(start: Start) -> None:
    server = start("--save", "3600 1")
    plant(server, save=True)
    dump = server.folder / "dump.rdb"
    data = dump.read_bytes()
    dump.write_bytes(data[: len(data) // 2])
    looked = at(server).residue(ids("no-such-record"))
    assert [gap.problem for gap in looked.not_checked] == [ProblemCode.CORRUPT]
    assert any(control.kind is None and not control.passed for control in looked.controls)


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_words_of_another_key_that_lives_are_no_residue(start: Start, preamble: str) -> None:
    server = start("--appendonly", "yes", "--save", "3600 1", "--aof-use-rdb-preamble", preamble)
    plant(server, save=True)
    with server.client(3) as client:
        client.set("elsewhere", f"Somebody else says that {SECRET}.")
    run = at(server).purge(WORDS)
    assert is_clean(run.after)


def test_the_look_sees_what_is_escaped_in_an_odd_way(start: Start) -> None:
    server = start("--appendonly", "yes")
    with server.client() as client:
        client.set("mem:one", '{"text": "\\u017Dofie keeps it in the tin box \\/ shelf"}')
    case = at(server)
    found = case.find(ids("one"))
    controls = case.residue(ids("one"), found.matches).controls
    assert any(control.kind is NeedleKind.TEXT and control.on_target for control in controls)
    assert all(control.passed for control in controls)


def test_a_look_that_misses_a_live_value_says_so(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start("--appendonly", "yes")
    plant(server)
    case = at(server)
    found = case.find(WORDS)
    monkeypatch.setattr(_redis_controls, "spelled", lambda pieces: b"nothing of it")
    controls = case.residue(WORDS, found.matches).controls
    assert any(control.on_target and not control.passed for control in controls)


def test_a_record_that_was_written_over_is_residue_of_the_log(start: Start) -> None:
    server = start("--appendonly", "yes")
    plant(server)
    with server.client() as client:
        client.set("mem:quillfeather-88421", "Nothing of the kind.")
    case = at(server)
    looked = case.residue(WORDS)
    assert [item.fixable for item in looked.residue] == [True]
    case.sanitize(looked.fixable)
    assert is_clean(case.residue(WORDS))


def test_escaped_json_is_seen_in_files(start: Start) -> None:
    server = start("--save", "3600 1")
    text = "Žofie keeps the café “loyalty” number 4471-QX in the tin box"
    with server.client() as client:
        client.set("mem:one", json.dumps({"deep": json.dumps({"text": text})}))
        client.execute_command("SAVE")
        client.unlink("mem:one")
    looked = at(server).residue(phrase('café "loyalty" number 4471-qx'))
    assert list(names(looked.residue)) == ["server, dump.rdb"]


def test_a_slow_log_is_emptied_only_when_it_holds_something(start: Start) -> None:
    server = start("--slowlog-log-slower-than", "0", "--slowlog-max-len", "500")
    plant(server)
    case = at(server)
    assert case.purge(ids("neighbour-77")).after.residue == ()
    with server.client() as client:
        before = client.slowlog_len()
        assert before > 40
    run = case.purge(ids("quillfeather-88421"))
    assert "server, slow log" in list(names(run.before_sanitize.residue))
    assert is_clean(run.after)
    with server.client() as client:
        said = b"".join(entry["command"] for entry in client.slowlog_get(500))
        assert b"quillfeather" not in said
        assert b"zanderberry" not in said


def test_members_that_had_to_be_named_are_taken_out_of_the_slow_log(start: Start) -> None:
    server = start("--slowlog-log-slower-than", "0", "--slowlog-max-len", "500")
    with server.client() as client:
        client.sadd("mem:all", SECRET, "tea")
        client.execute_command("SLOWLOG", "RESET")
    run = at(server, record="element").purge(WORDS)
    assert list(names(run.before_sanitize.residue)) == ["server, slow log"]
    assert is_clean(run.after)


def test_what_a_stream_keeps_of_deleted_entries_is_found_and_goes(start: Start) -> None:
    server = start()
    with server.client() as client:
        for number in range(5):
            said = f"{SECRET}. " * 5 if number == 2 else f"entry {number}"
            client.xadd("mem:stream", {"text": said}, id=f"{number + 1}-1")
        client.xgroup_create("mem:stream", "g", id="2-1")
        client.xdel("mem:stream", "3-1")
        before = client.xrange("mem:stream")
        assert SECRET.encode() in b"\n".join(pieces_of_dump(client.dump("mem:stream")))
        case = at(server)
        looked = case.residue(WORDS)
        assert list(names(looked.residue)) == ["server, a stream"]
        assert looked.residue[0].keys == frozenset({0})
        assert case.sanitize(looked.fixable) == ()
        assert is_clean(case.residue(WORDS))
        assert client.xrange("mem:stream") == before
        assert client.xinfo_groups("mem:stream")[0]["last-delivered-id"] == b"2-1"


def test_looking_saves_and_creates_nothing(start: Start) -> None:
    server = start("--appendonly", "yes")
    plant(server)
    before = {p: p.stat().st_mtime_ns for p in server.folder.rglob("*")}
    case = at(server)
    found = case.find(WORDS)
    case.residue(WORDS, found.matches)
    case.check()
    assert {p: p.stat().st_mtime_ns for p in server.folder.rglob("*")} == before
    with server.client() as client:
        assert client.dbsize() == 41
        assert client.config_get("save") == {"save": ""}


def test_a_rewrite_that_fails_is_said(start: Start) -> None:
    server = start("--appendonly", "yes")
    plant(server)
    case = at(server)
    found = case.find(WORDS)
    case.remove(found.matches)
    fixable = case.residue(WORDS, found.matches).fixable
    (server.folder / "appendonlydir").rename(server.folder / "away")
    (server.folder / "appendonlydir").touch()
    assert list(names(case.sanitize(fixable))) == ["append-only file of server"]


def test_a_save_that_fails_in_the_background_is_said(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start("--save", "3600 1")
    plant(server, save=True)
    monkeypatch.setattr(_redis_files, "runs_here", lambda *_: False)
    case = at(server)
    found = case.find(WORDS)
    case.remove(found.matches)
    fixable = case.residue(WORDS, found.matches).fixable
    (server.folder / "dump.rdb").unlink()
    (server.folder / "dump.rdb").mkdir()
    (server.folder / "dump.rdb" / "in the way").touch()
    assert list(names(case.sanitize(fixable))) == ["dump of server"]


def test_a_dump_that_is_gone_is_not_made_again(start: Start) -> None:
    server = start()
    plant(server, save=True)
    case = at(server)
    found = case.find(WORDS)
    case.remove(found.matches)
    fixable = case.residue(WORDS, found.matches).fixable
    (server.folder / "dump.rdb").unlink()
    assert case.sanitize(fixable) == ()
    assert list(server.folder.iterdir()) == []
    assert is_clean(case.residue(WORDS, found.matches))


# --- replicas -----------------------------------------------------------------------------------


def pair(start: Start, *options: str) -> tuple[Server, Server]:
    port = free_port()
    master = start("--repl-diskless-sync-delay", "0", port=port)
    replica = start(
        *("--replicaof", "127.0.0.1", str(port), "--masterauth", PASSWORD),
        *("--repl-diskless-sync-delay", "0", *options),
    )
    with replica.client() as client:
        give_up = time.monotonic() + 20
        while client.info("replication")["master_link_status"] != "up":
            assert time.monotonic() < give_up
            time.sleep(0.05)
    return master, replica


def test_replicas_are_looked_at_and_cleaned_by_themselves(start: Start) -> None:
    master, replica = pair(start, "--appendonly", "yes")
    plant(master)
    with master.client() as client:
        client.wait(1, 2000)
    run = at(master, replicas=[replica.url]).purge(ids("quillfeather-88421"))
    assert any(item.where.startswith("replica 1") for item in run.before_sanitize.residue)
    assert run.sanitized == ()
    assert is_clean(run.after)
    assert SECRET.encode() not in plain(replica)


def test_a_replica_that_nobody_named_is_not_checked(start: Start) -> None:
    master, _ = pair(start)
    plant(master)
    run = at(master).purge(ids("quillfeather-88421"))
    assert list(names(run.after.not_checked)) == ["replicas of server"]
    assert any("replicas" in said.sentence for said in at(master).check())


def test_a_replica_that_still_returns_it_is_said(start: Start) -> None:
    master, replica = pair(start, "--replica-read-only", "no")
    plant(master)
    with replica.client() as client:
        client.set("mem:own", SECRET)
    run = at(master, replicas=[replica.url]).purge(WORDS)
    left = [item for item in run.after.residue if item.problem is ProblemCode.STILL_READABLE]
    assert list(names(left)) == ["replica 1"]


def test_a_named_replica_that_is_away_is_not_checked(start: Start) -> None:
    server = start()
    plant(server)
    case = at(server, replicas=[f"unix://{server.folder}/nobody.sock"])
    run = case.purge(ids("quillfeather-88421"))
    assert [gap.problem for gap in run.after.not_checked] == [ProblemCode.UNREACHABLE]
    assert run.read_back.matches == ()


def test_a_replica_takes_no_writes_and_check_says_so(start: Start) -> None:
    master, replica = pair(start)
    plant(master)
    with master.client() as client:
        client.wait(1, 2000)
    case = at(replica)
    assert any(not said.ok for said in case.check())
    found = case.find(WORDS)
    with pytest.raises(Permanent) as error:
        case.remove(found.matches)
    assert error.value.problem is ProblemCode.NO_PERMISSION


def test_dumps_of_every_type_are_taken_apart(start: Start) -> None:
    server = start()
    many = {f"field {number}": f"value {number} of many" for number in range(600)}
    big = "the crab pot licence number one " * 400
    with server.client() as client:
        client.set("string", big)
        client.set("number", -70_000)
        client.set("bytes", bytes(range(256)) * 3)
        client.rpush("list", big * 10, "x", 5, -5, 300, 70_000, 2**40, -(2**50), *many)
        client.hset("hash", mapping=many)
        client.hset("small hash", mapping={"a": "b", "n": "17"})
        client.sadd("set", *many)
        client.sadd("numbers", 1, 2, 70_000, 2**40)
        client.zadd("sorted", {name: at for at, name in enumerate(many)})
        client.zadd("small sorted", {"one": 1, "two": 2.5})
        for number in range(250):
            client.xadd("stream", {"text": f"entry {number}"}, id=f"{number + 1}-1")
        client.xgroup_create("stream", "g", id="0")
        client.xreadgroup("g", "c", {"stream": ">"}, count=3)
        client.expire("string", 1000)
        client.execute_command("SAVE")
        dump = Dump((server.folder / "dump.rdb").read_bytes())
        by_key = {stored.key: stored.pieces[1:] for stored in dump.stored() if stored.key}
        assert dump.at == len(dump.data)
        assert set(by_key) == set(client.keys())
        assert by_key[b"string"] == (big.encode(),)
        assert by_key[b"number"] == (b"-70000",)
        assert by_key[b"bytes"] == (bytes(range(256)) * 3,)
        assert list(by_key[b"list"]) == client.lrange("list", 0, -1)
        for key in (b"hash", b"small hash"):
            pieces = by_key[key]
            assert dict(zip(pieces[::2], pieces[1::2], strict=True)) == client.hgetall(key)
        for key in (b"set", b"numbers"):
            assert set(by_key[key]) == client.smembers(key)
        for key in (b"sorted", b"small sorted"):
            assert set(client.zrange(key, 0, -1)) <= set(by_key[key])
        assert {f"entry {number}".encode() for number in range(250)} <= set(by_key[b"stream"])
        for key, pieces in by_key.items():
            assert sorted(pieces_of_dump(client.dump(key))) == sorted(pieces)
