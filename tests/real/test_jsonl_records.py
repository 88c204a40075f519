"""What belongs to one record, and what must not go with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from purge.adapter import Match, ProblemCode
from purge.targets import TargetKind, Targets
from purge.testing.case import ids, phrase, target
from tests.support.jsonl_logs import TEXT, Logs, as_line, said


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(
        tmp_path, scope={"project": "cwd"}, subject="user", derived_from={"source": "links"}
    )


def places(match: Match) -> list[tuple[object, object]]:
    parts = match.handle["parts"]
    assert isinstance(parts, list)
    return [(part["file"], part["offset"]) for part in parts]


def purge(logs: Logs, targets: Targets) -> list[str]:
    purged = logs.case().purge(targets)
    assert purged.left == ()
    assert purged.read_back.matches == ()
    return list(purged.found.ids)


# --- several lines of one record ------------------------------------------------------------------


def test_identical_lines_are_one_record_and_all_go(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("kept", "a"), said("x", TEXT), said("x", TEXT))
    logs.write(said("x", TEXT), name="logs/resumed/b.jsonl")
    (match,) = logs.case().find(ids("x")).matches
    assert len(places(match)) == 4
    assert match.where == "logs/a.jsonl, line 1 and 3 more"
    assert purge(logs, ids("x")) == ["x"]
    assert logs.bytes_of() == as_line(said("kept", "a"))
    assert logs.bytes_of("logs/resumed/b.jsonl") == b""


def test_a_log_that_was_resumed_in_another_file_loses_both_copies(logs: Logs) -> None:
    # The same ids again, with another session in them.
    logs.write(said("x", TEXT, session="1"), said("y", "kept", session="1"))
    logs.write(said("x", TEXT, session="2"), said("y", "kept", session="2"), name="logs/b.jsonl")
    assert purge(logs, phrase(TEXT)) == ["x"]
    assert logs.bytes_of() == as_line(said("y", "kept", session="1"))


def test_another_version_of_a_record_does_not_come_back_when_one_holds_the_words(
    logs: Logs,
) -> None:
    logs.write(said("x", "older words"), said("kept", "a"), said("x", TEXT))
    logs.write(said("x", "newer words"), name="logs/b.jsonl")
    (match,) = logs.case().find(phrase(TEXT)).matches
    assert len(places(match)) == 3
    assert "older words" in match.trace.texts
    assert purge(logs, phrase(TEXT)) == ["x"]
    assert logs.bytes_of() == as_line(said("kept", "a"))
    assert logs.bytes_of("logs/b.jsonl") == b""


@pytest.mark.parametrize("name", ["a/ü\\", "1000.0", "plain"])
def test_the_other_versions_are_found_however_the_id_is_written(logs: Logs, name: str) -> None:
    escaped = b'{"id":"a\\/\\u00fc\\\\","text":"other"}\n'
    others = {"a/ü\\": escaped, "1000.0": b'{"id":1e3}\n', "plain": b'{"id":"pl\\u0061in"}\n'}
    logs.write(said(name, TEXT), others[name], said("kept", "a"))
    assert purge(logs, phrase(TEXT)) == [name]
    assert logs.bytes_of() == as_line(said("kept", "a"))


def test_the_same_id_in_another_scope_is_another_record(logs: Logs) -> None:
    kept = [
        said("1", TEXT, cwd="south"),
        said("1", "nothing said of scope"),
        said("2", "a", cwd="north"),
    ]
    logs.write(kept[0], said("1", TEXT, cwd="north"), kept[1], said("1", "b", cwd="north"), kept[2])
    found = logs.case().find(phrase(TEXT, project="north"))
    assert found.ids == ("1",)
    assert len(places(found.matches[0])) == 2
    assert logs.case().remove(found.matches) == ()
    assert logs.bytes_of() == b"".join(map(as_line, kept))
    # Again, with a handle whose lines are gone: the namesakes are no changed form of them.
    assert logs.case().remove(found.matches) == ()
    assert logs.bytes_of() == b"".join(map(as_line, kept))


def test_records_of_one_id_in_several_scopes_are_told_apart(logs: Logs) -> None:
    logs.write(said("1", "a", cwd="north"), said("1", "b", cwd="south"), said("1", "c"))
    matches = logs.case().find(ids("1")).matches
    assert [match.id for match in matches] == ["1", "1", "1"]
    assert len({match.part for match in matches}) == 3
    assert not any(word in match.part for match in matches for word in ("north", "south"))
    again = logs.case().find(ids("1")).matches
    assert [match.part for match in again] == [match.part for match in matches]
    in_scope = Targets([target(TargetKind.ID, "1", scope={"project": "north"})])
    certain = [it for it in logs.case().find(in_scope).matches if not it.hits[0].scope_unknown]
    assert [match.part for match in certain] == [matches[0].part]
    assert logs.case().remove(certain) == ()
    assert logs.bytes_of() == as_line(said("1", "b", cwd="south")) + as_line(said("1", "c"))


def test_a_record_of_a_scope_that_changed_is_told_from_its_namesakes(logs: Logs) -> None:
    logs.write(said("1", TEXT, cwd="north"), said("1", "b", cwd="south"))
    found = logs.case().find(phrase(TEXT))
    logs.write(said("1", "c", cwd="north"), said("1", "b", cwd="south"))
    left = logs.case().remove(found.matches)
    assert [item.problem for item in left] == [ProblemCode.CHANGED_UNDERNEATH]
    logs.write(said("1", "d", cwd="south"))
    assert logs.case().remove(found.matches) == ()


def test_a_record_that_does_not_say_its_scope_is_shown_as_such(logs: Logs) -> None:
    logs.write(said("x", TEXT), said("y", TEXT, cwd="north"), said("z", TEXT, cwd=["a", "b"]))
    found = logs.case().find(phrase(TEXT, project="north"))
    assert {match.id: match.hits[0].scope_unknown for match in found.matches} == {
        "x": True,
        "y": False,
        "z": True,
    }


# --- records without an id ------------------------------------------------------------------------


def test_a_record_without_an_id_is_named_after_its_content(logs: Logs) -> None:
    record = {"text": TEXT, "at": 1}
    logs.write(said("a", "b"), record)
    (first,) = logs.case().find(phrase(TEXT)).ids
    # The name does not depend on the place, on other lines, or on how the line ends.
    logs.write(said("new", "c"), as_line(record)[:-1] + b"\r\n", said("a", "b"), as_line(record))
    logs.write(record, name="logs/moved.jsonl")
    assert logs.case().find(phrase(TEXT)).ids == (first,)
    assert logs.case().find(ids(first)).ids == (first,)
    logs.write({"text": TEXT, "at": 2}, name="logs/moved.jsonl")
    assert len(set(logs.case().find(phrase(TEXT)).ids)) == 2


def test_only_the_record_of_that_content_goes(logs: Logs) -> None:
    logs.write({"text": TEXT, "at": 1}, {"text": TEXT, "at": 2}, {"id": "", "text": TEXT})
    by_line = {match.where: match.id for match in logs.case().find(phrase(TEXT)).matches}
    assert purge(logs, ids(by_line["logs/a.jsonl, line 2"])) == [by_line["logs/a.jsonl, line 2"]]
    assert logs.bytes_of() == as_line({"text": TEXT, "at": 1}) + as_line({"id": "", "text": TEXT})


def test_a_site_without_an_id_field_works_by_content(tmp_path: Path) -> None:
    logs = Logs(tmp_path, id=None)
    logs.write(said("a", TEXT), said("a", "kept"))
    assert len(purge(logs, phrase(TEXT))) == 1
    assert logs.bytes_of() == as_line(said("a", "kept"))


# --- links, subjects, scopes ----------------------------------------------------------------------

LINKED: dict[str, object] = {
    "a string": "log-1",
    "a number": 1,
    "a list": ["log-0", "log-1"],
    "a list of objects": [{"id": "log-1"}],
    "an object": {"first": "log-1"},
    "a list in a string": '["log-1", "log-2"]',
}


@pytest.mark.parametrize("kind", LINKED)
def test_links_are_found_in_every_form(logs: Logs, kind: str) -> None:
    logs.write(
        said("child", "a", links=LINKED[kind]),
        said("other", "log-1", links="log-10"),
        said("o", ""),
    )
    wanted = "1" if kind == "a number" else "log-1"
    look = logs.case().find(Targets([target(TargetKind.LINEAGE, wanted, site="source")]))
    assert look.ids == ("child",)
    assert wanted in look.matches[0].parents["source"]
    assert sum(part.unlinked for part in look.examined) == 1


def test_a_link_to_the_own_id_or_the_file_can_be_mapped(tmp_path: Path) -> None:
    logs = Logs(tmp_path, derived_from={"by-id": "$id", "by-file": "$key"})
    logs.write(said("x", "a"), said("y", "b"))
    by_id = Targets([target(TargetKind.LINEAGE, "x", site="by-id")])
    assert logs.case().find(by_id).ids == ("x",)
    by_file = Targets([target(TargetKind.LINEAGE, "logs/a.jsonl", site="by-file")])
    assert logs.case().find(by_file).ids == ("x", "y")


def test_records_of_a_site_whose_link_was_never_recorded_are_unlinked(tmp_path: Path) -> None:
    logs = Logs(tmp_path, derived_from={"source": None})
    logs.write(said("x", "a"), said("y", "b"))
    assert sum(part.unlinked for part in logs.case().find(ids("x")).examined) == 2


def test_several_subjects_are_each_found(logs: Logs) -> None:
    logs.write(said("x", "a", user=["user-6", "user-7"]), said("y", "user-7", user="user-77"))
    look = logs.case().find(Targets([target(TargetKind.SUBJECT, "user-7")]))
    assert look.ids == ("x",)


# --- what is said and kept of a record ------------------------------------------------------------


def test_the_field_of_a_hit_shows_no_name_that_may_be_content(logs: Logs) -> None:
    logs.write({"id": "x", "seen": {"tilda@example.org": {"note": TEXT}, TEXT: 1}})
    (match,) = logs.case().find(phrase(TEXT)).matches
    assert match.hits[0].field in ("seen.*.note", "seen.*")
    assert "tilda" not in repr(match)
    assert TEXT not in repr(match)


def test_the_trace_has_the_texts_and_telling_metadata(logs: Logs) -> None:
    logs.write(
        {
            "id": "record-17",
            "text": "What the record says.",
            "title": f"Say {TEXT}",
            "short": "seven77",
            "path": "/srv/tilda",
            "user": "user-marrow-6",
            "tool": {"out": "What the record says."},
        }
    )
    (match,) = logs.case().find(phrase(TEXT)).matches
    assert match.trace.id == "record-17"
    assert match.trace.texts == ("What the record says.", f"Say {TEXT}")
    assert match.trace.metadata == ("/srv/tilda", "user-marrow-6")


def test_without_text_fields_the_trace_has_what_reads_like_text(tmp_path: Path) -> None:
    logs = Logs(tmp_path, text=[], subject="user")
    logs.write({"id": "x", "a": "What it says.", "path": "/srv/tilda", "user": "Tilda Marsh"})
    (match,) = logs.case().find(ids("x")).matches
    assert match.trace.texts == ("What it says.",)
    assert match.trace.metadata == ("/srv/tilda", "Tilda Marsh")
