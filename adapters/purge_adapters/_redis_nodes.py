"""Connections to the nodes of a site: the server or a cluster's masters, and named replicas.

A session is one connection to one database, on which commands are sent in bunches and answers are
the server's own bytes. Nothing is tried twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from purge.adapter import ProblemCode, Site
from purge.errors import Permanent
from purge_adapters._redis_errors import is_refusal, translated
from purge_adapters._redis_settings import RedisSettings

if TYPE_CHECKING:
    from redis.connection import AbstractConnection

Command = tuple[bytes | str | int, ...]
BUNCH: Final = 1000
"""Commands that are sent before their answers are read, and the COUNT of a SCAN."""
SLOTS: Final = 16384
_FIRST: Final = "server"


@dataclass(frozen=True, slots=True)
class Refused:
    """The server does not let this user do it, or does not know it."""


REFUSED: Final = Refused()


class Session:
    """One connection to one database."""

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection

    def call(self, *command: bytes | str | int) -> Any:
        """Send one command and return the answer.

        Raises:
            redis.exceptions.RedisError: the server says no.
        """
        return self.answers([command])[0]

    def ask(self, *command: bytes | str | int) -> Any:
        """Send one command and return the answer, or ``REFUSED``."""
        (answer,) = self.outcomes([command])
        if isinstance(answer, Exception):
            if is_refusal(answer):
                return REFUSED
            raise answer
        return answer

    def answers(self, commands: Sequence[Command]) -> list[Any]:
        """Send several commands at once and return their answers; all of them are read.

        Raises:
            redis.exceptions.RedisError: the first that the server says no to.
        """
        answers = self.outcomes(commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def outcomes(self, commands: Sequence[Command]) -> list[Any]:
        """As :meth:`answers`, with what the server says no to as an exception in its place."""
        from redis.exceptions import ResponseError

        found: list[Any] = []
        connection = self._connection
        for at in range(0, len(commands), BUNCH):
            some = commands[at : at + BUNCH]
            packed = connection.pack_commands(some)  # type: ignore[no-untyped-call]  # the driver's own
            connection.send_packed_command(packed)  # type: ignore[no-untyped-call]  # the driver's own
            for _ in some:
                try:
                    found.append(connection.read_response())
                except ResponseError as error:
                    found.append(error)
        return found

    def transact(self, commands: Sequence[Command]) -> list[Any] | None:
        """Do several commands as one; return their answers, or ``None`` where a watched key
        changed and nothing was done.

        Raises:
            redis.exceptions.RedisError: one could not be queued (nothing was done), or failed.
        """
        *queued, done = self.outcomes([("MULTI",), *commands, ("EXEC",)])
        for answer in (*queued, done):
            if isinstance(answer, Exception):
                raise answer
        for answer in done or ():
            if isinstance(answer, Exception):
                raise answer
        return None if done is None else list(done)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.disconnect()  # type: ignore[no-untyped-call]  # the driver's own


@dataclass(slots=True)
class Node:
    """One server process that holds data of the site.

    Args:
        name: how people and handles call it.
        arguments: what a connection is made from.
        is_replica: it is one of the site's ``replicas``.
        slots: of a cluster's master: the hash slots that it serves.
    """

    name: str
    arguments: Mapping[str, Any] = field(repr=False)
    is_replica: bool = False
    slots: tuple[tuple[int, int], ...] = ()
    _sessions: dict[int, Session] = field(default_factory=dict, repr=False)

    def session(self, database: int = 0) -> Session:
        """Return the connection to one database; it is kept."""
        if database not in self._sessions:
            self._sessions[database] = self.connect(database)
        return self._sessions[database]

    def connect(self, database: int) -> Session:
        """Return a further connection to one database."""
        arguments = {name: value for name, value in self.arguments.items() if name != "tls"}
        made: AbstractConnection = arguments.pop("connection_class")(**arguments, db=database)
        made.connect()  # type: ignore[no-untyped-call]  # the driver's own
        return Session(made)

    def info(self, section: str) -> dict[str, str] | None:
        """Return what INFO says in one section, or ``None`` where it may not be asked."""
        answer = self.session(self.any_database).ask("INFO", section)
        if answer is REFUSED:
            return None
        lines = bytes(answer).decode("utf-8", "replace").splitlines()
        found = dict(line.split(":", 1) for line in lines if ":" in line and line[0] != "#")
        return found or None

    @property
    def any_database(self) -> int:
        """A database to which there is a connection already, or the first."""
        return next(iter(self._sessions), 0)

    def close(self) -> None:
        """Let go of all connections."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()


