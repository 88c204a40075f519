"""``python -m purge_adapters._sandbox FOLDER COMMAND ...``: run a command beside the servers."""

from __future__ import annotations

import sys

from purge_adapters._sandbox.services import main

sys.exit(main(sys.argv[1:]))
