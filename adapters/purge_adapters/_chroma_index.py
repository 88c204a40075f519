"""The files of one vector segment: which vectors they hold, whose they are, and how to clean them.

Chroma keeps an HNSW graph in four files in the host's byte order, as hnswlib writes them, and
beside them a pickle that says which record each element is (layout by experiment with Chroma
1.5.9). An element that was deleted stays, with its vector, for good: it is only marked. Nothing
here unpickles anything but numbers, strings and dictionaries.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from purge_adapters._bytes import open_quietly

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float32]
    Slots = NDArray[numpy.intp]

HEADER: Final = "header.bin"
DATA: Final = "data_level0.bin"
LINKS: Final = "link_lists.bin"
LENGTHS: Final = "length.bin"
NAMES: Final = "index_metadata.pickle"
FILES: Final = (HEADER, DATA, LENGTHS, LINKS, NAMES)
TOLERANCE: Final = 1e-5
"""How far two numbers may be apart, relative to the largest of the vector, and still be the same:
normalising in 32 bits moves them by less than a tenth of that."""
_HEADER: Final = Struct("<iQQQQQQiIQQQdQ")
_DELETED: Final = 0x10000
_COUNT: Final = 0xFFFF
_LABEL_BYTES: Final = 8
_FEW: Final = 8


class Malformed(Exception):
    """The files do not fit together, or are of a kind that is not known."""


@dataclass(frozen=True, slots=True)
class Vector:
    """What an index holds of one record."""

    slot: int
    numbers: tuple[float, ...]


class Index:
    """One vector segment as it stands on disk.

    Args:
        folder: the folder of the segment. Read without a trace.

    Raises:
        Malformed: it cannot be understood to the last byte.
        OSError: it cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        import numpy

        self.folder: Final = folder
        header = _content(folder / HEADER)
        if len(header) < _HEADER.size:
            raise Malformed
        version, start, self.room, self.count, self.stride, label, data, *rest = _HEADER.unpack(
            header[: _HEADER.size]
        )
        links = rest[3]
        self._data_offset: Final = int(data)
        self._label_offset: Final = int(label)
        self.dimension: Final = (label - data) // 4
        if (
            version != 1
            or start != 0
            or data != 4 + 4 * links
            or (label - data) % 4
            or label + _LABEL_BYTES != self.stride
            or self.count > self.room
        ):
            raise Malformed
        content = _content(folder / DATA)
        self.bytes: Final = len(content)
        used = self.count * self.stride
        if self.bytes < used:
            raise Malformed
        self._names: dict[str, Any] = _names(folder / NAMES) if self.count else {}
        self.tail: Final = content[used:]
        """What stands behind the last element: room that was never used, or left-over memory."""
        elements = numpy.frombuffer(content, numpy.uint8, used).reshape(self.count, self.stride)
        self._elements = elements
        self.vectors: Final[Floats] = _part(elements, data, label, numpy.float32)
        self.labels: Final = _part(elements, label, self.stride, numpy.uint64)[:, 0]
        self._heads = _part(elements, 0, 4, numpy.uint32)[:, 0]
        self._links = _part(elements, 4, data, numpy.uint32)
        self.marked: Final = (self._heads & _DELETED) != 0
        if self.count and (self._heads & _COUNT).max() > links:
            raise Malformed
        self._match_names()

    def _match_names(self) -> None:
        by_label = self._names.get("label_to_id", {})
        by_id = self._names.get("id_to_label", {})
        if len(by_label) != len(by_id) or any(by_id.get(id_) != at for at, id_ in by_label.items()):
            raise Malformed
        slots = {int(label): slot for slot, label in enumerate(self.labels)}
        if len(slots) != self.count or any(label not in slots for label in by_label):
            raise Malformed
        self.slots: dict[str, int] = {
            id_: slots[label] for id_, label in by_id.items() if not bool(self.marked[slots[label]])
        }
        """The element of each record that a search can return."""
        self.named: frozenset[str] = frozenset(by_id)
        """Every id that stands in the files."""

    def vector(self, id_: str) -> tuple[float, ...] | None:
        """Return the vector that the index holds of a record."""
        slot = self.slots.get(id_)
        return None if slot is None else tuple(self.vectors[slot].tolist())

    def dead(self, live: Collection[str]) -> Slots:
        """Return the elements that are no record's of ``live``."""
        import numpy

        kept = numpy.zeros(self.count, dtype=bool)
        kept[[slot for id_, slot in self.slots.items() if id_ in live]] = True
        return numpy.flatnonzero(~kept)

    def uncleaned(self, dead: Slots) -> Slots:
        """Return those of the dead elements that still have a vector of their own.

        One that was cleaned has only zeros, or the vector of a live element.
        """
        import numpy

        if not len(dead):
            return dead
        kept = numpy.ones(self.count, dtype=bool)
        kept[dead] = False
        known = {row.tobytes() for row in self.vectors[kept]}
        known.add(bytes(4 * self.dimension))
        return numpy.array(
            [slot for slot in dead.tolist() if self.vectors[slot].tobytes() not in known],
            dtype=numpy.intp,
        )

    def alike(self, numbers: Sequence[float]) -> Slots:
        """Return the elements that hold this vector, as it is or normalised."""
        import numpy

        if len(numbers) != self.dimension or not self.count:
            return numpy.array([], dtype=numpy.intp)
        wanted = numpy.asarray(numbers, dtype=numpy.float32)
        found: set[int] = set()
        length = float(numpy.linalg.norm(wanted))
        for form in (wanted, wanted / length) if length else (wanted,):
            allowed = TOLERANCE * max(float(numpy.abs(form).max()), 1e-30)
            # The first few numbers leave hardly any others to compare in full.
            near = numpy.abs(self.vectors[:, :_FEW] - form[:_FEW]).max(axis=1) <= allowed
            some = numpy.flatnonzero(near)
            gaps = numpy.abs(self.vectors[some] - form).max(axis=1)
            found |= set(some[gaps <= allowed].tolist())
        return numpy.array(sorted(found), dtype=numpy.intp)

    def write_clean(
        self,
        folder: Path,
        live: Collection[str],
        newer: Mapping[str, Sequence[float]],
    ) -> None:
        """Write the segment anew into an empty folder, without what is no live record's.

        Every element keeps its place, its label and its links, so that searches go the ways they
        went. One that is dead is marked, and gets the vector of the closest live element it is
        linked to (or zeros): what was there is gone, and a search that passes through it is not
        led astray. What live elements hold is not touched, save where a newer vector waits in
        the log.

        Args:
            folder: exists and is empty.
            live: the ids that stay.
            newer: by id, the vector that has yet to be taken in from the log.

        Raises:
            OSError: it cannot be written.
        """
        import numpy

        elements = self._elements.copy()
        vectors = _part(elements, self._data_offset, self._label_offset, numpy.float32).copy()
        for id_, numbers in newer.items():
            if id_ in self.slots and id_ in live and len(numbers) == self.dimension:
                vectors[self.slots[id_]] = numbers
        dead = self.dead(live)
        is_dead = numpy.zeros(self.count, dtype=bool)
        is_dead[dead] = True
        for slot in self.uncleaned(dead).tolist():
            vectors[slot] = self._stand_in(slot, is_dead, vectors)
        heads = self._heads.copy()
        heads[dead] |= _DELETED
        elements[:, :4] = heads.view(numpy.uint8).reshape(-1, 4)
        elements[:, self._data_offset : self._label_offset] = vectors.view(numpy.uint8)
        # What stands behind the last element, memory that was never set, is left out.
        _write(folder / DATA, elements.tobytes())
        _write(folder / LENGTHS, _content(self.folder / LENGTHS)[: self.count * 4])
        for name in (HEADER, LINKS):
            _write(folder / name, _content(self.folder / name))
        _write(folder / NAMES, pickle.dumps(self._names_of(live), protocol=3))
        sync_folder(folder)

    def _stand_in(self, slot: int, is_dead: NDArray[Any], vectors: Floats) -> Floats:
        import numpy

        own = self.vectors[slot]
        seen, edge = {slot}, [slot]
        while edge:
            near = {
                int(other)
                for at in edge
                for other in self._links[at, : int(self._heads[at] & _COUNT)]
                if int(other) < self.count
            } - seen
            living = [other for other in near if not is_dead[other]]
            if living:
                gaps = numpy.square(vectors[living] - own).sum(axis=1)
                chosen: Floats = vectors[living[int(gaps.argmin())]]
                return chosen
            seen |= near
            edge = list(near)
        return numpy.zeros_like(own)

    def _names_of(self, live: Collection[str]) -> dict[str, Any]:
        kept = dict(self._names)
        for name in ("id_to_label", "id_to_seq_id"):
            kept[name] = {
                id_: value
                for id_, value in self._names.get(name, {}).items()
                if id_ in live and (name != "id_to_label" or id_ in self.slots)
            }
        kept["label_to_id"] = {label: id_ for id_, label in kept["id_to_label"].items()}
        return kept


