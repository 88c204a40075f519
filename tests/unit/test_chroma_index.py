"""The files of a vector index are read to the last byte, and nothing in them is run."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import numpy
import pytest

from purge_adapters._chroma_index import Index, Malformed, clear_tail, tail_of

DIMENSION = 4
LINKS = 2
STRIDE = 4 + 4 * LINKS + 4 * DIMENSION + 8


def header(count: int, **changes: Any) -> bytes:
    said = {"version": 1, "start": 0, "room": 100, "stride": STRIDE, "dimension": DIMENSION}
    said |= changes
    data = 4 + 4 * LINKS
    return struct.pack(
        "<iQQQQQQiIQQQdQ",
        said["version"],
        said["start"],
        said["room"],
        count,
        said["stride"],
        data + 4 * said["dimension"],
        data,
        0,
        0,
        1,
        LINKS,
        1,
        0.5,
        100,
    )


def element(label: int, vector: list[float], links: list[int], *, dead: bool = False) -> bytes:
    head = len(links) | (0x10000 if dead else 0)
    padded = [*links, *[0] * (LINKS - len(links))]
    return struct.pack(f"<I{LINKS}I{DIMENSION}fQ", head, *padded, *vector, label)


def write(
    folder: Path, elements: list[bytes], names: Any, tail: bytes = b"", **changes: Any
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "header.bin").write_bytes(header(len(elements), **changes))
    (folder / "data_level0.bin").write_bytes(b"".join(elements) + tail)
    (folder / "length.bin").write_bytes(bytes(4 * len(elements)) + tail)
    (folder / "link_lists.bin").write_bytes(bytes(4 * len(elements)))
    content = names if isinstance(names, bytes) else pickle.dumps(names, protocol=3)
    (folder / "index_metadata.pickle").write_bytes(content)
    return folder


def named(**labels: int) -> dict[str, Any]:
    return {
        "dimensionality": None,
        "total_elements_added": 3,
        "max_seq_id": None,
        "id_to_label": dict(labels),
        "label_to_id": {label: id for id, label in labels.items()},
        "id_to_seq_id": {},
    }


ELEMENTS = [
    element(1, [1.0, 0.0, 0.0, 0.0], [1]),
    element(2, [0.0, 2.0, 0.0, 0.0], [0, 2]),
    element(3, [0.0, 2.1, 0.0, 0.0], [1], dead=True),
]


def test_elements_are_told_apart(tmp_path: Path) -> None:
    index = Index(write(tmp_path / "s", ELEMENTS, named(a=1, b=2), b"left over"))
    assert index.slots == {"a": 0, "b": 1}
    assert index.vector("b") == (0.0, 2.0, 0.0, 0.0)
    assert index.vector("c") is None
    assert index.dead({"a", "b"}).tolist() == [2]
    assert index.dead({"a"}).tolist() == [1, 2]
    assert index.uncleaned(index.dead({"a", "b"})).tolist() == [2]
    assert index.tail == b"left over"
    assert index.alike([0.0, 2.0, 0.0, 0.0]).tolist() == [1]
    assert index.alike([0.0, 5.0, 0.0, 0.0]).tolist() == []
    # A cosine index holds what it was given, normalised.
    assert index.alike([7.0, 0.0, 0.0, 0.0]).tolist() == [0]


def test_a_clean_copy_holds_the_vectors_of_the_living_alone(tmp_path: Path) -> None:
    index = Index(write(tmp_path / "s", ELEMENTS, named(a=1, b=2), b"left over"))
    clean = tmp_path / "clean"
    clean.mkdir()
    index.write_clean(clean, {"a"}, {"a": [9.0, 9.0, 9.0, 8.0]})
    after = Index(clean)
    assert after.slots == {"a": 0}
    assert after.named == {"a"}
    assert after.vector("a") == (9.0, 9.0, 9.0, 8.0)
    assert after.marked.tolist() == [False, True, True]
    assert after.labels.tolist() == [1, 2, 3]
    assert after.uncleaned(after.dead({"a"})).tolist() == []
    assert after.tail == b""
    content = b"".join(path.read_bytes() for path in clean.iterdir())
    assert struct.pack("<f", 2.1) not in content
    assert b"left over" not in content
    assert numpy.array_equal(after.vectors[1], after.vectors[0])


def test_memory_behind_the_last_element_is_overwritten(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", ELEMENTS, named(a=1, b=2), b"left over")
    assert tail_of(folder) == (3 * STRIDE, b"left over")
    clear_tail(folder)
    assert tail_of(folder) == (3 * STRIDE, bytes(9))
    assert Index(folder).slots == {"a": 0, "b": 1}


class Bomb:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("bomb"),))


class Stranger:
    """A class of someone else."""


OLD = pickle.dumps(named(a=1, b=2), protocol=2)
"""What a Chroma before 1.0 wrote: an object of one class of its own, with these attributes."""
OLD_OBJECT = (
    b"\x80\x02cchromadb.segment.impl.vector.local_persistent_hnsw\nPersistentData\n"
    b")\x81" + OLD[2:-1] + b"b."
)


def test_the_class_of_old_versions_is_understood(tmp_path: Path) -> None:
    assert Index(write(tmp_path / "s", ELEMENTS, OLD_OBJECT)).slots == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    "names",
    [
        pickle.dumps(Bomb()),
        pickle.dumps(Stranger()),
        pickle.dumps([1, 2]),
        pickle.dumps({"id_to_label": {}}),
        pickle.dumps(named(a=1, b=2) | {"id_to_label": {"a": "one", "b": 2}}),
        pickle.dumps(named(a=1, b=2) | {"label_to_id": {1: "a"}}),
        named(a=1, b=7),
        b"",
        b"\x80\x03}",
        OLD_OBJECT.replace(b"chromadb.segment", b"os............."),
    ],
    ids=lambda value: None,
)
def test_names_that_do_not_fit_are_not_taken(
    tmp_path: Path, names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Malformed):
        Index(write(tmp_path / "s", ELEMENTS, names))
    assert not (tmp_path / "bomb").exists()


@pytest.mark.parametrize(
    "changes",
    [{"version": 2}, {"start": 8}, {"room": 2}, {"stride": STRIDE + 8}, {"dimension": 5}],
    ids=str,
)
def test_a_header_of_another_kind_is_not_taken(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        Index(write(tmp_path / "s", ELEMENTS, named(a=1, b=2), b"", **changes))


def test_a_cut_off_file_is_not_taken(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", ELEMENTS, named(a=1, b=2))
    data = folder / "data_level0.bin"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(Malformed):
        Index(folder)
    with pytest.raises(Malformed):
        tail_of(folder)
    (folder / "header.bin").write_bytes(b"\x01")
    with pytest.raises(Malformed):
        Index(folder)
