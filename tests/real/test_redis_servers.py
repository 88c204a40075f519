"""Ways to a Redis server: TLS, users with few rights, clusters, managed ones, and errors."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from purge.adapter import ProblemCode
from purge.errors import StoreError
from purge.shapes import ShapeFault, validate
from purge.testing.case import Case, phrase
from purge_adapters._redis_files import runs_here
from purge_adapters._redis_nodes import slot_of
from purge_adapters.redis import RedisSettings
from tests.support.redis_servers import PASSWORD, Server, free_port
from tests.support.redis_sites import site

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


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_tls_with_a_certificate_that_is_trusted_and_one_that_is_not(
    start: Start, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path)
    port = free_port()
    server = start(
        *("--tls-port", str(port), "--tls-auth-clients", "no"),
        *("--tls-cert-file", str(cert), "--tls-key-file", str(key)),
    )
    with server.client() as client:
        client.set("mem:one", SECRET)
    settings: dict[str, Any] = {"host": "127.0.0.1", "port": port, "ssl": True, "keys": "mem:*"}
    settings["password"] = PASSWORD
    trusting = site(tmp_path, **settings, ssl_ca_certs="cert.pem")
    assert len(trusting.find(WORDS).matches) == 1
    with pytest.raises(StoreError) as error:
        site(tmp_path, **settings).find(WORDS)
    assert error.value.problem == ProblemCode.UNREACHABLE
    url = server.url.replace("unix:", "rediss:").split("@")[0] + f"@127.0.0.1:{port}/0"
    assert len(site(tmp_path, url=url, keys="mem:*", ssl_cert_reqs="none").find(WORDS).matches) == 1


def managed(server: Server, *rights: str) -> Case:
    """A site whose user may do no more than its rights say."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "few", "on", ">p:w/@", "~mem:*", *rights)
    return site(server.folder, url=server.url_of("few", "p:w/@"), keys="mem:*")


def test_the_rights_that_the_page_names_are_enough(start: Start) -> None:
    server = start("--appendonly", "yes", "--save", "3600 1")
    with server.client() as client:
        client.set("mem:one", SECRET)
        client.set("mem:two", "another")
        client.xadd("mem:stream", {"a": "b"})
        client.execute_command("SAVE")
    page = "-@all +@read +@write +@transaction +@connection +info +config|get +slowlog +bgsave"
    run = managed(server, *page.split(), "+bgrewriteaof").purge(WORDS)
    assert run.left == ()
    assert run.sanitized == ()
    assert not run.after.residue
    assert not run.after.not_checked


def test_a_server_that_shows_nothing_gives_a_lesser_state_and_no_error(start: Start) -> None:
    server = start("--appendonly", "yes")
    with server.client() as client:
        client.set("mem:one", SECRET)
    case = managed(server, "-@all", "+@read", "+@write", "+@transaction", "-dump")
    run = case.purge(WORDS)
    assert run.read_back.matches == ()
    assert {item.problem for item in run.after.residue} == {ProblemCode.BYTES_NOT_VISIBLE}
    assert run.after.not_checked == ()
    assert all(said.ok for said in case.check())


def test_unseen_files_are_written_anew_once_where_that_is_allowed(start: Start) -> None:
    server = start("--appendonly", "yes")
    with server.client() as client:
        client.set("mem:one", SECRET)
    run = managed(server, "+@all", "-config").purge(WORDS)
    assert run.sanitized == ()
    assert [item.fixable for item in run.before_sanitize.residue] == [True]
    assert [item.fixable for item in run.after.residue] == [False]
    assert not any(SECRET.encode() in path.read_bytes() for path in server.folder.rglob("*.aof"))


def test_a_user_without_rights_is_a_permission_problem(start: Start) -> None:
    server = start()
    case = managed(server, "-@all", "+ping", "+info")
    assert any(not said.ok for said in case.check())
    for url in (server.url_of("nobody", "wrong"), server.url_of("", "wrong")):
        with pytest.raises(StoreError) as error:
            site(server.folder, url=url, keys="*").find(WORDS)
        assert error.value.problem == ProblemCode.NO_PERMISSION
        assert "wrong" not in str(error.value)
    with pytest.raises(StoreError) as error:
        case.find(WORDS)
    assert error.value.problem == ProblemCode.NO_PERMISSION


def test_a_path_of_another_machine_is_not_believed(start: Start, tmp_path: Path) -> None:
    """The folder that a server names exists here too, and is not its own."""
    server = start("--appendonly", "yes")
    with server.client() as client:
        client.set("mem:one", SECRET)
    with server.client() as client:
        process = {"process_id": str(client.info("server")["process_id"])}
    assert runs_here(process, server.folder)
    assert not runs_here(process, tmp_path)
    assert not runs_here({"process_id": "1"}, Path("/"))
    assert not runs_here({}, server.folder)


