"""The key file: 32 random bytes in base64, in a file that only its owner may read.

Whoever has it and the ledger's folder can read what open requests look for. Losing it loses what
is sealed, and nothing else of the ledger.
"""

from __future__ import annotations

import base64
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from purge.errors import LedgerFault
from purge.ledger.sealing import KEY_BYTES, new_key
from purge.ledger.storage import Kind, faults, make_folder, sync_folder

_KIND: Final = Kind("key file", 0)
_LONGEST: Final = 1024
_HOW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


def read_key_file(path: Path) -> bytes:
    """Return the key.

    Raises:
        LedgerFault: the file is missing, open to others, or holds no key.
    """
    with faults(_KIND, path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise LedgerFault(
                f"The key file {path} is missing. Put it back where it was; without it nothing "
                "that is sealed can be read."
            ) from None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise LedgerFault(f"The key file {path} is not a file.")
            content = os.read(handle, _LONGEST)
        finally:
            os.close(handle)
    # As ssh does: a secret that someone else put there with a wider mode is their business.
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
        raise LedgerFault(f"The key file {path} can be read by others; run: chmod 600 {path}")
    try:
        key = base64.b64decode(content.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise LedgerFault(f"The key file {path} holds no key of purge, or is damaged.")
    return key


def make_key_file(path: Path) -> bytes:
    """Make the key file if it is missing, and return the key that it then holds.

    It is written under another name first and then linked, so that it is never half there, and
    never written over.

    Raises:
        LedgerFault: it cannot be made, or what is there cannot be used.
    """
    with faults(_KIND, path):
        if path.exists():
            return read_key_file(path)
        make_folder(path.parent)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        handle = os.open(draft, _HOW, 0o600)
        try:
            try:
                os.write(handle, base64.b64encode(new_key()) + b"\n")
                os.fsync(handle)
            finally:
                os.close(handle)
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was faster
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise LedgerFault(
                    f"The file system of {path} has no links, nor likely file modes that would "
                    "keep a key from others; put the key file on another one."
                ) from error
            raise
        finally:
            draft.unlink()
        sync_folder(path.parent)
    return read_key_file(path)
