"""Looking for bytes in files, without leaving a mark on them.

For residue only: what stands in a file, whatever the file means. This module writes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, Final

BLOCK: Final = 4 * 1024 * 1024


def open_quietly(path: Path) -> BinaryIO:
    """Open a file for reading so that its access time stays what it was, where we may.

    Linux lets only the owner (or root) leave the access time alone; for others it is the kernel's
    mount option that decides (``relatime`` by default). A symbolic link at the end of the path is
    refused.

    Raises:
        OSError: as :func:`open` does; ``ELOOP`` for a symbolic link.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        descriptor = os.open(path, flags)
    return os.fdopen(descriptor, "rb")


def written_forms(text: str) -> tuple[bytes, ...]:
    """Return the bytes in which ``text`` may stand in a file: UTF-8, UTF-16, JSON escapes."""
    forms = (
        text.encode("utf-8", "surrogatepass"),
        text.encode("utf-16-le", "surrogatepass"),
        text.encode("utf-16-be", "surrogatepass"),
        json.dumps(text)[1:-1].encode("ascii"),
        json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
    )
    return tuple(dict.fromkeys(forms))


def find_bytes(path: Path, needles: Iterable[bytes]) -> Mapping[bytes, int]:
    """Return which needles stand in the file, with the offset of the first place of each.

    Reads in blocks with an overlap, so that the size of the file does not matter.

    Args:
        path: a regular file.
        needles: none may be empty.

    Raises:
        OSError: the file cannot be read.
        ValueError: a needle is empty.
    """
    wanted = set(needles)
    if not all(wanted):
        raise ValueError("an empty needle stands everywhere")
    found: dict[bytes, int] = {}
    if not wanted:
        return found
    overlap = max(map(len, wanted)) - 1
    with open_quietly(path) as stream:
        tail, start = b"", 0
        while block := stream.read(BLOCK):
            data = tail + block
            for needle in tuple(wanted):
                at = data.find(needle)
                if at >= 0:
                    found[needle] = start + at
                    wanted.discard(needle)
            if not wanted:
                break
            tail = data[-overlap:] if overlap else b""
            start += len(data) - len(tail)
    return found
