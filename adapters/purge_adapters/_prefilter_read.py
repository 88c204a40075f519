"""Reading logs for the few lines that may hold what is looked for, with all cores.

Large files are cut into portions, small ones are each a portion, and a portion is searched by one
task of an executor and by itself: a task is a call of :func:`sift`, which gets a :class:`Portion`
and gives back lines, and all of that can be sent to another process. :func:`use_executor` is the
one seam; what is found does not depend on it. Only reads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

from purge_adapters._bytes import open_quietly
from purge_adapters._codecs import HEAD_BYTES, Codec, detect
from purge_adapters._files import Changed, Fingerprint, fingerprint_of
from purge_adapters._jsonl_lines import Line, LogFile, is_wide, narrowed, wide_encoding

__all__ = ["LineFilter", "Portion", "Sieve", "Sifted", "sift", "use_executor"]

_BLOCK: Final = 1024 * 1024
_PORTION: Final = 16 * 1024 * 1024
"""Small, since all lines of a portion may be given back at once."""
_COUNTED: Final = 64 * 1024 * 1024
"""In larger files a place is told by its byte: counting lines takes longer than searching them."""

_chosen: list[Executor] = []


@contextmanager
def use_executor(executor: Executor) -> Iterator[None]:
    """Have files searched by the tasks of an executor, of processes or of a cluster, meanwhile.

    Without it, threads are used: Hyperscan searches without Python's lock, and threads outlive
    nobody.

    Args:
        executor: one whose workers see the same files under the same paths.
    """
    _chosen.append(executor)
    try:
        yield
    finally:
        _chosen.remove(executor)


class LineFilter(Protocol):
    """Tells lines that may hold what is looked for from those that cannot. Can be pickled."""

    def lines(self, data: bytes, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield where such lines begin and end, in order, as :meth:`Prefilter.lines` does."""


@dataclass(frozen=True, slots=True)
class Portion:
    """The lines of a file that begin from one byte up to another; a task of an executor."""

    path: Path
    fingerprint: Fingerprint
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sifted:
    """What came of a portion: its lines that may hold something, and which bytes were searched."""

    start: int
    end: int
    lines: list[Line] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Block:
    """Bytes at a place of a content; those before ``stop`` are whole lines."""

    offset: int
    data: bytes = field(repr=False)
    stop: int


class Sieve:
    """Gives the lines of logs that may hold what a filter looks for.

    Args:
        chooses: the filter.
    """

    def __init__(self, chooses: LineFilter) -> None:
        self._filter = chooses
        self._ahead: dict[Path, tuple[Portion, Future[Sifted]]] = {}

    def in_turn(self, paths: Sequence[Path]) -> Iterator[Path]:
        """Yield paths in order; small files that come next are searched meanwhile."""
        cores = os.cpu_count() or 1
        with _executor(cores) as executor:
            try:
                for at, path in enumerate(paths):
                    for coming in paths[at : at + 2 * cores]:
                        if coming not in self._ahead and (portion := _small_file(coming)):
                            task = executor.submit(sift, self._filter, portion)
                            self._ahead[coming] = portion, task
                    yield path
                    self._ahead.pop(path, None)
            finally:
                for _, task in self._ahead.values():
                    task.cancel()
                self._ahead.clear()

    def gives(self, data: bytes) -> bool:
        """Whether a line is among those that are given, wherever it stands."""
        return any(True for _ in self._filter.lines(data))

    def lines(self, log: LogFile) -> Iterator[Line]:
        """Yield lines of an open file in order. Raises as :meth:`LogFile.lines` does.

        Lines that cannot be decoded are always among them. Their numbers are 0 in large files.

        Raises:
            Changed: a part of the file was not searched.
        """
        if log.codec is not Codec.PLAIN or wide_encoding(log.read_at(0, 4)) is not None:
            yield from self._decoded(log)
            return
        size = log.size
        portion, task = self._ahead.get(log.path, (None, None))
        if task is not None and portion is not None and portion.fingerprint == log.fingerprint:
            found = _without_gaps((task.result(),), size)
        else:
            portions = (
                Portion(log.path, log.fingerprint, start, min(start + _PORTION, size))
                for start in range(0, size, _PORTION)
            )
            found = _without_gaps(self._spread(portions, size), size)
        yield from _numbered(found, log) if size <= _COUNTED else found

    def _spread(self, portions: Iterable[Portion], size: int) -> Iterator[Sifted]:
        act = partial(sift, self._filter)
        cores = os.cpu_count() or 1
        if size <= _PORTION or (cores == 1 and not _chosen):
            yield from map(act, portions)
        else:
            with _executor(cores) as executor:
                yield from _in_turn(executor, act, portions, cores)

    def _decoded(self, log: LogFile) -> Iterator[Line]:
        blocks = (block for _, block in log.members())
        head = next(blocks, b"")
        encoding = wide_encoding(head)
        log.wide = encoding is not None
        content = chain((head,), blocks)
        offset = number = 0
        for block in _whole_lines(content if encoding is None else narrowed(content, encoding)):
            at = 0
            for line in self._in_block(_Block(offset, block, len(block))):
                number += block.count(b"\n", at, line.offset - offset)
                at = line.offset - offset
                yield Line(number + 1, line.offset, line.data, line.ended)
            number += block.count(b"\n", at)
            offset += len(block)

    def _in_block(self, block: _Block) -> Iterator[Line]:
        for start, end in self._filter.lines(block.data, block.stop):
            ended = end < len(block.data)
            yield Line(0, block.offset + start, block.data[start:end], ended)


