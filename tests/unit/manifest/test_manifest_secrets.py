"""Values from the environment: filled in, and never shown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purge.manifest import Manifest, Secret, SiteEntry, redacted

Load = Callable[..., Manifest]
Faults = Callable[..., list[str]]
SITE = "purge: 1\nsites:\n  a:\n    adapter: reachable\n"
HIDDEN = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${A}", "value"),
        ("redis://u:${A}@h/${B}", "redis://u:value@h/0"),
        ("'$${A}'", "${A}"),
        ("'$$'", "$"),
        ("$$$${A}", "$${A}"),
        ("$$${A}", "$value"),
        ("$id", "$id"),
        ("$", "$"),
        ("5 $ {A}", "5 $ {A}"),
        ("$A", "$A"),
    ],
)
def test_variables_are_filled_in(load: Load, written: str, meant: str) -> None:
    entry = load(SITE + f"    url: {written}\n", {"A": "value", "B": "0"}).sites["a"]
    assert entry.settings["url"] == meant
    assert getattr(entry.checked, "url", None) == meant


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("${NOPE}", "The environment variable NOPE is not set."),
        ("x${EMPTY}y", "The environment variable EMPTY is set but empty."),
        ("${A:-else}", "A default (${NAME:-...}) is not offered"),
        ("${A-else}", "A default (${NAME:-...}) is not offered"),
        ("${}", "must be the name of a variable"),
        ("${A B}", "must be the name of a variable"),
        ("${A", "is not closed"),
        ("${BYTES}", "The environment variable BYTES is not UTF-8 text."),
    ],
)
def test_a_variable_that_cannot_be_filled_in_is_one_fault(
    faults: Faults, written: str, words: str
) -> None:
    environ = {"A": HIDDEN, "EMPTY": "", "BYTES": "\udcff"}
    (fault,) = faults(SITE + f"    url: {written}\n", environ)
    assert fault.startswith("purge.yaml:5:10: sites.a.url: ")
    assert words in fault
    assert HIDDEN not in fault


def test_all_unset_variables_are_named(faults: Faults) -> None:
    found = faults(SITE + "    url: ${ONE}:${TWO}\n    password: ${THREE}\n")
    assert [name in fault for name, fault in zip(("ONE", "TWO", "THREE"), found, strict=True)]


def test_what_an_unset_variable_was_meant_for_is_no_second_fault(faults: Faults) -> None:
    text = (
        "purge: 1\ntimezone: ${X}\nsafety: {max_records: '${X}'}\nsites:\n"
        "  a: {adapter: '${X}', path: x}\n"
        "  b: {adapter: folder, path: '/${X}', batch: '${X}', action: '${X}', record: '${X}'}\n"
        "  c: '${X}'\n"
        "markers: {from: ['${X}']}\n"
    )
    found = faults(text)
    assert len(found) == 9
    assert all(fault.endswith("The environment variable X is not set.") for fault in found)


def test_a_variable_can_add_no_keys(load: Load) -> None:
    entry = load(SITE + "    url: ${A}\n", {"A": "x\n    outside_root: true"}).sites["a"]
    assert not entry.outside_root
    assert entry.settings["url"] == "x\n    outside_root: true"


def test_a_variable_may_stand_for_a_number_or_a_truth_value(load: Load, faults: Faults) -> None:
    text = (
        "purge: 1\nsafety: {max_records: '${N}'}\nsites:\n"
        "  a: {adapter: folder, path: x, batch: '${N}', follow: '${T}'}\n"
    )
    manifest = load(text, {"N": "7", "T": "true"})
    assert manifest.safety.max_records == 7
    checked = manifest.sites["a"].checked
    assert (getattr(checked, "batch", None), getattr(checked, "follow", None)) == (7, True)
    found = faults(text, {"N": HIDDEN, "T": "yes"})
    assert [fault.split(": ", 1)[1] for fault in found] == [
        "safety.max_records: must be a whole number.",
        "sites.a.batch: must be a whole number.",
        "sites.a.follow: must be true or false.",
    ]


def test_a_password_that_looks_like_a_number_stays_text(load: Load) -> None:
    text = SITE + "    url: u\n    password: ${P}\n"
    assert getattr(load(text, {"P": "0123"}).sites["a"].checked, "password", None) == "0123"


def test_no_fault_and_no_printed_form_holds_a_secret(load: Load, faults: Faults) -> None:
    environ = {"S": HIDDEN}
    manifest = load(SITE + "    url: redis://u:${S}@h\n    password: ${S}\n", environ)
    assert HIDDEN not in repr(manifest)
    assert HIDDEN not in repr(manifest.sites["a"].settings)
    assert redacted(manifest.sites["a"]) == {"url": "redis://u:${S}@h", "password": "${S}"}
    everywhere = """\