def test_the_folder_that_the_manifest_names_is_read(start: Start) -> None:
    server = start("--appendonly", "yes")
    with server.client() as client:
        client.set("mem:one", SECRET)
    rights = ("+@all", "-config")
    managed(server, *rights)
    case = site(server.folder, url=server.url_of("few", "p:w/@"), keys="mem:*", files=".")
    run = case.purge(WORDS)
    assert run.before_sanitize.fixable
    assert not run.after.residue
    assert not run.after.not_checked


def test_nobody_there_and_nobody_answering(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as error:
        site(tmp_path, host="127.0.0.1", port=free_port(), keys="*").find(WORDS)
    assert error.value.problem == ProblemCode.UNREACHABLE
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        case = site(
            tmp_path, host="127.0.0.1", port=deaf.getsockname()[1], keys="*", socket_timeout=0.2
        )
        with pytest.raises(StoreError) as error:
            case.find(WORDS)
        assert error.value.problem == ProblemCode.BUSY


def test_all_masters_of_a_cluster_are_visited(start: Start) -> None:
    servers, ports = [], []
    for number in range(3):
        port, bus = free_port(), free_port()
        server = start(
            *("--cluster-enabled", "yes", "--cluster-port", str(bus)),
            *("--appendonly", "yes", "--cluster-config-file", f"nodes-{number}.conf"),
            port=port,
        )
        servers.append(server)
        ports.append((port, bus))
    bounds = [(0, 5460), (5461, 10922), (10923, 16383)]
    for server, (low, high) in zip(servers, bounds, strict=True):
        with server.client() as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", low, high)
            for port, bus in ports:
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", port, bus)
    for server in servers:
        give_up = time.monotonic() + 30
        with server.client() as client:
            while not _is_ready(client):
                assert time.monotonic() < give_up
                time.sleep(0.05)

    def holder(key: bytes) -> Server:
        slot = slot_of(key)
        return servers[next(i for i, (low, high) in enumerate(bounds) if low <= slot <= high)]

    keys = [b"mem:%d" % number for number in range(12)] + [b"mem:{tag}1", b"mem:st"]
    assert len({id(holder(key)) for key in keys}) == 3
    for key in keys[:-1]:
        with holder(key).client() as client:
            client.set(key, SECRET if key in keys[:9] else "another")
    with holder(b"mem:st").client() as client:
        client.xadd("mem:st", {"t": SECRET})
        client.xadd("mem:st", {"t": "another"})
    url = servers[0].url
    case = site(servers[0].folder, url=url, keys="mem:*", cluster=True, record="element")
    assert all(said.ok for said in case.check())
    run = case.purge(WORDS)
    assert len(run.found.matches) == 10
    assert run.left == ()
    assert run.sanitized == ()
    assert run.read_back.matches == ()
    assert not run.after.residue
    assert not run.after.not_checked
    left = sum(server.client().dbsize() for server in servers)
    assert left == len(keys) - 9
    one = site(servers[0].folder, url=url, keys="mem:*")
    assert sum(part.records for part in one.find(WORDS).examined) < left


def _is_ready(client: Any) -> bool:
    said = client.execute_command("CLUSTER", "INFO")
    told = said if isinstance(said, dict) else {}
    text = said.decode() if isinstance(said, bytes) else ""
    ok = told.get("cluster_state") == "ok" or "cluster_state:ok" in text
    known = told.get("cluster_known_nodes") == "3" or "cluster_known_nodes:3" in text
    return ok and known


@pytest.mark.parametrize(
    "raw",
    [
        {"keys": "*"},
        {"keys": "*", "url": "redis://localhost", "host": "localhost"},
        {"keys": "*", "url": "http://localhost"},
        {"keys": [], "url": "redis://localhost"},
        {"keys": "", "url": "redis://localhost"},
        {"keys": "{id}:{id}", "url": "redis://localhost"},
        {"keys": "*", "url": "redis://localhost", "databases": [-1]},
        {"keys": "*", "url": "redis://localhost", "databases": [1], "cluster": True},
        {"keys": "*", "url": "redis://localhost", "replicas": ["localhost"]},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ShapeFault):
        validate(RedisSettings, raw)


def test_no_secret_shows_in_the_settings() -> None:
    settings = RedisSettings(
        keys="*",
        url="redis://u:geheim@localhost",
        password="geheim",
        replicas=["redis://:geheim@h"],
    )
    assert "geheim" not in repr(settings)