@contextmanager
def _executor(cores: int) -> Iterator[Executor]:
    """Give the executor that was chosen, or threads of its own."""
    if _chosen:
        yield _chosen[-1]
        return
    with ThreadPoolExecutor(cores) as executor:
        yield executor


def _small_file(path: Path) -> Portion | None:
    """Return a plain file as one portion, if it is small enough and can be read now."""
    with suppress(OSError), open_quietly(path) as stream:
        found = fingerprint_of(stream.fileno())
        head = stream.read(HEAD_BYTES)
        if found.size <= _PORTION and detect(head) is Codec.PLAIN and not is_wide(head):
            return Portion(path, found, 0, found.size)
    return None


def _in_turn(
    executor: Executor, act: partial[Sifted], portions: Iterable[Portion], cores: int
) -> Iterator[Sifted]:
    """Yield results in order, with only as many tasks at a time as keep all cores busy."""
    waiting: deque[Future[Sifted]] = deque()
    try:
        for portion in portions:
            waiting.append(executor.submit(act, portion))
            if len(waiting) > cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _without_gaps(found: Iterable[Sifted], size: int) -> Iterator[Line]:
    """Yield the lines of portions, and see that nothing stands between them."""
    at = 0
    for sifted in found:
        if sifted.start != at:
            raise Changed
        yield from sifted.lines
        at = sifted.end
    if at != size:
        raise Changed


def sift(chooses: LineFilter, portion: Portion) -> Sifted:
    """Search a portion. The numbers of its lines are not known.

    Raises:
        Changed: another file stands there by now, or it became shorter.
        OSError: it cannot be read.
    """
    sieve = Sieve(chooses)
    with open_quietly(portion.path) as stream:
        descriptor = stream.fileno()
        if not fingerprint_of(descriptor).same_file(portion.fingerprint):
            raise Changed
        start = end = _first_line(descriptor, portion.start, portion.fingerprint.size)
        lines: list[Line] = []
        for block in _blocks(descriptor, portion, start):
            lines += sieve._in_block(block)
            end = block.offset + block.stop
        return Sifted(start, end, lines)


def _blocks(descriptor: int, portion: Portion, start: int) -> Iterator[_Block]:
    """Yield a portion block by block. What stands behind the last line break is read again."""
    size = portion.fingerprint.size
    at = start
    wanted = _BLOCK
    while at < portion.end:
        data = os.pread(descriptor, min(wanted, size - at), at)
        if not data:
            raise Changed
        is_last = at + len(data) >= size
        stop = len(data) if is_last else data.rfind(b"\n") + 1
        if not stop:
            wanted *= 2
            continue
        border = portion.end - at
        if border < stop:
            # The last line that begins in the portion may end behind it.
            cut = data.find(b"\n", border - 1, stop)
            stop = cut + 1 if cut >= 0 else stop
        yield _Block(at, data, stop)
        at += stop
        wanted = _BLOCK


def _first_line(descriptor: int, start: int, size: int) -> int:
    """Return where the first line begins at ``start`` or behind it; ``size`` if none does."""
    at = start - 1
    if at < 0:
        return 0
    while at < size:
        data = os.pread(descriptor, min(_BLOCK, size - at), at)
        if not data:
            return size
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return size


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    pieces: list[bytes] = []
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*pieces, block[:cut]))
            pieces = []
        if cut < len(block):
            pieces.append(block[cut:])
    if pieces:
        yield b"".join(pieces)


def _numbered(lines: Iterable[Line], log: LogFile) -> Iterator[Line]:
    """Yield lines with their numbers, counted up to each."""
    at = number = 0
    for line in lines:
        while at < line.offset:
            data = log.read_at(at, min(_BLOCK, line.offset - at))
            if not data:
                break
            number += data.count(b"\n")
            at += len(data)
        yield Line(number + 1, line.offset, line.data, line.ended)
