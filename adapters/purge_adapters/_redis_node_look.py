"""One node's slow log, streams and files, looked through for what is left. Only reads."""

from __future__ import annotations

import time
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from purge.adapter import Examined, NotChecked, Observation, ProblemCode, Residue, Site
from purge_adapters._files import os_problem
from purge_adapters._redis_aof import is_known, stored_in
from purge_adapters._redis_controls import Trial
from purge_adapters._redis_errors import is_refusal
from purge_adapters._redis_files import Found, Kept, Role, content_of, files_of, kept_by
from purge_adapters._redis_needles import Needles, Seen, spelled
from purge_adapters._redis_nodes import REFUSED, Node
from purge_adapters._redis_packed import Malformed
from purge_adapters._redis_rdb import Stored, pieces_of_dump
from purge_adapters._redis_settings import RedisSettings
from purge_adapters._redis_values import Value, read

LOG, DUMP, SLOW_LOG, REBUILD = "log", "dump", "slow-log", "rebuild"
"""What ``sanitize`` does about a residue."""
_LOOKS: Final = 4
_PAUSE_S: Final = 0.05
_PATIENCE_S: Final = 5.0
"""How long a rewrite that is under way is waited for before the files are looked at."""
_MOST_NAMES: Final = 16
_LONGEST_NAME: Final = 1024
_WHY: Final = {
    Role.DUMP: "it was saved before the removal, or without it",
    Role.LOG: "it keeps every write until it is written anew",
    Role.OLD_LOG: "the server no longer uses it, and nothing removes it",
    Role.TEMPORARY: "an interrupted rewrite left it, and nothing removes it",
    Role.COPY: "a copy that nothing removes",
}


