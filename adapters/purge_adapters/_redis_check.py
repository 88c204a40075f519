"""What is true of a Redis site, and what could be proved at it. Only reads."""

from __future__ import annotations

from collections.abc import Iterator

from purge.adapter import Site, Statement
from purge_adapters._redis_files import files_of, kept_by
from purge_adapters._redis_nodes import REFUSED, Node, connected
from purge_adapters._redis_replicas import follow, unknown_replicas
from purge_adapters._redis_settings import RedisSettings


def check(site: Site, settings: RedisSettings) -> Iterator[Statement]:
    """Yield what ``check`` of the adapter yields."""
    with connected(site, settings) as nodes:
        for node in nodes.masters:
            server = node.info("server") or {}
            version = server.get("redis_version", "that it does not tell")
            yield Statement(f"The {node.name} answers; it is version {version}.")
            if (node.info("replication") or {}).get("role") == "slave":
                yield Statement(
                    f"The {node.name} is a replica and takes no writes; name its master.", ok=False
                )
            for database in nodes.databases:
                yield _database(node, database)
            yield from _elsewhere(node, nodes.databases)
            yield from _proof(node, site, settings)
        for node in nodes.replicas:
            gap = follow(node, nodes.masters, settings.socket_connect_timeout)
            if gap is not None:
                yield Statement(f"The {gap.where}: {gap.why}.", ok=False)
            else:
                yield Statement(f"The {node.name} answers.")
                yield from _proof(node, site, settings)
        for each in unknown_replicas(nodes):
            yield Statement(f"The {each.where}: {each.why}.")
        if missing := nodes.missing_slots():
            yield Statement(f"No master serves {missing} slots of the cluster.", ok=False)


def _database(node: Node, database: int) -> Statement:
    session = node.session(database)
    if session.ask("SCAN", 0, "COUNT", 1) is REFUSED:
        return Statement("The user may not list keys (SCAN), which finding needs.", ok=False)
    size = session.ask("DBSIZE")
    held = "keys that it does not count" if size is REFUSED else f"{size} keys"
    return Statement(f"Database {database} of the {node.name} holds {held}.")


def _elsewhere(node: Node, databases: tuple[int, ...]) -> Iterator[Statement]:
    named = {f"db{number}" for number in databases}
    others = sorted(set(node.info("keyspace") or {}) - named)
    if others:
        numbers = ", ".join(name.removeprefix("db") for name in others)
        yield Statement(f"Databases {numbers} hold keys too, and are not part of the site.")


def _proof(node: Node, site: Site, settings: RedisSettings) -> Iterator[Statement]:
    kept = kept_by(node, site, settings)
    if kept.folder is None or kept.info is None:
        yield Statement(
            f"The files of the {node.name} cannot be seen from here, so that no byte is left "
            "cannot be shown; 'provider_retention' can say how long copies are kept."
        )
        return
    try:
        count = len(files_of(kept, kept.folder))
    except OSError:
        yield Statement(f"The files of the {node.name} cannot be listed.", ok=False)
        return
    log = "an append-only file" if kept.logs else "no append-only file"
    yield Statement(f"The {node.name} keeps {log}; {count} files of it are read as proof.")