@dataclass(slots=True)
class Nodes:
    """All nodes of a site."""

    masters: tuple[Node, ...]
    replicas: tuple[Node, ...]
    databases: tuple[int, ...]

    def __iter__(self) -> Iterator[Node]:
        yield from self.masters
        yield from self.replicas

    def named(self, name: str) -> Node | None:
        """Return the node of this name."""
        return next((node for node in self if node.name == name), None)

    def master_of(self, key: bytes) -> Node:
        """Return the node that holds a key.

        Raises:
            Permanent: no master of the cluster serves it.
        """
        if not self.masters[0].slots:
            return self.masters[0]
        slot = slot_of(key)
        for node in self.masters:
            if any(first <= slot <= last for first, last in node.slots):
                return node
        raise Permanent(
            "No master of the cluster serves a key of the site.", problem=ProblemCode.UNREACHABLE
        )

    def missing_slots(self) -> int:
        """Return how many hash slots of a cluster no master serves."""
        if not self.masters[0].slots:
            return 0
        served = sum(last - first + 1 for node in self.masters for first, last in node.slots)
        return SLOTS - served


def slot_of(key: bytes) -> int:
    """Return the hash slot of a key."""
    from redis.crc import key_slot

    return int(key_slot(key))


@contextmanager
def connected(site: Site, settings: RedisSettings) -> Iterator[Nodes]:
    """Connect to the nodes of a site; close all connections afterwards.

    Raises:
        Transient, Permanent: a node cannot be reached, or anything went wrong while it was open.
    """
    with translated():
        own = _arguments(site, settings)
        database = int(own.pop("db", None) or 0)
        first = Node(_FIRST, own)
        replicas = []
        for number, url in enumerate(settings.replicas, 1):
            arguments = _of_url(url, own)
            arguments.pop("db", None)
            replicas.append(Node(f"replica {number}", arguments, is_replica=True))
        databases = tuple(dict.fromkeys(settings.databases)) or (database,)
        nodes = Nodes((first,), tuple(replicas), databases)
        try:
            if settings.cluster:
                nodes.masters = _masters(first)
            for node in nodes.masters:
                node.session(nodes.databases[0])
            yield nodes
        finally:
            first.close()
            for node in nodes:
                node.close()


def _arguments(site: Site, settings: RedisSettings) -> dict[str, Any]:
    """Return what a connection to the site's own server is made from."""
    from redis.backoff import NoBackoff
    from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
    from redis.retry import Retry

    common: dict[str, Any] = {
        "username": settings.username,
        "password": settings.password,
        "socket_timeout": settings.socket_timeout,
        "socket_connect_timeout": settings.socket_connect_timeout,
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
    }
    files = {
        name: str(site.place(path))
        for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
        if (path := getattr(settings, name))
    }
    common["tls"] = {
        **files,
        "ssl_check_hostname": settings.ssl_check_hostname and settings.ssl_cert_reqs != "none",
        "ssl_cert_reqs": settings.ssl_cert_reqs,
    }
    if settings.url is not None:
        return _of_url(settings.url, common)
    if settings.unix_socket_path is not None:
        path = str(site.place(settings.unix_socket_path))
        common["connection_class"] = UnixDomainSocketConnection
        return {**_without_network(common), "path": path}
    if settings.ssl:
        common |= common["tls"]
    common["connection_class"] = SSLConnection if settings.ssl else Connection
    return {**common, "host": settings.host, "port": settings.port}


def _without_network(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in arguments if name != "socket_connect_timeout"}


def _of_url(url: str, common: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a connection to a url is made from; what it leaves open comes from ``common``."""
    from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection, parse_url

    try:
        told = dict(parse_url(url))  # type: ignore[no-untyped-call]  # the driver's own
    except ValueError:
        raise Permanent(
            "A url of a Redis server cannot be read.", problem=ProblemCode.UNREACHABLE
        ) from None
    kind = told.pop("connection_class", Connection)
    names = [
        *("username", "password", "socket_timeout", "socket_connect_timeout"),
        *("protocol", "retry", "tls"),
    ]
    found: dict[str, Any] = {name: common[name] for name in names if name in common}
    if "password" in told:
        found["username"] = None
    if issubclass(kind, SSLConnection):
        found |= common["tls"]
    if issubclass(kind, UnixDomainSocketConnection):
        found = _without_network(found)
    elif "host" not in told:
        told["host"] = "localhost"
    return {**found, **told, "connection_class": kind}


def _masters(first: Node) -> tuple[Node, ...]:
    """Return the masters of the cluster that a node belongs to, in the order of their slots."""
    slots: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for low, high, master, *_ in sorted(first.session(0).call("CLUSTER", "SLOTS")):
        host = bytes(master[0] or b"").decode() or str(first.arguments.get("host", "localhost"))
        slots.setdefault((host, int(master[1])), []).append((int(low), int(high)))
    if not slots:
        raise Permanent("The cluster serves no slots.", problem=ProblemCode.UNREACHABLE)
    from redis.connection import Connection, UnixDomainSocketConnection

    shared = {name: value for name, value in first.arguments.items() if name != "path"}
    if issubclass(shared["connection_class"], UnixDomainSocketConnection):
        shared["connection_class"] = Connection
    return tuple(
        Node(f"master {number}", {**shared, "host": host, "port": port}, slots=tuple(served))
        for number, ((host, port), served) in enumerate(slots.items(), 1)
    )
