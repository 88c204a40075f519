"""What all parts of the contract suite share: making stores, and leaving out what does not apply.

A test that does not apply to a store is not skipped: it is not there. What a harness declares
instead is checked to have a reason.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pytest

from purge.adapter import Action
from purge.targets import NeedleKind
from purge.testing.case import Case
from purge.testing.harness import Harness, Planted
from purge.testing.samples import SECRETS, equal, fit

Maker = Callable[..., Case]
"""``make(records=(), action=Action.DELETE)``: a new store with these records in it."""
PATIENCE: Final = 3.0
"""Seconds within which what was left for temporary use has to be gone."""
F = TypeVar("F", bound=Callable[..., None])

_NEEDS: Final[Mapping[str, Callable[[type[Harness]], bool]]] = {
    "scope": lambda harness: harness.has_scope,
    "subject": lambda harness: harness.has_subject,
    "parents": lambda harness: harness.has_parents,
    "many parents": lambda harness: harness.has_parents and harness.many_parents,
    "metadata": lambda harness: harness.has_metadata,
    "vectors": lambda harness: harness.has_vectors,
    "bytes": lambda harness: bool(harness.visible),
    "bytes of metadata": lambda harness: NeedleKind.METADATA in harness.visible,
    "bytes of vectors": lambda harness: NeedleKind.VECTOR in harness.visible,
    "no bytes": lambda harness: not harness.visible,
    "blank": lambda harness: Action.BLANK in harness.adapter.info.actions,
}


def needs(*names: str) -> Callable[[F], F]:
    """Mark a test that only says something of stores that have what is named."""
    unknown = set(names) - _NEEDS.keys()
    if unknown:
        raise ValueError(f"nothing is known as {sorted(unknown)}")

    def mark(test: F) -> F:
        test.needs = names  # type: ignore[attr-defined]  # read by Suite alone
        return test

    return mark


class Suite:
    """Base of the parts of the contract suite."""

    harness: ClassVar[type[Harness]]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "harness" not in vars(cls):
            return
        for name in dir(cls):
            wanted = getattr(getattr(cls, name), "needs", ())
            if not all(_NEEDS[need](cls.harness) for need in wanted):
                setattr(cls, name, None)

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Give tests their parameters where these depend on the harness."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def temporary(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        """The folder for temporary files of everything that these tests start."""
        folder = tmp_path_factory.mktemp("temporary")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", str(folder))
            patch.setattr(tempfile, "tempdir", str(folder))
            yield folder

    @pytest.fixture
    def make(self, tmp_path: Path, temporary: Path) -> Iterator[Maker]:
        """Make stores for one test."""
        yield from makers(self.harness, tmp_path)

    @pytest.fixture(scope="class")
    @classmethod
    def make_shared(
        cls, tmp_path_factory: pytest.TempPathFactory, temporary: Path
    ) -> Iterator[Maker]:
        """Make stores that several tests look at."""
        yield from makers(cls.harness, tmp_path_factory.mktemp("shared"))


def makers(kind: type[Harness], folder: Path) -> Iterator[Maker]:
    """Yield a function that makes stores below a folder; stop them all at the end."""
    made: list[Harness] = []

    def make(records: Iterable[Planted] = (), action: Action = Action.DELETE) -> Case:
        place = folder / f"store-{len(made)}"
        place.mkdir()
        harness = kind(place)
        made.append(harness)
        harness.make()
        fitting = fit(harness, records)
        if fitting:
            harness.plant(fitting)
        return Case(harness, action)

    try:
        yield make
    finally:
        for harness in made:
            harness.stop()


def missing(expected: Iterable[Planted], seen: Mapping[str, Planted]) -> list[str]:
    """Return the ids of the records that are gone or changed."""
    return [
        record.id
        for record in expected
        if record.id not in seen or not equal(record, seen[record.id])
    ]


def names_of(case: Case, records: Iterable[Planted]) -> list[str]:
    """Return the ids by which the adapter knows the records that the store can hold, sorted."""
    return sorted(case.harness.id_of(record) for record in fit(case.harness, records))


def told(thing: object) -> list[str]:
    """Return the secrets that can be read in something that was yielded or raised."""
    said = f"{thing!s}\n{thing!r}".casefold()
    return [secret for secret in SECRETS if secret.casefold() in said]


def words_in(contents: Mapping[str, bytes], words: Iterable[str]) -> dict[str, list[str]]:
    """Return the words that stand in bytes, in UTF-8 or UTF-16, in any case, and where."""
    lowered = {name: data.lower() for name, data in contents.items()}
    found: dict[str, list[str]] = {}
    for word in words:
        forms = [word.casefold().encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
        places = [name for name, data in lowered.items() if any(form in data for form in forms)]
        if places:
            found[word] = places
    return found


def still_there(temporary: Path, words: Iterable[str]) -> dict[str, list[str]]:
    """Return which words stand in temporary files, once those who clean up had time to."""
    wanted = tuple(words)
    give_up = time.monotonic() + PATIENCE
    while True:
        found = words_in(_all_in(temporary), wanted)
        if not found or time.monotonic() > give_up:
            return found
        time.sleep(0.05)


def _all_in(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        # Others may be taking these files away at this moment.
        with suppress(FileNotFoundError, IsADirectoryError):
            found[str(path)] = path.read_bytes()
    return found
