"""Run the benchmarks: ``make bench``, or ``python -m tests.bench NAME``.

Each prints ratios between things measured side by side in one run. Nothing is asserted: these
are no tests.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Run the benchmarks that are named, or all of them."""
    known = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
    for name in sys.argv[1:] or known:
        if name not in known:
            sys.exit(f"There is no benchmark '{name}'. There are: {', '.join(known)}.")
        print(f"== {name}")  # noqa: T201 - the figures are the purpose
        import_module(f"tests.bench.{name}").main()


main()
