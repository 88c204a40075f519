"""What every test process does first."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take interrupts as from a keyboard, also where a shell started the tests in the background.

    It has them ignored there, programs that the tests start inherit that, and tests that interrupt
    one would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
