"""Every way to write one record is found in every store, and none of its near misses (MAT-01).

One matcher serves all adapters; what is tried here is that each of them hands it everything.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import Match, NotChecked, Site
from purge.matching import How
from purge.targets import Targets
from purge.testing.case import phrase
from purge_adapters.snapshots import SnapshotsAdapter, SnapshotsSettings
from tests.real import chroma_stores
from tests.real.markdown_notes import Notes
from tests.support import s3_servers, sql_stores
from tests.support.jsonl_logs import Logs
from tests.support.redis_servers import Server
from tests.support.redis_sites import site
from tests.support.restic_repos import Harbour, Look
from tests.support.s3_buckets import Bucket
from tests.support.written_forms import FORMS, Writing, all_phrases, writings

EVERY_FORM = set(range(len(FORMS)))


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


UNCLEAN = [each for each in writings() if not is_utf8(each.written)]
"""Notes of which a byte cannot be read: found all the same, and said by the adapter of notes."""
Planter = Callable[[Path, Sequence[Writing]], Callable[[Targets], list[Any]]]
"""Puts records into a store in a folder and returns a search of it."""


def as_lines(records: Sequence[Writing]) -> bytes:
    return b"".join(
        b'{"id": "%b", "text": %b}\n' % (each.id.encode(), each.written) for each in records
    )


def jsonl(folder: Path, records: Sequence[Writing]) -> Callable[[Targets], list[Any]]:
    logs = Logs(folder)
    logs.write_bytes(as_lines(records))
    return lambda targets: [*logs.case().find(targets).matches]


def jsonl_of_a_large_log(
    folder: Path, records: Sequence[Writing]
) -> Callable[[Targets], list[Any]]:
    """Between so many other lines that the log is sifted."""
    dull = b"".join(b'{"id": "d%d", "text": "nothing of note"}\n' % at for at in range(60_000))
    logs = Logs(folder)
    logs.write_bytes(dull + as_lines(records) + dull)
    return lambda targets: [*logs.case().find(targets).matches]


def markdown(folder: Path, records: Sequence[Writing]) -> Callable[[Targets], list[Any]]:
    notes = Notes(folder / "notes", {f"{each.id}.md": each.written + b"\n" for each in records})
    notes.record = "file"
    return notes.look


def sql(folder: Path, records: Sequence[Writing]) -> Callable[[Targets], list[Any]]:
    store = sql_stores.Store(folder)
    store.run(sql_stores.TABLE)
    with closing(store.connect()) as connection:
        connection.executemany(
            "INSERT INTO memories VALUES (?, CAST(? AS TEXT), NULL)",
            [(each.id, each.written) for each in records],
        )
    return lambda targets: [*store.find(targets)]


def chroma(folder: Path, records: Sequence[Writing]) -> Callable[[Targets], list[Any]]:
    """Chroma keeps no bytes that are no text: there the replacement character stands."""
    store = chroma_stores.Store(folder, collections=(chroma_stores.NAME,))
    chroma_stores.plant(
        store.folder, {each.id: (each.written.decode("utf-8", "replace"), None) for each in records}
    )
    return lambda targets: [item for part in store.find(targets) for item in part]


def s3(folder: Path, records: Sequence[Writing]) -> Callable[[Targets], list[Any]]:
    bucket = Bucket(s3_servers.moto(), s3_servers.moto().bucket(versioned=True))
    bucket.put("memories/a.jsonl", as_lines(records))
    return lambda targets: [*bucket.adapter(prefix="memories/").find(targets)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture
def redis(server: Server) -> Planter:
    def plant(folder: Path, records: Sequence[Writing]) -> Callable[[Targets], list[Any]]:
        with server.client() as client:
            client.flushall()
            for each in records:
                client.set(f"note:{each.id}", each.written)
        case = site(folder, url=server.url, keys="note:{id}")
        return lambda targets: [*case.find(targets).matches]

    return plant


STORES: Mapping[str, Planter] = {
    made.__name__: made for made in (jsonl, jsonl_of_a_large_log, markdown, sql, chroma, s3)
}


@pytest.fixture(params=[*STORES, "redis"])
def plant(request: pytest.FixtureRequest) -> Planter:
    """One kind of store after another."""
    chosen: Planter = STORES.get(request.param) or request.getfixturevalue("redis")
    return chosen


def test_every_form_is_found_and_no_near_miss(plant: Planter, tmp_path: Path) -> None:
    """MAT-01, LOG-11 and LOG-13 in every store."""
    found = plant(tmp_path, list(writings()))(all_phrases())
    gaps = [item for item in found if isinstance(item, NotChecked)]
    assert len(gaps) == (len(UNCLEAN) if plant is markdown else 0)
    matches = [item for item in found if isinstance(item, Match)]
    keys = {
        Path(match.id).stem.partition("#")[0]: {hit.key for hit in match.hits} for match in matches
    }
    assert keys == {f"form-{key}": {key} for key in EVERY_FORM}
    hows = {hit.how for match in matches for hit in match.hits}
    assert hows == {How.EXACT, How.FOLDED}


PIECES = [
    {"type": "text", "text": "Ask Tilda for the spa"},
    {"type": "text", "text": "re key in the blue tin", "bold": True},
]
IN_PIECES: Mapping[str, tuple[str, str]] = {
    "fragments of rich text": (
        json.dumps(PIECES),
        json.dumps([PIECES[0], {"type": "image", "src": "a.png"}, PIECES[1]]),
    ),
    "fragments in JSON in a string": (
        json.dumps(json.dumps({"blocks": PIECES})),
        json.dumps(json.dumps({"blocks": [[PIECES[0]], [PIECES[1]]]})),
    ),
    "tags of HTML": (
        json.dumps("<p>Ask <b>Tilda</b> for the <i>spa</i>re key in the blue tin</p>"),
        json.dumps("<p>Ask Tilda for the spa</p><p>re key in the blue tin</p>"),
    ),
}


@pytest.mark.parametrize("form", IN_PIECES)
def test_words_cut_by_a_change_of_style_are_found(
    plant: Planter, tmp_path: Path, form: str
) -> None:
    said, near = IN_PIECES[form]
    records = [Writing("x", 0, said.encode()), Writing("near", None, near.encode())]
    found = plant(tmp_path, records)(phrase("tilda for the spare key"))
    assert [Path(item.id).stem.partition("#")[0] for item in found if isinstance(item, Match)] == [
        "x"
    ]


# --- backups: nothing lives there, so the look says which phrases a copy holds --------------------


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restic")


def fill_sites(root: Path, records: Sequence[Writing]) -> None:
    (root / "logs").mkdir()
    (root / "logs/a.jsonl").write_bytes(as_lines(records))
    (root / "notes").mkdir()
    for each in records:
        (root / "notes" / f"{each.id}.md").write_bytes(each.written + b"\n")
    with closing(sqlite3.connect(root / "memories.db", isolation_level=None)) as connection:
        connection.execute(sql_stores.TABLE)
        connection.executemany(
            "INSERT INTO memories VALUES (?, CAST(? AS TEXT), NULL)",
            [(each.id, each.written) for each in records],
        )


def empty_sites(root: Path) -> None:
    (root / "logs/a.jsonl").write_bytes(b"")
    for path in (root / "notes").iterdir():
        path.unlink()
    with closing(sqlite3.connect(root / "memories.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM memories")
        connection.execute("VACUUM")


def restic(harbour: Harbour, targets: Targets) -> Look:
    harbour.backup("2025-06-18 03:00:00")
    empty_sites(harbour.root)
    return harbour.look(targets)


def dated(harbour: Harbour, targets: Targets) -> Look:
    folder = harbour.root.parent / "snapshots" / "2025-06-18"
    shutil.copytree(harbour.root, folder)
    empty_sites(harbour.root)
    made = Site(
        "backups",
        harbour.root,
        covers={name: harbour.covered(name) for name in harbour.sites},
        outside_root=True,
        timezone=UTC,
        clock=lambda: datetime(2025, 6, 20, 12, tzinfo=UTC),
    )
    settings = SnapshotsSettings(path=str(folder.parent), keep_for="30d")
    with SnapshotsAdapter(made, settings) as adapter:
        return Look(tuple(adapter.residue(targets)))


SITES = {
    "logs": ("jsonl", {"path": "logs", "id": "id"}),
    "notes": ("markdown", {"path": "notes", "record": "file"}),
    "memories": ("sql", {"url": "sqlite:///memories.db", "table": "memories", "id": "id"}),
}


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("look", [restic, dated])
def test_every_form_is_found_in_a_backup(
    tmp_path: Path, templates: Path, look: Callable[[Harbour, Targets], Look], name: str
) -> None:
    """The forms lie in a snapshot of the site alone, and nowhere else any more."""
    harbour = Harbour.make("0.18", tmp_path, templates)
    harbour.cover(name, *SITES[name])
    fill_sites(harbour.root, list(writings()))
    seen = look(harbour, all_phrases())
    assert len(seen.gaps) == (1 if name == "notes" else 0)
    assert {key for copy in seen.residue for key in copy.keys} == EVERY_FORM


@pytest.mark.parametrize("look", [restic, dated])
def test_near_misses_in_a_backup_are_no_residue(
    tmp_path: Path, templates: Path, look: Callable[[Harbour, Targets], Look]
) -> None:
    harbour = Harbour.make("0.18", tmp_path, templates)
    for name, kind in SITES.items():
        harbour.cover(name, *kind)
    fill_sites(
        harbour.root, [each for each in writings() if each.key is None and each not in UNCLEAN]
    )
    seen = look(harbour, all_phrases())
    assert (seen.residue, seen.gaps) == ([], [])