def tail_of(folder: Path) -> tuple[int, bytes]:
    """Return where the last element of a segment ends, and what stands behind it.

    Raises:
        Malformed: the files do not fit together.
        OSError: they cannot be read.
    """
    header = _content(folder / HEADER)
    if len(header) < _HEADER.size:
        raise Malformed
    version, _, _, count, stride, *_ = _HEADER.unpack(header[: _HEADER.size])
    content = _content(folder / DATA)
    if version != 1 or len(content) < count * stride:
        raise Malformed
    return count * stride, content[count * stride :]


def clear_tail(folder: Path) -> None:
    """Overwrite what stands behind the last element of a segment, which nobody reads."""
    start, tail = tail_of(folder)
    with (folder / DATA).open("r+b") as stream:
        stream.seek(start)
        stream.write(bytes(len(tail)))
        stream.flush()
        os.fsync(stream.fileno())


class _Names(pickle.Unpickler):
    """Reads dictionaries of numbers and strings, and the one class that old versions wrote."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a plain holder of attributes for Chroma's own class, and nothing else."""
        if name == "PersistentData" and module.startswith("chromadb."):
            return _Attributes
        raise Malformed


class _Attributes:
    """Stands in for ``PersistentData`` of Chroma before 1.0: only its attributes are used."""


