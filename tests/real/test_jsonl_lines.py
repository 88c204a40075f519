"""Lines as they stand in real logs: whatever is in one, it is looked at, and no other changes."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from purge.adapter import ProblemCode, Readability
from purge.targets import TargetKind, Targets
from purge.testing.case import ids, phrase, target
from purge.testing.snapshots import differences
from tests.support.jsonl_logs import TEXT, Logs, as_line, said

BEFORE = said("before", "Two hands and a dry glove.")
BEHIND = said("behind", "The winch on the east quay.")


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def remove(logs: Logs, targets: Targets) -> list[str]:
    """Purge, demand that nothing was left, and return the ids that were found."""
    purged = logs.case().purge(targets)
    assert purged.left == ()
    assert purged.read_back.matches == ()
    assert purged.after.undated == ()
    assert all(control.passed for control in (*purged.control.controls, *purged.after.controls))
    return list(purged.found.ids)


# --- the ways in which the same words are written (MAT-01, LOG-11, LOG-13) ------------------------

CAFE = unicodedata.normalize("NFC", "the café on the quay")
LINES = {
    "as it stands": as_line(said("x", f"Say {CAFE} now.")),
    "with escapes": json.dumps(said("x", f"Say {CAFE} now.")).encode() + b"\n",
    "with capital escapes": b'{"id":"x","text":"Say the caf\\u00E9 on the quay now."}\n',
    "decomposed": as_line(said("x", f"Say {unicodedata.normalize('NFD', CAFE)} now.")),
    "decomposed in escapes": b'{"id":"x","text":"Say the cafe\\u0301 on the quay now."}\n',
    "over lines": as_line(said("x", "Say the\ncafé\n\ton the\r\nquay now.")),
    "in a nested string": as_line(said("x", "", inner=json.dumps({"t": f"Say {CAFE} now."}))),
    "nested twice": as_line(said("x", "", inner=json.dumps(json.dumps([f"Say {CAFE} now."])))),
    "as a key": as_line(said("x", "", seen={f"Say {CAFE} now.": 1})),
    "in a list in a list": as_line(said("x", "", seen=[[{"a": f"Say {CAFE} now."}]])),
    "at the end of a string": as_line({"id": "x", "a": {"b": [f"Say {CAFE}"]}}),
    "as a whole string": as_line({"id": "x", "a": {"b": [CAFE]}}),
    "behind a line separator": as_line(said("x", f"one\u2028two\u2029three\x85four {CAFE}")),
    "with control characters": b'{"id":"x","text":"a\tb\x0bc\x00d the caf\xc3\xa9 on the quay"}\n',
    "with a lone surrogate": b'{"id":"x","text":"\\ud83d the caf\\u00e9 on the quay"}\n',
    "in an old encoding": b'{"id":"x","text":"\x93Say\x94 the caf\xe9 on the quay now."}\n',
    "with other bytes that are no UTF-8": as_line(said("x", CAFE))[:-2] + b',"z":"\xff\xfe"}\n',
    "in upper case": as_line(said("x", CAFE.upper())),
    "in the first of two values of a key": b'{"id":"x","text":"'
    + CAFE.encode()
    + b'","text":"clean"}\n',
    "with a carriage return": as_line(said("x", CAFE))[:-1] + b"\r\n",
    "behind white space": b" \t" + as_line(said("x", CAFE)),
    "behind zero bytes": b"\0" * 4096 + as_line(said("x", CAFE)),
    "before zero bytes": as_line(said("x", CAFE))[:-1] + b"\0" * 4096 + b"\n",
}


@pytest.mark.parametrize("name", LINES)
def test_the_words_are_found_however_they_are_written(logs: Logs, name: str) -> None:
    before, line, behind = logs.write(BEFORE, LINES[name], BEHIND)
    assert line in logs.bytes_of()
    assert remove(logs, phrase(CAFE)) == ["x"]
    assert logs.bytes_of() == before + behind


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_kept_byte_for_byte_however_it_is_written(logs: Logs, name: str) -> None:
    before, _, behind = logs.write(BEFORE, said("gone", TEXT), BEHIND)
    logs.write_bytes(LINES[name] * 2 + before + as_line(said("gone", TEXT)) + LINES[name] + behind)
    assert remove(logs, phrase(TEXT)) == ["gone"]
    assert logs.bytes_of() == LINES[name] * 2 + before + LINES[name] + behind


def test_the_words_in_a_longer_word_are_not_found(logs: Logs) -> None:
    written = logs.write(
        said("a", "the crab potting licence"),
        said("b", "bathe crab pot licence"),
        b'{"id":"c","text":"the crab pot licence\xe9"}\n',
        b'{"id":"d","text":"the crab pot licence\\u00e9"}\n',
    )
    assert logs.case().find(phrase(TEXT)).ids == ()
    assert logs.case().purge(phrase(TEXT)).left == ()
    assert logs.bytes_of() == b"".join(written)


def test_words_are_not_joined_over_the_fields_of_a_record(logs: Logs) -> None:
    logs.write(
        {"id": "a", "text": "the crab", "more": "pot licence"},
        {"id": "b", "text": ["the", "crab", "pot licence"]},
    )
    assert logs.case().find(phrase(TEXT)).ids == ()


def test_a_number_is_found_by_its_digits(logs: Logs) -> None:
    kept, *_ = logs.write(
        said("a", "call 5550123"),
        {"id": "b", "call": 55501234},
        {"id": "c", "call": {"number": [555012345, 15550123499, 0.5]}},
    )
    assert sorted(remove(logs, phrase("55501234"))) == ["b"]
    assert logs.bytes_of().startswith(kept)


def test_markers_are_no_text_and_are_said(logs: Logs) -> None:
    logs.write(
        said("marker", f"RETRACTS: {TEXT}"),
        said("talk", f"What does RETRACTS: {TEXT} do?"),
        said("both", f"RETRACTS: {TEXT}\nand now {TEXT} again"),
    )
    found = logs.case().find(phrase(TEXT))
    assert sorted((match.id, match.carries_marker) for match in found.matches) == [
        ("both", True),
        ("talk", False),
    ]


# --- ids (MEM-02, MAT-07) -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        ("mem-3", ["m", "e", "3", "-", "mem", "mem-", "mem-31", "MEM-3"]),
        ("ABC#1", ["ABC", "#1", "ABC#", "abc#1", "ABC#11"]),
        ("a/b", ["a%2Fb", "a%2fb", "a", "b", "a//b"]),
        ("a%2Fb", ["a/b", "a%252Fb"]),
        ('say "so"', ["say so", 'say \\"so\\"']),
    ],
)
def test_an_id_is_compared_whole(logs: Logs, wanted: str, others: list[str]) -> None:
    kept = [as_line(said(name, f"words of {name}")) for name in others]
    logs.write(*kept, said(wanted, "words"))
    assert remove(logs, ids(wanted)) == [wanted]
    assert logs.bytes_of() == b"".join(kept)


def test_an_id_is_found_however_it_is_written(logs: Logs) -> None:
    logs.write(b'{"id":"caf\\u00e9 \\/ 3","text":"a"}\n', b'{"text":"b","id":17}\n', BEHIND)
    assert remove(logs, ids("café / 3", "17")) == ["café / 3", "17"]
    assert logs.bytes_of() == as_line(BEHIND)


def test_an_id_in_other_fields_or_in_words_is_not_the_records_id(logs: Logs) -> None:
    written = logs.write(
        said("a", "mem-3"), said("b", "", parent="mem-3"), said("c", "", inner={"id": "mem-3"})
    )
    assert logs.case().find(ids("mem-3")).ids == ()
    assert logs.bytes_of() == b"".join(written)


def test_a_record_with_two_ids_is_found_by_each(logs: Logs) -> None:
    logs.write(b'{"id":"first","text":"a","id":"last"}\n', BEHIND)
    assert logs.case().find(ids("first")).ids == ("last",)
    assert remove(logs, ids("last")) == ["last"]


def test_an_id_with_dots_in_its_path_is_found(tmp_path: Path) -> None:
    logs = Logs(tmp_path, id="message.meta.id")
    logs.write(
        {"message": {"meta": {"id": "a"}}},
        {"message": {"meta.id": "b"}},
        {"message.meta": {"id": "c"}},
        {"message": [{"meta": {"id": "d"}}]},
        {"message": {"meta": "e"}},
    )
    found = logs.case().find(ids("a", "b", "c", "d", "e"))
    assert found.ids == ("a", "b", "c", "d")


# --- lines that are no JSON -----------------------------------------------------------------------


def torn(text: str) -> bytes:
    return as_line(said("torn", text))[:-3]


def test_a_torn_last_line_with_the_words_goes_as_the_line_it_is(logs: Logs) -> None:
    before, _ = logs.write(BEFORE, torn(f"Say {TEXT}"))
    assert remove(logs, phrase(TEXT)) == ["torn"]
    assert logs.bytes_of() == before


def test_a_torn_last_line_without_the_words_stays_as_it_is(logs: Logs) -> None:
    before, _, last = logs.write(BEFORE, said("gone", TEXT), torn("Something else"))
    assert remove(logs, phrase(TEXT)) == ["gone"]
    assert logs.bytes_of() == before + last


def test_the_words_are_found_in_a_line_that_is_torn_within_them_behind_escapes(logs: Logs) -> None:
    line = json.dumps(said("torn", f"au caf\u00e9\n{TEXT}"))[:-2].encode()
    logs.write(BEFORE, line)
    assert remove(logs, phrase(f"au café {TEXT}")) == ["torn"]


def test_a_torn_line_is_found_by_its_id_and_its_links_if_they_are_whole(tmp_path: Path) -> None:
    logs = Logs(tmp_path, derived_from={"source": "links"})
    whole = b'{"id":"mem-3","links":["log-1"],"text":"Something wh'
    logs.write(BEFORE, whole)
    assert logs.case().find(ids("mem-3")).ids == ("mem-3",)
    child = Targets([target(TargetKind.LINEAGE, "log-1", site="source")])
    assert logs.case().find(child).ids == ("mem-3",)


@pytest.mark.parametrize("line", [b'{"id":"mem-3', b'{"text":"a","id":"mem-3', b'{"id":3'])
def test_an_id_that_is_cut_off_names_nothing(logs: Logs, line: bytes) -> None:
    logs.write(BEFORE, line)
    assert logs.case().find(ids("mem-3", "mem-31", "3", "31")).ids == ()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_line_in_the_middle_that_is_no_json_is_searched_as_text(logs: Logs, number: int) -> None:
    lines = [b"2026-05-01 started, no JSON\n", b"[broken, {\n", b'{"id":"a","text":"\\x"}\n']
    kept = list(lines)
    lines[number] = lines[number][:-1] + f" {TEXT}.\n".encode()
    del kept[number]
    logs.write(*lines, BEHIND)
    (name,) = remove(logs, phrase(TEXT))
    assert name == "a" if number == 2 else name.startswith("content-")
    assert logs.bytes_of() == b"".join(kept) + as_line(BEHIND)


def test_a_line_that_is_no_json_has_a_scope_only_if_it_says_so(tmp_path: Path) -> None:
    logs = Logs(tmp_path, scope={"project": "cwd"})
    logs.write(
        f'{{"cwd":"south","text":"{TEXT}", broken\n'.encode(),
        f'{{"cwd":"north","text":"{TEXT}", broken\n'.encode(),
        f'{{"text":"{TEXT}", broken\n'.encode(),
    )
    found = logs.case().find(phrase(TEXT, project="north"))
    assert [match.where for match in found.matches if not match.hits[0].scope_unknown] == [
        "logs/a.jsonl, line 2"
    ]
    assert [match.where for match in found.matches if match.hits[0].scope_unknown] == [
        "logs/a.jsonl, line 3"
    ]


def test_two_records_on_one_line_are_two_records(logs: Logs) -> None:
    one, two = as_line(said("a", TEXT))[:-1], as_line(said("b", "kept é"))[:-1]
    logs.write_bytes(b"\xef\xbb\xbf" + two + one + b" " + two + b"\n" + as_line(BEHIND))
    assert remove(logs, phrase(TEXT)) == ["a"]
    assert logs.bytes_of() == b"\xef\xbb\xbf" + two + b" " + two + b"\n" + as_line(BEHIND)


def test_a_record_glued_to_a_torn_one_is_taken_from_it(logs: Logs) -> None:
    logs.write_bytes(as_line(said("a", TEXT))[:-1] + torn("kept"))
    assert remove(logs, phrase(TEXT)) == ["a"]
    assert logs.bytes_of() == torn("kept")


def test_something_in_another_encoding_in_the_middle_is_found(logs: Logs) -> None:
    # What PowerShell's ">>" does to a file in UTF-8.
    wide = f'{{"id":"w","text":"{TEXT}"}}\r\n'.encode("utf-16-le")
    before, _ = logs.write(BEFORE, wide)
    found = logs.case().find(phrase(TEXT))
    assert len(found.matches) == 1
    logs.case().remove(found.matches)
    assert logs.case().find(phrase(TEXT)).matches == ()
    assert logs.bytes_of().startswith(before)


def test_a_damaged_line_is_said_while_it_is_there(logs: Logs) -> None:
    written = logs.write(BEFORE, b'{"id":"x","te\xff\x00\xa7\xfe\xff\x00\n', BEHIND)
    found = logs.case().find(ids("nothing"))
    assert [(gap.where, gap.problem) for gap in found.not_checked] == [
        ("logs/a.jsonl, line 2", ProblemCode.CORRUPT)
    ]
    looked = logs.case().residue(ids("nothing"))
    assert [gap.problem for gap in looked.not_checked] == [ProblemCode.CORRUPT]
    logs.case().purge(ids("before"))
    assert logs.bytes_of() == b"".join(written[1:])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_searched_and_never_rewritten(logs: Logs, encoding: str) -> None:
    data = b"".join(map(as_line, (BEFORE, said("x", TEXT)))).decode().encode(encoding)
    logs.write_bytes(data)
    purged = logs.case().purge(phrase(TEXT))
    assert purged.found.ids == ("x",)
    assert [item.problem for item in purged.left] == [ProblemCode.UNSUPPORTED]
    assert purged.read_back.ids == ("x",)
    assert logs.bytes_of() == data


# --- files ----------------------------------------------------------------------------------------


def test_a_byte_order_mark_stays_when_the_first_line_goes(logs: Logs) -> None:
    mark = b"\xef\xbb\xbf"
    logs.write_bytes(mark + as_line(said("gone", TEXT)) + as_line(BEHIND))
    assert remove(logs, phrase(TEXT)) == ["gone"]
    assert logs.bytes_of() == mark + as_line(BEHIND)


def test_a_byte_order_mark_does_not_hide_the_first_line(logs: Logs) -> None:
    logs.write_bytes(b"\xef\xbb\xbf" + as_line(said("gone", "words")) + as_line(BEHIND))
    assert remove(logs, ids("gone")) == ["gone"]


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n\r\n", b"   \n", b"\0\0\0\n"])
def test_empty_lines_are_no_records_and_stay(logs: Logs, data: bytes) -> None:
    logs.write_bytes(data)
    assert sum(part.records for part in logs.case().find(ids("a")).examined) == 0
    logs.write_bytes(data + as_line(said("gone", TEXT)) + data)
    assert remove(logs, phrase(TEXT)) == ["gone"]
    assert logs.bytes_of() == data + data


def test_a_file_of_which_all_goes_stays_as_an_empty_file(logs: Logs) -> None:
    logs.write(said("gone", TEXT))
    logs.path().chmod(0o640)
    assert remove(logs, phrase(TEXT)) == ["gone"]
    assert logs.bytes_of() == b""
    assert logs.path().stat().st_mode & 0o777 == 0o640


def test_only_files_with_a_hit_are_written(logs: Logs) -> None:
    logs.write(BEFORE)
    logs.write(said("gone", TEXT), BEHIND, name="logs/b.jsonl")
    case = logs.case()
    before = case.snapshot()
    assert remove(logs, phrase(TEXT)) == ["gone"]
    changed = {line.split(":")[0] for line in differences(before, case.now())}
    assert changed == {"logs", "logs/b.jsonl"}


def test_a_file_is_not_written_when_its_records_are_gone_already(logs: Logs) -> None:
    logs.write(said("gone", TEXT), BEHIND)
    case = logs.case()
    found = case.find(phrase(TEXT))
    case.remove(found.matches)
    before = case.snapshot()
    assert case.remove(found.matches) == ()
    assert differences(before, case.now()) == []


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["kept", "gone"]),
        st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=20),
        st.booleans(),
        st.sampled_from([b"\n", b"\r\n", b" \n", b"\n\n"]),
    ),
    max_size=30,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(records=RECORDS, ended=st.booleans())
def test_any_lines_stay_as_they_were_where_others_go(
    logs: Logs, records: list[tuple[str, str, bool, bytes]], ended: bool
) -> None:
    lines, kept = [], []
    for number, (fate, text, escaped, line_break) in enumerate(records):
        words = f"{text} {TEXT}!" if fate == "gone" else text
        record = json.dumps({"id": f"{fate}-{number}", "text": words}, ensure_ascii=escaped)
        lines.append(record.encode() + line_break)
        if fate == "kept":
            kept.append(record.encode() + line_break)
        elif line_break == b"\n\n":
            kept.append(b"\n")
    if lines and not ended:
        was_kept = records[-1][0] == "kept"
        lines[-1] = lines[-1].rstrip(b"\r\n ")
        if was_kept:
            kept[-1] = lines[-1]
        elif records[-1][3] == b"\n\n":
            kept.pop()
    logs.write_bytes(b"".join(lines))
    found = remove(logs, phrase(TEXT))
    assert found == [f"gone-{at}" for at, record in enumerate(records) if record[0] == "gone"]
    assert logs.bytes_of() == b"".join(kept)


def test_a_match_says_when_the_record_was_made(tmp_path: Path) -> None:
    logs = Logs(tmp_path, time="at")
    for at, expected in {
        "2026-05-01T12:00:00+09:00": "2026-05-01T12:00:00+09:00",
        "2026-05-01T12:00:00.5Z": "2026-05-01T12:00:00.500000+00:00",
        "2026-05-01 12:00:00": "2026-05-01T12:00:00+00:00",
        1777636800: "2026-05-01T12:00:00+00:00",
        1777636800000: "2026-05-01T12:00:00+00:00",
        1777636800000000: "2026-05-01T12:00:00+00:00",
        1777636800.5: "2026-05-01T12:00:00.500000+00:00",
    }.items():
        logs.write(said("x", TEXT, at=at))
        (match,) = logs.case().find(ids("x")).matches
        assert match.created is not None
        assert match.created.isoformat() == expected
        assert match.readability is Readability.READABLE
    nothings: list[object] = ["yesterday", None, True, 10**30, "", {}]
    for nothing in nothings:
        logs.write(said("x", TEXT, at=nothing))
        assert logs.case().find(ids("x")).matches[0].created is None
