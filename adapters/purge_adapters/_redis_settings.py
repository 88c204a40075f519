"""What the manifest can say of a ``redis`` site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

ID: Final = "{id}"
"""Stands in a key template for the id."""
_SCHEMES: Final = ("redis", "rediss", "unix")


def _described(sentence: str) -> dict[str, str]:
    return {"description": sentence}


@dataclass(frozen=True)
class Pairs:
    """Which elements of one key answer each other, so that one may not stay without the other."""

    calls: list[str]
    """The fields in which an element says the ids of its calls."""
    result: str
    """The field in which an element says which call it answers."""
    newest_first: bool = False
    """The list begins with the newest element. Ids of calls may be used again: a result belongs
    to the last call before it."""


@dataclass(frozen=True)
class RedisFormat:
    """How an application keeps its records in keys: each as the key of a site of that name."""

    keys: str | list[str] | None = None
    record: Literal["key", "element"] = "key"
    id: str | None = None
    text: list[str] = field(default_factory=list)
    time: str | None = None
    separator: str | None = None
    pairs: Pairs | None = None


@dataclass(frozen=True)
class RedisSettings:
    """The keys of a ``redis`` site besides those that every site has.

    What the format says and the site does not is filled in.

    Raises:
        ValueError: no server is named, or two; no keys; a template has ``{id}`` twice; the format
            is not known, or pairs are asked for where records are keys.
    """

    keys: str | list[str] | None = field(
        default=None,
        metadata=_described(
            "Which keys belong to the site: a pattern as Redis' MATCH takes it (answer:*), or a "
            "list of them. A pattern may hold {id} once (answer:{id}): what stands there is the "
            "record's own id, and derived_from may name it as $id. Required, unless the format "
            "says it."
        ),
    )
    format: str | RedisFormat | None = field(
        default=None,
        metadata=_described(
            "The format of an application that is known: langchain; or a description of one, with "
            "'keys', 'record', 'id', 'text', 'time', 'separator' and 'pairs'."
        ),
    )
    url: str | None = field(
        default=None,
        repr=False,
        metadata=_described(
            "The server: redis://, rediss:// or unix://, with user, password and database. "
            "From ${ENV}."
        ),
    )
    host: str | None = field(default=None, metadata=_described("The server, instead of 'url'."))
    port: int = field(default=6379, metadata=_described("Its port."))
    unix_socket_path: str | None = field(
        default=None, metadata=_described("Its socket, instead of 'url' or 'host'.")
    )
    username: str | None = field(
        default=None, metadata=_described("ACL user, where the url has none.")
    )
    password: str | None = field(
        default=None,
        repr=False,
        metadata=_described("Its password, where the url has none. From ${ENV}."),
    )
    ssl: bool = field(default=False, metadata=_described("Whether 'host' speaks TLS."))
    ssl_ca_certs: str | None = field(
        default=None, metadata=_described("File with the certificates of trusted authorities.")
    )
    ssl_certfile: str | None = field(
        default=None, metadata=_described("File with the client's own certificate.")
    )
    ssl_keyfile: str | None = field(default=None, metadata=_described("File with its key."))
    ssl_check_hostname: bool = field(
        default=True, metadata=_described("Whether the certificate must name the host.")
    )
    ssl_cert_reqs: Literal["required", "none"] = field(
        default="required", metadata=_described("Whether the server's certificate is checked.")
    )
    databases: list[int] = field(
        default_factory=list,
        metadata=_described("Numbers of the databases. Default: the one of the url, or 0."),
    )
    record: Literal["key", "element"] = field(
        default="key",
        metadata=_described(
            "The unit of removal: a whole key, or one element of it (a list item, a member, a "
            "hash field, a stream entry)."
        ),
    )
    id: str | None = field(
        default=None,
        metadata=_described(
            "The field with the record's id: of JSON in a string or an element, or of a hash; a "
            "dotted path. Default: {id} of the key, or the key; for elements the hash field or "
            "the id of the stream entry, otherwise a name made from the content."
        ),
    )
    text: list[str] = field(
        default_factory=list,
        metadata=_described(
            "The fields that 'action: blank' empties, besides those that matched. Default: all "
            "of a value that is no JSON."
        ),
    )
    time: str | None = field(
        default=None, metadata=_described("The field that says when the record was made.")
    )
    separator: str | None = field(
        default=None,
        metadata=_described("What stands between ids where a field holds several as plain text."),
    )
    pairs: Pairs | None = field(
        default=None,
        metadata=_described(
            "With 'record: element': which elements of a key go together, as the call of a tool "
            "and its result do: {calls: [FIELD, ...], result: FIELD, newest_first: false}."
        ),
    )
    replicas: list[str] = field(
        default_factory=list,
        repr=False,
        metadata=_described(
            "Urls of the replicas. Each is looked at, and cleaned, by a connection of its own; "
            "settings that their urls leave open are taken from here."
        ),
    )
    cluster: bool = field(
        default=False,
        metadata=_described("Whether the server is one of a cluster: all its masters are visited."),
    )
    files: str | None = field(
        default=None,
        metadata=_described(
            "The server's own folder (dump.rdb, appendonlydir), if it is on this machine; only "
            "read. Default: asked of the server, and used where a process of this machine is "
            "shown to run in it."
        ),
    )
    socket_timeout: float = field(
        default=30.0, metadata=_described("Seconds to wait for an answer.")
    )
    socket_connect_timeout: float = field(
        default=5.0, metadata=_described("Seconds to wait for a connection.")
    )
    rewrite_timeout: float = field(
        default=600.0,
        metadata=_described("Seconds to wait for a BGREWRITEAOF or BGSAVE, and for replicas."),
    )

    def __post_init__(self) -> None:
        if self.format is not None:
            said = known_format(self.format) if isinstance(self.format, str) else self.format
            for name in ("keys", "id", "text", "time", "separator", "pairs"):
                if not getattr(self, name):
                    object.__setattr__(self, name, getattr(said, name))
            if self.record == "key":
                object.__setattr__(self, "record", said.record)
        if self.pairs is not None and self.record == "key":
            raise ValueError("'pairs' are of elements: say 'record: element'")
        places = [self.url, self.host, self.unix_socket_path]
        if sum(place is not None for place in places) != 1:
            raise ValueError("name one server: 'url', 'host' or 'unix_socket_path'")
        for url in [*([self.url] if self.url is not None else []), *self.replicas]:
            if urlsplit(url).scheme not in _SCHEMES:
                raise ValueError("a url begins with redis://, rediss:// or unix://")
        patterns = self.patterns
        if not patterns or not all(patterns):
            raise ValueError("'keys' names no key; for all keys of a database say '*'")
        if any(pattern.count(ID) > 1 for pattern in patterns):
            raise ValueError("a template in 'keys' may hold {id} once")
        if any(number < 0 for number in self.databases):
            raise ValueError("databases have numbers from 0")
        if self.cluster and any(self.databases):
            raise ValueError("a cluster has only database 0")

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns and templates, each once."""
        keys = [self.keys] if isinstance(self.keys, str) else self.keys or []
        return tuple(dict.fromkeys(keys))


def known_format(name: str) -> RedisFormat:
    """Return a preset.

    Raises:
        ValueError: there is none of this name.
    """
    from purge_adapters._presets import named

    given = named("redis", name)
    pairs = Pairs(**given["pairs"]) if "pairs" in given else None
    return RedisFormat(**{**given, "pairs": pairs})
