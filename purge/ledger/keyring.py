"""The keys of the requests, in a database of their own, so that destroying one is the end of it.

Each request has a key of its own, wrapped by the key file. A key that is deleted is overwritten
in the file (``secure_delete``, and a rollback journal, which unlike a WAL does not go on holding
what was there before); then the file is read to see that it is gone. What a file system or disk
keeps of old blocks cannot be seen from here: it is the wrapped key only, of no use without the
key file.

Also kept here, because it has to be forgotten with the key or must lie apart from the chain:

- which requests were asked under which idempotency key;
- the anchor: how many events there were and the hash of the last, with a keyed digest. It shows
  that events were taken off the end of the chain, or that an older copy of the ledger was put in
  place of the newer one. It is noted whenever a ledger is closed, so it cannot show it of what a
  killed run wrote until the next one ends; nor when both databases were put back together; and
  someone who has the key file can make a new one. Against those, note the head elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from purge.errors import LedgerFault
from purge.ledger import sealing
from purge.ledger.events import GENESIS
from purge.ledger.keyfile import make_key_file, read_key_file
from purge.ledger.migrations import KEYS_STEPS, migrate, refuse_older
from purge.ledger.storage import KEYS, faults, is_begun, open_to_read, open_to_write, transaction

_JOURNAL: Final = "DELETE"
_PROBE: Final = 24
"""How many bytes of a wrapped key are looked for in the file after it was deleted."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """How many events the ledger had when it was last noted, and the hash of the last."""

    events: int
    head: str
    mac: str


class Keyring:
    """The key database of one ledger, opened with its key file or, to read, without."""

    def __init__(self, path: Path, connection: sqlite3.Connection, key: bytes | None) -> None:
        self._path = path
        self._connection = connection
        self._wrapping = None if key is None else sealing.subkey(key, "wrap")
        with faults(KEYS, path):
            self.ledger = self._about("ledger").decode("ascii")
        """The id of the ledger that the keys belong to."""
        self._secret: bytes | None = None
        if self._wrapping is not None:
            self._secret = sealing.decrypt(
                self._wrapping, self._about("secret"), [self.ledger, "secret"]
            )
            if self._secret is None:
                raise LedgerFault(
                    "The key file is not the one that this ledger was made with. Put the right one "
                    "back; nothing was changed."
                )

    @classmethod
    def open_to_write(cls, path: Path, key_file: Path, *, at: str, create: bool) -> Keyring:
        """Open the keys to write, and make them and the key file when ``create``.

        Raises:
            LedgerFault: something is missing that is not to be made, or does not fit.
        """
        begun = is_begun(KEYS, path)
        if not create and not begun:
            raise _missing(path)
        # Keys that are there were made with a key file, and no new one would open them.
        key = read_key_file(key_file) if begun else make_key_file(key_file)
        connection = open_to_write(KEYS, path, _JOURNAL)
        try:
            with faults(KEYS, path):
                migrate(connection, KEYS, KEYS_STEPS, at)
                if create:
                    _begin(connection, key)
            return cls(path, connection, key)
        except BaseException:
            connection.close()
            raise

    @classmethod
    def open_to_read(cls, path: Path, key_file: Path | None) -> Keyring:
        """Open the keys to read; makes and changes nothing.

        Raises:
            LedgerFault: something is missing or does not fit.
        """
        key = None if key_file is None else read_key_file(key_file)
        if not is_begun(KEYS, path):
            raise _missing(path)
        with faults(KEYS, path):
            connection = open_to_read(path)
        try:
            with faults(KEYS, path):
                refuse_older(connection, KEYS, KEYS_STEPS)
            return cls(path, connection, key)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _about(self, name: str) -> bytes:
        with faults(KEYS, self._path):
            row = self._connection.execute(
                "SELECT value FROM about WHERE name = ?", (name,)
            ).fetchone()
        if row is None:
            raise LedgerFault(f"The ledger's key database {self._path} is empty or damaged.")
        return sealing.as_bytes(row[0])

    def _subkey(self, purpose: str) -> bytes:
        if self._secret is None:
            raise LedgerFault("This needs the ledger's key file, and it was opened without.")
        return sealing.subkey(self._secret, purpose)

    # Keys of requests

    def add(self, request: str, key_id: str, key: bytes, asked: str | None) -> None:
        """Keep a new request's key, and under which idempotency key it was asked."""
        if self._wrapping is None:
            raise LedgerFault("This needs the ledger's key file, and it was opened without.")
        wrapped = sealing.encrypt(self._wrapping, key, [self.ledger, "key", key_id, request])
        with faults(KEYS, self._path), transaction(self._connection):
            self._connection.execute(
                "INSERT INTO keys VALUES (?, ?, ?)", (key_id, request, wrapped)
            )
            if asked is not None:
                self._connection.execute(
                    "INSERT OR REPLACE INTO asked VALUES (?, ?)", (asked, request)
                )

    def key(self, request: str, key_id: str) -> bytes:
        """Return a request's key.

        Raises:
            LedgerFault: it is not there, or was altered.
        """
        if self._wrapping is None:
            raise LedgerFault("This needs the ledger's key file, and it was opened without.")
        with faults(KEYS, self._path):
            row = self._connection.execute(
                "SELECT wrapped FROM keys WHERE id = ?", (key_id,)
            ).fetchone()
        if row is None:
            raise LedgerFault(
                f"The key of request {request} is missing, though it was not destroyed: the key "
                "database is older than the ledger."
            )
        key = sealing.decrypt(
            self._wrapping, sealing.as_bytes(row[0]), [self.ledger, "key", key_id, request]
        )
        if key is None:
            raise LedgerFault(f"The key of request {request} was altered.")
        return key

    def ids(self) -> frozenset[str]:
        """Return the ids of all keys that are there."""
        with faults(KEYS, self._path):
            return frozenset(row[0] for row in self._connection.execute("SELECT id FROM keys"))

    def destroy(self, request: str, key_id: str, *, remember_asked: bool) -> None:
        """Delete a request's key and see that its bytes are gone from the file.

        Raises:
            LedgerFault: they are not.
        """
        with faults(KEYS, self._path):
            row = self._connection.execute(
                "SELECT wrapped FROM keys WHERE id = ?", (key_id,)
            ).fetchone()
            with transaction(self._connection):
                self._connection.execute("DELETE FROM keys WHERE id = ?", (key_id,))
                if not remember_asked:
                    self._connection.execute("DELETE FROM asked WHERE request = ?", (request,))
            if row is not None and not self._holds(sealing.as_bytes(row[0])):
                return
            # Either the bytes moved within the file, or it was deleted by a run that was killed
            # before it could look.
            self._connection.execute("VACUUM")
            if row is not None and self._holds(sealing.as_bytes(row[0])):
                raise LedgerFault(
                    f"The key of request {request} was deleted, but its bytes are still in "
                    f"{self._path}; close what holds that file open, then try again."
                )

    def _holds(self, wrapped: bytes) -> bool:
        if not wrapped:
            return False
        journal = self._path.with_name(self._path.name + "-journal")
        pieces = (wrapped[:_PROBE], wrapped[-_PROBE:])
        contents = [file.read_bytes() for file in (self._path, journal) if file.exists()]
        return any(piece in content for piece in pieces for content in contents)

    # What is asked twice

    def idempotency_key(self, parts: Sequence[str]) -> str:
        """Return a keyed digest of ``parts``."""
        return sealing.keyed_digest(self._subkey("asked"), parts)

    def asked(self, key: str) -> str | None:
        """Return the last request that was asked under an idempotency key."""
        with faults(KEYS, self._path):
            row = self._connection.execute(
                "SELECT request FROM asked WHERE key = ?", (key,)
            ).fetchone()
        return None if row is None else str(row[0])

    # The anchor

    def anchor(self) -> Anchor:
        """Return what was noted last, as it stands; :meth:`is_genuine` says whether to believe it.

        Raises:
            LedgerFault: there is no note.
        """
        with faults(KEYS, self._path):
            row = self._connection.execute("SELECT events, head, mac FROM anchor").fetchone()
        if row is None or list(map(type, row)) != [int, str, str]:
            raise altered_anchor()
        return Anchor(*row)

    def is_genuine(self, anchor: Anchor) -> bool:
        """Whether ``anchor`` was noted with the key file; ``True`` too when opened without."""
        if self._secret is None:
            return True
        return sealing.same(anchor.mac, self._mac(anchor.events, anchor.head))

    def note(self, events: int, head: str) -> None:
        """Note how many events there are, and the hash of the last; never back to fewer."""
        with faults(KEYS, self._path), transaction(self._connection):
            self._connection.execute(
                "UPDATE anchor SET events = ?1, head = ?2, mac = ?3 WHERE ?1 > events",
                (events, head, self._mac(events, head)),
            )

    def _mac(self, events: int, head: str) -> str:
        return _mac(self._subkey("anchor"), self.ledger, events, head)