class NodeLook:
    """One look at one node.

    Args:
        node: the node.
        site: the site.
        settings: of the site.
        needles: what is looked for.
        trial: live records on which the look is tried.
        has_gone: something that was found before is gone from reads.
    """

    def __init__(
        self,
        node: Node,
        site: Site,
        settings: RedisSettings,
        needles: Needles,
        trial: Trial,
        has_gone: bool,
    ) -> None:
        self.node = node
        self.site = site
        self.settings = settings
        self.needles = needles
        self.trial = trial
        self.has_gone = has_gone
        self.sound = True
        """All files that were read were understood to their ends."""
        self.is_complete = False
        """The files that were read must hold all that is live."""
        self._live: dict[tuple[int, bytes], bytes] = {}

    def everything(
        self, databases: Sequence[int], streams: Iterable[tuple[int, bytes]]
    ) -> Iterator[Observation]:
        """Look at all that the node keeps.

        Args:
            databases: those of the site.
            streams: its streams that belong to the site.
        """
        yield from self.slow_log(databases)
        yield from self.streams(streams)
        yield from self.files()

    # In memory.

    def slow_log(self, databases: Sequence[int]) -> Iterator[Observation]:
        """Look through the commands that were slow; their arguments are kept."""
        session = self.node.session(self.node.any_database)
        length = session.ask("SLOWLOG", "LEN")
        entries = REFUSED if length is REFUSED else session.ask("SLOWLOG", "GET", int(length) + 16)
        if entries is REFUSED:
            yield self._invisible("slow log", "it may not be read, and keeps arguments of commands")
            return
        found: list[Seen] = []
        for entry in entries:
            words = tuple(bytes(word) for word in entry[3])
            key = words[1] if len(words) > 1 else b""
            # It does not say in which database it was; what is live in one of them is live.
            each = [list(self._left([Stored(database, key, words)])) for database in databases]
            if all(each):
                found += each[0]
        if found:
            yield self._residue(
                "slow log", "it keeps the arguments of slow commands", found, [SLOW_LOG]
            )
        yield Examined(note=f"the slow log of {self.node.name}")

    def streams(self, keys: Iterable[tuple[int, bytes]]) -> Iterator[Observation]:
        """Look at what streams keep of deleted entries: their payload stays in memory."""
        for database, key in keys:
            dumped = self.node.session(database).ask("DUMP", key)
            if dumped is REFUSED:
                yield self._invisible("streams", "what they keep of deleted entries is not shown")
                return
            if dumped is None:
                continue
            try:
                stored = Stored(database, key, (key, *pieces_of_dump(dumped)))
            except Malformed:
                self.sound = False
                yield NotChecked(
                    f"{self.node.name}, a stream", "its format is not known here",
                    ProblemCode.UNSUPPORTED,
                )  # fmt: skip
                continue
            if found := list(self._left([stored])):
                yield Residue(
                    f"{self.node.name}, a stream",
                    "it keeps the payload of deleted entries until it is made again",
                    fixable=True,
                    handle={
                        "node": self.node.name,
                        "do": [REBUILD],
                        "database": database,
                        "key": b64encode(key).decode("ascii"),
                    },
                    keys=self.needles.keys(found),
                )

    # On disk.

    def files(self) -> Iterator[Observation]:
        """Look at the files, or say that they cannot be seen."""
        kept = self._settled()
        if kept.folder is None or kept.info is None:
            wanted = [LOG] * kept.has_unwritten_log + [DUMP] * kept.has_unsaved_dump
            yield self._invisible(
                "files", "they cannot be seen from here", wanted if self.has_gone else []
            )
            return
        try:
            files = files_of(kept, kept.folder)
        except OSError as error:
            self.sound = False
            problem = os_problem(error)
            yield NotChecked(f"{self.node.name}, files", str(problem), ProblemCode(problem.problem))
            return
        if kept.is_busy:
            yield NotChecked(
                f"{self.node.name}, files", "they are being written anew", ProblemCode.BUSY
            )
        for found in files:
            yield from self._file(found, kept)
        changes = kept.info.get("rdb_changes_since_last_save")
        has_dump = any(found.role is Role.DUMP for found in files)
        self.is_complete = kept.logs or (has_dump and changes == "0")
        yield Examined(note=f"{len(files)} files of {self.node.name}")

    def _settled(self) -> Kept:
        """Return what the node keeps, once a rewrite that runs has ended, or patience has."""
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            kept = kept_by(self.node, self.site, self.settings)
            if kept.folder is None or not kept.is_busy or time.monotonic() > give_up:
                return kept
            time.sleep(_PAUSE_S)

    def _file(self, found: Found, kept: Kept) -> Iterator[Observation]:
        where = f"{self.node.name}, {found.path.name}"
        for look in range(_LOOKS):
            try:
                with content_of(found) as data:
                    if not is_known(data[:8]) and data:
                        raise Malformed
                    seen = list(self._left(self.trial.watch(stored_in(data))))
                    size = len(data)
                break
            except (Malformed, zlib.error):
                # The last command of a log may be half written at this moment.
                if look < _LOOKS - 1 and found.role is Role.LOG:
                    time.sleep(_PAUSE_S)
                    continue
                self.sound = False
                yield NotChecked(where, "it cannot be taken apart", ProblemCode.CORRUPT)
                return
            except FileNotFoundError:
                # Files of a log are replaced by new ones, which have other names.
                if found.role is Role.DUMP or kept.is_busy:
                    yield NotChecked(where, "it went away meanwhile", ProblemCode.BUSY)
                return
            except OSError as error:
                self.sound = False
                problem = os_problem(error)
                yield NotChecked(where, str(problem), ProblemCode(problem.problem))
                return
        else:
            return
        if found.role not in (Role.DUMP, Role.LOG):
            seen = [each for each in seen if each.phrases or each.forms - self.needles.weak]
        if seen:
            do = {Role.DUMP: [DUMP], Role.LOG: [LOG]}.get(found.role, [])
            yield self._residue(found.path.name, _WHY[found.role], seen, do)
        yield Examined(files=1, bytes=size)

    # What is live is not left over.

    def _left(self, stored: Iterable[Stored]) -> Iterator[Seen]:
        """Yield what was seen apart from what stands in the same keys now."""
        for seen in self.needles.look(stored):
            forms, phrases = set(seen.forms), set(seen.phrases)
            for key in self._keys(seen):
                content = self._now(seen.stored.database, key)
                if not content:
                    continue
                forms -= {form for form in forms if form in content}
                if phrases:
                    phrases -= self.needles.held(content)[1]
                if not forms and not phrases:
                    break
            else:
                yield Seen(seen.stored, frozenset(forms), frozenset(phrases))

    @staticmethod
    def _keys(seen: Seen) -> Iterator[bytes]:
        """Yield the keys that may be meant: the key, and of a command any word that holds it."""
        yield seen.stored.key
        named = 0
        for piece in seen.stored.pieces:
            is_name = len(piece) <= _LONGEST_NAME and piece != seen.stored.key
            if is_name and any(form in piece for form in seen.forms) and named < _MOST_NAMES:
                named += 1
                yield piece

    def _now(self, database: int, key: bytes) -> bytes:
        """Return what a key holds now, spelled out; nothing where it is gone."""
        from redis.exceptions import ResponseError

        if not key:
            return b""
        if (database, key) not in self._live:
            content = b""
            try:
                for value in read(self.node.session(database), [key]):
                    if isinstance(value, Value):
                        parts = [p for each in value.elements for p in (each.name, *each.parts)]
                        content = spelled([key, *parts])
            except ResponseError as error:
                # A key that this user may not read, or that another node has: not seen to live.
                if not is_refusal(error):
                    raise
            self._live[database, key] = content
        return self._live[database, key]

    # How it is said.

    def _residue(self, where: str, why: str, seen: Sequence[Seen], do: list[str]) -> Residue:
        return Residue(
            f"{self.node.name}, {where}",
            why,
            fixable=bool(do),
            handle={"node": self.node.name, "do": do},
            keys=self.needles.keys(seen),
        )

    def _invisible(self, where: str, why: str, do: Sequence[str] = ()) -> Residue:
        return Residue(
            f"{where} of {self.node.name}",
            why,
            fixable=bool(do),
            problem=ProblemCode.BYTES_NOT_VISIBLE,
            handle={"node": self.node.name, "do": list(do)},
        )
