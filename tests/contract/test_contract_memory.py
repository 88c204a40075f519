"""The fault-injecting adapter, without faults, keeps the whole contract."""

from __future__ import annotations

from purge.testing import AdapterContract
from purge.testing.faulty_harness import FaultyHarness


class TestMemory(AdapterContract):
    harness = FaultyHarness