def _begin(connection: sqlite3.Connection, key: bytes) -> None:
    """Give a new key database the id of its ledger and the secret behind all keyed digests."""
    with transaction(connection):
        if connection.execute("SELECT 1 FROM about").fetchone() is not None:
            return
        ledger, secret = sealing.new_key()[:16].hex(), sealing.new_key()
        wrapped = sealing.encrypt(sealing.subkey(key, "wrap"), secret, [ledger, "secret"])
        connection.executemany(
            "INSERT INTO about VALUES (?, ?)",
            [("ledger", ledger.encode("ascii")), ("secret", wrapped)],
        )
        mac = _mac(sealing.subkey(secret, "anchor"), ledger, 0, GENESIS)
        connection.execute("INSERT INTO anchor VALUES (1, 0, ?, ?)", (GENESIS, mac))


def _mac(key: bytes, ledger: str, events: int, head: str) -> str:
    return sealing.keyed_digest(key, [ledger, str(events), head])


def altered_anchor() -> LedgerFault:
    """Return the fault of an anchor that was not made with the key file."""
    return LedgerFault("The note of the ledger's end was altered.")


def _missing(path: Path) -> LedgerFault:
    return LedgerFault(
        f"The ledger's key database {path} is missing. Put it back from where the ledger came; "
        "without it nothing that is sealed can be read."
    )
