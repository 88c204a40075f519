"""What a value is to become, and the commands for it.

Elements are named by their place in the value wherever the server lets them be; only members of
sets and fields of hashes are named themselves.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping

from purge_adapters._json_text import Path, replace_scalars
from purge_adapters._redis_keys import named
from purge_adapters._redis_nodes import Command, Session
from purge_adapters._redis_records import KEY, NAME, Item, unpacked
from purge_adapters._redis_values import (
    HASH,
    LIST,
    PAGE,
    SET,
    SORTED,
    STREAM,
    STRING,
    Element,
    Value,
)

Edits = dict[int, Element | None]
"""By the positions of elements, what is to stand there; ``None``: the element goes."""


def emptied(item: Item, strings: Collection[Path], keys: Collection[Path]) -> Edits | str:
    """Return what ``blank`` makes of a record, or why it cannot.

    Args:
        item: the record.
        strings: the paths of strings that hold what is looked for.
        keys: the paths of keys that do.

    Returns:
        The elements that change, none where it is blank already; or a sentence.
    """
    value = item.value_of
    assert value is not None
    if keys or any(path[:1] in ((KEY,), (NAME,)) for path in strings):
        return "The words stand in the name of a key or field, which 'blank' keeps."
    if any(item.is_link(path) for path in strings):
        return "The words stand in a field that identifies the record or links it."
    chosen = {path for path, _ in item.text_strings()} | set(strings)
    if not chosen:
        return "It has none of the fields that 'text' names, so there is nothing to empty."
    edits: Edits = {}
    for at, element in enumerate(value.elements):
        if item.element is not None and element is not item.element:
            continue
        parts = list(element.parts)
        for place, prefix in _prefixes(item, at, element):
            below = {path[len(prefix) :] for path in chosen if path[: len(prefix)] == prefix}
            if not below:
                continue
            plain = _emptied(parts[place], below)
            if plain is None:
                return "A value is compressed, and cannot be emptied in part. Use 'delete'."
            parts[place] = plain
        if tuple(parts) != element.parts:
            edits[at] = Element(element.name, tuple(parts))
    return edits


def _prefixes(item: Item, at: int, element: Element) -> Iterator[tuple[int, Path]]:
    """Yield the pieces of an element, by position, with the beginning of the paths in them."""
    value = item.value_of
    assert value is not None
    whole = item.element is None
    if value.kind == STRING:
        yield 0, ()
    elif value.kind == HASH:
        yield 0, (named(element.name),) if whole else ()
    elif value.kind == STREAM:
        for number, (name, _) in enumerate(element.pairs()):
            yield 2 * number + 1, (at, named(name)) if whole else (named(name),)
    else:
        yield 0, (at,) if whole else ()


def _emptied(data: bytes, paths: Collection[Path]) -> bytes | None:
    if unpacked(data) is not data:
        return None
    if () in paths:
        return b""
    text = replace_scalars(
        data.decode("utf-8", "surrogateescape"),
        lambda path, is_key: "" if not is_key and path in paths else None,
    )
    return text.encode("utf-8", "surrogateescape")


def commands(session: Session, value: Value, edits: Edits) -> list[Command]:
    """Return what makes a value so. Its key is watched; streams are not made so."""
    key = value.key
    gone = [at for at, new in edits.items() if new is None]
    kept = [(at, new) for at, new in edits.items() if new is not None]
    old = {at: value.elements[at] for at in edits}
    if value.kind == STRING:
        if gone:
            return [("UNLINK", key)]
        return [("SET", key, new.parts[0], "KEEPTTL") for _, new in kept]
    if value.kind == LIST:
        # Equal items are told apart by their places: the list is as it was read.
        marker = b"purge:" + secrets.token_hex(16).encode()
        found: list[Command] = [("LSET", key, at, new.parts[0]) for at, new in kept]
        if gone:
            found += [("LSET", key, at, marker) for at in gone]
            found.append(("LREM", key, 0, marker))
        return found
    if value.kind == HASH:
        found = [("HSET", key, new.name, new.parts[0]) for _, new in kept]
        return [*found, *(("HDEL", key, old[at].name) for at in gone)]
    if value.kind == SET:
        found = [("SREM", key, old[at].parts[0]) for at in edits]
        return [*found, *(("SADD", key, new.parts[0]) for _, new in kept)]
    if value.kind == SORTED:
        ranks = _ranks(session, key, {each.parts[0] for each in old.values()})
        found = [("ZREMRANGEBYRANK", key, rank, rank) for rank in reversed(ranks)]
        return [*found, *(("ZADD", key, new.name, new.parts[0]) for _, new in kept)]
    raise ValueError(f"a {value.kind} is not changed in place")


def _ranks(session: Session, key: bytes, members: Collection[bytes]) -> list[int]:
    """Return the places of members of a sorted set, in order."""
    found: list[int] = []
    at = 0
    while page := session.call("ZRANGE", key, at, at + PAGE - 1):
        found += [at + i for i, member in enumerate(page) if member in members]
        at += len(page)
    return found


def lives_apart(session: Session, value: Value, edits: Mapping[int, Element | None]) -> bool:
    """Whether fields that would be written again have a time to live of their own (Redis 7.4)."""
    names = [new.name for new in edits.values() if new is not None]
    if value.kind != HASH or not names:
        return False
    (answer,) = session.outcomes([("HPTTL", value.key, "FIELDS", len(names), *names)])
    return isinstance(answer, list) and any(int(life) >= 0 for life in answer)
