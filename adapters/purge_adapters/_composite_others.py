"""Searching files that belong to a format and to none of its members: read, never changed.

They are looked at as bytes, out of their compression; zip archives (and the office formats that
are ones) entry by entry. What is in a picture or a PDF cannot be seen that way.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from purge.adapter import Examined, NotChecked, ProblemCode, Site
from purge.errors import StoreError
from purge.targets import Targets
from purge_adapters._bytes import BLOCK, open_quietly
from purge_adapters._codecs import HEAD_BYTES, Codec, detect, reader
from purge_adapters._files import os_problem, relative

__all__ = ["look_into"]

_OVERLAP: Final = 1 << 16
"""How many bytes are looked at twice where a file is searched in pieces: a border may cut."""
_HELD: Final = (
    "it holds what is looked for, and the format does not say what a record in it is: it was left "
    "as it is"
)


def look_into(path: Path, site: Site, targets: Targets) -> Iterator[NotChecked | Examined]:
    """Search one file, and say if it holds a phrase or cannot be looked into."""
    where = relative(path, site)
    try:
        with open_quietly(path) as stream:
            head = stream.read(HEAD_BYTES)
            stream.seek(0)
            if head.startswith(b"PK\x03\x04"):
                held, size = _in_archive(stream, targets)
            elif detect(head) is Codec.CLOSED:
                yield NotChecked(
                    where, "an archive or encrypted; not looked into", ProblemCode.UNSUPPORTED
                )
                return
            else:
                held, size = _in_blocks(reader(stream), targets)
    except OSError as error:
        problem = os_problem(error, where)
        yield NotChecked(where, str(problem), ProblemCode(problem.problem))
    except StoreError as error:
        yield NotChecked(where, str(error), ProblemCode(error.problem))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError):
        yield NotChecked(where, "an archive that cannot be read", ProblemCode.CORRUPT)
    except RuntimeError:
        # What zipfile raises for an entry that wants a password.
        yield NotChecked(where, "an encrypted archive; not looked into", ProblemCode.UNSUPPORTED)
    else:
        if held:
            yield NotChecked(where, _HELD, ProblemCode.UNSUPPORTED)
        yield Examined(files=1, bytes=size)


def _in_archive(stream: BinaryIO, targets: Targets) -> tuple[bool, int]:
    held, size = False, 0
    with zipfile.ZipFile(stream) as archive:
        for entry in archive.infolist():
            held = held or targets.mentioned_in(entry.filename.encode("utf-8", "surrogatepass"))
            with archive.open(entry) as inner:
                blocks = iter(lambda inner=inner: inner.read(BLOCK), b"")  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
                found, length = _in_blocks(blocks, targets)
            held, size = held or found, size + length
    return held, size


def _in_blocks(blocks: Iterable[bytes], targets: Targets) -> tuple[bool, int]:
    held, size, tail = False, 0, b""
    for block in blocks:
        size += len(block)
        held = held or targets.mentioned_in(tail + block)
        tail = (tail + block)[-_OVERLAP:]
    return held, size
