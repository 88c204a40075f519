"""Each fault of the fault-injecting adapter does what it says, and nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from purge.adapter import (
    Action,
    Control,
    Match,
    NotChecked,
    ProblemCode,
    Readability,
    Removal,
    Residue,
    Site,
)
from purge.errors import EmptySelector, Permanent, Transient
from purge.shapes import ShapeFault, validate
from purge.targets import Target, TargetKind, Targets
from purge.testing.faults import Journal
from purge.testing.faulty import FaultyAdapter, FaultySettings, journal_of
from purge.testing.faulty_store import FaultyStore

PEAR = {"id": "pear", "text": "The pear tree leans on the north wall."}
PLUM = {"id": "plum", "text": "The plum tree leans on the south wall."}
FIG = {"id": "fig", "text": "The fig needs no wall at all.", "source": ["plum", "pear"]}


class Orchard:
    """A store with three records, and adapters for it."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.store = FaultyStore(root / "trees")
        self.store.make()
        self.store.plant([PEAR, PLUM, FIG])
        self.site = Site("trees", root, derived_from={"fruit": "source"}, subject="owner")
        self.raw = {"path": "trees", **settings}

    def open(self) -> FaultyAdapter:
        return FaultyAdapter(self.site, validate(FaultySettings, self.raw))

    @property
    def journal(self) -> Journal:
        return Journal(journal_of(self.site, validate(FaultySettings, self.raw)))

    def find(self, *names: str) -> list[Match]:
        return [it for it in self.open().find(named(*names)) if isinstance(it, Match)]

    def remove(self, *names: str) -> list[Any]:
        at = datetime.now(UTC)
        return list(self.open().remove([Removal(it, "r", at) for it in self.find(*names)]))

    def residue(self, *names: str) -> list[Residue]:
        known = Targets(named(*names).all, {"trees": [it.trace for it in self.find(*names)]})
        return [it for it in self.open().residue(known) if isinstance(it, Residue)]

    def ids(self) -> list[str]:
        return [fields["id"] for fields in self.store.records()]


def named(*names: str) -> Targets:
    return Targets(Target(key, TargetKind.ID, name) for key, name in enumerate(names))


def test_a_transient_fault_passes_after_so_many_calls_of_new_instances(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"transient": {"find": 2}})
    for _ in range(2):
        with pytest.raises(Transient) as raised:
            orchard.find("pear")
        assert raised.value.problem == ProblemCode.BUSY
    assert [match.id for match in orchard.find("pear")] == ["pear"]
    assert len(orchard.journal.calls("find")) == 3


def test_a_permanent_fault_stays_and_has_the_code_asked_for(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"permanent": {"remove": "no-permission"}})
    for _ in range(3):
        with pytest.raises(Permanent) as raised:
            orchard.remove("pear")
        assert raised.value.problem == ProblemCode.NO_PERMISSION
    assert orchard.ids() == ["pear", "plum", "fig"]


def test_an_unknown_error_holds_what_it_may_not(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"unknown": ["remove"]})
    with pytest.raises(RuntimeError, match="pear"):
        orchard.remove("pear")


def test_every_verb_is_noted_with_the_ids_it_was_given(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, journal="calls")
    orchard.remove("pear", "plum")
    list(orchard.open().check())
    orchard.residue("fig")
    list(orchard.open().sanitize(()))
    verbs = [call.verb for call in orchard.journal.calls()]
    assert verbs == ["find", "remove", "check", "find", "residue", "sanitize"]
    (call,) = orchard.journal.calls("remove")
    assert call.ids == ("pear", "plum")


def test_without_faults_and_journal_nothing_is_written_beside_the_store(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path)
    orchard.remove("pear")
    assert [path.name for path in tmp_path.iterdir()] == ["trees"]
    assert [path.name for path in (tmp_path / "trees").iterdir()] == ["store.json"]


def test_an_empty_selection_is_refused_before_it_is_noted(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, journal="calls")
    with pytest.raises(EmptySelector):
        list(orchard.open().remove(()))
    assert orchard.journal.calls("remove") == ()


