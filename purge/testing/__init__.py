"""The contract suite that every adapter must pass, and a fault-injecting adapter.

A test of an adapter is a harness (how to make, fill, read and break one kind of store) and one
class::

    class TestJsonl(AdapterContract):
        harness = JsonlHarness

``purge`` itself may not import this package; this package may import pytest, and no driver.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from purge.testing.harness import (
    METADATA,
    OTHER,
    SCOPE,
    SITE,
    SOURCE,
    VECTOR_LENGTH,
    Breakage,
    Harness,
    Planted,
)

if TYPE_CHECKING:
    from purge.testing.contract import AdapterContract

__all__ = [
    "METADATA",
    "OTHER",
    "SCOPE",
    "SITE",
    "SOURCE",
    "VECTOR_LENGTH",
    "AdapterContract",
    "Breakage",
    "Harness",
    "Planted",
]


def __getattr__(name: str) -> Any:
    # The fault-injecting adapter is also used where pytest is not: the suite is imported late.
    if name != "AdapterContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest

    parts = ("blanking", "breaking", "killing", "looking", "removing")
    modules = [f"purge.testing.suite_{part}" for part in parts]
    pytest.register_assert_rewrite(*(name for name in modules if name not in sys.modules))
    from purge.testing.contract import AdapterContract

    return AdapterContract
