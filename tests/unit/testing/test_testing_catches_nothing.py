"""The contract suite finds nothing wrong with an adapter that is merely wrapped."""

from __future__ import annotations

from collections.abc import Callable

pytest_plugins = ["pytester"]


def test_without_a_mistake_every_test_passes(
    outcomes: Callable[..., dict[str, bool]],
) -> None:
    seen = outcomes({})
    assert [nodeid for nodeid, passed in seen.items() if not passed] == []
    assert len(seen) > 140


def test_a_store_without_a_feature_is_not_asked_for_it(
    outcomes: Callable[..., dict[str, bool]],
) -> None:
    without = """
    has_scope = has_subject = has_parents = has_metadata = has_vectors = False
    kill_points = 1
    unbreakable = {Breakage.LOCKED: "a test says so"}
    """
    seen = outcomes({"harness": without})
    assert [nodeid for nodeid, passed in seen.items() if not passed] == []
    words = ("subject", "scope", "lineage", "metadata", "vector", "locked")
    left = [nodeid for nodeid in seen if any(word in nodeid for word in words)]
    assert left == []
