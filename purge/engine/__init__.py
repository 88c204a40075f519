"""The engine: carries requests out over the sites of a manifest, and looks again.

Start at :mod:`purge.engine.engine` for what a library user calls, and at :mod:`purge.engine.run`
for what happens in a run. This package imports no driver and prints nothing.
"""

from purge.engine.checking import SiteCheck
from purge.engine.engine import Engine

__all__ = ["Engine", "SiteCheck"]
