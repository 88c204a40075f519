"""Whether the logs of a site can be sifted for what is looked for, and with what.

A sieve passes over lines that nobody will look at, so it is made only where a line that is not
looked at can have no part in the answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purge.adapter import Site
from purge.matching.prefilter import Prefilter
from purge.targets import Targets
from purge_adapters._bytes import open_quietly, written_forms
from purge_adapters._codecs import HEAD_BYTES, Codec, detect
from purge_adapters._json_fields import Fields
from purge_adapters._jsonl_lines import is_wide
from purge_adapters._jsonl_record import is_content_name
from purge_adapters._prefilter_read import Sieve
from purge_adapters._prefilter_second import second_look, sees

__all__ = ["WORTH", "Sieves", "sieve_for", "sieve_of_ids", "sieves_for"]

WORTH: Final = 4 * 1024 * 1024
"""Logs smaller than this are read record by record: it takes no time, and the records are
counted."""
_SAMPLE: Final = 64 * 1024
_SAMPLE_PER_PHRASE: Final = 256
_LARGEST_SAMPLE: Final = 1024 * 1024
"""Counting what stands in a sample takes 0.2 s for a MiB, which few phrases do not earn."""
_OWN: Final = (("$id",), ("$key",))
"""Paths of fields that do not stand in the line."""


@dataclass(frozen=True, slots=True)
class Sieves:
    """What a second look needs: its own sieve, that of the first look, and whether that one saw
    the usual writings of every phrase when it was tried."""

    second: Sieve
    first: Sieve
    is_seeing: bool


def sieve_for(site: Site, files: Sequence[Path], fields: Fields, targets: Targets) -> Sieve | None:
    """Return a sieve for everything that ``targets`` names at a site; ``None`` if there is none.

    Records of a derived site are all read, since it is asked which of them say what they derive
    from. Names that are made from the content of a record stand in no line.
    """
    prefilter = _prefilter_for(site, files, fields, targets)
    return Sieve(prefilter) if prefilter else None


def sieves_for(
    site: Site, files: Sequence[Path], fields: Fields, targets: Targets, needles: Iterable[bytes]
) -> Sieves | None:
    """Return the sieves of a second look; ``None`` if every line has to be read.

    Args:
        site: the site.
        files: its files.
        fields: what the fields of its records mean.
        targets: what is looked for.
        needles: the bytes in which records that have to go may stand anywhere.
    """
    prefilter = _prefilter_for(site, files, fields, targets)
    if prefilter is None:
        return None
    phrases = targets.phrases()
    ids = (*targets.ids(site.name), *targets.subjects())
    named = (form for phrase in phrases for form in written_forms(phrase))
    quoted = (json.dumps(id, ensure_ascii=raw) for id in ids for raw in (False, True))
    looked_for = (*needles, *named, *(it.encode("utf-8", "surrogatepass") for it in quoted))
    second = second_look(prefilter, looked_for)
    if second is None:
        return None
    return Sieves(Sieve(second), Sieve(prefilter), sees(prefilter, phrases))


def _prefilter_for(
    site: Site, files: Sequence[Path], fields: Fields, targets: Targets
) -> Prefilter | None:
    ids = (*targets.ids(site.name), *targets.subjects())
    if site.derived_from or fields.subject in _OWN or any(map(is_content_name, ids)):
        return None
    return _prefilter(files, targets.phrases(), ids)


def sieve_of_ids(files: Sequence[Path], ids: Collection[str]) -> Sieve | None:
    """Return a sieve for ids that records have in a field."""
    prefilter = _prefilter(files, (), ids)
    return Sieve(prefilter) if prefilter else None


def _prefilter(
    files: Sequence[Path], phrases: Collection[str], ids: Collection[str]
) -> Prefilter | None:
    sizes: dict[Path, int] = {}
    for path in files:
        with suppress(OSError):
            sizes[path] = path.stat().st_size
    if sum(sizes.values()) < WORTH:
        return None
    largest = max(sizes, key=sizes.__getitem__)
    wanted = min(_LARGEST_SAMPLE, _SAMPLE + _SAMPLE_PER_PHRASE * len(phrases))
    return Prefilter(phrases, ids, _sample(largest, sizes[largest], wanted))


def _sample(path: Path, size: int, wanted: int) -> bytes:
    """Return some of a plain file, from its middle; nothing where it cannot be read now."""
    with suppress(OSError), open_quietly(path) as stream:
        descriptor = stream.fileno()
        head = os.pread(descriptor, HEAD_BYTES, 0)
        if detect(head) is Codec.PLAIN and not is_wide(head):
            return os.pread(descriptor, wanted, max(0, (size - wanted) // 2))
    return b""