def _names(path: Path) -> dict[str, Any]:
    try:
        read = _Names(io.BytesIO(_content(path))).load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError):
        raise Malformed from None
    found = vars(read) if isinstance(read, _Attributes) else read
    if not isinstance(found, dict):
        raise Malformed
    for name in ("id_to_label", "label_to_id"):
        if not isinstance(found.get(name), dict):
            raise Malformed
    for id_, label in found["id_to_label"].items():
        if not isinstance(id_, str) or not isinstance(label, int):
            raise Malformed
    return found


def _part(elements: NDArray[Any], start: int, end: int, kind: Any) -> NDArray[Any]:
    import numpy

    return numpy.ascontiguousarray(elements[:, start:end]).view(kind)


def _content(path: Path) -> bytes | mmap.mmap:
    with open_quietly(path) as stream:
        if os.fstat(stream.fileno()).st_size > 1 << 26:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return stream.read()


def _write(path: Path, content: bytes | mmap.mmap) -> None:
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def take_over(old: Path, new: Path) -> None:
    """Give mode and owner of an old file or folder to a new one, as far as we may."""
    found = old.stat()
    shutil.copymode(old, new)
    try:
        os.chown(new, found.st_uid, found.st_gid)
    except PermissionError:
        return


def sync_file(path: Path) -> None:
    """Make what was written to a file last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make what was created, renamed or removed in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folders_of_segments(directory: Path) -> Iterator[Path]:
    """Yield the folders that have the name of a segment, live or not."""
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False) and _is_uuid(entry.name):
            yield Path(entry.path)


def _is_uuid(name: str) -> bool:
    parts = name.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        character in "0123456789abcdef" for character in "".join(parts)
    )