def test_a_liar_removes_nothing(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"lies": True})
    assert orchard.remove("pear") == []
    assert orchard.ids() == ["pear", "plum", "fig"]


def test_what_is_left_is_named_with_the_code_asked_for(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"leaves": "held-open"})
    assert [it.problem for it in orchard.remove("pear")] == [ProblemCode.HELD_OPEN]
    assert orchard.ids() == ["pear", "plum", "fig"]


def test_a_record_comes_back_once(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"resurrects": "once"})
    orchard.remove("pear")
    assert orchard.ids() == ["plum", "fig", "pear"]
    orchard.remove("pear")
    assert orchard.ids() == ["plum", "fig"]


def test_a_record_comes_back_always(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"resurrects": "always"})
    for _ in range(3):
        orchard.remove("pear")
        assert "pear" in orchard.ids()


def test_copies_arrive_in_the_first_remove_alone(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"arrives": 2})
    orchard.remove("pear")
    assert orchard.ids() == ["plum", "fig", "arrived-1-0", "arrived-1-1"]
    assert {fields["text"] for fields in orchard.store.records()[2:]} == {PEAR["text"]}
    orchard.remove("plum")
    assert orchard.ids() == ["fig", "arrived-1-0", "arrived-1-1"]


def test_copies_may_arrive_without_end(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"arrives": 1, "arrives_always": True})
    orchard.remove("pear")
    orchard.remove("plum")
    assert orchard.ids() == ["fig", "arrived-1-0", "arrived-2-0"]


def test_residue_has_the_date_and_the_code_asked_for(tmp_path: Path) -> None:
    asked = [{"why": "a tape", "until": "2031-01-02T03:00:00+09:00"}, {"problem": "limit"}]
    orchard = Orchard(tmp_path, faults={"residue": asked})
    dated, undated = orchard.residue("pear")
    assert dated.until == datetime.fromisoformat("2031-01-02T03:00:00+09:00")
    assert undated.until is None
    assert undated.problem is ProblemCode.LIMIT
    assert [item.fixable for item in (dated, undated)] == [False, False]


def test_residue_is_only_there_where_a_record_is_or_was(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"residue": [{}]})
    assert orchard.residue("quince") == []
    assert len(orchard.residue("pear")) == 1


def test_fixable_residue_goes_when_it_is_sanitized(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"residue": [{"fixable": True}]})
    found = orchard.residue("pear")
    assert [item.fixable for item in found] == [True]
    list(orchard.open().sanitize(found))
    assert orchard.residue("pear") == []


def test_a_deleted_record_stays_in_the_file_until_it_is_sanitized(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path)
    known = Targets(named("pear").all, {"trees": [it.trace for it in orchard.find("pear")]})
    orchard.remove("pear")
    assert b"north wall" in orchard.store.file.read_bytes()
    (left,) = (it for it in orchard.open().residue(known) if isinstance(it, Residue))
    assert left.fixable
    list(orchard.open().sanitize([left]))
    assert b"north wall" not in orchard.store.file.read_bytes()


def test_a_backup_is_dated_residue_until_it_expires(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path)
    until = datetime(2031, 1, 2, 3, tzinfo=UTC)
    orchard.store.back_up(until)
    orchard.store.back_up(None)
    assert [item.until for item in orchard.residue("pear")] == [until, None]
    assert orchard.residue("quince") == []
    orchard.store.expire(until - timedelta(seconds=1))
    assert len(orchard.residue("pear")) == 2
    orchard.store.expire(until)
    assert [item.until for item in orchard.residue("pear")] == [None]


def test_the_control_fails_when_asked(tmp_path: Path) -> None:
    for fails in (False, True):
        orchard = Orchard(tmp_path / str(fails), faults={"control_fails": fails})
        items = orchard.open().residue(named("pear"))
        assert {it.passed for it in items if isinstance(it, Control)} == {not fails}