purge: 1
name: ${S}
timezone: ${S}
safety: {max_records: '${S}', snapshot: {site: '${S}', max_age: '${S}'}}
sites:
  a: {adapter: '${S}', url: '${S}'}
  b: {adapter: folder, path: '/${S}', record: '${S}', action: '${S}', derived_from: {a: '${S}'}}
  c: {adapter: folder, path: "${S}\\0", follow: '${S}', parts: ['${S}', {name: 5, weight: '${S}'}]}
  d: {adapter: folder, path: x, scope: '${S}', provider_retention: '${S}'}
markers: {from: ['${S}', {site: '${S}'}], when_done: '${S}'}
ledger: '${S}'
"""
    found = faults(everywhere, environ)
    assert len(found) > 15
    assert not [fault for fault in found if HIDDEN in fault]
    assert "sites.a.adapter: There is no adapter '${S}'." in "\n".join(found)


def test_a_secret_is_a_string_that_prints_as_it_was_written() -> None:
    secret = Secret(HIDDEN, "${S}")
    assert secret == HIDDEN
    assert f"{secret}" == HIDDEN
    assert repr(secret) == "'${S}'"
    assert repr({"a": [secret]}) == "{'a': ['${S}']}"
    for other in (copy.deepcopy(secret), pickle.loads(pickle.dumps(secret))):
        assert (other, repr(other)) == (HIDDEN, "'${S}'")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("url", "redis://user:pass@host:6379/0", "redis://user:***@host:6379/0"),
        ("url", "redis://:pass@host", "redis://:***@host"),
        ("url", "postgresql://u:p/a@b@host/db", "postgresql://u:***@host/db"),
        ("url", "postgresql://user@host/db", "postgresql://user@host/db"),
        ("url", "https://host/x?token=abc&page=2", "https://host/x?token=***&page=2"),
        ("url", "redis://u:x${P}y@h", None),
        ("url", "sqlite:///data/a.db", "sqlite:///data/a.db"),
        ("password", "plain", "***"),
        ("password", 12345, "***"),
        ("password_file", "run/secret", "run/secret"),
        ("api_key", ["one", "two"], ["***", "***"]),
        ("headers", {"Authorization": "Bearer x", "Accept": "y"}, None),
        ("text", ["content", "token_count"], ["content", "token_count"]),
        ("batch", 5, 5),
        ("follow", True, True),
        ("password", None, None),
    ],
)
def test_what_is_shown_of_settings(name: str, value: object, shown: object) -> None:
    found = redacted(SiteEntry("a", "x", settings={name: value}))[name]
    if isinstance(value, dict):
        assert found == {"Authorization": "***", "Accept": "y"}
    elif isinstance(value, str) and "${" in value:
        assert found == "redis://u:***${P}***@h"
    else:
        assert found == shown


def test_a_secret_in_parts_shows_no_part() -> None:
    entry = SiteEntry("a", "x", settings={"password": Secret("pre" + HIDDEN, "pre${S}")})
    assert redacted(entry) == {"password": "***${S}"}


@given(st.text(alphabet="${}A:-b", max_size=12))
def test_filling_in_ends_and_never_leaks(text: str) -> None:
    from purge.manifest.document import Node, Place
    from purge.manifest.environment import fill_in

    node, faults, _ = fill_in(Node({"k": Node(text, Place())}, Place()), {"A": HIDDEN, "b": HIDDEN})
    value = node.plain()["k"]
    assert HIDDEN not in repr(value) or HIDDEN in text
    assert all(HIDDEN not in fault.sentence for fault in faults)
    if HIDDEN in value:
        assert isinstance(value, Secret)
