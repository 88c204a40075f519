"""The contract suite as one class. See :mod:`purge.testing.harness` for what it needs."""

from __future__ import annotations

from purge.testing.suite_blanking import BlankingSuite
from purge.testing.suite_breaking import BreakingSuite
from purge.testing.suite_killing import KillingSuite
from purge.testing.suite_looking import LookingSuite
from purge.testing.suite_removing import RemovingSuite


class AdapterContract(LookingSuite, RemovingSuite, BlankingSuite, BreakingSuite, KillingSuite):
    """Every behaviour that the contract of an adapter asks for, each as a test of its own.

    A subclass whose name begins with ``Test`` sets ``harness``, and that is all.
    """
