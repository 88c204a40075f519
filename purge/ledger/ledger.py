"""The ledger itself: opening, appending, sealing, reading.

Everything is written in one transaction each and is on disk when the call returns, so that an act
can be announced before it is done. Two processes may append; they take turns.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar, cast

from purge.errors import LedgerFault, UsageFault
from purge.ledger import projection, sealing
from purge.ledger.events import JSON, Event, EventKind
from purge.ledger.keyring import Keyring
from purge.ledger.migrations import LEDGER_STEPS, refuse_older
from purge.ledger.opening import missing_ledger, open_both
from purge.ledger.reader import LedgerReader
from purge.ledger.storage import (
    LEDGER,
    QuietReader,
    faults,
    identity,
    is_begun,
    ledger_files,
    snapshot,
    transaction,
)
from purge.ledger.verify import Around, all_folds, verify
from purge.ledger.views import HOLD, KeyState, NewRequest, RequestView, StepRecord, Verification
from purge.ledger.wanted import (
    created_body,
    refuse_repetition,
    targets_from_json,
    targets_to_json,
)
from purge.ledger.writer import Writer
from purge.targets import Target

Clock = Callable[[], datetime]
T = TypeVar("T")

TARGETS: Final = "targets"
"""Under which name the targets of a request are sealed."""
_OWN: Final = frozenset(
    {
        EventKind.LEDGER_CREATED,
        EventKind.REQUEST_CREATED,
        EventKind.REQUEST_SEALED,
        EventKind.KEY_DESTROYING,
        EventKind.KEY_DESTROYED,
    }
)
"""What only the ledger writes, since it says something about its own files."""


class Ledger(LedgerReader):
    """The record of every request. Use it as a context manager, in one thread.

    It holds no text that is to be forgotten, no record id and no subject id in the clear: what a
    request looks for is sealed with a key of its own.
    """

    def __init__(
        self,
        path: Path,
        key_file: Path | None,
        *,
        clock: Clock,
        keyring: Keyring | None = None,
        writing: sqlite3.Connection | None = None,
    ) -> None:
        self._path = path
        self._key_file = key_file
        self._keyring = keyring
        self._writing = writing
        self._reader = QuietReader(LEDGER, path) if writing is None else None
        self._clock = clock
        self._request_keys: dict[str, bytes] = {}
        self._identity = None if writing is None else identity(path)
        self._closed = False

    @classmethod
    def create_or_open(cls, path: Path, key_file: Path, *, clock: Clock) -> Ledger:
        """Open the ledger at ``path`` (a database file) to write, and make it if it is missing.

        Makes the folders (0700), the databases and the key file (0600) that are missing. A call
        that was killed half way is completed by the next one.

        Raises:
            LedgerFault: one part is there and another that belongs to it is not; or as for
                :meth:`open_existing`.
        """
        return cls._open_to_write(path, key_file, clock, create=True)

    @classmethod
    def open_existing(cls, path: Path, key_file: Path, *, clock: Clock) -> Ledger:
        """Open an existing ledger to write; makes none.

        Raises:
            LedgerFault: it is missing, damaged, shortened, newer than this program, or not this
                key file's.
        """
        return cls._open_to_write(path, key_file, clock, create=False)

    @classmethod
    def _open_to_write(cls, path: Path, key_file: Path, clock: Clock, *, create: bool) -> Ledger:
        keyring, connection = open_both(path, key_file, clock(), create=create)
        ledger = cls(path, key_file, clock=clock, keyring=keyring, writing=connection)
        try:
            ledger._finish_destroying()
        except BaseException:
            ledger._let_go()
            raise
        return ledger

    @classmethod
    def open_read_only(cls, path: Path, key_file: Path | None = None) -> Ledger:
        """Open an existing ledger to read. Makes and writes nothing, also beside it.

        Keys are read when something is unsealed or verified. Without ``key_file`` nothing can be
        unsealed.

        Raises:
            LedgerFault: it is missing, damaged, or needs to be brought up to date.
        """
        if not is_begun(LEDGER, path):
            raise missing_ledger(path)
        ledger = cls(path, key_file, clock=lambda: datetime.now(UTC))
        try:
            ledger._read(lambda connection: refuse_older(connection, LEDGER, LEDGER_STEPS))
        except BaseException:
            ledger._let_go()
            raise
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Note the end of the ledger and let go of the files. Closing twice is harmless.

        It is noted here and not with each append, which would take several times as long. What a
        run that was killed had written is noted by the next one.
        """
        try:
            if self._writing is not None and not self._closed:
                self._note_end()
        finally:
            self._let_go()

    # Writing

    def create_request(self, new: NewRequest) -> RequestView:
        """Record a request with its sealed targets and an ``accepted`` step for each site.

        Returns:
            the request, with its new id (a ULID).

        Raises:
            Refused: the reason repeats what is to be forgotten.
            UsageFault: there is nothing to look for.
        """
        from ulid import ULID

        if not new.targets and not new.hold:
            raise UsageFault("A request names at least one id, phrase or subject.")
        refuse_repetition(new.reason, new.targets)
        now = self._clock()
        id = str(ULID.from_datetime(now))
        key, key_id = sealing.new_key(), secrets.token_hex(16)
        # The key is there before the first event that needs it; one that is left over from a
        # call that was killed here belongs to nothing and says nothing.
        self._keys.add(id, key_id, key, new.idempotency)
        self._request_keys[id] = key
        with self._write(now) as writer:
            writer.add(Event(EventKind.REQUEST_CREATED, id, None, created_body(new, key_id)))
            writer.seal(id, TARGETS, targets_to_json(new.targets), key)
            if new.hold is not None:
                writer.seal(id, HOLD, new.hold, key)
            for site, adapter in new.sites.items():
                writer.add(StepRecord(adapter).event(id, site))
        return cast("RequestView", self.request(id))

    def append(
        self,
        events: Sequence[Event],
        sealing: Mapping[tuple[str, str], Mapping[str, JSON]] | None = None,
    ) -> None:
        """Write events in one transaction; they are on disk when this returns.

        Args:
            events: what happened, in order.
            sealing: by request and name, what is to be sealed in the same transaction, as
                :meth:`seal` does, before the events.

        Raises:
            LedgerFault: an event may not follow those that are there (nothing is written then),
                or the ledger cannot be written.
            Locked: another process kept writing for several seconds.
        """
        for event in events:
            if event.kind in _OWN:
                raise LedgerFault(f"An event {event.kind} is written by the ledger alone.")
        keys = {place: self._request_key(self._known(place[0])) for place in sealing or ()}
        if not events and not keys:
            return
        with self._write(self._clock()) as writer:
            for (request, name), payload in (sealing or {}).items():
                writer.seal(request, name, payload, keys[request, name])
            for event in events:
                writer.add(event)

    def seal(self, request: str, name: str, payload: Mapping[str, JSON]) -> None:
        """Encrypt ``payload`` with the request's own key and keep it under ``name``.

        What was kept under that name before is replaced. Floats are allowed here.

        Raises:
            LedgerFault: there is no such request, or its key was destroyed.
        """
        self.append((), {(request, name): payload})

    def destroy_key(self, request: str, *, remember_asked: bool = False) -> None:
        """Destroy the request's key, so that what it looked for can never be read again.

        Does nothing when that was done before, and completes it when a run was killed in it.

        Args:
            request: its id.
            remember_asked: keep its idempotency key, so that the same request is still known
                when it is asked again. Whoever has the key file can then still test a guess.

        Raises:
            LedgerFault: the key's bytes could not be removed from its file.
        """
        view = self._known(request)
        if view.key is KeyState.DESTROYED:
            return
        if view.key is KeyState.HELD:
            with self._write(self._clock()) as writer:
                body: dict[str, JSON] = {"key": view.key_id, "remember_asked": remember_asked}
                writer.add(Event(EventKind.KEY_DESTROYING, request, None, body))
                writer.drop_sealed(request)
        else:
            remember_asked = self._said_to_remember(request)
        self._request_keys.pop(request, None)
        self._keys.destroy(request, view.key_id, remember_asked=remember_asked)
        with faults(LEDGER, self._path):  # the WAL still holds what was encrypted
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._write(self._clock()) as writer:
            # Another process may have completed it in the meantime.
            if writer.view(request).key is KeyState.DESTROYING:
                body = {"key": view.key_id}
                writer.add(Event(EventKind.KEY_DESTROYED, request, None, body))

    def rebuild(self) -> None:
        """Make the projection anew from the events.

        Raises:
            LedgerFault: the chain does not hold.
        """
        connection = self._connection
        with faults(LEDGER, self._path), transaction(connection):
            folds = all_folds(connection)
            projection.clear(connection)
            for folded, seq in folds.values():
                projection.save(connection, folded, seq)

    # Sealed content and digests

    def unseal(self, request: str, name: str) -> dict[str, JSON] | None:
        """Return what was sealed under ``name``.

        ``None`` when nothing was, or when the key was destroyed; :attr:`RequestView.key` says
        which.

        Raises:
            LedgerFault: it was altered, or the key file or the key is not the right one.
        """
        view = self._known(request)
        if view.key is not KeyState.HELD:
            return None

        def look(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
            loaded = projection.load(connection, request)
            sealed = None if loaded is None else loaded[0].sealed.get(name)
            if sealed is None:
                return None
            row = connection.execute(
                "SELECT content FROM sealed WHERE request = ? AND name = ?", (request, name)
            ).fetchone()
            content = b"" if row is None else sealing.as_bytes(row[0])
            if sealing.digest_of(content) != sealed.digest:
                raise LedgerFault(f"What is sealed of request {request} was altered.")
            return sealed.version, content

        found = self._read(look)
        if found is None:
            return None
        version, content = found
        place = [self._keys.ledger, request, name, str(version)]
        plain = sealing.decrypt(self._request_key(view), content, place)
        if plain is None:
            raise LedgerFault(f"What is sealed of request {request} was altered.")
        return sealing.unpack(plain)

    def targets(self, request: str) -> tuple[Target, ...] | None:
        """Return what the request looks for; ``None`` when the key was destroyed.

        Raises:
            LedgerFault: as for :meth:`unseal`.
        """
        payload = self.unseal(request, TARGETS)
        return None if payload is None else targets_from_json(payload)

    def idempotency_key(self, parts: Sequence[str]) -> str:
        """Return a keyed digest of ``parts`` by which the same request is known again."""
        return self._keys.idempotency_key(parts)

    def find_by_idempotency(self, key: str) -> str | None:
        """Return the id of the last request that was made with ``key``.

        ``None`` after its key was destroyed, unless that was done with ``remember_asked``.
        """
        request = self._keys.asked(key)
        # A call that was killed between the two databases leaves the key and no request.
        return None if request is None or self.request(request) is None else request

    def keyed_digest(self, request: str, text: str) -> str:
        """Return a digest of ``text`` under the request's own key, to stand in its events.

        It can be compared while the key lives; after that not even a guess can be tested.

        Raises:
            LedgerFault: the key was destroyed.
        """
        key = self._request_key(self._known(request))
        return sealing.keyed_digest(sealing.subkey(key, "digest"), [text])

    def verify(self, *, noted: tuple[int, str] | None = None) -> Verification:
        """Check every hash, every rule, the anchor, the projection and what is sealed.

        Args:
            noted: a number of events and the hash of the last of them, as an earlier
                :class:`Verification` gave them and someone noted elsewhere.

        Raises:
            LedgerFault: the ledger cannot be read at all, or its keys are missing.
        """
        if self._key_file is not None:
            return self._read(partial(verify, Around(self._keys, noted)))
        with closing(Keyring.open_to_read(ledger_files(self._path).keys, None)) as keyring:
            return self._read(partial(verify, Around(keyring, noted)))

    # Inside

    @property
    def _keys(self) -> Keyring:
        if self._keyring is None:
            if self._key_file is None:
                raise LedgerFault("This needs the ledger's key file, and it was opened without.")
            keys = ledger_files(self._path).keys
            self._keyring = Keyring.open_to_read(keys, self._key_file)
        return self._keyring

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._writing is None:
            raise LedgerFault("The ledger was opened to read only.")
        return self._writing

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        with faults(LEDGER, self._path):
            if self._reader is not None:
                return self._reader.read(look)
            with snapshot(self._connection):
                return look(self._connection)

    @contextmanager
    def _write(self, now: datetime) -> Iterator[Writer]:
        connection = self._connection
        with faults(LEDGER, self._path), transaction(connection):
            if identity(self._path) != self._identity:
                # SQLite would go on writing to a file that no one can find any more.
                raise LedgerFault(
                    f"The ledger {self._path} was moved, replaced or deleted while it was open."
                )
            writer = Writer(connection, self._keys.ledger, now)
            yield writer
            writer.finish()

    def _let_go(self) -> None:
        self._closed = True
        self._request_keys.clear()
        for part in (self._writing, self._reader, self._keyring):
            if part is not None:
                part.close()

    def _note_end(self) -> None:
        row = self._read(
            lambda connection: connection.execute(
                "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
            ).fetchone()
        )
        if row is not None and row[0] != self._keys.anchor().events:
            self._keys.note(*row)

    def _finish_destroying(self) -> None:
        """Complete what a run that was killed had begun."""
        rows = self._read(
            lambda connection: connection.execute(
                "SELECT id FROM requests WHERE key = 'destroying'"
            ).fetchall()
        )
        for (request,) in rows:
            self.destroy_key(request)

    def _said_to_remember(self, request: str) -> bool:
        announced = list(self.events(request, [EventKind.KEY_DESTROYING]))
        return bool(announced and announced[-1].body.get("remember_asked"))

    def _known(self, request: str) -> RequestView:
        view = self.request(request)
        if view is None:
            raise LedgerFault("There is no such request in the ledger.")
        return view

    def _request_key(self, view: RequestView) -> bytes:
        if view.key is not KeyState.HELD:
            raise LedgerFault(f"The key of request {view.id} was destroyed.")
        if view.id not in self._request_keys:
            self._request_keys[view.id] = self._keys.key(view.id, view.key_id)
        return self._request_keys[view.id]
