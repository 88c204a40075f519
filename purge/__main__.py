"""``python -m purge``."""

from purge.cli.app import main

main()