@pytest.mark.parametrize("verb", ["find", "residue", "sanitize"])
def test_a_verb_says_what_it_did_not_look_at(tmp_path: Path, verb: str) -> None:
    orchard = Orchard(tmp_path, faults={"not_checked": [verb]})
    found = list(orchard.open().find(named("pear")))
    looked = list(orchard.open().residue(named("pear")))
    cleaned = list(orchard.open().sanitize(()))
    said: dict[str, list[Any]] = {"find": found, "residue": looked, "sanitize": cleaned}
    with_it = [
        name for name, items in said.items() if any(isinstance(i, NotChecked) for i in items)
    ]
    assert with_it == [verb]


def test_a_verb_is_slow_when_asked(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, faults={"slow": {"find": 0.2}})
    started = time.monotonic()
    orchard.find("pear")
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize(
    ("crash", "left"),
    [
        ({"remove": 0}, ["pear", "plum", "fig"]),
        ({"remove": 1}, ["plum", "fig"]),
        ({"remove": 2}, ["fig"]),
        ({"find": 1}, ["pear", "plum", "fig"]),
    ],
)
def test_a_process_is_killed_after_so_many_acts_and_only_once(
    tmp_path: Path, crash: dict[str, int], left: list[str]
) -> None:
    orchard = Orchard(tmp_path, faults={"crash": crash})
    source = (
        "from pathlib import Path\n"
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('here', {__file__!r})\n"
        "here = sys.modules['here'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(here)\n"
        "orchard = here.Orchard.__new__(here.Orchard)\n"
        f"root = Path({str(tmp_path)!r})\n"
        "orchard.site = here.Site('trees', root)\n"
        f"orchard.raw = {orchard.raw!r}\n"
        "orchard.remove('pear', 'plum')\n"
    )
    first = subprocess.run([sys.executable, "-c", source], check=False)
    assert first.returncode == -signal.SIGKILL
    assert orchard.ids() == left
    second = subprocess.run([sys.executable, "-c", source], check=False)
    # The second time there may be nothing to remove: an empty selection, which is an error.
    assert second.returncode in (0, 1)
    assert orchard.ids() == ["fig"]


def test_blanking_keeps_the_id_and_the_links(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path)
    orchard.site = Site("trees", tmp_path, Action.BLANK, derived_from={"fruit": "source"})
    orchard.remove("fig")
    assert orchard.store.records()[2] == {
        "id": "fig",
        "text": "",
        "source": ["plum", "pear"],
        "blanked": True,
    }
    (match,) = orchard.find("fig")
    assert match.readability is Readability.BLANKED
    assert match.parents == {"fruit": ("plum", "pear")}


def test_blanking_by_a_phrase_empties_the_field_that_holds_it(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path)
    orchard.site = Site("trees", tmp_path, Action.BLANK)
    orchard.store.plant([{"id": "note", "text": "See there.", "title": "On the old quince"}])
    targets = Targets([Target(0, TargetKind.PHRASE, "the old quince")])
    found = [it for it in orchard.open().find(targets) if isinstance(it, Match)]
    list(orchard.open().remove([Removal(it, "r", datetime.now(UTC)) for it in found]))
    assert orchard.store.records()[3] == {"id": "note", "text": "", "blanked": True}


def test_an_archived_record_is_found_as_archived(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path)
    orchard.store.plant([{"id": "elm", "text": "It was felled.", "archived": True}])
    (match,) = orchard.find("elm")
    assert match.readability is Readability.ARCHIVED


def test_a_marker_line_and_the_time_of_making_are_read(tmp_path: Path) -> None:
    orchard = Orchard(tmp_path, created="made")
    orchard.store.plant(
        [{"id": "elm", "text": "RETRACTS: the felled elm", "made": "2026-05-01T08:00:00+02:00"}]
    )
    (match,) = orchard.find("elm")
    assert match.carries_marker
    assert match.created == datetime.fromisoformat("2026-05-01T08:00:00+02:00")
    (other,) = orchard.find("pear")
    assert not other.carries_marker
    assert other.created is None


def test_a_fault_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ShapeFault):
        validate(FaultySettings, {"path": "trees", "faults": {"explodes": True}})
